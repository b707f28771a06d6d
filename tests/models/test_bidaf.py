from itertools import product

import numpy as np
import pytest
import torch
from oracles import linear, mixes, numbers, softmax

from elmo_tasks.batch import Text
from elmo_tasks.data.squad import Paragraph, SquadBatch
from elmo_tasks.data.tokens import tokenize
from elmo_tasks.elmo import Elmo
from elmo_tasks.models.bidaf import Bidaf, SpanOutput
from elmo_tasks.nn.characters import character_id_table, character_ids
from elmo_tasks.nn.embedding import WordEmbedding

ELMO_DIM, N_LAYERS, N_WORDS = 4, 3, 50
CONTEXTS = ["In 1477, Kyōto fell.", "Yes", 'He  built\tthe "well-known" grid (of Edo) in 1868-69; it\'s gone.', "a b a"]
QUESTIONS = ["Who?", "Is it so, or not?", "When", "What did he build there in 1868?"]


def make_text(sentences):
    """Random words and layers with the characters of some token lists; garbage stands in the padding."""
    mask = torch.arange(max(map(len, sentences))) < torch.tensor([len(s) for s in sentences]).unsqueeze(1)
    table = character_id_table([word for s in sentences for word in s])
    char_ids = torch.randint(1, 262, (*mask.shape, table.shape[1]))
    char_ids[mask] = table
    layers = torch.randn(len(sentences), N_LAYERS, mask.shape[1], ELMO_DIM)
    return Text(sentences, torch.randint(N_WORDS, mask.shape), char_ids, mask, layers)


def make_batch(contexts=CONTEXTS, questions=QUESTIONS):
    tokens = [tokenize(context, split_hyphens=True) for context in contexts]
    paragraphs = [
        Paragraph(context, own, [token.word for token in own]) for context, own in zip(contexts, tokens, strict=True)
    ]
    question = make_text([[token.word for token in tokenize(q)] for q in questions])
    context = make_text([paragraph.words for paragraph in paragraphs])
    starts = (torch.rand(len(contexts)) * context.lengths).long()
    return SquadBatch(question, context, starts, context.lengths - 1, paragraphs, [])


def bidaf(placement="both", max_answer_tokens=4, hidden=3, linear=5, char_dropout=0.2):
    return Bidaf(
        words=WordEmbedding(torch.randn(N_WORDS, 6), trainable=True),
        elmo=Elmo(placement=placement, n_layers=N_LAYERS, dim=ELMO_DIM, dropout=0.5),
        char_dim=4,
        char_filters=3,
        char_width=5,
        char_dropout=char_dropout,
        hidden=hidden,
        linear=linear,
        dropout=0.2,
        max_answer_tokens=max_answer_tokens,
    )


def gru(layer, x):
    """Both directions, step by step."""
    out = []
    for suffix, steps in (("", x), ("_reverse", x[::-1])):
        w_in, w_h, b_in, b_h = (
            numbers(getattr(layer.gru, f"{name}_l0{suffix}"))
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        h, states = np.zeros(layer.hidden), []
        for step in steps:
            input_part, state_part = np.split(w_in @ step + b_in, 3), np.split(w_h @ h + b_h, 3)
            r, z = (1 / (1 + np.exp(-(a + b))) for a, b in zip(input_part[:2], state_part[:2], strict=True))
            h = (1 - z) * np.tanh(input_part[2] + r * state_part[2]) + z * h
            states.append(h)
        out.append(states if suffix == "" else states[::-1])
    return np.concatenate(out, axis=1)


def characters(cnn, word):
    """The strongest response of each filter to a word."""
    x = numbers(cnn.embedding.weight)[list(character_ids(word))]
    (conv,) = cnn.convolutions
    weight, width = numbers(conv.weight), cnn.max_width
    x = np.concatenate([x, np.zeros((max(0, width - len(x)), x.shape[1]))])
    windows = [x[k : k + width].T for k in range(len(x) - width + 1)]
    return np.maximum([[(f * window).sum() for f in weight] for window in windows] + numbers(conv.bias), 0).max(axis=0)


def trilinear(layer, x, y):
    u, v, w = (numbers(part) for part in (layer.x_weight, layer.y_weight, layer.product_weight))
    return np.array([[u @ a + v @ b + w @ (a * b) for b in y] for a in x])


NO_DROPOUT = (1.0,) * 7
"""A mask for each use of the model's variational dropout, in the order of its calls."""


def encoded(model, text, row, read_mask=1.0, state_mask=1.0):
    """One text's words in context, with ELMo on either side of the GRU where the model has it."""
    n = len(text.tokens[row])
    words = numbers(model.words.weight)[text.word_ids[row, :n].numpy()]
    of_characters = np.array([characters(model.characters, word) for word in text.tokens[row]])
    mixed = mixes(model, text, row)
    x = np.concatenate([words, of_characters, *[m for place, m in mixed.items() if place == "input"]], axis=1)
    states = state_mask * gru(model.encoder, read_mask * x)
    return np.concatenate([states, *[m for place, m in mixed.items() if place == "output"]], axis=1)


def log_probabilities(model, question, context, masks=NO_DROPOUT):
    """Of each word of one context to be the first and the last of the answer."""
    scores = trilinear(model.similarity, context, question)
    of_context = softmax(scores.max(axis=1))
    q_c = sum(weight * h for weight, h in zip(of_context, context, strict=True))
    x = []
    for h, row in zip(context, scores, strict=True):
        c = sum(weight * q for weight, q in zip(softmax(row), question, strict=True))
        x.append(np.maximum(linear(model.after_attention, np.concatenate([h, c, h * c, q_c * c])), 0))
    own = masks[5] * gru(model.self_encoder, masks[4] * np.array(x))
    scores = trilinear(model.self_similarity, own, own)
    added = []
    for t, (h, row) in enumerate(zip(own, scores, strict=True)):
        weights = np.exp(row) / (np.exp(np.delete(row, t)).sum() + np.exp(float(model.null_score)))
        seen = sum((weights[k] * own[k] for k in range(len(own)) if k != t), start=np.zeros_like(h))
        added.append(np.maximum(linear(model.after_self_attention[0], np.concatenate([h, seen, h * seen])), 0))
    x = masks[6] * (np.array(x) + np.array(added))
    starts = gru(model.start_encoder, x)
    ends = gru(model.end_encoder, np.concatenate([x, starts], axis=1))
    of_starts = [linear(model.start_score, state)[0] for state in starts]
    of_ends = [linear(model.end_score, state)[0] for state in ends]
    return np.log(softmax(np.array(of_starts))), np.log(softmax(np.array(of_ends)))


@pytest.mark.parametrize("placement", ["none", "input", "output", "both"])
def test_network_is_the_papers_word_by_word_over_each_question_and_context_alone(shake, placement):
    model, batch = shake(bidaf(placement), std=0.4).eval(), make_batch()
    with torch.no_grad():
        out = model(batch)
    assert out.starts.shape == out.ends.shape == batch.context.mask.shape
    for row, paragraph in enumerate(batch.paragraphs):
        n = len(paragraph.words)
        question, context = encoded(model, batch.question, row), encoded(model, batch.context, row)
        starts, ends = log_probabilities(model, question, context)
        np.testing.assert_allclose(out.starts[row, :n], starts, atol=1e-5, rtol=1e-5)
        np.testing.assert_allclose(out.ends[row, :n], ends, atol=1e-5, rtol=1e-5)
        assert out.starts[row, n:].tolist() == out.ends[row, n:].tolist() == [-np.inf] * (len(out.starts[row]) - n)


class Masks(torch.nn.Module):
    """In place of the variational dropout: one fixed mask for each call."""

    def __init__(self):
        super().__init__()
        self.masks = []

    def forward(self, x):
        self.masks.append(2.0 * (torch.rand(x.shape[2]) < 0.5))
        return x * self.masks[-1]


def test_dropout_is_before_and_after_the_grus_never_on_output_elmo_and_the_pointers_share_a_mask(shake):
    model, batch = shake(bidaf(), std=0.4).eval(), make_batch()
    model.dropout = Masks()
    with torch.no_grad():
        out = model(batch)
    masks = [mask.double().numpy() for mask in model.dropout.masks]
    assert len(masks) == 7
    for row, paragraph in enumerate(batch.paragraphs):
        question = encoded(model, batch.question, row, *masks[0:2])
        context = encoded(model, batch.context, row, *masks[2:4])
        starts, ends = log_probabilities(model, question, context, masks)
        n = len(paragraph.words)
        np.testing.assert_allclose(out.starts[row, :n], starts, atol=1e-5, rtol=1e-5)
        np.testing.assert_allclose(out.ends[row, :n], ends, atol=1e-5, rtol=1e-5)


def test_initial_values_are_those_of_the_reference():
    model = bidaf()
    assert float(model.null_score) == -1
    embedding = model.characters.embedding.weight
    assert not embedding[0].any()
    assert 0.045 < float(embedding.abs().max()) <= 0.05
    assert (model.dropout.p, model.characters.dropout.p) == (0.2, 0.2)


def test_question_and_context_share_their_encoder_and_every_parameter_is_trained(shake):
    model, batch = shake(bidaf(), std=0.4).train(), make_batch()
    model.loss(model(batch), batch).backward()
    still = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert still == []
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


def whole_log_probabilities(batch, n_values):
    """Whole numbers, so that sums are exact and ties come often; -inf on padding."""
    shape = batch.context.mask.shape
    starts, ends = (-torch.randint(n_values, shape).float() for _ in range(2))
    starts, ends = (p.masked_fill(~batch.context.mask, -torch.inf) for p in (starts, ends))
    return SpanOutput(starts, ends, torch.zeros(len(starts)))


@pytest.mark.parametrize("max_answer_tokens", [1, 2, 4, 30])
@pytest.mark.parametrize("n_values", [1, 2, 4, 1000])
def test_the_answer_is_the_first_of_the_most_probable_spans_that_are_short_enough(max_answer_tokens, n_values):
    model, batch = bidaf(max_answer_tokens=max_answer_tokens), make_batch()
    for _ in range(20):
        out = whole_log_probabilities(batch, n_values)
        expected = []
        for starts, ends, paragraph in zip(out.starts.tolist(), out.ends.tolist(), batch.paragraphs, strict=True):
            n = len(paragraph.tokens)
            spans = [(i, j) for i, j in product(range(n), range(n)) if i <= j < i + max_answer_tokens]
            first, last = max(spans, key=lambda span: starts[span[0]] + ends[span[1]])
            expected.append(paragraph.context[paragraph.tokens[first].start : paragraph.tokens[last].stop])
        assert model.decode(out, batch) == expected


def test_spans_are_numbered_by_first_token_and_number_of_further_tokens():
    model, batch = bidaf(max_answer_tokens=3), make_batch()
    out = whole_log_probabilities(batch, 1000)
    spans = model.log_probabilities(out, batch)
    assert spans.shape == (*batch.context.mask.shape, 3)
    for (b, t, further), value in np.ndenumerate(spans.numpy()):
        inside = t + further < len(batch.paragraphs[b].tokens)
        assert value == (out.starts[b, t] + out.ends[b, t + further] if inside else -np.inf)


def test_probabilities_of_all_spans_are_at_most_one(shake):
    model, batch = shake(bidaf(max_answer_tokens=30), std=0.4).eval(), make_batch()
    with torch.no_grad():
        out = model(batch)
    torch.testing.assert_close(out.starts.exp().sum(dim=1), torch.ones(len(CONTEXTS)))
    assert (model.log_probabilities(out, batch).exp().sum(dim=(1, 2)) <= 1 + 1e-5).all()


def test_the_score_of_an_answer_is_that_before_the_softmax(shake):
    """The oracle: the highest sum of both layers' own outputs over all spans, by loops."""
    model, batch = shake(bidaf(max_answer_tokens=3), std=0.4).eval(), make_batch()
    outputs = []
    for layer in (model.start_score, model.end_score):
        layer.register_forward_hook(lambda module, inputs, output: outputs.append(output.squeeze(2).tolist()))
    with torch.no_grad():
        scores = model.scores(model(batch), batch)
    starts, ends = outputs
    lengths = [len(paragraph.tokens) for paragraph in batch.paragraphs]
    expected = [
        max(starts[b][i] + ends[b][j] for i in range(n) for j in range(i, min(n, i + 3))) for b, n in enumerate(lengths)
    ]
    torch.testing.assert_close(scores, torch.tensor(expected), atol=1e-4, rtol=1e-4)


def test_loss_is_the_mean_negative_log_probability_of_both_ends():
    batch = make_batch()
    starts, ends = (torch.randn(batch.context.mask.shape).log_softmax(dim=1) for _ in range(2))
    out = SpanOutput(starts, ends, torch.zeros(len(starts)))
    expected = [
        -(float(starts[first]) + float(ends[last]))
        for starts, ends, first, last in zip(out.starts, out.ends, batch.starts, batch.ends, strict=True)
    ]
    assert float(Bidaf.loss(None, out, batch)) == pytest.approx(np.mean(expected), rel=1e-5)


def test_an_answer_is_a_literal_stretch_of_its_context(shake):
    batch = make_batch()
    for seed in range(10):
        model = shake(bidaf(max_answer_tokens=5), seed=seed).eval()
        with torch.no_grad():
            answers = model.decode(model(batch), batch)
        for answer, context in zip(answers, CONTEXTS, strict=True):
            assert answer
            assert answer in context
            assert len(tokenize(answer, split_hyphens=True)) <= 5


def test_no_tensor_of_all_pairs_vectors_is_built(largest):
    n_texts, n_context, n_question, hidden = 2, 60, 20, 12
    words = ["the", "well", "known", "grid", "of", "Edo", "is", "gone"]
    contexts, questions = (
        [" ".join(words[(k + row) % len(words)] for k in range(n)) for row in range(n_texts)]
        for n in (n_context, n_question)
    )
    model, batch = bidaf(hidden=hidden, linear=24).train(), make_batch(contexts, questions)
    assert batch.context.mask.shape == (n_texts, n_context)
    assert batch.question.mask.shape == (n_texts, n_question)
    with largest:
        model.loss(model(batch), batch).backward()
    assert n_texts * n_context * n_context <= largest.n_elements < n_texts * n_context * n_question * 2 * hidden
