"""The configuration: composed by Hydra, validated once, then handed on as typed sections."""
