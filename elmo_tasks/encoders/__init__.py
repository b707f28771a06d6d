"""Frozen encoders beside the biLM: CoVe, and Hugging Face models."""
