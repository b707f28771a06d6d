"""ELMo layers of some sentences, padded, for use in another model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from elmo_tasks.batch import mask_of, pad_layers
from elmo_tasks.bilm.model import BiLM
from elmo_tasks.encoders.base import Encoder, as_sentences
from elmo_tasks.errors import UserError, quoted


@dataclass
class Embedded:
    """Layers of B sentences.

    Attributes:
        layers: float ``[B, L, T, D]``, zero on padding; layer 0 is the token layer.
        mask: bool ``[B, T]``, True where there is a token.
    """

    layers: Tensor
    mask: Tensor


def embed(sentences: Iterable[Iterable[str]], encoder: Encoder | str | Path = "mini") -> Embedded:
    """All layers of some sentences; a sentence's layers depend on its tokens alone.

    Args:
        sentences: one or more lists of tokens, in a list, an array, a Series or any other iterable.
        encoder: an encoder, such as ``BiLM.load("mini")``; or the argument of :meth:`BiLM.load`, read in each call.

    Raises:
        UserError: if there is no sentence, if one is not a list of tokens, is empty or has an empty token, and as
            :meth:`BiLM.load`.
    """
    found = as_sentences(sentences)
    if not found:
        raise UserError("embed: expected one sentence or more, found none")
    for number, sentence in enumerate(found, start=1):
        if len(sentence) == 0:
            raise UserError(
                f"embed: sentence {number} has no token; leave it out, or call the encoder's layers(sentences), which "
                "gives an empty tensor for it"
            )
        if "" in sentence:
            raise UserError(f"embed: sentence {number} has an empty token; leave it out or write a token there")
    if isinstance(encoder, (str, Path)):
        encoder = BiLM.load(encoder)
    if not hasattr(encoder, "layers"):
        raise UserError(f"embed: expected an encoder, or the name or folder of a biLM, found {quoted(encoder)}")
    padded = pad_layers(encoder.layers(found))
    lengths = torch.tensor([len(sentence) for sentence in found], device=padded.device)
    return Embedded(padded, mask_of(lengths, padded.shape[2]))
