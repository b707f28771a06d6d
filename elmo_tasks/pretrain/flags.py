"""The options of ``train``: everything that can change the weights, on one kind of machine."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, field
from typing import Any

from elmo_tasks.bilm.sizes import SIZES
from elmo_tasks.errors import UserError
from elmo_tasks.pretrain.settings import Settings


def _option(default: Any, about: str) -> Any:
    """A field with the text that ``train --help`` shows."""
    return field(default=default, metadata={"help": about})


@dataclass(frozen=True)
class Options:
    """One training: each field is an option, explained by its help text."""

    size: str = _option("small", f"of the biLM: {', '.join(SIZES)}")
    rows: int = _option(512, "rows of a window, each of which reads its own part of the text")
    window: int = _option(20, "steps of a window, after which gradients are truncated")
    vocabulary: int = _option(50_000, "words of the softmax, including <S>, </S> and <UNK>")
    min_count: int = _option(3, "words that are rarer in the training text count as <UNK>")
    samples: int = _option(8192, "candidates of the sampled softmax; 0 for all words")
    dropout: float = _option(0.1, "rate on the input of each LSTM layer and on the top layer")
    forget: float = _option(0.02, "probability that a row starts a window from a state of zeros")
    rate: float = _option(0.002, "highest learning rate of Adam; it falls linearly to zero at the end of the budget")
    warm_up: int = _option(500, "updates over which the learning rate rises")
    grad_norm: float = _option(10.0, "maximum gradient norm, of the loss times the steps of a window as in bilm-tf")
    precision: str = _option("bfloat16", "of matrix multiplication: bfloat16 or float32")
    seed: int = _option(1, "of weights, order of the text, candidates and dropout")
    epochs: float | None = _option(None, "budget in epochs (give this or --budget-minutes)")
    budget_minutes: float | None = _option(None, "budget in minutes of training, over all calls")

    def check(self) -> None:
        """Check that values are in range.

        Raises:
            UserError: naming the option, what it must be and what was found.
        """
        choices = {"size": tuple(SIZES), "precision": ("bfloat16", "float32")}
        for name, allowed in choices.items():
            _expect(getattr(self, name) in allowed, name, f"one of {', '.join(allowed)}", getattr(self, name))
        for name in ("rows", "window", "min_count"):
            _expect(getattr(self, name) >= 1, name, "at least 1", getattr(self, name))
        _expect(self.vocabulary > 3, "vocabulary", "more than the three marks", self.vocabulary)
        for name in ("samples", "warm_up"):
            _expect(getattr(self, name) >= 0, name, "at least 0", getattr(self, name))
        for name in ("dropout", "forget"):
            _expect(0 <= getattr(self, name) < 1, name, "from 0 to below 1", getattr(self, name))
        for name in ("rate", "grad_norm", "epochs", "budget_minutes"):
            _expect_positive(name, getattr(self, name))
        _expect(0 <= self.seed < 2**63, "seed", "from 0 to below 2**63", self.seed)
        if (self.epochs is None) == (self.budget_minutes is None):
            raise UserError("give the budget over which the learning rate falls: either --epochs or --budget-minutes")

    def settings(self, score_every: int | None, save_every: float, restart: str) -> Settings:
        """How the trainer is to train."""
        return Settings(
            seed=self.seed,
            epochs=self.epochs,
            minutes=self.budget_minutes,
            schedule="linear",
            warm_up=self.warm_up,
            grad_norm=self.grad_norm,
            bfloat16=self.precision == "bfloat16",
            score_every=score_every,
            save_every=save_every,
            remedy="lower --rate",
            restart=restart,
        )


def check_call(given: argparse.Namespace) -> None:
    """Check that the options that change no weight are in range.

    Raises:
        UserError: naming the option, what it must be and what was found.
    """
    for name, least in (("log_every", 1), ("score_every", 0)):
        value = getattr(given, name)
        _expect(value is None or value >= least, name, f"at least {least}", value)
    for name in ("minutes", "save_minutes"):
        _expect_positive(name, getattr(given, name))


def _expect_positive(name: str, value: float | None) -> None:
    _expect(value is None or 0 < value < math.inf, name, "above 0 and finite", value)


def _expect(holds: bool, name: str, expected: str, found: object) -> None:
    if not holds:
        raise UserError(f"--{name.replace('_', '-')} must be {expected}, found {found}")
