"""A biLM that is tuned in a model of one's own: gradients against autograd over one plain operation after the other."""

import copy

import pytest
import torch
from torch.nn import functional as F

from elmo_tasks import embed
from elmo_tasks.bilm import BiLM
from elmo_tasks.errors import UserError
from elmo_tasks.nn.characters import PADDING, character_ids

SENTENCES = [["the", "cat", "sat"], ["a"], ["ab", "c", "été", "the", "a"]]


def plain_token(encoder, word):
    """The token layer of a word, ``[P]``, filter by filter over all 50 ids."""
    ids = [*character_ids(word)]
    x = encoder.characters[torch.tensor(ids + [PADDING] * (50 - len(ids)))]
    maxima = []
    for (width, _), kernel in zip(encoder.filters, encoder.kernels, strict=True):
        maxima.append(torch.stack([x[p : p + width].flatten() @ kernel for p in range(51 - width)]).amax(dim=0))
    h = F.relu(torch.cat(maxima) + encoder.kernel_bias)
    for highway in encoder.highways:
        gate = torch.sigmoid(F.linear(h, highway.carry.weight, highway.carry.bias))
        h = gate * F.relu(F.linear(h, highway.transform.weight, highway.transform.bias)) + (1 - gate) * h
    return F.linear(h, encoder.projection.weight, encoder.projection.bias)


def plain_direction(lstm, k, x):
    """One direction of a layer over ``[T, P]``, from zeros."""
    h, c, out = x.new_zeros(lstm.projection_dim), x.new_zeros(lstm.dim), []
    for step in x:
        i, j, f, o = (torch.cat([step, h]) @ lstm.weight[k] + lstm.bias[k]).chunk(4)
        c = (torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(j)).clamp(-lstm.cell_clip, lstm.cell_clip)
        h = ((torch.sigmoid(o) * torch.tanh(c)) @ lstm.w_projection[k]).clamp(-lstm.proj_clip, lstm.proj_clip)
        out.append(h)
    return torch.stack(out)


def plain_layers(bilm, sentence):
    tokens = torch.stack([plain_token(bilm.encoder, word) for word in ["<S>", *sentence, "</S>"]])
    both, layers = [tokens, tokens.flip(0)], [torch.cat([tokens, tokens], dim=1)]
    for number, lstm in enumerate(bilm.lstms):
        out = [plain_direction(lstm, k, x) for k, x in enumerate(both)]
        both = [new + old if number else new for new, old in zip(out, both, strict=True)]
        layers.append(torch.cat([both[0], both[1].flip(0)], dim=1))
    return torch.stack(layers)[:, 1:-1]


@pytest.fixture
def tuned(tiny_bilm):
    return tiny_bilm.double().requires_grad_(True)


def objective(layers):
    """A number in which every layer of every token counts differently."""
    generator = torch.Generator().manual_seed(1)
    return sum((torch.randn(x.shape, generator=generator, dtype=x.dtype) * x.square()).sum() for x in layers)


def gradients(bilm, layers):
    bilm.zero_grad()
    objective(layers).backward()
    return {name: value.grad.clone() for name, value in bilm.named_parameters()}


@pytest.mark.parametrize("block_floats", [32_000_000, 1])
def test_gradients_are_those_of_plain_autograd_however_long_the_text(tuned, monkeypatch, block_floats):
    monkeypatch.setattr("elmo_tasks.bilm.lstm._BLOCK_FLOATS", block_floats)
    expected = gradients(tuned, [plain_layers(tuned, sentence) for sentence in SENTENCES])
    found = gradients(tuned, tuned.layers(SENTENCES))
    for name, gradient in expected.items():
        scale = gradient.abs().max()
        assert scale > 0, name
        assert (found[name] - gradient).abs().max() < 1e-6 * scale, name  # of the characters' it is summed in float32


def test_embed_has_the_same_gradients(tuned):
    expected = gradients(tuned, tuned.layers(SENTENCES))
    elmo = embed(SENTENCES, tuned)
    found = gradients(tuned, [x[:, mask] for x, mask in zip(elmo.layers, elmo.mask, strict=True)])
    torch.testing.assert_close(found, expected)


def test_only_what_is_to_be_tuned_has_a_gradient_and_the_layers_stay_the_same(tiny_bilm):
    frozen = tiny_bilm.layers(SENTENCES)
    assert not any(x.requires_grad for x in frozen)
    tiny_bilm.lstms[1].requires_grad_(True)
    layers = tiny_bilm.layers(SENTENCES)
    torch.testing.assert_close(layers, frozen, rtol=0, atol=1e-5)
    objective(layers).backward()
    with_gradient = {name for name, value in tiny_bilm.named_parameters() if value.grad is not None}
    assert with_gradient == {f"lstms.1.{name}" for name in ("weight", "bias", "w_projection")}
    with torch.no_grad():
        assert not any(x.requires_grad for x in tiny_bilm.layers(SENTENCES))
    assert tiny_bilm.encode(["a"]).requires_grad is False
    assert tiny_bilm.requires_grad_(True).encode(["a"]).requires_grad


def test_an_optimizer_reduces_the_loss(tuned):
    optimizer = torch.optim.Adam(tuned.parameters(), lr=0.01)
    losses = []
    for _ in range(5):
        loss = embed(SENTENCES, tuned).layers.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)


def test_what_gives_no_gradient_is_said(tiny_bilm):
    tiny_bilm.precision = "int8"
    tiny_bilm.layers(SENTENCES)
    with pytest.raises(UserError, match=r"^bilm\.precision=int8 has no gradients: use float32, or freeze the biLM"):
        tiny_bilm.requires_grad_(True).layers(SENTENCES)
    tiny_bilm.requires_grad_(False).double()
    with pytest.raises(UserError, match=r"^bilm\.precision=int8 needs weights of float32, found torch\.float64"):
        tiny_bilm.layers(SENTENCES)
    tiny_bilm.precision = "float8"
    with pytest.raises(UserError, match=r"^bilm\.precision=float8: expected one of float32, bfloat16, int8$"):
        tiny_bilm.layers(SENTENCES)


def test_without_numbers_there_is_one_sentence(tiny_bilm):
    empty = copy.deepcopy(tiny_bilm).to("meta")
    for use in (lambda: empty.layers([["a"]]), lambda: empty.encode(["a"]), lambda: empty.digest):
        with pytest.raises(UserError, match=r"^this encoder is on the device meta, where weights have no numbers"):
            use()


def test_the_state_of_a_warm_up_is_that_of_its_weights(tiny_bilm, tiny_options):
    tiny_bilm.warm_up([["some", "text"]])
    warm = tiny_bilm.layers(SENTENCES, state="warm")
    for change in (lambda: tiny_bilm.lstms[0].bias.data.add_(1), lambda: setattr(tiny_bilm, "precision", "bfloat16")):
        change()
        with pytest.raises(UserError, match=r"^bilm\.state=warm: the biLM has changed since its warm-up; call warm_up"):
            tiny_bilm.layers(SENTENCES, state="warm")
        tiny_bilm.warm_up([["some", "text"]])
        assert (tiny_bilm.layers(SENTENCES, state="warm")[0] - warm[0]).abs().max() > 1e-3
    with pytest.raises(UserError, match=r"^warm_up: expected one sentence or more, found none$"):
        BiLM(tiny_options).warm_up([])
