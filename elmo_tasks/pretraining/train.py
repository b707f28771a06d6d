"""Training of a biLM from a pack, on a GPU or a CPU, with a time limit after which it can be resumed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmo_tasks import interrupts
from elmo_tasks.bilm.model import BiLM
from elmo_tasks.bilm.sizes import SIZES
from elmo_tasks.errors import UserError
from elmo_tasks.models.lm import LanguageModel
from elmo_tasks.pretraining.evaluate import export, perplexity
from elmo_tasks.pretraining.inputs import Inputs, WordTable
from elmo_tasks.pretraining.pack import Pack
from elmo_tasks.pretraining.schedule import learning_rate
from elmo_tasks.pretraining.settings import Settings, check_same
from elmo_tasks.pretraining.state import INDEX, load_state, save_state
from elmo_tasks.pretraining.step import TrainingStep
from elmo_tasks.pretraining.stream import Stream
from elmo_tasks.training.initial_weights import write_vocabulary
from elmo_tasks.training.memory import HeapTrimmer


class Training:
    """A training and its progress.

    Args:
        pack: the text.
        settings: checked.
        device: ``cpu`` or ``cuda``.
        out: folder of the state, which is resumed if it is there, and of ``bilm``, the exported weights.
        graph: whether updates are captured as a CUDA graph.
        max_bytes: bound of each file of the state.

    Raises:
        UserError: if the text is too short for a window, or the state is damaged or another training's.
    """

    def __init__(
        self,
        pack: Pack,
        settings: Settings,
        device: torch.device,
        out: Path,
        graph: bool = True,
        max_bytes: int | None = None,
    ) -> None:
        self.pack, self.settings, self.out, self.max_bytes = pack, settings, out, max_bytes
        self.vocabulary = pack.vocabulary(settings.vocabulary, settings.min_count)
        torch.manual_seed(settings.seed)
        model = LanguageModel(
            bilm=BiLM(SIZES[settings.size]),
            vocabulary_size=len(self.vocabulary),
            n_samples=1,  # candidates come with each update (inputs.py)
            dropout=settings.dropout,
            forget=settings.forget,
        )
        words = WordTable(pack.words)
        n_samples = min(settings.samples, len(self.vocabulary) - 1)  # one word must be left out of a sample
        target_ids = pack.targets(self.vocabulary)
        inputs = Inputs(words.groups, target_ids, len(self.vocabulary), n_samples, settings.seed)
        self.stream = Stream(pack, inputs, settings)
        self.step = TrainingStep(
            model.to(device).train(),
            words.char_ids.to(device),
            settings.rows,
            settings.window,
            settings.grad_norm,
            settings.precision == "bfloat16",
        )
        self.seconds = 0.0
        self.curve: list[dict[str, Any]] = []
        # "schedule": a state of an earlier version names its own, which may be another
        self.identity = {**settings.to_json(), "schedule": "linear", "pack": pack.digest, "device": device.type}
        if (out / INDEX).exists():
            self._resume()
        else:
            write_vocabulary(self.vocabulary, out / "bilm")
        self.group_sizes: list[int] | None = None
        if graph and device.type == "cuda":
            self.group_sizes = self.stream.survey()
            self.step.capture(*self.stream.example(self.step.updates, self.group_sizes))

    @property
    def model(self) -> LanguageModel:
        return self.step.model

    @property
    def progress(self) -> float:
        """The share of the budget that is spent."""
        if self.settings.epochs is not None:
            return self.step.updates / (self.settings.epochs * self.stream.updates_per_epoch)
        return self.seconds / (60 * (self.settings.budget_minutes or 1))

    def run(self, seconds: float, log_every: int, score_every: int, save_seconds: float) -> bool:
        """Train until the budget is spent, the time is over or a signal has come; then save and export.

        Args:
            seconds: time limit of this call, including the time to save and export.
            log_every: updates between two printed lines.
            score_every: updates between two held-out perplexities; 0 for none but the last.
            save_seconds: seconds between two saved states.

        Returns:
            whether the budget is spent.

        Raises:
            UserError: if the loss is no longer finite; the state on disk is one from before.
        """
        if self.progress >= 1:  # a training that has ended is called again
            export(self.model, self.vocabulary, self.out / "bilm")
            return True
        began = saved = logged = time.monotonic()
        reserve = min(0.2 * seconds, 30.0)  # to score, save and export
        spent_before, first = self.seconds, self.step.updates
        heap = HeapTrimmer()
        on_gpu = self.step.device.type == "cuda"
        for layout, numbers in self.stream.read(self.step.updates, self.group_sizes, pin=on_gpu):
            self.step.run(layout, numbers, self._rate())
            heap.after_step()
            self.seconds = spent_before + time.monotonic() - began
            done = self.step.updates
            at_end = self._is_over(time.monotonic() - began > seconds - reserve)
            if at_end or done % log_every == 0:
                self._log(time.monotonic() - logged)
                logged = time.monotonic()
            if at_end:
                break
            paused = time.monotonic()
            if score_every and done % score_every == 0:
                self._score()
            if paused - saved > save_seconds:
                self.save()
                saved = time.monotonic()
            logged += time.monotonic() - paused  # the printed speed is that of the updates alone
        if self.step.updates > first or not (self.out / INDEX).exists():
            if interrupts.received() is None:  # else there may be no time for it
                self._score()
            self.save()
        export(self.model, self.vocabulary, self.out / "bilm")
        return self.progress >= 1

    def _is_over(self, out_of_time: bool) -> bool:
        """Whether this call ends: the budget is spent, the time is over, or a signal has come."""
        return out_of_time or self.progress >= 1 or interrupts.received() is not None

    def save(self) -> None:
        """Write the state.

        Raises:
            UserError: if a weight is not finite, or the state cannot be written.
        """
        if not bool(self.step.weights.isfinite().all()):
            raise self._diverged()
        about = {**self._about(), "identity": self.identity, "curve": self.curve, "seconds": self.seconds}
        save_state(self.out, self._tensors(), about, self.max_bytes)

    def _about(self) -> dict[str, Any]:
        return {"updates": self.step.updates, "epoch": round(self.step.updates / self.stream.updates_per_epoch, 3)}

    def _tensors(self) -> dict[str, Tensor]:
        step = self.step
        tensors = {"weights": step.weights, "moments": step.moments, "rng": torch.get_rng_state()}
        if step.device.type == "cuda":
            tensors["rng_cuda"] = torch.cuda.get_rng_state(step.device)
        for k, (hidden, cell) in enumerate(step.carried):
            tensors |= {f"hidden_{k}": hidden, f"cell_{k}": cell}
        return tensors

    def _resume(self) -> None:
        tensors, about = load_state(self.out)
        check_same(self.identity, about["identity"], str(self.out / INDEX))
        for name, value in self._tensors().items():
            found = tensors.get(name)
            if found is None or found.shape != value.shape or found.dtype != value.dtype:
                raise UserError(f"{self.out / INDEX}: the state of another training: {name} has another size")
            if not name.startswith("rng"):
                value.copy_(found)
        torch.set_rng_state(tensors["rng"])
        if "rng_cuda" in tensors:
            torch.cuda.set_rng_state(tensors["rng_cuda"], self.step.device)
        self.step.updates, self.seconds, self.curve = about["updates"], about["seconds"], about["curve"]
        print(f"resumed after {self.step.updates:,} updates ({about['epoch']} epochs)", flush=True)

    def _rate(self) -> float:
        s = self.settings
        return learning_rate(s.rate, s.warm_up, self.step.updates, self.progress)

    def _log(self, seconds: float) -> None:
        loss, norm, n = self.step.sums.tolist()
        self.step.sums.zero_()
        if not np.isfinite([loss, norm]).all():
            raise self._diverged()
        rate = n * self.settings.rows * self.settings.window / seconds
        point = {**self._about(), "loss": round(loss / n, 4), "seconds": round(self.seconds, 1)}
        print(f"{point} norm {norm / n:.2f} rate {self._rate():.2e} {rate:,.0f} tokens/s", flush=True)

    def _score(self) -> None:
        found = {name: round(value, 3) for name, value in perplexity(self.model, self.pack, self.vocabulary).items()}
        if not np.isfinite([*found.values()]).all():
            raise self._diverged()
        self.curve.append({**self._about(), "seconds": round(self.seconds, 1), **found})
        print(f"held out: {self.curve[-1]}", flush=True)

    def _diverged(self) -> UserError:
        kept = f"; the last good state is kept in {self.out}" if (self.out / INDEX).exists() else ""
        return UserError(
            f"the loss is not finite after {self.step.updates:,} updates: training has diverged; lower --rate{kept}"
        )
