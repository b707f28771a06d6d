import re
from itertools import count

import numpy as np
import pytest
import torch
from oracles import numbers

from elmo_tasks.batch import Text
from elmo_tasks.data.srl import SrlBatch, SrlItem
from elmo_tasks.elmo import Elmo
from elmo_tasks.models.srl_lstm import SrlLstm
from elmo_tasks.nn.embedding import WordEmbedding

ELMO_DIM, N_LAYERS, N_WORDS = 4, 3, 9
TAGS = ["O", *(f"{prefix}-{label}" for label in ["ARG0", "ARG1", "C-ARG1", "V"] for prefix in "BI")]
PREDICATES = [[1, 4], [0], [3, 0, 2], [0]]
LENGTHS = [5, 2, 4, 1]


def make_text(items, n_words=9, layers=None):
    lengths = torch.tensor([len(item.tokens) for item in items])
    mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
    layers = None if layers is None else torch.randn(len(items), layers[0], mask.shape[1], layers[1])
    char_ids = torch.zeros(*mask.shape, 1, dtype=torch.long)
    return Text([item.tokens for item in items], torch.randint(n_words, mask.shape), char_ids, mask, layers)


def make_batch(predicates=PREDICATES, lengths=LENGTHS):
    """Random words, layers and tags; garbage stands in the padding."""
    items = [SrlItem(["w"] * n, {}) for n in lengths]
    counts = torch.tensor([len(row) for row in predicates])
    return SrlBatch(
        text=make_text(items, N_WORDS, (N_LAYERS, ELMO_DIM)),
        valid=torch.arange(int(counts.max())) < counts.unsqueeze(1),
        predicates=torch.tensor([k for row in predicates for k in row]),
        tags=torch.randint(len(TAGS), (int(counts.sum()), max(lengths))),
        gold=[],
    )


def labeller(placement="both", n_layers=3, hidden=5):
    return SrlLstm(
        words=WordEmbedding(torch.randn(N_WORDS, 6), trainable=True),
        elmo=Elmo(placement=placement, n_layers=N_LAYERS, dim=ELMO_DIM, dropout=0.5),
        tags=TAGS,
        indicator_dim=2,
        hidden=hidden,
        n_layers=n_layers,
        dropout=0.5,
    )


@pytest.mark.parametrize("placement", ["input", "output"])
def test_the_output_layer_begins_orthogonal(placement):
    for hidden in (2, 30):  # fewer numbers than tags, and more
        weight = labeller(placement, hidden=hidden).to_tags.weight
        small = weight if weight.shape[0] <= weight.shape[1] else weight.t()
        torch.testing.assert_close(small @ small.t(), torch.eye(len(small)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def highway_lstm(layer, x):
    h = c = np.zeros(len(layer.highway))
    out = []
    for word in x:
        of_gates, highway = np.split(numbers(layer.input_weight) @ word, 5), numbers(layer.highway) @ word
        of_state = np.split(numbers(layer.hidden_weight) @ h + numbers(layer.bias), 5)
        i, f, o, r, g = (a + b for a, b in zip(of_gates, of_state, strict=True))
        c = sigmoid(i) * np.tanh(g) + sigmoid(f) * c
        h = sigmoid(r) * sigmoid(o) * np.tanh(c) + (1 - sigmoid(r)) * highway
        out.append(h)
    return np.array(out)


def mixed(model, place, layers):
    if place not in model.elmo.mixes:
        return np.zeros((layers.shape[1], 0))
    mix = model.elmo.mixes[place]
    weights = np.exp(numbers(mix.w)) / np.exp(numbers(mix.w)).sum()
    return float(mix.gamma) * np.einsum("l,ltd->td", weights, numbers(layers))


def slow_scores(model, text, row, predicate):
    """Of the tags of one predicate of one sentence, without padding."""
    n = int(text.mask[row].sum())
    layers = text.layers[row, :, :n]
    words = numbers(model.words.weight)[text.word_ids[row, :n].numpy()]
    marks = numbers(model.indicator.weight)[[int(k == predicate) for k in range(n)]]
    x = np.concatenate([words, mixed(model, "input", layers), marks], axis=1)
    for k, layer in enumerate(model.lstm.layers):
        x = highway_lstm(layer, x[::-1])[::-1] if k % 2 else highway_lstm(layer, x)
    h = np.concatenate([x, mixed(model, "output", layers)], axis=1)
    return h @ numbers(model.to_tags.weight).T + numbers(model.to_tags.bias)


def expected_scores(model, batch):
    """By sentence and place among its predicates."""
    return {
        (row, place): slow_scores(model, batch.text, row, predicate)
        for row, of_sentence in enumerate(PREDICATES)
        for place, predicate in enumerate(of_sentence)
    }


@pytest.mark.parametrize("n_layers", [1, 4])
@pytest.mark.parametrize("placement", ["none", "input", "output", "both"])
def test_network_reads_each_sentence_alone_for_each_of_its_predicates(shake, placement, n_layers):
    model, batch = shake(labeller(placement, n_layers), std=0.4).eval(), make_batch()
    with torch.no_grad():
        out = model(batch)
    assert tuple(out.scores.shape) == (4, 3, 5, len(TAGS))
    assert not out.scores[~batch.valid].any()
    for (row, place), scores in expected_scores(model, batch).items():
        np.testing.assert_allclose(out.scores[row, place, : LENGTHS[row]], scores, atol=1e-5, rtol=1e-5)


def test_loss_is_a_mean_over_each_sentences_tokens_and_then_over_predicates(shake):
    model, batch = shake(labeller(), std=0.4).eval(), make_batch()
    losses = []
    for tags, scores in zip(batch.tags.numpy(), expected_scores(model, batch).values(), strict=True):
        log_normaliser = np.log(np.exp(scores).sum(axis=1))
        losses.append(np.mean([z - row[tag] for z, row, tag in zip(log_normaliser, scores, tags, strict=False)]))
    assert len(losses) == 7
    assert float(model.loss(model(batch), batch).detach()) == pytest.approx(np.mean(losses), rel=1e-5)


def test_padding_and_places_without_a_predicate_change_neither_scores_nor_loss(shake):
    model, batch, alone = shake(labeller(), std=0.4).eval(), make_batch(), []
    with torch.no_grad():
        out = model(batch)
        which = count()
        for row, (predicates, n) in enumerate(zip(PREDICATES, LENGTHS, strict=True)):
            text = batch.text
            part = Text([], text.word_ids[row : row + 1, :n], None, text.mask[row : row + 1, :n], None)
            part.layers = text.layers[row : row + 1, :, :n]
            for place, predicate in enumerate(predicates):
                tags = batch.tags[next(which)][None, :n]
                one = SrlBatch(part, torch.ones(1, 1, dtype=torch.bool), torch.tensor([predicate]), tags, [])
                found = model(one)
                torch.testing.assert_close(found.scores[0, 0], out.scores[row, place, :n], atol=1e-5, rtol=1e-5)
                alone.append(model.loss(found, one))
        torch.testing.assert_close(model.loss(out, batch), sum(alone) / len(alone))


def test_every_parameter_is_trained_by_sentences_of_one_word_too(shake):
    model, batch = shake(labeller(), std=0.4).eval(), make_batch(5 * PREDICATES, 5 * LENGTHS)
    model.loss(model(batch), batch).backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


def is_iob2(tags):
    return re.fullmatch(r"(?:O |B-(\S+) (?:I-\1 )*)*", " ".join(tags) + " ") is not None


def test_decoding_gives_valid_tags_for_each_token_of_each_predicate(shake):
    model, overruled = shake(labeller(), std=1.0).eval(), 0
    for _ in range(10):
        batch = make_batch()
        with torch.no_grad():
            out = model(batch)
        decoded = model.decode(out, batch)
        assert [[len(tags) for tags in row] for row in decoded] == [[5, 5], [2], [4, 4, 4], [1]]
        assert all(is_iob2(tags) for row in decoded for tags in row)
        for row, of_sentence in enumerate(decoded):
            for place, tags in enumerate(of_sentence):
                freely = [TAGS[k] for k in out.scores[row, place, : LENGTHS[row]].argmax(dim=1).tolist()]
                assert tags == freely or not is_iob2(freely)
                overruled += tags != freely
    assert overruled > 5, "the rule was never needed"
