"""Layers of the task models and of the biLM, and what they read: characters, words and word vectors."""
