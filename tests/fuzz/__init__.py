"""Hostile inputs that generators write by the grammar of each format, with what must be made of them."""
