"""Attacks: damaged copies of every kind of input, kills, signals, second starts, full disks.

``pytest tests/attack`` runs a few hundred of them; ``python -m tests.attack`` thousands.
"""
