"""The parts of a row that only one kind of run has."""

from __future__ import annotations

from typing import Annotated

from pydantic.dataclasses import dataclass

from elmo_tasks.rows.fields import FROM_LIST, STRICT, Count, Digest, FolderName, Name, Scores


@dataclass(frozen=True, kw_only=True, config=STRICT)
class InitialWeightsRecord:
    """The biLM that a training started from; ``softmax`` says whether its output layer was ``restored`` or ``new``."""

    name: Name
    digest: Digest
    softmax: Name


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Exported:
    """The biLM that came of a training: its folder, and the digest that a biLM's row would have."""

    folder: FolderName
    digest: Digest


@dataclass(frozen=True, kw_only=True, config=STRICT)
class LanguageModelRecord:
    """A biLM's training.

    ``text`` is the task whose text was read, or ``shards``. ``positions`` counts the predicted tokens of an epoch, by
    split. ``vocabulary`` is the number of words, ``unknown`` the share of the training tokens outside it. ``before``
    are the dev scores of the initial weights (None where there were none). All scores are those of the weights as they
    were trained, in 32 bits; the exported ones have 16.
    """

    text: Name
    positions: dict[Name, Count]
    vocabulary: Count
    unknown: float
    initial: InitialWeightsRecord | None
    before: Scores | None
    exported: Exported


@dataclass(frozen=True, kw_only=True, config=STRICT)
class MemberRecord:
    """A finished run whose probabilities an ensemble averages; ``weights`` is the digest of the weights it was read
    with."""

    run_id: Name
    seed: Count
    weights: Digest | None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Ensemble:
    """Finished runs that differ in their seed alone."""

    members: Annotated[tuple[MemberRecord, ...], FROM_LIST]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SenseProbe:
    """Word senses by nearest sense mean.

    ``instances`` counts the annotated instances, by split and set. ``first_sense`` counts those of each split whose
    lemma has no instance in train, so that WordNet's first sense was taken.
    """

    instances: dict[Name, dict[Name, Count]]
    first_sense: dict[Name, Count]
