"""ELMo: a task's own mix of a frozen biLM's layers, at the input or output of its biRNN or both (sections 3.2, 3.3)."""

from __future__ import annotations

from typing import Protocol, TypedDict, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_tasks.errors import UserError
from elmo_tasks.nn.dropout import Dropout

PLACES = {"none": (), "input": ("input",), "output": ("output",), "both": ("input", "output")}
GAMMAS = ("learned", "one")
_LAYER_NORM_EPSILON = 1e-12


class WithLayers(Protocol):
    """What :class:`Elmo` reads: a :class:`elmo_tasks.batch.Text`, or what :func:`elmo_tasks.embed` gives."""

    mask: Tensor

    @property
    def layers(self) -> Tensor | None:
        """Float ``[B, L, T, D]``, zero on padding."""


class MixWeights(TypedDict):
    """What a mix has learned: softmax-normalised ``s`` of the L layers, and ``gamma``."""

    s: list[float]
    gamma: float


class ScalarMix(nn.Module):
    """``gamma * sum_j s_j h_j`` with ``s = softmax(w)`` over the layers (equation 1).

    Args:
        n_layers: L.
        mix: ``scalar`` learns w (from zeros: training starts at the mean); ``mean`` keeps w at zero;
            ``last`` and ``layer_k`` take one layer alone.
        gamma: ``learned`` (from 1) or ``one`` (fixed at 1). Without a learned gamma, some tasks do not train on the
            last layer alone (supplement, A.2).
        layer_norm: first normalise each layer by one mean and one variance over all tokens and dimensions of the
            batch, as bilm-tf does. It is not a per-token layer norm: with it, a text's mix depends on its batch.

    Layers may be of fewer bits than the mix: they are mixed in its number format.

    Raises:
        UserError: for another mix or gamma, or without a layer.
    """

    def __init__(self, *, n_layers: int, mix: str = "scalar", gamma: str = "learned", layer_norm: bool = False) -> None:
        super().__init__()
        if not isinstance(n_layers, int) or n_layers < 1:
            raise UserError(f"n_layers must be a whole number of at least 1, found {n_layers!r}")
        self.n_layers, self.mix, self.layer_norm = n_layers, mix, layer_norm
        self.layer = self._chosen_layer()
        if gamma not in GAMMAS:
            raise UserError(f"elmo.gamma={gamma}: expected {' or '.join(GAMMAS)}")
        self.gamma = nn.Parameter(torch.ones(()), requires_grad=gamma == "learned")
        self.w = nn.Parameter(torch.zeros(n_layers), requires_grad=mix == "scalar") if self.layer is None else None

    def _chosen_layer(self) -> int | None:
        """The number of the layer that is taken alone; None where all layers are mixed."""
        if self.mix in ("scalar", "mean"):
            return None
        if self.mix == "last":
            return self.n_layers - 1
        names = [f"layer_{k}" for k in range(self.n_layers)]
        if self.mix not in names:
            listed = ", ".join(names)
            raise UserError(
                f"elmo.mix={self.mix}: this biLM has {self.n_layers} layers: {listed}; or scalar, mean, last"
            )
        return names.index(self.mix)

    def forward(self, layers: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mix the layers.

        Args:
            layers: float ``[B, L, T, D]``, zero on padding.
            mask: bool ``[B, T]``; only ``layer_norm`` needs it.

        Returns:
            float ``[B, T, D]``, zero on padding.

        Raises:
            UserError: for another number of layers, or a mask of another shape.
        """
        if layers.dim() != 4 or layers.shape[1] != self.n_layers:
            found = f"L = {layers.shape[1]}" if layers.dim() == 4 else f"shape {list(layers.shape)}"
            raise UserError(f"expected layers [B, L, T, D] with L = {self.n_layers}, found {found}")
        shape = [layers.shape[0], layers.shape[2]]
        if mask is not None and list(mask.shape) != shape:
            raise UserError(f"expected a mask [B, T] of shape {shape}, as the layers, found {list(mask.shape)}")
        layers = layers.to(torch.promote_types(layers.dtype, self.gamma.dtype))
        if self.layer is not None:
            layers = layers[:, self.layer : self.layer + 1]
        if self.layer_norm:
            if mask is None:
                raise UserError("layer_norm needs the mask [B, T]: padding must not count in the means")
            layers = _normalise(layers, mask)
        if self.w is None:
            return self.gamma * layers[:, 0]
        return self.gamma * torch.einsum("l,bltd->btd", F.softmax(self.w, dim=0).to(layers.dtype), layers)

    def penalty(self) -> Tensor:
        """Sum of the squared scalars w, float ``[]``; neither softmax nor gamma is penalised. 0 for a single layer."""
        return self.gamma.new_zeros(()) if self.w is None else self.w.square().sum()

    def weights(self) -> MixWeights:
        """s and gamma as plain numbers."""
        if self.w is None:
            s = [float(k == self.layer) for k in range(self.n_layers)]
        else:
            s = F.softmax(self.w.detach(), dim=0).tolist()
        return {"s": s, "gamma": float(self.gamma.detach())}


def _normalise(layers: Tensor, mask: Tensor) -> Tensor:
    """Normalise each layer to mean 0 and variance 1 over the tokens of the batch; zero on padding.

    Sums are of 32 bits or more: in float16 they would overflow.
    """
    x = layers.to(torch.promote_types(layers.dtype, torch.float32))
    valid = mask[:, None, :, None].to(x.dtype)
    n = (valid.sum() * x.shape[3]).clamp(min=1)
    mean = (x * valid).sum(dim=(0, 2, 3), keepdim=True) / n
    centred = (x - mean) * valid
    variance = centred.square().sum(dim=(0, 2, 3), keepdim=True) / n
    return (centred / (variance + _LAYER_NORM_EPSILON).sqrt()).to(layers.dtype)


class Elmo(nn.Module):
    """A separate :class:`ScalarMix` for each place, concatenated to the task model's vectors there (section 3.3).

    The baseline is the same object with ``placement="none"``: :meth:`at_input` and :meth:`at_output`
    then return their argument.

    Args:
        placement: ``none``, ``input``, ``output`` or ``both``.
        n_layers: L of the biLM (any number with ``none``).
        dim: D of the biLM.
        mix: see :class:`ScalarMix`.
        gamma: see :class:`ScalarMix`.
        lambda_: the paper's lambda (section 3.3).
        dropout: rate on the ELMo vector.
        layer_norm: see :class:`ScalarMix`.

    Raises:
        UserError: for another placement, mix or gamma, or a dropout rate outside of [0, 1); in use, for a text without
            layers, or with layers of other sizes.
    """

    def __init__(
        self,
        *,
        placement: str,
        n_layers: int,
        dim: int,
        mix: str = "scalar",
        gamma: str = "learned",
        lambda_: float = 0.0,
        dropout: float = 0.0,
        layer_norm: bool = False,
    ) -> None:
        super().__init__()
        if placement not in PLACES:
            raise UserError(f"elmo.placement={placement}: expected one of {', '.join(PLACES)}")
        places = PLACES[placement]
        self.lambda_, self.dim = lambda_, dim
        self.input_dim = dim if "input" in places else 0
        self.output_dim = dim if "output" in places else 0
        mixes = {place: ScalarMix(n_layers=n_layers, mix=mix, gamma=gamma, layer_norm=layer_norm) for place in places}
        self.mixes = cast("dict[str, ScalarMix]", nn.ModuleDict(mixes))  # mypy knows its values as modules only
        self.dropout = Dropout(dropout)

    def at_input(self, x: Tensor, text: WithLayers) -> Tensor:
        """``[B, T, E]`` to ``[B, T, E + input_dim]``: before the biRNN."""
        return self._concatenate(x, text, "input")

    def at_output(self, h: Tensor, text: WithLayers) -> Tensor:
        """``[B, T, H]`` to ``[B, T, H + output_dim]``: after the biRNN."""
        return self._concatenate(h, text, "output")

    def output_vector(self, text: WithLayers) -> Tensor:
        """``[B, T, output_dim]``: what :meth:`at_output` appends, where the biRNN's rows are not those of the text."""
        return self.at_output(torch.empty(*text.mask.shape, 0, device=text.mask.device), text)

    def _concatenate(self, x: Tensor, text: WithLayers, place: str) -> Tensor:
        if place not in self.mixes:
            return x
        if text.layers is None:
            raise UserError(f"ELMo at the {place} needs the layers of a biLM, and this text has none; embed gives them")
        if text.layers.shape[-1] != self.dim:
            raise UserError(f"expected layers [B, L, T, D] with D = {self.dim}, found D = {text.layers.shape[-1]}")
        if x.shape[:2] != text.mask.shape:
            raise UserError(
                f"expected vectors [B, T, ...] of shape {[*text.mask.shape, '...']}, as the mask, found {list(x.shape)}"
            )
        return torch.cat([x, self.dropout(self.mixes[place](text.layers, text.mask))], dim=2)

    def penalty(self) -> Tensor | float:
        """lambda times the squared scalars of all mixes in use; 0 without ELMo."""
        return self.lambda_ * sum((mix.penalty() for mix in self.mixes.values()), start=0.0)

    def weights(self) -> dict[str, MixWeights]:
        """s and gamma by place."""
        return {place: mix.weights() for place, mix in self.mixes.items()}
