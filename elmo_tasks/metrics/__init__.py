"""Scores as the official scorers count them."""
