"""The part of ``benchmarks/gpu.py`` that runs tasks, and so needs Hydra."""

from __future__ import annotations

import copy
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from task_models import built, configured, step
from torch import Tensor, nn

PLACEMENTS = ("none", "input", "output", "both")
N_STEPS, N_WARM_UP = 12, 3


def configurations(tasks: Sequence[str], placements: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    with tempfile.TemporaryDirectory() as outputs:
        for task in tasks:
            for placement in placements:
                keys = [f"task={task}", f"elmo.placement={placement}", f"paths.outputs={outputs}"]
                keys += ["trainer.progress=false", "trainer.accelerator=cpu"]
                keys += ["words.any_dim=true"] if task != "pos" else []  # which has no word vectors
                if task == "nsmc":
                    keys.append("bilm=mini_ko")
                try:
                    yield f"{task}, {placement}", configured(keys)
                except Exception as error:  # a placement that a task does not have
                    print(f"       {task}, {placement}: {error}")


def without_dropout(model: nn.Module) -> nn.Module:
    """Training mode, the only one in which cuDNN's recurrent layers have a backward pass, but with all dropout at 0."""
    for module in model.modules():
        for name, value in vars(module).items():
            if isinstance(value, float) and ("dropout" in name or name == "p"):
                setattr(module, name, 0.0)
    return model.train()


def loss_and_gradient(model: nn.Module, batch: Any) -> tuple[float, Tensor]:
    loss = model.loss(model(batch), batch)  # type: ignore[operator]
    loss.backward()
    gradients = [p.grad.flatten().cpu() for p in model.parameters() if p.grad is not None]
    return float(loss.detach()), torch.cat(gradients)


def check_tasks(tasks: Sequence[str], device: torch.device) -> bool:
    from gpu import distance, verdict

    good = True
    for name, cfg in configurations(tasks, PLACEMENTS):
        data, model, _ = built(cfg)
        cut = next(iter(data.epoch(0).batch_sampler))[:4]
        batch = data.collate([data.items["train"][k] for k in cut])
        near = without_dropout(model)
        away = copy.deepcopy(near).to(device)
        loss, gradient = loss_and_gradient(near, batch)
        found, found_gradient = loss_and_gradient(away, copy.deepcopy(batch).to(device))
        good &= verdict(f"{name}: loss", abs(found - loss) / max(1.0, abs(loss)), 1e-4)
        good &= verdict(f"{name}: gradient", distance(found_gradient, gradient), 1e-2)
    return good


def time_tasks(tasks: Sequence[str], device: torch.device) -> None:
    from gpu import synchronize

    for name, cfg in configurations(tasks, ("none", "both")):
        data, model, _ = built(cfg)
        model.to(device)
        optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad])
        cuts = [cut for epoch in range(N_STEPS) for cut in data.epoch(epoch).batch_sampler][: N_STEPS + N_WARM_UP]
        items = [[data.items["train"][k] for k in cut] for cut in cuts]
        batches = [data.collate(each).to(device) for each in items]
        for batch in batches[:N_WARM_UP]:
            step(model, optimizer, batch, 5.0)
        synchronize(device)
        start = time.perf_counter()
        for batch in batches[N_WARM_UP:]:
            step(model, optimizer, batch, 5.0)
        synchronize(device)
        taken = (time.perf_counter() - start) / max(1, len(batches) - N_WARM_UP)
        n_tokens = sum(len(t) for each in items for item in each for t in data.reader.texts(item)) / len(items)
        print(f"task     {name:16}{n_tokens / taken:12,.0f} tokens/s, {1000 * taken:.1f} ms a step", flush=True)
