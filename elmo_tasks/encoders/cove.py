"""CoVe: the two-layer biLSTM encoder of a translation model, over GloVe vectors (McCann et al. 2017)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from elmo_tasks.batch import mask_of
from elmo_tasks.encoders.base import (
    EncoderModule,
    as_sentences,
    batches_by_length,
    remark_on_zeros,
    with_gradients_if_tuned,
)
from elmo_tasks.encoders.parameters import find_file, read_parameters
from elmo_tasks.errors import UserError
from elmo_tasks.files import digest_files
from elmo_tasks.nn.rnn import BiLSTM
from elmo_tasks.nn.words import WordVectors

_BATCH_POSITIONS = 8192  # of one batch of sentences of similar length
_RECURRENT = re.compile(r"(weight|bias)_[ih]h_l\d+(_reverse)?")


class CoVe(EncoderModule):
    """Stacked biLSTMs over frozen word vectors; D = 2 x ``dim``.

    Layer 0 is the word vector, doubled to the width of the others as the biLM's token layer is; layers 1 .. L-1 are
    the outputs of the biLSTMs, forward and backward halves side by side. Every sentence starts from zeros. A word
    without a vector is a zero vector, as in the original code.

    Args:
        words: the GloVe vectors that the weights were trained with; each has ``dim`` numbers.
        dim: cells of each direction.
        n_layers: number of biLSTMs, L - 1.

    Raises:
        UserError: if the vectors do not have ``dim`` numbers.
    """

    def __init__(self, words: WordVectors, *, dim: int = 300, n_layers: int = 2) -> None:
        super().__init__()
        if words.dim != dim:
            raise UserError(
                f"bilm.options.words.dim={words.dim} and bilm.options.lstm.dim={dim} must be the same: "
                "two word vectors are as wide as both directions"
            )
        self.words = words
        self.lstms = nn.ModuleList(BiLSTM(dim if k == 0 else 2 * dim, dim) for k in range(n_layers))
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self._unknown: NDArray[np.float32] = np.zeros(dim, dtype=np.float32)
        self._file: tuple[Any, ...] = ()  # the vectors' file as it was when it was read, and how words are looked up
        self._file_digest = ""
        self.finish()

    @classmethod
    def load(cls, path: str | Path, *, words: Mapping[str, Any], lstm: Mapping[str, int]) -> CoVe:
        """A frozen CoVe.

        Args:
            path: a safetensors file with the published names (``weight_ih_l0``, ``bias_hh_l1_reverse``, ...), with any
                prefix (``rnn1.``), or the folder that holds it.
            words: arguments of :class:`WordVectors`.
            lstm: ``dim`` and ``n_layers``.

        Raises:
            UserError: if a file is missing or damaged, or the weights are not of these sizes.
        """
        for key, value in {"words.dim": words["dim"], **{f"lstm.{key}": value for key, value in lstm.items()}}.items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise UserError(f"bilm.options.{key} must be a whole number of at least 1, found {value!r}")
        if words["path"] is None:
            raise UserError("bilm=cove reads GloVe 840B (300 dimensions): set bilm.options.words.path to its text file")
        cove = cls(WordVectors(name="glove", key="bilm.options.words", **words), **lstm)
        cove._read_weights(find_file(Path(path)))
        return cove.eval().requires_grad_(False)

    @property
    def n_layers(self) -> int:
        """L, including the token layer."""
        return len(self.lstms) + 1

    @property
    def dim(self) -> int:
        """D, both directions."""
        return 2 * self.words.dim

    def content(self) -> tuple[Mapping[str, Any], Mapping[str, Tensor]]:
        """The weights, the whole file of word vectors and how words are looked up in it."""
        self._follow_file()
        if not self._file_digest:
            self._file_digest = digest_files([Path(str(self.words.path))])
        about = {"encoder": "cove", "words": self._file_digest, "lowercase": self.words.lowercase}
        return about | ({"unit_length": True} if self.words.unit_length else {}), self.state_dict()

    def prepare(self, words: Iterable[str]) -> str:
        """Look up the vectors of ``words``, reading the file once for all of them.

        Returns:
            a remark on the words without a vector; empty if there are none.

        Raises:
            UserError: if the file cannot be read, or none of the words has a vector: another file was meant.
        """
        wanted = dict.fromkeys(words)
        self._look_up(wanted)
        lost = [word for word in wanted if self._vectors[word] is self._unknown]
        self.words.expect_any_found(len(lost) < len(wanted))
        return remark_on_zeros(lost, len(wanted), "vector")

    @with_gradients_if_tuned
    def layers(self, sentences: Iterable[Iterable[str]]) -> list[Tensor]:
        """All layers of each sentence, float ``[L, T, D]`` each, in order.

        Raises:
            UserError: if a sentence is not a list of tokens.
        """
        sentences = as_sentences(sentences)
        self._look_up(word for sentence in sentences for word in sentence)
        device = next(self.parameters()).device
        results = [torch.zeros(self.n_layers, 0, self.dim, device=device)] * len(sentences)
        filled = [row for row, sentence in enumerate(sentences) if sentence]
        for batch in batches_by_length([len(sentences[row]) for row in filled], _BATCH_POSITIONS):
            rows = [filled[k] for k in batch]
            vectors = [torch.from_numpy(np.stack([self._vectors[w] for w in sentences[row]])) for row in rows]
            x = nn.utils.rnn.pad_sequence(vectors, batch_first=True).to(device)
            lengths = torch.tensor([len(sentences[row]) for row in rows], device=device)
            layers = self._run(x, mask_of(lengths, x.shape[1]))
            for row, found in zip(rows, layers, strict=True):
                results[row] = found[:, : len(sentences[row])].clone()
        return results

    def _run(self, x: Tensor, mask: Tensor) -> Tensor:
        """``[B, T, E]`` and bool ``[B, T]`` to ``[B, L, T, D]``."""
        layers, h = [torch.cat([x, x], dim=2)], x
        for lstm in self.lstms:
            h = lstm(h, mask)
            layers.append(h)
        return torch.stack(layers, dim=1)

    def _follow_file(self) -> None:
        """Forget what was read of the file of word vectors if it is another one now, or is read in another way."""
        try:
            found = Path(str(self.words.path)).stat()
        except OSError as error:
            raise UserError(f"{self.words.path}: the word vectors cannot be read ({error.strerror})") from error
        settings = (self.words.path, self.words.lowercase, self.words.unit_length)
        now = (*settings, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        if now != self._file:
            self._file, self._file_digest, self._vectors = now, "", {}

    def _look_up(self, words: Iterable[str]) -> None:
        self._follow_file()
        new = [word for word in dict.fromkeys(words) if word not in self._vectors]
        found = self.words.lookup(new) if new else {}
        self._vectors.update({word: found.get(word, self._unknown) for word in new})

    def _read_weights(self, path: Path) -> None:
        parameters = dict(self._published())
        sizes = f"bilm.options.lstm.dim={self.words.dim} and bilm.options.lstm.n_layers={len(self.lstms)}"
        found = read_parameters(path, {name: value.shape for name, value in parameters.items()}, sizes)
        more = [name for name in found if _RECURRENT.fullmatch(name) and name not in parameters]
        if more:
            raise UserError(f"{path}: holds {more[0]!r}, for which {sizes} have no place")
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(found[name])

    def _published(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Each parameter with its name in the published file, that of one bidirectional ``nn.LSTM``."""
        for k, layer in enumerate(self.lstms):
            for direction, ending in (("left_to_right", ""), ("right_to_left", "_reverse")):
                for name, parameter in getattr(layer, direction).named_parameters():
                    yield name.replace("_l0", f"_l{k}") + ending, parameter
