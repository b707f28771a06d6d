import pytest

from elmo_tasks.data.columns import read_column_sentences
from elmo_tasks.data.ner import NerReader
from elmo_tasks.data.source import Files
from elmo_tasks.errors import UserError


@pytest.fixture
def read(tmp_path):
    def read(content, min_columns=2):
        path = tmp_path / "some.conll"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return [[tuple(row) for row in s.rows] for s in read_column_sentences(path, min_columns)]

    return read


A, B = ("EU", "NNP", "I-ORG"), ("rejects", "VBZ", "O")
C = ("Peter", "NNP", "I-PER")


@pytest.mark.parametrize(
    "content",
    [
        "EU NNP I-ORG\nrejects VBZ O\n\nPeter NNP I-PER\n\n",
        "-DOCSTART- -X- O\n\nEU NNP I-ORG\nrejects VBZ O\n\n-DOCSTART- -X- O\n\nPeter NNP I-PER\n\n",
        "-DOCSTART-\t-X-\tO\nEU\tNNP\tI-ORG\nrejects\tVBZ\tO\n-DOCSTART-\t-X-\tO\nPeter\tNNP\tI-PER\n",
        "EU NNP I-ORG\nrejects VBZ O\n\t\nPeter NNP I-PER\n\t\n",
        "\n\nEU NNP I-ORG\nrejects VBZ O\n \t \n\n\nPeter NNP I-PER",
        "EU  NNP \t I-ORG\nrejects VBZ O \n\nPeter NNP I-PER\n",
        "\ufeffEU NNP I-ORG\nrejects VBZ O\n\nPeter NNP I-PER\n",
        "EU NNP I-ORG\r\nrejects VBZ O\r\n\r\nPeter NNP I-PER\r\n",
    ],
    ids=["plain", "documents", "tabs", "tab-as-blank", "many-blanks-no-end", "many-spaces", "byte-order-mark", "crlf"],
)
def test_the_same_two_sentences_are_read_from_every_layout(read, content):
    assert read(content) == [[A, B], [C]]


def test_only_ascii_white_space_separates_columns(read):
    assert read("2\u00a01/2 O\nx\u2028y\u0085z O\n") == [[("2\u00a01/2", "O"), ("x\u2028y\u0085z", "O")]]


def test_each_token_knows_its_line(tmp_path):
    path = tmp_path / "f"
    path.write_text("-DOCSTART- O\n\n\na O\nb O\n\t\nc O\n")
    first, second = read_column_sentences(path, 2)
    assert [first.where(0), first.where(1), second.where()] == [f"{path}:4", f"{path}:5", f"{path}:7"]
    assert (first.tokens, second.tokens) == (["a", "b"], ["c"])


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("a O\n\nb O\nc\nd O\n", 4, "expected at least 2 columns, found 1"),
        ("a O\n\nb O\n" + "x" * 5000 + " O\n", 4, "a token of 5000 characters"),
        ("a O\n\nNew York\tB-LOC\n", 3, r"expected 2 columns, as in line 1, found 3: 'New York\\tB-LOC'"),
        ("a\t_\tO\nb\t\tO\n", 2, "expected 3 columns, as in line 1, found 2"),
        (b"a O\nb O\n\xe9t\xe9 O\nc O\n", 3, "not UTF-8"),
        (b"a O\n" * 3000 + b"\xe9t\xe9 O\n", 3001, "not UTF-8"),
    ],
    ids=["column-missing", "token-too-long", "space-in-a-token", "empty-column", "not-utf8", "not-utf8-far-down"],
)
def test_malformed_content_is_refused_with_file_and_line(read, content, line, message):
    with pytest.raises(UserError, match=rf"some\.conll:{line}: .*{message}"):
        read(content)


def test_a_token_of_1000_characters_is_still_a_token(read):
    assert len(read("x" * 1000 + " O\n")[0][0][0]) == 1000


@pytest.mark.parametrize("content", ["", "\n\n", "-DOCSTART- -X- O O\n\n", "\ufeff"])
def test_a_file_without_a_sentence_is_refused_as_empty(tmp_path, content):
    for split in ("train", "dev", "test"):
        (tmp_path / split).write_text(content, "utf-8")
    files = Files(str(tmp_path), {split: split for split in ("train", "dev", "test")}, NerReader())
    with pytest.raises(UserError, match=r"/dev: nothing to use in it; expected the dev split"):
        files.read(NerReader(), "dev")


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_named(read, codec):
    mark = b"" if codec == "utf-16" else "\ufeff".encode(codec)
    with pytest.raises(UserError, match=r"some\.conll: UTF-16, which is not read; convert it to UTF-8"):
        read(mark + "EU I-ORG\n".encode(codec))


def test_lines_that_end_in_cr_alone_are_named(read):
    assert len(read("EU I-ORG\r\n\r\n")) == 1
    with pytest.raises(
        UserError, match=r"some\.conll:1: a carriage return within the line; expected lines ending in LF"
    ):
        read("EU I-ORG\rrejects O\r\r")


def test_a_file_whose_first_column_is_numbers_is_no_column_file(read):
    for first in ("# newdoc id = w-1", "# newpar id = w-1-p1", "# newdoc", "# newpar "):
        with pytest.raises(UserError, match=r":1: CoNLL-U or CoNLL-X, whose first column has no words"):
            read(f"{first}\n1\tThe\n")
    lines = ["# sent_id = a-1", "# text = The cat", "1\tThe\tthe\tDET", "2\tcat\tcat\tNOUN", "", ""]
    for begin in (0, 1):
        with pytest.raises(UserError, match=r"some\.conll:1: CoNLL-U or CoNLL-X, .* cut -f2,4$"):
            read("\n".join(lines[begin:]))
    assert read("# SYM\nsent_id NN\n") == [[("#", "SYM"), ("sent_id", "NN")]]


@pytest.mark.parametrize("number", ["1", "1-2"])
def test_numbered_tokens_without_a_comment_are_no_words(read, number):
    line = f"{number}\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n"
    with pytest.raises(UserError, match=r"some\.conll:1: CoNLL-U or CoNLL-X, whose first column has no words"):
        read(line + line.replace("The", "cat"))
    assert read("1 CD\n") == [[("1", "CD")]]
    words = "Up" + "\tIN" * 9
    assert [len(sentence) for sentence in read(f"{words}\n\n{line}")] == [1, 1]
