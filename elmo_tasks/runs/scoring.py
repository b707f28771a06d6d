"""Scores of a split, and predictions in a benchmark's official format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from elmo_tasks.metrics.base import Exportable, Metric
from elmo_tasks.rows import parts
from elmo_tasks.rows.fields import Place
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.store.store import Filled


def score_splits(
    splits: Sequence[str], metric: Metric, folder: RunFolder, finished: bool, score: Callable[[str], dict[str, float]]
) -> tuple[dict[Any, dict[str, float]], dict[str, str]]:
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
