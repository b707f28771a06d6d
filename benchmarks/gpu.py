"""Correctness and speed on a GPU: ``python benchmarks/gpu.py check | speed | train [KEY=VALUE ...]``.

``check`` compares the GPU's numbers with the CPU's, in 32 bits: the layers of a biLM, a dozen updates of its training
(with and without a CUDA graph), and, if Hydra is installed, a step of each task at each placement. ``speed`` measures,
for reading, training and a step of each task, tokens a second and the rate in percent of that of large matrix products.
``train`` is ``python -m elmo_tasks.pretrain train``, with its options. PyTorch, NumPy, h5py and safetensors are
enough. ``device=cpu`` tries all of it without a GPU.

    check  device=cuda  updates=12
    speed  device=cuda  size=small  rows=512,1024  updates=60  pack=FOLDER (default: the bundled sample)
    both   tasks=sst5,ner,... (default: all; tasks=none leaves them out)
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import torch
from bilm import SAMPLE, first_tokens, sample_sentences
from bilm import flops as reading_gflop
from flops import training_gflop
from torch import Tensor

from elmo_tasks.bilm import BiLM
from elmo_tasks.bilm.sizes import SIZES
from elmo_tasks.command_line import run_command
from elmo_tasks.errors import UserError
from elmo_tasks.nn.characters import PADDING
from elmo_tasks.pretrain.__main__ import main as pretrain
from elmo_tasks.pretrain.inputs import Inputs, WordTable
from elmo_tasks.pretrain.model import LanguageModel
from elmo_tasks.pretrain.pack import Pack, read_pack, write_pack
from elmo_tasks.pretrain.step import TrainingStep
from elmo_tasks.pretrain.text import LmData
from elmo_tasks.pretrain.windows import PackedWindow, training_windows

VOCABULARY, SAMPLES, STEPS = 50_000, 8192, 20
CHECKED_ROWS, CHECKED_SAMPLES, RATE = 16, 512, 0.002
PRODUCT = 8192
KEYS = ("device", "size", "rows", "updates", "pack", "tasks")


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds(call: Callable[[], object], device: torch.device) -> float:
    synchronize(device)
    start = time.perf_counter()
    call()
    synchronize(device)
    return time.perf_counter() - start


@contextmanager
def exact_products() -> Iterator[None]:
    """Switches TF32 off."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


def best_products(device: torch.device, dtype: torch.dtype) -> float:
    """GFLOP/s of large products."""
    n = PRODUCT if device.type == "cuda" else 1024
    a, b = (torch.randn(n, n, device=device).to(dtype) for _ in range(2))
    return 2 * n**3 / 1e9 / min(seconds(lambda: a @ b, device) for _ in range(8))


def open_pack(folder: str | None) -> Pack:
    if folder is not None:
        return read_pack(Path(folder))
    text = SAMPLE / "lm" / "en"
    paths = {"train": sorted(text.glob("train-*.txt")), "heldout": [text / "heldout.txt"]}
    with tempfile.TemporaryDirectory() as made:
        return write_pack(Path(made) / "pack", paths)


class Trained:
    """A biLM in training on windows of a pack."""

    def __init__(
        self, pack: Pack, size: str, rows: int, samples: int, device: torch.device, dropout: float, bfloat16: bool
    ) -> None:
        torch.manual_seed(0)
        data = LmData(batch_size=rows, window=STEPS, vocabulary_size=VOCABULARY, min_count=1, seed=1).use(pack)
        self.words, self.size = WordTable(pack.words), size
        self.inputs = Inputs(data, self.words, samples, seed=1)
        model = LanguageModel(
            bilm=BiLM(SIZES[size]),
            vocabulary_size=len(data.vocabulary),
            n_samples=samples,
            dropout=dropout,
            forget=dropout / 5,
        )
        char_ids, adam = self.words.char_ids.to(device), partial(torch.optim.Adam, lr=RATE, fused=True)
        self.step = TrainingStep(model.to(device).train(), char_ids, (2, STEPS, rows), adam, 10.0, bfloat16)
        windows = training_windows(pack.splits["train"], rows, STEPS, seed=1, epoch=0, skip=0)
        self.windows: list[PackedWindow] = list(islice(windows, 16))
        counts = torch.tensor([self.inputs.group_counts(window).tolist() for window in self.windows])
        self.sizes = counts.amax(dim=0).tolist()

    def capture(self) -> Trained:
        self.step.capture(*self.inputs.make(self.windows[0], 0, self.sizes))
        return self

    def run(self, n_updates: int) -> None:
        torch.manual_seed(7)
        self.losses: list[Tensor] = []
        for update, window in zip(range(n_updates), cycle(self.windows), strict=False):
            self.step.run(*self.inputs.make(window, update, self.sizes))
            self.losses.append(self.step.loss.clone())

    def gflop(self) -> dict[str, float]:
        inputs = self.windows[0].inputs
        lengths = (self.words.char_ids != PADDING).sum(dim=1).numpy()[sorted(set(inputs.flatten().tolist()))]
        return training_gflop(SIZES[self.size], lengths, inputs.size, self.inputs.n_samples)


def distance(found: Tensor, expected: Tensor) -> float:
    """The norm of the difference, relative to that of the expected tensor."""
    return float((found.cpu() - expected.cpu()).norm() / expected.cpu().norm())


def verdict(name: str, value: float, bound: float) -> bool:
    print(f"{'ok    ' if value <= bound else 'FAILED'} {name:64}{value:10.1e} (at most {bound:.0e})", flush=True)
    return value <= bound


def check_reading(device: torch.device) -> bool:
    sentences, good = first_tokens(sample_sentences(), 2000), True
    for state in ("reset", "carry"):
        near, away = BiLM.load("mini"), BiLM.load("mini").to(device)
        batches = [sentences[k : k + 40] for k in range(0, len(sentences), 40)]
        pairs = [
            (a.cpu(), b)
            for batch in batches
            for a, b in zip(away.layers(batch, state), near.layers(batch, state), strict=True)
        ]
        good &= verdict(f"layers, state={state}", max(float((a - b).abs().max()) for a, b in pairs), 1e-3)
    return good


def check_training(device: torch.device, n_updates: int) -> bool:
    """Trains from the same weights on the CPU, on the GPU and with a CUDA graph; then the last two with dropout."""
    pack, good = open_pack(None), True

    def trained(where: torch.device, dropout: float, captured: bool) -> Tensor:
        own = Trained(pack, "mini", CHECKED_ROWS, CHECKED_SAMPLES, where, dropout, bfloat16=False)
        start = torch.cat(own.step.vectors).detach()
        if captured and where.type == "cuda":
            own.capture()
            carried = [part for pair in own.step.carried for part in pair]
            assert not any(part.any() for part in carried), "a capture changed the carried state"
        own.run(n_updates)
        moved = torch.cat(own.step.vectors).detach() - start
        loss = float(torch.stack(own.losses).mean())
        print(f"       {where.type}, dropout {dropout}, graph {captured}: mean loss {loss:.5f}")
        return moved.cpu()

    near = trained(torch.device("cpu"), 0.0, False)
    plain, graph = (trained(device, 0.0, captured) for captured in (False, True))
    name = f"change of the weights in {n_updates} updates"
    good &= verdict(f"{name}, GPU against CPU", distance(plain, near), 2e-2)
    good &= verdict(f"{name}, graph against CPU", distance(graph, near), 2e-2)
    good &= verdict(f"{name}, graph against no graph", distance(graph, plain), 2e-2)
    dropped = [trained(device, 0.1, captured) for captured in (False, True)]
    good &= verdict(f"{name}, with dropout, graph against no graph", distance(*dropped), 2e-2)
    return good


def check(device: torch.device, settings: dict[str, str]) -> bool:
    with exact_products():
        good = check_reading(device)
        good &= check_training(device, int(settings.get("updates", 12)))
        if tasks := read_tasks(settings):
            from gpu_tasks import check_tasks

            good &= check_tasks(tasks, device)
    return good


def time_reading(device: torch.device, size: str, peaks: dict[str, float]) -> None:
    sentences = first_tokens(sample_sentences(), 25_000)
    n_tokens = sum(map(len, sentences))
    for precision, peak in peaks.items():
        bilm = BiLM(SIZES[size]).eval().requires_grad_(False).to(device)
        bilm.precision = precision
        bilm.layers(sentences)
        time_taken = min(seconds(lambda bilm=bilm: bilm.layers(sentences), device) for _ in range(3))
        share = sum(reading_gflop(bilm, sentences)) / time_taken / peak
        print(f"reading  {size:9}{precision:10}{n_tokens / time_taken:12,.0f} tokens/s, {share:.1%} of large products")


def time_training(device: torch.device, size: str, rows: int, n_updates: int, pack: Pack, peak: float) -> None:
    for captured in (False, True) if device.type == "cuda" else (False,):
        time_updates(device, size, rows, n_updates, pack, peak, captured)


def time_updates(
    device: torch.device, size: str, rows: int, n_updates: int, pack: Pack, peak: float, captured: bool
) -> None:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    own = Trained(pack, size, rows, SAMPLES, device, 0.1, bfloat16=True)
    if captured:
        own.capture()
    made = [own.inputs.make(window, k, own.sizes) for k, window in enumerate(own.windows)]

    def updates() -> None:
        for layout, numbers in islice(cycle(made), n_updates):
            own.step.run(layout, numbers)

    own.step.run(*made[0])
    time_taken = seconds(updates, device) / n_updates
    parts = own.gflop()
    memory = torch.cuda.max_memory_allocated(device) / 1e9 if device.type == "cuda" else 0
    print(
        f"training {size:9}{rows:5} rows{rows * STEPS / time_taken:12,.0f} tokens/s "
        f"({'graph' if captured else 'no graph'}), {sum(parts.values()) / time_taken / peak:.1%} of large products "
        f"({', '.join(f'{name} {part:.0f}' for name, part in parts.items())} GFLOP), {1000 * time_taken:.1f} ms, "
        f"{memory:.1f} GB",
        flush=True,
    )


def speed(device: torch.device, settings: dict[str, str]) -> bool:
    peaks = {str(dtype).split(".")[1]: best_products(device, dtype) for dtype in (torch.float32, torch.bfloat16)}
    print("large products: " + ", ".join(f"{name} {peak / 1000:,.1f} TFLOP/s" for name, peak in peaks.items()))
    pack = open_pack(settings.get("pack"))
    for size in settings.get("size", "small").split(","):
        time_reading(device, size, peaks)
        for rows in settings.get("rows", "512,1024").split(","):
            time_training(device, size, int(rows), int(settings.get("updates", 60)), pack, peaks["bfloat16"])
    if tasks := read_tasks(settings):
        from gpu_tasks import time_tasks

        time_tasks(tasks, device)
    return True


def read_tasks(settings: dict[str, str]) -> list[str]:
    wanted = settings.get("tasks", "sst5,ner,snli,squad,srl,coref,nsmc,pos")
    if wanted != "none" and importlib.util.find_spec("hydra") is None:
        print("tasks: left out, since Hydra is not installed (pip install hydra-core)")
        return []
    return [] if wanted == "none" else wanted.split(",")


def read_settings(arguments: list[str]) -> dict[str, str]:
    settings = dict(argument.partition("=")[::2] for argument in arguments)
    for key, value in settings.items():
        if key not in KEYS:
            raise UserError(f"unknown key {key}; expected one of {', '.join(KEYS)}")
        for each in value.split(","):
            if key in ("rows", "updates") and not each.isdecimal():
                raise UserError(f"{key} must be a whole number, found {each}")
            if key == "size" and each not in SIZES:
                raise UserError(f"size must be one of {', '.join(SIZES)}, found {each}")
    return settings


def main(arguments: list[str]) -> int:
    command, *rest = arguments or [""]
    if command == "train":
        pretrain(["train", *rest])
        return 0
    if command not in ("check", "speed"):
        print(__doc__)
        return 1
    settings = read_settings(rest)
    device = torch.device(settings.get("device", "cuda"))
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"torch {torch.__version__}, {name}")
    return 0 if {"check": check, "speed": speed}[command](device, settings) else 1


if __name__ == "__main__":
    run_command(main)
