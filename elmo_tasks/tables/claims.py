"""Verdicts on the paper's claims, from rows alone."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from elmo_tasks.report.grid import Grid
from elmo_tasks.tables.cells import Cell
from elmo_tasks.tables.curves import scores_of
from elmo_tasks.tables.declare import BestEpoch, Claims, Difference, Part, PassingEpoch, Quantity, Score
from elmo_tasks.tables.measure import Choice, find, incomparable
from elmo_tasks.tables.race import heats
from elmo_tasks.tables.render import legend, setting_note
from elmo_tasks.tables.rows import Rows
from elmo_tasks.tables.significance import FEWEST, Comparison, compare

REPRODUCED, NOT_REPRODUCED, NOT_ENOUGH = "reproduced", "not reproduced", "not enough data"
NO_VERDICT = "shown, not judged"
LEVEL = 0.05
"""A difference counts if its two-sided p is below this."""


@dataclass(frozen=True)
class Evidence:
    """What the rows say of a part of a claim.

    Args:
        part: of the claim.
        high: the first quantity, by seed.
        low: the second one.
        cells: that they are computed from.
        comparison: of the two quantities, seed by seed.
        verdict: one of the three.
    """

    part: Part
    high: dict[int, float]
    low: dict[int, float]
    cells: tuple[Cell, ...]
    comparison: Comparison
    verdict: str


def judge(part: Part, rows: Rows, choice: Choice, enough: int) -> Evidence:
    """Compare the two sides of an inequality.

    A difference with the claim's sign and p below 5 % reproduces it, one with the other sign does not. A difference
    that is not beyond the seeds' spread does not either, if there are ``enough`` seeds; with fewer there is not enough
    data. Where all seeds show the very same difference, such as three epochs, nothing can be tested, and with
    ``enough`` of them the sign decides; so it does where nothing is trained and one run is all there is.

    Args:
        part: of the claim.
        rows: that the evidence is taken from.
        choice: of the command line, which may look at fewer seeds but not make them enough.
        enough: the declared number of seeds.
    """
    high, of_high = _values(part.high, rows, choice, enough)
    low, of_low = _values(part.low, rows, choice, enough)
    cells = of_high + of_low
    why = incomparable(*cells)
    comparison = Comparison(None, why=why) if why else compare(high, low)
    if not any(cell.setting.trains for cell in cells):
        enough = 1
    return Evidence(part, high, low, cells, comparison, _verdict(comparison, enough))


def _verdict(comparison: Comparison, enough: int) -> str:
    complete = min(comparison.n) >= enough
    if comparison.difference is None or (min(comparison.n) < FEWEST and enough > 1):
        return NOT_ENOUGH
    if complete if comparison.p is None else comparison.p < LEVEL:
        return REPRODUCED if comparison.difference > 0 else NOT_REPRODUCED
    return NOT_REPRODUCED if complete else NOT_ENOUGH


def together(verdicts: list[str]) -> str:
    """A claim falls with any part that is not reproduced, and stands if all are."""
    if NOT_REPRODUCED in verdicts:
        return NOT_REPRODUCED
    return NOT_ENOUGH if not verdicts or NOT_ENOUGH in verdicts else REPRODUCED


def _values(quantity: Quantity, rows: Rows, choice: Choice, seeds: int) -> tuple[dict[int, float], tuple[Cell, ...]]:
    """A quantity by seed, and the cells that it comes from."""

    def cell_of(score: Score) -> Cell:
        return find(rows, choice, score.overrides, split=score.split, seeds=seeds)

    if isinstance(quantity, Score):
        cell = cell_of(quantity)
        return cell.values, (cell,)
    if isinstance(quantity, Difference):
        of, over = cell_of(quantity.of), cell_of(quantity.over)
        return {seed: of.values[seed] - over.values[seed] for seed in of.values.keys() & over.values.keys()}, (of, over)
    if isinstance(quantity, BestEpoch):
        cell = cell_of(quantity.of)
        curves = {seed: points for seed, row in cell.rows.items() if (points := scores_of(row))}
        return {seed: max(points, key=lambda p: p.score).epoch for seed, points in curves.items()}, (cell,)
    assert isinstance(quantity, PassingEpoch)
    elmo, baseline = cell_of(quantity.of), cell_of(quantity.best_of)
    passed = {
        seed: heat.passed.epoch if heat.passed else scores_of(elmo.rows[seed])[-1].epoch + 1  # at the earliest
        for seed, heat in heats(baseline, elmo).items()
    }
    return {seed: float(epoch) for seed, epoch in passed.items()}, (elmo, baseline)


def fill_claims(claims: Claims, rows: Rows, choice: Choice) -> tuple[list[Cell], Grid]:
    """Cells of a list of claims, and its table with evidence and verdicts."""
    lines, cells = [], list[Cell]()
    for n, claim in enumerate(claims.claims, start=1):
        found, beside = (
            [judge(part, rows, choice, claims.seeds) for part in parts if _chosen(part, choice)]
            for parts in (claim.parts, claim.beside)
        )
        if not found and not beside:
            continue  # of another task than those that were chosen
        cells += [cell for evidence in found + beside for cell in evidence.cells]
        verdict = together([evidence.verdict for evidence in found])
        alone = len(found) == 1 and not beside
        ours = _text(found[0]) if alone else ""
        lines.append([str(n), claim.says, ours, verdict])
        lines += [["", evidence.part.label, _text(evidence), evidence.verdict] for evidence in found if not alone]
        lines += [["", evidence.part.label, _text(evidence), NO_VERDICT] for evidence in beside]
    notes = [
        setting_note(cells),
        f"a difference counts if p < {LEVEL:g} (not corrected for their number), its absence with {claims.seeds} seeds",
    ]
    notes += [*claims.notes, *legend(cells), *rows.notes()]
    return cells, Grid(claims.title, ["", "the paper", "ours", "verdict"], lines, notes)


def _chosen(part: Part, choice: Choice) -> bool:
    return not choice.tasks or any(
        f"task={task}" in overrides for overrides in _overrides(part) for task in choice.tasks
    )


def _overrides(part: Part) -> list[tuple[str, ...]]:
    scores: list[Score] = []
    for side in (part.high, part.low):
        scores += [side] if isinstance(side, Score) else [x for x in vars(side).values() if isinstance(x, Score)]
    return [score.overrides for score in scores]


def _text(evidence: Evidence) -> str:
    sides = [
        f"{statistics.fmean(x.values()):.2f} ({len(x)})" if x else "missing" for x in (evidence.high, evidence.low)
    ]
    marks = "".join(sorted({mark for cell in evidence.cells for mark in cell.marks}))
    found = "" if evidence.comparison.why == "missing" else f": {evidence.comparison}"
    return f"{' against '.join(sides)}{f' [{marks}]' if marks else ''}{found}"
