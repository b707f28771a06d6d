"""``load_run("outputs/runs/ID").predict([{"text": "A fine film ."}])``: using a finished run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from elmo_tasks.assembly import build_store, make
from elmo_tasks.data.batching import check_length, item_lengths, make_batches
from elmo_tasks.data.reader import Reader
from elmo_tasks.errors import UserError, quoted
from elmo_tasks.metrics.base import Exportable, Metric
from elmo_tasks.models.base import Scored
from elmo_tasks.predict.settings import BATCH_SIZE, BATCH_TOKENS, READER, STORE, below, check_settings, files_and_others
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
    settings: Mapping[str, Any] | None = None,
) -> Predictor:
    """A finished run, from its folder alone: no training data are read.

    Args:
        folder: ``outputs/runs/ID``, wherever it is now.
        bilm_path: where the biLM is now, if it was not a bundled one and has been moved.
        words_path: where the word vectors are now, if they were a file of your own and have been moved.
        warm_text: where the text that warmed up the biLM is now, if it was one of your own and has been moved.
        packages: further packages whose classes the run may name, as ``packages=[...]`` of its training.
        settings: other values of keys that do not concern what was trained, such as
            ``{"task.reader.encoding": "latin-1"}``.

    Raises:
        UserError: if the folder is incomplete or damaged, if its biLM is missing or another one, or for a setting that
            the run does not take.
    """
    use_exact_products()
    files, others = files_and_others(settings or {})
    moved = Moved(
        bilm=files.get("bilm.path", bilm_path),
        words=files.get("words.path", words_path),
        warm_text=files.get("bilm.warm_text", warm_text),
    )
    return Predictor(read_model(Path(folder), moved, packages), others)


def _reader_in_use(run: SavedRun, changes: Mapping[str, Any]) -> Reader[Any]:
    """The run's reader with its settings for use, and with a user's changes to them."""
    fitted = run.fitted.reader
    reader: Reader[Any] = make(
        {**fitted.after_training(run.config["task"]["reader"]), **changes}, run.config["packages"]
    )
    reader.restore(fitted.state())
    return reader


def plain_items(items: Any) -> list[Any]:
    """Items as plain Python has them, from any iterable, a table of pandas, or items with arrays in them.

    Raises:
        UserError: for a text or a single item; Python would go through its characters or its fields.
    """
    if hasattr(items, "to_dict") and hasattr(items, "columns"):
        items = items.to_dict("records")
    if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, Iterable):
        raise UserError(f"expected a list of items, such as [{{'text': 'A fine film .'}}], found {quoted(items)}")
    return [_plain(item) for item in items]


def _plain(value: Any) -> Any:
    """A value with lists and numbers of Python in the place of those of NumPy and pandas."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, (list, tuple)) else value


class Predictor:
    """Predicts and scores with the weights of a finished run.

    Args:
        run: from :func:`elmo_tasks.runs.saved.read_model`.
        settings: see :func:`load_run`.

    Raises:
        UserError: for a setting that the run does not take.
    """

    def __init__(self, run: SavedRun, settings: Mapping[str, Any] | None = None) -> None:
        settings = settings or {}
        check_settings(settings, run.fitted.reader.changeable)
        self.run = run
        self.reader = run.fitted.reader = _reader_in_use(run, below(settings, READER))
        training = run.config["task"]["training"]
        self.batch_size = settings.get(BATCH_SIZE, training["batch_size"])
        self.batch_tokens = settings.get(BATCH_TOKENS, training["batch_tokens"])
        self._store_settings = below(settings, STORE)

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
        items: Iterable[Mapping[str, Any]],
        *,
        names: Sequence[str] | None = None,
        on_error: OnError | None = None,
    ) -> list[dict[str, Any] | None]:
        """Predictions in words, as plain JSON.

        Args:
            items: the fields of each, such as ``{"tokens": "Anna lives in Berlin ."}``; a sentence is a text, which is
                tokenised, or a list of tokens. A table of pandas with a column for each field will do, and arrays and
                Series in the place of lists.
            names: of the items, for messages; ``item 1``, ``item 2``, ... by default.
            on_error: is given the place and the error of a bad item, which then has None for a prediction; without it a
                bad item raises.

        Raises:
            UserError: naming the first bad item.
        """
        return [*self.stream(items, names=names, on_error=on_error)]

    def stream(
        self,
        items: Iterable[Mapping[str, Any]],
        *,
        names: Sequence[str] | None = None,
        on_error: OnError | None = None,
    ) -> Iterator[dict[str, Any] | None]:
        """As :meth:`predict`, but each prediction comes as soon as it is made. All items are checked before the first.

        Layers are computed for some items at a time, unless a sentence's layers depend on those before it.
        """
        items = plain_items(items)
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
        n = len(items) if self.run.config["bilm"].get("state") == "carry" else _AT_A_TIME
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
        self.reader.longest = (0, "")
        items = self.reader.read_file(Path(path), split)
        if not items:
            raise UserError(f"{path}: nothing to score in it")
        self.reader.check(items, split)
        n_tokens, number = max((self._n_tokens(item), number) for number, item in enumerate(items, start=1))
        check_length(self.reader, n_tokens, self.batch_tokens, f"{path}: item {number}")
        self._add_words(items)
        metric: Metric = make(self.run.config["task"]["metric"], self.run.config["packages"])
        metric.reset()
        for _, gold, predictions in self._batches(items):
            metric.update(predictions, gold)
        files = metric.files() if isinstance(metric, Exportable) else {}
        return Evaluation(len(items), dict(self.reader.left_out), metric.compute(), files)

    def _item(self, fields: Mapping[str, Any], name: str) -> Any:
        if not isinstance(fields, Mapping):
            expected = f"a dictionary with {' and '.join(self.required_fields)}"
            raise UserError(f"{name}: expected {expected}, found {quoted(fields)}")
        item = self.reader.from_json(fields, name)
        check_length(self.reader, self._n_tokens(item), self.batch_tokens, name)
        return item

    def _n_tokens(self, item: Any) -> int:
        """Of an item's longest part."""
        return max(sum(item_lengths(self.reader, part)) for part in self.reader.parts(item))

    def _decode(self, items: list[Any]) -> list[Any]:
        """The model's predictions, in the order of the items."""
        found: list[Any] = [None] * len(items)
        for places, _, predictions in self._batches(items):
            for k, prediction in zip(places, predictions, strict=True):
                found[k] = prediction
        return found

    @torch.no_grad()
    def _batches(self, items: list[Any]) -> Iterator[tuple[list[int], Any, Any]]:
        """The places, the gold and the predictions of some items at a time; those in several parts come last."""
        if not items:
            return
        parts = [(k, part) for k, item in enumerate(items) for part in self.reader.parts(item)]
        n_parts = Counter(k for k, _ in parts)
        lengths = [item_lengths(self.reader, part) for _, part in parts]
        bounds = {"batch_size": self.batch_size, "batch_tokens": self.batch_tokens}
        best: dict[int, tuple[float, Any, Any]] = {}
        with self._store([part for _, part in parts]) as store:
            for chosen in make_batches((n for n, (k, _) in enumerate(parts) if n_parts[k] == 1), lengths, **bounds):
                batch, _, predictions = self._apply([parts[n][1] for n in chosen], store)
                yield [parts[n][0] for n in chosen], batch.gold, predictions
            for chosen in make_batches((n for n, (k, _) in enumerate(parts) if n_parts[k] > 1), lengths, **bounds):
                batch, out, predictions = self._apply([parts[n][1] for n in chosen], store)
                scores = self._scores(out, batch)
                for n, *found in zip(chosen, scores, batch.gold, predictions, strict=True):
                    k = parts[n][0]
                    best[k] = max(best.get(k, (-math.inf, None, None)), tuple(found), key=itemgetter(0))
        if best:
            _, golds, predictions = zip(*best.values(), strict=True)
            yield list(best), list(golds), list(predictions)

    def _scores(self, out: Any, batch: Any) -> list[float]:
        """How sure the model is of each prediction for a part of an item."""
        if not isinstance(self.run.model, Scored):
            name = type(self.run.model).__name__
            raise UserError(
                f"{name} has no method scores, which chooses between windows of a text that is too long; "
                "set task.reader.too_long=truncate"
            )
        scores: list[float] = self.run.model.scores(out, batch).tolist()
        return scores

    def _apply(self, items: list[Any], store: Store | None) -> tuple[Any, Any, Any]:
        """A batch, the model's output and its predictions."""
        batch = self.run.fitted.collate(items, store).to(self.run.device)
        out = self.run.model(batch)
        return batch, out, self.run.model.decode(out, batch)

    def _add_words(self, items: list[Any]) -> None:
        """Give words that the run has not seen their vectors; the file is read only if there are such words."""
        words = [word for item in items for text in self.reader.texts(item) for word in text]
        if self.run.fitted.new_words(words):
            self.run.fitted.add_words(words, self.run.vectors, [self.run.model])

    @contextmanager
    def _store(self, items: list[Any]) -> Iterator[Store | None]:
        """The layers of some items, computed as in training, in a folder that is removed afterwards."""
        parent = self._store_settings.get("dir")
        if parent is not None and not Path(parent).is_dir():
            raise UserError(f"{STORE}dir={parent}: no such folder")
        with TemporaryDirectory(prefix="elmo_tasks-", dir=parent) as folder:
            bilm = self.run.config["bilm"]
            store_config = {**bilm["store"], **self._store_settings, "dir": folder}
            config = {**self.run.config, "bilm": {**bilm, "store": store_config}}
            config["trainer"] = {**config["trainer"], "progress": False}
            store = build_store(config, self.run.encoder)
            if store is not None:
                store.fill([text for item in items for text in self.reader.texts(item)])
            yield store
