"""The settings of a biLM's training: everything that can change its weights, on one kind of machine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from elmo_tasks.bilm.sizes import SIZES
from elmo_tasks.errors import UserError


def _option(default: Any, about: str) -> Any:
    """A field with the text that ``train --help`` shows."""
    return field(default=default, metadata={"help": about})


@dataclass(frozen=True)
class Settings:
    """One training: each field is an option of ``train``, explained by its help text."""

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
            expect(getattr(self, name) in allowed, name, f"one of {', '.join(allowed)}", getattr(self, name))
        for name in ("rows", "window", "min_count"):
            expect(getattr(self, name) >= 1, name, "at least 1", getattr(self, name))
        expect(self.vocabulary > 3, "vocabulary", "more than the three marks", self.vocabulary)
        for name in ("samples", "warm_up"):
            expect(getattr(self, name) >= 0, name, "at least 0", getattr(self, name))
        for name in ("dropout", "forget"):
            expect(0 <= getattr(self, name) < 1, name, "from 0 to below 1", getattr(self, name))
        for name in ("rate", "grad_norm", "epochs", "budget_minutes"):
            value = getattr(self, name)
            expect(value is None or 0 < value < math.inf, name, "above 0 and finite", value)
        expect(0 <= self.seed < 2**63, "seed", "from 0 to below 2**63", self.seed)
        if (self.epochs is None) == (self.budget_minutes is None):
            raise UserError("give the budget over which the learning rate falls: either --epochs or --budget-minutes")

    def to_json(self) -> dict[str, Any]:
        """As a dictionary."""
        return asdict(self)


def check_same(ours: Mapping[str, Any], saved: Mapping[str, Any], where: str) -> None:
    """Check that a state belongs to this training.

    Raises:
        UserError: naming what differs, here and there.
    """
    for name in dict.fromkeys([*ours, *saved]):
        if ours.get(name) != saved.get(name):
            difference = f"its {name} is {saved.get(name)}, here it is {ours.get(name)}"
            raise UserError(f"{where}: the state of another training: {difference}; choose another --out")


def expect(holds: bool, name: str, expected: str, found: object) -> None:
    """Check that an option is what it must be.

    Raises:
        UserError: naming the option, what it must be and what was found.
    """
    if not holds:
        raise UserError(f"--{name.replace('_', '-')} must be {expected}, found {found}")
