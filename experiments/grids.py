"""The search of docs/protocol.md: a small grid per task, the same for the baseline and for ELMo, on dev, one seed.

``elmo-tasks table grids tasks=ner`` prints the scores; ``--missing`` and ``--run`` work as for every table.
"""

from __future__ import annotations

from elmo_tasks.command_line import run_command
from elmo_tasks.tables import Column, Line, Table, make_command

AS_CONFIGURED = "as configured"
BASELINE = ("elmo.placement=none",)

GRIDS: dict[str, dict[str, tuple[str, ...]]] = {
    "sst5": {
        AS_CONFIGURED: (),
        "embedding dropout 0.5": ("task.model.embedding_dropout=0.5",),
        "rate 0.0005": ("task.optimizer.lr=0.0005",),
        "embedding dropout 0.5, rate 0.0005": ("task.model.embedding_dropout=0.5", "task.optimizer.lr=0.0005"),
    },
    "ner": {
        AS_CONFIGURED: (),
        "dropout 0.3": ("task.model.dropout=0.3",),
        "rate 0.002": ("task.optimizer.lr=0.002",),
        "100 cells": ("task.model.hidden=[100,100]",),
    },
    "snli": {
        AS_CONFIGURED: (),
        "dropout 0.3": ("task.model.dropout=0.3",),
        "rate 0.0005": ("task.optimizer.lr=0.0005",),
        "150 cells": ("task.model.hidden=150",),
    },
    "srl": {
        AS_CONFIGURED: (),
        "dropout 0.3": ("task.model.dropout=0.3",),
        "rate 0.001": ("task.optimizer.lr=0.001",),
    },
    "squad": {
        AS_CONFIGURED: (),
        "dropout 0.1": ("task.model.dropout=0.1",),
    },
    "coref": {
        AS_CONFIGURED: (),
        "lexical dropout 0.3": ("task.model.lexical_dropout=0.3",),
    },
}
"""By task: configurations by label, each what it sets beside the task's configuration."""

NAMES = {"sst5": "SST-5", "ner": "NER", "snli": "SNLI", "srl": "SRL", "squad": "SQuAD", "coref": "Coref"}

GRID = Table(
    title="Search: every configuration, without and with ELMo (development set, one seed)",
    seeds=1,
    lines=tuple(
        Line(f"{NAMES[task]}, {label}", (f"task={task}", *overrides))
        for task, configurations in GRIDS.items()
        for label, overrides in configurations.items()
    ),
    columns=(Column("baseline", BASELINE), Column("ELMo")),
)
ELMO_DROPOUT = Table(
    title="Search: dropout on the ELMo vector, the rest as configured (development set, one seed)",
    seeds=1,
    lines=tuple(Line(NAMES[task], (f"task={task}",)) for task in GRIDS),
    columns=tuple(Column(f"{rate:g}", (f"elmo.dropout={rate:g}",)) for rate in (0, 0.2, 0.4)),
)

main = make_command("grids", GRID, ELMO_DROPOUT)

if __name__ == "__main__":
    run_command(main)
