"""The interface of a frozen encoder: the biLM implements it, and other encoders can take its place."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

import torch
from torch import Tensor, nn

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
        """Digest of all that can change a vector, now; part of the layer store's key and of every row."""

    def prepare(self, words: Iterable[str]) -> str:
        """Prepare for words that :meth:`layers` will read.

        Returns:
            a remark for the user, on words that the encoder cannot read as written or on its speed; else empty.
        """

    def layers(self, sentences: Sequence[Sequence[str]]) -> list[Tensor]:
        """All layers of each sentence, float ``[L, T, D]`` each, in order."""


_SAMPLED = 100  # numbers of each tensor that a mark has, about

Of = TypeVar("Of", bound=nn.Module)
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def with_gradients_if_tuned(
    method: Callable[Concatenate[Of, Arguments], Result],
) -> Callable[Concatenate[Of, Arguments], Result]:
    """A method of an encoder that records gradients if a parameter requires one, and none for a frozen encoder.

    The method raises a UserError if the encoder has no weights to compute with, on the device ``meta``.
    """

    @wraps(method)
    def run(self: Of, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        parameters = list(self.parameters())
        _expect_numbers(parameters)
        with torch.set_grad_enabled(torch.is_grad_enabled() and any(each.requires_grad for each in parameters)):
            return method(self, *args, **kwargs)

    return cast("Callable[Concatenate[Of, Arguments], Result]", run)


class EncoderModule(nn.Module):
    """An encoder made of PyTorch modules. Its digest is that of its weights as they are when it is asked for.

    A subclass calls :meth:`finish` when it has all of its parts.
    """

    def finish(self) -> None:
        """Remember of which parts the encoder is made, for :attr:`digest`."""
        self._parts = _parts(self)

    def content(self) -> tuple[Mapping[str, Any], Mapping[str, Tensor]]:
        """All that can change a vector: a description that JSON can write, and the weights by name."""
        raise NotImplementedError

    @property
    def digest(self) -> str:
        """Digest of all that can change a vector, computed each time: 0.1 s for 30 million weights.

        Raises:
            UserError: if a part was replaced by one of another kind or has a new hook, which no digest describes.
        """
        _expect_numbers(self.parameters())
        if _parts(self) != self._parts:
            raise UserError(
                f"a part of this {type(self).__name__} was replaced by one of another kind, or has a new hook; its "
                "layers cannot be stored or told from others; load it again, and compute such layers with embed"
            )
        return digest_weights(*self.content())


def _parts(module: nn.Module) -> list[tuple[Any, ...]]:
    """What of a module's parts their weights do not say: kind, constants such as bounds and rates, hooks."""
    return [
        (
            name,
            type(part),
            *(value for key, value in sorted(vars(part).items()) if isinstance(value, float)),
            "forward" in vars(part),
            len(part._forward_hooks) + len(part._forward_pre_hooks),
        )
        for name, part in module.named_modules()
        if part is not module
    ]


def _expect_numbers(parameters: Iterable[Tensor]) -> None:
    plain = (each for each in parameters if type(each) in (Tensor, nn.Parameter))  # others may hold theirs elsewhere
    if any(each.is_meta for each in plain):
        raise UserError("this encoder is on the device meta, where weights have no numbers; load it again")


def mark_of(encoder: object) -> list[Any]:
    """What differs after nearly every change of an encoder and costs next to nothing; the digest tells for certain.

    PyTorch counts the changes of a tensor, but not those through ``.data``. So some numbers of each are there too: a
    change of all of them is seen, one of a single number through ``.data`` may not be.
    """
    public = {key: value for key, value in vars(encoder).items() if not key.startswith("_")}
    plain = {key: value for key, value in public.items() if isinstance(value, (str, int, float, type(None)))}
    if not isinstance(encoder, nn.Module):
        return [plain]
    tensors = [*encoder.parameters(), *encoder.buffers()]
    versions = [
        (id(each), each.data_ptr(), each.dtype, None if each.is_inference() else each._version) for each in tensors
    ]
    samples = [each.detach().flatten()[:: each.numel() // _SAMPLED + 1].double() for each in tensors]
    return [plain, _parts(encoder), versions, torch.cat(samples).tolist() if samples else []]


class Seal:
    """Says whether an encoder is still what it was.

    Args:
        encoder: as it is now.
        content: what counts of it, now; its digest, with whatever else.
    """

    def __init__(self, encoder: object, content: Any) -> None:
        self.content, self._mark = content, mark_of(encoder)

    def holds(self, encoder: object, content: Callable[[], Any], exact: bool = True) -> bool:
        """Whether ``content()`` is what it was; it is not asked for if the encoder's mark is the same, unless exact."""
        mark = mark_of(encoder)
        if not exact and mark == self._mark:
            return True
        holds: bool = content() == self.content
        self._mark = mark if holds else []  # no mark of any encoder: look again each time
        return holds


def as_sentences(sentences: Iterable[Iterable[str]]) -> list[Sequence[str]]:
    """Sentences as lists of tokens, from any iterable of iterables: lists, arrays, a Series, a generator.

    Raises:
        UserError: naming the first that is not one; Python would take each character of a text for a token.
    """
    found = _listed(sentences)
    if isinstance(found, str):
        raise UserError(f"expected a list of sentences, each a list of tokens, found the text {found[:40]!r}")
    if not isinstance(found, (list, tuple)):
        raise UserError(f"expected a list of sentences, each a list of tokens, found {quoted(sentences)}")
    return [_as_tokens(sentence, f"sentence {number}") for number, sentence in enumerate(found, start=1)]


def _as_tokens(sentence: Iterable[str], name: str) -> Sequence[str]:
    tokens = _listed(sentence)
    if isinstance(tokens, str):
        raise UserError(
            f"{name}: expected a list of tokens, found the text {tokens[:40]!r}; text.split() is one way to make one"
        )
    if not isinstance(tokens, (list, tuple)) or not all(isinstance(token, str) for token in tokens):
        raise UserError(f"{name}: expected a list of tokens, each a text, found {quoted(tokens)}")
    return tokens


def _listed(value: Any) -> Any:
    """A list or a tuple of what has an order and can be gone through; other things as they are."""
    if isinstance(value, (list, tuple, str, bytes, Mapping, set, frozenset)):
        return value
    if hasattr(value, "tolist"):  # NumPy and pandas; of a single value it makes a plain one
        return value.tolist()
    return list(value) if isinstance(value, Iterable) else value


def digest_weights(about: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """Sixteen hexadecimal digits of an encoder's description and weights; the number format counts."""
    sha = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, value in sorted(tensors.items()):
        sha.update(name.encode())
        if value.is_floating_point() and value.dtype is not torch.float32:
            sha.update(str(value.dtype).encode())
        exact = value.detach() if value.dtype is torch.float64 else value.detach().float()
        sha.update(exact.cpu().contiguous().numpy().reshape(-1).data)
    return sha.hexdigest()[:16]


def remark_on_zeros(lost: Sequence[str], n_words: int, lack: str) -> str:
    """A remark for the user on words whose vectors are zeros, since they have no ``lack``; empty without such words."""
    if not lost:
        return ""
    return f"words without a {lack}, which are zeros: {len(lost):,} of {n_words:,}, such as {lost[0][:60]!r}"


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
