import contextlib
from functools import partial
from itertools import islice

import numpy as np
import pytest
import torch
from plain import Reader, sampled_loss, spell
from torch import nn

from elmo_tasks.bilm import BiLM
from elmo_tasks.pretrain.inputs import EVERY_WORD, LENGTHS, Inputs, WordTable
from elmo_tasks.pretrain.model import LanguageModel, log_expected_count
from elmo_tasks.pretrain.pack import read_pack
from elmo_tasks.pretrain.step import TrainingStep
from elmo_tasks.pretrain.text import LmData

B, S, V, K = 5, 6, 30, 12
ADAM = partial(torch.optim.Adam, lr=0.01)


class Both:
    """A text, a plain model, and a step over a copy of it."""

    def __init__(
        self, pack, options, shake, dropout=0.0, forget=0.0, bfloat16=False, samples=K, optimizer=ADAM, grad_norm=10.0
    ):
        self.data = LmData(batch_size=B, window=S, vocabulary_size=V, min_count=1, seed=1).use(pack)
        words = WordTable(pack.words)
        self.inputs = Inputs(self.data, words, samples, seed=1)
        settings = {"vocabulary_size": len(self.data.vocabulary), "n_samples": samples}
        self.plain, own = (
            LanguageModel(bilm=BiLM(options), dropout=dropout, forget=forget, **settings) for _ in range(2)
        )
        shake(self.plain, std=0.3)
        own.load_state_dict(self.plain.state_dict())
        self.step = TrainingStep(own.train(), words.char_ids, (2, S, B), optimizer, grad_norm, bfloat16)
        self.reader = Reader(self.plain.train())

    def windows(self, n):
        return list(islice(self.data.windows(0), n))

    def plain_loss(self, window, update):
        """What the plain way finds, word by word."""
        samples, tries = self.inputs._samples(update)
        spelled = spell(window, self.data.pack.words)
        vocabulary = self.data.vocabulary
        targets = torch.tensor([[[vocabulary[word] for word in row] for row in side] for side in spelled.targets])
        hidden = self.reader.read(spelled.inputs)
        return sampled_loss(self.plain, hidden, targets, torch.from_numpy(samples).long(), tries)


@pytest.fixture
def pack(pack_folder):
    return read_pack(pack_folder)


@pytest.fixture
def both(pack, tiny_options, shake):
    return Both(pack, tiny_options, shake)


def parameters(both):
    """Names and parameters of the plain model, in the order of the step's vectors."""
    named = dict(both.plain.named_parameters())
    of_softmax = ["softmax_weight", "softmax_bias"]
    return {name: named[name] for name in [*of_softmax, *(name for name in named if name not in of_softmax)]}


SIZES = [None, (64, 64, 64, 64), (3, 2, 60, 64), (1, 1, 1, 1)]  # exact; spare places; words that go on; too few places


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("samples", [K, 0])
def test_loss_and_gradients_are_those_of_the_plain_way(pack, tiny_options, shake, sizes, samples):
    both = Both(pack, tiny_options, shake, samples=samples)
    both.step.grouped = sizes is not None  # as on a GPU
    named = parameters(both)
    for update, window in enumerate(both.windows(4)):
        layout, numbers = both.inputs.make(window, update, sizes)
        assert sizes in (None, (1, 1, 1, 1)) or layout.group_sizes == sizes
        loss = both.plain_loss(window, update)
        expected = torch.autograd.grad(loss, list(named.values()))
        both.step.backward(layout, numbers)
        torch.testing.assert_close(both.step.loss, loss.detach() / S)
        views = torch.split(torch.cat(both.step.gradients), [g.numel() for g in expected])
        for name, view, gradient in zip(named, views, expected, strict=True):
            difference = (view.view_as(gradient) - gradient).norm()
            assert gradient.norm() > 0, name
            assert difference <= 1e-5 * gradient.norm(), name


OPTIMIZERS = [
    ADAM,
    partial(torch.optim.Adam, lr=0.01, fused=True),
    partial(torch.optim.Adagrad, lr=0.1, initial_accumulator_value=1.0),
    partial(torch.optim.Adadelta, lr=1.0),
    partial(torch.optim.SGD, lr=0.1, momentum=0.9),
]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda each: each.func.__name__)
def test_updates_are_those_of_an_optimizer_of_each_parameter(pack, tiny_options, shake, optimizer):
    both = Both(pack, tiny_options, shake, optimizer=optimizer, grad_norm=0.5)
    plain, clipped = optimizer(list(both.plain.parameters())), []
    for update, window in enumerate(both.windows(12)):
        plain.zero_grad()
        both.plain_loss(window, update).backward()
        norm = nn.utils.clip_grad_norm_(both.plain.parameters(), 0.5)
        clipped.append(float(norm) > 0.5)
        plain.step()
        both.step.run(*both.inputs.make(window, update, None))
        torch.testing.assert_close(both.step.norm, norm, rtol=1e-3, atol=0)
    assert any(clipped)
    for name, expected in both.plain.named_parameters():
        torch.testing.assert_close(both.step.model.get_parameter(name), expected, rtol=1e-4, atol=2e-5, msg=name)


def test_a_softmax_is_trained_alone_as_if_the_bilm_had_no_optimizer(pack, tiny_options, shake):
    both = Both(pack, tiny_options, shake)
    before = {name: value.clone() for name, value in both.step.model.bilm.state_dict().items()}
    both.plain.bilm.requires_grad_(False)
    plain = ADAM([both.plain.softmax_weight, both.plain.softmax_bias])
    *alone, last = both.windows(4)
    for update, window in enumerate(alone):
        plain.zero_grad()
        both.plain_loss(window, update).backward()
        nn.utils.clip_grad_norm_([both.plain.softmax_weight, both.plain.softmax_bias], 10.0)
        plain.step()
        both.step.run(*both.inputs.make(window, update, None), with_bilm=False)
    model = both.step.model
    torch.testing.assert_close(model.softmax_weight, both.plain.softmax_weight, rtol=1e-4, atol=2e-5)
    assert all(torch.equal(value, before[name]) for name, value in model.bilm.state_dict().items())
    both.step.run(*both.inputs.make(last, 3, None))
    assert int(both.step.optimizer.state[both.step.vectors[1]]["step"]) == 1  # its moments begin here
    assert not all(torch.equal(value, before[name]) for name, value in model.bilm.state_dict().items())


def test_products_in_bfloat16_give_nearly_the_same_gradient(pack, tiny_options, shake):
    found = []
    for bfloat16 in (False, True):
        both = Both(pack, tiny_options, shake, bfloat16=bfloat16)
        for update, window in enumerate(both.windows(3)):
            both.step.backward(*both.inputs.make(window, update, None))
        found.append(torch.cat(both.step.gradients))
    assert 0 < (found[1] - found[0]).norm() < 0.05 * found[0].norm()


class FakeGraph:
    """Stands for a CUDA graph: what would have been captured is run again."""

    def __init__(self):
        self.replays = 0

    def replay(self):
        self.replays += 1
        self.step.backward(self.step._graph_layout, self.step._numbers)


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
            both.step.run(*both.inputs.make(window, update, sizes))
        step = both.step
        moments = [value for vector in step.vectors for value in step.optimizer.state[vector].values()]
        weights.append((*step.vectors, *moments, step.loss, step.norm, *(p for pair in step.carried for p in pair)))
    assert both.step._graph.replays == 3
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))


def test_a_window_that_does_not_fit_the_graph_is_run_without_it(pack, tiny_options, shake, cuda):
    both = Both(pack, tiny_options, shake)
    first, second = both.windows(2)
    few = (2, 2, 2, 2)
    both.step.capture(*both.inputs.make(first, 0, (64, 64, 64, 64)))
    both.step._graph.step = both.step
    both.step.run(*both.inputs.make(second, 0, few))
    other = Both(pack, tiny_options, shake)
    other.step.run(*other.inputs.make(second, 0, None))
    assert both.step._graph.replays == 0
    assert all(map(torch.equal, both.step.vectors, other.step.vectors))


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
        counted[samples] += np.exp(-log_expected_count(torch.from_numpy(samples), tries, n_words).numpy())
    assert often[0] > 1.4 * often[5] > 1.4 * 1.4 * often[-1]
    np.testing.assert_allclose(counted / n_updates, 1, atol=0.12)
    assert counted.mean() / n_updates == pytest.approx(1, abs=0.015)
