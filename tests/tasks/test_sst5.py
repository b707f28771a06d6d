from collections import Counter

import numpy as np
import pytest
import torch
from oracles import softmax

from elmo_tasks.batch import Text
from elmo_tasks.data.labelled import LabelledBatch, LabelledText
from elmo_tasks.data.sst5 import SstReader, parse_tree
from elmo_tasks.elmo import Elmo
from elmo_tasks.errors import UserError
from elmo_tasks.models.base import ClassifierOutput
from elmo_tasks.models.bcn import BiattentiveClassifier
from elmo_tasks.nn.embedding import WordEmbedding


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


def test_a_very_deep_tree_is_no_problem():
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


@pytest.mark.parametrize("line", ["(3 good", "(3 (2 very) (3 good)", "(3 ", "(3 (2 a)"])
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
    ("row", "said"),
    [
        ({"text": "a", "label": 5}, r"label 5 is not in 0 \.\. 4"),
        ({"text": "a", "label": -1}, r"label -1 is not in 0 \.\. 4"),
        ({"text": "a"}, "expected the columns text and label"),
        ({"text": None, "label": 1}, "expected the columns text and label"),
        ({"text": "a", "label": "good"}, "expected the columns text and label"),
        ({"text": " ", "label": 1}, "an empty sentence"),
    ],
)
def test_malformed_hub_rows_are_refused_by_number(row, said):
    with pytest.raises(UserError, match=f"hub row 1: {said}"):
        SstReader(phrases=False).read_rows([{"text": "a", "label": 1}, row], "hub", "dev")


def test_the_hubs_copy_cannot_give_phrases():
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


@pytest.mark.parametrize("placement", ["none", "both"])
def test_network_is_attention_and_four_poolings_over_each_text_alone(placement):
    elmo_dim, lengths, n_layers = 4, [5, 1, 3], 3
    mask = torch.arange(5) < torch.tensor(lengths).unsqueeze(1)
    layers = torch.randn(3, n_layers, 5, elmo_dim)  # with garbage on padding
    batch = LabelledBatch(Text([], torch.randint(9, (3, 5)), None, mask, layers), torch.tensor([0, 3, 4]), [0, 3, 4])
    model = BiattentiveClassifier(
        words=WordEmbedding(torch.randn(9, 6), trainable=False),
        elmo=Elmo(placement=placement, n_layers=n_layers, dim=elmo_dim),
        n_labels=5,
        embedding_dropout=0.5,
        pre_encode=7,
        pre_encode_dropout=0.25,
        hidden=3,
        integrator_dropout=0.1,
        classifier=[8, 6],
        classifier_dropout=[0.2, 0.3],
    ).eval()

    def linear(layer, x):
        return x @ layer.weight.numpy().T + layer.bias.numpy()

    def run(bilstm, x):
        x = torch.from_numpy(x).float()[None]
        backward = bilstm.right_to_left(x.flip(1))[0].flip(1)
        return torch.cat([bilstm.left_to_right(x)[0], backward], dim=2)[0].numpy()

    with torch.no_grad():
        out = model(batch)
        expected = []
        for ids, text_layers, n in zip(batch.text.word_ids, layers.numpy(), lengths, strict=True):
            mixed = text_layers[:, :n].mean(axis=0)  # as begun: equal weights, gamma 1
            beside = [] if placement == "none" else [mixed]
            x = np.concatenate([model.words.weight[ids[:n]].numpy(), *beside], axis=1)
            h = run(model.encoder, np.maximum(linear(model.pre_encode[0], x), 0))
            h = np.concatenate([h, *beside], axis=1)
            context = np.stack([sum(a * v for a, v in zip(softmax(h @ u), h, strict=True)) for u in h])
            m = run(model.integrator, np.concatenate([h, h - context, h * context], axis=1))
            weights = softmax(np.array([linear(model.pool_score, row)[0] for row in m]))
            features = np.concatenate([m.max(axis=0), m.min(axis=0), m.sum(axis=0) / n, weights @ m])
            first, second, last = (layer for layer in model.classifier if isinstance(layer, torch.nn.Linear))
            expected.append(linear(last, np.maximum(linear(second, np.maximum(linear(first, features), 0)), 0)))
        np.testing.assert_allclose(out.logits.numpy(), expected, atol=1e-5)
        assert model.decode(out, batch) == np.argmax(expected, axis=1).tolist()


def test_loss_is_the_mean_negative_log_probability_of_gold():
    logits = torch.randn(3, 5)
    batch = LabelledBatch(Text([], torch.empty(0), None, torch.empty(0), None), torch.tensor([0, 3, 4]), [0, 3, 4])
    probabilities = [softmax(row)[label] for row, label in zip(logits.numpy(), batch.gold, strict=True)]
    loss = BiattentiveClassifier.loss(None, ClassifierOutput(logits), batch)
    assert float(loss) == pytest.approx(-np.log(probabilities).mean(), rel=1e-5)
