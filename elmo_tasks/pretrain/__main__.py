"""Train a biLM from a text that was encoded once, without Hydra: ``python -m elmo_tasks.pretrain COMMAND``.

A machine with a GPU needs PyTorch, NumPy, h5py and safetensors, and the folder of the pack (44 MB for 36 million
tokens); no network. ``small``, 20 epochs of 37.5 million positions, in calls of 9 minutes::

    python -m elmo_tasks.pretrain pack --train 'DIR/lm/en/train-*.txt*' --heldout 'DIR/lm/en/heldout.txt*' --out PACK
    python -m elmo_tasks.pretrain train --pack PACK --out OUT --size small --rows 512 --rate 0.002 --dropout 0.05 \
        --epochs 20 --minutes 9

Repeat the second command unchanged until it says that training is complete: it resumes. If the speed is not known,
``--budget-minutes 25`` instead of ``--epochs 20`` lets the learning rate fall to zero over 25 minutes of
training. ``mini`` is the same with ``--size mini --dropout 0``. At every stop ``OUT/bilm`` is a folder for
``bilm.path=``. In an installed package ``elmo-tasks pretrain`` is the same command.
"""

from __future__ import annotations

import argparse
import glob
import math
import time
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path

import torch

from elmo_tasks import interrupts
from elmo_tasks.bilm.model import BiLM
from elmo_tasks.bilm.sizes import SIZES
from elmo_tasks.command_line import run_command
from elmo_tasks.data.corpus import LmVocabulary, check_shards
from elmo_tasks.errors import UserError, counted, quoted
from elmo_tasks.files import remove_temporaries
from elmo_tasks.lock import owned
from elmo_tasks.pretrain.export import VOCABULARY, load, scoring_model, write_bilm, write_vocabulary
from elmo_tasks.pretrain.flags import Options, check_call
from elmo_tasks.pretrain.heldout import score_heldout
from elmo_tasks.pretrain.inputs import WordTable
from elmo_tasks.pretrain.model import LanguageModel
from elmo_tasks.pretrain.pack import read_pack, write_pack
from elmo_tasks.pretrain.state import read_state
from elmo_tasks.pretrain.step import as_one_vector
from elmo_tasks.pretrain.text import LmData
from elmo_tasks.pretrain.train import STATE, Training
from elmo_tasks.processor import device_for, has_gpu, has_instructions
from elmo_tasks.training.memory import keep_freed_memory, limit_primitive_caches

_ANOTHER = "choose another --out"
_SCORED_ROWS, _SCORED_STEPS = 128, 20  # as task=lm scores at scale=cpu


def main(arguments: list[str]) -> None:
    """Run a command.

    Raises:
        UserError: for bad input, a full disk, a training that diverged or a GPU with too little memory.
    """
    options = make_parser().parse_args(arguments)
    try:
        options.command(options)
    except torch.cuda.OutOfMemoryError as error:
        reason = str(error).split(". ")[0]
        remedy = "lower --rows or --samples; a saved state is kept"
        raise UserError(f"the GPU has too little memory ({reason}); {remedy}") from error


def _pack(options: argparse.Namespace) -> None:
    paths = {split: _files(getattr(options, split), split) for split in ("train", "heldout")}
    pack = write_pack(options.out, paths)
    size = sum(path.stat().st_size for path in options.out.iterdir()) / 1_000_000
    positions = f"{pack.n_positions('train'):,} positions to train on, {pack.n_positions('heldout'):,} held out"
    print(f"{options.out}: {positions}, {len(pack.words):,} words, {size:.1f} MB")


def _train(given: argparse.Namespace) -> None:
    began = time.monotonic()
    options = Options(**{field.name: getattr(given, field.name) for field in fields(Options)})
    options.check()
    check_call(given)
    device = _device(given.device)
    if options.precision == "bfloat16" and device.type == "cpu" and not has_instructions("bfloat16"):
        reason = "this processor has no bfloat16 instructions, so training would be many times slower than in float32"
        raise UserError(f"--precision bfloat16: {reason}; give --precision float32")
    keep_freed_memory()
    limit_primitive_caches()
    with owned(given.out / "training.lock", wait=False, remedy=f"let it end, or {_ANOTHER}"):
        remove_temporaries(given.out)
        training = begin(options, given.pack, given.out, device, given)
        with interrupts.deferred():  # a signal that ended the training also waits for the biLM
            training.run(math.inf if given.minutes is None else 60 * given.minutes - (time.monotonic() - began))
            write_bilm(training.model, given.out / "bilm")
    done = training.is_finished
    if training.stopped and not done:
        interrupts.end(f"training is saved after {counted(training.progress.updates, 'update')}")
    print("training is complete" if done else "time limit reached; run the same command again to resume", flush=True)


def begin(options: Options, pack_folder: Path, out: Path, device: torch.device, call: argparse.Namespace) -> Training:
    """A training, resumed if it was begun.

    Args:
        options: checked.
        pack_folder: of the text.
        out: folder of the state and of ``bilm``.
        device: to train on.
        call: has ``log_every``, ``score_every``, ``save_minutes`` and ``no_graph``.

    Raises:
        UserError: if the text is too short for a window, or the state is damaged or another training's.
    """
    if (old := out / "state.json").exists():
        raise UserError(f"{old}: the state of an earlier version, from which this one cannot resume; {_ANOTHER}")
    pack, o = read_pack(pack_folder), options
    data = LmData(
        batch_size=o.rows, window=o.window, vocabulary_size=o.vocabulary, min_count=o.min_count, seed=o.seed
    ).use(pack)
    if not data.updates_per_epoch:
        raise UserError(f"the pack has {data.n_positions:,} positions, but a window takes {o.rows * o.window:,}")
    torch.manual_seed(o.seed)
    model = LanguageModel(
        bilm=BiLM(SIZES[o.size]),
        vocabulary_size=len(data.vocabulary),
        n_samples=o.samples,
        dropout=o.dropout,
        forget=o.forget,
    )
    identity = {**asdict(o), "pack": pack.digest, "device": device.type}
    optimizer = partial(torch.optim.Adam, lr=o.rate, fused=True)
    settings = o.settings(call.score_every, 60 * call.save_minutes, _ANOTHER)
    watch = Printed(call.log_every)
    training = Training(
        model, data, settings, optimizer, out, watch, device=device, identity=identity, graph=not call.no_graph
    )
    if training.path.exists():
        training.resume()
        print(f"resumed after {counted(training.progress.updates, 'update')}", flush=True)
    else:
        write_vocabulary(data.vocabulary, out / "bilm")
    return training


class Printed:
    """Prints the means of loss and gradient norm at intervals, and each score.

    Args:
        every: updates between two lines.
    """

    def __init__(self, every: int) -> None:
        self.every = every

    def began(self, training: Training) -> None:
        self._start(training)

    def _start(self, training: Training) -> None:
        self.sums, self.n, self.since = torch.zeros(2, device=training.step.device), 0, time.monotonic()

    def updated(self, training: Training) -> None:
        self.sums += torch.stack([training.step.loss, training.step.norm])
        self.n += 1
        updates, data = training.progress.updates, training.data
        if updates % self.every and not training.is_finished:
            return
        loss, norm = (self.sums / self.n).tolist()
        speed = self.n * data.batch_size * data.window / (time.monotonic() - self.since)
        done = f"{updates:,} updates, {updates / data.updates_per_epoch:.3f} epochs"
        found = f"loss {loss:.4f}, norm {norm:.2f}, rate {training.rates[0]:.2e}"
        print(f"{done}: {found}, {speed:,.0f} tokens/s", flush=True)
        self._start(training)

    def scored(self, training: Training) -> None:
        point = training.progress.curve[-1]
        scores = ", ".join(f"{name} {value:.3f}" for name, value in point["dev"].items())
        print(f"held out after {point['step']:,} updates: {scores}", flush=True)
        self._start(training)  # the printed speed is that of the updates alone

    def ended(self) -> None:
        pass

    def state(self) -> None:
        return None

    def resume(self, state: object) -> None:
        pass


def export_state(out: Path, folder: Path) -> str:
    """Export the weights of the state in ``out``; returns the digest of the biLM.

    Raises:
        UserError: if the state or its vocabulary is missing or damaged.
    """
    path = out / STATE
    state = read_state(path, _ANOTHER, None)
    vocabulary = LmVocabulary.read(out / "bilm" / VOCABULARY)
    size, weights = state["identity"].get("size"), state["weights"]
    if not isinstance(size, str) or size not in SIZES:
        raise UserError(f"{path}: size must be one of {', '.join(SIZES)}, found {quoted(size)}")
    model = scoring_model(SIZES[size], vocabulary)
    vectors = [as_one_vector([model.softmax_weight, model.softmax_bias]), as_one_vector(list(model.bilm.parameters()))]
    if [getattr(each, "shape", None) for each in weights] != [vector.shape for vector in vectors]:
        raise UserError(f"{out}: the words in bilm/{VOCABULARY} are not those of the state's softmax")
    for vector, saved in zip(vectors, weights, strict=True):
        vector.data.copy_(saved)
    write_vocabulary(vocabulary, folder)
    return write_bilm(model, folder)


def _export(options: argparse.Namespace) -> None:
    print(f"{options.to}: {export_state(options.out, options.to)}")


def _perplexity(options: argparse.Namespace) -> None:
    model, vocabulary = load(options.bilm)
    found = perplexity(model.to(_device(options.device)), vocabulary, options.pack)
    print(f"{options.bilm} on {found}")


def perplexity(model: LanguageModel, vocabulary: LmVocabulary, pack_folder: Path) -> str:
    """The scores of a pack's held-out text, in words."""
    data = LmData(
        batch_size=_SCORED_ROWS,
        window=_SCORED_STEPS,
        vocabulary_size=len(vocabulary),
        min_count=1,
        seed=0,
        vocabulary=vocabulary,
    ).use(read_pack(pack_folder))
    scores = score_heldout(model, WordTable(data.pack.words), data.target_ids, data.heldout()).compute()
    in_words = ", ".join(f"{name} {value:.3f}" for name, value in scores.items())
    return f"{data.n_heldout:,} held-out positions: {in_words}"


def _files(pattern: str, option: str) -> list[Path]:
    found = [Path(name) for name in sorted(glob.glob(pattern))]
    if not found:
        raise UserError(f"--{option} {pattern}: no such file")
    check_shards(found, f"--{option} {pattern}")
    return found


def _device(name: str) -> torch.device:
    if name == "cuda" and not has_gpu():
        raise UserError("--device cuda: there is no GPU that PyTorch can use")
    return torch.device(device_for(name))


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m elmo_tasks.pretrain", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    pack = commands.add_parser("pack", help="encode a text")
    pack.add_argument("--train", required=True, help="file pattern; one tokenised sentence a line")
    pack.add_argument("--heldout", required=True, help="file pattern")
    pack.add_argument("--out", type=Path, required=True, help="folder of the pack")
    pack.set_defaults(command=_pack)
    _add_train(commands.add_parser("train", help=f"train, or resume; leaves OUT/{STATE} and OUT/bilm"))
    export = commands.add_parser("export", help="write the weights of a state; train does so by itself when it stops")
    export.add_argument("--out", type=Path, required=True, help="the folder that train was given")
    export.add_argument("--to", type=Path, required=True, help="folder for options.json, weights.hdf5 and the softmax")
    export.set_defaults(command=_export)
    score = commands.add_parser("perplexity", help="of the held-out text, with the full softmax, the state carried")
    score.add_argument("--pack", type=Path, required=True, help="folder of a pack")
    score.add_argument("--bilm", required=True, help="a folder, or the name of a bundled one")
    _add_device(score)
    score.set_defaults(command=_perplexity)
    return parser


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pack", type=Path, required=True, help="folder of the pack")
    parser.add_argument("--out", type=Path, required=True, help="folder of the state and of the trained biLM")
    for field in fields(Options):
        kind = float if field.default is None else type(field.default)
        default = "" if field.default is None else f" (default: {field.default})"
        option = f"--{field.name.replace('_', '-')}"
        parser.add_argument(option, type=kind, default=field.default, help=field.metadata["help"] + default)
    parser.add_argument("--minutes", type=float, help="time limit of this call in minutes, including saving")
    _add_device(parser)
    parser.add_argument("--no-graph", action="store_true", help="do not capture a CUDA graph")
    parser.add_argument("--log-every", type=int, default=100, help="updates between two lines (default: 100)")
    scores = "updates of an epoch between two perplexities, besides that at its end (default: only that)"
    parser.add_argument("--score-every", type=int, help=f"{scores}; 0 for one at the end of training only")
    saves = "minutes between two saved states (default: 3)"
    parser.add_argument("--save-minutes", type=float, default=3.0, help=saves)
    parser.set_defaults(command=_train)


def _add_device(parser: argparse.ArgumentParser) -> None:
    about = "where to compute (default: auto, a GPU if there is one)"
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help=about)


if __name__ == "__main__":
    run_command(main)
