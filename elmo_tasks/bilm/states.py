"""The three state policies of a biLM: the initial state of each sentence."""

from __future__ import annotations

from collections.abc import Sequence

from elmo_tasks.bilm.lstm import State
from elmo_tasks.errors import UserError

POLICIES = ("reset", "carry", "warm")


def check_policy(policy: str) -> None:
    """Check that there is such a state policy.

    Raises:
        UserError: if not.
    """
    if policy not in POLICIES:
        raise UserError(f"bilm.state must be one of {', '.join(POLICIES)}, found {policy!r}")


class CarriedStates:
    """The LSTM states that a biLM keeps between calls.

    Attributes:
        warm: the fixed state of ``warm``, in row 0 of each LSTM layer's state.
        carried: for ``carry``, the final state of each row, by LSTM layer.
    """

    def __init__(self) -> None:
        self.warm: list[State] | None = None
        self.carried: list[State] | None = None

    def initial(self, zeros: list[State], policy: str) -> list[State]:
        """The initial states of a call's rows, by LSTM layer.

        Args:
            zeros: a state of zeros for each LSTM layer; it is changed in place and returned.
            policy: ``reset``, ``warm`` or ``carry``.

        Raises:
            UserError: for another policy.
        """
        check_policy(policy)
        kept = {"reset": None, "warm": self.warm, "carry": self.carried}[policy]
        for state, before in zip(zeros, kept or (), strict=kept is not None):
            for part, fixed in zip(state, before, strict=True):
                n = part.shape[1] if policy == "warm" else min(part.shape[1], fixed.shape[1])
                part[:, :n] = fixed[:, :1] if policy == "warm" else fixed[:, :n]
        if policy == "carry" and (kept is None or zeros[0][0].shape[1] > kept[0][0].shape[1]):
            self.carried = [(h.clone(), c.clone()) for h, c in zeros]
        return zeros

    def remember(self, rows: Sequence[int], finals: Sequence[State]) -> None:
        """Keep the final states of some rows, by LSTM layer, for the next call with ``carry``."""
        assert self.carried is not None
        for carried, final in zip(self.carried, finals, strict=True):
            for kept, part in zip(carried, final, strict=True):
                kept[:, rows] = part.to(kept.device)
