"""What fine-tuning a biLM on a task's text brings: perplexity on dev text before and after, and the task's score."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from elmo_tasks.render.sections import Section
from elmo_tasks.rows.schema import LanguageModelRow
from elmo_tasks.tables.collect import Cell, Selection, find_cell, named_tasks, paper_value
from elmo_tasks.tables.compare import Comparison, compare_cells
from elmo_tasks.tables.declare import FineTuning, Line
from elmo_tasks.tables.texts import (
    EvaluatedTable,
    cell_text,
    comparison_notes,
    make_grid,
    marks_text,
    missing_text,
    paper_text,
)
from elmo_tasks.tables.wanted import override

HEADER = ["", "perplexity before", "perplexity after", "score before", "score after", "increase"]


def evaluate_finetuning(declared: FineTuning, selection: Selection) -> EvaluatedTable:
    """Cells and table of a fine-tuning.

    A task's runs with the fine-tuned biLM name its folder, so that they can be planned once it has been trained and
    its files are there.
    """
    lines, cells, tests, earlier = [], list[Cell](), dict[str, Comparison](), list[str]()
    for line in selection.shown(declared.lines):
        (task,) = named_tasks(line.overrides)
        overrides = ("task=lm", f"task.lm.text={task}", f"task.lm.init={declared.start}")
        lm = find_cell(selection.rows, selection.want(overrides), split="dev", seeds=(1,))
        before = selection.find(line.overrides, split="dev", seeds=declared.seeds)
        after = _after(line, task, _tuned(lm), selection, declared.seeds)
        if after is not None and after.missing and not Path(after.wanted.config["bilm"]["path"]).is_dir():
            lm = replace(lm, needs_weights=True)
        asked = [] if after is None or lm.needs_weights else [after]
        cells += [lm, before, *asked]
        lines.append([line.label, *_perplexities(declared, line, lm), *_scores(before, after)])
        tests[f"{line.label}, after against before"] = _comparison(before, after)
        if lm.has_earlier_weights:
            earlier.append(line.label)
    first = [
        "perplexity of the biLM (mean of forward and backward) on the development text, one seed",
        "score of the task on its development set, mean ± standard deviation over seeds (how many)",
    ]
    if earlier:
        first.append(f"perplexities of an earlier version of the bundled {declared.start}: {', '.join(earlier)}")
    last = comparison_notes(tests)
    return EvaluatedTable(cells, Section(make_grid(selection, declared, cells, HEADER, lines, first=first, last=last)))


def _tuned(lm: Cell) -> LanguageModelRow | None:
    """The row of the fine-tuned biLM, if there is one."""
    return next((row for row in lm.setting.rows if isinstance(row, LanguageModelRow)), None)


def _after(line: Line, task: str, tuned: LanguageModelRow | None, selection: Selection, seeds: int) -> Cell | None:
    """The task's runs with the biLM that a run exported."""
    if tuned is None:
        return None
    exported = tuned.language_model.exported
    overrides = (f"bilm.name={tuned.config['bilm']['name']}_{task}", override("bilm.path", exported.folder))
    return selection.find((*line.overrides, *overrides), split="dev", seeds=seeds, bilm=exported.digest)


def _perplexities(declared: FineTuning, line: Line, lm: Cell) -> list[str]:
    papers = [paper_value(declared.paper, line, key) for key in ("before", "after")]
    if (row := _tuned(lm)) is None:
        return [f"{missing_text(lm)}{paper_text(None, paper)}" for paper in papers]
    before = row.language_model.before
    found = ["-" if before is None else f"{before[row.metric.name]:.1f}", f"{row.score:.1f}"]
    marks = marks_text(lm)
    # without the difference to the paper: perplexities of two vocabularies cannot be compared
    return [f"{ours}{marks}{paper_text(None, paper)}" for ours, paper in zip(found, papers, strict=True)]


def _scores(before: Cell, after: Cell | None) -> list[str]:
    if after is None:
        return [cell_text(before), "missing", "missing"]
    found = _comparison(before, after)
    increase = "missing" if found.difference is None else f"{found.difference:+.2f}{found.seeds}"
    return [cell_text(before), cell_text(after), increase]


def _comparison(before: Cell, after: Cell | None) -> Comparison:
    """What fine-tuning brings: the biLM's weights are what differs."""
    return Comparison(None, why="missing") if after is None else compare_cells(after, before, other_bilm=True)
