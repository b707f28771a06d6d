"""Every run as a line of a CSV file, for pandas, R or a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from elmo_tasks.rows.collection import Rows
from elmo_tasks.rows.io import AnyRow, to_json
from elmo_tasks.rows.schema import Row
from elmo_tasks.rows.settings import flat


def csv_text(rows: Rows) -> str:
    """A line for each finished or failed run, and a column for each field of a row.

    First come the run, its status and its ``dev`` and ``test`` score in the task's metric, then the other fields by
    their dotted names (``scores.dev.f1``, ``seconds.fit``), and last the configuration (``config.elmo.lambda``). A list
    is JSON. A cell is empty where a run has no such field. Curves and the digests of written files are left out.
    """
    lines = [_line(row) for row in rows.all]
    names = list(dict.fromkeys(name for line in lines for name in line))
    names.sort(key=lambda name: name.startswith("config."))
    file = io.StringIO()
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return file.getvalue()


def _line(row: AnyRow) -> dict[str, Any]:
    content = to_json(row)
    content.pop("files", None)
    if content.get("training"):
        del content["training"]["curve"]
    fields: dict[str, Any] = {"run_id": row.run_id, "status": row.status, "dev": None, "test": None}
    if isinstance(row, Row):
        fields |= {split: scores[row.metric.name] for split, scores in row.scores.items()}
    known = {name: value for name, value in flat(content).items() if value not in (None, {})}
    return fields | {name: json.dumps(value) if isinstance(value, list) else value for name, value in known.items()}
