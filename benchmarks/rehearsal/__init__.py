"""Synthetic data and biLM weights of the published sizes, to learn what an experiment costs before it is run."""
