"""The paper's tables, figures and claims as declarations, filled from rows: see ``experiments/``."""

from elmo_tasks.tables.command import main
from elmo_tasks.tables.declare import (
    BestEpoch,
    Claim,
    Claims,
    Column,
    Difference,
    FineTuning,
    Gain,
    Line,
    Part,
    PassingEpoch,
    Quote,
    Race,
    Score,
    Table,
    Weights,
)

__all__ = [
    "BestEpoch",
    "Claim",
    "Claims",
    "Column",
    "Difference",
    "FineTuning",
    "Gain",
    "Line",
    "Part",
    "PassingEpoch",
    "Quote",
    "Race",
    "Score",
    "Table",
    "Weights",
    "main",
]
