import itertools
import random

import pytest
from seqeval.metrics.sequence_labeling import get_entities

from elmo_tasks.data.tags import bioes, bioes_constraints, bioes_tags, find_spans, iob2, split_tag

KINDS = ("PER", "LOC")


def starts(before, before_kind, tag, kind):
    """conlleval's startOfChunk; S and E-before-B, which the script of 2000 does not know, as whole chunks' ends."""
    return (
        (before in "BIO" and tag == "B")
        or (before == "O" and tag == "I")
        or (before == "E" and tag in "EI")
        or (before == "O" and tag == "E")
        or (tag != "O" and before_kind != kind)
        or (tag == "S" or (before == "S" and tag != "O") or (before == "E" and tag == "B"))
    )


def ends(before, before_kind, tag, kind):
    """conlleval's endOfChunk, with the same addition."""
    return (
        (before in "BI" and tag in "BO")
        or (before == "E" and tag in "EIO")
        or (before != "O" and before_kind != kind)
        or (before == "S" or (before != "O" and tag == "S") or (before == "E" and tag == "B"))
    )


def conlleval_chunks(tags):
    chunks, begin = [], None
    before, before_kind = "O", ""
    for k, text in enumerate([*tags, "O"]):
        tag, _, kind = text.partition("-")
        tag = {"L": "E", "U": "S"}.get(tag, tag)
        if before != "O" and ends(before, before_kind, tag, kind):
            chunks.append((begin, k, before_kind))
        if starts(before, before_kind, tag, kind):
            begin = k
        before, before_kind = tag, kind
    return chunks


def random_tags(prefixes, seed):
    choices = ["O", *(f"{prefix}-{kind}" for prefix in prefixes for kind in KINDS)]
    return random.Random(seed).choices(choices, k=300)


@pytest.mark.parametrize("prefixes", ["I", "BI", "BIES", "BILU"])
@pytest.mark.parametrize("seed", range(5))
def test_chunks_of_any_tag_sequence_are_those_of_conlleval_and_of_seqeval(prefixes, seed):
    tags = random_tags(prefixes, seed)
    assert find_spans(tags) == conlleval_chunks(tags)
    in_seqeval_letters = [tag.replace("L-", "E-").replace("U-", "S-") for tag in tags]
    assert find_spans(tags) == [(first, last + 1, kind) for kind, first, last in get_entities(in_seqeval_letters)]


def random_spans(seed):
    rng, spans, k = random.Random(seed), [], 0
    while k < 60:
        length = rng.choice([1, 1, 2, 3, 5])
        if rng.random() < 0.6:
            spans.append((k, k + length, rng.choice(KINDS)))
        k += length
    return spans, k


def iob1(spans, length):
    """B only where a span directly follows another of its type."""
    tags = ["O"] * length
    for start, stop, kind in spans:
        touches = any(stop2 == start and kind2 == kind for _, stop2, kind2 in spans)
        tags[start:stop] = ["B-" + kind if touches else "I-" + kind] + ["I-" + kind] * (stop - start - 1)
    return tags


def bioul(spans, length):
    return [{"E": "L", "S": "U"}.get(tag[0], tag[0]) + tag[1:] for tag in bioes(spans, length)]


@pytest.mark.parametrize("spell", [iob1, iob2, bioes, bioul])
@pytest.mark.parametrize("seed", range(5))
def test_spans_come_back_from_every_scheme(spell, seed):
    spans, length = random_spans(seed)
    tags = spell(spans, length)
    assert len(tags) == length
    assert find_spans(tags) == spans


def test_schemes_encode_adjacent_spans_as_published():
    spans = [(0, 1, "X"), (1, 3, "X"), (4, 7, "Y")]
    assert iob2(spans, 8) == ["B-X", "B-X", "I-X", "O", "B-Y", "I-Y", "I-Y", "O"]
    assert bioes(spans, 8) == ["S-X", "B-X", "E-X", "O", "B-Y", "I-Y", "E-Y", "O"]


@pytest.mark.parametrize(
    ("tag", "parts"),
    [
        ("O", ("O", "")),
        ("B-PER", ("B", "PER")),
        ("L-PER", ("E", "PER")),
        ("U-PER", ("S", "PER")),
        ("I-creative-work", ("I", "creative-work")),
        *((bad, None) for bad in ("", "B", "B-", "-PER", "PER", "X-PER", "BI-PER", "o", "O-PER", "b-PER")),
    ],
)
def test_a_tag_is_split_at_its_first_dash_or_refused(tag, parts):
    assert split_tag(tag) == parts


def test_tags_of_the_scheme_are_the_same_for_any_order_of_types():
    assert bioes_tags({"PER", "LOC"}) == bioes_tags(["LOC", "PER"])
    assert bioes_tags(["B"]) == ["O", "B-B", "I-B", "E-B", "S-B"]


def spellings(kinds, length):
    """All sequences made of O and whole spans, built from left to right."""
    if length == 0:
        return {()}
    found = {("O", *rest) for rest in spellings(kinds, length - 1)}
    for kind, size in itertools.product(kinds, range(1, length + 1)):
        span = (f"S-{kind}",) if size == 1 else (f"B-{kind}", *[f"I-{kind}"] * (size - 2), f"E-{kind}")
        found |= {span + rest for rest in spellings(kinds, length - size)}
    return found


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_constraints_allow_exactly_the_sequences_that_spell_whole_spans(length):
    tags = bioes_tags(["X", "Y"])
    step, first, last = (rule.tolist() for rule in bioes_constraints(tags))
    allowed = {
        tuple(tags[k] for k in path)
        for path in itertools.product(range(len(tags)), repeat=length)
        if first[path[0]] and last[path[-1]] and all(step[a][b] for a, b in itertools.pairwise(path))
    }
    assert allowed == spellings(["X", "Y"], length)
