"""Layers that two models or more share."""
