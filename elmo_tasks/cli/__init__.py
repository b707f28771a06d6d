"""The command ``elmo-tasks``."""
