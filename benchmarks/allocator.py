"""Training with the C library's allocator beside jemalloc: processor time of an update, and peak memory.

``python benchmarks/allocator.py LIBJEMALLOC [KEY=VALUE ...]``

``LIBJEMALLOC`` is ``libjemalloc.so.2`` or its path. Two processes make the same updates at the same time, on one thread
each, so that both meet the same noise. The first updates, in which memory still grows, are not timed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import count, islice
from pathlib import Path

import torch
from machine import peak_megabytes
from task_models import built, configured, step

from elmo_tasks.training.memory import keep_freed_memory

N_WARM_UP, N_UPDATES = 100, 400
KEEP_FREED_MEMORY = "thp:always,dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0"


def main(library: str, overrides: list[str]) -> None:
    print(f"torch {torch.__version__}, one thread, {N_UPDATES} updates")
    print(f"{'placement':12}{'allocator':12}{'seconds for 100 updates':>25}{'peak memory, MB':>18}", flush=True)
    jemalloc = {"LD_PRELOAD": library, "MALLOC_CONF": KEEP_FREED_MEMORY}
    for placement in ("none", "both"):
        arguments = [f"elmo.placement={placement}", *overrides]
        started = {"glibc": start(arguments, {"LD_PRELOAD": ""}), "jemalloc": start(arguments, jemalloc)}
        for allocator, process in started.items():
            output, _ = process.communicate()
            if process.returncode:
                raise SystemExit(process.returncode)
            seconds, megabytes = map(float, output.split()[-2:])
            print(f"{placement:12}{allocator:12}{seconds:25.1f}{megabytes:18,.0f}", flush=True)


def start(arguments: list[str], variables: dict[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--measure", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def measure(overrides: list[str]) -> None:
    """Prints seconds of processor time for 100 updates, and the peak memory of this process in MB."""
    library = os.environ["LD_PRELOAD"]
    if Path(library).name not in Path("/proc/self/maps").read_text():  # the linker only warns, and goes on without it
        raise SystemExit(f"{library}: not loaded; expected libjemalloc.so.2 or its path")
    keep_freed_memory()
    cfg = configured(["trainer.progress=false", "trainer.accelerator=cpu", "words.any_dim=true", *overrides])
    data, model, optimizer = built(cfg)
    batches = (batch for epoch in count() for batch in data.epoch(epoch))
    begun = 0.0
    for number, batch in enumerate(islice(batches, N_WARM_UP + N_UPDATES)):
        if number == N_WARM_UP:
            begun = time.process_time()
        step(model, optimizer, batch, cfg["task"]["training"]["grad_norm"])
    print(100 * (time.process_time() - begun) / N_UPDATES, peak_megabytes())


if __name__ == "__main__":
    if sys.argv[1] == "--measure":
        measure(sys.argv[2:])
    else:
        main(sys.argv[1], sys.argv[2:])
