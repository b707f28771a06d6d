from itertools import combinations

import numpy as np
import pytest
import torch
from oracles import bilstm, coupled_bilstm, mixes, numbers, softmax

from elmo_tasks.batch import Text
from elmo_tasks.data.coref import CorefBatch
from elmo_tasks.elmo import Elmo
from elmo_tasks.models.coref_e2e import CorefE2E
from elmo_tasks.nn.characters import character_id_table, character_ids
from elmo_tasks.nn.coupled_lstm import BiCoupledLSTM
from elmo_tasks.nn.dropout import Dropout, VariationalDropout
from elmo_tasks.nn.embedding import WordEmbedding
from elmo_tasks.processor import has_instructions

ELMO_DIM, N_LAYERS, N_WORDS, N_GENRES = 4, 3, 50, 3
SENTENCES = [
    "Ann said that her dog , a small terrier , ran to Mr. Schmidt",
    "Yes",
    "He patted it",
    "It likes him a lot",
]
WORDS = [sentence.split() for sentence in SENTENCES]
SPEAKERS = [0] * 9 + [1] * 6 + [0] * 4 + [2] * 4  # the second speaks up before the first has come to a full stop
CLUSTERS = [[(0, 1), (3, 4)], [(3, 5), (17, 18), (18, 19)], [(12, 14), (15, 16), (20, 21)]]
LAST = [1, 2, 3, 4, 7, 15, 31, 63]  # distance of each row of distances but the last


def make_text(sentences):
    """Random words and layers; garbage stands in the padding."""
    mask = torch.arange(max(map(len, sentences))) < torch.tensor([len(s) for s in sentences]).unsqueeze(1)
    table = character_id_table([word for s in sentences for word in s])
    char_ids = torch.randint(1, 262, (*mask.shape, table.shape[1]))
    char_ids[mask] = table
    layers = torch.randn(len(sentences), N_LAYERS, mask.shape[1], ELMO_DIM, dtype=torch.float64)
    return Text(sentences, torch.randint(1, N_WORDS, mask.shape), char_ids, mask, layers)


def make_batch(sentences=WORDS, speakers=SPEAKERS, clusters=CLUSTERS, genre=2):
    table = [(start, stop - 1, k) for k, cluster in enumerate(clusters) for start, stop in cluster]
    table = torch.tensor(table, dtype=torch.long).view(-1, 3)
    return CorefBatch(
        make_text(sentences), torch.tensor(speakers), torch.tensor(genre), table[:, :2], table[:, 2], [{}]
    )


def coref(shake, placement="both", **other):
    sizes = {"max_span_width": 4, "spans_per_word": 0.6, "max_antecedents": 250, "dropout": 0.2, "lexical_dropout": 0.5}
    model = CorefE2E(
        words=WordEmbedding(torch.randn(N_WORDS, 6), trainable=True),
        elmo=Elmo(placement=placement, n_layers=N_LAYERS, dim=ELMO_DIM, dropout=0.5),
        n_genres=N_GENRES,
        char_dim=4,
        char_filters=2,
        char_widths=[2, 3, 5],
        hidden=3,
        ffnn=5,
        feature_dim=2,
        **({"cell": "lstm"} | sizes | other),
    )
    return shake(model, std=0.4).double()


def characters(cnn, word):
    """The strongest response of each filter to a word."""
    x, strongest = numbers(cnn.embedding.weight)[list(character_ids(word))], []
    for conv in cnn.convolutions:
        (width,) = conv.kernel_size
        filled = np.concatenate([x, np.zeros((max(0, width - len(x)), x.shape[1]))])
        windows = [filled[k : k + width].T for k in range(len(filled) - width + 1)]
        responses = [[(f * window).sum() for f in numbers(conv.weight)] for window in windows] + numbers(conv.bias)
        strongest.append(np.maximum(responses, 0).max(axis=0))
    return np.concatenate(strongest)


def encode_words(model, text):
    """Each word as it is, and in the context of its sentence, with ELMo on either side where the model has it."""
    all_x, all_h = [], []
    for row, tokens in enumerate(text.tokens):
        n = len(tokens)
        mixed = mixes(model, text, row)
        x = [numbers(model.words.weight)[text.word_ids[row, :n].numpy()]]
        x += [np.array([characters(model.characters, word) for word in tokens])]
        x = np.concatenate(x + [m for place, m in mixed.items() if place == "input"], axis=1)
        encode = coupled_bilstm if isinstance(model.encoder, BiCoupledLSTM) else bilstm
        h = [encode(model.encoder, x)] + [m for place, m in mixed.items() if place == "output"]
        all_x.append(x)
        all_h.append(np.concatenate(h, axis=1))
    return np.concatenate(all_x), np.concatenate(all_h)


def feed_forward(layers, x):
    first, *rest = (layer for layer in layers if isinstance(layer, torch.nn.Linear))
    x = numbers(first.weight) @ x + numbers(first.bias)
    for layer in rest:
        x = numbers(layer.weight) @ np.maximum(x, 0) + numbers(layer.bias)
    (score,) = x
    return score


def pair_score(scorer, span, other, same_speaker, distance, genre):
    parts = (scorer.from_span.weight, scorer.from_antecedent.weight, scorer.from_product.weight)
    parts += scorer.from_features.weight.chunk(3, dim=1)
    row = next((row for row, last in enumerate(LAST) if distance <= last), len(LAST))
    features = (scorer.same_speaker, same_speaker), (scorer.distance, row), (scorer.genre, genre)
    x = [span, other, span * other, *(numbers(embedding.weight)[k] for embedding, k in features)]
    x = sum(numbers(part) @ piece for part, piece in zip(parts, x, strict=True)) + numbers(scorer.from_span.bias)
    for layer in (layer for layer in scorer.rest if isinstance(layer, torch.nn.Linear)):
        x = numbers(layer.weight) @ np.maximum(x, 0) + numbers(layer.bias)
    (score,) = x
    return score


def crosses(a, b):
    """Whether two spans have words in common and each has one of its own."""
    a, b = (set(range(first, last + 1)) for first, last in (a, b))
    return bool(a & b) and bool(a - b) and bool(b - a)


def read(model, batch):
    """Kept spans, and the score of each of their antecedents, by number of span and of antecedent."""
    x, h = encode_words(model, batch.text)
    sentence = [k for k, tokens in enumerate(batch.text.tokens) for _ in tokens]
    vectors, mention = {}, {}
    for first in range(len(sentence)):
        for last in range(first, min(first + model.max_span_width, len(sentence))):
            if sentence[first] == sentence[last]:
                inside = slice(first, last + 1)
                head = softmax(np.array([feed_forward(model.head_score, state) for state in h[inside]])) @ x[inside]
                of_width = numbers(model.width.weight)[last - first]
                vectors[first, last] = np.concatenate([h[first], h[last], head, of_width])
                mention[first, last] = feed_forward(model.mention_score, vectors[first, last])
    kept, n_wanted = [], max(1, int(model.spans_per_word * len(sentence)))
    for span in sorted(vectors, key=lambda span: -mention[span]):
        if len(kept) < n_wanted and not any(crosses(span, other) for other in kept):
            kept.append(span)
    kept.sort()
    speakers, scores = batch.speakers.tolist(), {}
    for j, k in combinations(range(len(kept)), 2):
        if k - j <= model.pair_score.max_antecedents:
            other, span = kept[j], kept[k]
            same = int(speakers[other[0]] == speakers[span[0]])
            scores[k, j] = mention[span] + mention[other]
            scores[k, j] += pair_score(model.pair_score, vectors[span], vectors[other], same, k - j, int(batch.genre))
    return kept, scores


@pytest.mark.parametrize("placement", ["none", "input", "output", "both"])
@pytest.mark.parametrize(
    "limits",
    [{}, {"max_span_width": 2, "max_antecedents": 3, "spans_per_word": 0.3}, {"cell": "coupled"}],
    ids=str,
)
def test_network_is_the_papers_span_by_span(shake, placement, limits):
    model, batch = coref(shake, placement, **limits).eval(), make_batch()
    with torch.no_grad():
        out = model(batch)
    kept, scores = read(model, batch)
    assert out.spans.tolist() == [[list(span) for span in kept]]
    assert len(kept) > 5
    n_antecedents = min(model.pair_score.max_antecedents, len(kept))
    expected = np.full((1, len(kept), n_antecedents + 1), -np.inf)
    expected[:, :, 0] = 0
    for (k, j), score in scores.items():
        expected[0, k, k - j] = score
    np.testing.assert_allclose(out.scores, expected, rtol=1e-9, atol=1e-9)
    batch.text.layers = batch.text.layers.float()
    with torch.no_grad():
        out = model.float()(batch)
    assert out.spans.tolist() == [[list(span) for span in kept]]
    np.testing.assert_allclose(out.scores, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("training", [True, False])
def test_a_document_of_one_word_has_one_span_and_no_cluster(shake, training):
    model, batch = coref(shake).train(training), make_batch([["Yes"]], [0], [])
    out = model(batch)
    assert out.spans.tolist() == [[[0, 0]]]
    assert out.scores.tolist() == [[[0.0, -np.inf]]]
    assert model.decode(out, batch) == [[]]
    loss = model.loss(out, batch)
    assert float(loss) == 0
    loss.backward()
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


def test_words_are_read_in_their_sentence_alone(shake):
    model, batch = coref(shake).eval(), make_batch()
    seen = []
    model.mention_score.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0].detach()))
    model(batch)
    batch.text.word_ids[0] = torch.randint(1, N_WORDS, batch.text.word_ids[0].shape)
    model(batch)
    before, after = seen
    n = sum(max(0, len(WORDS[0]) - width + 1) for width in range(1, 5))
    assert (before[:n] != after[:n]).any(dim=1).all()
    assert torch.equal(before[n:], after[n:])


def test_sizes_are_those_that_are_asked_for(shake):
    shapes = {name: tuple(p.shape) for name, p in coref(shake, "none").named_parameters()}
    span_dim = 2 * 6 + 6 + 3 * 2 + 2  # both ends in context, a word with its characters, the width
    expected = {
        "width.weight": (4, 2),
        "head_score.0.weight": (5, 6),
        "head_score.3.weight": (5, 5),
        "mention_score.0.weight": (5, span_dim),
        "mention_score.3.weight": (5, 5),
        "pair_score.from_span.weight": (5, span_dim),
        "pair_score.rest.2.weight": (5, 5),
        "pair_score.same_speaker.weight": (2, 2),
        "pair_score.distance.weight": (len(LAST) + 1, 2),
        "pair_score.genre.weight": (N_GENRES, 2),
    }
    assert {name: shapes[name] for name in expected} == expected


def test_every_parameter_is_trained(shake):
    model, batch = coref(shake, spans_per_word=5.0).eval(), make_batch()
    model.loss(model(batch), batch).backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())
    still = [name for name, p in model.named_parameters() if p.grad.abs().max() < 1e-12]
    assert still == [name for name, _ in model.named_parameters() if name == "head_score.6.bias"], "softmax ignores it"
    for embedding, used in ((model.width, 4), (model.pair_score.genre, 1), (model.pair_score.same_speaker, 2)):
        assert embedding.weight.grad.any(dim=1).sum() == used


def test_gradients_are_those_of_finite_differences(shake):
    model, batch = coref(shake).eval(), make_batch()
    loss = model.loss(model(batch), batch)
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    directions = [torch.randn_like(p) for p in model.parameters()]
    losses = []
    for step in (1e-6, -2e-6):
        for p, direction in zip(model.parameters(), directions, strict=True):
            p.data += step * direction
        losses.append(float(model.loss(model(batch), batch)))
    expected = sum(float((g * d).sum()) for g, d in zip(gradients, directions, strict=True))
    assert (losses[0] - losses[1]) / 2e-6 == pytest.approx(expected, rel=1e-5)


def test_in_training_words_states_features_and_layers_are_dropped_element_by_element(shake):
    model, batch = coref(shake).train(), make_batch()
    seen = {}
    for name, module in model.named_modules():
        if isinstance(module, Dropout) and module.p:
            module.register_forward_pre_hook(lambda _, x, name=name: seen.setdefault(name, []).append(x[0].shape))
    model(batch)
    scorers = [f"{name}.{place}" for name in ("head_score", "mention_score") for place in (2, 5)]
    scorers += [f"pair_score.rest.{place}" for place in (1, 4)] + ["pair_score.feature_dropout"]
    assert set(seen) == {"lexical_dropout", "dropout", "elmo.dropout", *scorers}
    assert seen["lexical_dropout"] == [(*batch.text.mask.shape, model.words.dim + model.characters.dim)]
    of_states, of_widths = seen["dropout"]
    assert of_states == (*batch.text.mask.shape, model.encoder.dim)
    assert of_widths[1:] == (model.width.embedding_dim,)
    rates = {name: model.get_submodule(name).p for name in seen}
    assert rates == dict.fromkeys(seen, 0.2) | {"lexical_dropout": 0.5, "elmo.dropout": 0.5}
    assert not any(isinstance(model.get_submodule(name), VariationalDropout) for name in seen)


def test_the_coupled_cell_has_the_models_rate_of_recurrent_dropout(shake):
    assert coref(shake, cell="coupled", dropout=0.3).encoder.dropout == 0.3


def test_without_rates_training_is_evaluation(shake):
    model, batch = coref(shake, "none", dropout=0.0, lexical_dropout=0.0).train(), make_batch()
    out = model(batch)
    expected = model.eval()(batch)
    assert torch.equal(out.spans, expected.spans)
    assert torch.equal(out.scores, expected.scores)


@pytest.mark.skipif(not has_instructions("bfloat16"), reason="PyTorch's LSTM in 16 bits needs their instructions")
def test_training_works_under_autocast(shake):
    """As with trainer.precision=bf16-mixed, which leaves it before it goes back."""
    model, batch = coref(shake).float().eval(), make_batch()
    batch.text.layers = batch.text.layers.float()
    losses = []
    for enabled in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            losses.append(model.loss(model(batch), batch))
    losses[1].backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())
    assert float(losses[1]) == pytest.approx(float(losses[0]), rel=0.1)


def test_a_long_document_is_read_whole(shake):
    """Ten times as long as those of training, with several windows of antecedents."""
    lengths = [1 + (7 * k) % 23 for k in range(110)]
    sentences = [[WORDS[0][k % 14] for k in range(length)] for length in lengths]
    n = sum(lengths)
    batch = make_batch(sentences, [k // 50 % 3 for k in range(n)])
    batch.text.layers = batch.text.layers.float()
    model = coref(shake, max_span_width=10, spans_per_word=0.4).float().eval()
    with torch.no_grad():
        out = model(batch)
    n_spans = out.spans.shape[1]
    assert 500 < n_spans <= int(0.4 * n)
    assert out.scores.shape == (1, n_spans, 251)
    there = torch.arange(251) <= torch.arange(n_spans).unsqueeze(1)
    assert torch.equal(out.scores[0].isfinite(), there)
    spans = out.spans[0].tolist()
    assert spans == sorted(spans)
    ends = np.cumsum(lengths)
    assert all(np.searchsorted(ends, first, "right") == np.searchsorted(ends, last, "right") for first, last in spans)
    linked = [mention for cluster in model.decode(out, batch)[0] for mention in cluster]
    assert {(start, stop - 1) for start, stop in linked} <= set(map(tuple, spans))
    assert model.loss(out, batch).isfinite()
