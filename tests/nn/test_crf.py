import itertools
import re

import pytest
import torch
import torchcrf

from elmo_tasks.data.tags import bioes_constraints, bioes_tags
from elmo_tasks.nn.crf import CRF

LENGTHS = (5, 3, 1)
PARAMETERS = {"transitions": "transitions", "start": "start_transitions", "end": "end_transitions"}  # ours: torchcrf's


def free_crf(n_tags):
    anything = torch.ones(n_tags, dtype=torch.bool)
    return CRF(anything.expand(n_tags, n_tags), anything, anything).double()


def case(n_tags, scale=1.0):
    n_tokens = max(LENGTHS)
    emissions = (scale * torch.randn(len(LENGTHS), n_tokens, n_tags, dtype=torch.double)).requires_grad_()
    tags = torch.randint(n_tags, (len(LENGTHS), n_tokens))
    mask = torch.arange(n_tokens) < torch.tensor(LENGTHS).unsqueeze(1)
    return emissions, tags, mask


def all_paths(n_tags, n_tokens):
    return torch.tensor(list(itertools.product(range(n_tags), repeat=n_tokens)))


def path_scores(crf, emissions, paths):
    """Score of each row of ``paths`` for the unpadded emissions of one text."""
    total = crf.start[paths[:, 0]] + crf.end[paths[:, -1]]
    for t in range(paths.shape[1]):
        total = total + emissions[t, paths[:, t]]
    for t in range(1, paths.shape[1]):
        total = total + crf.transitions[paths[:, t - 1], paths[:, t]]
    return total


def enumerated_losses(crf, emissions, tags):
    losses = []
    for row, gold, n in zip(emissions, tags, LENGTHS, strict=True):
        everything = path_scores(crf, row[:n], all_paths(row.shape[1], n))
        losses.append(torch.logsumexp(everything, dim=0) - path_scores(crf, row[:n], gold[None, :n])[0])
    return torch.stack(losses)


def gradients(loss, crf, emissions):
    return torch.autograd.grad(loss, [emissions, crf.transitions, crf.start, crf.end])


def test_the_loss_is_computed_in_32_bits_under_autocast():
    """In 16 bits the difference of two large sums could become negative."""
    crf = free_crf(17).float()
    emissions = torch.randn(8, 60, 17).bfloat16()
    tags, mask = torch.randint(17, (8, 60)), torch.ones(8, 60, dtype=torch.bool)
    with torch.autocast("cpu", torch.bfloat16):
        found = crf.loss(emissions, tags, mask)
    torch.testing.assert_close(found, crf.loss(emissions.float(), tags, mask), rtol=0, atol=0)


@pytest.mark.parametrize("n_tags", [3, 4, 5])
def test_loss_and_its_gradients_are_those_of_enumerating_all_tag_sequences(n_tags):
    crf = free_crf(n_tags)
    emissions, tags, mask = case(n_tags, scale=2.0)
    ours, slow = crf.loss(emissions, tags, mask), enumerated_losses(crf, emissions, tags)
    torch.testing.assert_close(ours, slow)
    weights = torch.tensor([1.0, -2.0, 3.0], dtype=torch.double)  # so that no text's gradient hides another's
    torch.testing.assert_close(
        gradients((weights * ours).sum(), crf, emissions), gradients((weights * slow).sum(), crf, emissions)
    )


@pytest.mark.parametrize("n_tags", [3, 4, 5])
def test_loss_gradients_and_best_path_are_those_of_torchcrf(n_tags):
    crf, other = free_crf(n_tags), torchcrf.CRF(n_tags, batch_first=True).double()
    for ours, theirs in PARAMETERS.items():
        getattr(other, theirs).data.copy_(getattr(crf, ours))
    emissions, tags, mask = case(n_tags)
    loss, other_loss = crf.loss(emissions, tags, mask).sum(), -other(emissions, tags, mask, reduction="sum")
    torch.testing.assert_close(loss, other_loss)
    other_gradients = torch.autograd.grad(other_loss, [emissions, *(getattr(other, p) for p in PARAMETERS.values())])
    torch.testing.assert_close(gradients(loss, crf, emissions), other_gradients)
    assert crf.decode(emissions, mask) == other.decode(emissions, mask)


def test_constraints_do_not_change_the_loss():
    crf = CRF(*bioes_constraints(bioes_tags(["X"]))).double()
    emissions, tags, mask = case(n_tags=5)
    torch.testing.assert_close(crf.loss(emissions, tags, mask), enumerated_losses(crf, emissions, tags))


@pytest.mark.parametrize("garbage", [0.0, 1e3, -1e3])
def test_padding_changes_neither_loss_nor_best_path(garbage):
    crf = free_crf(4)
    emissions, tags, mask = case(n_tags=4)
    with torch.no_grad():
        noisy = torch.where(mask.unsqueeze(2), emissions, garbage * torch.randn_like(emissions))
        noisy_tags = torch.where(mask, tags, torch.randint_like(tags, 4))
        torch.testing.assert_close(crf.loss(noisy, noisy_tags, mask), crf.loss(emissions, tags, mask))
        assert crf.decode(noisy, mask) == crf.decode(emissions, mask)


def test_each_text_is_decoded_to_its_own_length():
    emissions, _, mask = case(n_tags=3)
    assert [len(path) for path in free_crf(3).decode(emissions, mask)] == list(LENGTHS)


def spells_whole_spans(tags):
    """Each tag as one letter and its type; whole spans match ``O``, ``S`` or ``B I* E`` of one type."""
    text = " ".join(tags) + " "
    return re.fullmatch(r"(?:O |S-\w+ |B-(\w+) (?:I-\1 )*E-\1 )*", text) is not None


@pytest.mark.parametrize(("kinds", "lengths"), [(["X"], (5, 3, 1)), (["X", "Y"], (4, 2, 1))])
def test_best_path_is_the_best_of_all_that_spell_whole_spans(kinds, lengths):
    tags = bioes_tags(kinds)
    crf = CRF(*bioes_constraints(tags)).double()
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    legal = {}
    for n in lengths:
        paths = all_paths(len(tags), n)
        legal[n] = paths[[spells_whole_spans([tags[k] for k in path]) for path in paths.tolist()]]
    overruled = 0
    for _ in range(20):
        emissions = 2 * torch.randn(len(lengths), max(lengths), len(tags), dtype=torch.double)
        for row, n, path in zip(emissions, lengths, crf.decode(emissions, mask), strict=True):
            best = legal[n][path_scores(crf, row[:n], legal[n]).argmax()].tolist()
            assert path == best
            overruled += path_scores(crf, row[:n], all_paths(len(tags), n)).argmax() != _number(path, len(tags))
    assert overruled > 10, "the constraints were never needed"


def _number(path, base):
    return sum(tag * base**k for k, tag in enumerate(reversed(path)))


def test_a_long_sequence_that_wants_to_break_every_rule_comes_out_legal():
    tags = bioes_tags(["LOC", "PER"])
    crf = CRF(*bioes_constraints(tags))
    emissions = torch.zeros(1, 30, len(tags))
    for t, tag in enumerate(["I-PER", "E-LOC", "B-PER", "O", "S-LOC", "I-LOC"] * 5):
        emissions[0, t, tags.index(tag)] = 100.0
    (path,) = crf.decode(emissions, torch.ones(1, 30, dtype=torch.bool))
    assert spells_whole_spans([tags[k] for k in path])


@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_very_large_emissions_give_a_finite_exact_loss(scale):
    crf = free_crf(3).float()
    emissions, tags, mask = case(n_tags=3, scale=scale)
    emissions = emissions.detach().float().requires_grad_()
    loss = crf.loss(emissions, tags, mask)
    torch.testing.assert_close(loss, enumerated_losses(crf, emissions, tags))
    assert all(torch.isfinite(g).all() for g in gradients(loss.sum(), crf, emissions))
