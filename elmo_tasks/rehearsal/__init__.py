"""Data and biLM weights of the published sizes, made up: to know what a real experiment costs before it is run."""
