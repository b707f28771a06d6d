"""Train a biLM from a text that was encoded once: ``python -m elmo_tasks.pretraining COMMAND``.

A machine with a GPU needs PyTorch, NumPy, h5py and safetensors, and the folder of the pack (44 MB for 36 million
tokens); neither Hydra nor a network. ``small``, 20 epochs of 37.5 million positions, in calls of 9 minutes::

    python -m elmo_tasks.pretraining pack --train 'DIR/lm/en/train-*.txt*' --heldout 'DIR/lm/en/heldout.txt*' --out PACK
    python -m elmo_tasks.pretraining train --pack PACK --out OUT --size small --rows 512 --rate 0.002 --dropout 0.05 \
        --epochs 20 --minutes 9

Repeat the second command unchanged until it says that training is complete: it resumes. If the speed is not known,
``--budget-minutes 25`` instead of ``--epochs 20`` lets the learning rate fall to zero over 25 minutes of
training. ``mini`` is the same with ``--size mini --dropout 0``. At every stop ``OUT/bilm`` is a folder for
``bilm.path=``.
"""

from __future__ import annotations

import argparse
import glob
import math
import time
from dataclasses import fields
from pathlib import Path

import torch

from elmo_tasks import interrupts
from elmo_tasks.command_line import run_command
from elmo_tasks.data.corpus import check_shards
from elmo_tasks.errors import UserError, counted
from elmo_tasks.files import remove_temporaries
from elmo_tasks.lock import owned
from elmo_tasks.pretraining.evaluate import export_state, load, perplexity
from elmo_tasks.pretraining.pack import read_pack, write_pack
from elmo_tasks.pretraining.parts import join_files, remove_parts, split_files
from elmo_tasks.pretraining.settings import Settings, expect
from elmo_tasks.pretraining.train import Training
from elmo_tasks.processor import device_for, has_gpu, has_instructions
from elmo_tasks.training.memory import keep_freed_memory, limit_primitive_caches

_MEGABYTE = 1_000_000


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
    size = sum(path.stat().st_size for path in options.out.iterdir()) / _MEGABYTE
    positions = f"{pack.n_positions('train'):,} positions to train on, {pack.n_positions('heldout'):,} held out"
    print(f"{options.out}: {positions}, {len(pack.words):,} words, {size:.1f} MB")


def _train(options: argparse.Namespace) -> None:
    began = time.monotonic()
    settings = Settings(**{field.name: getattr(options, field.name) for field in fields(Settings)})
    settings.check()
    _check_call(options)
    max_bytes = None if options.split_mb is None else int(options.split_mb * _MEGABYTE)
    device = _device(options.device)
    if settings.precision == "bfloat16" and device.type == "cpu" and not has_instructions("bfloat16"):
        reason = "this processor has no bfloat16 instructions, so training would be many times slower than in float32"
        raise UserError(f"--precision bfloat16: {reason}; give --precision float32")
    keep_freed_memory()
    limit_primitive_caches()
    with owned(options.out / "training.lock", wait=False, remedy="let it end, or choose another --out"):
        remove_temporaries(options.out)
        training = Training(read_pack(options.pack), settings, device, options.out, not options.no_graph, max_bytes)
        seconds = math.inf if options.minutes is None else 60 * options.minutes - (time.monotonic() - began)
        score_every = training.stream.updates_per_epoch if options.score_every is None else options.score_every
        with interrupts.deferred():
            done = training.run(seconds, options.log_every, score_every, 60 * options.save_minutes)
        bilm = options.out / "bilm"
        if max_bytes is not None:
            split_files(bilm, max_bytes)
        elif bilm.is_dir():
            remove_parts(bilm)  # of an earlier call
    if interrupts.received() is not None and not done:
        interrupts.end(f"saved after {counted(training.step.updates, 'update')}")
    print("training is complete" if done else "time limit reached; run the same command again to resume", flush=True)


def _check_call(options: argparse.Namespace) -> None:
    """Check that the options that change no weight are in range.

    Raises:
        UserError: naming the option, what it must be and what was found.
    """
    least = {"log_every": 1, "score_every": 0, "split_mb": 0.03}
    for name, bound in least.items():
        value = getattr(options, name)
        expect(value is None or value >= bound, name, f"at least {bound}", value)
    for name in ("minutes", "save_minutes", "split_mb"):
        value = getattr(options, name)
        expect(value is None or 0 < value < math.inf, name, "above 0 and finite", value)


def _export(options: argparse.Namespace) -> None:
    print(f"{options.to}: {export_state(options.out, options.to)}")


def _perplexity(options: argparse.Namespace) -> None:
    model, vocabulary = load(options.bilm)
    pack = read_pack(options.pack)
    found = perplexity(model.to(_device(options.device)), pack, vocabulary)
    scores = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
    print(f"{options.bilm} on {pack.n_positions('heldout'):,} held-out positions: {scores}")


def _join(options: argparse.Namespace) -> None:
    for path in join_files(options.folder):
        print(path)


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
    parser = argparse.ArgumentParser(prog="python -m elmo_tasks.pretraining", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    pack = commands.add_parser("pack", help="encode a text")
    pack.add_argument("--train", required=True, help="file pattern; one tokenised sentence a line")
    pack.add_argument("--heldout", required=True, help="file pattern")
    pack.add_argument("--out", type=Path, required=True, help="folder of the pack")
    pack.set_defaults(command=_pack)
    _add_train(commands.add_parser("train", help="train, or resume; leaves OUT/state.json and OUT/bilm"))
    export = commands.add_parser("export", help="write the weights of a state; train does so by itself when it stops")
    export.add_argument("--out", type=Path, required=True, help="the folder that train was given")
    export.add_argument("--to", type=Path, required=True, help="folder for options.json, weights.hdf5 and the softmax")
    export.set_defaults(command=_export)
    score = commands.add_parser("perplexity", help="of the held-out text, with the full softmax, the state carried")
    score.add_argument("--pack", type=Path, required=True, help="folder of a pack")
    score.add_argument("--bilm", required=True, help="a folder, or the name of a bundled one")
    _add_device(score)
    score.set_defaults(command=_perplexity)
    join = commands.add_parser("join", help="put together the files that --split-mb cut")
    join.add_argument("folder", type=Path, help="that has the parts")
    join.set_defaults(command=_join)
    return parser


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pack", type=Path, required=True, help="folder of the pack")
    parser.add_argument("--out", type=Path, required=True, help="folder of the state and of the trained biLM")
    for field in fields(Settings):
        kind = float if field.default is None else type(field.default)
        default = "" if field.default is None else f" (default: {field.default})"
        option = f"--{field.name.replace('_', '-')}"
        parser.add_argument(option, type=kind, default=field.default, help=field.metadata["help"] + default)
    parser.add_argument("--minutes", type=float, help="time limit of this call in minutes, including saving")
    _add_device(parser)
    parser.add_argument("--no-graph", action="store_true", help="do not capture a CUDA graph")
    parser.add_argument("--log-every", type=int, default=100, help="updates between two lines (default: 100)")
    scores = "updates between two perplexities; 0 for one at the end only (default: once an epoch)"
    parser.add_argument("--score-every", type=int, help=scores)
    saves = "minutes between two saved states (default: 3)"
    parser.add_argument("--save-minutes", type=float, default=3.0, help=saves)
    parts = "split larger files into parts of so many MB, for a transfer with a limit"
    parser.add_argument("--split-mb", type=float, help=parts)
    parser.set_defaults(command=_train)


def _add_device(parser: argparse.ArgumentParser) -> None:
    about = "where to compute (default: auto, a GPU if there is one)"
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help=about)


if __name__ == "__main__":
    run_command(main)
