"""What is said of mistakes, on the command line and in files, and the status that a command ends with."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from typing import Any

from .checkout import HERE, Call, Checkout, words
from .damaged import damage, mistakes

FIRST = (
    "run task=ner elmo.placement=none words=random data.fraction=0.05 trainer.max_steps=1 trainer.threads=1 "
    "trainer.accelerator=cpu trainer.progress=false logger=none"
)
"""The finished run that RUN stands for."""


def record(checkout: Checkout) -> dict[str, Any]:
    """By command line, or by the name of a damaged file: the status and the last lines that were printed."""
    ((_, answer),) = checkout.ask([Call("first", "run", words(FIRST))])
    assert not answer["status"], answer["err"]
    (run,) = (path.name for path in (checkout.work / "outputs" / "runs").iterdir() if path.is_dir())
    (checkout.work / "one").mkdir()
    shutil.copy(checkout.work / "outputs" / "rows" / f"{run}.json", checkout.work / "one" / "row.json")
    found = {}
    for call, answer in checkout.ask(_calls(checkout, f"outputs/runs/{run}")):
        if answer["status"] <= 0:
            print(f"no mistake, or without end: {call.name}", file=sys.stderr)
            continue
        said = [line for line in answer["err"].splitlines() if line and not line.startswith("note: ")]
        found[call.name] = (
            [answer["status"], *said[-3:]] if said else [answer["status"], *answer["out"].splitlines()[-1:]]
        )
    return found


def _calls(checkout: Checkout, run: str) -> Iterator[Call]:
    lines = (HERE / "mistakes.txt").read_text("utf-8").splitlines()
    for line in lines:
        if line and not line.startswith("#"):
            yield Call(line, "run", words(line.replace("RUN", run)), seconds=20)
    for k, mistake in enumerate(mistakes()):
        source = checkout.work / mistake.source.replace("RUN", run)
        copy = f"{'data/' if 'data.root' in mistake.command else ''}bad/{k}{source.suffix}"
        damage(mistake, source, checkout.work / copy)
        command = mistake.command.replace("BAD", copy.removeprefix("data/")).replace("RUN", run)
        yield Call(mistake.name, "run", words(command), seconds=20)
