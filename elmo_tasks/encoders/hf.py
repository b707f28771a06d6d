"""A Hugging Face transformer in the biLM's place: its embeddings and all of its layers, a vector a word."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from elmo_tasks.batch import mask_of
from elmo_tasks.encoders.base import (
    EncoderModule,
    as_sentences,
    batches_by_length,
    remark_on_zeros,
    with_gradients_if_tuned,
)
from elmo_tasks.encoders.hf_files import is_unused, load_model, load_tokenizer, max_positions, read_config
from elmo_tasks.encoders.pieces import Pieces, PieceTokenizer, best_window, window_starts
from elmo_tasks.errors import UserError

_BATCH_POSITIONS = 8192  # pieces of one batch of windows of similar length
_BATCH_FLOATS = 80_000_000  # of all layers of such a batch: 320 MB


@dataclass
class Window:
    """A stretch of a sentence as the model reads it, and the words whose vectors are taken from it."""

    sentence: int
    ids: list[int]
    words: dict[int, tuple[int, int]]
    """Position of a word in the sentence to the first and last place of its pieces in ``ids``."""


class HuggingFace(EncoderModule):
    """A frozen transformer over its tokeniser's pieces.

    Layer 0 is the embeddings (positions included), layers 1 .. L-1 are those of the transformer, as its
    ``hidden_states`` give them; D is its hidden size. A word without any piece (a lone control character) is zero in
    all layers. A sentence of more pieces than a window is read in windows that overlap by half, and each word's vector
    comes from the window in which it has most context on both sides.

    Args:
        model: a frozen model of the library transformers.
        tokenizer: a fast tokeniser.
        pieces: a word's vector is that of its ``first`` piece or the ``mean`` of its pieces.
        window: pieces of a window at most, including special ones; None is as many as the model has positions for.
        about: what the digest has of the model's configuration and the tokeniser, besides the weights; None is what
            both say of themselves.

    Raises:
        UserError: if the window is out of range, or the model does not give layers of one width for a text.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        pieces: str = "first",
        window: int | None = None,
        about: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.model, self.tokenizer = model, tokenizer
        self._about = about or _describe(model, tokenizer)
        self.piece_tokenizer = PieceTokenizer(tokenizer, pieces)
        self.window = _checked_window(window, max_positions(model, tokenizer))
        self.n_layers, self.dim = self._measure()
        self._described = _describe(model, tokenizer)
        self.finish()

    @classmethod
    def load(cls, path: str | Path, *, pieces: str = "first", window: int | None = None) -> HuggingFace:
        """A frozen model from a local folder: ``config.json``, weights as safetensors, a fast tokeniser.

        Nothing is fetched, unpickled, or run from the folder.

        Raises:
            UserError: if the extra ``hf`` is not installed, an option is out of range, a file is missing or damaged,
                the weights do not fit ``config.json`` or are not finite, or the tokeniser is not a fast one.
        """
        if pieces not in ("first", "mean"):
            raise UserError(f"bilm.options.pieces must be one of first, mean, found {pieces!r}")
        folder = Path(path)
        config = read_config(folder)
        tokenizer = load_tokenizer(folder)
        about = {"config": config, "tokenizer": json.loads(tokenizer.backend_tokenizer.to_str())}
        return cls(load_model(folder), tokenizer, pieces=pieces, window=window, about=about)

    def content(self) -> tuple[Mapping[str, Any], Mapping[str, Tensor]]:
        """The weights, ``config.json``, the tokeniser and the options.

        Raises:
            UserError: in training mode, in which dropout makes vectors random.
        """
        if self.model.training:
            raise UserError(
                "this Hugging Face model is in training mode, in which dropout makes its vectors random; call eval()"
            )
        now = _describe(self.model, self.tokenizer)
        about = self._about if now == self._described else now
        weights = {name: value for name, value in self.model.state_dict().items() if not is_unused(name)}
        options = {"encoder": "hf", "pieces": self.piece_tokenizer.pieces, "window": self.window}
        return {**options, **about}, weights

    def train(self, mode: bool = True) -> HuggingFace:
        """Switch modes. A frozen model stays in evaluation mode: dropout would make its vectors random."""
        return super().train(mode and any(each.requires_grad for each in self.parameters()))

    def prepare(self, words: Iterable[str]) -> str:
        """A remark on the words that have no piece; empty if there are none."""
        distinct = list(dict.fromkeys(words))
        pieces = self._pieces([[word] for word in distinct])
        lost = [word for word, cut in zip(distinct, pieces, strict=True) if not cut.words]
        return remark_on_zeros(lost, len(distinct), "piece")

    @with_gradients_if_tuned
    def layers(self, sentences: Iterable[Iterable[str]]) -> list[Tensor]:
        """All layers of each sentence, float ``[L, T, D]`` each, in order.

        Raises:
            UserError: if a sentence is not a list of tokens.
        """
        sentences = as_sentences(sentences)
        device = self.model.device
        results = [torch.zeros(self.n_layers, len(s), self.dim, device=device) for s in sentences]
        windows = [window for k, cut in enumerate(self._pieces(sentences)) for window in self._windows(k, cut)]
        budget = min(_BATCH_POSITIONS, _BATCH_FLOATS // (self.n_layers * self.dim))
        for rows in batches_by_length([len(window.ids) for window in windows], budget):
            batch = [windows[row] for row in rows]
            for window, hidden in zip(batch, self._read([window.ids for window in batch]), strict=True):
                words = torch.tensor(list(window.words), device=device)
                results[window.sentence][:, words] = _pooled(hidden, list(window.words.values()))
        return results

    def _pieces(self, sentences: Sequence[Sequence[str]]) -> list[Pieces]:
        """The pieces of each sentence.

        Raises:
            UserError: if the model does not have embeddings for all of them.
        """
        found = self.piece_tokenizer(sentences)
        largest = max((max([*cut.before, *cut.ids, *cut.after], default=0) for cut in found), default=0)
        n_known = self.model.get_input_embeddings().num_embeddings
        if largest >= n_known:
            raise UserError(
                f"the tokeniser gives piece {largest}, but the model has embeddings for {n_known:,}: "
                "bilm.path holds the files of two models"
            )
        return found

    def _windows(self, sentence: int, cut: Pieces) -> Iterator[Window]:
        """What is read of a sentence: only windows from which a word is taken."""
        size = len(cut.ids) if self.window is None else self.window - len(cut.before) - len(cut.after)
        starts = window_starts(len(cut.ids), size)
        chosen: dict[int, dict[int, tuple[int, int]]] = {}
        for word, (first, last) in cut.words.items():
            k = best_window(first, last, starts, size) if len(starts) > 1 else 0
            within = max(first, starts[k]), min(last, starts[k] + size - 1)
            shift = len(cut.before) - starts[k]
            chosen.setdefault(k, {})[word] = (within[0] + shift, within[1] + shift)
        for k, words in chosen.items():
            yield Window(sentence, [*cut.before, *cut.ids[starts[k] : starts[k] + size], *cut.after], words)

    def _read(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """Some windows' pieces to float ``[B, L, n, D]``; padding is masked."""
        device, padding = self.model.device, self.tokenizer.pad_token_id or 0
        ids = nn.utils.rnn.pad_sequence(
            [torch.tensor(text) for text in texts], batch_first=True, padding_value=padding
        ).to(device)
        lengths = torch.tensor([len(text) for text in texts], device=device)
        mask = mask_of(lengths, ids.shape[1])
        out = self.model(input_ids=ids, attention_mask=mask.long(), output_hidden_states=True)
        return torch.stack(out.hidden_states, dim=1)

    @torch.no_grad()
    def _measure(self) -> tuple[int, int]:
        """L and D, from reading one piece."""
        piece = torch.zeros(1, 1, dtype=torch.long, device=self.model.device)
        try:
            widths = [layer.shape[2] for layer in self.model(input_ids=piece, output_hidden_states=True).hidden_states]
        except Exception as error:  # models for images or sound may raise anything
            raise UserError(f"{type(self.model).__name__} cannot be used: it does not give layers of a text") from error
        if len(set(widths)) > 1:
            listed = ", ".join(map(str, widths))
            raise UserError(f"the layers of this model are {listed} wide: layers of different widths cannot be mixed")
        return len(widths), widths[0]


def _describe(model: Any, tokenizer: Any) -> dict[str, Any]:
    """What a model and its tokeniser say of themselves, without truncation and padding, which are not used."""
    cuts = json.loads(tokenizer.backend_tokenizer.to_str())
    kept = {key: value for key, value in cuts.items() if key not in ("truncation", "padding")}
    return {"config": json.loads(model.config.to_json_string(use_diff=False)), "tokenizer": kept}


def _pooled(hidden: Tensor, spans: Sequence[tuple[int, int]]) -> Tensor:
    """Means over spans of pieces: ``[L, n, D]`` to ``[L, len(spans), D]``."""
    first, last = torch.tensor(spans, device=hidden.device).unsqueeze(2).unbind(1)
    places = torch.arange(hidden.shape[1], device=hidden.device)
    share = ((places >= first) & (places <= last)) / (last - first + 1)
    return share.to(hidden.dtype) @ hidden


def _checked_window(window: int | None, positions: int | None) -> int | None:
    if window is None:
        return positions
    if not isinstance(window, int) or isinstance(window, bool) or window < 8:
        raise UserError(f"bilm.options.window must be a whole number of at least 8, or null, found {window!r}")
    if positions is not None and window > positions:
        raise UserError(f"bilm.options.window={window}, but the model has positions for {positions} pieces")
    return window
