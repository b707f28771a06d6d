"""Peak memory of training the bundled English biLMs: of the whole process, as a user starts it.

``python benchmarks/lm_memory.py data.root=DIR [KEY=VALUE ...]``

For each size a fresh process scores a window of the held-out text, makes 25 updates of ``experiment=bilm`` from the
bundled weights, and scores the whole held-out text. The kernel says how much memory it had at most.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

RUN = Path(__file__).parents[1] / "run.py"
SIZES = ("mini", "small")
SETTINGS = "experiment=bilm data=local trainer.max_steps=25 trainer.val_check_interval=25 trainer.limit_val_batches=1"


def peak_of_training(size: str, overrides: list[str]) -> float:
    """Gigabytes."""
    command = [sys.executable, str(RUN), *SETTINGS.split(), f"bilm={size}", f"task.lm.init={size}", *overrides]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, cwd=folder, stdout=sys.stderr) as process,
    ):
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(process.returncode)
    return usage.ru_maxrss * 1024 / 1e9


def main() -> None:
    overrides = [
        f"data.root={Path(text.removeprefix('data.root=')).resolve()}" if text.startswith("data.root=") else text
        for text in sys.argv[1:]
    ]
    for size in SIZES:
        print(f"{size:8}{peak_of_training(size, overrides):.2f} GB at the peak", flush=True)


if __name__ == "__main__":
    main()
