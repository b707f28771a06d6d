"""The list of runs on the page: a line for each, with what is behind it folded away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import Any

from elmo_tasks.report.grid import Grid, html
from elmo_tasks.report.groups import ensemble, plugged, setting
from elmo_tasks.report.rows import Row, Rows

COLUMNS = ("task", "data", "scale", "items", "ELMo", "seed", "dev", "test", "status")
CHOICES = ("task", "data", "scale", "placement", "seed", "status")
DEPTH = 6  # levels of a configuration that get lines of their own


def run_list(rows: Rows) -> str:
    """Filters, a line for each row, and the files that were left out."""
    runs = sorted([*rows.finished, *rows.failed], key=lambda row: str(row["run_id"]))
    facts = [_facts(row) for row in runs]
    heading = "".join(f"<span>{name}</span>" for name in COLUMNS)
    left_out = "".join(f"<li>{escape(sentence)}</li>" for sentence in rows.left_out)
    return "\n".join(
        [
            _filters(facts),
            f'<p id="shown" role="status">{len(runs)} of {len(runs)} runs</p>',
            f'<div class="runs"><div class="line heading">{heading}</div>',
            *(_run(row, fact) for row, fact in zip(runs, facts, strict=True)),
            "</div>",
            f'<h3>Left out</h3>\n<ul class="left-out">{left_out}</ul>' if left_out else "",
        ]
    )


def _facts(row: Row) -> dict[str, str]:
    """The cells of a line, and what the filters choose by. A failed row may lack anything but its name."""
    config = row.get("config")
    known = {"task": row["task"], "seed": _plain(row.get("seed")), "scale": _plain(row.get("scale"))}
    if row["status"] == "failed":
        placement = _inside(config, "elmo", "placement")
        known |= {"data": _inside(config, "data", "name"), "placement": placement, "items": "", "ELMo": placement}
        return {**known, "dev": "", "test": "", "status": "failed"}
    _, known["data"], _, known["items"] = setting(row)
    has_elmo = row["elmo"] is not None
    known["placement"] = row["elmo"]["placement"] if has_elmo else "-"
    known["ELMo"] = plugged(row) + ensemble(row) if has_elmo else "-"
    if "ensemble" in row:
        known["seed"] = "all"
    for split in ("dev", "test"):
        scores = row["scores"].get(split)
        known[split] = "-" if scores is None else f"{scores[row['metric']]:.2f}"
    return {**known, "status": "finished"}


def _filters(facts: list[dict[str, str]]) -> str:
    parts = ['<label>text <input type="search" name="text" placeholder="name, commit, setting"></label>']
    for key in CHOICES:
        values = sorted({fact[key] for fact in facts}, key=lambda value: (len(value) if key == "seed" else 0, value))
        options = "".join(f'<option value="{escape(value)}">{escape(value)}</option>' for value in values if value)
        parts.append(f'<label>{key} <select name="{key}"><option value="">all</option>{options}</select></label>')
    return f'<form id="filters">{"".join(parts)}<button type="reset">show all</button></form>'


def _run(row: Row, facts: dict[str, str]) -> str:
    data = "".join(f' data-{key}="{escape(facts[key])}"' for key in CHOICES)
    cells = "".join(f"<span>{escape(facts[key])}</span>" for key in COLUMNS)
    return f'<details class="run"{data}><summary class="line">{cells}</summary>\n{_details(row)}</details>'


def _details(row: Row) -> str:
    shown = {"config", "curve", "scores", "elmo", "schema", "error"}
    facts = "\n".join(_lines({key: value for key, value in row.items() if key not in shown}))
    config = "\n".join(_lines(row.get("config")))
    error = f'<p class="error">{escape(_plain(row["error"]))}</p>' if "error" in row else ""
    parts = [f"<h3>{escape(row['run_id'])}</h3>{error}"]
    if row["status"] == "finished":
        parts += [html(_scores(row)), _curve(row)]
    parts.append(f"<pre>{escape(facts)}</pre>")
    parts.append(f"<details><summary>configuration</summary><pre>{escape(config)}</pre></details>")
    return "\n".join(parts)


def _scores(row: Row) -> Grid:
    names = sorted(
        {name for scores in row["scores"].values() for name in scores}, key=lambda n: (n != row["metric"], n)
    )
    lines = [[split, *(_cell(scores.get(name)) for name in names)] for split, scores in row["scores"].items()]
    return Grid("scores", ["split", *names], lines)


def _curve(row: Row) -> str:
    """The dev score by epoch: drawn, and as a table with the layer weights."""
    curve = row.get("curve", [])
    if not curve:
        return ""
    places = list(row["elmo"]["weights"]) if row["elmo"] is not None else []
    header = ["epoch", f"dev {row['metric']}", "training loss"]
    header += [f"{place} {name}" for place in places for name in ("s", "gamma")]
    lines = []
    for point in curve:
        cells = [str(point["epoch"]), _cell(point["dev"].get(row["metric"])), _cell(point.get("train_loss"))]
        for place in places:
            mix = point.get("elmo", {}).get(place)
            cells += [", ".join(f"{s:.3f}" for s in mix["s"]), f"{mix['gamma']:.3f}"] if mix else ["-", "-"]
        lines.append(cells)
    title = f"curve; the best epoch is {row['best_epoch']}"
    return _spark([point["dev"][row["metric"]] for point in curve]) + html(Grid(title, header, lines))


def _spark(values: list[float]) -> str:
    """A line through the values, 300 by 60, lowest at the bottom."""
    low, high = min(values), max(values)
    height = (high - low) or 1.0
    step = 292 / max(1, len(values) - 1)
    points = " ".join(f"{4 + i * step:.1f},{56 - 52 * (v - low) / height:.1f}" for i, v in enumerate(values))
    label = f"dev score by epoch, from {low:.2f} to {high:.2f}"
    return (
        f'<svg class="spark" viewBox="0 0 300 60" width="300" height="60" role="img" aria-label="{label}">'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/></svg>'
    )


def _lines(value: Any, name: str = "", depth: int = 0) -> Iterator[str]:
    """``a.b = value`` for everything in a nested mapping."""
    if isinstance(value, dict) and value and depth < DEPTH:
        for key, inner in value.items():
            yield from _lines(inner, f"{name}.{key}" if name else str(key), depth + 1)
    elif name:
        yield f"{name} = {_plain(value)}"


def _inside(value: Any, *keys: str) -> str:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return _plain(value)


def _plain(value: Any) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cell(value: Any) -> str:
    if not isinstance(value, (int, float)):
        return "-"
    return f"{value:.4g}" if abs(value) < 1 else f"{value:,.2f}"
