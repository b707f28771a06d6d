"""Frozen encoders other than the biLM: CoVe, and Hugging Face models."""
