"""The frozen bidirectional language model: ``BiLM.load("mini").layers([["Hello", "there", "."]])``."""

from elmo_tasks.bilm.model import BiLM

__all__ = ["BiLM"]
