"""Verdicts on the paper's claims, from rows alone."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace

from elmo_tasks.render.sections import Section
from elmo_tasks.rows.schema import Row
from elmo_tasks.tables.collect import Cell, Choice, Selection, named_tasks
from elmo_tasks.tables.compare import FEWEST, Comparison, compare, corrected, incomparable
from elmo_tasks.tables.declare import BestEpoch, Claims, Difference, Part, PassingEpoch, Quantity, Score
from elmo_tasks.tables.epochs_to_pass import best_point, results_by_seed
from elmo_tasks.tables.texts import EvaluatedTable, holm_note, make_grid, marks_text

REPRODUCED, NOT_REPRODUCED, NOT_ENOUGH = "reproduced", "not reproduced", "not enough data"
NOT_TRAINED = "not enough training"
NO_VERDICT = "shown, not judged"
LEVEL = 0.05
"""A difference counts if its two-sided p, corrected for the number of comparisons, is below this."""


@dataclass(frozen=True)
class Evidence:
    """What the rows say of a part of a claim.

    Args:
        part: of the claim.
        high: the first quantity, by seed.
        low: the second one.
        cells: that they are computed from.
        comparison: of the two quantities, seed by seed.
    """

    part: Part
    high: dict[int, float]
    low: dict[int, float]
    cells: tuple[Cell, ...]
    comparison: Comparison


def gather_evidence(part: Part, selection: Selection, seeds: int) -> Evidence:
    """Compare the two sides of an inequality.

    Args:
        part: of the claim.
        selection: the rows, and the choices of the command line, which may ask for fewer seeds.
        seeds: the declared number.
    """
    high, cells_high = _values(part.high, selection, seeds)
    low, cells_low = _values(part.low, selection, seeds)
    cells = cells_high + cells_low
    why = incomparable(*cells)
    return Evidence(part, high, low, cells, Comparison(None, why=why) if why else compare(high, low))


def correct(found: list[Evidence]) -> list[Evidence]:
    """The evidence with all p corrected for their number."""
    comparisons = corrected([evidence.comparison for evidence in found])
    return [replace(evidence, comparison=one) for evidence, one in zip(found, comparisons, strict=True)]


def verdict(evidence: Evidence, enough: int) -> str:
    """Whether a part of a claim is reproduced.

    With a corrected p below 5 %, a difference in the direction of the claim reproduces it, and one in the other
    direction does not. A difference that is not significant does not reproduce it either if there are ``enough``
    seeds; with fewer there is not enough data. Where all seeds show exactly the same difference, such as three epochs,
    there is nothing to test, and with ``enough`` seeds the direction decides. It also does where nothing is trained, so
    that one run is all there is. Runs that had not converged decide nothing.
    """
    if not any(cell.wanted.trains for cell in evidence.cells):
        enough = 1
    decided = _decide(evidence.comparison, enough)
    if decided != NOT_ENOUGH and any(cell.setting.rising for cell in evidence.cells):
        return NOT_TRAINED
    return decided


def _decide(comparison: Comparison, enough: int) -> str:
    complete = min(comparison.n) >= enough
    if comparison.difference is None or (min(comparison.n) < FEWEST and enough > 1):
        return NOT_ENOUGH
    if complete if comparison.adjusted is None else comparison.adjusted < LEVEL:
        return REPRODUCED if comparison.difference > 0 else NOT_REPRODUCED
    return NOT_REPRODUCED if complete else NOT_ENOUGH


def overall_verdict(verdicts: list[str]) -> str:
    """The verdict of a claim: reproduced if all its parts are, not reproduced if any part is not."""
    for one in (NOT_REPRODUCED, NOT_TRAINED, NOT_ENOUGH):
        if one in verdicts:
            return one
    return REPRODUCED if verdicts else NOT_ENOUGH


def _values(quantity: Quantity, selection: Selection, seeds: int) -> tuple[dict[int, float], tuple[Cell, ...]]:
    """A quantity by seed, and the cells that it comes from."""

    def cell_for(score: Score) -> Cell:
        return selection.find(score.overrides, split=score.split, seeds=seeds)

    if isinstance(quantity, Score):
        cell = cell_for(quantity)
        return cell.values, (cell,)
    if isinstance(quantity, Difference):
        one, other = cell_for(quantity.of), cell_for(quantity.over)
        shared = one.values.keys() & other.values.keys()
        return {seed: one.values[seed] - other.values[seed] for seed in shared}, (one, other)
    if isinstance(quantity, BestEpoch):
        cell = cell_for(quantity.of)
        return {seed: float(best_point(row).epoch) for seed, row in cell.rows.items() if row.curve}, (cell,)
    assert isinstance(quantity, PassingEpoch)
    elmo, baseline = cell_for(quantity.of), cell_for(quantity.best_of)
    epochs = {
        seed: float(result.passed.epoch if result.passed else _epoch_of_none(result.best.epoch, elmo.rows[seed]))
        for seed, result in results_by_seed(baseline, elmo).items()
    }
    return epochs, (elmo, baseline)


def _epoch_of_none(best_epoch: int, elmo: Row) -> int:
    """The passing epoch that counts for a run that never passed the baseline's best score.

    It is after the run's last epoch and after the epoch of that score, so that it speaks against the claim however
    early the run ended.
    """
    return max(elmo.curve[-1].epoch, best_epoch) + 1


def evaluate_claims(claims: Claims, selection: Selection) -> EvaluatedTable:
    """Cells of a list of claims, and its table with evidence and verdicts.

    ``tasks=`` chooses the parts that are shown and run. All parts are judged and corrected for, so that a verdict does
    not depend on what is shown.
    """
    parts = [(n, part) for n, claim in enumerate(claims.claims) for part in claim.parts]
    judged = correct([gather_evidence(part, selection, claims.seeds) for _, part in parts])
    lines, cells = [], list[Cell]()
    for n, claim in enumerate(claims.claims):
        found = [evidence for (claim_index, _), evidence in zip(parts, judged, strict=True) if claim_index == n]
        not_judged = [gather_evidence(part, selection, claims.seeds) for part in claim.not_judged]
        shown = [one for one in (*found, *not_judged) if _chosen(one.part, selection.choice)]
        cells += [cell for evidence in shown for cell in evidence.cells]
        if shown:
            lines += _claim_lines(n + 1, claim.says, found, not_judged, claims.seeds, selection.choice)
    first = [
        f"a difference counts if its corrected p < {LEVEL:g}; without one a claim is not reproduced once there are "
        f"{claims.seeds} seeds, which does not show that there is no difference",
        holm_note([evidence.comparison for evidence in judged]),
    ]
    if selection.choice.tasks:
        first.append("a claim's verdict is that of all its parts; those of other tasks are not shown")
    header = ["", "the paper", "ours", "verdict"]
    return EvaluatedTable(cells, Section(make_grid(selection, claims, cells, header, lines, first=first)))


def _claim_lines(
    number: int, says: str, found: list[Evidence], not_judged: list[Evidence], seeds: int, choice: Choice
) -> list[list[str]]:
    """The claim with its verdict, and below it the chosen ones of its parts where there is more than one."""
    verdicts = [verdict(evidence, seeds) for evidence in found]
    decided = overall_verdict(verdicts)
    if len(found) == 1 and not not_judged:
        return [[str(number), says, _text(found[0]), decided]]
    uncorrected = [replace(one, comparison=replace(one.comparison, adjusted=None)) for one in not_judged]
    parts = [*zip(found, verdicts, strict=True), *((one, NO_VERDICT) for one in uncorrected)]
    shown = [["", one.part.label, _text(one), of_part] for one, of_part in parts if _chosen(one.part, choice)]
    return [[str(number), says, "", decided], *shown]


def _chosen(part: Part, choice: Choice) -> bool:
    sides = [part.high, part.low]
    scores = [x for side in sides for x in (side, *vars(side).values()) if isinstance(x, Score)]
    return not choice.tasks or any(choice.tasks & {*named_tasks(score.overrides)} for score in scores)


def _text(evidence: Evidence) -> str:
    sides = [
        f"{statistics.fmean(x.values()):.2f} ({len(x)})" if x else "missing" for x in (evidence.high, evidence.low)
    ]
    found = "" if evidence.comparison.why == "missing" else f": {evidence.comparison}"
    return f"{' against '.join(sides)}{marks_text(*evidence.cells)}{found}"
