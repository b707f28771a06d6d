"""The frozen bidirectional language model: sentences in, the L layers of every token out (section 3.1)."""

from __future__ import annotations

import copy
import hashlib
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from elmo_tasks.bilm.lstm import ProjectedLSTM, State, run_in_blocks
from elmo_tasks.bilm.options import BiLMOptions
from elmo_tasks.bilm.states import CarriedStates
from elmo_tasks.bilm.token_encoder import TokenEncoder
from elmo_tasks.bilm.weights import check_weights, find_files, read_weights, write_weights
from elmo_tasks.encoders.base import (
    EncoderModule,
    Seal,
    as_sentences,
    batches_by_length,
    digest_weights,
    with_gradients_if_tuned,
)
from elmo_tasks.errors import UserError
from elmo_tasks.nn.characters import BEGIN_SENTENCE, END_SENTENCE, remark_on_truncated
from elmo_tasks.nn.packing import Packing
from elmo_tasks.places import bundled_folder
from elmo_tasks.processor import has_instructions

PRECISIONS = ("float32", "bfloat16", "int8")
_BATCH_POSITIONS = 8192  # tokens of one batch of sentences of similar length


class BiLM(EncoderModule):
    """Stacked bidirectional LSTMs (two in the paper) over character-based token vectors.

    The token layer is layer 0, doubled to the width of the others; layers 1 .. L-1 are the LSTMs' outputs, forward
    and backward halves side by side. Sentence boundaries are added before the LSTMs run and removed from the result.

    Three state policies:

    * ``reset`` (default): every sentence starts from zeros, so its layers depend on nothing but its tokens;
    * ``warm``: every sentence starts from one fixed state, the final state of :meth:`warm_up`;
    * ``carry``: row k of a call starts from the final state of row k of the previous call, as in bilm-tf.

    With ``precision = "bfloat16"`` :meth:`layers` multiplies matrices in bfloat16; with ``"int8"``, on a CPU, those of
    the LSTMs in int8, and those of the token layer in float32. Cells stay float32; with int8 so do sums and gates.

    :meth:`load` gives a frozen biLM. After ``requires_grad_()`` :meth:`layers` and :meth:`encode` have gradients, so
    that it can be tuned in a model of your own; the state that a sentence starts from gets none.
    """

    def __init__(self, options: BiLMOptions) -> None:
        super().__init__()
        self.options, self.precision = options, "float32"
        self.encoder = TokenEncoder(
            filters=options.filters,
            embedding_dim=options.character_dim,
            n_highway=options.n_highway,
            projection_dim=options.projection_dim,
            activation=options.activation,
            max_characters=options.max_characters,
        )
        self.lstms: list[ProjectedLSTM] = nn.ModuleList(  # type: ignore[assignment]
            ProjectedLSTM(
                input_dim=options.projection_dim,
                dim=options.dim,
                projection_dim=options.projection_dim,
                cell_clip=options.cell_clip,
                proj_clip=options.proj_clip,
            )
            for _ in range(options.n_layers)
        )
        self._states = CarriedStates()
        self.warm_digest: str | None = None
        self._warmed: Seal | None = None
        self._warns_of_truncation = True
        self.finish()

    @property
    def n_layers(self) -> int:
        """L, including the token layer."""
        return self.options.n_layers + 1

    @property
    def dim(self) -> int:
        """D, the width of a layer."""
        return 2 * self.options.projection_dim

    def content(self) -> tuple[Mapping[str, Any], Mapping[str, Tensor]]:
        """The sizes, weights and precision."""
        self._check_precision()
        about, weights = self.options.to_json(), self.state_dict()
        if self.precision == "float32":
            return about, weights
        return {digest_weights(about, weights): self.precision}, {}

    @classmethod
    def load(cls, where: str | Path) -> BiLM:
        """A frozen biLM: ``"mini"``, ``"small"``, ``"mini_ko"`` or a folder (``Path("mini")`` is one).

        A folder has one file ``*options.json`` and one ``*weights.hdf5``, or a single ``*.hdf5`` of another name, so
        that published files keep their names.

        Raises:
            UserError: if the files are missing, damaged or do not fit together.
        """
        bundled = bundled_folder(where) if isinstance(where, str) else None
        options_file, weights_file = find_files(bundled or Path(where))
        options = BiLMOptions.read(options_file)
        with torch.device("meta"):  # allocates no memory until the file is known to have these shapes
            check_weights(cls(options), weights_file)
        bilm = cls(options)
        read_weights(bilm, weights_file)
        return bilm.eval().requires_grad_(False)

    def save(self, folder: str | Path, dtype: str = "float32") -> None:
        """Write the official layout, readable by :meth:`load`, bilm-tf and AllenNLP.

        Raises:
            UserError: if the folder cannot be written.
        """
        write_weights(self, Path(folder), dtype)

    def prepare(self, words: Iterable[str]) -> str:
        """A message about truncated words and about a precision that is slow here; empty if there is nothing to say.

        :meth:`layers` then does not warn of truncated words.
        """
        self._warns_of_truncation = False
        remarks = self._remark_on_precision(), remark_on_truncated(words, self.options.max_characters)
        return "; ".join(filter(None, remarks))

    @with_gradients_if_tuned
    def layers(
        self,
        sentences: Iterable[Iterable[str]],
        state: str = "reset",
        encode: Callable[[Sequence[str]], Tensor] | None = None,
    ) -> list[Tensor]:
        """All layers of each sentence. The first call that truncates words warns of them.

        Args:
            sentences: any number of token lists, of any lengths.
            state: ``reset``, ``warm`` or ``carry``.
            encode: computes the token vectors ``[n, P]`` of distinct words; None is :meth:`encode`.

        Returns:
            float ``[L, T, D]`` for each sentence, in the order given.

        Raises:
            UserError: if a sentence is not a list of tokens, for an unknown ``state`` or precision, and for ``warm``
                before :meth:`warm_up` or with other weights than then.
        """
        sentences = as_sentences(sentences)
        self._check_precision()
        if self.precision == "int8" and torch.is_grad_enabled():
            raise UserError(
                "bilm.precision=int8 has no gradients: use float32, or freeze the biLM: requires_grad_(False)"
            )
        if state == "warm":
            self.expect_warm(exact=False)
        start = self._states.initial(self.initial_states(len(sentences)), state)
        marked = [[BEGIN_SENTENCE, *sentence, END_SENTENCE] for sentence in sentences]
        word_rows = {word: k for k, word in enumerate(dict.fromkeys(w for s in marked for w in s))}
        if encode is None:
            self._warn_of_truncation(word_rows)
        table = (encode or self.encode)(list(word_rows))
        results: list[Tensor] = [torch.empty(0)] * len(sentences)
        for rows in batches_by_length([len(s) for s in marked], _BATCH_POSITIONS):
            ids = [torch.tensor([word_rows[word] for word in marked[row]]) for row in rows]
            batch, final = self._run_batch(table, ids, _select_rows(start, rows))
            for row, layers in zip(rows, batch, strict=True):
                results[row] = layers[:, 1 : len(marked[row]) - 1].clone()
            if state == "carry":
                self._states.remember(rows, final)
        return results

    @with_gradients_if_tuned
    def encode(self, words: Sequence[str]) -> Tensor:
        """The token layer of words, float ``[len(words), P]``."""
        with self._matmul_precision():
            return self.encoder.encode(words).to(self.encoder.characters.dtype)

    def run(self, x: Tensor, batch_sizes: Sequence[int], states: Sequence[State]) -> tuple[list[Tensor], list[State]]:
        """Run the LSTMs over packed token vectors.

        Args:
            x: ``[2, N, P]``, packed, each direction in its reading order.
            batch_sizes: number of active rows at each step.
            states: initial state of each row, by LSTM layer.

        Returns:
            the output ``[2, N, P]`` and the final state of each LSTM layer; an output includes the skip connection.
        """
        outputs, finals = [], []
        for k, (lstm, state) in enumerate(zip(self.lstms, states, strict=True)):
            out, final = run_in_blocks(lstm, x, batch_sizes, state, self.precision == "int8")
            x = out + x if self.options.skip_connections and k > 0 else out
            outputs.append(x)
            finals.append(final)
        return outputs, finals

    def _run_batch(self, table: Tensor, ids: Sequence[Tensor], states: Sequence[State]) -> tuple[Tensor, list[State]]:
        """All layers ``[B, L, T, D]`` of sentences with marks, and the final state of each LSTM layer.

        Args:
            table: token vectors ``[n, P]``.
            ids: long ``[T]`` for each sentence, rows of ``table``.
            states: one per LSTM layer.
        """
        packing = Packing.from_lengths([len(sentence) for sentence in ids])
        tokens = table[nn.utils.rnn.pad_sequence(list(ids), batch_first=True)]
        with self._matmul_precision():
            outputs, finals = self.run(packing.pack(tokens), packing.batch_sizes, states)
        layers = [torch.cat([tokens, tokens], dim=2), *map(packing.unpack, outputs)]
        return torch.stack(layers, dim=1), finals

    def initial_states(self, n_rows: int) -> list[State]:
        """States of zeros for ``n_rows`` rows, by LSTM layer."""
        return [lstm.initial_state(n_rows) for lstm in self.lstms]

    def warm_up(self, sentences: Iterable[Iterable[str]]) -> None:
        """Read ``sentences`` in order with carried state, and keep the final state for ``warm``.

        Raises:
            UserError: if there is none, or one is not a list of tokens.
        """
        read = as_sentences(sentences)
        if not read:
            raise UserError("warm_up: expected one sentence or more, found none")
        digest, reader, sha = self.digest, self.with_own_states(), hashlib.sha256()
        for sentence in read:
            with torch.no_grad():
                reader.layers([sentence], state="carry")
            sha.update(json.dumps(list(sentence)).encode())
        self._states.warm, self._states.carried = reader._states.carried, None
        self.warm_digest = sha.hexdigest()[:16]
        self._warmed = Seal(self, digest)

    def expect_warm(self, exact: bool = True) -> None:
        """Check that the state of ``warm`` is that of these weights and this precision.

        Raises:
            UserError: before :meth:`warm_up`, or if the biLM has changed since.
        """
        if self._warmed is None:
            raise UserError("bilm.state=warm needs a warm-up text: call warm_up(sentences) first")
        if not self._warmed.holds(self, lambda: self.digest, exact):
            raise UserError("bilm.state=warm: the biLM has changed since its warm-up; call warm_up(sentences) again")

    def with_own_states(self) -> BiLM:
        """The same biLM, with the same weights, that starts from zeros and shares no carried state with this one."""
        reader = copy.copy(self)
        reader._states = CarriedStates()
        return reader

    def reset_carried_state(self) -> None:
        """Reset the state that ``carry`` starts from."""
        self._states.carried = None

    def _warn_of_truncation(self, words: Iterable[str]) -> None:
        if self._warns_of_truncation and (remark := remark_on_truncated(words, self.options.max_characters)):
            warnings.warn(f"{remark} (later ones are not named)", stacklevel=4)  # 2 is layers, 3 its decorator
            self._warns_of_truncation = False

    def _check_precision(self) -> None:
        """Check that the precision is one that there is, and that this device and gradients allow.

        Raises:
            UserError: if not.
        """
        if self.precision not in PRECISIONS:
            raise UserError(f"bilm.precision={self.precision}: expected one of {', '.join(PRECISIONS)}")
        device, dtype = self.encoder.characters.device.type, self.encoder.characters.dtype
        if self.precision != "float32" and dtype is not torch.float32:
            raise UserError(f"bilm.precision={self.precision} needs weights of float32, found {dtype}: call float()")
        if self.precision == "int8" and device != "cpu":
            raise UserError(f"bilm.precision=int8 is for a CPU, and the biLM is on {device}; use bfloat16")

    def _remark_on_precision(self) -> str:
        on_cpu = self.encoder.characters.device.type == "cpu"
        if self.precision == "float32" or not on_cpu or has_instructions(self.precision):
            return ""
        return f"this processor has no {self.precision} instructions, so it is many times slower here than float32"

    def _matmul_precision(self) -> torch.autocast:
        device = self.encoder.characters.device.type
        return torch.autocast(device, torch.bfloat16, enabled=self.precision == "bfloat16")


def _select_rows(states: Sequence[State], rows: Sequence[int]) -> list[State]:
    return [(h[:, rows], c[:, rows]) for h, c in states]
