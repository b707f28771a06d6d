import random

import pytest

from elmo_tasks.metrics.srl_f1 import SrlF1


def make_gold(*tags, number=0):
    """Gold of a sentence whose predicates stand at their first V, or at the first token."""
    at = [row.index("B-V") if "B-V" in row else 0 for row in tags]
    return {"number": number, "predicates": at, "lemmas": [f"verb{k}" for k in at], "tags": [list(row) for row in tags]}


def scored(*pairs):
    """Predicted and gold tags of one predicate a sentence."""
    metric = SrlF1()
    for number, (predicted, gold) in enumerate(pairs):
        metric.update([[predicted.split()]], [make_gold(gold.split(), number=number)])
    return metric


def read_sentences(text):
    """A props file's sentences, each a list of columns."""
    assert text.endswith("\n\n")
    return [list(zip(*map(str.split, block.split("\n")), strict=True)) for block in text[:-2].split("\n\n")]


def phrases(column):
    """Type, first and last token of each phrase, in order."""
    found, opened = [], None
    for k, cell in enumerate(column):
        before, after = cell.split("*")
        if before:
            assert (opened, before[0]) == (None, "(")
            opened = before[1:], k
        if after:
            assert after == ")"
            found.append((*opened, k))
            opened = None
    assert opened is None
    return found


def pieced(column):
    """Type and pieces of each argument: C-X continues the latest X, and is an X where there is none."""
    found = []
    for kind, first, last in phrases(column):
        heads = [pieces for head, pieces in found if kind == f"C-{head}"]
        if heads:
            heads[-1].append((first, last))
        else:
            found.append((kind[2:] if kind.startswith("C-") else kind, [(first, last)]))
    return found


def srl_eval(gold, predicted):
    """What the scorer of CoNLL-2005 finds in two props files."""
    ok = excess = missed = 0
    for gold_columns, columns in zip(read_sentences(gold), read_sentences(predicted), strict=True):
        assert gold_columns[0] == columns[0]
        for gold_column, column in zip(gold_columns[1:], columns[1:], strict=True):
            left = {(pieces[0][0], pieces[-1][1]): (kind, pieces) for kind, pieces in pieced(gold_column)}
            for kind, pieces in pieced(column):
                extent = pieces[0][0], pieces[-1][1]
                wanted_kind, wanted = left.get(extent, (None, []))
                right = kind == wanted_kind and (len(pieces) == len(wanted) == 1 or set(pieces) == set(wanted))
                if right:
                    del left[extent]
                ok += right and kind != "V"
                excess += not right and kind != "V"
            missed += sum(kind != "V" for kind, _ in left.values())
    p = 100 * ok / (ok + excess) if ok + excess else 0
    r = 100 * ok / (ok + missed) if ok + missed else 0
    return {"precision": p, "recall": r, "f1": 2 * p * r / (p + r) if p + r else 0}


LABELS = ["ARG0", "ARG1", "C-ARG1", "R-ARG0", "V", "C-V", "ARGM-TMP"]


def random_tags(rng, n_tokens, like=None):
    """Spans of one to three tokens with gaps between some; with ``like``, most of another sequence's spans."""
    tags = []
    while len(tags) < n_tokens:
        if like is not None and not like[len(tags)].startswith("I") and rng.random() < 0.8:
            stop = next((k for k in range(len(tags) + 1, n_tokens) if not like[k].startswith("I")), n_tokens)
            tags += like[len(tags) : stop]
        elif rng.random() < 0.4:
            tags.append("O")
        else:
            label = rng.choice(LABELS)
            tags += [f"B-{label}", *[f"I-{label}"] * rng.randint(0, 2)]
    return tags[:n_tokens]


@pytest.mark.parametrize("seed", range(8))
def test_scores_are_those_of_the_conll_2005_scorer_on_the_files(seed):
    rng, metric = random.Random(seed), SrlF1()
    every_tag = ["O", *(f"{prefix}-{label}" for label in LABELS for prefix in "BI")]
    for number in range(60):
        n_tokens = rng.randint(1, 15)
        gold = [random_tags(rng, n_tokens) for _ in range(rng.randint(1, 4))]
        if seed % 4 == 3:  # whatever the tags
            predicted = [rng.choices(every_tag, k=n_tokens) for _ in gold]
        else:
            predicted = [random_tags(rng, n_tokens, like=row) for row in gold]
        metric.update([predicted], [make_gold(*gold, number=number)])
    files = metric.files()
    scores = metric.compute()
    assert scores == srl_eval(files["gold.props"], files["predicted.props"])
    assert 0 < scores["f1"] < 90


@pytest.mark.parametrize(
    ("predicted", "gold", "scores"),
    [
        ("B-ARG0 B-V B-ARG1 I-ARG1", "B-ARG0 B-V B-ARG1 I-ARG1", (100, 100, 100)),
        ("B-ARG0 B-V B-ARG1 O", "B-ARG0 B-V B-ARG1 I-ARG1", (50, 50, 50)),
        ("B-ARG1 B-V B-ARG1 I-ARG1", "B-ARG0 B-V B-ARG1 I-ARG1", (50, 50, 50)),
        ("B-ARG0 B-V O O", "B-ARG0 B-V B-ARG1 B-ARG2", (100, 100 / 3, 50)),
        ("B-ARG0 B-V B-ARG1 B-ARG2", "B-ARG0 B-V O O", (100 / 3, 100, 50)),
        ("B-ARG0 B-ARG0", "B-ARG0 I-ARG0", (0, 0, 0)),
        # an argument in pieces is one, and right only if all of them are
        ("B-ARG1 B-V B-C-ARG1 I-C-ARG1", "B-ARG1 B-V B-C-ARG1 I-C-ARG1", (100, 100, 100)),
        ("B-ARG1 B-V B-C-ARG1 O", "B-ARG1 B-V B-C-ARG1 I-C-ARG1", (0, 0, 0)),
        ("B-ARG1 B-V O O", "B-ARG1 B-V B-C-ARG1 I-C-ARG1", (0, 0, 0)),
        ("B-ARG1 B-V B-ARG1 I-ARG1", "B-ARG1 B-V B-C-ARG1 I-C-ARG1", (0, 0, 0)),
        ("B-ARG1 O O B-C-ARG1", "B-ARG1 O B-C-ARG1 B-C-ARG1", (0, 0, 0)),
        ("B-ARG1 O B-C-ARG1 B-C-ARG1", "B-ARG1 O B-C-ARG1 I-C-ARG1", (0, 0, 0)),
        ("B-ARG1 I-ARG1 I-ARG1 I-ARG1", "B-ARG1 O B-V B-C-ARG1", (0, 0, 0)),
        ("B-ARG1 B-ARG0 B-C-ARG1 B-C-ARG0", "B-ARG1 B-ARG0 B-C-ARG1 B-C-ARG0", (100, 100, 100)),
        ("B-ARG1 B-ARG0 B-C-ARG1 O", "B-ARG1 B-ARG0 B-C-ARG1 B-C-ARG0", (50, 50, 50)),
        ("B-ARG1 B-ARG1 B-C-ARG1 O", "B-ARG1 B-ARG1 B-C-ARG1 B-V", (100, 100, 100)),  # goes on with the second
        ("B-ARG1 B-ARG1 O B-V", "B-ARG1 B-ARG1 B-C-ARG1 B-V", (50, 50, 50)),
        # what continues nothing is an argument of its own
        ("B-C-ARG1 B-V O O", "B-ARG1 B-V O O", (100, 100, 100)),
        ("B-C-ARG1 B-V B-ARG1 O", "B-ARG1 B-V B-ARG1 O", (100, 100, 100)),
        ("B-C-ARG1 B-V B-C-ARG1 O", "B-ARG1 B-V B-C-ARG1 O", (100, 100, 100)),
        ("B-C-ARG1 B-ARG0 O O", "B-ARG0 B-ARG0 O O", (50, 50, 50)),
        # nor V nor its pieces count, right or wrong
        ("B-ARG0 O B-V O", "B-ARG0 B-V O O", (100, 100, 100)),
        ("B-ARG0 B-V B-V B-C-V", "B-ARG0 B-V O O", (100, 100, 100)),
        ("B-ARG0 O O O", "B-ARG0 B-V O B-C-V", (100, 100, 100)),
        ("B-ARG0 O O B-C-V", "B-ARG0 B-V O O", (100, 100, 100)),
        ("B-V O O O", "O B-ARG0 O O", (0, 0, 0)),
        ("O B-V O O", "O B-V O O", (0, 0, 0)),
        ("B-V O O O", "B-ARG0 B-V O O", (0, 0, 0)),
        ("B-ARG0 O O O", "B-V O O O", (0, 0, 0)),
        # R-X is a label like any
        ("B-R-ARG0 B-V O O", "B-R-ARG0 B-V O O", (100, 100, 100)),
        ("B-ARG0 B-V O O", "B-R-ARG0 B-V O O", (0, 0, 0)),
        ("B-ARG0 B-R-ARG0 B-V O", "B-ARG0 B-V B-R-ARG0 O", (50, 50, 50)),
        ("B-R-ARG0 B-C-ARG0 B-V O", "B-R-ARG0 B-ARG0 B-V O", (100, 100, 100)),
    ],
)
def test_arguments_counted_by_hand(predicted, gold, scores):
    metric = scored((predicted, gold))
    found = metric.compute()
    assert (found["precision"], found["recall"], found["f1"]) == pytest.approx(scores)
    assert srl_eval(*metric.files().values()) == found


def test_counts_add_up_over_predicates_and_sentences_and_a_reset_forgets_them():
    # 2 of 3 predicted and 2 of 2 gold; then 0 of 1 and 0 of 2: in all 2 of 4 and 2 of 4
    metric = SrlF1()
    first = make_gold(["B-ARG0", "B-V", "O"], ["O", "B-ARG1", "B-V"])
    metric.update([[["B-ARG0", "B-V", "B-ARG1"], ["O", "B-ARG1", "B-V"]]], [first])
    metric.update([[["B-V", "O", "B-ARG0"]]], [make_gold(["B-V", "B-ARG0", "B-ARG1"], number=1)])
    assert metric.compute() == {"f1": 50, "precision": 50, "recall": 50}
    metric.reset()
    assert metric.compute() == {"f1": 0, "precision": 0, "recall": 0}
    metric.update([first["tags"]], [first])
    assert metric.compute()[metric.name] == 100


def test_predictions_and_gold_of_two_lengths_are_refused():
    metric = SrlF1()
    with pytest.raises(ValueError, match="zip"):
        metric.update([], [make_gold(["B-V"])])
    metric.update([[]], [make_gold(["B-V"])])
    with pytest.raises(ValueError, match="zip"):
        metric.compute()


def test_gold_against_itself_scores_100():
    rng, metric = random.Random(5), SrlF1()
    gold = [make_gold(*(random_tags(rng, 12) for _ in range(3)), number=k) for k in range(20)]
    metric.update([sentence["tags"] for sentence in gold], gold)
    assert metric.compute() == {"f1": 100, "precision": 100, "recall": 100}
    files = metric.files()
    assert files["gold.props"] == files["predicted.props"]


GOLD = [
    {
        "number": 0,
        "predicates": [1, 3],
        "lemmas": ["say", "leave"],
        "tags": [["B-ARG0", "B-V", "B-ARG1", "I-ARG1", "O"], ["O", "O", "B-ARG0", "B-V", "O"]],
    },
    {"number": 2, "predicates": [1], "lemmas": ["rain"], "tags": [["O", "B-V", "I-V", "B-ARGM-TMP"]]},
]
GOLD_PROPS = """\
- (ARG0*) *
say (V*) *
- (ARG1* (ARG0*)
leave *) (V*)
- * *

- *
rain (V*
- *)
- (ARGM-TMP*)

"""
PREDICTED_PROPS = """\
- (ARG0*) *
say (V*) *
- (ARG1*) (ARG0*
leave * *)
- * *

- (ARG1*)
rain (V*)
- (C-ARG1*)
- (C-ARG1*)

"""
PREDICTED = [
    [["B-ARG0", "B-V", "B-ARG1", "O", "O"], ["O", "O", "B-ARG0", "I-ARG0", "O"]],
    [["B-ARG1", "B-V", "B-C-ARG1", "B-C-ARG1"]],
]


@pytest.mark.parametrize("batches", [[[0, 1]], [[1, 0]], [[0], [1]], [[1], [0]]], ids=str)
def test_files_have_the_sentences_in_order_however_they_were_batched(batches):
    metric = SrlF1()
    for batch in batches:
        metric.update([PREDICTED[k] for k in batch], [GOLD[k] for k in batch])
    assert metric.files() == {"gold.props": GOLD_PROPS, "predicted.props": PREDICTED_PROPS}
