"""Processes that are killed, within a test's own."""

from typing import Any

import pytest

from elmo_tasks.training import tree


class Killed(BaseException):
    """Nothing handles it, as nothing handles a kill."""


def killed(*_: Any, **__: Any) -> None:
    """In place of a function: the process ends where it is called."""
    raise Killed


def kill_after(monkeypatch: pytest.MonkeyPatch, n_saves: int, how: type[BaseException] = Killed) -> None:
    """The process ends right after the state was written for the nth time."""
    saves = []
    real = tree.write_tree

    def save(*arguments: Any) -> None:
        real(*arguments)
        saves.append(1)
        if len(saves) == n_saves:
            raise how

    monkeypatch.setattr(tree, "write_tree", save)
