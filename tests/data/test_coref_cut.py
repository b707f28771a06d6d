import copy
import random

import pytest

from elmo_tasks.data.coref import CorefItem, CorefReader, cut


def random_item(rng, n_sentences):
    """A document in which no word and no speaker comes twice."""
    lengths = [rng.randint(1, 6) for _ in range(n_sentences)]
    n_tokens = sum(lengths)
    bounds = [(sum(lengths[:k]), sum(lengths[: k + 1])) for k in range(n_sentences)]
    mentions = sorted(
        {(start, rng.randint(start + 1, end)) for begin, end in bounds for start in rng.choices(range(begin, end), k=3)}
    )
    clusters = [[] for _ in range(max(1, len(mentions) // 3))]
    for mention in mentions:
        rng.choice(clusters).append(mention)
    return CorefItem(
        sentences=[[f"w{k}" for k in range(*bound)] for bound in bounds],
        speakers=[f"s{k}" for k in range(n_tokens)],
        genre="nw",
        gold={
            "number": 7,
            "name": "nw/x",
            "part": "003",
            "sentence_lengths": lengths,
            "clusters": [cluster for cluster in clusters if cluster],
        },
    )


def spelled(item):
    words = [word for sentence in item.sentences for word in sentence]
    return [[words[start:stop] for start, stop in cluster] for cluster in item.gold["clusters"]]


@pytest.mark.parametrize("seed", range(20))
def test_a_cut_document_spells_the_mentions_within_it_that_still_have_a_partner(seed):
    rng = random.Random(seed)
    item = random_item(rng, n_sentences=rng.randint(2, 12))
    before = copy.deepcopy(item)
    n_kept = rng.randint(1, len(item.sentences))
    for first in range(len(item.sentences) - n_kept + 1):
        part = cut(item, first, n_kept)
        assert part.sentences == item.sentences[first : first + n_kept]
        words = [word for sentence in part.sentences for word in sentence]
        assert part.speakers == [f"s{word[1:]}" for word in words]
        assert part.gold["sentence_lengths"] == [len(sentence) for sentence in part.sentences]
        assert (part.genre, part.gold["number"], part.gold["name"], part.gold["part"]) == ("nw", 7, "nw/x", "003")
        within = [[mention for mention in cluster if set(mention) <= set(words)] for cluster in spelled(item)]
        assert spelled(part) == [cluster for cluster in within if len(cluster) > 1]
        assert all(0 <= start < stop <= len(words) for cluster in part.gold["clusters"] for start, stop in cluster)
    assert item == before


def test_a_stretch_may_have_no_clusters():
    gold = {"number": 0, "name": "nw/a", "part": "000", "sentence_lengths": [3, 2, 1]}
    gold |= {"clusters": [[(0, 1), (2, 3)], [(1, 2), (5, 6)]]}
    item = CorefItem([["Ann", "and", "Ann"], ["Rain", "fell"], ["And"]], speakers=["-"] * 6, genre="nw", gold=gold)
    assert cut(item, 0, 2).gold["clusters"] == [[(0, 1), (2, 3)]]
    assert cut(item, 1, 1).gold["clusters"] == cut(item, 1, 2).gold["clusters"] == []
    assert cut(item, 0, 3) == item


@pytest.mark.parametrize("longest", [1, 3, 5, 6])
def test_long_training_documents_are_cut_elsewhere_each_time_and_in_every_place(longest):
    reader = CorefReader(max_training_sentences=longest)
    item = random_item(random.Random(1), n_sentences=6)
    rng = random.Random(2)
    drawn = [reader.vary(item, rng) for _ in range(100)]
    stretches = [item.sentences[first : first + longest] for first in range(6 - longest + 1)]
    assert all(part.sentences in stretches for part in drawn)
    assert all(any(part.sentences == stretch for part in drawn) for stretch in stretches)
    assert all(part == cut(item, stretches.index(part.sentences), longest) for part in drawn)
    rng = random.Random(2)
    assert [reader.vary(item, rng) for _ in range(100)] == drawn


@pytest.mark.parametrize("n_sentences", [1, 3, 4])
def test_short_documents_are_never_cut(n_sentences):
    item = random_item(random.Random(3), n_sentences)
    assert CorefReader(max_training_sentences=4).vary(item, random.Random(0)) is item
