"""``load_run("outputs/runs/ID").predict([{"text": "A fine film ."}])``: using a finished run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from elmo_tasks.assembly import build_store, make
from elmo_tasks.data.batching import item_lengths, make_batches
from elmo_tasks.errors import UserError, quoted
from elmo_tasks.metrics.base import Exportable, Metric
from elmo_tasks.processor import use_exact_products
from elmo_tasks.runs.saved import Moved, SavedRun, read_model
from elmo_tasks.store.store import Store

OnError = Callable[[int, UserError], None]
_AT_A_TIME = 1_000  # items whose layers are on the disk


@dataclass(frozen=True)
class Evaluation:
    """Scores on a file.

    Attributes:
        n_items: how many items were scored.
        left_out: how many items of the file were skipped, and other counts, by reason, as a row has them.
        scores: by name; the first is the one that the task reports.
        files: contents by name of what the benchmark's official scorer reads, if there is one.
    """

    n_items: int
    left_out: dict[str, int]
    scores: dict[str, float]
    files: dict[str, str]


def load_run(
    folder: str | Path,
    *,
    bilm_path: str | None = None,
    words_path: str | None = None,
    warm_text: str | None = None,
    packages: Sequence[str] = (),
) -> Predictor:
    """A finished run, from its folder alone: no training data are read.

    Args:
        folder: ``outputs/runs/ID``, wherever it is now.
        bilm_path: where the biLM is now, if it was not a bundled one and has been moved.
        words_path: where the word vectors are now, if they were a file of your own and have been moved.
        warm_text: where the text that warmed up the biLM is now, if it was one of your own and has been moved.
        packages: further packages whose classes the run may name, as ``packages=[...]`` of its training.

    Raises:
        UserError: if the folder is incomplete or damaged, or if its biLM is missing or another one.
    """
    use_exact_products()
    moved = Moved(bilm_path, words_path, warm_text)
    return Predictor(read_model(Path(folder), moved, packages))


class Predictor:
    """Predicts and scores with the weights of a finished run.

    Args:
        run: from :func:`elmo_tasks.runs.saved.read_model`.
    """

    def __init__(self, run: SavedRun) -> None:
        self.run = run
        self.reader = run.fitted.reader
        training = run.config["task"]["training"]
        self.batch_size, self.batch_tokens = training["batch_size"], training["batch_tokens"]

    @property
    def task(self) -> str:
        """The name of the task."""
        return str(self.run.config["task"]["name"])

    @property
    def required_fields(self) -> list[str]:
        """The fields that every item must have."""
        return [name for name, what in self.reader.fields.items() if not what.startswith("optional")]

    def predict(
        self,
        items: Sequence[Mapping[str, Any]],
        *,
        names: Sequence[str] | None = None,
        on_error: OnError | None = None,
    ) -> list[dict[str, Any] | None]:
        """Predictions in words, as plain JSON.

        Args:
            items: the fields of each, such as ``{"tokens": "Anna lives in Berlin ."}``; a sentence is a text, which is
                tokenised, or a list of tokens.
            names: of the items, for messages; ``item 1``, ``item 2``, ... by default.
            on_error: is given the place and the error of a bad item, which then has None for a prediction; without it a
                bad item raises.

        Raises:
            UserError: naming the first bad item.
        """
        return [*self.stream(items, names=names, on_error=on_error)]

    def stream(
        self,
        items: Sequence[Mapping[str, Any]],
        *,
        names: Sequence[str] | None = None,
        on_error: OnError | None = None,
    ) -> Iterator[dict[str, Any] | None]:
        """As :meth:`predict`, but each prediction comes as soon as it is made. All items are checked before the first.

        Layers are computed for some items at a time, unless a sentence's layers depend on those before it.
        """
        names = names or [f"item {number}" for number in range(1, len(items) + 1)]
        good: dict[int, Any] = {}
        for k, (fields, name) in enumerate(zip(items, names, strict=True)):
            try:
                good[k] = self._item(fields, name)
            except UserError as error:
                if on_error is None:
                    raise
                on_error(k, error)
        self._add_words([*good.values()])
        n = len(items) if self.run.config["bilm"]["state"] == "carry" else _AT_A_TIME
        for start in range(0, len(items), max(1, n)):
            part = range(start, min(start + n, len(items)))
            places = [k for k in part if k in good]
            decoded = dict(zip(places, self._decode([good[k] for k in places]), strict=True))
            for k in part:
                yield {**items[k], **self.reader.to_json(good[k], decoded[k])} if k in good else None

    def evaluate(self, path: str | Path, split: str = "test") -> Evaluation:
        """Scores on a file of the task's format.

        Args:
            path: of the file, or of the folder where the task has folders.
            split: how to read the file; some readers leave out items of ``train`` (too long, no majority label).

        Raises:
            UserError: naming file and line, for bad input.
        """
        self.reader.left_out.clear()  # of a file that was read before
        items = self.reader.read_file(Path(path), split)
        if not items:
            raise UserError(f"{path}: nothing to score in it")
        self.reader.check(items, split)
        for number, item in enumerate(items, start=1):
            self._check_length(item, f"{path}: item {number}")
        self._add_words(items)
        metric: Metric = make(self.run.config["task"]["metric"], self.run.config["packages"])
        metric.reset()
        for _, batch, predictions in self._batches(items):
            metric.update(predictions, batch.gold)
        files = metric.files() if isinstance(metric, Exportable) else {}
        return Evaluation(len(items), dict(self.reader.left_out), metric.compute(), files)

    def _item(self, fields: Mapping[str, Any], name: str) -> Any:
        if not isinstance(fields, Mapping):
            expected = f"a dictionary with {' and '.join(self.required_fields)}"
            raise UserError(f"{name}: expected {expected}, found {quoted(fields)}")
        item = self.reader.from_json(fields, name)
        self._check_length(item, name)
        return item

    def _check_length(self, item: Any, name: str) -> None:
        n_tokens = sum(item_lengths(self.reader, item))
        if n_tokens > self.batch_tokens:
            raise UserError(f"{name}: {n_tokens:,} tokens; this run reads at most {self.batch_tokens:,} at a time")

    def _decode(self, items: list[Any]) -> list[Any]:
        """The model's predictions, in the order of the items."""
        found: list[Any] = [None] * len(items)
        for places, _, predictions in self._batches(items):
            for k, prediction in zip(places, predictions, strict=True):
                found[k] = prediction
        return found

    @torch.no_grad()
    def _batches(self, items: list[Any]) -> Iterator[tuple[list[int], Any, Any]]:
        """The places, the batch and the predictions of some items at a time."""
        if not items:
            return
        lengths = [item_lengths(self.reader, item) for item in items]
        with self._store(items) as store:
            for places in make_batches(
                range(len(items)), lengths, batch_size=self.batch_size, batch_tokens=self.batch_tokens
            ):
                batch = self.run.fitted.collate([items[k] for k in places], store).to(self.run.device)
                yield places, batch, self.run.model.decode(self.run.model(batch), batch)

    def _add_words(self, items: list[Any]) -> None:
        """Give words that the run has not seen their vectors; the file is read only if there are such words."""
        words = [word for item in items for text in self.reader.texts(item) for word in text]
        if self.run.fitted.new_words(words):
            self.run.fitted.add_words(words, self.run.vectors, [self.run.model])

    @contextmanager
    def _store(self, items: list[Any]) -> Iterator[Store | None]:
        """The layers of some items, computed as in training, in a folder that is removed afterwards."""
        with TemporaryDirectory(prefix="elmo_tasks-") as folder:
            bilm = self.run.config["bilm"]
            config = {**self.run.config, "bilm": {**bilm, "store": {**bilm["store"], "dir": folder}}}
            config["trainer"] = {**config["trainer"], "progress": False}
            store = build_store(config, self.run.encoder)
            if store is not None:
                store.fill([text for item in items for text in self.reader.texts(item)])
            yield store
