"""What a run shows while it trains."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import TQDMProgressBar


class TokensASecond(TQDMProgressBar):
    """The usual bar with its time left, counting tokens instead of batches.

    Args:
        n_tokens: of a batch.
        last: how many updates there are at most; -1 for no bound.
    """

    def __init__(self, n_tokens: int, last: int = -1) -> None:
        super().__init__(leave=False)
        self.n_tokens, self.last = n_tokens, last

    @property
    def total_train_batches(self) -> int | float:
        """Of this epoch, as far as training goes."""
        whole = super().total_train_batches
        return whole if self.last < 0 else min(whole, self.last - self.trainer.current_epoch * whole)

    def on_train_start(self, trainer: pl.Trainer, *_: Any) -> None:
        """Show an epoch that is taken up in its middle, for which Lightning has no total, at the speed from here on."""
        super().on_train_start(trainer)
        bar, done = self.train_progress_bar, trainer.fit_loop.epoch_loop.batch_progress.current.completed
        if done:
            bar.total, bar.n, bar.initial = self.total_train_batches, done, done
            bar.set_description(f"Epoch {trainer.current_epoch}")

    def init_train_tqdm(self) -> Any:
        bar = super().init_train_tqdm()
        bar.unit, bar.unit_scale = " tokens", self.n_tokens
        return bar


def silence_lightning() -> None:
    """Lightning's banners and hints are about Lightning; the run's own table says what matters."""
    import logging
    import warnings

    for name in ("pytorch_lightning", "lightning.pytorch", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    for part in ("utilities.rank_zero", "utilities.distributed"):
        logging.getLogger(f"pytorch_lightning.{part}").setLevel(logging.ERROR)
        logging.getLogger(f"lightning_fabric.{part}").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="pytorch_lightning|lightning_fabric")
    warnings.filterwarnings("ignore", message=".*isinstance\\(treespec.*")
    torch.set_float32_matmul_precision("highest")
