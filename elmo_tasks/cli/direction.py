"""``${metric_direction:CLASS}``: whether a search maximises or minimises the score of a metric, as Optuna calls it."""

from __future__ import annotations

from typing import Any

from hydra.utils import get_class
from omegaconf import OmegaConf


def metric_direction(name: str) -> str:
    """``maximize``, or ``minimize`` for a metric such as a perplexity."""
    metric: Any = get_class(name)
    return "maximize" if metric.higher_is_better else "minimize"


OmegaConf.register_new_resolver("metric_direction", metric_direction, replace=True)
