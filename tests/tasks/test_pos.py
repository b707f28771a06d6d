import subprocess
from collections import Counter

import numpy as np
import pytest
import torch

from elmo_tasks.batch import IGNORE_INDEX, Text
from elmo_tasks.data.pos import PosItem, PosReader, find_trees
from elmo_tasks.data.treebank import read_tagged_trees
from elmo_tasks.elmo import Elmo
from elmo_tasks.errors import UserError
from elmo_tasks.metrics.accuracy import TokenAccuracy
from elmo_tasks.models.linear_tagger import LinearTagger
from elmo_tasks.nn.embedding import WordEmbedding
from elmo_tasks.nn.words import WordVectors

TREES = r"""
( (S
    (NP-SBJ-1 (NNP Ann) )
    (VP (VBZ wants)
      (S (NP-SBJ (-NONE- *-1) ) (VP (TO to) (VP (VB sell) (NP (CD 1\/2) )))))
    (. .) ))
(TOP (FRAG (-LRB- -LRB-) (FW etc.) (-RRB- -RRB-)))

( (X (-NONE- *) )) ( (INTJ (UH Oh) (`` ``) ('' '')) )
"""
ITEMS = [
    PosItem(["Ann", "wants", "to", "sell", "1/2", "."], ["NNP", "VBZ", "TO", "VB", "CD", "."]),
    PosItem(["(", "etc.", ")"], ["-LRB-", "FW", "-RRB-"]),
    PosItem(["Oh", '"', '"'], ["UH", "``", "''"]),
]


def make_folder(tmp_path, names):
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"( (S (NN {name}) ))")
    return tmp_path


def file_names(folder, split):
    return [str(path.relative_to(folder)) for path in find_trees(folder, split)]


def test_leaves_of_trees_are_tagged_words_without_null_elements_and_escapes(tmp_path):
    (tmp_path / "wsj_1901.mrg").write_text(TREES)
    reader = PosReader()
    assert reader.read_file(tmp_path, "dev") == ITEMS
    assert reader.left_out == {"null elements": 2}


def test_a_tree_is_placed_by_its_first_line(tmp_path):
    (tmp_path / "a.mrg").write_text(TREES)
    assert [where.rpartition(":")[2] for where, _ in read_tagged_trees(tmp_path / "a.mrg")] == ["2", "7", "9", "9"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("( (S (NN a)\n", r":1: the file ends within the tree that begins in line 1"),
        ("\n( (NN a b) )", r":2: expected '\)' after a tag and its word, found 'b'"),
        ("( (NN a (NN b)))", r":1: expected '\)' after a tag and its word, found '\('"),
        ("( (NN a) )\n)", r":2: expected '\(' before a tree, found '\)'"),
        ("( (NP (DT the) dog) )", r":1: expected '\(' or '\)' after a subtree, found 'dog'"),
        ("( (NP (DT the) (dog)) )", r":1: expected a tag and its word, or subtrees, within brackets, found '\)'"),
        ("( )", r":1: expected a tag and its word, or subtrees, within brackets, found '\)'"),
        ("dog", r":1: expected '\(' before a tree, found 'dog'"),
    ],
)
def test_text_that_is_not_a_tree_is_named_with_its_line(tmp_path, text, message):
    (tmp_path / "a.mrg").write_text(text)
    with pytest.raises(UserError, match=r"a\.mrg" + message):
        list(read_tagged_trees(tmp_path / "a.mrg"))


@pytest.mark.parametrize("layout", ["{0:02}/wsj_{0:02}01.mrg", "wsj_{0:02}01.mrg", "wsj/{0:02}/part.mrg"])
def test_the_treebanks_sections_are_split_as_usual(tmp_path, layout):
    names = [layout.format(section) for section in range(25)]
    folder = make_folder(tmp_path, names)
    assert file_names(folder, "train") == names[:19]
    assert file_names(folder, "dev") == names[19:22]
    assert file_names(folder, "test") == names[22:]


def test_without_the_later_sections_every_ninth_and_tenth_file_is_held_out(tmp_path):
    names = [f"wsj_{n:04}.mrg" for n in range(1, 26)]
    folder = make_folder(tmp_path, names)
    assert file_names(folder, "dev") == ["wsj_0009.mrg", "wsj_0019.mrg"]
    assert file_names(folder, "test") == ["wsj_0010.mrg", "wsj_0020.mrg"]
    assert sorted(name for split in ("train", "dev", "test") for name in file_names(folder, split)) == names
    with pytest.raises(UserError, match=r"empty: no \*\.mrg file in it"):
        find_trees(tmp_path / "empty", "train")


def test_columns_are_read_from_a_file(tmp_path):
    (tmp_path / "a.txt").write_text("Ann\tNNP\tB-NP\n``\t``\tO\n\nruns\tVBZ\tB-VP\n")
    expected = [PosItem(["Ann", '"'], ["NNP", "``"]), PosItem(["runs"], ["VBZ"])]
    assert PosReader().read_file(tmp_path / "a.txt", "train") == expected
    assert PosReader(column=2).read_file(tmp_path / "a.txt", "train")[1].tags == ["B-VP"]
    with pytest.raises(UserError, match=r"a\.txt:1: expected at least 4 columns, found 3"):
        PosReader(column=3).read_file(tmp_path / "a.txt", "train")


EIGHT = "1\tThe\t_\tDT\tDT\t_\t2\tNMOD\n2\tdog\t_\tNN\tNN\t_\t0\tROOT\n\n1\tIt\t_\tPRP\tPRP\t_\t0\tROOT\n"
U = "# sent_id = 1\n# text = du chat\n1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n" + "".join(
    f"{k}\t{word}\tl\t{tag}\t_\t_\t0\troot\t_\t_\n"
    for k, word, tag in ((1, "de", "ADP"), (2, "le", "DET"), (3, "chat", "NOUN"))
)


@pytest.mark.parametrize(
    ("text", "keys", "items"),
    [
        (EIGHT, (2, 4), [(["The", "dog"], ["DT", "NN"]), (["It"], ["PRP"])]),
        (
            "0\tThe\tDT\n1\tdog\tNN\n\n0\tIt\tPRP\n1\tran\tVBD\n",
            (2, 3),
            [(["The", "dog"], ["DT", "NN"]), (["It", "ran"], ["PRP", "VBD"])],
        ),
        ("1 The the DT DT _ 2 det _ _\n2 dog dog NN NN _ 0 root _ _\n", (2, 4), [(["The", "dog"], ["DT", "NN"])]),
        (
            "1 The the the DT DT _ _ 2 2 D D _ _\n2 dog d d NN NN _ _ 0 0 R R Y dog.01 A0\n".replace(
                "_ _\n", "_ _ _\n"
            ),
            (2, 5),
            [(["The", "dog"], ["DT", "NN"])],
        ),
    ],
    ids=["conll-x-8", "three-from-0", "conll-x-spaces", "conll-2009"],
)
def test_a_first_column_that_counts_is_refused_or_read_with_the_keys_that_are_named(tmp_path, text, keys, items):
    path = tmp_path / "a.txt"
    path.write_text(text)
    with pytest.raises(UserError, match=r"a\.txt:1: CoNLL-U or CoNLL-X, whose first column has no words") as error:
        PosReader().read_file(path, "train")
    assert str(error.value).endswith("task.reader.token_column={} task.reader.tag_column={}".format(*keys))
    found = PosReader(token_column=keys[0], tag_column=keys[1]).read_file(path, "train")
    assert found == [PosItem(*item) for item in items]


def test_both_remedies_for_conll_u_work(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text(U)
    with pytest.raises(
        UserError, match=r":1: CoNLL-U or CoNLL-X, .*=2 task\.reader\.tag_column=4 \"task\.rea.*'#'\", or"
    ) as error:
        PosReader().read_file(path, "train")
    expected = [PosItem(["de", "le", "chat"], ["ADP", "DET", "NOUN"])]
    assert PosReader(token_column=2, tag_column=4, comment="#").read_file(path, "train") == expected
    command = str(error.value).partition("with: ")[2].replace("FILE", str(path))
    (tmp_path / "b").write_text(
        subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
    )
    assert PosReader().read_file(tmp_path / "b", "train") == expected


@pytest.mark.parametrize(
    "text",
    [
        "( (S (NP (DT The) (NN dog)) (VP (VBZ eats)) (. .)))\n( (S (NP (DT The) (NN cat)) (VP (VBZ runs)) (. .)))\n",
        "( (S \n    (NP (DT The) (NN dog) )\n    (VBZ eats)\n    (. .) ))\n\n(S (DT The) (NN cat) (VBZ runs) (. .))",
        "\u00a0\n(S (DT The) (NN dog) (VBZ eats) (. .))\n\f\n\ufeff(S (DT The) (NN cat) (-NONE- *) (VBZ runs) (. .))\n",
    ],
    ids=["one-a-line", "several-lines", "white-space-lines-and-a-mark"],
)
def test_a_file_of_trees_is_read_as_trees(tmp_path, text):
    (tmp_path / "a.txt").write_text(text)
    tags = ["DT", "NN", "VBZ", "."]
    expected = [PosItem(["The", "dog", "eats", "."], tags), PosItem(["The", "cat", "runs", "."], tags)]
    assert PosReader().read_file(tmp_path / "a.txt", "train") == expected


def test_columns_may_begin_with_a_bracket(tmp_path):
    (tmp_path / "a.txt").write_text("( (\n( -LRB-\na DT\n) )\n")
    assert PosReader().read_file(tmp_path / "a.txt", "dev") == [
        PosItem(["(", "(", "a", ")"], ["(", "-LRB-", "DT", ")"])
    ]


def test_trees_of_sentiments_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("(3 (2 It) (4 (4 shines) (2 .)))\n")
    with pytest.raises(UserError, match=r"a\.txt:1: labels 0 to 4, as in the Sentiment Treebank \(task=sst5\)"):
        PosReader().read_file(tmp_path / "a.txt", "train")


def test_a_word_of_a_tree_may_hold_a_no_break_space(tmp_path):
    (tmp_path / "a.mrg").write_text("( (NP (CD 2\u00a01/2) (NN cups)) )")
    assert PosReader().read_file(tmp_path, "train") == [PosItem(["2\u00a01/2", "cups"], ["CD", "NN"])]


def make_text(lengths, dim=6):
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    layers = torch.randn(len(lengths), 3, max(lengths), dim) * mask[:, None, :, None]
    char_ids = torch.zeros(*mask.shape, 1, dtype=torch.long)
    return Text([["w"] * n for n in lengths], 2 * mask.long(), char_ids, mask, layers)


@pytest.fixture
def batch():
    reader = PosReader()
    reader.fit([PosItem(["a", "b", "c"], ["NN", "VB", "DT"])])
    items = [PosItem(["w"] * 3, ["VB", "XX", "DT"]), PosItem(["w"], ["NN"])]
    return reader.collate(items, [make_text([3, 1])])


def test_tags_that_training_lacks_are_ignored_in_the_loss_but_stay_in_the_gold(batch):
    assert batch.tags.tolist() == [[2, IGNORE_INDEX, 0], [1, IGNORE_INDEX, IGNORE_INDEX]]
    assert batch.gold == [["VB", "XX", "DT"], ["NN"]]


def test_tokens_with_a_tag_that_training_lacks_are_counted_by_split():
    reader = PosReader()
    reader.fit([PosItem(["a", "b"], ["NN", "VB"])])
    reader.check([PosItem(["a", "b", "c"], ["XX", "NN", "YY"]), PosItem(["a"], ["XX"])], "dev")
    reader.check([PosItem(["a"], ["VB"])], "test")
    assert reader.left_out == {"dev tokens with a tag that training lacks": 3}


def linear_tagger(words_dim, placement="input", mix="layer_1"):
    embedding = WordEmbedding(torch.randn(3, words_dim), trainable=False)
    elmo = Elmo(placement=placement, n_layers=3, dim=6, mix=mix)
    return LinearTagger(words=embedding, elmo=elmo, tags=["DT", "NN", "VB"])


def test_without_word_vectors_the_logits_are_a_linear_map_of_the_layer_alone(batch):
    model = linear_tagger(0)
    weight, bias = model.to_tags.weight.detach().numpy(), model.to_tags.bias.detach().numpy()
    assert weight.shape == (3, 6)
    found = model(batch).logits.detach().numpy()
    for row, n in ((0, 3), (1, 1)):
        for k in range(n):
            np.testing.assert_allclose(found[row, k], weight @ batch.text.layers[row, 1, k].numpy() + bias, rtol=1e-5)


def test_the_baseline_is_a_linear_map_of_the_word_vector(batch):
    model = linear_tagger(4, "none")
    expected = model.to_tags(model.words.weight[2])
    torch.testing.assert_close(model(batch).logits[0, 0], expected)
    assert model.to_tags.in_features == 4


def test_the_loss_is_the_mean_over_known_tags(batch):
    model = linear_tagger(4)
    out = model(batch)
    log = out.logits.log_softmax(dim=2)
    expected = -(log[0, 0, 2] + log[0, 2, 0] + log[1, 0, 1]) / 3
    torch.testing.assert_close(model.loss(out, batch), expected)


def test_the_likeliest_tag_of_each_word_is_decoded(batch):
    model = linear_tagger(4)
    out = model(batch)
    out.logits = torch.tensor([[[0.0, 1, 2], [2, 1, 0], [0, 2, 1]], [[5, 1, 2], [0, 0, 9], [0, 0, 9]]])
    assert model.decode(out, batch) == [["VB", "DT", "NN"], ["DT"]]


def test_accuracy_is_over_tokens_not_sentences():
    metric = TokenAccuracy()
    metric.update([["A", "B", "C"], ["A"]], [["A", "X", "C"], ["B"]])
    metric.update([["A"]], [["A"]])
    assert metric.compute() == {"accuracy": 60}


def test_without_word_vectors_the_dimension_is_zero():
    words = WordVectors(name="none", path=None, dim=0, lowercase=True)
    vocabulary, matrix, coverage = words.embed(Counter(a=2), ["b"])
    assert matrix.shape == (len(vocabulary), 0)
    assert coverage == 0
    for name, dim in (("none", 5), ("random", 0)):
        with pytest.raises(UserError, match=rf"words\.dim={dim} does not go with words={name}"):
            WordVectors(name=name, path=None, dim=dim, lowercase=True)


def test_the_sample_of_the_treebank_has_what_its_description_says(shared):
    reader, folder = PosReader(), shared / "data" / "ptb_sample"
    splits = {split: reader.read_file(folder, split) for split in ("train", "dev", "test")}
    assert sum(map(len, splits.values())) == 3914
    assert sum(len(item.tokens) for items in splits.values() for item in items) == 94084
    assert reader.left_out == {"null elements": 6592}
    reader.fit([item for items in splits.values() for item in items])
    assert len(reader.model_parts()["tags"]) == 45
