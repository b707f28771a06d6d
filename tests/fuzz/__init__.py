"""Hostile inputs from generators that know each format's grammar, with fixed seeds."""
