"""The cells of a sweep: each records its result, and at the end they are shown as one table.

A cell may run in another process (joblib) or on another machine (submitit), so it leaves a small file in the folder
that Hydra has given it.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from math import nan
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, flag_override

from elmo_tasks.errors import UserError, shortened

failed: list[str] = []
"""The overrides of the cells that failed in this process's sweep."""

started: list[DictConfig] = []
"""The configuration of the sweep that this process began last."""

_FILE = "cell.json"
_SEARCH = "hydra_plugins.hydra_optuna_sweeper._impl"
_ALL_FAILED = "No trials are completed yet"


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


def fail(reason: str) -> float:
    """Record that the running cell has failed; what it returns. A search is told by an error, as NaN would end it.

    Raises:
        UserError: within a search by Optuna.
    """
    record(error=reason)
    if "optuna" in HydraConfig.get().sweeper.get("_target_", ""):
        raise UserError(reason)
    return nan


def check_cell() -> None:
    """Check that the running cell has the values of a preset that is a sweep, such as ``experiment=seeds``.

    Hydra forgets these where presets are themselves swept.

    Raises:
        UserError: if not.
    """
    hydra = HydraConfig.get()
    given = {text.partition("=")[0].lstrip("+") for text in hydra.overrides.task}
    lost = [key for key in hydra.sweeper.get("params") or {} if key.lstrip("+") not in given]
    if lost:
        raise UserError(f"this cell is to sweep over {', '.join(lost)}, which cannot be within a sweep over presets")


@contextmanager
def search() -> Iterator[None]:
    """Say in one sentence what Optuna refuses; the table of a search in which every trial failed is shown as any.

    Raises:
        UserError: for an error of Optuna or of its storage, such as a stored study of other values.
    """
    try:
        yield
    except Exception as error:
        modules = [str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(error.__traceback__)]
        within = modules[modules.index(_SEARCH) :] if _SEARCH in modules else []
        if not within or any(name.startswith("elmo_tasks.") for name in within):  # of a trial
            raise
        if _ALL_FAILED not in str(error):
            reason = f"{type(error).__name__}: {shortened(str(error), 160)}"
            raise UserError(f"the search by Optuna cannot go on ({reason})") from error
        ShowCells().on_multirun_end(*started)


class ShowCells(Callback):
    """Prints the table when a sweep has ended."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Prepare submitit's launcher, if a sweep has it; a search by Optuna goes on after trials that failed.

        A rate of failures that is asked for stays.
        """
        if config.hydra.launcher._target_.endswith(".SlurmLauncher"):
            from elmo_tasks.cli.slurm import watch_queue_without_accounting

            watch_queue_without_accounting()
        started[:] = [config]
        asked = any("max_failure_rate" in text for text in config.hydra.overrides.hydra)
        if "max_failure_rate" in config.hydra.sweeper and not asked:
            with flag_override(config, ["readonly"], False):
                config.hydra.sweeper.max_failure_rate = 1.0

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
