import random

import pytest
import torch

from elmo_tasks.batch import Text
from elmo_tasks.config.components import check_values
from elmo_tasks.data.clusters import merged, n_crossing, read_clusters
from elmo_tasks.data.conll2012 import read_documents
from elmo_tasks.data.coref import N_DOCUMENTS, CorefItem, CorefReader
from elmo_tasks.data.source import Files
from elmo_tasks.data.splits import read_splits
from elmo_tasks.errors import UserError

READER = "elmo_tasks.data.coref.CorefReader"

ANN = """
Ann   ann (4)
and   ann -
her   ann (7|(4)
dog   ann 7)
-LRB- ann -
"""
IT = """
It   bob (7)
saw  bob -
her  -   (4)
"""
RAIN = """
Rain - -
fell - -
"""


def conll(*documents):
    """Documents in the format: name, part, then sentences whose lines have word, speaker and mentions."""
    lines = []
    for name, part, *sentences in documents:
        lines.append(f"#begin document ({name}); part {part}")
        for sentence in sentences:
            for k, (word, speaker, cell) in enumerate(map(str.split, sentence.strip().split("\n"))):
                lines.append("\t".join([name, str(int(part)), str(k), word, *"X*---", speaker, "*", cell]))
            lines.append("")
        lines.append("#end document")
    return "\n".join(lines) + "\n"


def make_sentence(cells):
    return "\n".join(f"w{k} - {cell}" for k, cell in enumerate(cells.split()))


@pytest.fixture
def read(tmp_path):
    def read(content, split="train", reader=None):
        path = tmp_path / f"{split}.conll"
        path.write_text(content, "utf-8")
        return (reader or CorefReader(max_training_sentences=100)).read_file(path, split)

    return read


def test_a_document_has_its_sentences_speakers_genre_and_clusters(read):
    reader = CorefReader(max_training_sentences=100)
    (item,) = read(conll(("bc/show/bc_1", "000", ANN, RAIN, IT)), "train", reader)
    assert item == CorefItem(
        sentences=[["Ann", "and", "her", "dog", "("], ["Rain", "fell"], ["It", "saw", "her"]],
        speakers=[*["ann"] * 5, "-", "-", "bob", "bob", "-"],
        genre="bc",
        gold={
            "number": 0,
            "name": "bc/show/bc_1",
            "part": "000",
            "sentence_lengths": [5, 2, 3],
            "clusters": [[(0, 1), (2, 3), (9, 10)], [(2, 4), (7, 8)]],
        },
    )
    assert reader.texts(item) == item.sentences
    assert reader.left_out == {}


def test_parts_are_documents_of_their_own(read):
    items = read(conll(("nw/a", "000", ANN), ("nw/a", "001", IT, RAIN, IT), ("flat", "000", ANN)))
    assert [(item.gold["name"], item.gold["part"], item.gold["number"]) for item in items] == [
        ("nw/a", "000", 0),
        ("nw/a", "001", 1),
        ("flat", "000", 2),
    ]
    assert [item.genre for item in items] == ["nw", "nw", ""]
    assert [item.gold["clusters"] for item in items] == [
        [[(0, 1), (2, 3)], [(2, 4)]],
        [[(2, 3), (7, 8)], [(0, 1), (5, 6)]],
        [[(0, 1), (2, 3)], [(2, 4)]],
    ]


def test_two_documents_of_one_name_and_part_are_refused(tmp_path, read):
    content = conll(("a", "000", ANN), ("b", "000", IT), ("a", "000", IT))
    path = tmp_path / "train.conll"
    with pytest.raises(UserError, match=rf"^{path}:15: document \(a\); part 000 for a second time; .* {path}:1$"):
        read(content)


def test_a_folder_is_one_split_and_its_documents_are_counted_on(tmp_path):
    for name, sentence in (("b/2_gold_conll", IT), ("a/1_gold_conll", ANN)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(conll((name, "000", sentence), (name, "001", RAIN, sentence)))
    items = CorefReader(max_training_sentences=100).read_file(tmp_path, "train")
    assert [(item.gold["number"], item.sentences[-1][0], item.genre) for item in items] == [
        (0, "Ann", "a"),
        (1, "Ann", "a"),
        (2, "It", "b"),
        (3, "It", "b"),
    ]


@pytest.mark.parametrize(
    ("cells", "clusters"),
    [
        ("- - -", []),
        ("- _ *", []),
        ("(0) - (0)", [[(0, 1), (2, 3)]]),
        ("(12 - 12) (3)", [[(3, 4)], [(0, 3)]]),
        ("(0 (1 1) 0)", [[(0, 4)], [(1, 3)]]),
        ("(0 (0 0) 0)", [[(1, 3), (0, 4)]]),
        ("(0 (0) 0)", [[(1, 2), (0, 3)]]),
        ("(0|(0) - 0)", [[(0, 1), (0, 3)]]),
        ("(0 - (0)|0)", [[(2, 3), (0, 3)]]),
        ("(0|(0 0) 0)", [[(0, 2), (0, 3)]]),
        ("(0 (0 0)|0)", [[(1, 3), (0, 3)]]),
        ("(0|(1|(2) 1) 0)", [[(0, 3)], [(0, 2)], [(0, 1)]]),
        ("(2|(1|(0) 1)|(0) 2)|(0)", [[(0, 1), (1, 2), (2, 3)], [(0, 2)], [(0, 3)]]),
        ("(0 0)|(1 1)", [[(0, 2)], [(1, 3)]]),
        ("(0 (1 0) 1)", [[(0, 3)], [(1, 4)]]),
        ("(0 0) (0 0)", [[(0, 2), (2, 4)]]),
    ],
)
def test_mentions_are_read_from_brackets(tmp_path, cells, clusters):
    path = tmp_path / "some.conll"
    path.write_text(conll(("d", "000", RAIN, make_sentence(cells))))
    (document,) = read_documents(path)
    assert read_clusters(document) == [[(start + 2, stop + 2) for start, stop in cluster] for cluster in clusters]


@pytest.mark.parametrize(
    ("cells", "same"),
    [("(1(3 3)1) (1)", "(1|(3 3)|1) (1)"), ("(0)(1) (1)(0)", "(0)|(1) (1)|(0)"), ("(12(3 - 3)12)", "(12|(3 - 3)|12)")],
)
def test_brackets_need_nothing_between_them_as_for_the_official_scorer(read, cells, same):
    found, expected = (read(conll(("d", "000", make_sentence(text))), "dev") for text in (cells, same))
    assert found == expected


@pytest.mark.parametrize("split", ["train", "dev"])
def test_a_mention_that_is_written_twice_in_a_cluster_is_there_once_and_counted(read, split):
    reader = CorefReader(max_training_sentences=100)
    (item,) = read(conll(("d", "000", RAIN, make_sentence("(5)|(5) (1|(1 1)|1) (1)|(5)"))), split, reader)
    assert item.gold["clusters"] == merged_if(split == "train", [[(3, 5), (5, 6)], [(2, 3), (5, 6)]])
    twice = {f"{split} mentions written twice in a cluster": 2, f"{split} mentions in two clusters": 1}
    assert reader.left_out == twice


def merged_if(condition, clusters):
    return merged(clusters) if condition else clusters


def test_documents_whose_names_have_no_slash_are_of_one_genre_that_a_users_own_text_has_too(read):
    reader = CorefReader(max_training_sentences=100)
    reader.fit(read(conll(*((f"{n}_a_book", "0", ANN) for n in range(5))), "train", reader))
    assert reader.model_parts() == {"n_genres": 2}
    (dev,) = read(conll(("9_another_book", "0", ANN)), "dev", reader)
    own = reader.from_json({"sentences": ["Rain fell ."]}, "line 1")
    assert [collated(reader, item).genre.tolist() for item in (dev, own)] == [1, 1]


def test_mentions_of_one_cluster_nest_since_crossing_ones_are_written_just_the_same(tmp_path):
    (tmp_path / "some.conll").write_text(conll(("d", "000", make_sentence("(0 (0 (0 0) 0) 0)"))))
    (document,) = read_documents(tmp_path / "some.conll")
    assert read_clusters(document) == [[(2, 4), (1, 5), (0, 6)]]  # and not (0, 4), (1, 5), (2, 6)


@pytest.mark.parametrize("seed", range(20))
def test_mentions_cross_if_they_share_tokens_and_neither_holds_the_other(seed):
    rng = random.Random(seed)
    clusters = [
        [(start := rng.randrange(30), start + rng.randint(1, 6)) for _ in range(rng.randint(0, 4))]
        for _ in range(rng.randint(0, 5))
    ]
    tokens = {mention: set(range(*mention)) for cluster in clusters for mention in cluster}
    crossing = [a for a in tokens.values() if any(a & b and not a <= b and not b <= a for b in tokens.values())]
    assert n_crossing(clusters) == len(crossing)


def refusal(read, split, content):
    with pytest.raises(UserError) as error:
        read(content, split)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("split", ["train", "dev"])
@pytest.mark.parametrize(
    ("cells", "line", "message"),
    [
        ("- (0 -", 8, "a mention of cluster 0 is not closed before the sentence ends"),
        ("(0 (0 - 0)", 7, "a mention of cluster 0 is not closed before the sentence ends"),
        ("(0 1) -", 8, "a mention of cluster 1 is closed but was not opened in this sentence"),
        ("- - 0)", 9, "a mention of cluster 0 is closed but was not opened in this sentence"),
        ("(0) 0) -", 8, "a mention of cluster 0 is closed but was not opened in this sentence"),
        ("- 0)|(0 0)", 8, "a mention of cluster 0 is closed but was not opened in this sentence"),
    ],
)
def test_brackets_that_make_no_clusters_are_refused_with_file_and_line(tmp_path, read, split, cells, line, message):
    content = conll(("d", "000", RAIN, make_sentence(cells), ANN)).replace("\n\n", "\n\n\n\n", 1)
    assert refusal(read, split, content) == f"{tmp_path}/{split}.conll:{line}: {message}"


@pytest.mark.parametrize(
    "cell",
    [
        *("0", "()", "(", ")", "(x)", "(-1)", "(0))", "((0)", "(0)1", "0(1)", "(0)1|(2)", "*(0)", "(0*", "(0,1)", "--"),
        *("1|(2", "(0)|", "|(0)", "(0)||(1)", "(0)|-", "-|(0)", "(1/2)", "(0)|1"),
    ],
)
def test_a_malformed_cell_is_refused_with_file_and_line(tmp_path, read, cell):
    content = conll(("c", "000", ANN), ("d", "000", make_sentence(f"- {cell} -")))
    message = f"malformed mention {cell!r}; expected, for example, (3, 3), (3) or (3|(4)"
    assert refusal(read, "test", content) == f"{tmp_path}/test.conll:11: {message}"


def test_a_mention_must_not_run_over_a_sentences_end(tmp_path, read):
    content = conll(("d", "000", make_sentence("- (0"), make_sentence("0) -")))
    message = "a mention of cluster 0 is not closed before the sentence ends"
    assert refusal(read, "train", content) == f"{tmp_path}/train.conll:3: {message}"


def test_a_training_file_without_mentions_is_refused(tmp_path, read):
    content = conll(("nw/a", "000", RAIN), ("nw/b", "000", RAIN, RAIN))
    assert refusal(read, "train", content) == f"{tmp_path}/train.conll: no training document has a mention"
    for split in ("dev", "test"):
        assert [item.gold["clusters"] for item in read(content, split)] == [[], []]


@pytest.mark.parametrize("value", [0, -1, 2.5, "50", None])
def test_max_training_sentences_must_be_a_positive_whole_number(value):
    with pytest.raises(UserError, match=rf"max_training_sentences must be .* at least 1, found {value!r}$"):
        check_values("task.reader", {"_target_": READER, "max_training_sentences": value}, ())


@pytest.mark.parametrize("value", ["maybe", "true", 1, 0, None])
def test_ontonotes_must_be_true_or_false(value):
    with pytest.raises(UserError, match=rf"^task\.reader\.ontonotes must be true or false, found {value!r}$"):
        check_values("task.reader", {"_target_": READER, "max_training_sentences": 50, "ontonotes": value}, ())


def test_documents_without_mentions_are_counted_and_those_of_training_left_out(read):
    reader = CorefReader(max_training_sentences=100)
    content = conll(("nw/a", "000", RAIN), ("bc/b", "000", ANN), ("mz/c", "000", RAIN), ("bc/d", "000", IT))
    items = read(content, "train", reader)
    assert [item.gold["number"] for item in items] == [1, 3]
    assert reader.left_out == {"train documents without a mention": 2}
    reader.fit(items)
    assert reader.model_parts() == {"n_genres": 2}
    for split in ("dev", "test"):
        assert [item.gold["number"] for item in read(content, split, reader)] == [0, 1, 2, 3]
    assert reader.left_out == {f"{split} documents without a mention": 2 for split in ("train", "dev", "test")}


def test_mentions_in_two_clusters_are_counted_and_make_the_clusters_one_in_training_alone(read):
    reader = CorefReader(max_training_sentences=100)
    content = conll(("d", "000", make_sentence("(1) (2)|(1) (3) (3) (2)|(4)"), make_sentence("(4) (5 5)")))
    apart = [[(0, 1), (1, 2)], [(1, 2), (4, 5)], [(2, 3), (3, 4)], [(4, 5), (5, 6)], [(6, 8)]]
    for split in ("dev", "train"):
        (item,) = read(content, split, reader)
        found = item.gold["clusters"]
        assert sorted(found) == (apart if split == "dev" else [[(0, 1), (1, 2), (4, 5), (5, 6)], apart[2], apart[4]])
    assert reader.left_out == {"dev mentions in two clusters": 2, "train mentions in two clusters": 2}


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_mentions_that_cross_another_are_counted_and_stay_in_the_gold(read, split):
    reader = CorefReader(max_training_sentences=100)
    # 1 crosses 2 and 3, and 4 is within; the next sentence's cross nothing: nested, beside, at one end
    crossing = make_sentence("(1 (2 (3 1)|(4) 2) 3)")
    apart = make_sentence("(1|(2 (3 3)|2) (4 4) 1)")
    (item,) = read(conll(("d", "000", crossing, apart)), split, reader)
    assert reader.left_out == {f"{split} mentions that cross another": 3}
    clusters = [[(0, 4), (6, 12)], [(1, 5), (6, 9)], [(2, 6), (7, 9)], [(3, 4), (9, 11)]]
    assert [sorted(cluster) for cluster in item.gold["clusters"]] == clusters


@pytest.mark.parametrize(("split", "n_documents"), N_DOCUMENTS.items())
def test_ontonotes_must_have_as_many_documents_as_conll_2012(tmp_path, read, split, n_documents):
    documents = [(f"nw/{k}", "000", ANN) for k in range(n_documents)]
    for ontonotes in (False, True):
        reader = CorefReader(max_training_sentences=1, ontonotes=ontonotes)
        assert len(read(conll(*documents), split, reader)) == n_documents
    with pytest.raises(UserError) as error:
        read(conll(*documents[1:]), split, reader)
    assert str(error.value) == (
        f"{tmp_path}/{split}.conll: {n_documents - 1:,} documents, but {split} of CoNLL-2012 has {n_documents:,} "
        "(task.reader.ontonotes=false takes any number)"
    )
    reader.restore({"genres": ["nw"]})  # of a finished run, which is scored on any file
    assert len(read(conll(*documents[1:]), split, reader)) == n_documents - 1


def collated(reader, item):
    lengths = torch.tensor(item.gold["sentence_lengths"])
    mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
    char_ids = torch.zeros(*mask.shape, 1, dtype=torch.long)
    text = Text(item.sentences, torch.zeros(mask.shape, dtype=torch.long), char_ids, mask, None)
    batch = reader.collate([item], [text])
    assert batch.text is text
    assert batch.gold == [item.gold]
    assert {part.dtype for part in (batch.speakers, batch.genre, batch.mentions, batch.clusters)} == {torch.long}
    return batch


def test_a_batch_is_one_document_with_numbers_for_speakers_and_the_last_token_of_mentions(read):
    reader = CorefReader(max_training_sentences=100)
    items = read(conll(("nw/a", "000", ANN, RAIN, IT, ANN), ("bc/b", "000", RAIN, IT)), "train", reader)
    reader.fit(items)
    assert reader.model_parts() == {"n_genres": 3}
    batch = collated(reader, items[0])
    assert batch.speakers.tolist() == [0] * 5 + [1, 1, 2, 2, 1] + [0] * 5
    assert batch.mentions.tolist() == [[0, 0], [2, 2], [9, 9], [10, 10], [12, 12], [2, 3], [7, 7], [12, 13]]
    assert batch.clusters.tolist() == [0, 0, 0, 0, 0, 1, 1, 1]
    assert (batch.genre.tolist(), collated(reader, items[1]).genre.tolist()) == (2, 1)
    assert collated(reader, items[1]).speakers.tolist() == [0, 0, 1, 1, 0]


def test_a_genre_that_training_lacks_is_0_and_a_document_may_be_without_mentions(read):
    reader = CorefReader(max_training_sentences=100)
    reader.fit(read(conll(("nw/a", "000", ANN), ("aa/b", "000", RAIN)), "train", reader))
    seen, new = read(conll(("nw/c", "000", RAIN), ("aa/d", "000", IT)), "dev", reader)
    assert (collated(reader, seen).genre.tolist(), collated(reader, new).genre.tolist()) == (1, 0)
    empty = collated(reader, seen)
    assert (tuple(empty.mentions.shape), tuple(empty.clusters.shape)) == ((0, 2), (0,))


def test_a_cluster_that_shares_mentions_with_two_others_makes_the_three_one():
    apart = [[(0, 1), (2, 3)], [(4, 5), (6, 7)], [(8, 9)], [(2, 3), (4, 5)]]
    assert sorted(merged(apart)) == [[(0, 1), (2, 3), (4, 5), (6, 7)], [(8, 9)]]


def test_parts_of_a_document_stay_in_one_split(tmp_path):
    path = tmp_path / "train.conll"
    path.write_text(conll(*((f"nw/d{k // 3}", f"{k % 3:03}", ANN) for k in range(12))))
    reader = CorefReader(max_training_sentences=50)
    items = read_splits(reader, Files(str(tmp_path), {"train": path.name}, reader), dev_share=0.25)
    names = [{item.gold["name"] for item in items[split]} for split in ("train", "dev")]
    assert not names[0] & names[1]
    assert (len(items["train"]), len(items["dev"])) == (9, 3)
