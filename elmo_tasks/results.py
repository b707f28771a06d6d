"""Rows: one JSON file for each finished (or failed) run. Tables and figures read rows and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

from elmo_tasks.errors import UserError

SCHEMA = 1
"""Version of the row's layout. Its fields:

``schema status run_id created``; ``task slug seed scale``;
``data`` (name, digest, and for each split how many items there were and how many were used; what a reader left out);
``metric`` (the score that chose the checkpoint); ``scores`` (``dev`` and, if opened, ``test``);
``epochs best_epoch curve`` (each dev score with its layer weights); ``elmo`` (placement, mix, and s and gamma of the
best epoch by place); ``bilm`` (name, digest, state); ``layers`` (tokens computed and read); ``parameters``;
``files`` (predictions in a benchmark's official format, below the rows' folder); ``start``, ``before`` and ``exported``
(the biLM that task=lm began with, its dev scores, and the biLM that came of it); ``seconds device processes threads
commit dirty versions``; ``config`` (resolved); ``error`` (failed runs). The row of an ensemble has ``ensemble`` (the
seeds and run ids of its members) and no curve; that of a sense probe is described in ``probes/wsd.py``.
"""

_PACKAGES = ("torch", "pytorch-lightning", "hydra-core", "numpy")


def fingerprint(science: dict[str, Any]) -> str:
    """Eight hexadecimal digits of a nested configuration; 1 and 1.0 are the same number."""
    return hashlib.sha256(json.dumps(_floats(science), sort_keys=True).encode()).hexdigest()[:8]


def elmo_in_force(elmo: dict[str, Any]) -> dict[str, Any]:
    """What of a configuration's section ``elmo`` can change a score: in a baseline, that it is one.

    A learned gamma is not named: it was the only one before there was a choice, and rows of that time keep their
    fingerprints.
    """
    if elmo["placement"] == "none":
        return {"placement": "none"}
    return {key: value for key, value in elmo.items() if (key, value) != ("gamma", "learned")}


# Keys that rows may lack because they are older, and what went without saying then. The rows without a bound on the
# padded tokens of a batch are of SST-5 and NER with 32 sentences to a batch; the longest has 124 tokens, so that the
# bound of today would not have touched them.
_UNSAID: dict[str, Any] = {"schedule": None, "average": None, "batch_tokens": 16384}


def task_in_force(task: dict[str, Any]) -> dict[str, Any]:
    """What of a configuration's section ``task`` can change a score, in the words of today.

    The table of sizes of both scales is left out, since the sizes in force stand in the model's own part.
    """
    said = task.get("training", {})
    training = _UNSAID | {key: value for key, value in said.items() if key != "decay"}
    if said.get("decay"):  # what schedule=linear was called before there were others
        training["schedule"] = "linear"
    return {key: value for key, value in task.items() if key != "sizes"} | {"training": training}


def _floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _floats(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_floats(v) for v in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file (see :func:`write_text`)."""
    write_text(path, json.dumps(content, indent=1) + "\n")


def write_text(path: Path, content: str) -> None:
    """Write a text file that appears whole or not at all (see :func:`write_bytes`)."""
    write_bytes(path, content.encode("utf-8"))


def write_bytes(path: Path, content: bytes, remedy: str = "set results.dir to another folder") -> None:
    """Write a file that appears whole or not at all.

    Raises:
        UserError: if the folder cannot be written; it ends in the ``remedy``.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}); {remedy}") from error
    finally:
        if path.parent.is_dir():
            temporary.unlink(missing_ok=True)


def read_row(path: Path) -> dict[str, Any]:
    """One row.

    Raises:
        UserError: if the file is not a row of this schema.
    """
    try:
        row = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: not a readable row ({error}); delete it and run the cell again") from error
    if not isinstance(row, dict) or row.get("schema") != SCHEMA:
        raise UserError(f"{path}: not a row of schema {SCHEMA}; delete it and run the cell again")
    return row


def finished_row(path: Path, *, needs_test: bool) -> dict[str, Any] | None:
    """The row of a finished run, or None if the run has still to be made (again)."""
    row = read_row(path) if path.exists() else None
    if row is None or row["status"] != "finished" or (needs_test and "test" not in row["scores"]):
        return None
    return row


def prepare_folder(folder: Path) -> None:
    """Make the folder of the rows and see that it can be written, before any work is done.

    Raises:
        UserError: if not.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(
            f"results.dir={folder}: cannot be written ({error.strerror}); set it to another folder"
        ) from error


def load(folder: str | Path, status: str = "finished") -> list[dict[str, Any]]:
    """All rows of a folder with this status, by file name."""
    rows = [read_row(path) for path in sorted(Path(folder).glob("*.json"))]
    return [row for row in rows if row["status"] == status]


def provenance() -> dict[str, Any]:
    """Commit, whether the tree had uncommitted changes, and the versions of what computes."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=20
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    status = git("status", "--porcelain", "--untracked-files=no")
    return {
        "commit": git("rev-parse", "HEAD"),
        "dirty": None if status is None else bool(status),
        "versions": {name: metadata.version(name) for name in _PACKAGES},
    }
