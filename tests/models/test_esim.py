import numpy as np
import pytest
import torch
from oracles import bilstm, linear, mixes, numbers, softmax

from elmo_tasks.batch import Text
from elmo_tasks.data.snli import SnliBatch
from elmo_tasks.elmo import Elmo
from elmo_tasks.models.base import ClassifierOutput
from elmo_tasks.models.esim import Esim
from elmo_tasks.nn.embedding import WordEmbedding

ELMO_DIM, N_LAYERS, N_WORDS, N_LABELS = 4, 3, 9, 3
PREMISES, HYPOTHESES = [5, 1, 3, 1], [2, 4, 6, 1]


def make_text(lengths):
    """Random words and layers; garbage stands in the padding."""
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    layers = torch.randn(len(lengths), N_LAYERS, mask.shape[1], ELMO_DIM)
    char_ids = torch.zeros(*mask.shape, 1, dtype=torch.long)
    return Text([], torch.randint(N_WORDS, mask.shape), char_ids, mask, layers)


def make_batch(premises=PREMISES, hypotheses=HYPOTHESES):
    labels = [k % N_LABELS for k in range(len(premises))]
    return SnliBatch(make_text(premises), make_text(hypotheses), torch.tensor(labels), labels)


def esim(placement="both", dropout=0.5, attention_dropout=0.0):
    return Esim(
        words=WordEmbedding(torch.randn(N_WORDS, 6), trainable=True),
        elmo=Elmo(placement=placement, n_layers=N_LAYERS, dim=ELMO_DIM, dropout=0.5),
        n_labels=N_LABELS,
        hidden=5,
        dropout=dropout,
        attention_dropout=attention_dropout,
    )


def encoded(model, text, row):
    """One sentence's words in context, with ELMo on either side of the biLSTM where the model has it."""
    n = int(text.mask[row].sum())
    words = numbers(model.words.weight)[text.word_ids[row, :n].numpy()]
    mixed = mixes(model, text, row)
    x = np.concatenate([words, *[m for place, m in mixed.items() if place == "input"]], axis=1)
    return np.concatenate([bilstm(model.encoder, x), *[m for place, m in mixed.items() if place == "output"]], axis=1)


def pooled(model, sentence, other):
    """Mean and maximum of one sentence's comparison with the other."""
    compared = []
    for a in sentence:
        weights = softmax(np.array([a @ b for b in other]))
        aligned = sum(weight * b for weight, b in zip(weights, other, strict=True))
        enhanced = np.concatenate([a, aligned, a - aligned, a * aligned])
        compared.append(np.maximum(linear(model.projection[0], enhanced), 0))
    composed = bilstm(model.composition, compared)
    return [sum(composed) / len(composed), composed.max(axis=0)]


@pytest.mark.parametrize("placement", ["none", "input", "output", "both"])
def test_network_aligns_compares_and_composes_each_pair_alone(shake, placement):
    model, batch = shake(esim(placement), std=0.4).eval(), make_batch()
    first, last = (layer for layer in model.classifier if isinstance(layer, torch.nn.Linear))
    expected = []
    for row in range(len(batch.gold)):
        premise, hypothesis = encoded(model, batch.premise, row), encoded(model, batch.hypothesis, row)
        features = np.concatenate([*pooled(model, premise, hypothesis), *pooled(model, hypothesis, premise)])
        expected.append(linear(last, np.maximum(linear(first, features), 0)))
    with torch.no_grad():
        out = model(batch)
        np.testing.assert_allclose(out.logits.numpy(), expected, atol=1e-5, rtol=1e-5)
        assert model.decode(out, batch) == np.argmax(expected, axis=1).tolist()
        probabilities = model.log_probabilities(out, batch).exp().numpy()
    np.testing.assert_allclose(probabilities, [softmax(row) for row in np.array(expected)], atol=1e-5)


def test_a_pair_the_other_way_round_has_its_pooled_halves_the_other_way_round(shake):
    model, batch = shake(esim(), std=0.4).eval(), make_batch()
    seen = []
    model.classifier.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0]))
    with torch.no_grad():
        model(batch)
        model(SnliBatch(batch.hypothesis, batch.premise, batch.labels, batch.gold))
    there, back = seen
    torch.testing.assert_close(back, torch.cat(there.chunk(2, dim=1)[::-1], dim=1))
    assert not torch.equal(back, there)


def test_every_parameter_is_trained_by_pairs_of_one_word_too(shake):
    model, batch = shake(esim(), std=0.4).eval(), make_batch(3 * PREMISES, 3 * HYPOTHESES)
    model.loss(model(batch), batch).backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


def test_loss_is_the_mean_negative_log_probability_of_gold():
    batch, logits = make_batch(), torch.randn(len(PREMISES), N_LABELS)
    probabilities = [softmax(row)[label] for row, label in zip(logits.numpy(), batch.gold, strict=True)]
    loss = Esim.loss(None, ClassifierOutput(logits), batch)
    assert float(loss) == pytest.approx(-np.log(probabilities).mean(), rel=1e-5)


def test_attention_dropout_is_on_what_the_projection_reads_element_by_element(shake):
    model, batch = shake(esim(dropout=0.0, attention_dropout=0.5), std=0.4).train(), make_batch()
    model.elmo.dropout.p = 0.0
    dropped, whole = [], []
    model.projection.register_forward_pre_hook(lambda _, x: dropped.append(x[0].detach()))
    model(batch)
    model.eval()
    model.projection.register_forward_pre_hook(lambda _, x: whole.append(x[0].detach()))
    model(batch)
    for before, after in zip(whole, dropped, strict=False):
        there = before != 0
        ratio = (after / before)[there]
        assert set(ratio.unique().tolist()) == {0.0, 2.0}
        assert float((ratio == 0).float().mean()) == pytest.approx(0.5, abs=0.1)
