"""The cells of a sweep: each records its result, and at the end they are shown as one table.

A cell may run in another process (joblib) or on another machine (submitit), so it leaves a small file in the folder
that Hydra has given it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from omegaconf import DictConfig

failed: list[str] = []
"""The overrides of the cells that failed in this process's sweep."""

_FILE = "cell.json"


def record(*, metric: str | None = None, scores: dict[str, float] | None = None, error: str | None = None) -> None:
    """Record the result of the running cell: its scores by split, or what went wrong."""
    hydra = HydraConfig.get()
    cell = {
        "number": hydra.job.num,
        "overrides": [*hydra.overrides.task],
        "metric": metric,
        "scores": scores or {},
        "error": error,
    }
    (Path(hydra.runtime.output_dir) / _FILE).write_text(json.dumps(cell), "utf-8")


class ShowCells(Callback):
    """Prints the table when a sweep has ended."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Prepare submitit's launcher for Slurm, if that is the sweep's."""
        if config.hydra.launcher._target_.endswith(".SlurmLauncher"):
            from elmo_tasks.cli.slurm import watch_queue_without_accounting

            watch_queue_without_accounting()

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Read the cells' files."""
        files = Path(config.hydra.sweep.dir).glob(f"*/{_FILE}")
        cells = sorted((json.loads(path.read_text("utf-8")) for path in files), key=lambda cell: cell["number"])
        failed.extend(" ".join(cell["overrides"]) for cell in cells if cell["error"] is not None)
        if cells:
            show(cells)
            if "seed" in differing([_given(cell) for cell in cells]):
                print(f"means over seeds: elmo-tasks report {config.results.dir}")


def show(cells: list[dict[str, Any]]) -> None:
    """Print a line for each cell: the keys in which they differ, and the score of each split."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    values = [_given(cell) for cell in cells]
    keys = differing(values)
    splits = [split for split in ("dev", "test") if split == "dev" or any(split in cell["scores"] for cell in cells)]
    metrics = {cell["metric"] for cell in cells if cell["scores"]}
    title = f"{len(cells)} run{'s' * (len(cells) != 1)}" + (f", {min(metrics)}" if len(metrics) == 1 else "")
    table = Table(title=title, title_justify="left")
    for key in keys:
        table.add_column(key, overflow="fold")
    for split in splits:
        table.add_column(split, justify="right")
    for cell, given in zip(cells, values, strict=True):
        found = [f"{cell['scores'][split]:.2f}" if split in cell["scores"] else "" for split in splits]
        table.add_row(*(Text(given.get(key, "")) for key in keys), *(found if cell["scores"] else ["failed"]))
    console = Console()
    console.print(table)
    for cell in cells:
        if cell["error"] is not None:
            console.print(Text(f"{' '.join(cell['overrides'])}: {cell['error']}"), soft_wrap=True)


def _given(cell: dict[str, Any]) -> dict[str, str]:
    """The overrides of a cell by key."""
    return dict(text.split("=", 1) for text in cell["overrides"] if "=" in text)


def differing(values: list[dict[str, str]]) -> list[str]:
    """The keys whose values are not the same in all cells, in the order in which they were given."""
    keys = dict.fromkeys(key for given in values for key in given)
    return [key for key in keys if len({given.get(key) for given in values}) > 1]
