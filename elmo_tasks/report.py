"""Tables from rows: ``python -m elmo_tasks.report ROWS [README.md]`` prints them, or renews a document's block."""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from elmo_tasks.errors import UserError
from elmo_tasks.results import load

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"

Row = dict[str, Any]


def results_table(rows: Iterable[Row]) -> str:
    """A Markdown table: one line for each setting that was run, mean and standard deviation over its seeds."""
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row["elmo"] is not None:
            groups[_setting(row)].append(row)
    lines = [
        "| task | data | scale | training items | ELMo | seeds | metric | dev | test |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for setting, members in sorted(groups.items()):
        dev, test = (_scores(members, split) for split in ("dev", "test"))
        lines.append(f"| {' | '.join(setting)} | {len(members)} | {members[0]['metric']} | {dev} | {test} |")
    return "\n".join(lines)


def mix_table(rows: Iterable[Row]) -> str:
    """A Markdown table of what the mixes learned: softmax weights of the layers and gamma, means over seeds."""
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        for place in (row["elmo"] or {}).get("weights", ()):
            groups[(*_setting(row), place)].append(row)
    lines = [
        "| task | data | training items | place | s (layer 0, 1, ...) | gamma |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for (task, data, _, items, _, place), members in sorted(groups.items()):
        weights = [row["elmo"]["weights"][place] for row in members]
        s = ", ".join(f"{statistics.mean(layer):.3f}" for layer in zip(*(w["s"] for w in weights), strict=True))
        gamma = statistics.mean(w["gamma"] for w in weights)
        lines.append(f"| {task} | {data} | {items} | {place} | {s} | {gamma:.3f} |")
    return "\n".join(lines)


def layers_table(rows: Iterable[Row]) -> str:
    """A Markdown table of what the layer store saves: runs that had layers to compute, and the others, by data."""
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row["bilm"] is not None:
            groups[_setting(row)[:4]].append(row)
    lines = [
        "| task | data | scale | training items | runs that computed layers | seconds | runs that read all | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for setting, members in sorted(groups.items()):
        first = [row for row in members if row["layers"]["computed"]]
        later = [row for row in members if not row["layers"]["computed"]]
        cells = []
        for part, kind in ((first, "computed"), (later, "read")):
            tokens = f", {statistics.mean(row['layers'][kind] for row in part):,.0f} tokens" if part else ""
            cells.append(f"{len(part)}{tokens}")
            cells.append(f"{statistics.mean(row['seconds']['layers'] for row in part):.1f}" if part else "-")
        lines.append(f"| {' | '.join(setting)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def renew(document: str, tables: str) -> str:
    """Put ``tables`` between the markers of a Markdown document.

    Raises:
        UserError: if the markers are not there.
    """
    head, begin, rest = document.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise UserError(f"the document has no {BEGIN} ... {END} to put the tables in")
    return f"{head}{BEGIN}\n\n{tables}\n\n{END}{tail}"


def render(folder: Path) -> str:
    """All tables of a folder of rows."""
    rows = load(folder)
    return (
        f"{results_table(rows)}\n\nWhat the mixes learned:\n\n{mix_table(rows)}\n\n"
        f"Seconds until the layers were there (reading the data included), means:\n\n{layers_table(rows)}"
    )


def _setting(row: Row) -> tuple[str, ...]:
    elmo, train = row["elmo"], row["data"]["train"]
    used = f"{train['used']:,}" + ("" if train["used"] == train["original"] else f" of {train['original']:,}")
    return row["task"], row["data"]["name"], row["scale"], used, _plugged(elmo, row)


def _plugged(elmo: Row, row: Row) -> str:
    if elmo["placement"] == "none":
        return "none"
    text = f"{elmo['placement']}, {elmo['mix']}"
    if elmo["mix"] == "scalar":
        text += f", lambda {row['config']['elmo']['lambda']:g}"
    return text if row["bilm"]["state"] == "reset" else f"{text}, {row['bilm']['state']}"


def _scores(rows: list[Row], split: str) -> str:
    values = [row["scores"][split][row["metric"]] for row in rows if split in row["scores"]]
    if len(values) < len(rows):
        return "-"
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.2f}{spread}"


def main(arguments: list[str]) -> None:
    """The command line."""
    if len(arguments) not in (1, 2):
        sys.exit("usage: python -m elmo_tasks.report ROWS [README.md]")
    try:
        tables = render(Path(arguments[0]))
        if len(arguments) == 1:
            print(tables)
            return
        document = Path(arguments[1])
        document.write_text(renew(document.read_text("utf-8"), tables), "utf-8")
    except (UserError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
