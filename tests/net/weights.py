"""Weights after 20 updates: of each task's model in each place of ELMo, and of biLMs.

Bits depend on the processor and on PyTorch; the recording says which, and is compared only where they are the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .checkout import Call, Checkout, words

QUICK = words(
    "data.fraction=0.2 trainer.max_steps=20 trainer.max_epochs=20 trainer.threads=1 trainer.accelerator=cpu "
    "trainer.progress=false logger=none bilm.store.dir=layers"
)
TASKS = {
    "sst5": "task.training.batch_size=8",
    "ner": "task.training.batch_size=8",
    "snli": "task.training.batch_size=8",
    "squad": "task.training.batch_size=4",
    "srl": "task.training.batch_size=8",
    "coref": "task.reader.max_training_sentences=5",
    "nsmc": "task.training.batch_size=8",
    "pos": "words=glove",
}
"""Supervised tasks, with what makes 20 updates quick."""

PLACES = ("none", "input", "output", "both")
OTHERS = {
    "ner, drawn dev batches, finest steps": "task=ner trainer.limit_val_batches=2 trainer.val_check_interval=7",
    "sst5, warm state, int8 off, mean": "task=sst5 bilm.state=warm elmo.mix=mean elmo.layer_norm=true",
    "srl, carried state, last layer": "task=srl bilm.state=carry elmo.mix=last task.training.schedule=linear",
    "snli, tokens kept, gamma one": "task=snli bilm.store.keep=tokens elmo.gamma=one task.training.average=0.9",
    "coref, coupled": "task=coref task.model.cell=coupled task.reader.max_training_sentences=5 elmo.placement=none",
    "ner, words drawn": "task=ner words=random elmo.placement=both seed=2",
}
"""Keys that change what is computed."""

LM = words(
    "task=lm trainer.max_steps=20 trainer.threads=1 trainer.accelerator=cpu trainer.progress=false logger=none "
    "task.data.batch_size=8 task.model.n_samples=64 bilm.options.lstm.dim=64 bilm.options.lstm.projection_dim=16"
)
FINE = words("trainer.max_steps=20 trainer.threads=1 trainer.accelerator=cpu trainer.progress=false logger=none")
PACKED = words(
    "train --pack pack --out trained --size mini --precision float32 --rows 16 --window 5 --samples 64 --epochs 0.12 "
    "--score-every 0"
)


def record(checkout: Checkout) -> dict[str, Any]:
    """By run its name, the digest of its weights and its scores."""
    calls = [
        Call(name, "run", ["run", *words, f"paths.outputs=outputs/{k}"]) for k, (name, words) in enumerate(_runs())
    ]
    pretraining = {
        "packed: pack": words("pack --train data/lm/en/train-00.txt --heldout data/lm/en/heldout.txt --out pack"),
        "packed: train": PACKED,
        "packed: perplexity": words("perplexity --pack pack --bilm mini"),
    }
    calls += [Call(name, "run", ["pretraining", *words]) for name, words in pretraining.items()]
    found: dict[str, Any] = {"machine": checkout.machine()}
    for k, (call, answer) in enumerate(checkout.ask(calls)):
        if answer["status"]:
            found[call.name] = answer["err"].strip().rpartition("\n")[2]
        elif call.name.startswith("packed"):
            found[call.name] = answer["out"].strip().splitlines()[-1]
        else:
            found[call.name] = _result(checkout.work / "outputs" / str(k))
    found["packed: weights"] = {path.name: digest(path) for path in sorted((checkout.work / "trained").rglob("*.hdf5"))}
    return found


def _runs() -> Iterator[tuple[str, list[str]]]:
    for task, quick in TASKS.items():
        for place in PLACES:
            yield f"{task} {place}", [f"task={task}", quick, f"elmo.placement={place}", *QUICK]
    for name, text in OTHERS.items():
        yield name, [*words(text), *QUICK, *([] if "coref" in name else ["task.training.batch_size=8"])]
    yield "lm", LM
    yield "lm with Adam and an average", [*LM, "optimizer@task.optimizer=lm_adam", "task.training.average=0.9"]
    yield "lm from mini on a task's text", [*FINE, *words("task=lm task.lm.init=mini task.lm.text=ner")]
    yield "wsd", ["task=wsd", "test=true", "bilm.store.dir=layers", "trainer.threads=1"]


def _result(outputs: Path) -> dict[str, Any]:
    (row,) = (path for path in (outputs / "rows").glob("*.json"))
    files = sorted(path for path in (outputs / "runs").rglob("*") if path.suffix in (".safetensors", ".hdf5"))
    weights = {path.name: digest(path) for path in files if path.name != "state.safetensors"}
    return {"run": row.stem, "weights": weights, "scores": json.loads(row.read_bytes())["scores"]}


def digest(path: Path) -> str:
    """Of names, shapes and bytes, in the order of the names; of HDF5, which holds no dates here, of the whole file."""
    data = path.read_bytes()
    if path.suffix == ".hdf5":
        return hashlib.sha256(data).hexdigest()[:16]
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    whole = hashlib.sha256()
    for name, about in sorted(header.items()):
        if name != "__metadata__":
            start, end = about["data_offsets"]
            whole.update(
                f"{name} {about['dtype']} {about['shape']}\n".encode() + data[8 + size + start : 8 + size + end]
            )
    return whole.hexdigest()[:16]
