import contextlib
from itertools import islice

import numpy as np
import pytest
import torch
from torch import nn

import elmo_tasks.models.lm as lm_module
from elmo_tasks.bilm import BiLM
from elmo_tasks.models.lm import LanguageModel
from elmo_tasks.pretraining.inputs import EVERY_WORD, LENGTHS, Inputs, WordTable
from elmo_tasks.pretraining.pack import read_pack
from elmo_tasks.pretraining.schedule import learning_rate
from elmo_tasks.pretraining.step import TrainingStep
from elmo_tasks.pretraining.windows import training_windows

B, S, V, K = 5, 6, 30, 12


class Both:
    """A pack, a plain model, and a step over a copy of it."""

    def __init__(self, pack, options, shake, dropout=0.0, forget=0.0, bfloat16=False, samples=K):
        self.pack, self.vocabulary = pack, pack.vocabulary(V, 1)
        self.target_ids = pack.targets(self.vocabulary)
        words = WordTable(pack.words)
        self.inputs = Inputs(words.groups, self.target_ids, len(self.vocabulary), samples, seed=1)
        settings = {"vocabulary_size": len(self.vocabulary), "n_samples": K, "dropout": dropout, "forget": forget}
        self.plain, own = (LanguageModel(bilm=BiLM(options), **settings) for _ in range(2))
        shake(self.plain, std=0.3)
        own.load_state_dict(self.plain.state_dict())
        self.step = TrainingStep(own.train(), words.char_ids, B, S, grad_norm=10.0, bfloat16=bfloat16)

    def windows(self, n):
        return list(islice(training_windows(self.pack, B, S, seed=1, epoch=0, skip=0), n))


@pytest.fixture
def pack(pack_folder):
    return read_pack(pack_folder)


@pytest.fixture
def both(pack, tiny_options, shake):
    return Both(pack, tiny_options, shake)


def plain_loss(both, window, update, monkeypatch):
    samples, tries = both.inputs._samples(update)
    monkeypatch.setattr(lm_module, "log_uniform_sample", lambda *_: (torch.from_numpy(samples).long(), tries))
    batch = window.to_batch(both.pack, both.target_ids)
    return both.plain.loss(both.plain.train()(batch), batch)


SIZES = [None, (64, 64, 64, 64), (3, 2, 60, 64), (1, 1, 1, 1)]  # exact; spare places; words that go on; too few places


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("samples", [K, 0])
def test_loss_and_gradients_are_those_of_the_model_that_task_lm_trains(
    pack, tiny_options, shake, monkeypatch, sizes, samples
):
    both = Both(pack, tiny_options, shake, samples=samples)
    for update, window in enumerate(both.windows(4)):
        layout, numbers = both.inputs.make(window, update, sizes)
        assert sizes in (None, (1, 1, 1, 1)) or layout.group_sizes == sizes
        loss = plain_loss(both, window, update, monkeypatch)
        expected = torch.autograd.grad(loss, list(both.plain.parameters()))
        torch.testing.assert_close(both.step.gradients(layout, numbers), loss.detach() / S)
        views = torch.split(both.step.gradient, [g.numel() for g in expected])
        for (name, _), view, gradient in zip(both.plain.named_parameters(), views, expected, strict=True):
            difference = (view.view_as(gradient) - gradient).norm()
            assert gradient.norm() > 0, name
            assert difference <= 1e-5 * gradient.norm(), name


def test_updates_are_those_of_pytorchs_adam(both, monkeypatch):
    optimizer = torch.optim.Adam(both.plain.parameters(), lr=0.01)
    both.step.grad_norm = 0.5
    clipped = []
    for update, window in enumerate(both.windows(12)):
        rate = learning_rate(0.01, 3, update, update / 12)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        plain_loss(both, window, update, monkeypatch).backward()
        clipped.append(float(nn.utils.clip_grad_norm_(both.plain.parameters(), 0.5)) > 0.5)
        optimizer.step()
        both.step.run(*both.inputs.make(window, update, None), rate)
    assert any(clipped)
    for (name, expected), found in zip(both.plain.named_parameters(), both.step.parameters, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=2e-5, msg=name)
    assert both.step.sums[2] == 12


def test_products_in_bfloat16_give_nearly_the_same_gradient(pack, tiny_options, shake):
    found = []
    for bfloat16 in (False, True):
        both = Both(pack, tiny_options, shake, bfloat16=bfloat16)
        for update, window in enumerate(both.windows(3)):
            both.step.gradients(*both.inputs.make(window, update, None))
        found.append(both.step.gradient)
    assert 0 < (found[1] - found[0]).norm() < 0.05 * found[0].norm()


class FakeGraph:
    """Stands for a CUDA graph: what would have been captured is run again."""

    def __init__(self):
        self.replays = 0

    def replay(self):
        self.replays += 1
        self.step._update(self.step._graph_layout, self.step._numbers)


@pytest.fixture
def cuda(monkeypatch):
    """As much of ``torch.cuda`` as a capture needs, on the CPU; what is captured is run, which a GPU does not do."""
    stream = type("Stream", (), {"__init__": lambda *_: None, "wait_stream": lambda *_: None})
    nothing = lambda *_: contextlib.nullcontext()  # noqa: E731
    names = {"Stream": stream, "current_stream": stream, "stream": nothing, "graph": nothing, "CUDAGraph": FakeGraph}
    names |= {"get_rng_state": lambda _: torch.get_rng_state(), "set_rng_state": lambda s, _: torch.set_rng_state(s)}
    for name, value in names.items():
        monkeypatch.setattr(torch.cuda, name, value)


def test_a_capture_leaves_no_trace_and_replays_are_updates(pack, tiny_options, shake, cuda):
    weights = []
    for captured in (False, True):
        both = Both(pack, tiny_options, shake, dropout=0.3, forget=0.2)
        torch.manual_seed(3)
        sizes = (64, 64, 64, 64)
        windows = both.windows(6)
        for update, window in enumerate(windows):
            if captured and update in (0, 3):  # before the first update, and in the middle of a training
                both.step.capture(*both.inputs.make(windows[0], 0, sizes))
                both.step._graph.step = both.step
            both.step.run(*both.inputs.make(window, update, sizes), 0.01)
        weights.append((both.step.weights, both.step.moments, both.step.sums))
    assert both.step._graph.replays == 3
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))


def test_a_window_that_does_not_fit_the_graph_is_run_without_it(pack, tiny_options, shake, cuda):
    both = Both(pack, tiny_options, shake)
    first, second = both.windows(2)
    few = (2, 2, 2, 2)
    both.step.capture(*both.inputs.make(first, 0, (64, 64, 64, 64)))
    both.step._graph.step = both.step
    both.step.run(*both.inputs.make(second, 0, few), 0.01)
    other = Both(pack, tiny_options, shake)
    other.step.run(*other.inputs.make(second, 0, None), 0.01)
    assert both.step._graph.replays == 0
    assert torch.equal(both.step.weights, other.step.weights)


def test_words_are_placed_by_length_and_overflow_into_longer_groups(both):
    window = both.windows(1)[0]
    counts = both.inputs.group_counts(window)
    assert counts.sum() == len(np.unique(window.inputs))
    _, exact = both.inputs.make(window, 0, None)
    layout, padded = both.inputs.make(window, 0, (int(counts[0]) - 2, int(counts[1]) + 5, 9, 9))
    distinct = layout.split(padded)[3].numpy()
    lengths = (both.step.char_ids != 261).sum(dim=1).numpy()
    starts = np.cumsum([0, *layout.group_sizes])
    for group, longest in enumerate(LENGTHS):
        assert (lengths[distinct[starts[group] : starts[group + 1]]] <= longest).all()
    rows = layout.split(padded)[0].numpy().reshape(window.inputs.shape)
    assert np.array_equal(distinct[rows], window.inputs)
    assert len(exact) < len(padded)


def test_candidates_depend_on_the_update_and_the_seed_alone(both):
    first = both.inputs._samples(3)
    assert np.array_equal(first[0], both.inputs._samples(3)[0])
    assert not np.array_equal(first[0], both.inputs._samples(4)[0])
    both.inputs.sampled = False
    assert both.inputs._samples(0)[1] == EVERY_WORD


def test_corrected_sums_over_the_candidates_are_those_over_all_words(both):
    """Each word counts once on average, when it is divided by its probability: the estimate of the softmax's sum."""
    n_words, n_updates = both.inputs.vocabulary_size, 6000
    counted, often = np.zeros(n_words), np.zeros(n_words)
    for update in range(n_updates):
        samples, tries = both.inputs._samples(update)
        assert len(set(samples.tolist())) == K
        often[samples] += 1
        counted[samples] += np.exp(-lm_module.log_expected_count(torch.from_numpy(samples), tries, n_words).numpy())
    assert often[0] > 1.4 * often[5] > 1.4 * 1.4 * often[-1]
    np.testing.assert_allclose(counted / n_updates, 1, atol=0.12)
    assert counted.mean() / n_updates == pytest.approx(1, abs=0.015)


def test_the_rate_rises_over_the_warm_up_and_falls_to_zero():
    rates = [learning_rate(2.0, 9, k, k / 100) for k in range(101)]
    assert rates[0] == pytest.approx(0.2)
    assert rates[:10] == sorted(rates[:10])
    assert rates[50] == pytest.approx(1)
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[100] == pytest.approx(0, abs=1e-12)
