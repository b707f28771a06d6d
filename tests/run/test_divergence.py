"""Training that diverges stops with a sentence, and what is not finite is never written."""

import errno
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from elmo_tasks.assembly.trainer import build_trainer
from elmo_tasks.config.compose import validate
from elmo_tasks.errors import UserError
from elmo_tasks.pretrain.model import LanguageModel
from elmo_tasks.runs import run as train
from elmo_tasks.training.budget import Budget
from elmo_tasks.training.checkpoint import STATE

LM = (
    "task=lm",
    "task.data.batch_size=32",
    "task.model.n_samples=50",
    "trainer.max_steps=12",
    "trainer.val_check_interval=4",
    "bilm.options.lstm.dim=12",
    "bilm.options.lstm.projection_dim=6",
    "bilm.options.char_cnn.filters=[[1,4],[2,8],[3,8]]",
    "bilm.options.char_cnn.embedding.dim=4",
)


def files(folder: Path, pattern: str) -> list[Path]:
    return list((folder / "outputs").glob(pattern))


def test_a_loss_that_becomes_nan_stops_the_run_and_leaves_the_best_weights_before(
    composed: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    real, calls = LanguageModel.sampled_loss, []

    def loss(self: Any, *arguments: Any) -> torch.Tensor:
        calls.append(1)
        value: torch.Tensor = real(self, *arguments)
        return value * float("nan") if len(calls) == 6 else value

    monkeypatch.setattr(LanguageModel, "sampled_loss", loss)
    with pytest.raises(UserError, match=r"^the gradient is not finite after 5 updates: training has diverged; lower"):
        train.run(composed(*LM))
    assert not files(tmp_path, "rows/*.json")
    (weights,) = files(tmp_path, "runs/*/model.safetensors")
    assert all(value.isfinite().all() for value in load_file(weights).values())
    assert files(tmp_path, f"runs/*/{STATE}")


@pytest.mark.parametrize(
    "overrides",
    [
        [*LM, "task.optimizer.lr=1e38", "task.training.grad_norm=1e38"],
        [
            "task=sst5",
            "elmo.placement=none",
            "task.optimizer._target_=torch.optim.SGD",
            "~task.optimizer.fused",
            "task.optimizer.lr=1e38",
            "task.training.grad_norm=null",
        ],
    ],
    ids=lambda overrides: overrides[0],
)
def test_a_learning_rate_that_is_far_too_high_writes_no_weights(
    composed: Any, tmp_path: Path, overrides: list[str]
) -> None:
    with pytest.raises(UserError, match=r"is not finite after \d+ updates: training has diverged"):
        train.run(composed(*overrides))
    assert not files(tmp_path, "rows/*.json")
    for weights in files(tmp_path, "runs/*/model.safetensors"):
        assert all(value.isfinite().all() for value in load_file(weights).values())


def test_weights_that_are_not_finite_are_seen_before_they_are_scored(
    composed: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    real = torch.optim.Adagrad.step

    def step(self: Any, closure: Any = None) -> Any:
        result = real(self, closure)
        self.param_groups[0]["params"][0].data[0] = float("inf")
        return result

    monkeypatch.setattr(torch.optim.Adagrad, "step", step)
    with pytest.raises(UserError, match=r"^a weight is not finite after 1 updates"):
        train.run(composed(*LM, "trainer.max_steps=1", "trainer.val_check_interval=1"))
    assert not files(tmp_path, "runs/*/model.safetensors")


def test_gradients_are_clipped_to_the_norm_of_the_configuration(composed: Any) -> None:
    cfg = validate(composed("task=sst5", "task.training.grad_norm=0.25")).to_json()
    assert build_trainer(cfg, Budget(1, None), False, []).gradient_clip_val == 0.25


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("could not create a primitive"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried to "),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 1 GiB"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        MemoryError(),
    ],
)
def test_a_run_for_which_there_is_no_memory_ends_in_a_sentence_and_is_no_result(
    composed: Any, tmp_path: Path, monkeypatch: Any, error: Exception
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(LanguageModel, "loss", fail)
    remedy = r"; or lower task\.training\.batch_tokens or .*; plan=true estimates the need$"
    with pytest.raises(UserError, match=r"^no memory is left \(.*\): raise the limit .*" + remedy) as said:
        train.run(composed(*LM))
    assert " ... " not in str(said.value)
    assert not files(tmp_path, "rows/*.json")
