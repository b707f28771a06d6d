"""The interface of frozen encoders, and those other than the biLM: CoVe and Hugging Face models."""
