"""Declarations of the paper's claims: inequalities between quantities that are measured on settings."""

from __future__ import annotations

from dataclasses import dataclass

from elmo_tasks.rows.fields import Split


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
