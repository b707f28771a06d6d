"""Time and memory of a training step of each task model.

``python benchmarks/task_models.py [scale=cpu] [only=srl,coref] [KEY=VALUE ...]``

For each task: milliseconds a step (median) without ELMo, and with ELMo at both places from stored layers; tokens a
second; ELMo's share of the step (everything that a step with it takes longer: reading layers, mixing, wider products);
and how much of that is reading. Then the peak memory of one large batch of SQuAD's paragraphs, and of the longest
document of coreference in training and in scoring. Compare the numbers of one run with each other, not with those of
another run.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from hydra import compose, initialize_config_dir
from machine import peak_megabytes
from torch import nn

from elmo_tasks.assembly import build_bilm, build_data, build_elmo, build_model, build_module, build_store
from elmo_tasks.config.compose import validate
from elmo_tasks.data.squad import Paragraph, SquadGold, SquadItem
from elmo_tasks.data.tokens import tokenize
from elmo_tasks.training.memory import keep_freed_memory

CONF = Path(__file__).parents[1] / "conf"
TASKS = ("sst5", "ner", "snli", "squad", "srl", "coref")
N_STEPS, N_WARM_UP = 15, 3
PARAGRAPHS, PARAGRAPH_TOKENS, QUESTION_TOKENS = 45, 400, 20


def configured(overrides: Sequence[str]) -> dict[str, Any]:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return validate(compose("config", list(overrides))).to_json()


def built(cfg: dict[str, Any]) -> tuple[Any, nn.Module, torch.optim.Optimizer]:
    """The data with its layers, the model and the optimizer of a run."""
    torch.manual_seed(0)
    bilm = build_bilm(cfg)
    data = build_data(cfg)
    data.read()
    data.use_layers(build_store(cfg, bilm), ["train"])
    model = build_model(cfg, data, build_elmo(cfg, bilm)).train()
    optimizer = build_module(cfg, model).make_optimizer([p for p in model.parameters() if p.requires_grad])
    return data, model, optimizer


def step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: Any, grad_norm: float | None) -> None:
    optimizer.zero_grad()
    loss = model.loss(model(batch), batch) + model.elmo.penalty()  # type: ignore[operator, union-attr]
    loss.backward()
    if grad_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), grad_norm)
    optimizer.step()


def median_ms(calls: Sequence[Callable[[], Any]]) -> float:
    times = []
    for call in calls:
        start = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times[N_WARM_UP:])


def time_steps(cfg: dict[str, Any]) -> tuple[float, float, float]:
    """Milliseconds of making a batch and of a whole step, and real tokens of a batch."""
    data, model, optimizer = built(cfg)
    loaders = [data.epoch(number) for number in range(N_STEPS)]
    batches = [(loader.dataset, batch) for loader in loaders for batch in loader.batch_sampler][: N_STEPS + N_WARM_UP]
    items = [[dataset[k] for k in batch] for dataset, batch in batches]
    tokens = statistics.mean(sum(len(t) for item in batch for t in data.reader.texts(item)) for batch in items)
    made: list[Any] = []
    making = median_ms([lambda batch=batch: made.append(data.collate(batch)) for batch in items])
    grad_norm = cfg["task"]["training"]["grad_norm"]
    stepping = median_ms([lambda batch=batch: step(model, optimizer, batch, grad_norm) for batch in made])
    return making, making + stepping, tokens


def print_steps(tasks: Sequence[str], scale: str, overrides: Sequence[str]) -> None:
    print(f"\nscale={scale}, ms a training step")
    print(f"{'task':8}{'none':>9}{'both':>9}{'tokens/s':>10}{'ELMo share':>12}{'of it reading':>15}")
    for task in tasks:
        keys = [f"task={task}", f"scale={scale}", *overrides]
        making, plain, _ = time_steps(configured([*keys, "elmo.placement=none"]))
        reading, with_elmo, tokens = time_steps(configured([*keys, "elmo.placement=both"]))
        cost = with_elmo - plain
        reading_share = f"{(reading - making) / cost:.0%}" if cost > 0 else "-"  # with so little cost, noise decides
        speed = f"{1000 * tokens / with_elmo:,.0f}"
        print(f"{task:8}{plain:9.1f}{with_elmo:9.1f}{speed:>10}{cost / with_elmo:12.0%}{reading_share:>15}", flush=True)


def measure_large_batch(scale: str, overrides: Sequence[str]) -> tuple[float, float]:
    """Peak memory of this process before and after one training step on a large batch, in MB."""
    keep_freed_memory()
    cfg = configured(["task=squad", f"scale={scale}", "elmo.placement=both", *overrides])
    data, model, optimizer = built(cfg)
    words = [word for item in data.items["train"] for word in item.paragraph.words]
    items = []
    for k in range(PARAGRAPHS):
        context = " ".join(words[k * 100 : k * 100 + PARAGRAPH_TOKENS])
        tokens = tokenize(context, split_hyphens=True)[:PARAGRAPH_TOKENS]
        paragraph = Paragraph(context, tokens, [token.word for token in tokens])
        gold = SquadGold(id=str(k), number=k, answers=["x"])
        items.append(SquadItem(paragraph.words[:QUESTION_TOKENS], paragraph, (3, 5), gold))
    data.store.fill([text for item in items for text in data.reader.texts(item)])
    before = peak_megabytes()
    for _ in range(2):
        step(model, optimizer, data.collate(items), None)
    return before, peak_megabytes()


def measure_longest_document(scale: str, overrides: Sequence[str]) -> tuple[float, float, float, int]:
    """Peak memory, in MB, before, after training on the longest document (cut as in training), and after scoring it."""
    keep_freed_memory()
    cfg = configured(["task=coref", f"scale={scale}", "elmo.placement=both", *overrides])
    data, model, optimizer = built(cfg)
    longest = max(data.items["train"], key=lambda item: len(item.speakers))
    before = peak_megabytes()
    step(model, optimizer, data.collate([data.reader.vary(longest, random.Random(0))]), None)
    trained = peak_megabytes()
    with torch.no_grad():
        model.eval()(data.collate([longest]))
    return before, trained, peak_megabytes(), len(longest.speakers)


def print_memory(overrides: Sequence[str]) -> None:
    print(f"\npeak memory of a SQuAD batch, {PARAGRAPHS} paragraphs of {PARAGRAPH_TOKENS} tokens, MB")
    for scale in ("cpu", "paper"):
        before, after = in_a_fresh_process(measure_large_batch, scale, overrides)
        print(f"scale={scale:6} {after - before:8,.0f} for the steps, {after:8,.0f} for the process", flush=True)
    print("\npeak memory of the longest training document of coreference, MB")
    for scale in ("cpu", "paper"):
        before, trained, scored, n_tokens = in_a_fresh_process(measure_longest_document, scale, overrides)
        print(
            f"scale={scale:6} {trained - before:8,.0f} for a training step on a stretch of it, "
            f"{scored - before:8,.0f} with scoring all of its {n_tokens:,} tokens, {scored:8,.0f} for the process",
            flush=True,
        )


def in_a_fresh_process(measure: Callable[..., Any], *arguments: Any) -> Any:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        return fresh.submit(measure, *arguments).result()


def main(arguments: list[str]) -> None:
    scales = [a.removeprefix("scale=") for a in arguments if a.startswith("scale=")] or ["cpu", "paper"]
    tasks = [task for a in arguments if a.startswith("only=") for task in a.removeprefix("only=").split(",")] or TASKS
    with tempfile.TemporaryDirectory() as outputs:
        overrides = [a for a in arguments if not a.startswith(("scale=", "only="))]
        overrides += [
            f"paths.outputs={outputs}",
            "trainer.progress=false",
            "trainer.accelerator=cpu",
            "words.any_dim=true",
        ]
        keep_freed_memory()
        print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
        for scale in scales:
            print_steps(tasks, scale, overrides)
        print_memory(overrides)


if __name__ == "__main__":
    main(sys.argv[1:])
