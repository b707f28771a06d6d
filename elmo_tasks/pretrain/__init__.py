"""Training of biLMs, from a text that is encoded once; on a CPU or, faster, on a GPU, with the same numbers."""
