"""The layer store: frozen layers on disk, computed once for every sentence."""
