"""A row: everything that one run records for tables and figures, as one JSON file.

A :class:`Row` is a finished run, a :class:`FailedRow` one that ended in an error. Both are checked as they are built
and as they are read (:mod:`elmo_tasks.rows.io`): every field is there, none is unknown, and they do not contradict
each other.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator
from pydantic.dataclasses import dataclass

from elmo_tasks.rows.config import check_config
from elmo_tasks.rows.fields import STRICT, Count, Digest, Kind, Name, RelativePath, Scores, Split, Time
from elmo_tasks.rows.kinds import Ensemble, LanguageModelRecord, SenseProbe
from elmo_tasks.rows.parts import (
    BilmRecord,
    CurvePoint,
    Data,
    Durations,
    ElmoRecord,
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
class Measured:
    """What a run measured.

    ``files`` are predictions in a benchmark's official format, by path below the folder of the rows, with the SHA-256
    of each. ``weights`` is the SHA-256 of the ``model.safetensors`` that was scored; None where nothing was trained,
    and where it was not recorded. ``parameters`` are those that are trained. ``training`` is None where nothing was
    trained, ``elmo`` for a language model. The last three belong to one kind of run each.
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
    language_model: LanguageModelRecord | None = None
    ensemble: Ensemble | None = None
    sense_probe: SenseProbe | None = None


@dataclass(frozen=True, kw_only=True, config=STRICT)
class FailedRow(Header):
    """A run that ended in an error."""

    status: Literal["failed"] = "failed"
    error: str


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Row(Measured, Header):
    """A finished run."""

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

    @model_validator(mode="after")
    def _agrees_with_its_kind(self) -> Row:
        sections = {
            "language_model": self.language_model,
            "ensemble": self.ensemble,
            "sense_probe": self.sense_probe,
        }
        found = [name for name, section in sections.items() if section is not None]
        expected = [] if self.kind == "supervised" else [self.kind]
        if found != expected:
            raise ValueError(f"kind {self.kind} must have the sections {expected}, found {found}")
        for name, present, wanted in (
            ("training", self.training is not None, self.kind in ("supervised", "language_model")),
            ("elmo", self.elmo is not None, self.kind != "language_model"),
            ("seed", self.seed is not None, self.kind != "ensemble"),
        ):
            if present != wanted:
                raise ValueError(f"{name} must be {'set' if wanted else 'null'} for kind {self.kind}")
        return self

    @model_validator(mode="after")
    def _has_the_scores_of_its_metric(self) -> Row:
        lower, upper = self.metric.lower, self.metric.upper
        if self.metric.reported[:1] != (self.metric.name,):
            raise ValueError(f"metric.reported must begin with {self.metric.name}")
        if "dev" not in self.scores:
            raise ValueError("scores.dev is missing")
        places = {f"scores.{split}": scores for split, scores in self.scores.items()}
        places |= {f"training.curve.{i}.dev": point.dev for i, point in enumerate(self.curve)}
        if self.language_model is not None and self.language_model.before is not None:
            places["language_model.before"] = self.language_model.before
        for place, scores in places.items():
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
        has_elmo = self.elmo is not None and self.elmo.placement != "none"
        learned = self.elmo is not None and has_elmo and self.elmo.mix == "scalar"
        check_config(self.config, learned=learned, encoder=has_elmo or self.kind == "language_model")
        return self
