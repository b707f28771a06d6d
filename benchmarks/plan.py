"""Plans against what then happened.

``python benchmarks/plan.py [only=ner,snli] [places=none,both] [KEY=VALUE ...]``

For each task and placement, in a process each: a plan (``plan=true``), then the run, with :data:`STEPS` updates and the
scores on dev that fall due. Printed are the planned milliseconds of an update, then planned and taken seconds of
training with dev, gigabytes of memory at the peak and seconds of the biLM pass, with the ratio of the two. The time to
read the data is not planned: it is that of the run without ELMo, which comes first, and taken off. The placements of a
task share the layer store, so that only the first one with ELMo has a biLM pass. Nothing else may start or end on the
machine meanwhile.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from hydra import compose, initialize_config_dir
from machine import PeakMemory

from elmo_tasks.config.compose import validate
from elmo_tasks.planning.plan import DoneSoFar
from elmo_tasks.runs.interface import build_run
from elmo_tasks.runs.run import prepare_process, run

CONF = Path(__file__).parents[1] / "conf"
TASKS = ("sst5", "ner", "snli", "srl", "coref", "squad")
PLACES = ("none", "both")
STEPS = 200


@dataclass(frozen=True)
class Cost:
    """Seconds until the layers were there, seconds of training with dev, gigabytes at the peak, seconds of an update.

    The last is planned alone.
    """

    layers: float
    fit: float
    memory: float
    update: float = 0.0


def composed(overrides: Sequence[str]) -> Any:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("config", list(overrides))


def planned(overrides: Sequence[str]) -> Cost:
    cfg = validate(composed(overrides)).to_json()
    prepare_process(cfg)
    plan = build_run(cfg).plan(DoneSoFar())  # type: ignore[attr-defined]
    update = plan.step.epoch_seconds / plan.step.n_batches
    return Cost(0.0 if plan.layers is None else plan.layers.seconds, plan.fit_seconds, plan.peak_bytes / 1e9, update)


def taken(overrides: Sequence[str], rows: Path) -> Cost:
    with contextlib.redirect_stdout(io.StringIO()), PeakMemory() as peak:
        run(composed([*overrides, f"results.dir={rows}"]))
    [path] = rows.glob("*.json")
    seconds = json.loads(path.read_text("utf-8"))["seconds"]
    path.unlink()
    return Cost(seconds["layers"], seconds["fit"], peak.megabytes * 1024**2 / 1e9)


def in_a_process(function: Any, *arguments: Any) -> Cost:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        cost: Cost = pool.submit(function, *arguments).result()
    return cost


def compare(task: str, places: Sequence[str], overrides: Sequence[str], folder: Path) -> None:
    reading = 0.0
    for placement in places:
        cell = (f"task={task}", f"elmo.placement={placement}", f"trainer.max_steps={STEPS}", *overrides)
        cell = (*cell, "trainer.progress=false", f"paths.outputs={folder / task}")
        plan = in_a_process(planned, cell)
        cost = in_a_process(taken, cell, folder / "rows")
        numbers = [(plan.fit, cost.fit), (plan.memory, cost.memory)]
        if placement == "none":
            reading = cost.layers
        elif plan.layers:
            numbers.append((plan.layers, cost.layers - reading))
        columns = "".join(f"{a:9.1f}{b:9.1f}{a / b:7.2f}" for a, b in numbers)
        print(f"{task:8}{placement:8}{1000 * plan.update:8.0f}{columns}", flush=True)


def chosen(arguments: Sequence[str], key: str, default: Sequence[str]) -> Sequence[str]:
    """The values of ``key=A,B`` among the arguments."""
    return next((a.removeprefix(key).split(",") for a in arguments if a.startswith(key)), default)


def main(arguments: Sequence[str]) -> None:
    tasks, places = chosen(arguments, "only=", TASKS), chosen(arguments, "places=", PLACES)
    overrides = [a for a in arguments if not a.startswith(("only=", "places="))]
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {STEPS} updates and dev")
    print("update: planned, in ms; in the other columns: planned, taken, planned / taken")
    columns = f"{'training and dev, s':>25}{'memory, GB':>25}{'biLM pass, s':>25}"
    print(f"{'task':8}{'ELMo':8}{'update':>8}{columns}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for task in tasks:
            compare(task, places, overrides, Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
