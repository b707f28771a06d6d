"""Digests of what is bundled today: rows that have them are not due again."""

import functools

from elmo_tasks.assembly import build_initial_weights
from elmo_tasks.bilm import BiLM
from elmo_tasks.tables.wanted import compose_wanted


@functools.cache
def mini() -> str:
    return BiLM.load("mini").digest


@functools.cache
def start_from_mini() -> str:
    start = build_initial_weights(compose_wanted(("task=lm", "task.lm.init=mini")).config)
    assert start is not None
    return start.digest
