"""ELMo: a task's own mix of a frozen biLM's layers, at the input or output of its biRNN or both (sections 3.2, 3.3)."""

from __future__ import annotations

from typing import TypedDict, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_tasks.batch import Text
from elmo_tasks.errors import UserError
from elmo_tasks.nn.dropout import Dropout

PLACES = {"none": (), "input": ("input",), "output": ("output",), "both": ("input", "output")}
GAMMAS = ("learned", "one")
_LAYER_NORM_EPSILON = 1e-12


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

    Raises:
        UserError: for another mix or gamma.
    """

    def __init__(self, *, n_layers: int, mix: str = "scalar", gamma: str = "learned", layer_norm: bool = False) -> None:
        super().__init__()
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

    def forward(self, layers: Tensor, mask: Tensor) -> Tensor:
        """Mix the layers.

        Args:
            layers: float ``[B, L, T, D]``, zero on padding.
            mask: bool ``[B, T]``.

        Returns:
            float ``[B, T, D]``, zero on padding.

        Raises:
            UserError: for another number of layers, or a mask of another shape.
        """
        b, n_layers, t, _ = layers.shape
        if n_layers != self.n_layers:
            raise UserError(f"expected layers [B, L, T, D] with L = {self.n_layers}, found L = {n_layers}")
        if mask.shape != (b, t):
            raise UserError(f"expected a mask [B, T] of shape {[b, t]}, as the layers, found {list(mask.shape)}")
        if self.layer is not None:
            layers = layers[:, self.layer : self.layer + 1]
        if self.layer_norm:
            layers = _normalise(layers, mask)
        if self.w is None:
            return self.gamma * layers[:, 0]
        return self.gamma * torch.einsum("l,bltd->btd", F.softmax(self.w, dim=0), layers)

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
    """Normalise each layer to mean 0 and variance 1 over the tokens of the batch; zero on padding."""
    valid = mask[:, None, :, None].to(layers.dtype)
    n = valid.sum() * layers.shape[3]
    mean = (layers * valid).sum(dim=(0, 2, 3), keepdim=True) / n
    centred = (layers - mean) * valid
    variance = centred.square().sum(dim=(0, 2, 3), keepdim=True) / n
    return centred / (variance + _LAYER_NORM_EPSILON).sqrt()


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
        UserError: for another placement, mix or gamma, or a dropout rate outside of [0, 1).
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
        self.lambda_ = lambda_
        self.input_dim = dim if "input" in places else 0
        self.output_dim = dim if "output" in places else 0
        mixes = {place: ScalarMix(n_layers=n_layers, mix=mix, gamma=gamma, layer_norm=layer_norm) for place in places}
        self.mixes = cast("dict[str, ScalarMix]", nn.ModuleDict(mixes))  # mypy knows its values as modules only
        self.dropout = Dropout(dropout)

    def at_input(self, x: Tensor, text: Text) -> Tensor:
        """``[B, T, E]`` to ``[B, T, E + input_dim]``: before the biRNN."""
        return self._concatenate(x, text, "input")

    def at_output(self, h: Tensor, text: Text) -> Tensor:
        """``[B, T, H]`` to ``[B, T, H + output_dim]``: after the biRNN."""
        return self._concatenate(h, text, "output")

    def output_vector(self, text: Text) -> Tensor:
        """``[B, T, output_dim]``: what :meth:`at_output` appends, where the biRNN's rows are not those of the text."""
        return self.at_output(torch.empty(*text.mask.shape, 0, device=text.mask.device), text)

    def _concatenate(self, x: Tensor, text: Text, place: str) -> Tensor:
        if place not in self.mixes:
            return x
        assert text.layers is not None, "the batch carries no biLM layers"
        return torch.cat([x, self.dropout(self.mixes[place](text.layers, text.mask))], dim=2)

    def penalty(self) -> Tensor | float:
        """lambda times the squared scalars of all mixes in use; 0 without ELMo."""
        return self.lambda_ * sum((mix.penalty() for mix in self.mixes.values()), start=0.0)

    def weights(self) -> dict[str, MixWeights]:
        """s and gamma by place."""
        return {place: mix.weights() for place, mix in self.mixes.items()}
