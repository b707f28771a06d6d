"""The paper's tables, figures and claims as declarations, evaluated on rows: see ``experiments/``."""

from elmo_tasks.tables.command import make_command
from elmo_tasks.tables.declare import (
    BestEpoch,
    Claim,
    Claims,
    Column,
    Difference,
    EpochsToPass,
    FineTuning,
    Gain,
    Line,
    Part,
    PassingEpoch,
    Quote,
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
    "EpochsToPass",
    "FineTuning",
    "Gain",
    "Line",
    "Part",
    "PassingEpoch",
    "Quote",
    "Score",
    "Table",
    "Weights",
    "make_command",
]
