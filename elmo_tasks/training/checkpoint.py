"""When the state of training is saved, and how an interrupted run resumes from it."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Checkpoint
from torch import Tensor

from elmo_tasks import interrupts
from elmo_tasks.errors import UserError, out_of_memory, shortened
from elmo_tasks.rows.parts import Code
from elmo_tasks.tensors import check_weights
from elmo_tasks.training.curves import Resumable
from elmo_tasks.training.state_file import TensorsAndJson
from elmo_tasks.training.tree import RESTART

STATE = "state.safetensors"
"""The file's name in the folder of a run."""

_MISREAD = (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError)
"""What Lightning and the optimizers raise, up to the first update, where a state is not as they wrote it."""

RngStates = dict[str, list[Tensor]]
"""States of PyTorch's random number generators: under ``cpu`` and ``cuda``, one for each process."""


class ResumeCheckpoint(Checkpoint):
    """Saves the state of training after each dev scoring and each epoch, at intervals, and when a signal comes.

    A run that finds the state resumes from it. The random number generators of all processes are part of the state, so
    that on a CPU the run ends with the same weights as one that was not interrupted; with another number of processes
    the weights differ. Lightning calls a ``Checkpoint`` after all other callbacks, whatever its place in their list.

    Args:
        path: of the file, which is replaced in one rename.
        every: seconds after which the state is saved between two updates too.
        code: the code that this process trains with.
    """

    def __init__(self, path: Path, every: float, code: Code) -> None:
        self.path, self.every = path, every
        self.code = [code]  # of all processes so far, in the order of use
        self.resumed_after: list[int] = []  # updates that were done when the run was resumed
        self._rng_to_restore: RngStates | None = None  # from the state that was read, until the first batch
        self._rng_saved: RngStates = {}
        self._curves: list[dict[str, str]] = []  # what the logger was given so far
        self._went_on = False  # this process has made an update
        self._stopped = False  # by patience, so that there is nothing left to train

    def fit(self, trainer: pl.Trainer, module: pl.LightningModule, data: pl.LightningDataModule) -> None:
        """Train, from the saved state if there is one.

        Raises:
            UserError: if the file is damaged or another model's.
        """
        with interrupts.held("training is saved"):
            if not self.path.exists():
                trainer.fit(module, datamodule=data)
                return
            trainer.num_sanity_val_steps = 0  # the initial weights were scored when the run began
            try:
                trainer.fit(module, datamodule=data, ckpt_path=self.path)
            except _MISREAD as error:
                if self._went_on or out_of_memory(error, RESTART) is not None:
                    raise
                raise UserError(
                    f"{self.path}: not a saved state of this run ({self._difference(module, error)}); {RESTART}"
                ) from error

    def _difference(self, module: pl.LightningModule, error: Exception) -> str:
        """The first weight that does not fit, or else the first line of the error."""
        try:
            self._check(module)
        except UserError as difference:
            return str(difference).removeprefix(f"{self.path}: ")
        return shortened(str(error).splitlines()[0], 120)

    def fits(self, module: pl.LightningModule) -> bool:
        """Whether there is a saved state that is not damaged and has the weights of this model."""
        try:
            self._check(module)
        except UserError:
            return False
        return True

    def _check(self, module: pl.LightningModule) -> None:
        """Check that the saved state is not damaged and has the weights of this model.

        Raises:
            UserError: if not.
        """
        weights = TensorsAndJson().load_checkpoint(self.path).get("state_dict")
        if not isinstance(weights, dict) or not all(isinstance(value, Tensor) for value in weights.values()):
            raise UserError(f"{self.path}: expected tensors in state_dict, found {shortened(repr(weights), 60)}")
        check_weights(module, weights, self.path)

    def discard(self) -> None:
        """Forget the saved state."""
        self.path.unlink(missing_ok=True)

    def state_dict(self) -> dict[str, Any]:
        return {
            "random": self._rng_saved,
            "resumed_after": self.resumed_after,
            "code": [asdict(code) for code in self.code],
            "stopped": self._stopped,
            "logged": curves_to_bytes(self._curves),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._rng_to_restore, self.resumed_after = state_dict["random"], state_dict["resumed_after"]
        self._stopped, self._curves = state_dict["stopped"], curves_from_bytes(state_dict["logged"])
        earlier = [Code(**code) for code in state_dict.get("code", [])]  # states of earlier versions have none
        self.code = [*earlier, *(code for code in self.code if code not in earlier[-1:])]

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if isinstance(trainer.logger, Resumable):  # here: a run that resumes at the end of training gets no later hook
            trainer.logger.resume(self._curves)

    def on_sanity_check_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        interrupts.reinstall()  # Lightning has handlers of its own

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        interrupts.reinstall()
        trainer.should_stop = trainer.should_stop or self._stopped
        self._saved_at = time.monotonic()

    def on_train_batch_start(self, trainer: pl.Trainer, *_: Any) -> None:
        if self._rng_to_restore is None:
            return
        # as late as possible, so that nothing else draws in between
        on_cpu, on_gpu = self._rng_to_restore["cpu"], self._rng_to_restore["cuda"]
        if len(on_cpu) == trainer.world_size:
            torch.set_rng_state(on_cpu[trainer.global_rank].cpu())
        if len(on_gpu) == trainer.world_size and torch.cuda.is_available():
            torch.cuda.set_rng_state(on_gpu[trainer.global_rank].cpu())
        self._rng_to_restore = None
        self.resumed_after = [*self.resumed_after, trainer.global_step]

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        self._went_on = True
        if trainer.val_check_batch == 1:  # a dev scoring follows, and a saved state after it
            return
        logs_every = trainer.log_every_n_steps  # type: ignore[attr-defined]  # which Lightning sets later
        if trainer.global_step % logs_every == 0:  # Lightning logs this update after this hook: save after the next one
            return
        due = interrupts.received() is not None or time.monotonic() - self._saved_at >= self.every
        if trainer.strategy.reduce_boolean_decision(due, all=False):  # in all processes, if any of them is due
            self._save(trainer)
            self._end_if_asked(trainer)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        ends_epoch = trainer.fit_loop.epoch_loop.batch_progress.is_last_batch  # on_train_epoch_end follows and saves
        if not ends_epoch and not trainer.sanity_checking:
            self._save(trainer)
            self._end_if_asked(trainer)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._save(trainer)
        self._end_if_asked(trainer)

    def _save(self, trainer: pl.Trainer) -> None:
        self._stopped = trainer.should_stop
        on_gpu = trainer.strategy.root_device.type == "cuda"
        self._rng_saved = {
            "cpu": _gather_states(trainer, torch.get_rng_state()),
            "cuda": _gather_states(trainer, torch.cuda.get_rng_state()) if on_gpu else [],
        }
        if isinstance(trainer.logger, Resumable) and trainer.is_global_zero:
            self._curves = trainer.logger.lines()
        trainer.save_checkpoint(self.path)
        self._saved_at = time.monotonic()

    def _end_if_asked(self, trainer: pl.Trainer) -> None:
        asked = interrupts.received() is not None
        if trainer.strategy.reduce_boolean_decision(asked, all=False):
            interrupts.end(
                f"training is saved after {trainer.global_step:,} updates", silently=not trainer.is_global_zero
            )


def curves_to_bytes(lines: list[dict[str, str]]) -> Tensor:
    """Lines as a tensor: everything else is in the header of the state's file, which must stay below 100 MB."""
    return torch.frombuffer(bytearray(json.dumps(lines).encode()), dtype=torch.uint8)


def curves_from_bytes(content: Tensor | list[dict[str, str]]) -> list[dict[str, str]]:
    """The lines again."""
    if isinstance(content, list):  # in states of earlier versions
        return content
    lines: list[dict[str, str]] = json.loads(content.cpu().numpy().tobytes())
    return lines


def _gather_states(trainer: pl.Trainer, state: Tensor) -> list[Tensor]:
    if trainer.world_size == 1:
        return [state]
    return list(trainer.strategy.all_gather(state.to(trainer.strategy.root_device)))
