"""Scores of a run, predictions in a benchmark's official format, and what a row says of both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch

from elmo_tasks.assembly import choose_device
from elmo_tasks.metrics.base import Exportable, Metric
from elmo_tasks.rows import parts
from elmo_tasks.rows.fields import Place
from elmo_tasks.runs.fit import Fit
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.store.store import Filled

Scored = tuple[dict[Any, dict[str, float]], dict[str, str]]
"""Scores by split, and the digests of files by path below the folder of the rows."""


def score_splits(
    splits: Sequence[str], metric: Metric, folder: RunFolder, finished: bool, score: Callable[[str], dict[str, float]]
) -> Scored:
    """The scores of some splits, and the files that an official scorer reads.

    Args:
        splits: the names of the splits.
        metric: that ``score`` resets and updates.
        folder: of the run.
        finished: whether the files go to the folder of a finished run instead of the partial one.
        score: scores a split.

    Returns:
        scores by split, and the files' digests by path below the folder of the rows.
    """
    scores: dict[Any, dict[str, float]] = {}
    files: dict[str, str] = {}
    for split in splits:
        scores[split] = score(split)
        contents = metric.files() if isinstance(metric, Exportable) else {}
        files |= folder.write_predictions(folder.final if finished else folder.partial, split, contents)
    return scores, files


class Stopwatch:
    """The seconds of the parts of a run: ``with watch("layers"): ...``, then ``with watch("score"): ...``."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, part: Literal["layers", "score"]) -> Iterator[None]:
        """Measure a part."""
        start = time.perf_counter()
        yield
        self._seconds[part] = time.perf_counter() - start

    def durations(self, fit: float | None) -> parts.Durations:
        """The seconds as a row has them; those of training are measured by the training itself."""
        layers, score = (round(self._seconds[part], 2) for part in ("layers", "score"))
        return parts.Durations(layers=layers, fit=None if fit is None else round(fit, 2), score=score)


def describe_work(cfg: dict[str, Any], metric: Metric, watch: Stopwatch, trained: Fit | None = None) -> dict[str, Any]:
    """How the work was done and measured, as fields of :class:`~elmo_tasks.rows.schema.Measured`.

    Args:
        cfg: the checked configuration.
        metric: of the scores.
        watch: has timed ``layers`` and ``score``.
        trained: None where nothing was trained.
    """
    return {
        "metric": describe_metric(metric),
        "training": None if trained is None else trained.training,
        "seconds": watch.durations(None if trained is None else trained.seconds),
        "device": choose_device(cfg) if trained is None else trained.device,
        "processes": 1 if trained is None else trained.processes,
        "threads": torch.get_num_threads(),
    }


def describe_elmo(cfg: dict[str, Any], weights: dict[Place, parts.Mix] | None = None) -> parts.ElmoRecord:
    """ELMo as a row has it; without ``weights`` where nothing was trained."""
    return parts.ElmoRecord(placement=cfg["elmo"]["placement"], mix=cfg["elmo"]["mix"], weights=weights or {})


def describe_layers(filled: Filled) -> parts.LayerCounts:
    """The counts of the layer store as a row has them."""
    return parts.LayerCounts(computed=filled.computed, read=filled.read)


def describe_metric(metric: Metric) -> parts.MetricRecord:
    """A metric as a row has it."""
    lower, upper = metric.bounds
    return parts.MetricRecord(
        name=metric.name,
        higher_is_better=metric.higher_is_better,
        lower=lower,
        upper=upper,
        reported=metric.reported,
    )
