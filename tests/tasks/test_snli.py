import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest

from elmo_tasks.data.module import TaskData
from elmo_tasks.data.snli import SnliItem, SnliReader
from elmo_tasks.data.source import Files
from elmo_tasks.errors import UserError
from elmo_tasks.nn.words import WordVectors
from elmo_tasks.store.layers import LayerStore
from elmo_tasks.store.store import Filled

BUNDLED = Path(__file__).parents[2] / "elmo_tasks" / "bundled" / "sample" / "snli"
GOOD = {"gold_label": "neutral", "sentence1": "A dog runs.", "sentence2": "It isn't well-fed."}
PREMISE, HYPOTHESIS = ["A", "dog", "runs", "."], ["It", "is", "n't", "well-fed", "."]


@pytest.fixture
def write_file(tmp_path):
    """A file of some lines: bytes and texts as they stand, the rest as JSON."""

    def write_file(*lines, name="pairs.jsonl"):
        texts = (line if isinstance(line, str | bytes) else json.dumps(line) for line in lines)
        path = tmp_path / name
        path.write_bytes(b"".join((text.encode() if isinstance(text, str) else text) + b"\n" for text in texts))
        return path

    return write_file


def without(pair, key):
    return {name: value for name, value in pair.items() if name != key}


@pytest.mark.parametrize(("label", "number"), [("entailment", 0), ("neutral", 1), ("contradiction", 2)])
def test_a_pair_of_the_official_files_becomes_tokens_and_the_number_of_its_label(write_file, label, number):
    official = {
        "annotator_labels": [label, "neutral", label, label, "-"],
        "captionID": "3416050480.jpg#4",
        "gold_label": label,
        "pairID": "3416050480.jpg#4r1n",
        "sentence1": " A dog runs. ",
        "sentence1_binary_parse": "( ( A dog ) ( runs . ) )",
        "sentence1_parse": "(ROOT (S (NP (DT A) (NN cat)) (VP (VBZ sits)) (. .)))",
        "sentence2": "It isn't well-fed.",
        "sentence2_binary_parse": "",
        "sentence2_parse": None,
    }
    reader = SnliReader()
    assert reader.read_file(write_file(official), "train") == [SnliItem(PREMISE, HYPOTHESIS, number)]
    assert reader.texts(SnliItem(PREMISE, HYPOTHESIS, number)) == [PREMISE, HYPOTHESIS]
    assert reader.left_out == {}
    assert reader.model_parts() == {"n_labels": 3}


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_pairs_without_a_majority_are_left_out_and_counted_over_all_files(write_file, split):
    reader = SnliReader()
    open_pair = GOOD | {"gold_label": "-"}
    for n in (2, 4):
        items = reader.read_file(write_file(open_pair, GOOD, "", " \t", GOOD, open_pair), split)
        assert items == [SnliItem(PREMISE, HYPOTHESIS, 1)] * 2
        assert reader.left_out == {"no majority": n}


def test_a_byte_order_mark_crlf_ends_and_odd_line_separators_do_not_matter(write_file):
    odd = json.dumps(GOOD | {"sentence1": "A\u2028dog\x85runs."}, ensure_ascii=False)
    path = write_file("\ufeff" + json.dumps(GOOD) + "\r", odd + "\r", json.dumps(GOOD) + "\r")
    assert SnliReader().read_file(path, "dev") == [SnliItem(PREMISE, HYPOTHESIS, 1)] * 3


BAD_LINES = {
    "not JSON": ("gold_label: neutral", "not JSON .*expected one object a line"),
    "half an object": (json.dumps(GOOD)[:-9], "not JSON"),
    "two objects": (json.dumps(GOOD) * 2, "not JSON"),
    "brackets without end": ("[" * 100_000, "not JSON"),
    "a list": ([GOOD], "expected an object with gold_label, sentence1, sentence2, found list"),
    "a text": ('"neutral"', "expected an object .* found str"),
    "null": (None, "expected an object .* found NoneType"),
    "no label": (without(GOOD, "gold_label"), "expected an object .* found sentence1, sentence2$"),
    "no premise": (without(GOOD, "sentence1"), "expected an object .* found gold_label, sentence2$"),
    "no hypothesis": (without(GOOD, "sentence2"), "expected an object .* found gold_label, sentence1$"),
    "the hub's names": ({"premise": "A", "hypothesis": "B", "label": 1}, "found hypothesis, label, premise$"),
    "a label in capitals": (GOOD | {"gold_label": "Neutral"}, "unknown gold_label 'Neutral'; expected entailment, "),
    "an empty label": (GOOD | {"gold_label": ""}, "unknown gold_label ''"),
    "a label's number": (GOOD | {"gold_label": 1}, "unknown gold_label 1"),
    "a list as label": (GOOD | {"gold_label": ["neutral"]}, r"unknown gold_label \['neutral'\]"),
    "an empty premise": (GOOD | {"sentence1": ""}, r"\(premise\): an empty sentence"),
    "a blank premise": (GOOD | {"sentence1": " \t\u00a0"}, r"\(premise\): an empty sentence"),
    "an empty hypothesis": (GOOD | {"sentence2": ""}, r"\(hypothesis\): an empty sentence"),
    "a blank hypothesis": (GOOD | {"sentence2": "\n"}, r"\(hypothesis\): an empty sentence"),
    "a number as premise": (GOOD | {"sentence1": 3}, "the premise must be a text, found 3"),
    "null as hypothesis": (GOOD | {"sentence2": None}, "the hypothesis must be a text, found None"),
    "a list as hypothesis": (GOOD | {"sentence2": ["It"]}, r"the hypothesis must be a text, found \['It'\]"),
    "no sentence but a blob": (GOOD | {"sentence1": "x" * 1001}, r"\(premise\): a token of 1001 characters"),
    "Latin 1": (json.dumps(GOOD).replace("dog", "caf\u00e9").encode("latin-1"), "not UTF-8"),
}


@pytest.mark.parametrize(("line", "message"), BAD_LINES.values(), ids=BAD_LINES)
def test_bad_input_gives_a_one_sentence_error_with_file_and_line(write_file, line, message):
    path = write_file(GOOD, "", line if isinstance(line, str | bytes) else json.dumps(line), GOOD)
    with pytest.raises(UserError, match=rf"^{re.escape(str(path))}:3\b.*{message}") as error:
        SnliReader().read_file(path, "train")
    assert "\n" not in str(error.value)


def test_a_pair_that_comes_twice_is_found_by_its_id_and_both_lines_are_named(write_file):
    pairs = [GOOD | {"pairID": "a"}, GOOD, GOOD | {"pairID": "b"}, GOOD, GOOD | {"pairID": "a", "gold_label": "-"}]
    path = write_file(*pairs)
    with pytest.raises(UserError, match=r"pairs\.jsonl:5: pairID 'a' is also in line 1$"):
        SnliReader().read_file(path, "train")
    assert len(SnliReader().read_file(write_file(*pairs[:4]), "train")) == 4


def test_one_id_may_stand_in_two_files(write_file):
    reader = SnliReader()
    for split in ("train", "dev"):
        assert len(reader.read_file(write_file(GOOD | {"pairID": "a"}, name=split), split)) == 1


def test_hub_rows_become_the_same_items_and_minus_one_is_left_out():
    row = {"premise": GOOD["sentence1"], "hypothesis": GOOD["sentence2"]}
    reader = SnliReader()
    items = reader.read_rows([row | {"label": label} for label in (0, 1, -1, 2, -1)], "hub", "train")
    assert items == [SnliItem(PREMISE, HYPOTHESIS, label) for label in (0, 1, 2)]
    assert reader.left_out == {"no majority": 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": 3}, r": label 3 is not in -1 \.\. 2"),
        ({"label": -2}, r": label -2 is not in -1 \.\. 2"),
        ({"label": None}, r": label None is not in -1 \.\. 2"),
        ({"label": "Neutral"}, r": label 'Neutral' is not in -1 \.\. 2"),
        ({"label": True}, r": label True is not in -1 \.\. 2"),
        ({"label": float("nan")}, r": label nan is not in -1 \.\. 2"),
        ({"label": float("inf")}, r": label inf is not in -1 \.\. 2"),
        ({"label": 1.7}, r": label 1\.7 is not in -1 \.\. 2"),
        ({"premise": None}, ": the premise must be a text, found None"),
        ({"hypothesis": 5}, ": the hypothesis must be a text, found 5"),
        ({"premise": ""}, r" \(premise\): an empty sentence"),
        ({"hypothesis": " "}, r" \(hypothesis\): an empty sentence"),
    ],
)
def test_malformed_hub_rows_are_refused_by_number(change, message):
    row = {"premise": "A", "hypothesis": "B", "label": 1}
    with pytest.raises(UserError, match=f"^hub row 1{message}"):
        SnliReader().read_rows([row, row | change], "hub", "dev")


@pytest.mark.parametrize("column", ["premise", "hypothesis", "label"])
def test_a_missing_column_of_the_hubs_copy_is_refused(column):
    row = without({"premise": "A", "hypothesis": "B", "label": 1}, column)
    with pytest.raises(UserError, match=f"^hub row 0: expected the columns premise, .*{column}"):
        SnliReader().read_rows([row], "hub", "dev")


def test_the_bundled_sample_is_balanced_and_no_premise_is_in_two_splits():
    premises = []
    for split, n, no_majority in (("train", 300, 4), ("dev", 60, 1), ("test", 60, 1)):
        reader = SnliReader()
        items = reader.read_file(BUNDLED / f"snli_1.0_{split}.jsonl", split)
        assert Counter(item.label for item in items) == dict.fromkeys(range(3), n // 3)
        assert reader.left_out == {"no majority": no_majority}
        premises.append({tuple(item.premise) for item in items})
    assert list(map(len, premises)) == [100, 20, 20]
    assert len(set.union(*premises)) == 140


@pytest.mark.parametrize(
    ("file", "labels"),
    [("train_subset", [7203, 7098, 7304]), ("dev", [3329, 3235, 3278]), ("test", [3368, 3219, 3237])],
)
def test_the_real_set_has_its_published_sizes(shared, file, labels):
    reader = SnliReader()
    items = reader.read_file(shared / "data" / "snli" / f"snli_1.0_{file}.jsonl", file)
    assert len(items) == {"train_subset": 21_605, "dev": 9_842, "test": 9_824}[file]
    assert [n for _, n in sorted(Counter(item.label for item in items).items())] == labels
    assert reader.left_out == {}


@pytest.fixture
def make_data(write_file, tmp_path):
    """Data of pairs, each given by two numbers of words."""

    def make_data(pairs, batch_tokens, splits=("train", "dev"), **options):
        for split in ("train", "dev"):
            sizes = pairs if split in splits else [(1, 1)]
            lines = (GOOD | {"sentence1": f"p{k} " * p, "sentence2": f"h{k} " * h} for k, (p, h) in enumerate(sizes))
            write_file(*lines, name=split)
        data = TaskData(
            reader=SnliReader(),
            source=Files(str(tmp_path), {"train": "train", "dev": "dev", "test": None}, SnliReader()),
            fraction=1.0,
            words=WordVectors(name="random", path=None, dim=3, lowercase=True),
            update_words=False,
            **{"batch_size": 8, "batch_tokens": batch_tokens, "seed": 1, **options},
        )
        data.read()
        return data

    return make_data


def test_a_premise_of_three_pairs_is_computed_once(make_data, write_file, tiny_bilm, tmp_path, monkeypatch):
    calls, layers = [], tiny_bilm.layers
    monkeypatch.setattr(tiny_bilm, "layers", lambda s, **kwargs: calls.extend(s) or layers(s, **kwargs))
    data = make_data([(1, 1)], 100)
    pairs = [(f"Premise {k} is here.", f"It is {k} {n}.") for k in range(4) for n in ("not", "so", "too")]
    data.items["train"] = data.reader.read_file(
        write_file(*(GOOD | {"sentence1": premise, "sentence2": hypothesis} for premise, hypothesis in pairs)), "train"
    )
    assert len(data.items["train"]) == 12
    assert data.use_layers(LayerStore(tmp_path / "store", tiny_bilm), ["train"]) == Filled(4 * 5 + 12 * 5, 0)
    assert len(calls) == len(set(map(tuple, calls))) == 16
    assert data.use_layers(LayerStore(tmp_path / "store", tiny_bilm), ["train"]) == Filled(0, 4 * 5 + 12 * 5)
    assert len(calls) == 16


def some_lengths(n=150):
    rng = random.Random(0)
    return [(rng.randint(1, 40), rng.choice([1, 2, 5, 60])) for _ in range(n)]


@pytest.mark.parametrize("budget", [100, 257, 1000, 100_000])
def test_padded_tokens_of_both_texts_stay_within_the_budget_and_every_pair_comes_once(make_data, budget):
    data = make_data(some_lengths(), budget)
    for loader in (data.epoch(0), data.epoch(1), data.batches("train"), data.batches("dev")):
        batches = [(batch.premise, batch.hypothesis) for batch in loader]
        assert all(sum(text.mask.numel() for text in batch) <= budget for batch in batches)
        assert all(1 <= len(premise.tokens) <= 8 for premise, _ in batches)
        pairs = [
            (len(p), len(h), p[0][1:], h[0][1:])
            for premise, hypothesis in batches
            for p, h in zip(premise.tokens, hypothesis.tokens, strict=True)
        ]
        assert sorted(pairs) == sorted((p, h, str(k), str(k)) for k, (p, h) in enumerate(some_lengths()))
        if budget == 100_000:
            assert len(batches) == 19, "the size alone bounds them"


@pytest.mark.parametrize("split", ["train", "dev"])
def test_a_pair_beyond_the_budget_by_itself_is_refused_with_the_option_to_set(make_data, split):
    pairs = [(3, 4), (30, 31), (5, 5)]
    with pytest.raises(
        UserError, match=rf"/{split}:2: 61 tokens, more than a batch may have; .*task\.training\.batch_tokens=61 "
    ):
        make_data(pairs, 60, splits=[split])
    assert len(make_data(pairs, 61, splits=[split]).items[split]) == 3


@pytest.mark.parametrize("empty", ["", " ", None, 5])
@pytest.mark.parametrize("key", ["sentence1", "sentence2"])
def test_a_pair_that_is_left_out_is_not_checked(write_file, key, empty):
    reader = SnliReader()
    left_out = GOOD | {"gold_label": "-", key: empty}
    (item,) = reader.read_file(write_file(GOOD, left_out), "train")
    assert (item.premise, item.hypothesis) == (PREMISE, HYPOTHESIS)
    assert reader.left_out == {"no majority": 1}
    with pytest.raises(UserError, match=r"pairs\.jsonl:2"):
        reader.read_file(write_file(GOOD, GOOD | {key: empty}), "train")


def test_a_file_in_several_languages_can_be_cut_to_one(write_file):
    pairs = [GOOD | {"pairID": "1", "language": language} for language in ("ar", "de")]
    with pytest.raises(UserError, match=r"jsonl:2: pairID '1' is also in line 1; a file in several languages") as error:
        SnliReader().read_file(write_file(*pairs), "train")
    (pattern,) = re.findall(r"grep '(.*)' FILE$", str(error.value))
    chosen = [line for line in map(json.dumps, pairs) if re.search(pattern, line)]
    assert chosen == [json.dumps(pairs[1])]
    assert len(SnliReader().read_file(write_file(*chosen), "train")) == 1
    with pytest.raises(UserError, match=r"jsonl:2: pairID '1' is also in line 1$"):
        SnliReader().read_file(write_file(*[GOOD | {"pairID": "1"}] * 2), "train")
