"""The paper's tables, figures and claims as declarations, filled from rows: see ``experiments/``."""

from elmo_tasks.tables.command import main
from elmo_tasks.tables.declare import (
    Column,
    FineTuning,
    Gain,
    Line,
    Quote,
    Race,
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
