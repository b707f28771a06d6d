"""The checkout that is looked at: its command line, in processes of their own, and texts without places and dates."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "WANDB_MODE": "offline",
    "COLUMNS": "100",
    "LC_ALL": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}
DATE = re.compile(r"\b20\d\d-\d\d-\d\d(?:[T _]\d\d[-:]\d\d(?:[-:]\d\d)?(?:[-.]\d+)?(?:\+00:00|Z)?)?")
VERSION = re.compile(r"\b(elmo[-_]tasks) \d+\.\d+[.\w]*")


words = shlex.split
"""The words of a command line."""


@dataclass(frozen=True)
class Call:
    """One call of the adapter.

    Args:
        name: under which the answer is recorded.
        call: the adapter's function.
        arguments: its list of texts.
        input: standard input.
        seconds: of the processor, after which a process of its own is killed.
    """

    name: str
    call: str
    arguments: Sequence[str]
    input: str = ""
    seconds: int = 600


class Checkout:
    """A checkout, reached through a scratch folder whose path has always the same length.

    Args:
        folder: of the checkout.
        python: of an environment with the project's dependencies.
        scratch: an empty folder; calls are made there.
    """

    def __init__(self, folder: Path, python: str, scratch: Path) -> None:
        self.folder, self.python, self.scratch = folder.resolve(), python, scratch
        self.code, self.work = scratch / "checkout", scratch / "work"  # a link: messages may cut long paths
        self.code.symlink_to(self.folder)
        self.work.mkdir()
        own = self.folder / "tests" / "net" / "adapter.py"
        self.adapter = own.parent if own.is_file() else HERE

    def ask(self, calls: Iterable[Call], *, alone: bool = True) -> Iterator[tuple[Call, dict[str, Any]]]:
        """Make calls one after the other; their answers (see ``child.py``), with places and dates replaced."""
        calls = [*calls]
        work = {"alone": alone, "calls": [{**vars(call), "arguments": [*call.arguments]} for call in calls]}
        environment = {key: value for key, value in os.environ.items() if not key.startswith("ELMO_TASKS")}
        environment |= {**ENVIRONMENT, "PYTHONPATH": str(self.code), "ELMO_TASKS_OUTPUTS": "outputs"}
        command = [self.python, str(HERE / "child.py"), str(self.adapter)]
        with tempfile.TemporaryFile("w+") as given:
            json.dump(work, given)
            given.seek(0)
            process = subprocess.Popen(
                command, cwd=self.work, env=environment, stdin=given, stdout=subprocess.PIPE, text=True
            )
            assert process.stdout is not None
            for call in calls:
                line = process.stdout.readline()
                if not line:
                    sys.exit(f"{self.folder}: the process that runs it ended at {call.name}")
                yield call, self._plain(json.loads(line))
            process.wait()

    def machine(self) -> str:
        """What the bits of weights depend on, besides the program: the processor and PyTorch."""
        path = Path("/proc/cpuinfo")
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        name = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.processor())
        flags = next((line.split() for line in lines if line.startswith("flags")), [])
        ask = "import importlib.metadata as m; print(m.version('torch'))"
        torch = subprocess.run([self.python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
        return f"{name}, {'with' if 'avx512f' in flags else 'without'} AVX-512; PyTorch {torch}"

    def plain(self, text: str) -> str:
        """A text without this machine's paths, dates and version."""
        for place, name in ((self.code, "CHECKOUT"), (self.folder, "CHECKOUT"), (self.work, "WORK")):
            text = text.replace(str(place), name)
        return VERSION.sub(r"\1 VERSION", DATE.sub("DATE", text))

    def _plain(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self._plain(key): self._plain(each) for key, each in value.items()}
        return self.plain(value) if isinstance(value, str) else value


@contextmanager
def opened(folder: Path, python: str) -> Iterator[Checkout]:
    """A checkout with a scratch folder that is removed at the end."""
    scratch = Path(tempfile.mkdtemp(prefix="net-"))
    try:
        yield Checkout(folder, python, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
