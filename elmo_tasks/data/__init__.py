"""Readers, data modules and batches."""
