"""The parts of a row that runs of several kinds have: what was read, and how training went."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pydantic.dataclasses import dataclass

from elmo_tasks.rows.fields import FROM_LIST, STRICT, Count, Digest, Ended, Name, Place, Placement, Scores, Seconds


class InputDigests(NamedTuple):
    """Digests of what a run read.

    Attributes:
        data: files of train and dev.
        word_vectors: the user's own file; None without one.
        bilm: its weights (for a language model its initial ones); None without any.
        warm: the text that warmed the biLM up; None without one.
    """

    data: str
    word_vectors: str | None
    bilm: str | None
    warm: str | None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Items:
    """How many items a split had after the reader left some out, and how many were used (``data.fraction``)."""

    original: Count
    used: Count


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Data:
    """What was read.

    ``digest`` is that of the training and development data, ``test_digest`` that of the test data if these were
    scored. ``items`` counts the items of each split (none for a language model, see
    :class:`LanguageModelRecord`), ``left_out`` what the reader skipped, by reason. ``word_coverage`` is the share
    of the tokens with a pretrained word vector; None without word vectors. ``word_vectors`` is the digest of the user's
    own file of them; None without one, and where it was not recorded.
    """

    name: Name
    digest: Digest
    test_digest: Digest | None
    items: dict[Name, Items]
    left_out: dict[Name, Count]
    word_coverage: float | None
    word_vectors: Digest | None = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class MetricRecord:
    """How to read the scores.

    ``name`` is the score that chose the checkpoint. ``reported`` names the scores that tables show, ``name`` first.
    All of them lie between ``lower`` and ``upper``; None is no bound.
    """

    name: Name
    higher_is_better: bool
    lower: float | None
    upper: float | None
    reported: Annotated[tuple[Name, ...], FROM_LIST]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class BilmRecord:
    """Everything about a biLM, or the encoder in its place, that can change a score.

    ``state`` is ``reset``, ``warm`` or ``carry``; ``dtype`` that of the stored layers; ``warm`` the digest of the text
    that warmed the state up, if any.
    """

    name: Name
    digest: Digest
    state: Name
    dtype: Name
    warm: Digest | None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Mix:
    """One place's weights: softmax-normalised ``s``, one for each layer, and the factor ``gamma`` (equation 1)."""

    s: Annotated[tuple[float, ...], FROM_LIST]
    gamma: float


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ElmoRecord:
    """Where ELMo entered, and the mix that each place had in the best epoch (empty where nothing was trained)."""

    placement: Placement
    mix: Name
    weights: dict[Place, Mix]

    @property
    def n_layers(self) -> int:
        """Of each mix; 0 without any."""
        return max((len(mix.s) for mix in self.weights.values()), default=0)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class LayerCounts:
    """Tokens whose layers were computed, and tokens whose layers were read from the store."""

    computed: Count
    read: Count


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Durations:
    """Seconds of each part of a run.

    ``layers`` until the layers were available, including the time to read the data; ``fit`` of training (None without
    any); ``score`` of scoring.
    """

    layers: Seconds
    fit: Seconds | None
    score: Seconds


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CurvePoint:
    """One dev scoring: after ``step`` updates, in ``epoch`` (from 1; 0 is before training)."""

    epoch: Count
    step: Count
    dev: Scores
    seconds: Seconds
    train_loss: float | None
    elmo: dict[Place, Mix]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Code:
    """The code that trained: ``commit`` and ``dirty`` as in the row; both None outside a repository."""

    commit: Name | None
    dirty: bool | None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class TrainingRecord:
    """How training went.

    ``epochs`` were run, ``best_epoch`` is the one whose weights were scored. ``max_epochs`` and ``max_steps`` are the
    budget (None: no bound), ``ended`` is what ended the run. ``converged`` is as
    :func:`elmo_tasks.rows.convergence.has_converged` says. ``resumed_after`` lists the updates after which a killed
    run was resumed, ``code`` the code that it was trained with, in the order of use (one unless it was resumed with
    other code; empty where it was not recorded).
    """

    epochs: Count
    best_epoch: Count
    max_epochs: Count | None
    max_steps: Count | None
    ended: Ended
    converged: bool
    resumed_after: Annotated[tuple[Count, ...], FROM_LIST]
    code: Annotated[tuple[Code, ...], FROM_LIST] = ()
    curve: Annotated[tuple[CurvePoint, ...], FROM_LIST]
