"""What a table of the paper is made of: settings of the configuration, not numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """A line of a table: a task, or a task with one more value set.

    Args:
        label: as printed.
        overrides: of the configuration, ``("task=snli",)``.
        paper: this line's section in the table's section of ``paper.yaml``.
        split: where it is another one than the table's.
        members: seeds of an ensemble, for a column of ensembles.
        x: the place on the horizontal axis, where lines make a curve.
        curve: the name of that curve.
    """

    label: str
    overrides: tuple[str, ...]
    paper: str = ""
    split: str | None = None
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
        ensemble: the mean of the line's members in place of the mean of their scores.
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
        relative: percent of the error that is gone (of 100 minus the score) in place of points.
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
class Table:
    """Lines by columns of scores.

    Args:
        title: of the table.
        lines: see :class:`Line`.
        columns: see :class:`Column`, :class:`Gain`, :class:`Quote`.
        split: ``dev`` or ``test``.
        paper: its section in ``paper.yaml``; empty where the paper has no such table.
        seeds: how many; the seeds 1, 2, ...
        compare: pairs of column labels whose difference is tested, beside those of the gains.
        notes: to be printed below it.
        axis: what the lines' x is, where they make curves: ``share`` (percent) or ``lambda``.
    """

    title: str
    lines: tuple[Line, ...]
    columns: tuple[Column | Gain | Quote, ...]
    split: str = "dev"
    paper: str = ""
    seeds: int = 5
    compare: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    axis: str = ""

    def scores(self) -> tuple[Column, ...]:
        """The columns whose cells come from rows."""
        return tuple(column for column in self.columns if isinstance(column, Column))

    def gains(self) -> tuple[Gain, ...]:
        """The columns of differences."""
        return tuple(column for column in self.columns if isinstance(column, Gain))


@dataclass(frozen=True)
class Race:
    """How many epochs it takes one setting to pass another's best dev score (figure 1a of the paper).

    Args:
        title: of the figure.
        lines: tasks.
        baseline: whose best dev score is to be passed.
        elmo: which has to pass it.
        paper: section of the values in ``paper.yaml``; a line's own is below it.
        seeds: as in :class:`Table`.
        notes: to be printed below it.
    """

    title: str
    lines: tuple[Line, ...]
    baseline: Column
    elmo: Column
    paper: str = ""
    seeds: int = 5
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Weights:
    """What the mixes learned, by task and place (figure 2 of the paper).

    Args:
        title: of the figure.
        lines: settings with ELMo.
        hatched_below: key in ``paper.yaml`` of the weight below which a field is hatched.
        speckled_above: key of the weight above which it is speckled.
        seeds: as in :class:`Table`.
        notes: to be printed below it.
    """

    title: str
    lines: tuple[Line, ...]
    hatched_below: str
    speckled_above: str
    seeds: int = 5
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class FineTuning:
    """What one epoch on a task's training text does for a biLM and then for the task (table 7 of the supplement).

    Args:
        title: of the table.
        lines: tasks; ``paper`` is their section of the perplexities.
        start: the biLM that is fine-tuned, as ``task.lm.init`` takes it.
        paper: section of the perplexities ``before`` and ``after`` in ``paper.yaml``.
        seeds: of the task; the biLM is fine-tuned once, with seed 1.
        notes: to be printed below it.
    """

    title: str
    lines: tuple[Line, ...]
    start: str
    paper: str
    seeds: int = 5
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Score:
    """The score of one setting."""

    overrides: tuple[str, ...]
    split: str = "dev"


@dataclass(frozen=True)
class Difference:
    """What one setting is above another with the same seed."""

    of: Score
    over: Score


@dataclass(frozen=True)
class BestEpoch:
    """The epoch of a setting's best dev score."""

    of: Score


@dataclass(frozen=True)
class PassingEpoch:
    """The first epoch at which a setting is above another one's best dev score with the same seed."""

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
        beside: inequalities that are shown and have no part in the verdict, such as those of an exception that the
            paper makes: that two settings are equal is not shown by a test that finds no difference.
    """

    says: str
    parts: tuple[Part, ...]
    beside: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Claims:
    """A list of claims and how many seeds each setting should have."""

    title: str
    claims: tuple[Claim, ...]
    seeds: int = 5
    notes: tuple[str, ...] = ()


Declaration = Table | Race | Weights | FineTuning | Claims
