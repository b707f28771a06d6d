import bz2
import gzip
import lzma
import tracemalloc
from collections import Counter
from unicodedata import normalize

import pytest

from elmo_tasks.data.corpus import LmVocabulary, TextFiles, find_shards, read_sentences
from elmo_tasks.data.ner import NerReader
from elmo_tasks.data.source import Files
from elmo_tasks.data.task_text import TaskText
from elmo_tasks.errors import UserError

TEXT = "The cat sat .\n\n  \nÜnïcode\t日本  !\nlast line"
SENTENCES = [["The", "cat", "sat", "."], ["Ünïcode", "日本", "!"], ["last", "line"]]
COMPRESS = {"": bytes, ".txt": bytes, ".xz": lzma.compress, ".gz": gzip.compress, ".bz2": bz2.compress}


def write(folder, suffix, data):
    path = folder / f"text{suffix}"
    path.write_bytes(COMPRESS[suffix](data))
    return path


def refusal(path):
    with pytest.raises(UserError) as caught:
        list(read_sentences(path))
    return str(caught.value)


def decomposed(word):
    return normalize("NFD", word)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_sentences_are_read_whatever_the_compression(tmp_path, suffix):
    assert list(read_sentences(write(tmp_path, suffix, TEXT.encode()))) == SENTENCES


@pytest.mark.parametrize("suffix", [".xz", ".gz", ".bz2"])
def test_a_compressed_text_without_its_ending_is_named(tmp_path, suffix):
    path = write(tmp_path, suffix, TEXT.encode()).rename(tmp_path / "text")
    assert refusal(path) == f"{path}: compressed; expected text, or a name that ends in .xz, .gz, .bz2"


def test_words_are_composed_and_keep_compatibility_characters(tmp_path):
    text = ["naïve", "한국", "ﬁne", "m²"]
    path = write(tmp_path, "", " ".join(text[:2] + list(map(decomposed, text))).encode())
    assert list(read_sentences(path)) == [[*text[:2], *text]]


def test_words_of_a_task_s_text_have_one_spelling_too(tmp_path):
    for name in ("train", "dev"):
        (tmp_path / name).write_text(f"{decomposed('naïve')} x x B-X\nm² x x O\n", "utf-8")
    source = Files(str(tmp_path), {"train": "train", "dev": "dev", "test": None}, NerReader())
    text = TaskText(reader=NerReader(), source=source, fraction=1.0, seed=0)
    assert [list(text.shards(split)) for split in ("train", "dev")] == [[[["naïve", "m²"]]]] * 2


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_byte_order_mark_and_crlf_ends_are_removed(tmp_path, suffix):
    data = b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode()
    assert list(read_sentences(write(tmp_path, suffix, data))) == SENTENCES


def test_reading_streams(tmp_path):
    path = write(tmp_path, ".xz", b"a b\n" * 100_000 + b"\xff\n")
    assert next(read_sentences(path)) == ["a", "b"]


@pytest.mark.parametrize("suffix", ["", ".xz"])
def test_text_that_is_not_utf8_is_refused_with_its_file(tmp_path, suffix):
    path = write(tmp_path, suffix, b"\xe9t\xe9\n")
    assert refusal(path).startswith(f"{path}:1: not UTF-8")


@pytest.mark.parametrize("n_before", [1, 5000])
@pytest.mark.parametrize("suffix", ["", ".xz"])
def test_text_that_is_not_utf8_is_refused_with_its_line(tmp_path, suffix, n_before):
    path = write(tmp_path, suffix, b"a good line\n" * n_before + b"\xe9t\xe9\n")
    assert refusal(path).startswith(f"{path}:{n_before + 1}: not UTF-8")


@pytest.mark.parametrize("suffix", [".xz", ".gz", ".bz2"])
@pytest.mark.parametrize("keep", [0.5, 0.98])
def test_a_truncated_file_is_refused(tmp_path, suffix, keep):
    path = write(tmp_path, suffix, b"".join(b"%d\n" % (k * k) for k in range(5000)))
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
    assert refusal(path).startswith(f"{path}: cannot be read")


@pytest.mark.parametrize(
    "suffix",
    [
        ".xz",
        ".gz",
        ".bz2",
    ],
)
def test_a_file_damaged_inside_is_refused(tmp_path, suffix):
    path = write(tmp_path, suffix, b"".join(b"%d\n" % (k * k) for k in range(5000)))
    data = path.read_bytes()
    middle = len(data) // 2
    path.write_bytes(data[:middle] + bytes(200) + data[middle + 200 :])
    assert refusal(path).startswith(f"{path}: cannot be read")


@pytest.mark.parametrize("suffix", [".xz", ".gz", ".bz2"])
def test_a_file_that_is_not_compressed_is_refused(tmp_path, suffix):
    path = tmp_path / f"text{suffix}"
    path.write_bytes(b"plain text\n")
    assert refusal(path).startswith(f"{path}: cannot be read")


def test_a_missing_file_is_refused(tmp_path):
    assert refusal(tmp_path / "nowhere").startswith(f"{tmp_path / 'nowhere'}: cannot be read")


def test_a_whole_text_on_one_line_is_refused(tmp_path):
    path = write(tmp_path, "", b"a b\n" + b"w " * 5001)
    assert refusal(path).startswith(f"{path}:2: 5001 tokens")


def test_shards_are_found_sorted(tmp_path):
    for name in ("b-1.txt", "a-2.txt", "a-10.txt", "other.md"):
        (tmp_path / name).touch()
    assert [path.name for path in find_shards(tmp_path, "*.txt", "lm.train")] == ["a-10.txt", "a-2.txt", "b-1.txt"]


def test_no_shards_are_refused_with_the_option(tmp_path):
    with pytest.raises(UserError, match=r"\*\.txt: no text found; set lm\.train"):
        find_shards(tmp_path, "*.txt", "lm.train")


@pytest.fixture
def shards(tmp_path):
    texts = ["b a c\na b a\n", "d a b <UNK>\nc <S> c\n\n"]  # a 4, b 3, c 3, d 1
    for k, text in enumerate(texts):
        (tmp_path / f"{k}.txt").write_text(text)
    return sorted(tmp_path.glob("*.txt"))


MARKS = ["<S>", "</S>", "<UNK>"]


@pytest.mark.parametrize(
    ("max_size", "min_count", "expected"),
    [(100, 1, ["a", "b", "c", "d"]), (5, 1, ["a", "b"]), (3, 1, []), (100, 2, ["a", "b", "c"]), (100, 4, ["a"])],
)
def test_a_vocabulary_has_the_marks_first_and_then_the_most_frequent_words(shards, max_size, min_count, expected):
    counts = Counter(word for shard in shards for sentence in read_sentences(shard) for word in sentence)
    vocabulary = LmVocabulary.from_counts(counts, max_size, min_count)
    assert vocabulary.words == MARKS + expected
    assert [vocabulary[word] for word in vocabulary.words] == list(range(len(vocabulary)))


def test_words_outside_the_vocabulary_are_unknown(shards):
    counts = Counter(word for shard in shards for sentence in read_sentences(shard) for word in sentence)
    vocabulary = LmVocabulary.from_counts(counts, 5, 1)
    assert vocabulary["c"] == vocabulary["never"] == vocabulary["<UNK>"] == 2


def test_a_vocabulary_comes_back_from_its_file(tmp_path):
    path = tmp_path / "vocabulary.txt"
    path.write_text("\n".join([*MARKS, "the", "日本"]) + "\n", "utf-8")
    assert LmVocabulary.read(path).words == [*MARKS, "the", "日本"]


def test_the_words_of_a_vocabulary_are_spelt_as_those_of_a_text(tmp_path):
    path = tmp_path / "vocabulary.txt"
    path.write_text("\n".join([*MARKS, decomposed("é"), decomposed("naïve"), "naïve", "m²"]) + "\n", "utf-8")
    vocabulary = LmVocabulary.read(path)
    assert vocabulary.words == [*MARKS, "é", decomposed("naïve"), "naïve", "m²"]
    (tmp_path / "text").write_text(decomposed("é naïve m²"), "utf-8")
    assert [vocabulary[word] for word in next(read_sentences(tmp_path / "text"))] == [3, 5, 6]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "b"], r"the first three lines must be <S> </S> <UNK>, found a b$"),
        (["</S>", "<S>", "<UNK>"], r"found </S> <S> <UNK>$"),
        ([], r"found nothing$"),
        ([*MARKS, "a", "b", "a"], r"'a' is in it twice$"),
    ],
)
def test_a_file_that_is_no_vocabulary_is_refused(tmp_path, words, message):
    path = tmp_path / "vocabulary.txt"
    path.write_text("".join(f"{word}\n" for word in words))
    with pytest.raises(UserError, match=rf"^{path}: .*{message}"):
        LmVocabulary.read(path)


@pytest.mark.parametrize("suffix", ["", ".xz"])
def test_a_line_without_end_is_refused_and_never_held_in_memory(tmp_path, suffix):
    path = write(tmp_path, suffix, b"a b\n" + b"w " * 15_000_000)
    tracemalloc.start()
    message = refusal(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert message == f"{path}:2: more than 1,000,000 bytes in a line; expected lines of text"
    assert peak < 15_000_000  # the line has 30 million; the dictionary of xz takes 8


def test_each_file_of_a_text_is_a_shard(tmp_path):
    for name in ("train-0", "train-1", "train-2", "heldout"):
        (tmp_path / f"{name}.txt").write_text(f"{name}\nend\n")
    text = TextFiles(root=str(tmp_path), train="train-*", heldout="heldout*")
    assert [list(shard) for shard in text.shards("train")] == [[[f"train-{k}"], ["end"]] for k in range(3)]
    assert [list(shard) for shard in text.shards("dev")] == [[["heldout"], ["end"]]]


def test_a_pattern_that_is_no_pattern_below_the_root_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"^task\.lm\.train=/.*: expected a file pattern below data\.root"):
        find_shards(tmp_path, str(tmp_path / "*.txt"), "task.lm.train")
    with pytest.raises(UserError, match=r"^task\.lm\.train='en/\*\*\.txt' is no path or pattern"):
        find_shards(tmp_path, "en/**.txt", "task.lm.train")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("1\tThe dog ran .\n2\tIt rained .\n3\tYes .\n", 3),
        ("41\tThe dog ran .\n42\tIt rained .\n43\tYes .\n", 3),
        ("1\tThe\tDT\n2\tdog\tNN\n3\tran\tVBD\n\n1\tIt\tPRP\n", 3),
        ("# sent_id = 1\n# text = The dog\n1\tThe\tDT\n", 1),
    ],
    ids=["numbered", "numbered-from-41", "columns", "conll-u"],
)
def test_numbers_before_the_sentences_are_refused(tmp_path, text, line):
    path = tmp_path / "text"
    path.write_text(text)
    with pytest.raises(
        UserError, match=rf"text:{line}: numbered lines, or CoNLL-U; .*; cut -f2- FILE takes the numbers off"
    ):
        list(read_sentences(path))


@pytest.mark.parametrize("text", ["1 a\n2 b\n3 c\n", "1\ta\n2\tb\n4\tc\n", "1\ta\n2\tb\n", "a\n1\tb\n2\tc\n3\td\n"])
def test_sentences_may_begin_with_numbers(tmp_path, text):
    (tmp_path / "text").write_text(text)
    assert list(read_sentences(tmp_path / "text")) == [line.split() for line in text.splitlines()]
