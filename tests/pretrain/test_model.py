import math

import numpy as np
import pytest
import torch
from plain import Reader

import elmo_tasks.pretrain.model as lm_module
from elmo_tasks.metrics.perplexity import Perplexity
from elmo_tasks.pretrain.inputs import EVERY_WORD
from elmo_tasks.pretrain.model import LanguageModel, log_expected_count

S, B, P, V = 6, 3, 6, 11
WORDS = ["<S>", "</S>", "a", "bc", "def", "é"]


def make_inputs(n_steps=S, n_rows=B):
    """Words ``[2][S][B]``."""
    return np.random.default_rng(5).choice(WORDS, size=(2, n_steps, n_rows)).tolist()


def steps(inputs, first, last):
    return [side[first:last] for side in inputs]


@pytest.fixture
def model(tiny_bilm, shake):
    return shake(LanguageModel(bilm=tiny_bilm, vocabulary_size=V, n_samples=5, dropout=0.0), seed=3)


def log_uniform(vocabulary_size):
    ranks = np.arange(vocabulary_size)
    return np.log((ranks + 2) / (ranks + 1)) / np.log(vocabulary_size + 1)


class TestExpectedCount:
    @pytest.mark.parametrize("tries", [1, 7, 40])
    def test_it_is_the_share_of_simulated_samples_with_the_word(self, tries):
        rng = np.random.default_rng(0)
        draws = rng.choice(V, p=log_uniform(V), size=(20_000, tries))
        simulated = [(draws == k).any(axis=1).mean() for k in range(V)]
        found = log_expected_count(torch.arange(V), tries, V).exp().numpy()
        np.testing.assert_allclose(found, simulated, atol=0.015)

    def test_few_draws_of_a_large_vocabulary_are_not_lost_to_rounding(self):
        found = log_expected_count(torch.tensor([799_999]), 1, 800_000).item()
        assert found == pytest.approx(math.log(math.log1p(1 / 800_000) / math.log(800_001)), rel=1e-6)

    def test_as_many_samples_as_words_are_all_words_for_certain(self):
        assert log_expected_count(torch.arange(V), EVERY_WORD, V).tolist() == [0.0] * V


def full_losses(model, hidden, targets):
    """Negative log-likelihood of each position over the whole vocabulary."""
    weight, bias = (p.detach().double().numpy() for p in (model.softmax_weight, model.softmax_bias))
    logits = hidden.double().detach().numpy() @ weight.T + bias
    total = np.log(np.exp(logits).sum(axis=-1))
    return total - np.take_along_axis(logits, targets.numpy()[..., None], axis=-1)[..., 0]


class TestLoss:
    def test_the_sampled_softmax_is_the_loop_over_positions(self, model):
        samples, tries = [0, 3, 5, 1, 8], 9
        targets, top = torch.randint(V, (2, S, B)), torch.randn(2, S, B, P)
        weight, bias = (p.detach().double().numpy() for p in (model.softmax_weight, model.softmax_bias))
        share = 1 - (1 - log_uniform(V)) ** tries
        losses, hits = [], 0
        for place in np.ndindex(2, S, B):
            target, hidden = int(targets[place]), top[place].double().numpy()
            hits += target in samples
            words = [target, *(k for k in samples if k != target)]
            scores = [np.exp(weight[k] @ hidden + bias[k]) / share[k] for k in words]
            losses.append(-np.log(scores[0] / sum(scores)))
        assert 0 < hits < 2 * S * B
        found = model.sampled_loss(top, targets, torch.tensor(samples), tries)
        assert found.item() == pytest.approx(S * np.mean(losses), rel=1e-5)

    def test_with_as_many_samples_as_words_it_is_the_full_softmax(self, model):
        targets, hidden = torch.randint(V, (2, S, B)), torch.randn(2, S, B, P)
        found = model.sampled_loss(hidden, targets, torch.arange(V), EVERY_WORD)
        assert found.item() == pytest.approx(S * full_losses(model, hidden, targets).mean(), rel=1e-5)

    def test_every_parameter_gets_a_finite_gradient(self, model):
        model.requires_grad_(True).train()
        targets = torch.randint(V, (2, S, B))
        targets[0, 0] = torch.arange(B)
        hidden = Reader(model).read(make_inputs())
        model.sampled_loss(hidden, targets, torch.tensor([0, 3, 5, 1, 8]), 9).backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad.isfinite().all(), name
            assert parameter.grad.abs().sum() > 0, name

    @pytest.mark.parametrize("logits_at_once", [1, 5 * V, 10**6])
    def test_scores_use_the_full_softmax_on_real_positions_only(self, model, monkeypatch, logits_at_once):
        monkeypatch.setattr(lm_module, "_LOGITS", logits_at_once)
        targets, hidden = torch.randint(V, (2, S, B)), torch.randn(2, S, B, P)
        valid = torch.tensor([[True, True, True]] * 2 + [[True, False, True]] * 3 + [[False, False, True]])
        found = model.losses(hidden, targets, valid)
        expected = full_losses(model, hidden, targets)[:, valid.numpy()]
        assert found.shape == (2, 13)
        np.testing.assert_allclose(found.detach().numpy(), expected, atol=1e-5)


class TestState:
    def test_one_sentence_gives_the_top_layer_of_the_bilm(self, model):
        sentence = ["bc", "a", "def", "a"]
        marked = ["<S>", *sentence, "</S>"]
        inputs = [[[word] for word in side] for side in (marked[:-1], marked[:0:-1])]
        forward, backward = Reader(model.eval()).read(inputs).squeeze(2)
        [layers] = model.bilm.layers([sentence])
        torch.testing.assert_close(forward[1:], layers[-1, :, :P], rtol=0, atol=1e-5)
        torch.testing.assert_close(backward[1:].flip(0), layers[-1, :, P:], rtol=0, atol=1e-5)

    @pytest.mark.parametrize("training", [True, False])
    def test_windows_with_carried_state_are_one_long_window(self, model, training):
        inputs = make_inputs(n_steps=12)
        model.train(training)
        long, reader = Reader(model).read(inputs), Reader(model)
        windows = [reader.read(steps(inputs, *cut)) for cut in ((0, 5), (5, 6), (6, 12))]
        torch.testing.assert_close(torch.cat(windows, dim=1), long, rtol=0, atol=1e-5)
        assert (reader.read(steps(inputs, 0, 5)) - windows[0]).abs().max() > 0.01  # it goes on, from where it was

    @pytest.mark.parametrize(("training", "expected"), [(True, 0.3), (False, 0.0)])
    def test_in_training_some_rows_start_a_window_from_zeros(self, model, training, expected):
        first, second = steps(make_inputs(12, 200), 0, 6), steps(make_inputs(12, 200), 6, 12)
        afresh, reader = Reader(model.train(training)).read(second), Reader(model)
        reader.read(first)
        states = reader.states
        carried = reader.read(second)
        model.forget, reader.states = 0.3, states
        found = reader.read(second)
        forgotten = torch.isclose(found, afresh, rtol=0, atol=1e-5).all(dim=3).all(dim=1).all(dim=0)  # [B]
        torch.testing.assert_close(found[:, :, ~forgotten], carried[:, :, ~forgotten], rtol=0, atol=1e-5)
        assert float(forgotten.float().mean()) == pytest.approx(expected, abs=0.1)

    def test_no_gradient_flows_into_the_window_before(self, model):
        model.requires_grad_(True).train()
        inputs, reader = make_inputs(n_steps=4), Reader(model)
        reader.read(steps(inputs, 0, 2)).sum().backward()
        model.zero_grad()
        reader.read(steps(inputs, 2, 4)).sum().backward()  # would fail if it reached the first window's freed graph
        assert all(not part.requires_grad for state in reader.states for part in state)

    def test_dropout_is_applied_in_training_only(self, model):
        model.dropout = 0.5
        dropped = (Reader(model.train()).read(make_inputs()) == 0).float().mean()
        assert 0.3 < dropped < 0.7
        assert not (Reader(model.eval()).read(make_inputs()) == 0).any()


class TestPerplexity:
    def test_it_is_the_exponential_of_the_mean_over_all_batches(self):
        losses = [torch.rand(2, n) * 5 for n in (4, 1, 7)]
        metric = Perplexity()
        for part in losses:
            metric.update(part, None)
        forward, backward = np.exp(torch.cat(losses, dim=1).double().numpy().mean(axis=1))
        expected = {"perplexity": (forward + backward) / 2, "forward": forward, "backward": backward}
        assert metric.compute() == pytest.approx(expected)
        metric.reset()
        metric.update(torch.full((2, 3), math.log(7)), None)
        assert metric.compute() == pytest.approx({"perplexity": 7, "forward": 7, "backward": 7})

    def test_a_very_bad_model_has_a_finite_perplexity(self):
        metric = Perplexity()
        metric.update(torch.full((2, 3), 1e6), None)
        assert math.isfinite(metric.compute()["perplexity"])
