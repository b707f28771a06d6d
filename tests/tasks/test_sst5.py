from collections import Counter

import pytest

from elmo_tasks.data.labelled import LabelledText
from elmo_tasks.data.sst5 import SstReader, parse_tree
from elmo_tasks.errors import UserError


def parsed(line):
    return [(" ".join(item.tokens), item.label) for item in parse_tree(line, "f:1")]


@pytest.mark.parametrize(
    ("line", "subtrees"),
    [
        ("(3 good)", [("good", 3)]),
        ("(4 (2 very) (3 good))", [("very", 2), ("good", 3), ("very good", 4)]),
        ("(1 (0 (2 not) (4 best)) (2 .))", [("not", 2), ("best", 4), ("not best", 0), (".", 2), ("not best .", 1)]),
        ("(2 (2 a) (2 b) (2 c))", [("a", 2), ("b", 2), ("c", 2), ("a b c", 2)]),
        ("(2 (3 (1 only)))", [("only", 1), ("only", 3), ("only", 2)]),
        ("  (4(2 very)  (3  good) ) ", [("very", 2), ("good", 3), ("very good", 4)]),
        ("(2 (2 8\u00a01\\/2) (2 \u3000))", [("8\u00a01\\/2", 2), ("\u3000", 2), ("8\u00a01\\/2 \u3000", 2)]),
        ("(2 (2 1) (2 -LRB-))", [("1", 2), ("-LRB-", 2), ("1 -LRB-", 2)]),
    ],
)
def test_every_labelled_subtree_is_found_and_the_sentence_comes_last(line, subtrees):
    assert parsed(line) == subtrees


def test_a_very_deep_tree_can_be_read():
    depth = 5000
    assert len(parse_tree("(2 " * depth + "x" + ")" * depth, "f:1")) == depth


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("good", 1),
        (")", 1),
        ("(good)", 1),
        ("(5 good)", 1),
        ("(-1 good)", 1),
        ("(33 good)", 1),
        ("(3)", 1),
        ("(3 )", 4),
        ("(3\tgood)", 1),
        ("( 3 good)", 1),
        ("((3 good))", 1),
        ("(3 good) ) ", 10),
        ("(3 good) (2 bad)", 10),
        ("(3 good) bad", 10),
        ("(3 (2 a) b)", 10),
        ("(3 very good)", 9),
        ("(3 very (3 good))", 9),
        ("(3 (2 very) (9 good))", 13),
        ("(3 (2 very) ())", 13),
        ("(3 (2 very) (2 ))", 16),
    ],
)
def test_a_malformed_tree_is_refused_with_file_line_and_column(tmp_path, line, column):
    path = tmp_path / "trees"
    path.write_text(f"(2 fine)\n\n{line}\n", "utf-8")
    with pytest.raises(UserError, match=rf"trees:3: malformed tree at column {column}: expected .*, found"):
        SstReader(phrases=False).read_file(path, "train")


@pytest.mark.parametrize("line", ["(3 good", "(3 (2 very) (3 good)", "(3 (2 a)"])
def test_a_tree_that_is_cut_off_is_refused(tmp_path, line):
    path = tmp_path / "trees"
    path.write_text(f"(2 fine)\n{line}", "utf-8")
    with pytest.raises(UserError, match=r"trees:2: malformed tree: the line ends before"):
        SstReader(phrases=False).read_file(path, "dev")


TREES = "(4 (2 (2 A) (2 (2 very) (2 ,))) (4 (4 fine) (2 film)))\n   \n(1 (1 No) (2 .))\n(3 Yes)\n"
SENTENCES = [("A very , fine film", 4), ("No .", 1), ("Yes", 3)]


def read(tmp_path, split, content=TREES, **options):
    path = tmp_path / "trees"
    path.write_text(content, "utf-8")
    reader = SstReader(**options)
    return [(" ".join(item.tokens), item.label) for item in reader.read_file(path, split)], reader.left_out


def test_whole_sentences(tmp_path):
    assert read(tmp_path, "train", phrases=False) == (SENTENCES, {})


@pytest.mark.parametrize("split", ["dev", "test"])
def test_dev_and_test_are_whole_sentences_even_if_training_has_phrases(tmp_path, split):
    assert read(tmp_path, split, phrases=True, min_phrase_tokens=3) == (SENTENCES, {})


LONG_PHRASES = [("A very ,", 2)]
MIDDLING_PHRASES = [("very ,", 2), ("fine film", 4)]
WORDS = [("A", 2), ("very", 2), (",", 2), ("fine", 4), ("film", 2), ("No", 1), (".", 2)]


@pytest.mark.parametrize(
    ("least", "phrases", "left_out"),
    [
        (1, LONG_PHRASES + MIDDLING_PHRASES + WORDS, {}),
        (2, LONG_PHRASES + MIDDLING_PHRASES, {"short phrases": 7}),
        (3, LONG_PHRASES, {"short phrases": 9}),
    ],
)
def test_phrases_of_some_length_beside_all_sentences(tmp_path, least, phrases, left_out):
    items, counted = read(tmp_path, "train", phrases=True, min_phrase_tokens=least)
    assert sorted(items) == sorted(phrases + SENTENCES)
    assert counted == left_out


def test_the_treebanks_escapes_are_undone_unless_told_otherwise(tmp_path):
    escaped = "-LRB- -RRB- -LCB- -RCB- -LSB- -RSB- `` '' 8\u00a01\\/2 \\*\\* it's"
    plain = '( ) { } [ ] " " 8\u00a01/2 ** it\'s'
    tree = "(2 " + " ".join(f"(2 {word})" for word in escaped.split(" ")) + ")"
    assert read(tmp_path, "dev", tree, phrases=False)[0] == [(plain, 2)]
    assert read(tmp_path, "dev", tree, phrases=False, unescape=False)[0] == [(escaped, 2)]


def test_hub_rows_become_sentences_without_the_treebanks_escapes():
    rows = [{"text": "-LRB- fine  film -RRB- ", "label": 4}, {"text": "8\u00a01\\/2", "label": 0}]
    items = SstReader(phrases=False).read_rows(rows, "hub", "train")
    assert items == [LabelledText(["(", "fine", "film", ")"], 4), LabelledText(["8\u00a01/2"], 0)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "a", "label": 5}, r"label 5 is not in 0 \.\. 4"),
        ({"text": "a", "label": -1}, r"label -1 is not in 0 \.\. 4"),
        ({"text": "a", "label": 0.69}, r"label 0\.69 is not in 0 \.\. 4"),
        ({"text": "a"}, "expected the columns text and label"),
        ({"text": None, "label": 1}, "expected the columns text and label"),
        ({"text": "a", "label": "good"}, r"label 'good' is not in 0 \.\. 4"),
        ({"text": "a", "label": True}, r"label True is not in 0 \.\. 4"),
        ({"text": " ", "label": 1}, "an empty sentence"),
    ],
)
def test_malformed_hub_rows_are_refused_by_number(row, message):
    with pytest.raises(UserError, match=f"hub row 1: {message}"):
        SstReader(phrases=False).read_rows([{"text": "a", "label": 1}, row], "hub", "dev")


def test_the_hubs_copy_has_no_phrases():
    with pytest.raises(UserError, match=r"add task\.reader\.phrases=false"):
        SstReader(phrases=True).read_rows([], "hub", "train")


@pytest.mark.parametrize(
    ("file", "labels", "tokens", "nodes"),
    [
        ("train", [1092, 2218, 1624, 2322, 1288], 163563, 318582),
        ("dev", [139, 289, 229, 279, 165], 21274, 41447),
        ("test", [279, 633, 389, 510, 399], 42405, 82600),
    ],
)
def test_the_real_treebank_has_its_published_sizes(shared, file, labels, tokens, nodes):
    lines = (shared / "data" / "sst" / f"{file}.txt").read_text("utf-8").strip("\n").split("\n")
    trees = [parse_tree(line, file) for line in lines]
    assert [n for _, n in sorted(Counter(tree[-1].label for tree in trees).items())] == labels
    assert sum(len(tree[-1].tokens) for tree in trees) == tokens
    assert sum(map(len, trees)) == nodes
