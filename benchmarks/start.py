"""What it takes to start: ``python benchmarks/start.py task=snli data=local data.root=DIR [KEY=VALUE ...]``.

The data are read, and the layers that the store lacks are computed, as a run would do it; nothing is trained. Printed
are seconds of processor time, and memory at the peak without mapped pages. The second time, the store has all layers.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from machine import PeakMemory
from plan import composed

from elmo_tasks.assembly import build_store
from elmo_tasks.config.compose import validate
from elmo_tasks.data.source import SPLITS
from elmo_tasks.runs.interface import build_run
from elmo_tasks.runs.run import prepare_process


def timed(what: str, do: Callable[[], object]) -> None:
    start = time.process_time()
    with PeakMemory() as peak:
        do()
    print(f"{what}: {time.process_time() - start:.1f} s, {peak.megabytes * 1024**2 / 1e9:.2f} GB", flush=True)


def main(overrides: Sequence[str]) -> None:
    cfg = validate(composed(overrides)).to_json()
    prepare_process(cfg)
    run = build_run(cfg)
    timed("reading the data", run.data.read)  # type: ignore[attr-defined]
    store = build_store(run.cfg, run.encoder)  # type: ignore[attr-defined]
    if store is not None:
        timed("layers", lambda: run.data.use_layers(store, SPLITS))  # type: ignore[attr-defined]
    print(f"{len(run.data.items['train']):,} training items")  # type: ignore[attr-defined]


if __name__ == "__main__":
    main(sys.argv[1:])
