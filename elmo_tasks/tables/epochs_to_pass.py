"""Epochs until one setting passes another's best dev score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from elmo_tasks.render.sections import Section
from elmo_tasks.render.series import Panel
from elmo_tasks.rows.parts import CurvePoint
from elmo_tasks.rows.schema import Row
from elmo_tasks.rows.settings import mean_text
from elmo_tasks.tables.collect import Cell, Selection, paper_value
from elmo_tasks.tables.compare import incomparable
from elmo_tasks.tables.curves import training_panels
from elmo_tasks.tables.declare import EpochsToPass, Line
from elmo_tasks.tables.texts import EvaluatedTable, make_grid, marks_text


@dataclass(frozen=True)
class SeedResult:
    """The result of one seed: the baseline's best dev score, and the first higher one of the other setting, if any."""

    best: CurvePoint
    passed: CurvePoint | None


def results_by_seed(baseline: Cell, elmo: Cell) -> dict[int, SeedResult]:
    """The result of each seed that both settings have; none if they must not be compared."""
    found = {}
    for seed in baseline.rows.keys() & elmo.rows.keys() if not incomparable(baseline, elmo) else ():
        before, after = baseline.rows[seed], elmo.rows[seed]
        if before.curve and after.curve:
            best = best_point(before)
            name, sign = before.metric.name, _direction(before)
            passed = next((p for p in after.curve if sign * p.dev[name] > sign * best.dev[name]), None)
            found[seed] = SeedResult(best, passed)
    return dict(sorted(found.items()))


def best_point(row: Row) -> CurvePoint:
    """The best dev scoring of a run; the first of equal ones."""
    return max(row.curve, key=lambda point: _direction(row) * point.dev[row.metric.name])


def _direction(row: Row) -> int:
    return 1 if row.metric.higher_is_better else -1


def evaluate_epochs(declared: EpochsToPass, selection: Selection) -> EvaluatedTable:
    """Cells, table and training curves of an :class:`EpochsToPass`."""
    header = ["", "epoch of the best dev score", "epoch at which ELMo passes it", "fewer updates", "seeds"]
    lines, cells, panels = [], list[Cell](), list[Panel]()
    for line in selection.shown(declared.lines):
        baseline, elmo = (
            selection.find((*line.overrides, *column.overrides), split="dev", seeds=declared.seeds)
            for column in (declared.baseline, declared.elmo)
        )
        cells += [baseline, elmo]
        panels += training_panels(line.label, {declared.baseline.label: baseline, declared.elmo.label: elmo})
        *texts, seeds = _texts(declared, line, results_by_seed(baseline, elmo))
        lines.append([line.label, *texts, seeds + marks_text(baseline, elmo)])
    return EvaluatedTable(cells, Section(make_grid(selection, declared, cells, header, lines), tuple(panels), "epoch"))


def _texts(declared: EpochsToPass, line: Line, by_seed: Mapping[int, SeedResult]) -> list[str]:
    runs = list(by_seed.values())
    passed = [(result.best, result.passed) for result in runs if result.passed is not None]
    numbers = [
        ("epoch_of_best_dev_without_elmo", [float(result.best.epoch) for result in runs], ""),
        ("epoch_at_which_elmo_passes_it", [float(point.epoch) for _, point in passed], ""),
        ("saving_in_updates_percent", [100 * (1 - p.step / best.step) for best, p in passed if best.step], " %"),
    ]
    texts = []
    for key, values, unit in numbers:
        paper = paper_value(declared.paper, line, key)
        none = "missing" if not runs else "-" if passed else "never"
        text = f"{mean_text(values, 1)}{unit}" if values else none
        texts.append(text + (f"; paper {paper}{unit}" if paper else ""))
    return [*texts, f"{len(passed)} of {len(runs)} passed" if runs else "0"]
