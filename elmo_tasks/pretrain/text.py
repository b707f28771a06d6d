"""The text that a biLM is trained on: its words, the vocabulary of the softmax, and its windows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated

from elmo_tasks.data.corpus import LmText, LmVocabulary, TextFiles
from elmo_tasks.errors import UserError
from elmo_tasks.nn.characters import remark_on_truncated
from elmo_tasks.pretrain.pack import Pack, encode
from elmo_tasks.pretrain.windows import PackedWindow, heldout_windows, training_windows
from elmo_tasks.values import Range, Size


class LmData:
    """A text cut into windows, without padding: the rows are streams of whole sentences.

    Args:
        text: what :meth:`read` encodes; None for a text that is a pack already (see :meth:`use`).
        batch_size: rows B of all processes together.
        window: steps S of a window (20 in the paper's code); the biLM's state is carried from window to window.
        vocabulary_size: maximum number of words that the softmax predicts, including the three special tokens.
        min_count: rarer words count as ``<UNK>``.
        seed: of the shuffling, together with the epoch's number.
        vocabulary: of the model that training starts from; None takes the most frequent words of the text.

    Attributes:
        digest: of the text, which is known before it is read.
        pack: the text as word ids.
        vocabulary: the words that the softmax predicts.
        unknown: the share of training tokens outside it.
        target_ids: int32 ``[W]``, the softmax's id of each of the pack's words.
    """

    def __init__(
        self,
        *,
        batch_size: Size,
        window: Size,
        vocabulary_size: Annotated[int, Range(4)],
        min_count: Size,
        seed: int,
        text: LmText | None = None,
        vocabulary: LmVocabulary | None = None,
    ) -> None:
        self.text, self.given, self.digest = text, vocabulary, text.digest if text else ""
        self.batch_size, self.window, self.seed = batch_size, window, seed
        self.vocabulary_size, self.min_count = vocabulary_size, min_count

    def read(self) -> None:
        """Encode the text and check that there is enough of it.

        Raises:
            UserError: naming file and line of bad text, or if the text does not fill a window.
        """
        assert self.text is not None
        self.use(encode({"train": self.text.shards("train"), "heldout": self.text.shards("dev")}))
        if not self.updates_per_epoch:
            raise UserError(
                f"the training text{self._files('train')} has {self.n_positions:,} positions, but one window of "
                f"task.data.batch_size={self.batch_size} rows and task.data.window={self.window} steps takes "
                f"{self.batch_size * self.window:,}; set a smaller one, or {self.text.option} to more text"
            )
        if not self.n_heldout:
            raise UserError(
                f"there is no sentence in the held-out text{self._files('dev')}; set {self.text.option} to some"
            )

    def use(self, pack: Pack) -> LmData:
        """Take the text of a pack."""
        self.pack, counts = pack, pack.counts()
        self.vocabulary = self.given or LmVocabulary.from_counts(counts, self.vocabulary_size, self.min_count)
        known = sum(n for word, n in counts.items() if word in self.vocabulary.ids)
        self.unknown = 1 - known / max(1, counts.total())
        self.target_ids = pack.targets(self.vocabulary)
        return self

    def _files(self, split: str) -> str:
        """The files of a split, in brackets; empty where a split has no files of its own."""
        if not isinstance(self.text, TextFiles):
            return ""
        first, *more = self.text.paths[split]
        return f" ({first}{f' and {len(more)} more' if more else ''})"

    @property
    def truncated(self) -> str:
        """A message about words that are too long; empty if there are none."""
        return remark_on_truncated(self.pack.words)

    @property
    def n_positions(self) -> int:
        """Predictions of a pass over the training text: one per token and one per sentence end."""
        return self.pack.n_positions("train")

    @property
    def n_heldout(self) -> int:
        """The same of the held-out text."""
        return self.pack.n_positions("heldout")

    @property
    def updates_per_epoch(self) -> int:
        """Whole windows of one pass over the training text."""
        return self.n_positions // (self.batch_size * self.window)

    def windows(self, first: int) -> Iterator[PackedWindow]:
        """The window of an update (from 0) and those of all after it, without end."""
        text, n_updates = self.pack.splits["train"], self.updates_per_epoch
        epoch, done = divmod(first, n_updates)
        while True:
            windows = training_windows(text, self.batch_size, self.window, self.seed, epoch, skip=done)
            yield from islice(windows, n_updates - done)
            epoch, done = epoch + 1, 0

    def heldout(self) -> Iterator[PackedWindow]:
        """The windows of the held-out text."""
        return heldout_windows(self.pack.splits["heldout"], self.batch_size, self.window)
