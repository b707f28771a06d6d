"""The paper's tables as declarations, filled from rows: see ``experiments/``."""

from elmo_tasks.tables.command import main
from elmo_tasks.tables.declare import Column, Gain, Line, Quote, Table

__all__ = ["Column", "Gain", "Line", "Quote", "Table", "main"]
