"""Tables from rows: ``python -m elmo_tasks.report ROWS [README.md]`` prints them, or renews a document's block."""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from elmo_tasks.errors import UserError
from elmo_tasks.results import elmo_in_force, fingerprint, load

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"

Row = dict[str, Any]

_BESIDE = {"squad": ["exact_match"], "coref": ["muc_f1", "b_cubed_f1", "ceaf_e_f1"]}  # reported beside the main score


def results_table(rows: Iterable[Row]) -> str:
    """A Markdown table: one line for each setting that was run, mean and standard deviation over its seeds."""
    lines = [
        "| task | data | scale | training items | ELMo | seeds | metric | dev | test |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for setting, members in _groups(row for row in rows if row["elmo"] is not None):
        plugged = _plugged(members[0]) + _ensemble(members[0])
        cells = [*setting, plugged, str(len(members)), ", ".join(_metrics(members[0]))]
        lines.append(_line(*cells, _scores(members, "dev"), _scores(members, "test")))
    return "\n".join(lines)


def mix_table(rows: Iterable[Row]) -> str:
    """A Markdown table of what the mixes learned: softmax weights of the layers and gamma, means over seeds."""
    lines = [
        "| task | data | scale | training items | ELMo | place | s (layer 0, 1, ...) | gamma |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for setting, members in _groups(row for row in rows if row["elmo"] is not None):
        for place in members[0]["elmo"]["weights"]:
            weights = [row["elmo"]["weights"][place] for row in members]
            s = ", ".join(f"{statistics.mean(layer):.3f}" for layer in zip(*(w["s"] for w in weights), strict=True))
            gamma = f"{statistics.mean(w['gamma'] for w in weights):.3f}"
            lines.append(_line(*setting, _plugged(members[0]), place, s, gamma))
    return "\n".join(lines)


def layers_table(rows: Iterable[Row]) -> str:
    """A Markdown table of what the layer store saves: runs that had layers to compute, and runs that read them all."""
    lines = [
        "| task | data | scale | training items | ELMo | computed layers | seconds | read all | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for setting, members in _groups(row for row in rows if row["bilm"] is not None and "ensemble" not in row):
        cells = [*setting, _plugged(members[0])]
        for kind, wanted in (("computed", True), ("read", False)):
            part = [row for row in members if (row["layers"]["computed"] > 0) == wanted]
            tokens = f", {statistics.mean(row['layers'][kind] for row in part):,.0f} tokens" if part else ""
            cells.append(f"{len(part)} run{'s' * (len(part) != 1)}{tokens}")
            cells.append(f"{statistics.mean(row['seconds']['layers'] for row in part):.1f}" if part else "-")
        lines.append(_line(*cells))
    return "\n".join(lines)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _groups(rows: Iterable[Row]) -> list[tuple[tuple[str, ...], list[Row]]]:
    """Rows that differ in nothing but their seed, in order of what is shown of them.

    Data and biLM count by their digests and the rest by the configuration, so that other files, weights or sizes under
    the same name are another line.
    """
    groups: dict[tuple[tuple[str, ...], str], list[Row]] = defaultdict(list)
    for row in rows:
        digests = f"{row['data']['digest']} {(row['bilm'] or {}).get('digest')} {_cell(row['config'])}"
        hidden = f"{_plugged(row)}{_ensemble(row)} {digests}"
        groups[_setting(row), hidden].append(row)
    return [(setting, groups[setting, hidden]) for setting, hidden in sorted(groups)]


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
    train = row["data"]["train"]
    used = f"{train['used']:,}" + ("" if train["used"] == train["original"] else f" of {train['original']:,}")
    return row["task"], row["data"]["name"], row["scale"], used


def _cell(config: Row) -> str:
    """Fingerprint of what a configuration says of model, schedule and ELMo."""
    elmo, trainer = config["elmo"], config["trainer"]
    schedule = [trainer[key] for key in ("max_epochs", "max_steps", "patience", "precision")]
    parts = {"task": config["task"], "words": config["words"], "elmo": elmo_in_force(elmo), "schedule": schedule}
    return fingerprint(parts)


def _plugged(row: Row) -> str:
    elmo = row["elmo"]
    if elmo["placement"] == "none":
        return "none"
    text = f"{elmo['placement']}, {elmo['mix']}"
    if elmo["mix"] == "scalar":
        text += f", lambda {row['config']['elmo']['lambda']:g}"
    if row["config"]["elmo"].get("gamma") == "one":
        text += ", gamma 1"
    return text if row["bilm"]["state"] == "reset" else f"{text}, {row['bilm']['state']}"


def _ensemble(row: Row) -> str:
    return f", ensemble of {len(row['ensemble']['seeds'])}" if "ensemble" in row else ""


def _metrics(row: Row) -> list[str]:
    return [row["metric"], *_BESIDE.get(row["task"], ())]


def _scores(rows: list[Row], split: str) -> str:
    if any(split not in row["scores"] for row in rows):
        return "-"
    return ", ".join(_mean([row["scores"][split][name] for row in rows]) for name in _metrics(rows[0]))


def _mean(values: list[float]) -> str:
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
