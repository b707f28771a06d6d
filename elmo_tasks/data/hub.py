"""The public hub's copy of a data set, or a local folder in the same schema."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from elmo_tasks.data.reader import HubReader, Reader
from elmo_tasks.errors import UserError, quoted, shortened

_SECONDS = 3.0  # that the hub may take to answer; its library would try again for half a minute


class Hub:
    """A data set of the public hub, or a local folder of parquet or JSON files in the same schema.

    Without a connection a copy in the library's cache is used.

    Args:
        id: of the data set, or path of the folder.
        splits: the hub's name of each split; None where there is no such split.

    Raises:
        UserError: if the package ``datasets``, the data set or a split is missing, or dev or test is the training set.
    """

    key = "task.hub.splits"

    def __init__(self, *, id: str, splits: Mapping[str, str | None]) -> None:
        named = {split: name for split, name in splits.items() if name is not None}
        self.id, self._splits = id, named
        self._data = _load(id)
        for split, name in named.items():
            if name not in self._data:
                found = shortened(", ".join(map(str, self._data)), 100)
                raise UserError(f"data=hub: {id} has no split {quoted(name)} for {split}; it has {found}")
        for split, name in named.items():
            if split != "train" and name == named.get("train"):
                raise UserError(f"data=hub: {quoted(name)} of {id} is both train and {split}; expected different ones")
        self.digest = self._digest([split for split in named if split != "test"])
        self.test_digest = self._digest(["test"]) if "test" in named else None

    @property
    def splits(self) -> list[str]:
        """The splits that are there."""
        return list(self._splits)

    def check_unchanged(self) -> None:
        """Its rows stay those that were loaded."""

    def read(self, reader: Reader[Any], split: str) -> list[Any]:
        """All items of a split, one at least."""
        where = f"{self.id} ({self._splits[split]})"
        if not isinstance(reader, HubReader):
            raise UserError(f"data=hub: {type(reader).__name__} reads files only; use data=local data.root=DIR")
        items: list[Any] = reader.read_rows(self._rows(split), where, split)
        if not items:
            raise UserError(f"data=hub: nothing to use in {where}; expected the {split} split")
        return items

    def _digest(self, splits: Sequence[str]) -> str:
        sha = hashlib.sha256()
        for split in splits:
            sha.update(split.encode())
            for row in self._rows(split):
                sha.update(json.dumps(row, sort_keys=True, default=str).encode())
        return sha.hexdigest()[:16]

    def _rows(self, split: str) -> Iterator[Mapping[str, Any]]:
        """The rows, with the names of labels where the data set has them: sets number them in different orders."""
        data = self._data[self._splits[split]]
        names = {column: found for column, feature in data.features.items() if (found := _label_names(feature))}
        for row in data:
            yield {key: _named(value, names[key]) if key in names else value for key, value in row.items()}


def _label_names(feature: Any) -> list[str]:
    """The names of a column of labels, or of lists of labels; else none."""
    names: list[str] | None = getattr(getattr(feature, "feature", feature), "names", None)
    return names or []


def _named(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_named(part, names) for part in value]
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else value


def _load(id: str) -> Mapping[str, Any]:
    """The data set by its splits.

    Raises:
        UserError: if the library is not installed, or the data set is nowhere.
    """
    try:
        import datasets
        import huggingface_hub
    except ImportError as error:
        raise UserError("data=hub needs the package datasets: pip install datasets") from error
    offline = huggingface_hub.constants.HF_HUB_OFFLINE or datasets.config.HF_HUB_OFFLINE
    missing = ""
    if not Path(id).is_dir() and not offline and not is_reachable(huggingface_hub.constants.ENDPOINT):
        missing = f"{huggingface_hub.constants.ENDPOINT} does not answer, and there is no copy in the cache; "
        huggingface_hub.constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
    datasets.utils.logging.set_verbosity_error()
    huggingface_hub.utils.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    try:
        data: Mapping[str, Any] = datasets.load_dataset(id)
    except Exception as error:  # the library raises a dozen types for "not there" and "offline"
        reason = shortened(f"{missing}{type(error).__name__}: {error}", 180)
        raise UserError(f"data=hub: {id} cannot be loaded ({reason})") from error
    return data


def is_reachable(address: str) -> bool:
    """Whether a server answers at all, be it with an error, within a few seconds."""
    answers: list[bool] = []

    def ask() -> None:
        try:
            with urlopen(Request(address, method="HEAD"), timeout=_SECONDS):
                answers.append(True)
        except HTTPError:
            answers.append(True)
        except (OSError, ValueError):
            answers.append(False)

    thread = Thread(target=ask, daemon=True)  # looking up a name has no time limit of its own
    thread.start()
    thread.join(_SECONDS)
    return answers == [True]
