"""A row: everything that one run records for tables and figures, as one JSON file.

A :class:`Row` is a finished run, one of four types by its ``kind``; a :class:`FailedRow` is one that ended in an error.
All are checked as they are built and as they are read (:mod:`elmo_tasks.rows.io`): every field is there, none is
unknown, and they do not contradict each other.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator
from pydantic.dataclasses import dataclass

from elmo_tasks.config.identity import own_words
from elmo_tasks.rows.config import check_config
from elmo_tasks.rows.fields import STRICT, Count, Digest, Kind, Name, Placement, RelativePath, Scores, Split, Time
from elmo_tasks.rows.kinds import Ensemble, LanguageModelRecord, MemberRecord, SenseProbe
from elmo_tasks.rows.parts import (
    BilmRecord,
    Code,
    CurvePoint,
    Data,
    Durations,
    ElmoRecord,
    InputDigests,
    LayerCounts,
    MetricRecord,
    TrainingRecord,
)

SCHEMA: Literal[3] = 3
"""Version of the layout. A row of another version is refused."""

PLACES: dict[str, list[str]] = {"none": [], "input": ["input"], "output": ["output"], "both": ["input", "output"]}


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Header:
    """What is known of a run before it is measured.

    ``run_id`` is the row's name, different for everything that can change a score. ``slug`` is its readable middle.
    ``seed`` is None for an ensemble. ``bilm`` is None where no biLM takes part. ``created`` is when the row was
    written. ``commit``, ``dirty`` (whether the working tree had changes) and ``versions`` are those of the training,
    also when a test set is scored later; the first two are None outside a repository. ``config`` is the resolved
    configuration.
    """

    schema: Literal[3] = SCHEMA
    run_id: Name
    kind: Kind
    task: Name
    slug: Name
    seed: Count | None
    scale: Name
    created: Time
    bilm: BilmRecord | None
    commit: Name | None
    dirty: bool | None
    versions: dict[Name, Name]
    config: dict[str, Any]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class FailedRow(Header):
    """A run that ended in an error."""

    status: Literal["failed"] = "failed"
    error: str


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Row(Header):
    """What all finished runs have.

    ``files`` are predictions in a benchmark's official format, by path below the folder of the rows, with the SHA-256
    of each. ``weights`` is the SHA-256 of the ``model.safetensors`` that was scored; None where nothing was trained,
    and where it was not recorded. ``parameters`` are those that are trained. ``training`` is None where nothing was
    trained, ``elmo`` for a language model.
    """

    data: Data
    metric: MetricRecord
    scores: dict[Split, Scores]
    files: dict[RelativePath, Digest]
    weights: Digest | None
    parameters: Count
    training: TrainingRecord | None
    elmo: ElmoRecord | None
    layers: LayerCounts
    seconds: Durations
    device: Name
    processes: Count
    threads: Count
    status: Literal["finished"] = "finished"

    @property
    def score(self) -> float:
        """The dev score that chose the checkpoint."""
        return self.scores["dev"][self.metric.name]

    @property
    def curve(self) -> tuple[CurvePoint, ...]:
        """The dev scores during training, in order; empty where nothing was trained."""
        return () if self.training is None else self.training.curve

    @property
    def converged(self) -> bool:
        """Whether more training would not have helped; nothing to converge is converged."""
        return self.training is None or self.training.converged

    @property
    def placement(self) -> Placement:
        """Where ELMo enters."""
        return "none" if self.elmo is None else self.elmo.placement

    @property
    def code(self) -> list[Code]:
        """The code that it was made with: a run that was resumed may have been trained with several versions."""
        trained = () if self.training is None else self.training.code
        return [Code(commit=self.commit, dirty=self.dirty), *trained]

    @property
    def inputs(self) -> InputDigests:
        """What the run read: runs of other inputs are never averaged."""
        bilm, warm = (None, None) if self.bilm is None else (self.bilm.digest, self.bilm.warm)
        return InputDigests(self.data.digest, self.data.word_vectors, bilm, warm)

    @property
    def members(self) -> tuple[MemberRecord, ...]:
        """Of an ensemble, by seed; none of another run."""
        return ()

    @property
    def words(self) -> str | None:
        """The user's word vectors: their digest, or the path where it was not recorded; None without any."""
        return self.data.word_vectors or own_words(self.config, self.kind)

    def data_digests(self, split: Split) -> tuple[str, str | None]:
        """Digests of the data on which the score of a split rests: train and dev, and for the test score, test."""
        return self.data.digest, self.data.test_digest if split == "test" else None

    def score_places(self) -> dict[str, Scores]:
        """All that must have the scores of the metric, by its place in the row."""
        places = {f"scores.{split}": scores for split, scores in self.scores.items()}
        return places | {f"training.curve.{i}.dev": point.dev for i, point in enumerate(self.curve)}

    @model_validator(mode="before")
    @classmethod
    def _without_unset_sections(cls, content: Any) -> Any:
        """Version 0.2 wrote the sections of the other kinds too, as null."""
        if not isinstance(content, dict):
            return content
        unset = {name for name in ("language_model", "ensemble", "sense_probe") if content.get(name, 0) is None}
        return {name: value for name, value in content.items() if name not in unset}

    @model_validator(mode="after")
    def _has_the_scores_of_its_metric(self) -> Row:
        lower, upper = self.metric.lower, self.metric.upper
        if self.metric.reported[:1] != (self.metric.name,):
            raise ValueError(f"metric.reported must begin with {self.metric.name}")
        if "dev" not in self.scores:
            raise ValueError("scores.dev is missing")
        for place, scores in self.score_places().items():
            for name in self.metric.reported:
                value = scores.get(name)
                if value is None:
                    raise ValueError(f"{place}.{name} is missing")
                if not (lower is None or lower <= value) or not (upper is None or value <= upper):
                    raise ValueError(f"{place}.{name} must lie in [{lower}, {upper}], found {value}")
        return self

    @model_validator(mode="after")
    def _uses_some_of_its_items(self) -> Row:
        for name, items in self.data.items.items():
            if not 0 < items.used <= items.original:
                raise ValueError(f"data.items.{name}: used must be from 1 to {items.original}, found {items.used}")
        return self

    @model_validator(mode="after")
    def _has_the_mixes_of_its_placement(self) -> Row:
        if self.elmo is not None:
            expected = PLACES[self.elmo.placement] if self.training is not None else []
            if sorted(self.elmo.weights) != expected:
                raise ValueError(f"elmo.weights must have the places {expected}, found {sorted(self.elmo.weights)}")
            if len({len(mix.s) for mix in self.elmo.weights.values()}) > 1:
                raise ValueError("elmo.weights must have as many layers at one place as at the other")
            if self.elmo.placement != "none" and self.bilm is None:
                raise ValueError(f"bilm must be set for placement {self.elmo.placement}")
        return self

    @model_validator(mode="after")
    def _has_the_settings_that_tables_read(self) -> Row:
        has_elmo = self.placement != "none"
        learned = self.elmo is not None and has_elmo and self.elmo.mix == "scalar"
        check_config(self.config, learned=learned, encoder=has_elmo or self.kind == "language_model")
        return self


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SupervisedRow(Row):
    """A task's model that was trained."""

    kind: Literal["supervised"] = "supervised"
    seed: Count
    training: TrainingRecord
    elmo: ElmoRecord


@dataclass(frozen=True, kw_only=True, config=STRICT)
class LanguageModelRow(Row):
    """A biLM that was trained."""

    kind: Literal["language_model"] = "language_model"
    seed: Count
    training: TrainingRecord
    elmo: None
    language_model: LanguageModelRecord

    @property
    def inputs(self) -> InputDigests:
        """Instead of a biLM that is read, the weights that the training started from."""
        initial = self.language_model.initial
        return InputDigests(self.data.digest, None, None if initial is None else initial.digest, None)

    def score_places(self) -> dict[str, Scores]:
        """Those of the initial weights too."""
        before = self.language_model.before
        return super().score_places() | ({} if before is None else {"language_model.before": before})


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SenseProbeRow(Row):
    """Word senses by their nearest means: nothing was trained."""

    kind: Literal["sense_probe"] = "sense_probe"
    seed: Count
    training: None
    elmo: ElmoRecord
    sense_probe: SenseProbe


@dataclass(frozen=True, kw_only=True, config=STRICT)
class EnsembleRow(Row):
    """Finished runs whose probabilities were averaged."""

    kind: Literal["ensemble"] = "ensemble"
    seed: None
    training: None
    elmo: ElmoRecord
    ensemble: Ensemble

    @property
    def members(self) -> tuple[MemberRecord, ...]:
        """By seed."""
        return tuple(sorted(self.ensemble.members, key=lambda member: member.seed))
