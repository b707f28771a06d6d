"""Epochs until one setting passes another's best dev score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from elmo_tasks.render.sections import Section
from elmo_tasks.render.series import Panel
from elmo_tasks.rows.grouping import mean_text
from elmo_tasks.rows.parts import CurvePoint
from elmo_tasks.rows.schema import Row
from elmo_tasks.tables.cells import Cell
from elmo_tasks.tables.curves import training_panels
from elmo_tasks.tables.declare import Line, Race
from elmo_tasks.tables.measure import FilledTable, Selection, paper_value, same_data
from elmo_tasks.tables.texts import make_grid, marks_text


@dataclass(frozen=True)
class Heat:
    """The race of one seed: the baseline's best dev score, and the first higher one of the other setting, if any."""

    best: CurvePoint
    passed: CurvePoint | None


def heats(baseline: Cell, elmo: Cell) -> dict[int, Heat]:
    """The race of each seed that both settings have, on the same data."""
    found = {}
    for seed in baseline.rows.keys() & elmo.rows.keys() if same_data(baseline, elmo) else ():
        before, after = baseline.rows[seed], elmo.rows[seed]
        if before.curve and after.curve:
            best = best_point(before)
            name = before.metric.name
            passed = next((point for point in after.curve if point.dev[name] > best.dev[name]), None)
            found[seed] = Heat(best, passed)
    return dict(sorted(found.items()))


def best_point(row: Row) -> CurvePoint:
    """The best dev scoring of a run; the first of equal ones."""
    direction = 1 if row.metric.higher_is_better else -1
    return max(row.curve, key=lambda point: direction * point.dev[row.metric.name])


def fill_race(race: Race, selection: Selection) -> FilledTable:
    """Cells, table and training curves of a race."""
    header = ["", "epoch of the best dev score", "epoch at which ELMo passes it", "fewer updates", "seeds"]
    lines, cells, panels = [], list[Cell](), list[Panel]()
    for line in selection.shown(race.lines):
        baseline, elmo = (
            selection.find((*line.overrides, *column.overrides), split="dev", seeds=race.seeds)
            for column in (race.baseline, race.elmo)
        )
        cells += [baseline, elmo]
        panels += training_panels(line.label, {race.baseline.label: baseline, race.elmo.label: elmo})
        *texts, seeds = _texts(race, line, heats(baseline, elmo))
        lines.append([line.label, *texts, seeds + marks_text(baseline, elmo)])
    return FilledTable(cells, Section(make_grid(selection, race, cells, header, lines), tuple(panels), "epoch"))


def _texts(race: Race, line: Line, heats_by_seed: Mapping[int, Heat]) -> list[str]:
    runs = list(heats_by_seed.values())
    passed = [(heat.best, heat.passed) for heat in runs if heat.passed is not None]
    numbers = [
        ("epoch_of_best_dev_without_elmo", [float(heat.best.epoch) for heat in runs], ""),
        ("epoch_at_which_elmo_passes_it", [float(point.epoch) for _, point in passed], ""),
        ("saving_in_updates_percent", [100 * (1 - point.step / best.step) for best, point in passed], " %"),
    ]
    texts = []
    for key, values, unit in numbers:
        paper = paper_value(race.paper, line, key)
        text = f"{mean_text(values, 1)}{unit}" if values else "missing" if not runs else "never"
        texts.append(text + (f"; paper {paper}{unit}" if paper else ""))
    return [*texts, f"{len(passed)} of {len(runs)} passed" if runs else "0"]
