"""Saved states of training as they may come out of an accident or of somebody's hands.

Half of them have changed bytes. The others are well-formed and have the right digest, with one to three changes of the
tree of containers, numbers and tensors that Lightning is given.
"""

import copy
import io
import pickle
import random
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmo_tasks.assembly import build_model, build_module
from elmo_tasks.config.compose import validate
from elmo_tasks.errors import MAX_SENTENCE, UserError
from elmo_tasks.files import sha256
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.supervised import SupervisedRun
from elmo_tasks.training.checkpoint import STATE
from elmo_tasks.training.state_file import TensorsAndJson
from tests.attack.folders import composed

SMALL = ("task=sst5", "elmo.placement=none", "bilm.path=null", "data.fraction=0.02", "trainer.max_epochs=2")
SMALL += ("task.model.hidden=5", "task.model.pre_encode=5")
VALUES = [None, True, -1, 0, 3, 10**30, 0.5, float("nan"), float("inf"), "", "x", [], {}, (), [1], {"a": 1}, {0: {}}]
TENSORS = [torch.zeros(0), torch.zeros(3), torch.ones(2, 2, dtype=torch.int64), torch.full((5,), float("nan"))]


class Resumable:
    """A run of two epochs, and its state after the first."""

    def __init__(self, folder: Path) -> None:
        self.files = RunFolder(folder, folder / "rows", "a-run")
        self.run = SupervisedRun(validate(composed(folder, *SMALL)).to_json())
        self.run._read()
        self.run.n_epochs = 1
        self.resume(None)
        self.state = (self.files.partial / STATE).read_bytes()
        self.run.n_epochs = 2
        self.expected = self.resume(self.state)

    def resume(self, state: bytes | None) -> str:
        """Train from a state to the end; the digest of the best weights.

        Raises:
            UserError: if the state is refused.
        """
        self.files.partial.mkdir(parents=True, exist_ok=True)
        if state is not None:
            (self.files.partial / STATE).write_bytes(state)
        torch.manual_seed(1)
        module = build_module(self.run.cfg, build_model(self.run.cfg, self.run.data, self.run.elmo))
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            self.run._train(module, self.files)
        return sha256(self.files.partial / "model.safetensors")


def changed(whole: bytes, seed: int, folder: Path) -> bytes:
    """A changed copy of a state."""
    rng = random.Random(seed)
    return damaged(whole, rng) if seed % 2 else forged(whole, rng, folder / "forged")


def damaged(whole: bytes, rng: random.Random) -> bytes:
    """Bytes that are lost, changed, too many, or another kind of file."""
    place, header = rng.randrange(len(whole)), 8 + int.from_bytes(whole[:8], "little")
    within = rng.randrange(header)
    return rng.choice(
        [
            whole[:place],
            whole[:within],
            whole[:place] + bytes([whole[place] ^ (1 << rng.randrange(8))]) + whole[place + 1 :],
            whole[:within] + bytes([whole[within] ^ (1 << rng.randrange(8))]) + whole[within + 1 :],
            whole + rng.randbytes(rng.randint(1, 9)),
            whole[:place] + whole[place + rng.randint(1, 9) :],
            rng.choice([2**63, 2**40, 0, len(whole)]).to_bytes(8, "little") + whole[8:],
            whole[:header].replace(b"tensor", b"tuple", 1) + whole[header:],
            pickle.dumps({"state_dict": {}, "global_step": 3}),
            rng.randbytes(200),
        ]
    )


def forged(whole: bytes, rng: random.Random, path: Path) -> bytes:
    """Another tree with the right digest."""
    path.write_bytes(whole)
    state = TensorsAndJson().load_checkpoint(path)
    for _ in range(rng.choice([1, 1, 2, 3])):
        _change(state, rng)
    TensorsAndJson().save_checkpoint(state, path)
    return path.read_bytes()


def _change(state: Any, rng: random.Random) -> None:
    """Follow the tree to some depth, since most of its leaves are the optimizer's, and change what is there."""
    parent, key = state, rng.choice([*state])
    while isinstance(parent[key], (dict, list)) and parent[key] and rng.random() < 0.75:
        parent = parent[key]
        key = rng.choice([*parent]) if isinstance(parent, dict) else rng.randrange(len(parent))
    kind, before = rng.random(), parent[key]
    if kind < 0.25:
        del parent[key]
    elif kind < 0.4 and isinstance(parent, dict):
        parent[rng.choice(["x", 0, "__class__"])] = parent.pop(key)
    elif kind < 0.5:
        parent[key] = copy.deepcopy(state[rng.choice([*state])])
    elif isinstance(before, Tensor) and kind < 0.8:
        parent[key] = rng.choice([*TENSORS, before.flatten()[:-1], before.unsqueeze(0), before.double(), -before])
    else:
        parent[key] = copy.deepcopy(rng.choice([*VALUES, *TENSORS]))


def is_resumed(one: Resumable, seed: int, folder: Path) -> bool:
    """Whether training goes on from a changed state.

    Raises:
        AssertionError: if bytes were changed and it goes on to anything but the same weights, or if it is refused in
            anything but one sentence.
    """
    state = changed(one.state, seed, folder)
    try:
        found = one.resume(state)
    except UserError as error:
        sentence = str(error).replace(str(one.files.partial), "")
        assert len(sentence) <= MAX_SENTENCE, (seed, sentence)
        assert sentence.isprintable(), (seed, sentence)
        return False
    assert seed % 2 == 0 or found == one.expected, seed
    return True
