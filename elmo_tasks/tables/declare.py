"""Declarations of the paper's tables and figures: they name settings of the configuration, and hold no numbers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from elmo_tasks.rows.fields import Split


@dataclass(frozen=True)
class Line:
    """A line of a table: a setting, to which each column adds its own values.

    Args:
        label: as printed.
        overrides: of the configuration, such as ``("task=snli",)``.
        paper: this line's section within the table's section of ``paper.yaml``.
        split: of this line, where it differs from the table's.
        members: seeds of an ensemble, for a column of ensembles.
        x: the place on the horizontal axis, where lines make a curve.
        curve: the name of that curve.
    """

    label: str
    overrides: tuple[str, ...]
    paper: str = ""
    split: Split | None = None
    members: int = 0
    x: float | None = None
    curve: str = ""


@dataclass(frozen=True)
class Column:
    """A column of scores: one setting of each line.

    Args:
        label: as printed.
        overrides: what is set beside the line's own.
        paper: key of the value in the line's section of ``paper.yaml``.
        ensemble: the score of the averaged members instead of the mean of their scores.
    """

    label: str
    overrides: tuple[str, ...] = ()
    paper: str = ""
    ensemble: bool = False


@dataclass(frozen=True)
class Gain:
    """A column of differences between two columns of scores; its notes say how sure they are.

    Args:
        label: as printed.
        of: label of the column that is to be better.
        over: label of the column that it is compared with.
        relative: the reduction of the error (100 minus the score) in percent, instead of points.
        paper: as in :class:`Column`.
    """

    label: str
    of: str
    over: str
    relative: bool = False
    paper: str = ""


@dataclass(frozen=True)
class Quote:
    """A column of the paper's values alone."""

    label: str
    paper: str


@dataclass(frozen=True)
class Declared:
    """What all tables and figures declare.

    Args:
        title: printed above it.
        lines: see :class:`Line`.
        paper: its section in ``paper.yaml``; empty where the paper prints no such numbers.
        seeds: how many seeds each setting has: 1, 2, ...
        notes: printed below it.
    """

    title: str
    lines: tuple[Line, ...]
    _: KW_ONLY
    paper: str = ""
    seeds: int = 5
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table(Declared):
    """Lines by columns of scores.

    Args:
        columns: see :class:`Column`, :class:`Gain`, :class:`Quote`.
        split: ``dev`` or ``test``.
        compare: pairs of column labels whose difference is tested, beside those of the gains.
        axis: what the lines' x is, where they make curves: ``share`` (percent) or ``lambda``.
        chart: whether the first gain is drawn as a chart of its two columns.
        other_bilm: whether columns differ in the biLM's digest on purpose; else such cells are not compared.
    """

    columns: tuple[Column | Gain | Quote, ...]
    split: Split = "dev"
    compare: tuple[tuple[str, str], ...] = ()
    axis: str = ""
    chart: bool = False
    other_bilm: bool = False

    def scores(self) -> tuple[Column, ...]:
        """The columns whose cells come from rows."""
        return tuple(column for column in self.columns if isinstance(column, Column))

    def gains(self) -> tuple[Gain, ...]:
        """The columns of differences."""
        return tuple(column for column in self.columns if isinstance(column, Gain))


@dataclass(frozen=True)
class EpochsToPass(Declared):
    """How many epochs it takes one setting to pass another's best dev score (figure 1a of the paper).

    Args:
        baseline: whose best dev score is to be passed.
        elmo: which has to pass it.
    """

    baseline: Column
    elmo: Column


@dataclass(frozen=True)
class Weights(Declared):
    """What the mixes learned, by task and place (figure 2 of the paper)."""


@dataclass(frozen=True)
class FineTuning(Declared):
    """What one epoch on a task's training text does for a biLM and then for the task (table 7 of the supplement).

    The biLM is fine-tuned once, with seed 1. ``paper`` is the section of the perplexities ``before`` and ``after``.

    Args:
        start: the biLM that is fine-tuned, as ``task.lm.init`` takes it.
    """

    start: str


@dataclass(frozen=True)
class Score:
    """The score of one setting."""

    overrides: tuple[str, ...]
    split: Split = "dev"


@dataclass(frozen=True)
class Difference:
    """How much higher one setting scores than another with the same seed."""

    of: Score
    over: Score


@dataclass(frozen=True)
class BestEpoch:
    """The epoch of a setting's best dev score."""

    of: Score


@dataclass(frozen=True)
class PassingEpoch:
    """The first epoch in which a setting exceeds the best dev score of another with the same seed."""

    of: Score
    best_of: Score


Quantity = Score | Difference | BestEpoch | PassingEpoch


@dataclass(frozen=True)
class Part:
    """One inequality: ``high`` is above ``low``."""

    label: str
    high: Quantity
    low: Quantity


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, reproduced if every part of it is.

    Args:
        says: the statement, in our words.
        parts: inequalities.
        not_judged: inequalities that are shown without a verdict, such as those of an exception that the paper makes: a
            test that finds no difference does not show that two settings are equal.
    """

    says: str
    parts: tuple[Part, ...]
    not_judged: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Claims:
    """A list of claims and how many seeds each setting should have."""

    title: str
    claims: tuple[Claim, ...]
    seeds: int = 5
    notes: tuple[str, ...] = ()


Declaration = Table | EpochsToPass | Weights | FineTuning | Claims
