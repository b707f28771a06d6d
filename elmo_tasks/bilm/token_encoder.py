"""The biLM's context-independent token layer: character CNN, highway layers, projection (section 3.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_tasks.bilm.convolution import character_maxima, pads_to_fixed_sizes
from elmo_tasks.nn.characters import MAX_CHARACTERS, N_CHARACTERS, PADDING, character_id_table
from elmo_tasks.nn.linear import Linear

_CHUNK_FLOATS = 1 << 23  # activations of one chunk of words: 32 MB; smaller matrix products are slower


class TokenEncoder(nn.Module):
    """Context-independent word vectors from characters.

    Args:
        filters: (width, count) of each filter group, in the order of the weight file.
        embedding_dim: size of a character embedding.
        n_highway: number of highway layers.
        projection_dim: size P of the output vector.
        activation: ``relu`` or ``tanh``, of the filters' maxima.
        max_characters: ids of a word at most, those that mark its ends included.
    """

    def __init__(
        self,
        *,
        filters: Sequence[tuple[int, int]],
        embedding_dim: int,
        n_highway: int,
        projection_dim: int,
        activation: str = "relu",
        max_characters: int = MAX_CHARACTERS,
    ) -> None:
        super().__init__()
        self.activation, self.max_characters = activation, max_characters
        self.filters = [(int(width), int(count)) for width, count in filters]
        n_filters = sum(count for _, count in self.filters)
        self.max_width = max(width for width, _ in self.filters)
        self.characters = nn.Parameter(torch.randn(N_CHARACTERS, embedding_dim) / embedding_dim**0.5)
        self.kernels = nn.ParameterList(
            nn.Parameter(torch.empty(width * embedding_dim, count)) for width, count in self.filters
        )
        self.kernel_bias = nn.Parameter(torch.zeros(n_filters))
        self.highways = nn.ModuleList(Highway(n_filters) for _ in range(n_highway))
        # bilm-tf leaves the projection out where it would not change the size
        self.projection = nn.Identity() if n_filters == projection_dim else Linear(n_filters, projection_dim)
        self.projection_dim = projection_dim
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw filters and projection as bilm-tf does; the embedding of id 0, which is no character, is zero."""
        with torch.no_grad():
            self.characters[0] = 0.0  # not in weight files, and no output depends on it
        for kernel in self.kernels:
            nn.init.uniform_(kernel, -0.05, 0.05)
        if isinstance(self.projection, nn.Linear):
            nn.init.normal_(self.projection.weight, std=self.projection.in_features**-0.5)
            nn.init.zeros_(self.projection.bias)

    def encode(self, words: Sequence[str]) -> Tensor:
        """Vectors of any number of words, float ``[len(words), P]``."""
        char_ids = character_id_table(words, extra=self.max_width, most=self.max_characters)
        return self.forward(char_ids.to(self.characters.device))

    def forward(self, char_ids: Tensor) -> Tensor:
        """Vectors of W words, with bounded memory.

        Words are sorted by length and computed in chunks. The padding of a chunk is truncated: beyond one window of
        padding after the longest word, it cannot change a filter's maximum.

        Args:
            char_ids: long ``[W, C]``, C is the longest word plus the widest filter, or ``max_characters`` if that is
                less.

        Returns:
            float ``[W, P]``.
        """
        n_words = len(char_ids)
        if pads_to_fixed_sizes(self.characters):
            char_ids = _padded_to_fixed_size(char_ids)
        lengths = (char_ids != PADDING).sum(dim=1)
        order = lengths.argsort()
        widths = (lengths[order] + self.max_width).clamp(max=char_ids.shape[1]).tolist()
        chunks = [
            self.convolve(char_ids[order[chunk.start : chunk.stop], : widths[chunk.stop - 1]])
            for chunk in self._chunks(widths)
        ]
        if not chunks:
            return self.kernel_bias.new_empty(0, self.projection_dim)
        return self.combine(torch.cat(chunks)[order.argsort()])[:n_words]

    def _chunks(self, widths: Sequence[int]) -> Iterator[range]:
        """Ranges of words, short to long, whose activations stay within ``_CHUNK_FLOATS``."""
        start, n_filters = 0, self.kernel_bias.numel()
        for stop in range(1, len(widths) + 1):
            full = stop < len(widths) and (stop - start + 1) * widths[stop] * n_filters > _CHUNK_FLOATS
            if full or stop == len(widths):
                yield range(start, stop)
                start = stop

    def convolve(self, char_ids: Tensor) -> Tensor:
        """Convolution features of words padded to one length: ``[W, C]`` to ``[W, n_filters]``."""
        dtype = _matmul_dtype(self.characters)
        width = self.max_width * self.characters.shape[1]
        kernels = torch.cat([F.pad(kernel, (0, 0, 0, width - len(kernel))) for kernel in self.kernels], dim=1)
        maxima = character_maxima(char_ids, self.characters.to(dtype), kernels.to(dtype), self.filters)
        features = maxima + self.kernel_bias.to(dtype)
        return torch.tanh(features) if self.activation == "tanh" else F.relu(features)

    def combine(self, features: Tensor) -> Tensor:
        """Highway layers and projection: ``[W, n_filters]`` to ``[W, P]``."""
        for highway in self.highways:
            features = highway(features)
        out: Tensor = self.projection(features)
        return out


def _padded_to_fixed_size(char_ids: Tensor) -> Tensor:
    """With empty words, to one of 16 sizes between two powers of two, which many batches share: see convolution.py."""
    power_of_two = 1 << len(char_ids).bit_length()  # the next one
    unit = max(1, power_of_two // 32)
    return F.pad(char_ids, (0, 0, 0, -len(char_ids) % unit), value=PADDING)


def _matmul_dtype(like: Tensor) -> torch.dtype:
    device = like.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else like.dtype


class Highway(nn.Module):
    """``y = g * relu(transform(x)) + (1 - g) * x`` with the gate ``g = sigmoid(carry(x))``.

    The weight file calls the gate "carry", although it multiplies the transformed input.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.transform = Linear(dim, dim)
        self.carry = Linear(dim, dim)
        for layer in (self.transform, self.carry):
            nn.init.normal_(layer.weight, std=dim**-0.5)
        nn.init.zeros_(self.transform.bias)
        nn.init.constant_(self.carry.bias, -2.0)

    def forward(self, x: Tensor) -> Tensor:
        gate = torch.sigmoid(self.carry(x))
        return gate * F.relu(self.transform(x)) + (1 - gate) * x
