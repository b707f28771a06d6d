"""Fast training of a biLM from a text that was encoded once; made for a GPU, the same numbers on a CPU."""
