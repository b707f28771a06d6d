"""The interface of a frozen encoder: the biLM implements it, and other encoders can take its place."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor

from elmo_tasks.errors import UserError, quoted


class Encoder(Protocol):
    """A frozen encoder.

    A sentence's vectors depend on its tokens alone, not on its batch, except for a biLM with ``bilm.state=carry``.
    """

    @property
    def n_layers(self) -> int:
        """L, including the token layer."""

    @property
    def dim(self) -> int:
        """D, the width of every layer."""

    @property
    def digest(self) -> str:
        """Digest of all that can change a vector; part of the layer store's key and of every row."""

    def prepare(self, words: Iterable[str]) -> str:
        """Prepare for words that :meth:`layers` will read.

        Returns:
            a remark for the user, on words that the encoder cannot read as written or on its speed; else empty.
        """

    def layers(self, sentences: Sequence[Sequence[str]]) -> list[Tensor]:
        """All layers of each sentence, float ``[L, T, D]`` each, in order."""


def check_sentences(sentences: Sequence[Sequence[str]]) -> None:
    """Check that sentences are lists of tokens: Python would take each character of a text for a token.

    Raises:
        UserError: naming the first that is not.
    """
    if isinstance(sentences, str):
        raise UserError(f"expected a list of sentences, each a list of tokens, found the text {sentences[:40]!r}")
    for number, sentence in enumerate(sentences, start=1):
        if isinstance(sentence, str):
            raise UserError(
                f"sentence {number}: expected a list of tokens, found the text {sentence[:40]!r}; "
                "text.split() is one way to make one"
            )
        if not isinstance(sentence, Iterable) or not all(isinstance(token, str) for token in sentence):
            raise UserError(f"sentence {number}: expected a list of tokens, each a text, found {quoted(sentence)}")


def digest_weights(about: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """Sixteen hexadecimal digits of an encoder's description and weights."""
    sha = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, value in sorted(tensors.items()):
        sha.update(name.encode())
        sha.update(value.detach().float().cpu().contiguous().numpy().tobytes())
    return sha.hexdigest()[:16]


def batches_by_length(lengths: Sequence[int], n_positions: int) -> Iterator[list[int]]:
    """Row numbers in batches of similar length, longest first, each within the budget of padded positions."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda k: -lengths[k]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > n_positions:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
