import numpy as np
import pytest
import torch
from oracles import bilstm, linear, mixes, numbers, softmax

from elmo_tasks.batch import Text
from elmo_tasks.data.labelled import LabelledBatch
from elmo_tasks.elmo import Elmo
from elmo_tasks.models.base import ClassifierOutput
from elmo_tasks.models.bcn import BiattentiveClassifier
from elmo_tasks.nn.dropout import Dropout
from elmo_tasks.nn.embedding import WordEmbedding

ELMO_DIM, N_LAYERS, N_WORDS, LENGTHS = 4, 3, 9, [5, 1, 3]
RATES = [0.5, 0.25, 0.1, 0.2, 0.3]  # in the order in which a text passes them


def make_batch():
    """Random words and layers; garbage stands in the padding."""
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS).unsqueeze(1)
    layers = torch.randn(len(LENGTHS), N_LAYERS, mask.shape[1], ELMO_DIM)
    char_ids = torch.zeros(*mask.shape, 1, dtype=torch.long)
    text = Text([], torch.randint(N_WORDS, mask.shape), char_ids, mask, layers)
    return LabelledBatch(text, torch.tensor([0, 3, 4]), [0, 3, 4])


def bcn(placement="both"):
    embedding, pre_encode, integrator, *classifier = RATES
    return BiattentiveClassifier(
        words=WordEmbedding(torch.randn(N_WORDS, 6), trainable=False),
        elmo=Elmo(placement=placement, n_layers=N_LAYERS, dim=ELMO_DIM),
        n_labels=5,
        embedding_dropout=embedding,
        pre_encode=7,
        pre_encode_dropout=pre_encode,
        hidden=3,
        integrator_dropout=integrator,
        classifier=[8, 6],
        classifier_dropout=classifier,
    )


def slow_logits(model, text, row, masks=(1.0,) * 5):
    """One text alone, token by token; a mask for each dropout."""
    mixed = mixes(model, text, row)
    words = numbers(model.words.weight)[text.word_ids[row, : LENGTHS[row]].numpy()]
    x = masks[0] * np.concatenate([words, *[m for place, m in mixed.items() if place == "input"]], axis=1)
    x = masks[1] * np.maximum([linear(model.pre_encode[0], token) for token in x], 0)
    h = np.concatenate([bilstm(model.encoder, x), *[m for place, m in mixed.items() if place == "output"]], axis=1)
    context = np.stack([sum(a * v for a, v in zip(softmax(h @ u), h, strict=True)) for u in h])
    m = bilstm(model.integrator, np.concatenate([h, h - context, h * context], axis=1))
    weights = softmax(np.array([linear(model.pool_score, token)[0] for token in m]))
    features = masks[2] * np.concatenate([m.max(axis=0), m.min(axis=0), sum(m) / len(m), weights @ m])
    first, second, last = (layer for layer in model.classifier if isinstance(layer, torch.nn.Linear))
    features = masks[3] * np.maximum(linear(first, features), 0)
    return linear(last, masks[4] * np.maximum(linear(second, features), 0))


@pytest.mark.parametrize("placement", ["none", "input", "output", "both"])
def test_network_is_attention_and_four_poolings_over_each_text_alone(shake, placement):
    model, batch = shake(bcn(placement), std=0.4).eval(), make_batch()
    expected = [slow_logits(model, batch.text, row) for row in range(len(LENGTHS))]
    with torch.no_grad():
        out = model(batch)
    np.testing.assert_allclose(out.logits.numpy(), expected, atol=1e-5)
    assert model.decode(out, batch) == np.argmax(expected, axis=1).tolist()


def test_dropout_is_on_words_with_elmo_after_the_pooling_and_after_each_relu_layer(shake, monkeypatch):
    model, batch, rates, masks = shake(bcn(), std=0.4).train(), make_batch(), [], []

    def one_mask(dropout, x):
        rates.append(dropout.p)
        masks.append(2.0 * (torch.rand(x.shape[-1]) < 0.5))
        return x * masks[-1]

    model.elmo.dropout = torch.nn.Identity()
    monkeypatch.setattr(Dropout, "forward", one_mask)
    with torch.no_grad():
        out = model(batch)
    assert rates == RATES
    drawn = [numbers(mask) for mask in masks]
    expected = [slow_logits(model, batch.text, row, drawn) for row in range(len(LENGTHS))]
    np.testing.assert_allclose(out.logits.numpy(), expected, atol=1e-5)


def test_loss_is_the_mean_negative_log_probability_of_gold():
    logits = torch.randn(3, 5)
    batch = make_batch()
    probabilities = [softmax(row)[label] for row, label in zip(logits.numpy(), batch.gold, strict=True)]
    loss = BiattentiveClassifier.loss(None, ClassifierOutput(logits), batch)
    assert float(loss) == pytest.approx(-np.log(probabilities).mean(), rel=1e-5)
