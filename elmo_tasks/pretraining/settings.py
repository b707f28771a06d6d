"""The settings of a biLM's training: everything that can change its weights, on one kind of machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from elmo_tasks.bilm.sizes import SIZES
from elmo_tasks.errors import UserError


@dataclass(frozen=True)
class Settings:
    """One training.

    Attributes:
        size: one of :data:`elmo_tasks.bilm.sizes.SIZES`.
        rows: B.
        window: steps S.
        vocabulary: words of the softmax, the three marks counted.
        min_count: rarer words count as ``<UNK>``.
        samples: candidates of the sampled softmax; 0 for all words.
        dropout: on the input of each LSTM layer and on the top layer.
        forget: probability that a row starts a window from zeros.
        rate: highest learning rate of Adam.
        warm_up: updates over which the rate rises.
        grad_norm: bound of the gradient's norm; the loss is multiplied by the window's length, as bilm-tf does.
        precision: of the products, ``bfloat16`` or ``float32``.
        seed: of weights, order, candidates and dropout.
        epochs: the budget over which the rate falls to zero; None if it is given in minutes.
        budget_minutes: of training, over all calls.
    """

    size: str = "small"
    rows: int = 512
    window: int = 20
    vocabulary: int = 50_000
    min_count: int = 3
    samples: int = 8192
    dropout: float = 0.1
    forget: float = 0.02
    rate: float = 0.002
    warm_up: int = 500
    grad_norm: float = 10.0
    precision: str = "bfloat16"
    seed: int = 1
    epochs: float | None = None
    budget_minutes: float | None = None

    def check(self) -> None:
        """See that values are in range.

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
            expect(value is None or value > 0, name, "above 0", value)
        if (self.epochs is None) == (self.budget_minutes is None):
            raise UserError("give the budget over which the learning rate falls: either --epochs or --budget-minutes")

    def to_json(self) -> dict[str, Any]:
        """As a dictionary."""
        return asdict(self)


def check_same(ours: Mapping[str, Any], saved: Mapping[str, Any], where: str) -> None:
    """See that a state belongs to this training.

    Raises:
        UserError: naming what differs, here and there.
    """
    for name in dict.fromkeys([*ours, *saved]):
        if ours.get(name) != saved.get(name):
            difference = f"its {name} is {saved.get(name)}, here it is {ours.get(name)}"
            raise UserError(f"{where}: the state of another training: {difference}; choose another --out")


def expect(holds: bool, name: str, expected: str, found: object) -> None:
    """See that an option is what it must be.

    Raises:
        UserError: naming the option, what it must be and what was found.
    """
    if not holds:
        raise UserError(f"--{name.replace('_', '-')} must be {expected}, found {found}")
