import numpy as np
import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from elmo_tasks.nn.antecedents import _BLOCK, AntecedentScorer, _Products

SPAN_DIM, HIDDEN, FEATURE_DIM, N_GENRES = 6, 5, 3, 4
LAST = [1, 2, 3, 4, 7, 15, 31, 63]  # distance of each row of distances but the last
SIZES = [
    (1, 250),
    (2, 1),
    (7, 250),
    (7, 3),
    (_BLOCK, _BLOCK),
    (_BLOCK + 1, 250),
    (2 * _BLOCK, 5),
    (100, _BLOCK + 1),
    (90, 70),
]
sizes = pytest.mark.parametrize(("n_spans", "max_antecedents"), SIZES)


def make_scorer(shake, max_antecedents, dropout=0.2, **other):
    sizes = {"span_dim": SPAN_DIM, "hidden": HIDDEN, "feature_dim": FEATURE_DIM, "n_genres": N_GENRES} | other
    return shake(AntecedentScorer(**sizes, max_antecedents=max_antecedents, dropout=dropout)).double()


def make_document(n_spans, span_dim=SPAN_DIM):
    """Spans of three speakers, and a genre."""
    spans = torch.randn(n_spans, span_dim, dtype=torch.float64, requires_grad=True)
    return spans, torch.randint(3, (n_spans,)), torch.tensor(2)


def make_row(distance):
    return next((row for row, last in enumerate(LAST) if distance <= last), len(LAST))


def first_layer(scorer):
    """One weight for [span; antecedent; span * antecedent; same speaker; distance; genre]."""
    parts = (scorer.from_span, scorer.from_antecedent, scorer.from_product, scorer.from_features)
    return torch.cat([part.weight for part in parts], dim=1)


def pair_by_pair(scorer, spans, speakers, genre):
    """Every pair's vector, one after the other."""
    weight, bias = (p.detach().numpy() for p in (first_layer(scorer), scorer.from_span.bias))
    layers = [
        [p.detach().numpy() for p in layer.parameters()] for layer in scorer.rest if isinstance(layer, torch.nn.Linear)
    ]
    same_speaker, distance_feature, genre_feature = (
        e.weight.detach().numpy() for e in (scorer.same_speaker, scorer.distance, scorer.genre)
    )
    spans, speakers = spans.detach().numpy(), speakers.tolist()
    scores = np.full((len(spans), min(scorer.max_antecedents, len(spans))), -np.inf)
    for k, span in enumerate(spans):
        for distance in range(1, min(k, scores.shape[1]) + 1):
            other = spans[k - distance]
            features = same_speaker[int(speakers[k] == speakers[k - distance])], distance_feature[make_row(distance)]
            x = weight @ np.concatenate([span, other, span * other, *features, genre_feature[int(genre)]]) + bias
            for layer_weight, layer_bias in layers:
                x = layer_weight @ np.maximum(x, 0) + layer_bias
            (scores[k, distance - 1],) = x
    return scores


def all_at_once(scorer, spans, speakers, genre):
    """The same for autograd: the vectors of all pairs in one tensor."""
    n_spans, n_antecedents = len(spans), min(scorer.max_antecedents, len(spans))
    offsets = torch.arange(1, n_antecedents + 1)
    before = torch.arange(n_spans).unsqueeze(1) - offsets
    others = spans[before.clamp_min(0)]
    own = spans.unsqueeze(1).expand_as(others)
    same = speakers[before.clamp_min(0)] == speakers.unsqueeze(1)
    rows = torch.tensor([make_row(int(offset)) for offset in offsets]).expand(n_spans, -1)
    genres = genre.expand(n_spans, n_antecedents)
    features = scorer.same_speaker(same.long()), scorer.distance(rows), scorer.genre(genres)
    x = torch.cat([own, others, own * others, *features], dim=2) @ first_layer(scorer).t() + scorer.from_span.bias
    for layer in (layer for layer in scorer.rest if isinstance(layer, torch.nn.Linear)):
        x = x.relu() @ layer.weight.t() + layer.bias
    return x.squeeze(2).masked_fill(before < 0, -torch.inf)


@sizes
def test_scores_are_those_of_each_pairs_vector_alone_and_none_where_there_is_no_antecedent(
    shake, n_spans, max_antecedents
):
    scorer, document = make_scorer(shake, max_antecedents).eval(), make_document(n_spans)
    expected = pair_by_pair(scorer, *document)
    found = scorer(*document).detach()
    assert found.shape == (n_spans, min(max_antecedents, n_spans))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    with torch.no_grad():
        assert torch.equal(scorer(*document), found)
        spans, *rest = document
        np.testing.assert_allclose(scorer.float()(spans.float(), *rest), expected, atol=1e-5, rtol=1e-5)


def gradients(scorer, score, spans, *rest):
    """Of a weighted sum of the scores, and of their softmax beside none, to which -inf must be no obstacle."""
    scores = score(spans, *rest)
    there = scores > -torch.inf
    weights = torch.linspace(-1, 1, scores.numel(), dtype=scores.dtype).view(scores.shape)
    rows = torch.cat([scores.new_zeros(len(scores), 1), scores], dim=1).logsumexp(dim=1)
    total = (scores[there] * weights[there]).sum() + rows.square().sum()
    return torch.autograd.grad(total, [spans, *scorer.parameters()], allow_unused=True)


@sizes
def test_gradients_are_those_of_the_plain_formula(shake, n_spans, max_antecedents):
    scorer, document = make_scorer(shake, max_antecedents).eval(), make_document(n_spans)
    expected = gradients(scorer, lambda *d: all_at_once(scorer, *d), *document)
    names = ["spans", *(name for name, _ in scorer.named_parameters())]
    for name, found, wanted in zip(names, gradients(scorer, scorer, *document), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9, msg=lambda text, name=name: f"{name}: {text}")
        assert n_spans < 7 or found.any(), name
    spans, *rest = document
    scorer.float()
    for name, found, wanted in zip(names, gradients(scorer, scorer, spans.float(), *rest), expected, strict=True):
        scale = wanted.abs().max()
        close = torch.allclose(found.double(), wanted, rtol=1e-5, atol=float(1e-5 * scale))
        assert close, f"{name} in single precision"


@pytest.mark.parametrize(("n_window", "n_spans"), [(4, 3), (1, 1), (3, 3)])
def test_gradients_of_the_products_are_those_of_finite_differences(n_window, n_spans):
    window, spans, weight = (torch.randn(n, 5, dtype=torch.float64, requires_grad=True) for n in (n_window, n_spans, 2))
    expected = torch.einsum("wd,rd,fd->wrf", window, spans, weight)
    torch.testing.assert_close(_Products.apply(window, spans, weight), expected)
    assert torch.autograd.gradcheck(_Products.apply, (window, spans, weight))
    assert torch.autograd.gradcheck(lambda x, weight: _Products.apply(x, x[-2:], weight), (window, weight))


def test_dropouts_masks_are_those_of_the_forward_pass_when_a_block_is_scored_again(shake):
    scorer = make_scorer(shake, 12, dropout=0.5, span_dim=2).train()
    spans, *rest = make_document(_BLOCK + 5, span_dim=2)

    def total(spans):
        torch.manual_seed(3)
        scores = scorer(spans, *rest)
        return scores[scores > -torch.inf].square().sum()

    assert torch.autograd.gradcheck(total, (spans,), fast_mode=True)


def test_both_layers_and_the_features_are_dropped_in_training_and_none_in_evaluation(shake):
    scorer, (spans, *rest) = make_scorer(shake, 12, dropout=0.5), make_document(20)
    dropouts = {"layer 1": scorer.rest[1], "layer 2": scorer.rest[4], "features": scorer.feature_dropout}
    scores = {}
    for training in ((), ("layer 1",), ("layer 2",), ("features",), ("layer 1", "layer 2")):
        scorer.eval()
        for name in training:
            dropouts[name].train()
        torch.manual_seed(0)
        scores[training] = scorer(spans, *rest).nan_to_num(0, 0, 0)
    assert len({tuple(s.flatten().tolist()) for s in scores.values()}) == 5
    torch.testing.assert_close(scores[()].detach().numpy(), np.nan_to_num(pair_by_pair(scorer, spans, *rest), neginf=0))


def test_dropout_of_the_features_has_a_mask_of_its_own_for_every_pair(shake):
    """With every feature 1 and a first layer that adds them up, a pair's score is the sum of its mask."""
    scorer = make_scorer(shake, 30, dropout=0.25, hidden=1).eval()
    with torch.no_grad():
        for parameter in scorer.parameters():
            parameter.zero_()
        for part in (scorer.same_speaker, scorer.distance, scorer.genre, scorer.from_features):
            part.weight.fill_(1)
        for layer in (layer for layer in scorer.rest if isinstance(layer, torch.nn.Linear)):
            layer.weight.fill_(1)
    scorer.feature_dropout.train()
    scores = scorer(*make_document(31))
    kept = (scores[scores > -torch.inf] * 0.75).detach()
    torch.testing.assert_close(kept, kept.round(), atol=1e-5, rtol=0)
    n_features = 3 * FEATURE_DIM
    assert float(kept.mean()) == pytest.approx(0.75 * n_features, rel=0.05)
    assert float(kept.var()) == pytest.approx(0.25 * 0.75 * n_features, rel=0.3)


@pytest.mark.parametrize("max_antecedents", [1, 6, _BLOCK + 2])
def test_no_span_further_back_than_the_limit_has_influence(shake, max_antecedents):
    scorer, (spans, *rest) = make_scorer(shake, max_antecedents, hidden=40).eval(), make_document(2 * _BLOCK + 9)
    scores = scorer(spans, *rest)
    for k in (max_antecedents + 1, _BLOCK + 4, len(spans) - 1):
        (span_grad,) = torch.autograd.grad(scores[k][scores[k] > -torch.inf].sum(), spans, retain_graph=True)
        reached = span_grad.any(dim=1).nonzero().flatten().tolist()
        assert reached == list(range(max(0, k - max_antecedents), k + 1))


def test_speakers_matter_only_by_being_the_same(shake):
    scorer, (spans, _, genre) = make_scorer(shake, 5).eval(), make_document(8)
    speakers = torch.tensor([0, 1, 1, 0, 2, 0, 2, 2])
    scores = scorer(spans, speakers, genre)
    assert torch.equal(scorer(spans, 90 - 7 * speakers, genre), scores)
    assert not torch.equal(scorer(spans, torch.zeros_like(speakers), genre), scores)


def test_memory_holds_the_pairs_of_one_block_only(shake, largest):
    n_spans, max_antecedents, span_dim, hidden = 300, 250, 200, 32
    scorer = make_scorer(shake, max_antecedents, span_dim=span_dim, hidden=hidden).float().train()
    spans, *rest = make_document(n_spans, span_dim=span_dim)
    spans, saved = spans.detach().float().requires_grad_(), []
    with largest:
        with saved_tensors_hooks(lambda x: (saved.append(x), x)[1], lambda x: x):
            scores = scorer(spans, *rest)
        scores[scores > -torch.inf].sum().backward()
    one_block = (max_antecedents + _BLOCK) * _BLOCK * hidden  # [W, R, F]
    assert largest.n_elements == one_block < n_spans * max_antecedents * span_dim / 50
    for_backward = {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in saved}
    assert n_spans * span_dim < sum(for_backward.values()) < n_spans * max_antecedents * hidden
    assert spans.grad.isfinite().all()


def test_gradients_work_under_autocast(shake):
    """As with trainer.precision=bf16-mixed, which leaves it before it goes back."""
    scorer, (spans, *rest) = make_scorer(shake, 20, hidden=40).float().eval(), make_document(_BLOCK + 8)
    spans = spans.detach().float().requires_grad_()

    def total(precise):
        with torch.autocast("cpu", torch.bfloat16, enabled=not precise):
            scores = scorer(spans, *rest).float()
            return scores[scores > -torch.inf].sum()

    found, expected = (torch.autograd.grad(total(precise), [spans, *scorer.parameters()]) for precise in (False, True))
    for half, full in zip(found, expected, strict=True):
        assert half.dtype == torch.float32
        assert (half - full).norm() < 0.1 * full.norm()
