import random
import re
from collections import defaultdict
from fractions import Fraction
from itertools import permutations

import pytest

from elmo_tasks.metrics.coref import CorefF1, as_read

METRICS = ["muc", "b_cubed", "ceaf_e"]


def make_gold(clusters, number=0, name="nw/wire/1", part="000", sentence_lengths=(60,)):
    return {
        "number": number,
        "name": name,
        "part": part,
        "sentence_lengths": list(sentence_lengths),
        "clusters": clusters,
    }


def lettered(text):
    """A word is a cluster, a letter a mention of one token; its capital is that token and the next."""
    starts = {letter: 2 * k for k, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
    return [
        [(starts[letter.lower()], starts[letter.lower()] + (2 if letter.isupper() else 1)) for letter in word]
        for word in text.split()
    ]


def scored(*documents):
    """Gold and predicted clusters of some documents."""
    metric = CorefF1()
    for number, (clusters, predicted) in enumerate(documents):
        metric.update([predicted], [make_gold(clusters, number)])
    return metric.compute()


def result(parts):
    """What a metric should give, from recall and precision of each part."""
    scores = {}
    for name, (recall, precision) in parts.items():
        f1 = 2 * recall * precision / (recall + precision) if recall + precision else 0
        scores |= {f"{name}_recall": 100 * recall, f"{name}_precision": 100 * precision, f"{name}_f1": 100 * f1}
    return {key: float(value) for key, value in scores.items()} | {
        "f1": float(sum(scores[f"{name}_f1"] for name in METRICS) / 3)
    }


def fractions(*parts):
    return result({name: map(Fraction, part.split()) for name, part in zip(METRICS, parts, strict=True)})


@pytest.mark.parametrize(
    ("key", "response", "muc", "b_cubed", "ceaf_e"),
    [
        # recall and precision of the official scorer's test cases, numbered as there (A5 and A6: B overlaps with b)
        pytest.param("a bc def", "a bc def", "1 1", "1 1", "1 1", id="A1"),
        pytest.param("a bc def", "a de", "1/3 1", "7/18 1", "3/5 9/10", id="A2"),
        pytest.param("a bc def", "a bcx defy z", "1 3/5", "1 55/108", "31/35 93/140", id="A3"),
        pytest.param("a bc def", "a bcx dy z", "1/3 1/3", "5/9 17/42", "11/15 11/20", id="A4"),
        pytest.param("a bc def", "a bcxB dy z", "1/3 1/4", "5/9 5/16", "31/45 31/60", id="A5"),
        pytest.param("a bc def", "a bcx dy Bz", "1/3 1/4", "5/9 17/48", "11/15 11/20", id="A6"),
        pytest.param("a bc def", "a bcxb dy z", "1/3 1/3", "5/9 17/42", "11/15 11/20", id="A7"),
        pytest.param("a bc def", "a bcx dy bz", "1/3 1/3", "5/9 17/42", "11/15 11/20", id="A8"),
        pytest.param("a bc def", "a bcx dy bbbbbbbbbbz", "1/3 1/3", "5/9 17/42", "11/15 11/20", id="A9"),
        pytest.param("a bc def", "a b c d e f", "0 0", "1/2 1", "13/18 13/36", id="A10"),
        pytest.param("a bc def", "abcdef", "1 3/5", "1 7/18", "2/9 2/3", id="A11"),
        pytest.param("a bc def", "a x y c d e z", "0 0", "13/36 4/7", "13/18 13/42", id="A12"),
        pytest.param("a bc def", "axycdez", "1/3 1/6", "17/36 6/49", "2/15 2/5", id="A13"),
        pytest.param("ab cde", "bcx de", "1/3 1/3", "13/30 8/15", "3/5 3/5", id="B1"),
        pytest.param("ab cde fg", "bcx de fg", "1/2 1/2", "25/42 2/3", "11/15 11/15", id="C1"),
        pytest.param("abcde fg hijkl", "abcde fghijkl", "1 9/10", "1 16/21", "11/18 11/12", id="D1"),
        pytest.param("abcde fg hijkl", "abcdehijkl fg", "1 9/10", "1 7/12", "5/9 5/6", id="E1"),
        pytest.param("abcd", "ab cd", "2/3 1", "1/2 1", "2/3 1/3", id="F1"),
        pytest.param("ab cd", "abcd", "1 2/3", "1 1/2", "1/3 2/3", id="G1"),
        pytest.param("abc", "ac", "1/2 1", "4/9 1", "4/5 4/5", id="J1"),
        pytest.param("bcdeghj", "abc def ghi", "1/2 1/2", "12/49 4/9", "2/5 2/15", id="K1"),
        pytest.param("abc defg", "ab cd fgh", "2/5 1/2", "5/12 13/21", "24/35 16/35", id="L1"),
        pytest.param("abcdef", "abcdef", "1 1", "1 1", "1 1", id="M1"),
        pytest.param("abcdef", "a b c d e f", "0 0", "1/6 1", "2/7 1/21", id="M2"),
        pytest.param("abcdef", "ab cde f", "3/5 1", "7/18 1", "2/3 2/9", id="M3"),
        pytest.param("abcdef", "abcxyz", "2/5 2/5", "1/4 1/4", "1/2 1/2", id="M4"),
        pytest.param("abcdef", "a b c x y z", "0 0", "1/12 1/2", "2/7 1/21", id="M5"),
        pytest.param("abcdef", "ab cxy z", "1/5 1/3", "5/36 7/18", "1/2 1/6", id="M6"),
        pytest.param("a b c d e f", "a b c d e f", "0 0", "1 1", "1 1", id="N1"),
        pytest.param("a b c d e f", "abcdef", "0 0", "1 1/6", "1/21 2/7", id="N2"),
        pytest.param("a b c d e f", "ab cde f", "0 0", "1 1/2", "13/36 13/18", id="N3"),
        pytest.param("a b c d e f", "a b c x y z", "0 0", "1/2 1/2", "1/2 1/2", id="N4"),
        pytest.param("a b c d e f", "abcxyz", "0 0", "1/2 1/12", "1/21 2/7", id="N5"),
        pytest.param("a b c d e f", "ab cxy z", "0 0", "1/2 2/9", "7/36 7/18", id="N6"),
        pytest.param("abc defg", "ab cd fghi", "2/5 2/5", "5/12 1/2", "13/20 13/30", id="Pradhan-et-al-2014"),
        # a side that is empty, a mention that comes twice
        pytest.param("ab c", "", "0 0", "0 0", "0 0", id="nothing-predicted"),
        pytest.param("", "ab c", "0 0", "0 0", "0 0", id="nothing-in-the-key"),
        pytest.param("", "", "0 0", "0 0", "0 0", id="nothing"),
        pytest.param("abc", "abba", "1/2 1", "4/9 1", "4/5 4/5", id="twice-in-one-cluster"),
        pytest.param("abc de", "ab bcx ade", "2/3 2/3", "11/15 3/4", "9/10 3/5", id="twice-in-two-clusters"),
        pytest.param("abc", "ab ba c", "1/2 1", "5/9 1", "4/5 2/5", id="a-cluster-of-repeats"),
        pytest.param("abc d", "cda ab", "1/2 1/2", "2/3 2/3", "1/2 1/2", id="first-in-the-file"),
        pytest.param("ab", "abxx", "1 1/3", "1 1/4", "2/3 2/3", id="spurious-twice-in-one-cluster"),
        pytest.param("ab cd", "abx xcd x", "1 1/2", "1 8/21", "4/5 8/15", id="spurious-in-three-clusters"),
        pytest.param("abb cd", "ab cd", "2/3 1", "2/3 1", "11/10 11/10", id="twice-in-a-key-cluster"),
        pytest.param("ab bcd", "abcd", "2/3 2/3", "4/5 11/16", "3/7 6/7", id="in-two-key-clusters"),
        pytest.param("ac bcd", "ac bd", "1/3 1/2", "8/15 7/8", "9/10 9/10", id="in-two-key-clusters-and-in-one"),
    ],
)
def test_scores_are_those_of_the_official_scorer(key, response, muc, b_cubed, ceaf_e):
    # Cases and numbers: github.com/conll/reference-coreference-scorers, test/TestCases.README and
    # test/CorefMetricTestConfig.pm, and figure 1 of Pradhan et al. (2014), https://aclanthology.org/P14-2006.
    # Numbers that these leave out, and the repeats, are what scorer.pl (v8.01) gives when run on these clusters.
    assert scored((lettered(key), lettered(response))) == pytest.approx(fractions(muc, b_cubed, ceaf_e))


@pytest.mark.parametrize(
    ("key", "response", "muc", "b_cubed", "ceaf_e"),
    [
        ([[(2, 3), (9, 10)]], [[(2, 4), (9, 10)], [(2, 3), (9, 10)]], "1 1", "1 2/3", "1 1/2"),
        ([[(0, 2), (9, 10)], [(0, 3)]], [[(0, 2), (9, 10)], [(0, 3), (9, 10)]], "0 0", "2/3 2/3", "2/3 2/3"),
        ([[(0, 2), (9, 10)], [(5, 6)]], [[(0, 2), (9, 10)], [(0, 2), (5, 6), (9, 10)]], "1 1", "1 1", "1 1"),
        ([[(0, 2), (9, 10)], [(5, 6)]], [[(0, 2), (5, 6), (9, 10)], [(0, 2), (9, 10)]], "1 1/2", "1 5/9", "2/5 4/5"),
        ([[(3, 4), (5, 6)], [(0, 1), (5, 6)]], [[(3, 4), (5, 6)]], "1/2 1", "1/2 1", "1/2 1"),
    ],
    ids=["one-token-first", "wide-before-narrow", "as-given", "as-given-the-other-way", "key"],
)
def test_repeats_count_in_the_order_in_which_the_official_scorer_reads_the_files(key, response, muc, b_cubed, ceaf_e):
    # the numbers are what scorer.pl (v8.01) gives when run on files()
    assert scored((key, response)) == pytest.approx(fractions(muc, b_cubed, ceaf_e))


def cluster_with(clusters, mention):
    return next((set(cluster) for cluster in clusters if mention in cluster), set())


def slow_muc(key, response):
    """Vilain et al.: a cluster of n that the other side has in p parts keeps n - p of its n - 1 links."""
    kept = links = 0
    for cluster in key:
        parts = {frozenset(cluster_with(response, mention)) or mention for mention in cluster}
        kept += len(cluster) - len(parts)
        links += len(cluster) - 1
    return kept, links


def slow_b_cubed(key, response):
    shares = [
        Fraction(len(set(cluster) & cluster_with(response, mention)), len(cluster))
        for cluster in key
        for mention in cluster
    ]
    return sum(shares), len(shares)


def slow_ceaf_e(key, response):
    """Luo: the best of all one-to-one alignments."""
    few, many = sorted([key, response], key=len)
    best = max(
        sum(
            Fraction(2 * len(set(one) & set(other)), len(one) + len(other))
            for one, other in zip(few, others, strict=True)
        )
        for others in permutations(many, len(few))
    )
    return best, len(key)


def from_the_definitions(documents):
    parts = {}
    for name, count in zip(METRICS, [slow_muc, slow_b_cubed, slow_ceaf_e], strict=True):
        sides = []
        for pairs in (documents, [(response, key) for key, response in documents]):
            counts = [count(*pair) for pair in pairs]
            below = sum(n for _, n in counts)
            sides.append(Fraction(sum(n for n, _ in counts)) / below if below else Fraction(0))
        parts[name] = sides
    return result(parts)


def random_clusters(rng, mentions):
    """At most five clusters, singletons among them, that leave out some mentions."""
    clusters = [[] for _ in range(rng.randint(1, 5))]
    for mention in rng.sample(mentions, rng.randint(0, len(mentions))):
        rng.choice(clusters).append(mention)
    return [cluster for cluster in clusters if cluster]


@pytest.mark.parametrize("seed", range(30))
def test_scores_are_those_of_the_definitions_on_random_clusters(seed):
    rng = random.Random(seed)
    documents = []
    for _ in range(rng.randint(1, 4)):
        n_tokens = rng.randint(2, 6)
        mentions = [(start, stop) for start in range(n_tokens) for stop in range(start + 1, n_tokens + 1)]
        documents.append((random_clusters(rng, mentions), random_clusters(rng, mentions)))
    assert scored(*documents) == pytest.approx(from_the_definitions(documents))


def test_counts_add_up_over_documents_and_are_no_mean_of_the_documents_scores():
    right, wrong = (lettered("ab"), lettered("ab")), (lettered("abcd ef"), lettered("a bc de fxy"))
    # links: 1 of 1 and 1 of 1, then 1 of 4 and 4; mentions: 2 of 2 and 2, then 5/2 of 6 and 13/3 of 8;
    # clusters: 1 of 1 and 1, then 2/3 + 1/2 of 2 and 4
    both = scored(right, wrong)
    assert both == pytest.approx(fractions("2/5 2/5", "9/16 19/30", "13/18 13/30"))
    assert both["f1"] != pytest.approx((scored(right)["f1"] + scored(wrong)["f1"]) / 2)


@pytest.mark.parametrize("text", ["ab", "ab cde", "aBbc de fghijk", "ab c d"])
def test_gold_against_itself_is_100_everywhere(text):
    clusters = lettered(text)
    shuffled = [cluster[::-1] for cluster in clusters[::-1]]
    assert set(scored((clusters, shuffled), ([], []), (clusters, clusters)).values()) == {100}


def test_mentions_may_come_as_lists():
    as_lists = [[list(mention) for mention in cluster] for cluster in lettered("ab cd")]
    assert scored((as_lists, lettered("ab cdx"))) == scored((lettered("ab cd"), lettered("ab cdx")))
    assert scored((lettered("ab cd"), as_lists))["f1"] == 100


def test_a_document_counts_once_and_as_it_came_last_whatever_the_order():
    documents = [(lettered("ab cd"), lettered("ab cx")), (lettered("abc"), lettered("ab")), (lettered("ef"), [])]
    metric = CorefF1()
    for number in (2, 0, 1, 0):
        clusters, predicted = documents[number]
        metric.update([lettered("abcdef")], [make_gold(lettered("abc def"), number)])
        metric.update([predicted], [make_gold(clusters, number)])
    assert metric.compute() == pytest.approx(scored(*documents))
    assert metric.compute() == pytest.approx(from_the_definitions(documents))
    together = CorefF1()
    together.update(
        [predicted for _, predicted in documents[::-1]], [make_gold(documents[k][0], number=k) for k in (2, 1, 0)]
    )
    assert together.compute() == pytest.approx(metric.compute())
    assert together.files() == metric.files()


def test_predictions_and_gold_must_have_one_length():
    with pytest.raises(ValueError, match="zip"):
        CorefF1().update([[]], [])


def test_a_reset_forgets_everything():
    metric = CorefF1()
    metric.update([lettered("ab")], [make_gold(lettered("bc"))])
    metric.reset()
    assert set(metric.compute().values()) == {0}
    assert set(metric.files().values()) == {""}
    metric.update([lettered("ab")], [make_gold(lettered("ab"), number=1)])
    assert metric.compute()[metric.name] == 100
    assert metric.higher_is_better


def parsed(text):
    """Name, part, sentence lengths and clusters of each document, in the order in which the scorer meets them."""
    documents = []
    for line in text.split("\n"):
        if begin := re.fullmatch(r"#begin document \((.*)\); part (\d+)", line):
            name, part = begin.groups()
            opened, clusters, lengths, n_tokens = defaultdict(list), defaultdict(set), [0], 0
        elif line == "#end document":
            assert not any(opened.values())
            documents.append((name, part, lengths[:-1], [set(cluster) for cluster in clusters.values()]))
        elif line == "" and n_tokens:
            assert not any(opened.values())
            lengths.append(0)
        elif line:
            *place, cell = line.split("\t")
            assert place == [name, str(int(part)), str(lengths[-1])]
            pieces = [] if cell == "-" else cell.split("|")
            for number in [piece[1:-1] for piece in pieces if re.fullmatch(r"\(\d+\)", piece)]:
                clusters[number].add((n_tokens, n_tokens + 1))
            for number in [piece[1:] for piece in pieces if re.fullmatch(r"\(\d+", piece)]:
                opened[number].append(n_tokens)
                clusters.setdefault(number, set())
            for number in [piece[:-1] for piece in pieces if re.fullmatch(r"\d+\)", piece)]:
                clusters[number].add((opened[number].pop(), n_tokens + 1))
            assert all(re.fullmatch(r"\(\d+\)?|\d+\)", piece) for piece in pieces)
            n_tokens += 1
            lengths[-1] += 1
    return documents


def in_order(clusters):
    return [set(cluster) for cluster in as_read(clusters)]


NESTED = [
    [[(0, 4)], [(1, 3)]],
    [[(0, 4), (5, 6)], [(1, 3), (6, 9)]],
    [[(0, 1), (1, 2), (2, 3), (8, 9)]],
    [[(2, 3)], [(2, 4)], [(2, 5)]],
    [[(2, 5)], [(4, 5)], [(3, 5)]],
    [[(2, 3), (2, 5)], [(4, 5), (0, 5)]],
    [[(0, 5), (1, 4), (2, 3)]],
    [[(0, 5), (0, 3), (0, 1), (4, 5)]],
    [[(0, 5), (2, 5), (4, 5), (0, 1)]],
    [[(0, 3), (3, 5)], [(2, 3), (3, 4)]],
    [[(0, 2), (4, 5)], [(1, 2), (2, 4)], [(2, 5), (1, 5)]],
    [[(0, 3), (6, 7)], [(2, 5), (5, 8)]],
    [[(6, 7)], [(2, 3)], [(1, 2)]],
    [[(3, 5)], [(0, 2), (4, 5)], [(0, 3)], [(0, 1)]],
    [[(6, 7), (0, 2)], [(0, 2)]],
    [[], [(0, 5)]],
    [],
]


@pytest.mark.parametrize("clusters", NESTED)
def test_files_hold_the_clusters_whatever_nests_in_what(clusters):
    metric = CorefF1()
    metric.update([clusters], [make_gold(NESTED[1], sentence_lengths=(5, 4))])
    metric.update([NESTED[1]], [make_gold(clusters, 1, "bc/(x 1)", "012", sentence_lengths=(5, 4))])
    files = metric.files()
    written, known = in_order(clusters), in_order(NESTED[1])
    for name, first, second in (("gold.conll", known, written), ("predicted.conll", written, known)):
        assert parsed(files[name]) == [
            ("nw/wire/1", "000", [5, 4], first),
            ("bc/(x 1)", "012", [5, 4], second),
        ]


def test_brackets_nest_as_the_mentions_do():
    metric = CorefF1()
    gold = [[(0, 4)], [(0, 2), (2, 4)], [(0, 1), (3, 4)]]
    metric.update([[]], [make_gold(gold, sentence_lengths=(4, 1))])
    cells = "(0|(1|(2) 1) (1 (2)|1)|0) -"
    rows = (f"nw/wire/1\t0\t{k}\t{cell}\n" for k, cell in zip([0, 1, 2, 3, 0], cells.split(), strict=True))
    begin, end, *lines = "#begin document (nw/wire/1); part 000\n", "#end document\n", *rows
    assert metric.files()["gold.conll"] == "".join([begin, *lines[:4], "\n", lines[4], "\n", end])


def test_files_have_the_documents_in_order_of_their_numbers():
    metric = CorefF1()
    for number in (10, 2, 9):
        metric.update([lettered("a")], [make_gold([], number, part=f"{number:03}")])
    for text in metric.files().values():
        assert [part for _, part, _, _ in parsed(text)] == ["002", "009", "010"]


def crosses(one, other):
    (start, stop), (later, end) = sorted([one, other])
    return start < later < stop < end


def random_mentions(rng, sentence_lengths):
    """Mentions within sentences that nest or keep apart."""
    mentions, begin = [], 0
    for length in sentence_lengths:
        for _ in range(3 * length):
            start, last = sorted(rng.choices(range(begin, begin + length), k=2))
            if not any(mention == (start, last + 1) or crosses(mention, (start, last + 1)) for mention in mentions):
                mentions.append((start, last + 1))
        begin += length
    return mentions


@pytest.mark.parametrize("seed", range(10))
def test_files_parse_back_to_random_clusters(seed):
    rng, metric = random.Random(seed), CorefF1()
    documents = []
    for number in range(5):
        lengths = rng.choices(range(1, 9), k=rng.randint(1, 4))
        gold, predicted = (random_clusters(rng, random_mentions(rng, lengths)) for _ in range(2))
        documents.append((gold, predicted))
        metric.update([predicted], [make_gold(gold, number, sentence_lengths=lengths)])
    files = metric.files()
    for name, side in (("gold.conll", 0), ("predicted.conll", 1)):
        assert [clusters for *_, clusters in parsed(files[name])] == [in_order(pair[side]) for pair in documents]
