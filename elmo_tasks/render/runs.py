"""The list of runs on the page: a line for each, which opens to show its details."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from elmo_tasks.render.grid import Grid, html
from elmo_tasks.rows import describe
from elmo_tasks.rows.collection import Rows
from elmo_tasks.rows.io import AnyRow, to_json
from elmo_tasks.rows.schema import Row
from elmo_tasks.rows.settings import flat, still_rising

COLUMNS = ("task", "data", "scale", "items", "ELMo", "seed", "dev", "test", "status")
CHOICES = (*describe.TAGS, "seed", "status")


def filters(rows: Rows) -> str:
    """The form of the filters, which apply to tables, figures and runs."""
    facts = [_facts(row) for row in rows.all]
    parts = ['<label>text <input type="search" name="text" placeholder="name, commit, key=value"></label>']
    for key in CHOICES:
        values = sorted({fact[key] for fact in facts}, key=lambda value: (len(value) if key == "seed" else 0, value))
        options = "".join(f'<option value="{escape(value)}">{escape(value)}</option>' for value in values if value)
        parts.append(f'<label>{key} <select name="{key}"><option value="">all</option>{options}</select></label>')
    return f'<form id="filters">{"".join(parts)}<button type="reset">show all</button></form>'


def run_list(rows: Rows) -> str:
    """A line for each row, and the files that were left out."""
    heading = "".join(f"<span>{name}</span>" for name in COLUMNS)
    left_out = "".join(f"<li>{escape(sentence)}</li>" for sentence in rows.left_out)
    return "\n".join(
        [
            f'<p id="shown" role="status">{len(rows.all)} of {len(rows.all)} runs</p>',
            f'<div class="runs"><div class="line heading">{heading}</div>',
            *map(_run, rows.all),
            "</div>",
            f'<h3>Left out</h3>\n<ul class="left-out">{left_out}</ul>' if left_out else "",
        ]
    )


def _facts(row: AnyRow) -> dict[str, str]:
    """The cells of a line, and what the filters choose by."""
    facts = describe.tags(row) | {"seed": _plain(row.seed), "status": row.status}
    if not isinstance(row, Row):
        return facts | {"items": "", "ELMo": facts["placement"], "dev": "", "test": ""}
    facts |= {"items": describe.items(row), "ELMo": describe.elmo(row)}
    if row.members:
        facts["seed"] = "all"
    if still_rising([row]):
        facts["status"] = "still rising"
    for split in ("dev", "test"):
        scores = row.scores.get(split)
        facts[split] = "-" if scores is None else f"{scores[row.metric.name]:.2f}"
    return facts


def _run(row: AnyRow) -> str:
    facts = _facts(row)
    data = "".join(f' data-{key}="{escape(facts[key])}"' for key in CHOICES)
    cells = "".join(f"<span>{escape(facts[key])}</span>" for key in COLUMNS)
    return f'<details class="run"{data}><summary class="line">{cells}</summary>\n{_details(row)}</details>'


def _details(row: AnyRow) -> str:
    content = to_json(row)
    shown = {"config", "training", "scores", "elmo", "schema", "error", "metric"}
    facts = _lines({key: value for key, value in content.items() if key not in shown and value is not None})
    config = _lines(content["config"])
    parts = [f"<h3>{escape(row.run_id)}</h3>"]
    if isinstance(row, Row):
        parts += [html(_scores(row)), _curve(row)]
    else:
        parts.append(f'<p class="error">{escape(row.error)}</p>')
    parts.append(f"<pre>{escape(facts)}</pre>")
    parts.append(f"<details><summary>configuration</summary><pre>{escape(config)}</pre></details>")
    return "\n".join(parts)


def _scores(row: Row) -> Grid:
    others = {name for scores in row.scores.values() for name in scores} - {*row.metric.reported}
    names = [*row.metric.reported, *sorted(others)]
    lines = [[split, *(_cell(scores.get(name)) for name in names)] for split, scores in row.scores.items()]
    return Grid("scores", ["split", *names], lines)


def _curve(row: Row) -> str:
    """The dev score by epoch: drawn, and as a table with the layer weights."""
    training = row.training
    if training is None or not row.curve:
        return ""
    name = row.metric.name
    places = list(row.elmo.weights) if row.elmo is not None else []
    header = ["epoch", f"dev {name}", "training loss", *(f"{place} {x}" for place in places for x in ("s", "gamma"))]
    lines = []
    for point in row.curve:
        cells = [str(point.epoch), _cell(point.dev[name]), _cell(point.train_loss)]
        for place in places:
            mix = point.elmo.get(place)
            cells += [", ".join(f"{s:.3f}" for s in mix.s), f"{mix.gamma:.3f}"] if mix else ["-", "-"]
        lines.append(cells)
    title = f"curve; the best epoch is {training.best_epoch}, ended by {training.ended}"
    return _spark([point.dev[name] for point in row.curve]) + html(Grid(title, header, lines))


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


def _lines(content: dict[str, Any]) -> str:
    """A line ``a.b = value`` for everything in a nested mapping."""
    return "\n".join(f"{key} = {_plain(value)}" for key, value in flat(content).items())


def _plain(value: Any) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cell(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if abs(value) < 1 else f"{value:,.2f}"
