"""What a table of the paper is made of: settings of the configuration, not numbers."""

from __future__ import annotations

from dataclasses import dataclass

from elmo_tasks.rows.fields import Split
from elmo_tasks.tables.declare_claims import Claims


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
        relative: percent of the error that is gone (of 100 minus the score) instead of points.
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
        chart: whether the first gain is drawn as a chart of its two columns.
    """

    title: str
    lines: tuple[Line, ...]
    columns: tuple[Column | Gain | Quote, ...]
    split: Split = "dev"
    paper: str = ""
    seeds: int = 5
    compare: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    axis: str = ""
    chart: bool = False

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
class Everything:
    """All that some rows measured, whatever it is: one section of a report.

    Args:
        part: a key of ``everything.PARTS``.
    """

    part: str

    @property
    def title(self) -> str:
        return self.part


Declaration = Table | Race | Weights | FineTuning | Claims | Everything
