import random
import re
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch
from oracles import numbers

from elmo_tasks.batch import Text
from elmo_tasks.bilm.store import Filled, LayerStore
from elmo_tasks.data.conll2012 import FRAMESET, read_documents
from elmo_tasks.data.module import TaskData
from elmo_tasks.data.srl import SrlBatch, SrlItem, SrlReader
from elmo_tasks.data.words import WordVectors
from elmo_tasks.elmo import Elmo
from elmo_tasks.errors import UserError
from elmo_tasks.metrics.srl_f1 import SrlF1
from elmo_tasks.models.srl_lstm import SrlLstm, SrlOutput
from elmo_tasks.nn.embedding import WordEmbedding

BUNDLED = Path(__file__).parents[2] / "elmo_tasks" / "bundled" / "sample" / "srl"

SAID = """
Ann   -     -  (ARG0*)  *
said  say   01 (V*)     *
she   -     -  (ARG1*   (ARG0*)
left  leave 02 *)       (V*)
-RRB- -     -  *        *
"""
GOOD_NIGHT = """
Good  - -
night - -
"""
RAINED = """
It     -    -  *
rained rain 01 (V*
down   -    -  *)
now    -    -  (ARGM-TMP*)
"""
ITEMS = [
    SrlItem(
        ["Ann", "said", "she", "left", ")"],
        {
            "number": 0,
            "predicates": [1, 3],
            "lemmas": ["say", "leave"],
            "tags": [["B-ARG0", "B-V", "B-ARG1", "I-ARG1", "O"], ["O", "O", "B-ARG0", "B-V", "O"]],
        },
    ),
    SrlItem(
        ["It", "rained", "down", "now"],
        {"number": 2, "predicates": [1], "lemmas": ["rain"], "tags": [["O", "B-V", "I-V", "B-ARGM-TMP"]]},
    ),
]


def conll(*documents):
    """Documents of sentences in the format; a line has word, lemma, frameset and a cell for each predicate."""
    lines = []
    for sentences in documents:
        lines.append("#begin document (d); part 000")
        for sentence in sentences:
            for k, (word, lemma, frameset, *cells) in enumerate(map(str.split, sentence.strip().split("\n"))):
                lines.append("\t".join(["d", "0", str(k), word, "X", "*", lemma, frameset, "-", "-", "*", *cells, "-"]))
            lines.append("")
        lines.append("#end document")
    return "\n".join(lines) + "\n"


@pytest.fixture
def read(tmp_path):
    def read(content, split="train", reader=None, longest=100):
        path = tmp_path / f"{split}.conll"
        path.write_text(content, "utf-8")
        return (reader or SrlReader(max_training_tokens=longest)).read_file(path, split)

    return read


@pytest.mark.parametrize("documents", [[[SAID, GOOD_NIGHT, RAINED]], [[SAID], [GOOD_NIGHT, RAINED]]])
def test_an_item_is_a_sentence_with_all_its_predicates_and_its_place_in_the_file(read, documents):
    reader = SrlReader(max_training_tokens=100)
    assert read(conll(*documents), "train", reader) == ITEMS
    assert reader.left_out == {"sentences without predicates": 1}
    assert [reader.texts(item) for item in ITEMS] == [[item.tokens] for item in ITEMS]


def test_a_folder_is_one_split_and_its_sentences_are_counted_on(tmp_path):
    for name, sentences in (("b/2_gold_conll", [RAINED]), ("a/1_gold_conll", [SAID, GOOD_NIGHT])):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(conll(sentences))
    assert SrlReader(max_training_tokens=100).read_file(tmp_path, "train") == ITEMS


def test_the_model_is_told_the_tags_of_all_training_labels(read):
    reader = SrlReader(max_training_tokens=4)
    items = read(conll([SAID, RAINED]), "train", reader)
    read(conll([SAID.replace("ARG1", "ARG9")]), "dev", reader)
    tags = ["O", "B-ARG0", "I-ARG0", "B-ARG1", "I-ARG1", "B-ARGM-TMP", "I-ARGM-TMP", "B-V", "I-V"]
    assert reader.model_parts(items[:1]) == {"tags": tags}


@pytest.mark.parametrize(
    ("sentence", "line", "said"),
    [
        (SAID.replace("(V*)     *", "*        *"), 9, "no V in column 12, .* the predicate 'said'"),
        (SAID.replace("*)       (V*)", "*)       *"), 11, "no V in column 13, .* the predicate 'left'"),
        (SAID.replace("(V*)     *", "(C-V*)   *"), 9, "no V in column 12, .* 'said'"),
        (RAINED.replace("(V*", "*").replace("*)\nnow", "*\nnow").replace("ARGM-TMP", "V"), 9, "no V .* 'rained'"),
        (SAID.replace("say   01", "say   -"), 8, "1 predicates but 2 columns of arguments"),
        (GOOD_NIGHT.replace("night - -", "night night 01"), 8, "1 predicates but 0 columns of arguments"),
        (SAID.replace("ARG1", "Arg1"), 10, "unknown label 'Arg1'; expected such as ARG0 or ARGM-TMP"),
        (SAID.replace("ARG1", "ARG1-"), 10, "unknown label 'ARG1-'"),
        (SAID.replace("ARG1", "ARG1_X"), 10, "unknown label 'ARG1_X'"),
        (SAID.replace("*)       (V*)", "*        (V*)"), 10, "the span ARG1 is not closed"),
    ],
)
@pytest.mark.parametrize("split", ["train", "dev"])
def test_bad_annotation_is_refused_with_file_and_line(read, split, sentence, line, said):
    with pytest.raises(UserError, match=rf"{split}\.conll:{line}: {said}"):
        read(conll([RAINED.replace("ARGM-TMP", "ARG1"), sentence]).replace("\n\n", "\n\n\n", 1), split)


def test_labels_that_training_lacks_are_counted_and_stay_in_the_gold(read):
    reader = SrlReader(max_training_tokens=100)
    read(conll([SAID]), "train", reader)
    assert read(conll([RAINED, RAINED.replace("ARGM", "C-ARGM"), SAID]), "dev", reader)[0].gold["tags"] == [
        ["O", "B-V", "I-V", "B-ARGM-TMP"]
    ]
    assert reader.left_out == {"arguments with a label that training lacks": 2}


@pytest.mark.parametrize(("longest", "n_items"), [(3, 0), (4, 1), (5, 3)])
def test_long_training_sentences_are_left_out_and_counted_but_never_those_of_dev_and_test(read, longest, n_items):
    reader = SrlReader(max_training_tokens=longest)
    content = conll([SAID, RAINED, GOOD_NIGHT, SAID])
    assert len(read(content, "train", reader)) == n_items
    assert reader.left_out == {
        "sentences without predicates": 1,
        **({"long training sentences": 3 - n_items} if n_items < 3 else {}),
    }
    for split in ("dev", "test"):
        assert len(read(content, split, reader)) == 3
    assert reader.left_out["sentences without predicates"] == 3


def text_of(items, n_words=9, layers=None):
    lengths = torch.tensor([len(item.tokens) for item in items])
    mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
    layers = None if layers is None else torch.randn(len(items), layers[0], mask.shape[1], layers[1])
    return Text([item.tokens for item in items], torch.randint(n_words, mask.shape), None, mask, layers)


def test_a_batch_has_the_predicates_of_its_sentences_one_after_the_other(read):
    reader = SrlReader(max_training_tokens=100)
    read(conll([SAID, RAINED]), "train", reader)
    reader.model_parts(ITEMS)
    batch = reader.collate(ITEMS[::-1], [text_of(ITEMS[::-1])])
    assert batch.real.tolist() == [[True, False], [True, True]]
    assert batch.predicates.tolist() == [1, 1, 3]
    assert [[reader.tags[k] for k in row] for row in batch.tags.tolist()] == [
        ["O", "B-V", "I-V", "B-ARGM-TMP", "O"],
        ["B-ARG0", "B-V", "B-ARG1", "I-ARG1", "O"],
        ["O", "O", "B-ARG0", "B-V", "O"],
    ]
    assert (batch.tags.dtype, batch.predicates.dtype, batch.real.dtype) == (torch.long, torch.long, torch.bool)
    assert batch.gold == [item.gold for item in ITEMS[::-1]]
    assert batch.text.tokens == [item.tokens for item in ITEMS[::-1]]


def test_tags_that_training_lacks_are_o_in_a_batch(read):
    reader = SrlReader(max_training_tokens=100)
    reader.model_parts(read(conll([SAID]), "train", reader))
    (item,) = read(conll([RAINED]), "dev", reader)
    batch = reader.collate([item], [text_of([item])])
    assert [reader.tags[k] for k in batch.tags[0]] == ["O", "B-V", "I-V", "O"]
    assert batch.gold[0]["tags"] == [["O", "B-V", "I-V", "B-ARGM-TMP"]]


def test_a_sentences_layers_are_computed_and_stored_once_for_all_its_predicates(tmp_path, tiny_bilm, monkeypatch):
    calls, layers = [], tiny_bilm.layers
    monkeypatch.setattr(tiny_bilm, "layers", lambda s, **kwargs: calls.extend(s) or layers(s, **kwargs))
    for split in ("train", "dev"):
        (tmp_path / f"{split}.conll").write_text(conll([SAID, GOOD_NIGHT, RAINED, SAID]))
    data = TaskData(
        reader=SrlReader(max_training_tokens=100),
        sources={"train": "train.conll", "dev": "dev.conll", "test": None},
        hub=False,
        root=str(tmp_path),
        fraction=1.0,
        words=WordVectors(name="random", path=None, dim=3, lowercase=True),
        update_words=False,
        batch_size=8,
        batch_tokens=100,
        seed=1,
    )
    data.read()
    data.model_parts()
    assert data.use_layers(LayerStore(tmp_path / "store", tiny_bilm), ["train", "dev"]) == Filled(5 + 4, 0)
    assert sorted(calls) == [item.tokens for item in ITEMS]
    stored = sum(path.stat().st_size for path in (tmp_path / "store").rglob("*.bin"))
    assert stored == (5 + 4) * tiny_bilm.n_layers * tiny_bilm.dim * 2
    (batch,) = data.batches("dev")
    assert tuple(batch.text.layers.shape) == (3, tiny_bilm.n_layers, 5, tiny_bilm.dim)
    assert int(batch.real.sum()) == len(batch.predicates) == len(batch.tags) == 5
    assert len(calls) == 2


def labels_of(items):
    return {tag[2:] for item in items for tags in item.gold["tags"] for tag in tags if tag != "O"}


def test_the_bundled_sample_has_its_sizes_and_every_label_in_training():
    reader, items = SrlReader(max_training_tokens=100), {}
    sizes = {"train": (150, 146, 286), "dev": (40, 39, 77), "test": (40, 39, 87)}
    for split, (n_sentences, n_items, n_predicates) in sizes.items():
        path = BUNDLED / f"{split}.conll"
        sentences = [sentence for document in read_documents(path) for sentence in document.sentences]
        assert len(sentences) == n_sentences
        items[split] = reader.read_file(path, split)
        assert len(items[split]) == n_items
        assert sum(len(item.gold["predicates"]) for item in items[split]) == n_predicates
        numbers = [k for k, sentence in enumerate(sentences) if set(sentence.column(FRAMESET)) != {"-"}]
        assert [item.gold["number"] for item in items[split]] == numbers
    assert reader.left_out == {"sentences without predicates": 6}
    assert labels_of(items["dev"]) | labels_of(items["test"]) <= labels_of(items["train"]) == reader.labels
    tokens = [tuple(item.tokens) for part in items.values() for item in part]
    assert len(tokens) == len(set(tokens))


@pytest.mark.parametrize(
    ("split", "n_items", "n_predicates", "left_out"),
    [
        pytest.param(
            *("train", 10_549, 40_346, {"sentences without predicates": 1_988, "long training sentences": 5}),
            marks=pytest.mark.slow,
        ),
        ("dev", 1_536, 4_977, {"sentences without predicates": 438}),
        ("test", 1_538, 4_799, {"sentences without predicates": 524}),
    ],
)
def test_the_real_set_has_its_sizes_and_gold_against_itself_scores_100(shared, split, n_items, n_predicates, left_out):
    reader, metric = SrlReader(max_training_tokens=100), SrlF1()
    items = reader.read_file(shared / "data" / "srl_ewt" / f"{split}.conll", split)
    assert len(items) == n_items
    assert sum(len(item.gold["predicates"]) for item in items) == n_predicates
    reader.left_out.pop("arguments with a label that training lacks", None)
    assert reader.left_out == left_out
    metric.update([item.gold["tags"] for item in items], [item.gold for item in items])
    assert metric.compute() == {"f1": 100, "precision": 100, "recall": 100}


def gold_of(*tags, number=0):
    """Gold of a sentence whose predicates stand at their first V, or at the first token."""
    at = [row.index("B-V") if "B-V" in row else 0 for row in tags]
    return {"number": number, "predicates": at, "lemmas": [f"verb{k}" for k in at], "tags": [list(row) for row in tags]}


def scored(*pairs):
    """Predicted and gold tags of one predicate a sentence."""
    metric = SrlF1()
    for number, (predicted, gold) in enumerate(pairs):
        metric.update([[predicted.split()]], [gold_of(gold.split(), number=number)])
    return metric


def sentences_of(text):
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
    """Type and pieces of each argument: C-X goes on with the latest X, and is an X where there is none."""
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
    for gold_columns, columns in zip(sentences_of(gold), sentences_of(predicted), strict=True):
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


def random_tags(chance, n_tokens, like=None):
    """Spans of one to three tokens with gaps between some; with ``like``, most of another sequence's spans."""
    tags = []
    while len(tags) < n_tokens:
        if like is not None and not like[len(tags)].startswith("I") and chance.random() < 0.8:
            stop = next((k for k in range(len(tags) + 1, n_tokens) if not like[k].startswith("I")), n_tokens)
            tags += like[len(tags) : stop]
        elif chance.random() < 0.4:
            tags.append("O")
        else:
            label = chance.choice(LABELS)
            tags += [f"B-{label}", *[f"I-{label}"] * chance.randint(0, 2)]
    return tags[:n_tokens]


@pytest.mark.parametrize("seed", range(8))
def test_scores_are_those_of_the_conll_2005_scorer_on_the_files(seed):
    chance, metric = random.Random(seed), SrlF1()
    every_tag = ["O", *(f"{prefix}-{label}" for label in LABELS for prefix in "BI")]
    for number in range(60):
        n_tokens = chance.randint(1, 15)
        gold = [random_tags(chance, n_tokens) for _ in range(chance.randint(1, 4))]
        if seed % 4 == 3:  # whatever the tags
            predicted = [chance.choices(every_tag, k=n_tokens) for _ in gold]
        else:
            predicted = [random_tags(chance, n_tokens, like=row) for row in gold]
        metric.update([predicted], [gold_of(*gold, number=number)])
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
    first = gold_of(["B-ARG0", "B-V", "O"], ["O", "B-ARG1", "B-V"])
    metric.update([[["B-ARG0", "B-V", "B-ARG1"], ["O", "B-ARG1", "B-V"]]], [first])
    metric.update([[["B-V", "O", "B-ARG0"]]], [gold_of(["B-V", "B-ARG0", "B-ARG1"], number=1)])
    assert metric.compute() == {"f1": 50, "precision": 50, "recall": 50}
    metric.reset()
    assert metric.compute() == {"f1": 0, "precision": 0, "recall": 0}
    metric.update([first["tags"]], [first])
    assert metric.compute()[metric.name] == 100


def test_predictions_that_do_not_pair_with_gold_are_refused():
    metric = SrlF1()
    with pytest.raises(ValueError, match="zip"):
        metric.update([], [gold_of(["B-V"])])
    metric.update([[]], [gold_of(["B-V"])])
    with pytest.raises(ValueError, match="zip"):
        metric.compute()


def test_gold_against_itself_scores_100():
    chance, metric = random.Random(5), SrlF1()
    gold = [gold_of(*(random_tags(chance, 12) for _ in range(3)), number=k) for k in range(20)]
    metric.update([of_sentence["tags"] for of_sentence in gold], gold)
    assert metric.compute() == {"f1": 100, "precision": 100, "recall": 100}
    files = metric.files()
    assert files["gold.props"] == files["predicted.props"]


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
        metric.update([PREDICTED[k] for k in batch], [ITEMS[k].gold for k in batch])
    assert metric.files() == {"gold.props": GOLD_PROPS, "predicted.props": PREDICTED_PROPS}


ELMO_DIM, N_LAYERS, N_WORDS = 4, 3, 9
TAGS = ["O", *(f"{prefix}-{label}" for label in ["ARG0", "ARG1", "C-ARG1", "V"] for prefix in "BI")]
PREDICATES = [[1, 4], [0], [3, 0, 2], [0]]
LENGTHS = [5, 2, 4, 1]


def batch_of(predicates=PREDICATES, lengths=LENGTHS):
    """Random words, layers and tags; garbage stands in the padding."""
    items = [SrlItem(["w"] * n, {}) for n in lengths]
    counts = torch.tensor([len(row) for row in predicates])
    return SrlBatch(
        text=text_of(items, N_WORDS, (N_LAYERS, ELMO_DIM)),
        real=torch.arange(int(counts.max())) < counts.unsqueeze(1),
        predicates=torch.tensor([k for row in predicates for k in row]),
        tags=torch.randint(len(TAGS), (int(counts.sum()), max(lengths))),
        gold=[],
    )


def labeller(placement="both", n_layers=3):
    return SrlLstm(
        words=WordEmbedding(torch.randn(N_WORDS, 6), trainable=True),
        elmo=Elmo(placement=placement, n_layers=N_LAYERS, dim=ELMO_DIM, dropout=0.5),
        tags=TAGS,
        indicator_dim=2,
        hidden=5,
        n_layers=n_layers,
        dropout=0.5,
    )


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def highway_lstm(layer, x):
    h = c = np.zeros(len(layer.highway))
    out = []
    for word in x:
        of_gates, highway = np.split(numbers(layer.of_input) @ word, 5), numbers(layer.highway) @ word
        of_state = np.split(numbers(layer.of_hidden) @ h + numbers(layer.bias), 5)
        i, f, o, r, g = (a + b for a, b in zip(of_gates, of_state, strict=True))
        c = sigmoid(i) * np.tanh(g) + sigmoid(f) * c
        h = sigmoid(r) * sigmoid(o) * np.tanh(c) + (1 - sigmoid(r)) * highway
        out.append(h)
    return np.array(out)


def mixed(model, place, layers):
    if place not in model.elmo.mixes:
        return np.zeros((layers.shape[1], 0))
    mix = model.elmo.mixes[place]
    weights = np.exp(numbers(mix.w)) / np.exp(numbers(mix.w)).sum()
    return float(mix.gamma) * np.einsum("l,ltd->td", weights, numbers(layers))


def scores_of(model, text, row, predicate):
    """Of the tags of one predicate of one sentence, without padding."""
    n = int(text.mask[row].sum())
    layers = text.layers[row, :, :n]
    words = numbers(model.words.weight)[text.word_ids[row, :n].numpy()]
    marks = numbers(model.indicator.weight)[[int(k == predicate) for k in range(n)]]
    x = np.concatenate([words, mixed(model, "input", layers), marks], axis=1)
    for k, layer in enumerate(model.lstm.layers):
        x = highway_lstm(layer, x[::-1])[::-1] if k % 2 else highway_lstm(layer, x)
    h = np.concatenate([x, mixed(model, "output", layers)], axis=1)
    return h @ numbers(model.to_tags.weight).T + numbers(model.to_tags.bias)


def expected_scores(model, batch):
    """By sentence and place among its predicates."""
    return {
        (row, place): scores_of(model, batch.text, row, predicate)
        for row, of_sentence in enumerate(PREDICATES)
        for place, predicate in enumerate(of_sentence)
    }


@pytest.mark.parametrize("n_layers", [1, 4])
@pytest.mark.parametrize("placement", ["none", "input", "output", "both"])
def test_network_reads_each_sentence_alone_for_each_of_its_predicates(shake, placement, n_layers):
    model, batch = shake(labeller(placement, n_layers), std=0.4).eval(), batch_of()
    with torch.no_grad():
        out = model(batch)
    assert tuple(out.scores.shape) == (4, 3, 5, len(TAGS))
    assert not out.scores[~batch.real].any()
    for (row, place), scores in expected_scores(model, batch).items():
        np.testing.assert_allclose(out.scores[row, place, : LENGTHS[row]], scores, atol=1e-5, rtol=1e-5)


def test_loss_is_a_mean_over_each_sentences_tokens_and_then_over_predicates(shake):
    model, batch = shake(labeller(), std=0.4).eval(), batch_of()
    losses = []
    for tags, scores in zip(batch.tags.numpy(), expected_scores(model, batch).values(), strict=True):
        log_normaliser = np.log(np.exp(scores).sum(axis=1))
        losses.append(np.mean([z - row[tag] for z, row, tag in zip(log_normaliser, scores, tags, strict=False)]))
    assert len(losses) == 7
    assert float(model.loss(model(batch), batch).detach()) == pytest.approx(np.mean(losses), rel=1e-5)


def test_padding_and_places_without_a_predicate_change_neither_scores_nor_loss(shake):
    model, batch, alone = shake(labeller(), std=0.4).eval(), batch_of(), []
    with torch.no_grad():
        out = model(batch)
        which = count()
        for row, (predicates, n) in enumerate(zip(PREDICATES, LENGTHS, strict=True)):
            text = batch.text
            part = Text([], text.word_ids[row : row + 1, :n], None, text.mask[row : row + 1, :n], None)
            part.layers = text.layers[row : row + 1, :, :n]
            for place, predicate in enumerate(predicates):
                tags = batch.tags[next(which)][None, :n]
                one = SrlBatch(part, torch.ones(1, 1, dtype=torch.bool), torch.tensor([predicate]), tags, [])
                found = model(one)
                torch.testing.assert_close(found.scores[0, 0], out.scores[row, place, :n], atol=1e-5, rtol=1e-5)
                alone.append(model.loss(found, one))
        torch.testing.assert_close(model.loss(out, batch), sum(alone) / len(alone))


def test_every_parameter_is_trained_also_by_sentences_of_one_word(shake):
    model, batch = shake(labeller(), std=0.4).eval(), batch_of(5 * PREDICATES, 5 * LENGTHS)
    model.loss(model(batch), batch).backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


def is_iob2(tags):
    return re.fullmatch(r"(?:O |B-(\S+) (?:I-\1 )*)*", " ".join(tags) + " ") is not None


def test_decoding_gives_valid_tags_for_each_token_of_each_predicate(shake):
    model, overruled = shake(labeller(), std=1.0).eval(), 0
    for _ in range(10):
        batch = batch_of()
        with torch.no_grad():
            out = model(batch)
        decoded = model.decode(out, batch)
        assert [[len(tags) for tags in row] for row in decoded] == [[5, 5], [2], [4, 4, 4], [1]]
        assert all(is_iob2(tags) for row in decoded for tags in row)
        for row, of_sentence in enumerate(decoded):
            for place, tags in enumerate(of_sentence):
                freely = [TAGS[k] for k in out.scores[row, place, : LENGTHS[row]].argmax(dim=1).tolist()]
                assert tags == freely or not is_iob2(freely)
                overruled += tags != freely
    assert overruled > 5, "the rule was never needed"


def test_certain_scores_decode_to_gold_and_score_100(read):
    reader, metric = SrlReader(max_training_tokens=100), SrlF1()
    model = labeller()
    model.tags = reader.model_parts(read(conll([SAID, RAINED]), "train", reader))["tags"]
    batch = reader.collate(ITEMS, [text_of(ITEMS)])
    scores = torch.zeros(*batch.real.shape, batch.tags.shape[1], len(reader.tags))
    scores[batch.real] = 50 * torch.nn.functional.one_hot(batch.tags, len(reader.tags)).float()
    decoded = model.decode(SrlOutput(scores), batch)
    assert decoded == [item.gold["tags"] for item in ITEMS]
    assert model.loss(SrlOutput(scores), batch) < 1e-6
    metric.update(decoded, batch.gold)
    assert metric.compute()["f1"] == 100
