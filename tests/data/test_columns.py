import pytest

from elmo_tasks.data.columns import read_column_sentences
from elmo_tasks.data.layout import ColumnLayout
from elmo_tasks.data.ner import NerReader
from elmo_tasks.data.numbering import are_numbered, counts
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
        "\ufeff-DOCSTART- -X- O\n\nEU NNP I-ORG\nrejects VBZ O\n\n\ufeff-DOCSTART- -X- O\n\nPeter NNP I-PER\n",
        "EU NNP I-ORG\nrejects VBZ O\n\n\ufeffPeter NNP I-PER\n",
        "EU NNP I-ORG\nrejects VBZ O\n\u00a0\nPeter NNP I-PER\n",
        "EU NNP I-ORG\nrejects VBZ O\n\u3000 \t\nPeter NNP I-PER\n\f\n",
        "EU NNP I-ORG\r\nrejects VBZ O\r\n\r\nPeter NNP I-PER\r\n",
    ],
    ids=[
        *["plain", "documents", "tabs", "tab-as-blank", "many-blanks-no-end", "many-spaces", "byte-order-mark"],
        *["mark-before-a-document", "mark-before-a-token", "no-break-space", "ideographic-space-form-feed", "crlf"],
    ],
)
def test_the_same_two_sentences_are_read_from_every_layout(read, content):
    assert read(content) == [[A, B], [C]]


def test_a_mark_within_a_line_is_part_of_its_token(read):
    assert read("Dubbz\ufeff B-person\n") == [[("Dubbz\ufeff", "B-person")]]


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


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("1 2 3", True),
        ("0 1 2", True),
        ("1", True),
        ("1-2 1 2 3", True),
        ("1 1.1 2-3 2 3 3.1 3.2", True),
        ("0.1 1 2", True),
        ("7-1 7-2 7-3", True),
        ("01 02 03", True),
        ("2 3 4", False),
        ("1 3 2", False),
        ("1 2 2", False),
        ("1 1.50 2.75", False),
        ("1-2 3 4", False),
        ("3-4 1 2", False),
        ("7-1 8-2", False),
        ("1 2 three", False),
        ("1-2", False),
        ("-1 0 1", False),
    ],
)
def test_a_column_counts_if_it_is_one_to_n_or_less_one(column, expected):
    assert counts(column.split()) == expected


def rows(*sentences):
    return [[[*token.split("/"), "x"] for token in sentence.split()] for sentence in sentences]


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        (rows("1/EU 2/rejects"), True),
        (rows("0/The 1/dog", "0/It 1/ran"), True),
        (rows("1/a 2/b", "3/c 4/d"), True),
        (rows("1/Yes", "1/No"), True),
        (rows("1/Yes"), False),
        (rows("1/CD 2/CD 3/CD"), False),
        (rows("1/CD 2/CD", "1/CD 2/CD 3/CD"), False),
        (rows("1/CD 2/CD 3/.", "The/DT dog/NN"), False),
        (rows("3/CD 2/CD 1/.", "1/a 2/b"), False),
        (rows("1/a", "2/b", "3/c"), False),
        ([[["1", "The"], ["2", "dog"]]], False),
        ([[["1", "The"], ["2", "dog"]], [["1", "It"], ["2", "ran"]]], True),
    ],
)
def test_a_file_counts_its_tokens_if_all_of_its_first_sentences_do_and_there_is_enough_to_tell_by(sentences, expected):
    assert are_numbered(sentences) == expected


def test_ten_sentences_are_looked_at(read):
    counted = "1 The DT\n2 dog NN\n\n"
    assert len(read(counted * 9 + "It PRP O\n")) == 10
    with pytest.raises(UserError, match=r"some\.conll:1: .*\(found 1, 2\); add, .*token_column=2 .*tag_column=3"):
        read(counted * 10 + "It PRP O\n")


def test_a_line_that_is_no_comment_of_conll_u_may_begin_as_one(read):
    with pytest.raises(UserError, match=r":3: expected 4 columns, as in line 1, found 2: .*comment='#'\" leaves out"):
        read("# source = x\n# a b c\nThe DT\n")


SHARED = "EU NNP B-ORG\n# SYM O\n"


def test_a_line_of_as_many_columns_may_be_a_comment_or_a_token(tmp_path):
    path = tmp_path / "f"
    path.write_text("# a comment of many words\n" + SHARED)
    either = ColumnLayout(comments=("#",))
    with pytest.raises(
        UserError, match=r"f:3: begins as a comment and has as many columns as a token: '# SYM O'; set "
    ):
        list(read_column_sentences(path, 2, layout=either))
    (found,) = read_column_sentences(
        path, 2, layout=ColumnLayout(comments=("#",), is_tag=lambda tag: tag in ("O", "B-ORG"))
    )
    assert (found.tokens, found.tags, found.where(1)) == (["EU", "#"], ["B-ORG", "O"], f"{path}:3")
    path.write_text(SHARED + "# SYM comment\n")
    (found,) = read_column_sentences(
        path, 2, layout=ColumnLayout(comments=("#",), is_tag=lambda tag: tag in ("O", "B-ORG"))
    )
    assert found.tokens == ["EU", "#"]


@pytest.mark.parametrize(
    ("layout", "column"), [(ColumnLayout(token=3), 3), (ColumnLayout(tag=1), 1), (ColumnLayout(-1, -1), 3)]
)
def test_one_column_is_not_both(tmp_path, layout, column):
    (tmp_path / "f").write_text(SHARED)
    with pytest.raises(
        UserError, match=rf"f:1: column {column} of 3 is both the token's and the tag's; set task.reader."
    ):
        list(read_column_sentences(tmp_path / "f", 2, layout=layout))


def test_lines_of_conll_u_that_are_no_tokens_are_left_out_where_the_first_column_counts(tmp_path):
    (tmp_path / "f").write_text("1-2 du X\n1 de ADP\n2 le DET\n2.1 e X\n\n1-2 a X\n3 b X\n\n1.1 c X\n")
    found = list(read_column_sentences(tmp_path / "f", 2, layout=ColumnLayout(token=2)))
    assert [sentence.tokens for sentence in found] == [["de", "le"], ["a", "b"], ["c"]]
    assert found[0].where(1) == f"{tmp_path}/f:3"


def test_a_sentence_has_other_columns_only_where_it_counts_its_tokens_and_no_word_has_a_space(tmp_path):
    path = tmp_path / "f"
    path.write_text("1\tIt\tPRP\t_\n2\tran\tVBD\t_\n\n1\tYes\tUH\n")
    assert [s.tokens for s in read_column_sentences(path, 2, layout=ColumnLayout(2, 3))] == [["It", "ran"], ["Yes"]]
    for second in ("1 New York NNP O\n", "1\tNew York\tNNP\tO\n", "1\tYes\tUH\n3\tNo\tUH\n"):
        path.write_text("1\tIt\tPRP\t_\n2\tran\tVBD\t_\n\n" + second)
        with pytest.raises(UserError, match=r"f:4: expected 4 columns, as in line 1, found [35]"):
            list(read_column_sentences(path, 2, layout=ColumnLayout(2, 3)))


@pytest.mark.parametrize("name", ["utf-8-sig", "utf_8_sig", "UTF-8-SIG"])
def test_the_encoding_of_files_with_a_mark_may_be_named(tmp_path, name):
    (tmp_path / "f").write_text("\ufeffZoë B-PER\n", "utf-8")
    reader = NerReader(encoding=name)
    assert (reader.encoding, reader.read_file(tmp_path / "f", "train")[0].tokens) == ("utf-8", ["Zoë"])


@pytest.mark.parametrize("name", ["latin-1", "cp949"])
def test_the_mark_of_utf_8_in_another_encoding_is_named(tmp_path, name):
    (tmp_path / "f").write_text("\ufeffAnn B-PER\n", "utf-8")
    with pytest.raises(
        UserError, match=r"f:1: begins with the mark of UTF-8, but task\.reader\.encoding=.*; set it to utf-8"
    ):
        NerReader(encoding=name).read_file(tmp_path / "f", "train")
