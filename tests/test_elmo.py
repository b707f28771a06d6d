import numpy as np
import pytest
import torch

from elmo_tasks.batch import Text
from elmo_tasks.elmo import Elmo, ScalarMix
from elmo_tasks.embedding import Embedded
from elmo_tasks.errors import UserError

B, L, T, D = 3, 3, 4, 6
LENGTHS = [4, 1, 3]
W, GAMMA = [0.3, -1.2, 0.8], 1.7


@pytest.fixture
def text():
    mask = torch.arange(T) < torch.tensor(LENGTHS).unsqueeze(1)
    layers = (torch.randn(B, L, T, D) * 2 + 1) * mask[:, None, :, None]
    words = [["w"] * n for n in LENGTHS]
    return Text(
        tokens=words, word_ids=mask.long(), char_ids=torch.zeros(B, T, 1, dtype=torch.long), mask=mask, layers=layers
    )


def make_mix(kind, layer_norm=False):
    mix = ScalarMix(n_layers=L, mix=kind, layer_norm=layer_norm)
    with torch.no_grad():
        mix.gamma.fill_(GAMMA)
        if kind == "scalar":
            mix.w.copy_(torch.tensor(W))
    return mix


def shares(kind):
    if kind == "scalar":
        return np.exp(W) / np.exp(W).sum()
    return {
        "mean": np.full(L, 1 / 3),
        "last": np.array([0, 0, 1]),
        "layer_0": np.array([1, 0, 0]),
        "layer_1": np.array([0, 1, 0]),
    }[kind]


def oracle(kind, layers, layer_norm):
    mixed = np.zeros((B, T, D))
    for k, share in enumerate(shares(kind)):
        vectors = [layers[b, k, t] for b in range(B) for t in range(LENGTHS[b])]
        mean, deviation = (np.mean(vectors), np.std(vectors)) if layer_norm else (0, 1)
        for b in range(B):
            for t in range(LENGTHS[b]):
                mixed[b, t] += GAMMA * share * (layers[b, k, t] - mean) / deviation
    return mixed


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("kind", ["scalar", "mean", "last", "layer_0", "layer_1"])
def test_a_mix_is_gamma_times_the_weighted_sum_and_zero_on_padding(text, kind, layer_norm):
    found = make_mix(kind, layer_norm)(text.layers, text.mask).detach().numpy()
    np.testing.assert_allclose(found, oracle(kind, text.layers.double().numpy(), layer_norm), atol=1e-5)
    assert (found[~text.mask.numpy()] == 0).all()


def test_garbage_in_the_padding_does_not_touch_the_normalised_mix(text):
    mix = make_mix("scalar", layer_norm=True)
    expected = mix(text.layers, text.mask)
    garbage = text.layers + 100 * ~text.mask[:, None, :, None]
    torch.testing.assert_close(mix(garbage, text.mask), expected)


def test_training_starts_at_the_plain_mean(text):
    mix = ScalarMix(n_layers=L)
    torch.testing.assert_close(mix(text.layers, text.mask), text.layers.mean(dim=1))
    assert mix.weights() == {"s": pytest.approx([1 / 3] * 3), "gamma": 1.0}


@pytest.mark.parametrize("kind", ["scalar", "mean", "last", "layer_1"])
def test_gamma_one_stays_at_one_and_the_rest_is_learned_as_before(text, kind):
    fixed, free = (ScalarMix(n_layers=L, mix=kind, gamma=gamma) for gamma in ("one", "learned"))
    text.layers.requires_grad_()
    for mix in (fixed, free):
        mix(text.layers, text.mask).square().sum().backward()
    torch.testing.assert_close(fixed(text.layers, text.mask), free(text.layers, text.mask))
    assert fixed.gamma.grad is None
    assert fixed.weights()["gamma"] == 1.0
    if kind == "scalar":
        assert fixed.w.grad.abs().sum() > 0
        torch.testing.assert_close(fixed.w.grad, free.w.grad)


@pytest.mark.parametrize("kind", ["scalar", "mean", "last", "layer_1"])
def test_only_scalar_learns_w_and_all_learn_gamma(text, kind):
    mix = make_mix(kind)
    mix(text.layers, text.mask).square().sum().backward()
    learned = {name for name, p in mix.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0}
    assert learned == ({"gamma", "w"} if kind == "scalar" else {"gamma"})


@pytest.mark.parametrize("kind", ["scalar", "mean", "last", "layer_0"])
def test_weights_are_reported_as_plain_numbers(kind):
    weights = make_mix(kind).weights()
    assert weights["s"] == pytest.approx(shares(kind).tolist(), abs=1e-6)
    assert weights["gamma"] == pytest.approx(GAMMA)
    assert all(type(x) is float for x in [*weights["s"], weights["gamma"]])


@pytest.mark.parametrize("kind", ["layer_3", "layer_9", "layer_-1", "3", "foo"])
def test_a_layer_that_is_not_there_is_refused_with_the_choices(kind):
    with pytest.raises(UserError, match=rf"elmo\.mix={kind}: .*layer_0, layer_1, layer_2"):
        ScalarMix(n_layers=L, mix=kind)


@pytest.mark.parametrize(
    ("layers", "mask", "message"),
    [
        ((B, L + 1, T, D), (B, T), rf"^expected layers \[B, L, T, D\] with L = {L}, found L = {L + 1}$"),
        ((B, L, T, D), (B, T + 1), rf"^expected a mask \[B, T\] of shape \[{B}, {T}\], .* found \[{B}, {T + 1}\]$"),
    ],
)
def test_layers_and_masks_that_do_not_fit_are_refused(layers, mask, message):
    with pytest.raises(UserError, match=message):
        ScalarMix(n_layers=L)(torch.zeros(layers), torch.ones(mask, dtype=torch.bool))


def test_what_no_elmo_has_is_refused():
    with pytest.raises(UserError, match=r"^elmo\.gamma=none: expected learned or one$"):
        ScalarMix(n_layers=L, gamma="none")
    with pytest.raises(UserError, match=r"^elmo\.placement=middle: expected one of none, input, output, both$"):
        Elmo(placement="middle", n_layers=L, dim=D)
    with pytest.raises(UserError, match=r"^elmo\.gamma=1: expected"):
        make_elmo("both", gamma="1")


def make_elmo(placement, **kwargs):
    elmo = Elmo(placement=placement, n_layers=L, dim=D, **kwargs)
    for k, mix in enumerate(elmo.mixes.values()):
        with torch.no_grad():
            mix.gamma.fill_(k + 2)
            if mix.mix == "scalar":
                mix.w.copy_(torch.tensor(W) * (k + 1))
    return elmo


def test_without_elmo_the_same_object_is_returned(text):
    elmo = make_elmo("none")
    x = torch.randn(B, T, 5)
    assert elmo.at_input(x, text) is x
    assert elmo.at_output(x, text) is x
    assert list(elmo.parameters()) == []
    assert (elmo.input_dim, elmo.output_dim) == (0, 0)
    assert elmo.penalty() == 0
    assert elmo.weights() == {}


@pytest.mark.parametrize(("placement", "input_dim", "output_dim"), [("input", D, 0), ("output", 0, D), ("both", D, D)])
def test_each_place_in_use_gets_the_mix_beside_what_is_there(text, placement, input_dim, output_dim):
    elmo = make_elmo(placement)
    x = torch.randn(B, T, 5)
    assert (elmo.input_dim, elmo.output_dim) == (input_dim, output_dim)
    for place, method, dim in (("input", elmo.at_input, input_dim), ("output", elmo.at_output, output_dim)):
        found = method(x, text)
        assert found.shape == (B, T, 5 + dim)
        torch.testing.assert_close(found[:, :, :5], x)
        if dim:
            torch.testing.assert_close(found[:, :, 5:], elmo.mixes[place](text.layers, text.mask))
        else:
            assert found is x
    torch.testing.assert_close(elmo.output_vector(text), elmo.at_output(x, text)[:, :, 5:])


def test_the_places_have_weights_of_their_own(text):
    elmo = make_elmo("both")
    x = torch.randn(B, T, 0)
    assert (elmo.at_input(x, text) - elmo.at_output(x, text)).abs().max() > 0.1
    elmo.at_input(x, text).square().sum().backward()
    assert elmo.mixes["input"].w.grad is not None
    assert elmo.mixes["output"].w.grad is None
    assert elmo.weights().keys() == {"input", "output"}


@pytest.mark.parametrize(("placement", "factors"), [("input", [1]), ("output", [1]), ("both", [1, 2])])
def test_the_penalty_is_lambda_times_the_squared_raw_scalars_of_all_places(placement, factors):
    elmo = make_elmo(placement, lambda_=0.01)
    expected = 0.01 * sum((factor * w) ** 2 for factor in factors for w in W)
    assert elmo.penalty().item() == pytest.approx(expected, rel=1e-5)
    elmo.penalty().backward()
    assert all(mix.gamma.grad is None for mix in elmo.mixes.values())


@pytest.mark.parametrize("kind", ["mean", "last", "layer_1"])
def test_a_mix_without_learned_scalars_is_not_penalised(kind):
    assert float(make_elmo("both", mix=kind, lambda_=0.5).penalty()) == 0


@pytest.mark.parametrize("place", ["input", "output"])
def test_dropout_is_applied_to_the_elmo_vector_in_training_only(text, place):
    elmo = make_elmo(place, dropout=0.5)
    x = torch.ones(B, T, 5)
    whole = getattr(elmo.eval(), f"at_{place}")(x, text)
    dropped = getattr(elmo.train(), f"at_{place}")(x, text)
    assert torch.equal(dropped[:, :, :5], x)
    kept = dropped[:, :, 5:] != 0
    assert 0.2 < kept[text.mask].float().mean() < 0.8
    torch.testing.assert_close(dropped[:, :, 5:][kept], 2 * whole[:, :, 5:][kept])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", ["scalar", "last"])
def test_a_normalised_mix_of_16_bits_is_that_of_32_up_to_rounding(dtype, kind):
    layers, mask = torch.randn(4, L, 60, 512) * 3 + 1, torch.ones(4, 60, dtype=torch.bool)  # 122,880 numbers a layer
    expected = make_mix(kind, layer_norm=True)(layers, mask)
    found = make_mix(kind, layer_norm=True).to(dtype)(layers.to(dtype), mask)
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), expected, rtol=0.03, atol=0.05)


@pytest.mark.parametrize("layers_dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("layer_norm", [False, True])
def test_layers_of_another_number_format_are_mixed_too(text, layers_dtype, layer_norm):
    mix = make_mix("scalar", layer_norm)
    found = mix(text.layers.to(layers_dtype), text.mask)
    assert found.dtype == torch.promote_types(layers_dtype, torch.float32)
    torch.testing.assert_close(found.float(), mix(text.layers, text.mask), rtol=0.02, atol=0.05)


def test_a_batch_without_a_token_is_zero_and_not_nan():
    found = make_mix("scalar", layer_norm=True)(torch.zeros(B, L, T, D), torch.zeros(B, T, dtype=torch.bool))
    assert not found.any()


def test_the_mask_is_needed_for_layer_norm_alone(text):
    mix = make_mix("scalar")
    torch.testing.assert_close(mix(text.layers), mix(text.layers, text.mask), rtol=0, atol=0)
    with pytest.raises(UserError, match=r"^layer_norm needs the mask \[B, T\]"):
        make_mix("scalar", layer_norm=True)(text.layers)


@pytest.mark.parametrize("n_layers", [0, -1, 3.0])
def test_a_mix_has_a_layer(n_layers):
    with pytest.raises(UserError, match=rf"^n_layers must be a whole number of at least 1, found {n_layers}$"):
        ScalarMix(n_layers=n_layers)


def test_layers_of_one_sentence_without_a_batch_are_refused(text):
    with pytest.raises(UserError, match=rf"with L = 3, found shape \[3, {T}, {D}\]$"):
        make_mix("scalar")(text.layers[0])


def test_texts_that_do_not_fit_an_elmo_are_refused(text):
    x, elmo = torch.zeros(B, T, 5), make_elmo("both")
    with pytest.raises(UserError, match=rf"with D = 1024, found D = {D}$"):
        Elmo(placement="input", n_layers=L, dim=1024).at_input(x, text)
    with pytest.raises(UserError, match=r"^expected vectors \[B, T, \.\.\.\] of shape "):
        elmo.at_output(x[:, 1:], text)
    text.layers = None
    with pytest.raises(UserError, match=r"^ELMo at the output needs the layers of a biLM, and this text has none"):
        elmo.output_vector(text)


def test_what_embed_gives_is_a_text_for_elmo(text):
    elmo, x = make_elmo("both").eval(), torch.randn(B, T, 5)
    torch.testing.assert_close(elmo.at_input(x, Embedded(text.layers, text.mask)), elmo.at_input(x, text))
