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


def record(*, score: float | None = None, error: str | None = None) -> None:
    """Record the result of the running cell."""
    hydra = HydraConfig.get()
    cell = {"number": hydra.job.num, "overrides": [*hydra.overrides.task], "score": score, "error": error}
    (Path(hydra.runtime.output_dir) / _FILE).write_text(json.dumps(cell), "utf-8")


class ShowCells(Callback):
    """Prints the table when a sweep has ended."""

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Read the cells' files."""
        files = Path(config.hydra.sweep.dir).glob(f"*/{_FILE}")
        cells = sorted((json.loads(path.read_text("utf-8")) for path in files), key=lambda cell: cell["number"])
        failed.extend(" ".join(cell["overrides"]) for cell in cells if cell["error"] is not None)
        if cells:
            show(cells)


def show(cells: list[dict[str, Any]]) -> None:
    """Print a line for each cell, with the keys in which they differ."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    values = [dict(text.split("=", 1) for text in cell["overrides"] if "=" in text) for cell in cells]
    keys = differing(values)
    table = Table(title=f"{len(cells)} run{'s' * (len(cells) != 1)}", title_justify="left")
    for key in (*keys, "dev"):
        table.add_column(key, overflow="fold", justify="right" if key == "dev" else "left")
    for cell, given in zip(cells, values, strict=True):
        result = "failed" if cell["score"] is None else f"{cell['score']:.2f}"
        table.add_row(*(Text(given.get(key, "")) for key in keys), result)
    console = Console()
    console.print(table)
    for cell in cells:
        if cell["error"] is not None:
            console.print(Text(f"{' '.join(cell['overrides'])}: {cell['error']}"), soft_wrap=True)


def differing(values: list[dict[str, str]]) -> list[str]:
    """The keys whose values are not the same in all cells, in the order in which they were given."""
    keys = dict.fromkeys(key for given in values for key in given)
    return [key for key in keys if len({given.get(key) for given in values}) > 1]
