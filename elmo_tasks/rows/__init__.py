"""Rows: one JSON file for each run."""
