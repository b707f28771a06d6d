"""``python -m experiments.table3``: print a table, or what it lacks, or run what it lacks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from elmo_tasks.errors import UserError
from elmo_tasks.tables.declare import Table
from elmo_tasks.tables.grid import markdown
from elmo_tasks.tables.measure import Choice, measure
from elmo_tasks.tables.render import grid_of
from elmo_tasks.tables.rows import read_rows
from elmo_tasks.tables.settings import REPO


def main(*tables: Table) -> None:
    rows = read_rows([REPO / "experiments" / "rows"])
    for t in tables:
        print(markdown(grid_of(measure(t, rows, Choice(("data=local",))), rows)))
