"""What a model must know of its training data, without that data: a fitted reader and a vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from elmo_tasks.batch import Text, mask_of
from elmo_tasks.data.reader import Reader
from elmo_tasks.errors import UserError, shortened
from elmo_tasks.nn.characters import character_id_table, composed
from elmo_tasks.nn.embedding import WordEmbedding
from elmo_tasks.nn.words import Vocabulary, WordVectors
from elmo_tasks.store.store import Store

MAX_WORD_DIM = 10_000


class FittedData:
    """Makes a task's batches, and the parts of its model that depend on the data.

    Saved as JSON next to a model's weights, it is all that a prediction needs of the training data.

    Args:
        reader: fitted or restored.
        vocabulary: rows of the word embedding.
        matrix: the embedding's initial weights ``[n, dim]``.
        update_words: whether the embedding is trained.
    """

    def __init__(self, reader: Reader[Any], vocabulary: Vocabulary, matrix: Tensor, *, update_words: bool) -> None:
        self.reader, self.vocabulary, self.matrix, self.update_words = reader, vocabulary, matrix, update_words
        self._without_vector: set[str] = set()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; :meth:`restore` is the inverse, except for the embedding's weights, which belong to the model."""
        return {
            "reader": self.reader.state(),
            "words": self.vocabulary.words[: len(self.matrix) - 2],  # those that the model's weights have rows for
            "word_dim": self.matrix.shape[1],
            "update_words": self.update_words,
        }

    @classmethod
    def restore(cls, reader: Reader[Any], state: Mapping[str, Any]) -> FittedData:
        """What :meth:`to_json` gave, with zeros for the embedding, into which a model's weights are loaded.

        Args:
            reader: of the same task and settings, not fitted.
            state: as read from a file.

        Raises:
            UserError: if it is not such a state.
        """
        kinds = {"reader": dict, "words": list, "word_dim": int, "update_words": bool}
        if not isinstance(state, Mapping) or {key: type(value) for key, value in state.items()} != kinds:
            found = shortened(", ".join(map(str, state)), 60) if isinstance(state, Mapping) else type(state).__name__
            raise UserError(f"expected the fitted data of a run ({', '.join(kinds)}), found {found}")
        words, dim = state["words"], state["word_dim"]
        if not all(isinstance(word, str) for word in words) or len(set(words)) < len(words):
            raise UserError("the vocabulary of a run must be a list of different words")
        if not 0 <= dim <= MAX_WORD_DIM:
            raise UserError(f"word_dim must be a whole number of 0 to {MAX_WORD_DIM:,}, found {dim}")
        reader.restore(state["reader"])
        vocabulary = Vocabulary(words)
        return cls(reader, vocabulary, torch.zeros(len(vocabulary), dim), update_words=state["update_words"])

    def model_parts(self) -> dict[str, Any]:
        """What the model must know of the data: the word embedding and the reader's label sets."""
        embedding = WordEmbedding(self.matrix.clone(), trainable=self.update_words)
        return {"words": embedding, **self.reader.model_parts()}

    def new_words(self, words: Iterable[str]) -> list[str]:
        """The distinct words, composed, that have no row and have not been looked up yet."""
        return [
            word
            for word in dict.fromkeys(map(composed, words))
            if word not in self.vocabulary and word not in self._without_vector
        ]

    def add_words(self, words: Iterable[str], vectors: WordVectors, models: Sequence[nn.Module]) -> None:
        """Add the words of the data to be scored that have a vector; all others stay unknown words.

        So what a word is to the model depends on the training data and the vectors alone, not on what else is scored.

        Args:
            words: of the texts.
            vectors: those that the vocabulary was made with.
            models: made with :meth:`model_parts`; their embedding gets the rows.

        Raises:
            UserError: if the vectors cannot be read.
        """
        new = self.new_words(words)
        found = vectors.lookup(new) if new else {}
        self._without_vector.update(word for word in new if word not in found)
        if not found:
            return
        self.vocabulary.append(found)
        rows = torch.from_numpy(np.stack([np.asarray(vector, dtype=np.float32) for vector in found.values()]))
        for module in (module for model in models for module in model.modules()):
            if isinstance(module, WordEmbedding):
                module.append(rows)

    def collate(self, items: list[Any], store: Store | None = None) -> Any:
        """The task's batch of some items, with layers from ``store`` if there is one."""
        if self.reader.documents:
            (item,) = items
            return self.reader.collate(items, [self.text(self.reader.texts(item), store)])
        parts = zip(*(self.reader.texts(item) for item in items), strict=True)
        return self.reader.collate(items, [self.text(list(tokens), store) for tokens in parts])

    def text(self, tokens: list[list[str]], store: Store | None = None) -> Text:
        """Ids, mask and layers of some token lists."""
        lengths = torch.tensor([len(t) for t in tokens])
        mask = mask_of(lengths, int(lengths.max()))
        word_ids = torch.zeros(mask.shape, dtype=torch.long)
        word_ids[mask] = torch.tensor([self.vocabulary[word] for t in tokens for word in t])
        distinct = {word: k for k, word in enumerate(dict.fromkeys(word for t in tokens for word in t))}
        table = character_id_table(list(distinct))
        char_ids = torch.zeros(*mask.shape, table.shape[1], dtype=torch.long)
        char_ids[mask] = table[torch.tensor([distinct[word] for t in tokens for word in t])]
        layers = None if store is None else store.padded(tokens)
        return Text(tokens, word_ids, char_ids, mask, layers)
