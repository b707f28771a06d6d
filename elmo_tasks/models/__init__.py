"""The task models, as bare modules."""
