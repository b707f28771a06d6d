"""Training of a biLM: the loop over updates, its schedule, its scores, its saved state."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from elmo_tasks import interrupts
from elmo_tasks.errors import UserError
from elmo_tasks.metrics.perplexity import Perplexity
from elmo_tasks.pretrain.heldout import score_heldout
from elmo_tasks.pretrain.inputs import Inputs, Layout, WordTable
from elmo_tasks.pretrain.model import LanguageModel
from elmo_tasks.pretrain.settings import Settings
from elmo_tasks.pretrain.state import read_state, same_sizes
from elmo_tasks.pretrain.step import OptimizerFactory, TrainingStep
from elmo_tasks.pretrain.team import Team
from elmo_tasks.pretrain.text import LmData
from elmo_tasks.tensors import write_tensors
from elmo_tasks.training import tree
from elmo_tasks.training.memory import HeapTrimmer

STATE, WEIGHTS = "state.safetensors", "model.safetensors"
LOGGED = 10
"""Updates between two lines of the curves."""


@dataclass
class Progress:
    """What a training has behind it, as JSON.

    Attributes:
        updates: how many.
        seconds: of training, in all processes that it was resumed in.
        curve: the scores; a point has epoch (from 1; 0 is before training), step, dev, seconds and train_loss.
        best: the best score; ``best_epoch`` and ``best_step`` say when.
        lowest: the best score at the end of an epoch, for the schedule ``halve``, and ``halved`` how often it halved.
        patience_over: whether patience has ended the training.
        resumed_after: the updates after which it was resumed.
        code: what :class:`Training` was given as such, in the order of use.
    """

    updates: int = 0
    seconds: float = 0.0
    curve: list[dict[str, Any]] = field(default_factory=list)
    best: float | None = None
    best_epoch: int = 0
    best_step: int = 0
    lowest: float | None = None
    halved: int = 0
    patience_over: bool = False
    resumed_after: list[int] = field(default_factory=list)
    code: list[Any] = field(default_factory=list)


class Watch(Protocol):
    """Shows or logs a training."""

    def began(self, training: Training) -> None:
        """Before the first update of this process."""

    def updated(self, training: Training) -> None:
        """After each update; to read a loss waits for a GPU."""

    def scored(self, training: Training) -> None:
        """After each score, which is the curve's last point."""

    def ended(self) -> None:
        """After the last update of this process, also if it failed."""

    def state(self) -> Any:
        """What is saved with the training, as JSON or tensors."""

    def resume(self, state: Any) -> None:
        """Go on from what was saved."""


class Training:
    """A training and its progress.

    Args:
        model: with its initial weights.
        data: has a pack.
        settings: how to train.
        optimizer: makes the optimizer.
        folder: of :data:`STATE`, and of :data:`WEIGHTS` if the best weights are kept.
        watch: shows it.
        device: ``cpu`` or a GPU.
        team: the processes that train together.
        identity: of the training, as JSON: a state with another one is refused.
        code: that trains, as JSON.
        graph: whether gradients are captured as a CUDA graph.
    """

    def __init__(
        self,
        model: LanguageModel,
        data: LmData,
        settings: Settings,
        optimizer: OptimizerFactory,
        folder: Path,
        watch: Watch,
        *,
        device: torch.device,
        team: Team = Team(),  # noqa: B008 (frozen)
        identity: dict[str, Any] | None = None,
        code: Any = None,
        graph: bool = True,
    ) -> None:
        self.data, self.settings, self.folder, self.watch = data, settings, folder, watch
        self.team, self.identity, self.graph = team, identity or {}, graph and device.type == "cuda"
        self.words, self.progress, self.stopped = WordTable(data.pack.words), Progress(code=[code]), False
        self.rows = team.rows(data.batch_size)
        self.inputs = Inputs(data, self.words, model.n_samples, settings.seed, self.rows)
        window = (2, data.window, self.rows.stop - self.rows.start)
        char_ids = self.words.char_ids.to(device)
        self.step = TrainingStep(
            model.to(device).train(), char_ids, window, optimizer, settings.grad_norm, settings.bfloat16, team
        )
        self.base_rates = [part["lr"] for part in self.step.optimizer.param_groups]
        self.average: list[Tensor] | None = None
        self._resumed = False
        if team.n > 1:  # else every process would drop out the same units
            torch.manual_seed(torch.initial_seed() + team.rank)

    @property
    def model(self) -> LanguageModel:
        return self.step.model

    @property
    def path(self) -> Path:
        """The file of the state."""
        return self.folder / STATE

    @property
    def spent(self) -> float:
        """The share of the budget that is spent."""
        return self.settings.spent(self.progress.updates, self.progress.seconds, self.data.updates_per_epoch)

    @property
    def is_finished(self) -> bool:
        return self.progress.patience_over or self.spent >= 1

    @property
    def epoch(self) -> int:
        """The number of the last update's epoch, from 1."""
        return (self.progress.updates - 1) // self.data.updates_per_epoch + 1

    @property
    def loss(self) -> float:
        """The last update's loss, times the steps of a window."""
        return float(self.step.loss) * self.data.window

    @property
    def rates(self) -> list[float]:
        """The learning rates of the next update."""
        factor = self.settings.rate_factor(self.progress.updates, self.spent, self.progress.halved)
        return [base * factor for base in self.base_rates]

    def run(self, seconds: float = math.inf) -> None:
        """Train until the budget is spent, patience or the time is over, or a signal has come; then save.

        Args:
            seconds: time limit of this call, of which a part is left to score and save.

        Raises:
            UserError: if what was found is no longer finite; the state on disk is one from before.
        """
        if self.is_finished:
            return
        if self._resumed:
            self.progress.resumed_after.append(self.progress.updates)
        with interrupts.deferred():
            self.watch.began(self)
            try:
                self._run(seconds)
            finally:
                self.watch.ended()

    def _run(self, limit: float) -> None:
        progress, began, before = self.progress, time.monotonic(), self.progress.seconds
        saved, heap = began, HeapTrimmer()
        if self.settings.score_first and not progress.curve:
            self._score(0)
        with closing(self._inputs()) as updates:
            for layout, numbers in updates:
                self._update(layout, numbers)
                heap.after_step()
                now = time.monotonic()
                progress.seconds = before + now - began
                self.watch.updated(self)
                self.stopped = self.team.any(interrupts.received() is not None, self.step.device)
                out_of_time = now - began > limit - min(0.2 * limit, 30.0)
                is_scored = self._is_scored or (out_of_time and not self.stopped)
                if is_scored:
                    self._score(self.epoch)
                is_last = self.is_finished or self.stopped or out_of_time
                is_due = self.team.any(now - saved > self.settings.save_every, self.step.device)
                if is_scored or is_last or is_due:
                    self.save()
                    saved = time.monotonic()
                    self.stopped = self.team.any(interrupts.received() is not None, self.step.device)
                if is_last or self.stopped:
                    return

    def _inputs(self) -> Generator[tuple[Layout, Tensor]]:
        sizes = None
        if self.graph:
            sizes = self.inputs.survey()
            window = next(self.data.windows(self.progress.updates)).of_rows(self.rows)
            self.step.capture(*self.inputs.make(window, 0, sizes))
        return self.inputs.stream(self.progress.updates, sizes, pin=self.step.device.type == "cuda")

    def _update(self, layout: Layout, numbers: Tensor) -> None:
        progress, settings = self.progress, self.settings
        for part, rate in zip(self.step.optimizer.param_groups, self.rates, strict=True):
            part["lr"] = rate
        softmax_alone = progress.updates < settings.softmax_epochs * self.data.updates_per_epoch
        self.step.find_gradients(layout, numbers, with_bilm=not softmax_alone)
        if self.step.device.type == "cpu" or progress.updates % LOGGED == 0:  # to read the norm waits for a GPU
            self._expect_finite("the gradient", self.step.norm)
        self.step.update()
        progress.updates += 1
        if settings.average is not None:
            self._add_to_average(settings.average)

    def _add_to_average(self, decay: float) -> None:
        """As TensorFlow does when given the number of updates: a fixed decay would keep the untrained weights long."""
        weights, n = [vector.detach() for vector in self.step.vectors], self.progress.updates - 1
        if self.average is None:
            self.average = [vector.clone() for vector in weights]
        torch._foreach_lerp_(self.average, weights, 1 - min(decay, (1 + n) / (10 + n)))

    @property
    def _is_scored(self) -> bool:
        """Whether the model is scored after this update, whatever ends this call."""
        number = (self.progress.updates - 1) % self.data.updates_per_epoch + 1
        every = self.settings.score_every
        regular = every != 0 and (number == self.data.updates_per_epoch or (every and number % every == 0))
        return bool(regular or self.spent >= 1)

    def _score(self, epoch: int) -> None:
        """Add a point to the curve, keep the weights if they are the best, and see whether patience is over."""
        for vector in self.step.vectors:
            self._expect_finite("a weight", vector)
        progress, settings = self.progress, self.settings
        with self._averaged():
            scores = self.score_heldout()
            value = scores[Perplexity.name]
            self._expect_finite("the perplexity", torch.tensor(value))
            loss = None if epoch == 0 else self.loss
            point = {"epoch": epoch, "step": progress.updates, "dev": scores, "train_loss": loss}
            progress.curve.append({**point, "seconds": round(progress.seconds, 2)})
            if progress.best is None or value < progress.best:
                progress.best, progress.best_epoch, progress.best_step = value, epoch, progress.updates
                if settings.keep_best and self.team.rank == 0:
                    weights = {name: value.detach().cpu() for name, value in self.model.state_dict().items()}
                    write_tensors(self.folder / WEIGHTS, weights, "the weights")
        if epoch and progress.updates % self.data.updates_per_epoch == 0:
            progress.patience_over = settings.patience is not None and epoch - progress.best_epoch >= settings.patience
            if progress.lowest is None or value < progress.lowest:
                progress.lowest = value
            else:
                progress.halved += 1
        self.watch.scored(self)

    def score_heldout(self) -> dict[str, float]:
        """The scores of the model as it is, on as much of the held-out text as the settings say."""
        windows = islice(self.data.heldout(), self.settings.heldout_windows)
        own = (window.of_rows(self.rows) for window in windows)
        metric = score_heldout(self.model, self.words, self.data.target_ids, own, self.settings.bfloat16)
        sums = torch.tensor(metric.sums, dtype=torch.float64, device=self.step.device)
        metric.sums = self.team.sum_(sums).tolist()
        return metric.compute()

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """The model has the average of its weights, if there is one."""
        weights = [vector.detach().clone() for vector in self.step.vectors] if self.average else []
        for vector, mean in zip(self.step.vectors, self.average or [], strict=bool(self.average)):
            vector.data.copy_(mean)
        yield
        for vector, own in zip(self.step.vectors, weights, strict=bool(weights)):
            vector.data.copy_(own)

    def _expect_finite(self, what: str, found: Tensor) -> None:
        if not bool(found.isfinite().all()):
            kept = f"; the last good state is kept in {self.folder}" if self.path.exists() else ""
            raise UserError(
                f"{what} is not finite after {self.progress.updates:,} updates: training has diverged; "
                f"{self.settings.remedy}{kept}"
            )

    def save(self) -> None:
        """Write the state.

        Raises:
            UserError: if a weight is not finite, or the state cannot be written.
        """
        for vector in self.step.vectors:
            self._expect_finite("a weight", vector)
        state = {**self._tensors(), "optimizer": self.step.optimizer.state_dict(), "random": self._random()}
        state["carried"] = [torch.cat(self.team.gather(part), dim=1) for pair in self.step.carried for part in pair]
        state |= {"progress": asdict(self.progress), "identity": self.identity, "watch": self.watch.state()}
        if self.team.rank == 0:
            tree.write_tree(self.path, state)

    def _tensors(self) -> dict[str, list[Tensor]]:
        return {"weights": [vector.detach() for vector in self.step.vectors], "average": self.average or []}

    def _random(self) -> dict[str, list[Tensor]]:
        """The states of the generators of all processes."""
        device = self.step.device
        states = {"cpu": torch.get_rng_state()}
        if device.type == "cuda":
            states["cuda"] = torch.cuda.get_rng_state(device)
        return {name: [one.cpu() for one in self.team.gather(state.to(device))] for name, state in states.items()}

    def resume(self) -> None:
        """Go on from the saved state; with another number of processes, with other random numbers.

        Raises:
            UserError: if it is missing, damaged or of another training; this one is then as it was.
        """
        path, remedy, step = self.path, self.settings.restart, self.step
        state = read_state(path, remedy, self.identity)
        own = {"weights": self._tensors()["weights"], "carried": [p for pair in step.carried for p in pair]}
        own["carried"] = [p.new_empty(p.shape[0], self.data.batch_size, p.shape[2]) for p in own["carried"]]
        same_sizes(path, remedy, {**own, "average": own["weights"] if state["average"] else []}, state)
        with tree.advising(path, remedy):
            progress, shown = Progress(**state["progress"]), state["watch"]
            step.optimizer.load_state_dict(state["optimizer"])
            self.watch.resume(shown)
        for vector, saved in zip(step.vectors, state["weights"], strict=True):
            vector.data.copy_(saved)
        for part, saved in zip((p for pair in step.carried for p in pair), state["carried"], strict=True):
            part.copy_(saved[:, self.rows])
        self.average = [mean.to(step.device) for mean in state["average"]] or None
        on_cpu, on_gpu = state["random"].get("cpu", []), state["random"].get("cuda", [])
        if len(on_cpu) == self.team.n:
            torch.set_rng_state(on_cpu[self.team.rank])
        if len(on_gpu) == self.team.n and step.device.type == "cuda":
            torch.cuda.set_rng_state(on_gpu[self.team.rank], step.device)
        code = progress.code[-1:] == self.progress.code
        progress.code += [] if code else self.progress.code
        self.progress, self._resumed = progress, True
