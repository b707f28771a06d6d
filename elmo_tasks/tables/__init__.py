"""The paper's tables, figures and claims as declarations, evaluated on rows: see ``experiments/``."""

from elmo_tasks.tables.command import make_command
from elmo_tasks.tables.declare import (
    Column,
    EpochsToPass,
    FineTuning,
    Gain,
    Line,
    Quote,
    Table,
    Weights,
)
from elmo_tasks.tables.declare_claims import (
    BestEpoch,
    Claim,
    Claims,
    Difference,
    Part,
    PassingEpoch,
    Score,
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
