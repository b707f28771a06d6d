"""What is killed, interrupted and started twice, and what must be the same in the end."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from elmo_tasks import interrupts
from elmo_tasks.bilm import BiLM
from elmo_tasks.cli.run import start
from elmo_tasks.command_line import run_command
from elmo_tasks.rows import io
from elmo_tasks.store import store
from elmo_tasks.store.layers import LayerStore
from elmo_tasks.tables import Column, Line, Table, make_command
from elmo_tasks.training.checkpoint import STATE
from elmo_tasks.training.tree import read_tree

from .kind import SAMPLE, tiny_bilm

Outcome = dict[str, Any]

SMALL = [
    *["data=sample", "words=random", "logger=csv", "trainer.accelerator=cpu", "trainer.threads=1"],
    *["trainer.progress=false", "trainer.patience=null"],
]
TINY_BILM = ["elmo.placement=both", "bilm.store.dtype=float32"]
NER = ["task=ner", "trainer.max_epochs=3", *TINY_BILM]
SNLI = ["task=snli", "trainer.max_epochs=3", "elmo.placement=none"]  # its learning rate is halved
LM = [
    *["task=lm", "task.data.batch_size=64", "task.model.n_samples=50", "trainer.max_epochs=3"],
    *["bilm.options.lstm.dim=12", "bilm.options.lstm.projection_dim=6"],
    *["bilm.options.char_cnn.filters=[[1,4],[2,8],[3,8]]", "bilm.options.char_cnn.embedding.dim=4"],
]
VOLATILE = {"created", "seconds", "resumed_after", "layers", "device", "config", "folder"}
"""Fields of a row that may differ between a run that was interrupted and one that was not."""


@dataclass
class Scenario:
    """Something that can be interrupted.

    Attributes:
        run: works below a folder; started again after an interruption, it goes on.
        outcome: what it has left there, in the end.
        prepare: what was there before; None is nothing.
        whole: what must hold after every single interruption; raises AssertionError.
    """

    run: Callable[[Path], None]
    outcome: Callable[[Path], Outcome]
    prepare: Callable[[Path], None] | None = None
    whole: Callable[[Path], None] = lambda folder: None


def command(*overrides: str) -> Callable[[Path], None]:
    """``run.py`` with these overrides, in this process."""

    def run(folder: Path) -> None:
        interrupts.install()
        bilm = [] if "task=lm" in overrides else [f"bilm.path={folder.parent / 'bilm'}"]
        start([*overrides, *SMALL, *bilm, f"paths.outputs={folder}"], "run.py")

    return run


def rows_and_weights(folder: Path) -> Outcome:
    """All rows without what is another each time, and the digests of all weights and curves.

    Of a saved state, the weights that training would go on from; it has times besides.
    """
    rows = [io.to_json(io.read_row(path)) for path in sorted((folder / "rows").glob("*.json"))]
    files = sorted([*folder.glob("runs/*/model.safetensors"), *folder.glob("runs/*/bilm/*")])
    digests = {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    digests |= {str(path.relative_to(folder)): _weights(path) for path in folder.glob(f"runs/*/{STATE}")}
    left = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.name.endswith((".partial", ".tmp"))]
    curves = {str(path.relative_to(folder)): _curve(path) for path in sorted(folder.glob("runs/*/metrics.csv"))}
    return {"rows": _without(rows, VOLATILE), "files": digests, "left": left, "curves": curves}


def _weights(state: Path) -> str:
    """A digest of the weights in a saved state."""
    found = read_tree(state)
    weights = found.get("weights") or found["state_dict"].values()
    return hashlib.sha256(b"".join(t.numpy().tobytes() for t in weights)).hexdigest()


def _curve(path: Path) -> list[str]:
    """A file of curves without its column of seconds, if there is one."""
    lines = [line.split(",") for line in path.read_text().splitlines()]
    kept = [k for k, name in enumerate(lines[0]) if "second" not in name and "time" not in name]
    return [",".join(line[k] for k in kept) for line in lines]


def _without(value: Any, names: set[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(part, names) for key, part in value.items() if key not in names}
    return [_without(part, names) for part in value] if isinstance(value, list) else value


def rows_agree_with_weights(folder: Path) -> None:
    """A finished row is there, and the weights beside it are those that it was measured with."""
    (row,) = (io.finished_row(path) for path in (folder / "rows").glob("*.json"))
    (path,) = [path for path in folder.glob("runs/*/model.safetensors") if ".partial" not in str(path)]
    assert row is not None
    assert hashlib.sha256(path.read_bytes()).hexdigest() == row.weights, "a row and another run's weights"


def fill_store(folder: Path) -> None:
    """Fill a layer store in many small shards."""
    store._SHARD_TOKENS = 60
    LayerStore(folder / "layers", tiny_bilm(), dtype="float32").fill(_sentences())


def stored(folder: Path) -> Outcome:
    """The bytes of all layers; a fresh look computes nothing."""
    filled = LayerStore(folder / "layers", tiny_bilm(), dtype="float32")
    computed = filled.fill(_sentences()).computed
    sha = hashlib.sha256()
    for sentence in _sentences():
        sha.update(filled.get(sentence).tobytes())
    return {"computed": computed, "layers": sha.hexdigest()}


def _sentences() -> list[list[str]]:
    text = (SAMPLE / "lm" / "en" / "heldout.txt").read_text("utf-8").splitlines()[:1500]
    return [line.split() for line in text if line.split()]


TABLE = Table(
    title="attacked",
    seeds=2,
    lines=(Line("NER", ("task=ner", "trainer.max_epochs=1"), "ner"),),
    columns=(Column("baseline", ("elmo.placement=none",)), Column("ELMo", ("elmo.placement=input",))),
)


def run_table(folder: Path) -> None:
    """A table's command, whose runs are processes of their own."""
    own = [f"bilm.path={folder.parent / 'bilm'}", f"paths.outputs={folder}", f"rows={folder / 'rows'}"]
    run_command(make_command("table", TABLE), ["--run", *SMALL, *own])


def save_bilm(folder: Path) -> None:
    """The tiny biLM that all runs below a folder read."""
    if not (folder / "bilm").exists():
        tiny_bilm().save(folder / "bilm")
        assert torch.equal(BiLM.load(folder / "bilm").encoder.characters[1:], tiny_bilm().encoder.characters[1:])


SCENARIOS: dict[str, Scenario] = {
    "training": Scenario(command(*NER), rows_and_weights),
    "halved rate": Scenario(command(*SNLI), rows_and_weights),
    "LM": Scenario(command(*LM), rows_and_weights),
    "store": Scenario(fill_store, stored),
    "sweep": Scenario(
        command("-m", "task=ner", "trainer.max_epochs=1", "elmo.placement=none", "seed=1,2,3"), rows_and_weights
    ),
    "force": Scenario(
        command(*NER, "force=true"), rows_and_weights, prepare=command(*NER), whole=rows_agree_with_weights
    ),
    "table": Scenario(run_table, rows_and_weights),
}


def difference(found: Outcome, expected: Outcome) -> str:
    """Where two outcomes differ first, or an empty text."""
    for key in expected:
        if found.get(key) != expected[key]:
            both = [json.dumps(each.get(key), default=str)[:300] for each in (found, expected)]
            return f"{key}: {both[0]} != {both[1]}"
    return ""
