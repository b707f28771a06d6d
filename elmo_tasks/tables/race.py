"""Epochs until one setting passes another's best dev score."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from elmo_tasks.report.grid import Grid
from elmo_tasks.report.series import Panel
from elmo_tasks.tables.cells import Cell
from elmo_tasks.tables.curves import Scored, scores_of, training_panels
from elmo_tasks.tables.declare import Column, Line, Race
from elmo_tasks.tables.measure import Choice, find, paper_value, same_data, shown
from elmo_tasks.tables.render import legend, setting_note
from elmo_tasks.tables.rows import Rows

AT_THE_END = "last epoch"
_AT_THE_END = (
    "so many seeds of the baseline are best in the last epoch that they were trained and might rise on, "
    "so that to pass them early says little more than that ELMo's curve is higher"
)


@dataclass(frozen=True)
class Heat:
    """One seed's race.

    Args:
        best: of the baseline.
        passed: the first point of the other setting that is above it; None if there was none.
        at_the_end: whether the best epoch is the last one that was trained, so that more epochs may be better still.
    """

    best: Scored
    passed: Scored | None
    at_the_end: bool = False


def heats(baseline: Cell, elmo: Cell) -> dict[int, Heat]:
    """The race of each seed that both settings have, on the same data."""
    found = {}
    for seed in baseline.rows.keys() & elmo.rows.keys() if same_data(baseline, elmo) else ():
        before, after = scores_of(baseline.rows[seed]), scores_of(elmo.rows[seed])
        if before and after:
            best = max(before, key=lambda point: point.score)  # the first of equal ones
            passed = next((point for point in after if point.score > best.score), None)
            found[seed] = Heat(best, passed, at_the_end=best is before[-1])
    return dict(sorted(found.items()))


def fill_race(race: Race, rows: Rows, choice: Choice) -> tuple[list[Cell], Grid, list[Panel]]:
    """Cells, table and training curves of a race."""
    header = ["", "epoch of the best dev score", "epoch at which ELMo passes it", "fewer updates", "seeds"]
    lines, cells, panels = [], list[Cell](), list[Panel]()
    for line in shown(race.lines, choice):
        baseline, elmo = (_cell(race, line, column, rows, choice) for column in (race.baseline, race.elmo))
        cells += [baseline, elmo]
        panels += training_panels(line.label, {race.baseline.label: baseline, race.elmo.label: elmo})
        best, *others, seeds = _texts(race, line, of_seeds := heats(baseline, elmo))
        at_the_end = sum(heat.at_the_end for heat in of_seeds.values())
        marks = "".join(sorted({*baseline.marks, *elmo.marks}))
        best += f" [{AT_THE_END}: {at_the_end} of {len(of_seeds)}]" if at_the_end else ""
        lines.append([line.label, best, *others, seeds + (f" [{marks}]" if marks else "")])
    ends = [f"{AT_THE_END}: {_AT_THE_END}"] if any(f"[{AT_THE_END}:" in line[1] for line in lines) else []
    notes = [setting_note(cells), *race.notes, *ends, *legend(cells), *rows.notes()]
    return cells, Grid(race.title, header, lines, notes), panels


def _cell(race: Race, line: Line, column: Column, rows: Rows, choice: Choice) -> Cell:
    return find(rows, choice, (*line.overrides, *column.overrides), split="dev", seeds=race.seeds)


def _texts(race: Race, line: Line, of_seeds: Mapping[int, Heat]) -> list[str]:
    runs = list(of_seeds.values())
    passed = [(heat.best, heat.passed) for heat in runs if heat.passed is not None]
    numbers = [
        ("epoch_of_best_dev_without_elmo", [float(heat.best.epoch) for heat in runs], ""),
        ("epoch_at_which_elmo_passes_it", [float(point.epoch) for _, point in passed], ""),
        ("saving_in_updates_percent", [100 * (1 - point.step / best.step) for best, point in passed], " %"),
    ]
    texts = []
    for key, values, unit in numbers:
        paper = paper_value(race.paper, line, key)
        mean = f"{statistics.fmean(values):.1f}" if values else "missing" if not runs else "never"
        spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
        texts.append(f"{mean}{spread}{unit if values else ''}" + (f"; paper {paper}{unit}" if paper else ""))
    return [*texts, f"{len(passed)} of {len(runs)} passed" if runs else "0"]
