"""One file for each kind of run, from configuration to row."""
