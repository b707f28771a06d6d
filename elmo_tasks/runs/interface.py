"""What all kinds of run have in common. ``task.kind`` chooses one; ``ensemble=[1,2]`` averages finished runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from elmo_tasks.config.identity import RunDigests
from elmo_tasks.planning.plan import DoneSoFar, Plan
from elmo_tasks.rows.fields import Kind
from elmo_tasks.rows.schema import Header, Row
from elmo_tasks.runs.folder import RunFolder


class Run(Protocol):
    """A run. The constructor finds the inputs, which determine the name of the run, and reads nothing large.

    Attributes:
        kind: as in the row.
        inputs: the digests of what it reads.
        run_id: different for everything that can change a score.
        slug: the readable middle of the name.
        seed: of the run; None for an ensemble.
        rank: which of several processes this is; 0 is the one that writes the row.
    """

    kind: Kind
    inputs: RunDigests
    run_id: str
    slug: str
    seed: int | None
    rank: int

    def measure(self, folder: RunFolder, header: Header, finished: Row | None) -> Row:
        """Do the work.

        Args:
            folder: where files go: to its partial folder.
            header: what is known before.
            finished: the row of this run if only the scores of the test set are missing; its weights exist.

        Returns:
            the row: ``finished`` with scores added to it, or ``header`` with all that was measured.

        Raises:
            UserError: for bad input.
        """


@runtime_checkable
class Plannable(Protocol):
    """A run whose cost can be estimated before it starts."""

    def plan(self, done: DoneSoFar) -> Plan:
        """What the rest of the run will take."""


def build_run(cfg: dict[str, Any]) -> Run:
    """The run that a checked configuration asks for. Its inputs have been found.

    Raises:
        UserError: for inputs that are missing.
    """
    from elmo_tasks.runs.ensemble import EnsembleRun
    from elmo_tasks.runs.language_model import LanguageModelRun
    from elmo_tasks.runs.sense_probe import SenseProbeRun
    from elmo_tasks.runs.supervised import SupervisedRun

    if cfg["ensemble"] is not None:
        return EnsembleRun(cfg)
    kinds: dict[str, Callable[[dict[str, Any]], Run]] = {
        "supervised": SupervisedRun,
        "language_model": LanguageModelRun,
        "sense_probe": SenseProbeRun,
    }
    return kinds[cfg["task"]["kind"]](cfg)


def is_complete(cfg: dict[str, Any], this_run: Run, finished: Row) -> bool:
    """Whether a finished run has all that is asked for: with ``test=true``, scores on the test set that is there."""
    tested = "test" in finished.scores and finished.data.test_digest == this_run.inputs.test
    return not cfg["force"] and (tested or not cfg["test"])
