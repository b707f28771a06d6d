from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.utils.data import DataLoader

from elmo_tasks.elmo import Elmo
from elmo_tasks.models.base import TaskModel
from elmo_tasks.training.callbacks import AverageWeights, BestCheckpoint, ScoreDev
from elmo_tasks.training.module import TaskModule

N_BATCHES, RATE = 3, 0.1


class Line(TaskModel):
    def __init__(self) -> None:
        super().__init__()
        self.elmo = Elmo(placement="none", n_layers=0, dim=0)
        self.linear = nn.Linear(2, 1)
        self.frozen = nn.Parameter(torch.randn(2), requires_grad=False)
        self.register_buffer("counted", torch.zeros(()))

    def forward(self, batch: Any) -> Tensor:
        self.counted += 1
        return self.linear(batch.x + self.frozen).squeeze(1)  # type: ignore[no-any-return]

    def loss(self, out: Tensor, batch: Any) -> Tensor:
        return (out - batch.y).square().mean()

    def decode(self, out: Tensor, batch: Any) -> Tensor:
        return out


class Scripted:
    """A metric whose scores are fixed beforehand, one an epoch."""

    name = "score"

    def __init__(self, scores: Sequence[float], higher_is_better: bool) -> None:
        self.scores, self.higher_is_better = scores, higher_is_better
        self.epoch = -1
        self.predictions: list[Tensor] = []

    def reset(self) -> None:
        self.epoch += 1

    def update(self, predictions: Tensor, gold: Any) -> None:
        self.predictions.append(predictions)

    def compute(self) -> dict[str, float]:
        return {"score": self.scores[self.epoch]}


def copy_weights(module: pl.LightningModule) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in module.model.state_dict().items()}


class Recorder(pl.Callback):
    """The weights after each update, in each dev scoring and before each update; the rate of each update."""

    def __init__(self) -> None:
        self.after_update: list[dict[str, Tensor]] = []
        self.before_update: list[dict[str, Tensor]] = []
        self.on_dev: list[tuple[int, dict[str, Tensor]]] = []
        self.rates: list[float] = []

    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: Any) -> None:
        self.before_update.append(copy_weights(pl_module))
        self.rates.append(trainer.optimizers[0].param_groups[0]["lr"])

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: Any) -> None:
        self.after_update.append(copy_weights(pl_module))

    def on_validation_batch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: Any) -> None:
        self.on_dev.append((trainer.global_step, copy_weights(pl_module)))


def fitted(
    scores: Sequence[float],
    callbacks: Sequence[pl.Callback] = (),
    schedule: str | None = None,
    max_steps: int = -1,
    higher_is_better: bool = True,
    **options: Any,
) -> tuple[TaskModule, pl.Trainer, Recorder]:
    """One epoch of three updates for each dev score."""
    optimizer: Callable[..., torch.optim.Optimizer] = lambda p: torch.optim.Adam(p, lr=RATE)  # noqa: E731
    metric = Scripted(scores, higher_is_better)
    module = TaskModule(model=Line(), metric=metric, optimizer=optimizer, schedule=schedule, max_steps=max_steps)
    items = [SimpleNamespace(x=torch.randn(4, 2), y=torch.randn(4), gold=None) for _ in range(N_BATCHES)]
    recorder = Recorder()
    trainer = pl.Trainer(
        accelerator="cpu",
        max_epochs=len(scores),
        callbacks=[recorder, *callbacks],
        logger=False,
        enable_progress_bar=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        **options,
    )
    batches: DataLoader[Any] = DataLoader(items, batch_size=None)  # type: ignore[arg-type]
    trainer.fit(module, batches, batches)
    return module, trainer, recorder


def averages(after_update: list[dict[str, Tensor]], decay: float) -> list[dict[str, float | Any]]:
    """After each update, in plain double precision."""
    out: list[dict[str, Any]] = []
    for n, weights in enumerate(after_update):
        kept = min(decay, (1 + n) / (10 + n))
        now = {name: weights[name].double().numpy() for name in ("linear.weight", "linear.bias")}
        out.append({k: w if n == 0 else kept * out[-1][k] + (1 - kept) * w for k, w in now.items()})
    return out


@pytest.mark.parametrize("decay", [0.999, 0.3, 0.0])
@pytest.mark.parametrize("every", [None, 2])
def test_dev_is_scored_with_the_average_weights_and_training_continues_with_its_own(
    tmp_path: Path, decay: float, every: int | None
) -> None:
    average = AverageWeights(decay)
    callbacks = [average, BestCheckpoint(tmp_path / "model.safetensors", average)]
    module, _, seen = fitted([1.0] * 4 if every is None else [1.0] * 8, callbacks, val_check_interval=every)
    expected = averages(seen.after_update, decay)
    assert {step for step, _ in seen.on_dev} >= ({3, 6} if every is None else {2, 5})
    for step, weights in seen.on_dev:
        for name, mean in expected[step - 1].items():
            torch.testing.assert_close(weights[name].double(), torch.from_numpy(mean), atol=1e-6, rtol=1e-5)
        assert torch.equal(weights["frozen"], seen.after_update[0]["frozen"])
    for before, after in zip(seen.before_update[1:], seen.after_update, strict=False):
        assert all(torch.equal(before[name], after[name]) for name in ("linear.weight", "linear.bias", "frozen"))
    assert torch.equal(module.model.linear.weight, seen.after_update[-1]["linear.weight"])


def test_an_average_of_weights_is_another_model_unless_its_decay_is_zero(tmp_path: Path) -> None:
    average = AverageWeights(0.999)
    _, _, seen = fitted([1.0, 1.0], [average, BestCheckpoint(tmp_path / "model.safetensors", average)])
    step, weights = seen.on_dev[-1]
    assert not torch.allclose(weights["linear.weight"], seen.after_update[step - 1]["linear.weight"], atol=1e-3)


@pytest.mark.parametrize("order", [1, -1])
def test_the_saved_weights_are_the_averaged_ones_of_the_best_epoch_in_any_order(tmp_path: Path, order: int) -> None:
    average = AverageWeights(0.999)
    best = BestCheckpoint(tmp_path / "model.safetensors", average)
    module, _, seen = fitted([10.0, 30.0, 20.0, 30.0], [best, average][::order])
    assert (best.best, best.best_epoch) == (30.0, 2)
    expected, saved = averages(seen.after_update, 0.999)[2 * N_BATCHES - 1], load_file(best.path)
    for name, mean in expected.items():
        torch.testing.assert_close(saved[name].double(), torch.from_numpy(mean), atol=1e-6, rtol=1e-5)
    best.restore(module.model)
    assert all(torch.equal(value, saved[name]) for name, value in module.model.state_dict().items())


def test_without_an_average_the_weights_themselves_are_scored_and_saved(tmp_path: Path) -> None:
    best = BestCheckpoint(tmp_path / "model.safetensors")
    _, _, seen = fitted([10.0, 30.0, 20.0], [best])
    assert torch.equal(load_file(best.path)["linear.weight"], seen.after_update[2 * N_BATCHES - 1]["linear.weight"])


@pytest.mark.parametrize("higher_is_better", [True, False])
@pytest.mark.parametrize(
    ("scores", "halvings"),
    [
        ([10.0, 20.0, 30.0, 40.0], [0, 0, 0, 0]),
        ([10.0, 20.0, 20.0, 15.0, 30.0, 25.0, 40.0], [0, 0, 0, 1, 2, 2, 3]),
        ([10.0, 5.0, 7.0, 9.0, 10.5, 0.0], [0, 0, 1, 2, 3, 3]),
        ([50.0, 50.004, 50.008, 50.0], [0, 0, 0, 0]),
    ],
)
def test_the_rate_is_halved_after_each_epoch_without_a_better_dev_score(
    scores: list[float], halvings: list[int], higher_is_better: bool
) -> None:
    signed = scores if higher_is_better else [100 - score for score in scores]
    _, _, seen = fitted(signed, schedule="halve", higher_is_better=higher_is_better)
    assert seen.rates == pytest.approx([RATE / 2**n for n in halvings for _ in range(N_BATCHES)])


@pytest.mark.parametrize(("max_steps", "n_updates"), [(-1, 4 * N_BATCHES), (7, 7), (100, 4 * N_BATCHES)])
def test_the_rate_falls_in_a_line_to_zero(max_steps: int, n_updates: int) -> None:
    stop = ScoreDev(None, max_steps)
    _, trainer, seen = fitted([1.0] * 4, [stop], "linear", max_steps, reload_dataloaders_every_n_epochs=1)
    assert seen.rates == pytest.approx([RATE * (1 - k / n_updates) for k in range(n_updates)])
    assert trainer.optimizers[0].param_groups[0]["lr"] == 0


def test_the_rate_decays_by_a_thousandth_after_every_hundred_updates() -> None:
    n_epochs = 250 // N_BATCHES
    _, _, seen = fitted([1.0] * n_epochs, schedule="decay")
    assert seen.rates == pytest.approx([RATE * 0.999 ** (k // 100) for k in range(n_epochs * N_BATCHES)], rel=1e-12)


def test_without_a_schedule_the_rate_stays() -> None:
    _, _, seen = fitted([3.0, 2.0, 1.0])
    assert seen.rates == [RATE] * 3 * N_BATCHES


@pytest.mark.parametrize("bound", [1e-3, None])
def test_a_gradient_is_clipped_by_its_norm(bound: float | None) -> None:
    class Norms(pl.Callback):
        def on_train_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: Any) -> None:
            found.append(torch.stack([p.grad.norm() for p in pl_module.parameters() if p.grad is not None]).norm())

    found: list[torch.Tensor] = []
    fitted([1.0], [Norms()], gradient_clip_val=bound)
    assert len(found) == N_BATCHES
    assert all(float(norm) == pytest.approx(1e-3, rel=1e-3) if bound else norm > 0.01 for norm in found)


def test_processes_that_train_together_drop_out_different_units() -> None:
    drawn = []
    for rank in (0, 1, 0):
        torch.manual_seed(7)
        module = TaskModule(model=Line(), metric=Scripted([1.0], True), optimizer=torch.optim.Adam)
        module._trainer = SimpleNamespace(world_size=2, global_rank=rank)  # type: ignore[assignment]
        module.on_train_start()
        drawn.append(torch.rand(4))
    assert torch.equal(drawn[0], drawn[2])
    assert not torch.equal(drawn[0], drawn[1])
