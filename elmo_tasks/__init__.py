"""Downstream-task experiments for deep contextualised word representations (ELMo)."""

__version__ = "0.1.0"
