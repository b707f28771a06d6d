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
        if policy == "warm":
            self._start_from_warm(zeros)
        elif policy == "carry":
            self._start_from_carried(zeros)
        return zeros

    def remember(self, rows: Sequence[int], finals: Sequence[State]) -> None:
        """Keep the final states of some rows, by LSTM layer, for the next call with ``carry``."""
        assert self.carried is not None
        for carried, final in zip(self.carried, finals, strict=True):
            for kept, part in zip(carried, final, strict=True):
                kept[:, rows] = part.to(kept.device)

    def _start_from_warm(self, states: list[State]) -> None:
        assert self.warm is not None  # see BiLM.expect_warm
        for state, warm in zip(states, self.warm, strict=True):
            for part, fixed in zip(state, warm, strict=True):
                part.copy_(fixed[:, :1].expand_as(part))

    def _start_from_carried(self, states: list[State]) -> None:
        for k, carried in enumerate(self.carried or ()):
            for part, kept in zip(states[k], carried, strict=True):
                n = min(part.shape[1], kept.shape[1])
                part[:, :n] = kept[:, :n]
        if self.carried is None or states[0][0].shape[1] > self.carried[0][0].shape[1]:
            self.carried = [(h.clone(), c.clone()) for h, c in states]
