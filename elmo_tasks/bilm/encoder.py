"""The biLM's context-independent token layer: character CNN, highway layers, projection (section 3.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_tasks.bilm.chars import N_CHARACTERS, PADDING, character_id_table
from elmo_tasks.nn.linear import Linear, linear

_CHUNK_FLOATS = 8_000_000  # activations of one chunk of words: 32 MB; smaller products would be slower ones


class TokenEncoder(nn.Module):
    """Words to vectors, each word by itself.

    All filter widths are one matrix product: a window of the widest filter (7 characters x 16 dimensions) is
    multiplied with all filters at once, narrower ones filled up with zeros. Most filters are wide, so little
    work is wasted, and one large product runs several times faster than seven convolutions.

    Args:
        filters: (width, count) of each filter group, in the order of the weight file.
        embedding_dim: size of a character embedding.
        n_highway: number of highway layers.
        projection_dim: size P of the vector that comes out.
    """

    def __init__(
        self, *, filters: Sequence[tuple[int, int]], embedding_dim: int, n_highway: int, projection_dim: int
    ) -> None:
        super().__init__()
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
        """bilm-tf's initialisation: small uniform filters, highways that carry their input at first."""
        with torch.no_grad():
            self.characters[0] = 0.0  # no character: not in weight files, and nothing depends on it
        for kernel in self.kernels:
            nn.init.uniform_(kernel, -0.05, 0.05)
        if isinstance(self.projection, nn.Linear):
            nn.init.normal_(self.projection.weight, std=self.projection.in_features**-0.5)
            nn.init.zeros_(self.projection.bias)

    def encode(self, words: Sequence[str]) -> Tensor:
        """Vectors of any number of words, float ``[len(words), P]``."""
        char_ids = character_id_table(words, extra=self.max_width)
        return self.forward(char_ids.to(self.characters.device))

    def forward(self, char_ids: Tensor) -> Tensor:
        """Vectors of W words, with bounded memory.

        Words of similar length go together: characters beyond the longest word of a chunk, plus one window of
        filling that every filter sees, cannot change a maximum.

        Args:
            char_ids: long ``[W, C]``, C at least the longest word plus the widest filter, or 50.

        Returns:
            float ``[W, P]``.
        """
        lengths = (char_ids != PADDING).sum(dim=1)
        order = lengths.argsort()
        widths = (lengths[order] + self.max_width).clamp(max=char_ids.shape[1]).tolist()
        chunks = [
            self._encode(char_ids[order[chunk.start : chunk.stop], : widths[chunk.stop - 1]])
            for chunk in self._chunks(widths)
        ]
        if not chunks:
            return self.kernel_bias.new_empty(0, self.projection_dim)
        return torch.cat(chunks)[order.argsort()]

    def _chunks(self, widths: Sequence[int]) -> Iterator[range]:
        """Stretches of words, short to long, whose activations stay within the bound."""
        start, n_filters = 0, self.kernel_bias.numel()
        for stop in range(1, len(widths) + 1):
            full = stop < len(widths) and (stop - start + 1) * widths[stop] * n_filters > _CHUNK_FLOATS
            if full or stop == len(widths):
                yield range(start, stop)
                start = stop

    def _encode(self, char_ids: Tensor) -> Tensor:
        x = self._convolve(char_ids)
        for highway in self.highways:
            x = highway(x)
        out: Tensor = self.projection(x)
        return out

    def _convolve(self, char_ids: Tensor) -> Tensor:
        """Maximum over the positions of each filter, then ReLU: ``[W, C]`` to ``[W, n_filters]``."""
        n_characters = char_ids.shape[1]
        filled = F.pad(char_ids, (0, self.max_width - 1))  # zeros, met only by windows that are cut off below
        windows = filled.unfold(1, self.max_width, 1)  # [W, C, max_width]
        x = F.embedding(windows, self.characters).flatten(2)  # [W, C, max_width * embedding_dim]
        weight = torch.cat([F.pad(k, (0, 0, 0, x.shape[2] - k.shape[0])) for k in self.kernels], dim=1)
        scores = linear(x, weight.t())  # [W, C, n_filters]
        counts = [count for _, count in self.filters]
        maxima = [
            group[:, : n_characters - width + 1].amax(dim=1)  # only windows that lie within the word's C characters
            for (width, _), group in zip(self.filters, torch.split(scores, counts, dim=2), strict=True)
        ]
        return F.relu(torch.cat(maxima, dim=1) + self.kernel_bias)


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
