"""Readers, vocabulary, batches."""
