"""Intrinsic evaluation of biLM layers (section 5.3): word senses and nearest neighbours, without a task model."""
