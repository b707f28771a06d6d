"""Numbers as texts for people."""

from __future__ import annotations

_GIGABYTE, _MEGABYTE = 1e9, 1e6


def format_bytes(n_bytes: int) -> str:
    """A number of bytes in a readable unit."""
    return f"{n_bytes / _GIGABYTE:.2f} GB" if n_bytes >= _GIGABYTE else f"{n_bytes / _MEGABYTE:.1f} MB"
