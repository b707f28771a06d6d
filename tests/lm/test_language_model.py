import math
from itertools import islice

import numpy as np
import pytest
import torch

import elmo_tasks.models.lm as lm_module
from elmo_tasks.data.corpus import TextFiles
from elmo_tasks.data.lm import LmData
from elmo_tasks.data.windows import LmBatch
from elmo_tasks.metrics.perplexity import Perplexity
from elmo_tasks.models.lm import LanguageModel, LmOutput, log_expected_count, log_uniform_sample
from elmo_tasks.nn.characters import character_id_table

S, B, P, V = 6, 3, 6, 11
WORDS = ["<S>", "</S>", "a", "bc", "def", "é"]


def make_batch(n_steps=S, n_rows=B):
    return LmBatch(
        char_ids=character_id_table(WORDS, extra=7),
        words=torch.randint(len(WORDS), (2, n_steps, n_rows)),
        targets=torch.randint(V, (2, n_steps, n_rows)),
        valid=torch.ones(n_steps, n_rows, dtype=torch.bool),
    )


def steps(batch, first, last):
    return LmBatch(batch.char_ids, batch.words[:, first:last], batch.targets[:, first:last], batch.valid[first:last])


@pytest.fixture
def model(tiny_bilm, shake):
    return shake(LanguageModel(bilm=tiny_bilm, vocabulary_size=V, n_samples=5, dropout=0.0), seed=3)


def log_uniform(vocabulary_size):
    ranks = np.arange(vocabulary_size)
    return np.log((ranks + 2) / (ranks + 1)) / np.log(vocabulary_size + 1)


class TestSampling:
    @pytest.mark.parametrize(("n", "vocabulary_size"), [(1, 2), (5, 11), (10, 11), (200, 10_000)])
    def test_samples_are_distinct_and_of_the_vocabulary(self, n, vocabulary_size):
        for _ in range(20):
            ids, tries = log_uniform_sample(n, vocabulary_size, torch.default_generator)
            assert len(set(ids.tolist())) == len(ids) == n
            assert ids.min() >= 0
            assert ids.max() < vocabulary_size
            assert tries >= n

    def test_a_single_draw_is_log_uniform(self):
        ids = [int(log_uniform_sample(1, V, torch.default_generator)[0]) for _ in range(4000)]
        frequencies = np.bincount(ids, minlength=V) / len(ids)
        np.testing.assert_allclose(frequencies, log_uniform(V), atol=4 * (0.25 / len(ids)) ** 0.5)
        assert frequencies[0] > 2 * frequencies[2] > 2 * frequencies[9]

    def test_the_first_distinct_ids_are_taken_and_the_draws_until_then_counted(self, monkeypatch):
        draws = iter([[4, 4, 0, 4, 0, 0, 4, 0, 0, 4, 0, 4], [4, 7, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2]])

        def rand(n, dtype, generator):
            assert n == 12
            return (torch.tensor(next(draws), dtype=dtype) + 1.5).log() / math.log(V + 1)

        monkeypatch.setattr(torch, "rand", rand)
        ids, tries = log_uniform_sample(3, V, torch.default_generator)
        assert ids.tolist() == [4, 0, 7]
        assert tries == 14

    @pytest.mark.parametrize("tries", [1, 7, 40])
    def test_the_expected_count_is_the_share_of_simulated_samples_with_the_word(self, tries):
        rng = np.random.default_rng(0)
        draws = rng.choice(V, p=log_uniform(V), size=(20_000, tries))
        simulated = [(draws == k).any(axis=1).mean() for k in range(V)]
        found = log_expected_count(torch.arange(V), tries, V).exp().numpy()
        np.testing.assert_allclose(found, simulated, atol=0.015)

    def test_few_draws_of_a_large_vocabulary_are_not_lost_to_rounding(self):
        found = log_expected_count(torch.tensor([799_999]), 1, 800_000).item()
        assert found == pytest.approx(math.log(math.log1p(1 / 800_000) / math.log(800_001)), rel=1e-6)

    def test_as_many_samples_as_words_are_all_words_for_certain(self, tiny_bilm):
        n_samples = LanguageModel(bilm=tiny_bilm, vocabulary_size=V, n_samples=100, dropout=0.0).n_samples
        ids, tries = log_uniform_sample(n_samples, V, torch.default_generator)
        assert ids.tolist() == list(range(V))
        assert log_expected_count(ids, tries, V).tolist() == [0.0] * V


class TestLoss:
    def full_losses(self, model, out, batch):
        """Negative log-likelihood of each position over the whole vocabulary."""
        weight, bias = (p.detach().double().numpy() for p in (model.softmax_weight, model.softmax_bias))
        logits = out.hidden.double().detach().numpy() @ weight.T + bias
        total = np.log(np.exp(logits).sum(axis=-1))
        return total - np.take_along_axis(logits, batch.targets.numpy()[..., None], axis=-1)[..., 0]

    def test_the_sampled_softmax_is_the_loop_over_positions(self, model, monkeypatch):
        samples, tries = [0, 3, 5, 1, 8], 9
        monkeypatch.setattr(lm_module, "log_uniform_sample", lambda n, size, rng: (torch.tensor(samples), tries))
        batch, out = make_batch(), LmOutput(torch.randn(2, S, B, P))
        weight, bias = (p.detach().double().numpy() for p in (model.softmax_weight, model.softmax_bias))
        share = 1 - (1 - log_uniform(V)) ** tries
        losses, hits = [], 0
        for place in np.ndindex(2, S, B):
            target, hidden = int(batch.targets[place]), out.hidden[place].double().numpy()
            hits += target in samples
            words = [target, *(k for k in samples if k != target)]
            scores = [np.exp(weight[k] @ hidden + bias[k]) / share[k] for k in words]
            losses.append(-np.log(scores[0] / sum(scores)))
        assert 0 < hits < 2 * S * B
        assert model.loss(out, batch).item() == pytest.approx(S * np.mean(losses), rel=1e-5)

    def test_with_as_many_samples_as_words_it_is_the_full_softmax(self, model):
        model.n_samples = V
        batch, out = make_batch(), LmOutput(torch.randn(2, S, B, P))
        assert model.loss(out, batch).item() == pytest.approx(S * self.full_losses(model, out, batch).mean(), rel=1e-5)

    def test_every_parameter_gets_a_finite_gradient(self, model):
        model.requires_grad_(True).train()
        batch = make_batch()
        batch.targets[0, 0] = torch.arange(B)
        model.loss(model(batch), batch).backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad.isfinite().all(), name
            assert parameter.grad.abs().sum() > 0, name

    @pytest.mark.parametrize("logits_at_once", [1, 5 * V, 10**6])
    def test_scores_use_the_full_softmax_on_real_positions_only(self, model, monkeypatch, logits_at_once):
        monkeypatch.setattr(lm_module, "_LOGITS", logits_at_once)
        batch, out = make_batch(), LmOutput(torch.randn(2, S, B, P))
        batch.valid = torch.tensor([[True, True, True]] * 2 + [[True, False, True]] * 3 + [[False, False, True]])
        found = model.decode(out, batch)
        expected = self.full_losses(model, out, batch)[:, batch.valid.numpy()]
        assert found.shape == (2, 13)
        np.testing.assert_allclose(found.detach().numpy(), expected, atol=1e-5)

    def test_candidates_do_not_depend_on_other_random_numbers(self, tiny_bilm):
        batch, out = make_batch(), LmOutput(torch.randn(2, S, B, P))
        losses = []
        for n_others in (0, 7):
            torch.manual_seed(5)
            model = LanguageModel(bilm=tiny_bilm, vocabulary_size=V, n_samples=5, dropout=0.0)
            torch.rand(n_others)
            losses.append([model.loss(out, batch).item() for _ in range(3)])
        assert losses[0] == losses[1]
        assert len(set(losses[0])) > 1


class TestState:
    def test_one_sentence_gives_the_top_layer_of_the_bilm(self, model):
        sentence = ["bc", "a", "def", "a"]
        marked = [WORDS.index(word) for word in ["<S>", *sentence, "</S>"]]
        batch = make_batch(n_steps=5, n_rows=1)
        batch.words = torch.tensor([marked[:-1], marked[:0:-1]]).unsqueeze(2)
        forward, backward = model.eval()(batch).hidden.squeeze(2)
        [layers] = model.bilm.layers([sentence])
        torch.testing.assert_close(forward[1:], layers[-1, :, :P], rtol=0, atol=1e-5)
        torch.testing.assert_close(backward[1:].flip(0), layers[-1, :, P:], rtol=0, atol=1e-5)

    @pytest.mark.parametrize("training", [True, False])
    def test_windows_with_carried_state_are_one_long_window(self, model, tiny_bilm, training):
        batch = make_batch(n_steps=12)
        long = LanguageModel(bilm=tiny_bilm, vocabulary_size=V, n_samples=5, dropout=0.0).train(training)(batch)
        model.train(training)
        windows = [model(steps(batch, *cut)).hidden for cut in ((0, 5), (5, 6), (6, 12))]
        torch.testing.assert_close(torch.cat(windows, dim=1), long.hidden, rtol=0, atol=1e-5)
        assert (model(steps(batch, 0, 5)).hidden - windows[0]).abs().max() > 0.01  # it goes on, from where it was

    @pytest.mark.parametrize(("training", "expected"), [(True, 0.3), (False, 0.0)])
    def test_in_training_some_rows_start_a_window_from_zeros(self, model, training, expected):
        first, second = make_batch(n_rows=200), make_batch(n_rows=200)
        afresh = model.train(training)(second).hidden
        model.carried = model._heldout = None
        model(first)
        state = model.carried if training else model._heldout
        carried = model(second).hidden
        model.carried = model._heldout = state
        model.forget = 0.3
        found = model(second).hidden
        forgotten = torch.isclose(found, afresh, rtol=0, atol=1e-5).all(dim=3).all(dim=1).all(dim=0)  # [B]
        torch.testing.assert_close(found[:, :, ~forgotten], carried[:, :, ~forgotten], rtol=0, atol=1e-5)
        assert float(forgotten.float().mean()) == pytest.approx(expected, abs=0.1)

    def test_no_gradient_flows_into_the_window_before(self, model):
        model.requires_grad_(True).train()
        batch = make_batch(n_steps=4)
        model(steps(batch, 0, 2)).hidden.sum().backward()
        model.zero_grad()
        out = model(steps(batch, 2, 4))
        out.hidden.sum().backward()  # would fail if it reached the first window's freed graph
        assert all(not part.requires_grad for state in model.carried for part in state)

    def test_each_evaluation_starts_from_zeros_and_leaves_the_training_state(self, model):
        batch, heldout = make_batch(n_steps=12), make_batch(n_steps=4, n_rows=2)
        undisturbed = [model.train()(steps(batch, *cut)).hidden for cut in ((0, 6), (6, 12))]
        model.carried = model._heldout = None
        evaluations = []
        torch.testing.assert_close(model.train()(steps(batch, 0, 6)).hidden, undisturbed[0])
        for _ in range(2):
            model.eval()
            evaluations.append([model(heldout).hidden for _ in range(2)])
        torch.testing.assert_close(model.train()(steps(batch, 6, 12)).hidden, undisturbed[1])
        torch.testing.assert_close(evaluations[0], evaluations[1])
        assert (evaluations[0][0] - evaluations[0][1]).abs().max() > 0.01  # carried within one evaluation

    def test_dropout_is_applied_in_training_only(self, model):
        model.dropout = 0.5
        batch = make_batch()
        dropped = (model.train()(batch).hidden == 0).float().mean()
        assert 0.3 < dropped < 0.7
        assert not (model.eval()(batch).hidden == 0).any()


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


def test_a_few_training_steps_lower_the_perplexity(tiny_options, tmp_path):
    for name in ("train", "heldout"):
        (tmp_path / f"{name}.txt").write_text("the cat sat on the mat\na dog ran\nso it goes on\n" * 8)
    options = {"batch_size": 4, "window": 8, "vocabulary_size": 50, "min_count": 1, "seed": 1}
    data = LmData(text=TextFiles(root=str(tmp_path), train="train.txt", heldout="heldout.txt"), **options)
    data.read()
    bilm = lm_module.BiLM(tiny_options)
    model = LanguageModel(bilm=bilm, vocabulary_size=len(data.vocabulary), n_samples=8, dropout=0.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

    def perplexity():
        metric = Perplexity()
        model.eval()
        with torch.no_grad():
            for batch in data.batches("dev"):
                metric.update(model.decode(model(batch), batch), batch.gold)
        return metric.compute()

    before = perplexity()
    model.train()
    for batch in islice(data.train_dataloader(), 60):
        optimizer.zero_grad()
        model.loss(model(batch), batch).backward()
        optimizer.step()
    after = perplexity()
    assert 8 < before["perplexity"] < 40  # about the size of the vocabulary
    assert max(after["forward"], after["backward"]) < 3
