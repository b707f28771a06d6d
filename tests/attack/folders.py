"""Whole folders as input: finished runs, packs and states of a biLM's training, plans, transformers."""

import argparse
import contextlib
import io
import json
import runpy
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from hydra import compose, initialize_config_dir

from elmo_tasks import files, load_run
from elmo_tasks.bilm.sizes import SIZES
from elmo_tasks.cli.run import run_composed
from elmo_tasks.encoders.hf import HuggingFace
from elmo_tasks.errors import UserError
from elmo_tasks.files import sha256
from elmo_tasks.places import CONF
from elmo_tasks.predict.lines import numbered_lines, read_json
from elmo_tasks.pretrain.__main__ import begin, export_state
from elmo_tasks.pretrain.flags import Options
from elmo_tasks.pretrain.pack import Pack, read_pack, write_pack
from elmo_tasks.pretrain.pack_files import HEADER
from elmo_tasks.pretrain.text import LmData
from elmo_tasks.pretrain.train import STATE, Training
from elmo_tasks.tensors import read_metadata, read_tensors, write_tensors
from elmo_tasks.training import tree

from .kind import SAMPLE, TINY, Input, some, tiny_bilm

QUIET = [
    *["words=random", "logger=none", "trainer.accelerator=cpu", "trainer.threads=1", "trainer.progress=false"],
    *["trainer.max_epochs=1", "bilm.store.dtype=float32"],
]
NOT_FORGED = (ValueError, TypeError, OSError, KeyError, AttributeError, RecursionError, UserError)
"""What keeps a forger from putting a digest in: the file is damaged too much."""
SENTENCE = {"tokens": "Anna Berg lives in Berlin ."}


def composed(folder: Path, *overrides: str) -> Any:
    """A configuration that reads the biLM of a folder and writes below it."""
    places = [f"paths.outputs={folder / 'outputs'}", f"bilm.path={folder / 'bilm'}"]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("config", [*QUIET, *places, *overrides])


@contextlib.contextmanager
def silence() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def make_run(folder: Path) -> list[Path]:
    """A finished run, beside its biLM, a file to score and items to predict."""
    tiny_bilm().save(folder / "bilm")
    with silence():
        run_composed(composed(folder, "task=ner", "data.fraction=0.05", "elmo.placement=both"))
    (made,) = (path for path in (folder / "outputs" / "runs").iterdir() if path.is_dir())
    made.rename(folder / "run")
    shutil.rmtree(folder / "outputs")
    (folder / "dev").write_bytes(some(SAMPLE / "conll2003" / "eng.testa", 1500))
    (folder / "items.jsonl").write_text(json.dumps(SENTENCE) + "\n" + json.dumps({"tokens": ["A", "river", "."]}))
    names = ("model.safetensors", "config.json", "run.json", "fitted.json")
    return [folder / "run" / name for name in names]


def read_run(folder: Path) -> Any:
    """What ``predict`` and ``evaluate`` do."""
    run = load_run(folder / "run")
    return run.predict([SENTENCE]), run.evaluate(folder / "dev", "dev")


def read_forged_run(folder: Path) -> Any:
    """The same after somebody has put the digest of the damaged weights into ``run.json``."""
    path = folder / "run" / "run.json"
    with contextlib.suppress(*NOT_FORGED):
        about = files.read_json(path)
        path.write_text(json.dumps({**about, "weights": sha256(folder / "run" / "model.safetensors")}))
    return read_run(folder)


def make_items(folder: Path) -> list[Path]:
    make_run(folder)
    return [folder / "items.jsonl"]


def read_items(folder: Path) -> Any:
    """What ``predict --text items.jsonl --json`` does."""
    inputs = list(read_json(numbered_lines(str(folder / "items.jsonl")), None))
    found = load_run(folder / "run").predict([one.fields for one in inputs], names=[one.name for one in inputs])
    return [json.dumps(prediction, ensure_ascii=False).encode() for prediction in found]


def make_evaluated(folder: Path) -> list[Path]:
    make_run(folder)
    return [folder / "dev"]


def make_pack(folder: Path) -> list[Path]:
    text = (SAMPLE / "lm" / "en" / "heldout.txt").read_text("utf-8").splitlines(keepends=True)
    for name, lines in (("train", text[:60]), ("heldout", text[60:80])):
        (folder / f"{name}.txt").write_text("".join(lines), "utf-8")
    split = {name: [folder / f"{name}.txt"] for name in ("train", "heldout")}
    write_pack(folder / "pack", split, tokens_a_file=500)
    return sorted((folder / "pack").iterdir())


def read_whole_pack(folder: Path) -> Pack:
    """All that is read before the first update."""
    data = LmData(batch_size=4, window=5, vocabulary_size=100, min_count=1, seed=1).use(read_pack(folder / "pack"))
    for window in data.heldout():
        data.target_ids[window.targets]
    return data.pack


def read_forged_pack(folder: Path) -> Pack:
    """The same after somebody has put the digests of the damaged files into the header."""
    path = folder / "pack" / HEADER
    with contextlib.suppress(*NOT_FORGED):
        header = files.read_json(path)
        for name in header["files"]:
            file = folder / "pack" / name
            header["files"][name] = {"bytes": file.stat().st_size, "sha256": sha256(file)}
        path.write_text(json.dumps(header))
    return read_whole_pack(folder)


def training(folder: Path) -> Training:
    """A tiny biLM's training below a folder, resumed if it was begun."""
    own = Options(size="tiny", rows=4, window=5, vocabulary=60, min_count=1, samples=10, epochs=1)
    call = argparse.Namespace(log_every=100, score_every=0, save_minutes=1e9, no_graph=True)
    return begin(own, folder / "pack", folder / "out", torch.device("cpu"), call)


def make_training(folder: Path) -> list[Path]:
    make_pack(folder)
    with silence(), patch.dict(SIZES, tiny=TINY):
        training(folder).run()
    return [folder / "out" / STATE, folder / "out" / "bilm" / "vocabulary.txt"]


def read_training(folder: Path) -> Any:
    """What ``train`` does when it resumes, and ``export``."""
    with silence(), patch.dict(SIZES, tiny=TINY):
        return training(folder), export_state(folder / "out", folder / "exported")


def read_forged_training(folder: Path) -> Any:
    """The same after somebody has put the digest of the damaged content into the file."""
    path = folder / "out" / STATE
    with contextlib.suppress(*NOT_FORGED):
        text, tensors = read_metadata(path)["state"], read_tensors(path)
        write_tensors(path, tensors, "the state", {"state": text, "digest": tree._digest(text, tensors)})
    return read_training(folder)


def make_planned(folder: Path) -> list[Path]:
    tiny_bilm().save(folder / "bilm")
    for name in ("train", "dev"):
        (folder / f"{name}.txt").write_bytes(some(SAMPLE / "sst" / f"{name}.txt", 2000))
    return [
        folder / "train.txt",
        folder / "dev.txt",
        folder / "bilm" / "options.json",
        folder / "bilm" / "weights.hdf5",
    ]


@cache
def plan_of(folder: Path) -> Any:
    splits = [f"task.files.{name}={folder / f'{name}.txt'}" for name in ("train", "dev")]
    return composed(folder, "task=sst5", "elmo.placement=both", "plan=true", *splits)


def read_planned(folder: Path) -> Any:
    """What ``plan=true`` does."""
    with silence():
        return run_composed(plan_of(folder))


def make_transformer(folder: Path) -> list[Path]:
    """A tiny BERT in a user's files."""
    names = runpy.run_path(str(Path(__file__).parents[1] / "tiny_encoders.py"))
    model, tokenizer = names["make"]("bert")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return [folder / name for name in ("config.json", "model.safetensors", "tokenizer.json")]


def read_transformer(folder: Path) -> Any:
    return HuggingFace.load(str(folder)).layers([["the", "cat", "sat"]])


FOLDERS: dict[str, Input] = {
    "run": Input(make_run, read_run),
    "forged run": Input(make_run, read_forged_run),
    "evaluated": Input(make_evaluated, read_run),
    "items": Input(make_items, read_items),
    "pack": Input(make_pack, read_whole_pack),
    "forged pack": Input(make_pack, read_forged_pack),
    "pretraining": Input(make_training, read_training),
    "forged pretraining": Input(make_training, read_forged_training),
    "plan": Input(make_planned, read_planned),
    "transformer": Input(make_transformer, read_transformer),
}
