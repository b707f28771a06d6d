import subprocess

import pytest

from elmo_tasks.data.clusters import read_clusters
from elmo_tasks.data.conll2012 import FRAMESET, LEMMA, SPEAKER, conll_files, read_documents
from elmo_tasks.errors import UserError

BEGIN, END = "#begin document (a/b); part 000", "#end document"


def row(word, *cells):
    return " ".join(["a/b", "0", "0", word, "NN", "*", "-", "-", "-", "-", "*", *cells, "-"])


def document(*words, name="a/b", part="000"):
    return "\n".join([f"#begin document ({name}); part {part}", *map(row, words), "", END, ""])


@pytest.fixture
def read(tmp_path):
    def read(content):
        path = tmp_path / "some.conll"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return list(read_documents(path))

    return read


def read_words(documents):
    return [[sentence.tokens for sentence in d.sentences] for d in documents]


A, B, C = row("Ann", "(ARG0*)"), row("left", "(V*)"), row("Yes")


@pytest.mark.parametrize(
    "content",
    [
        f"{BEGIN}\n{A}\n{B}\n\n{C}\n\n{END}\n",
        f"{BEGIN}\n{A}\n{B}\n\n{C}\n\n{END}\n".replace(f"{A}\n{B}", f"{A}\n{B}".replace(" ", "\t")),
        f"{BEGIN}\n{A}\n{B}\n\n{C}\n{END}",
        f"\n\n{BEGIN}\n\n{A}\n{B}\n \t \n\n{C}\n\n\n{END}\n\n \n",
        f"{BEGIN}\n{A}\n{B}\n\n{C}\n\n{END}\n".replace(" NN ", "   NN \t "),
        f"\ufeff{BEGIN}\n{A}\n{B}\n\n{C}\n\n{END}\n",
        f"{BEGIN}\n{A}\n{B}\n\n{C}\n\n{END}\n".replace("\n", "\r\n"),
    ],
    ids=["spaces", "tabs", "no-blank-at-the-end", "many-blanks", "many-spaces", "byte-order-mark", "crlf"],
)
def test_the_same_two_sentences_are_read_from_every_layout(read, content):
    (found,) = read(content)
    assert read_words([found]) == [[["Ann", "left"], ["Yes"]]]
    assert (found.name, found.part) == ("a/b", "000")
    assert found.sentences[0].rows == [A.split(), B.split()]
    assert found.sentences[0].spans(11) == [(0, 1, "ARG0"), (1, 2, "V")]


def test_documents_and_their_parts_come_in_order(read):
    content = document("a", name="x/1") + document("b", "c", name="x/1", part="001") + "\n" + document("d", name="(y)")
    found = read(content)
    assert [(d.name, d.part, d.line) for d in found] == [("x/1", "000", 1), ("x/1", "001", 5), ("(y)", "000", 11)]
    assert read_words(found) == [[["a"]], [["b", "c"]], [["d"]]]


@pytest.mark.parametrize("begin", ["#begin document (a)", "#begin document (a);", "#begin document (a); "])
def test_a_document_may_have_no_part(read, begin):
    (found,) = read(f"{begin}\n{A}\n{END}\n")
    assert (found.name, found.part) == ("a", "000")


def test_a_folder_of_several_splits_is_refused(tree):
    folder = tree("train.conll", "dev.conll", "other.conll")
    with pytest.raises(UserError, match=r"/tree: dev.conll and train.conll; expected the folder of one split"):
        conll_files(folder)


NUMBERED = "1\tThe\t_\tDT\tDT\t_\t2\tNMOD\n2\tdog\t_\tNN\tNN\t_\t0\tROOT\n"


@pytest.mark.parametrize("comment", ["", "# sent_id = 1\n", "# newdoc id = a\n"])
@pytest.mark.parametrize("text", [NUMBERED, NUMBERED.replace("\t", " "), NUMBERED.replace("1\t", "0\t", 1)])
def test_a_file_whose_first_column_is_numbers_is_named(read, comment, text):
    with pytest.raises(
        UserError, match=r"some\.conll:1: CoNLL-U or CoNLL-X, whose first column has no words; expected"
    ):
        read(comment + text)


@pytest.mark.parametrize("column", [0, 3])
def test_numbers_in_the_place_of_documents_or_words_are_refused(read, column):
    sentence = [row(word).split() for word in ("Ann", "left", "Oslo")]
    for k, cells in enumerate(sentence):
        cells[column] = str(k + 1)
    lines = "\n".join(map(" ".join, sentence))
    with pytest.raises(UserError, match=rf"some\.conll:2: column {column + 1} counts the tokens, as in CoNLL-U"):
        read(f"{BEGIN}\n{lines}\n\n{lines}\n\n{END}\n")
    assert read_words(read(f"{BEGIN}\n{row('1')}\n{row('2')}\n\n{C}\n\n{END}\n")) == [[["1", "2"], ["Yes"]]]


def test_three_columns_become_those_of_the_format_with_the_command_that_is_named(tmp_path, read):
    words, cells = ["Anna", "saw", "her"], ["(0)", "_", "(0)"]
    three = "\n".join(f"{k}\t{word}\t{cell}" for k, (word, cell) in enumerate(zip(words, cells, strict=True)))
    text = f"# begin document \n{three}\n\n0\tYes\t_\n"
    with pytest.raises(UserError, match=r"some\.conll:1: three columns, as in OntoGUM .*; put an empty line") as error:
        read(text)
    command = str(error.value).partition("type: ")[2].replace("FILE", str(tmp_path / "three"))
    (tmp_path / "three").write_text(text)
    out = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
    (found,) = read(out)
    assert read_words([found]) == [[words, ["Yes"]]]
    assert read_clusters(found) == [[(0, 1), (2, 3)]]


def test_each_token_knows_its_line(read, tmp_path):
    (found,) = read(f"{BEGIN}\n\n{A}\n{B}\n\n\n{C}\n{END}\n")
    first, second = found.sentences
    path = tmp_path / "some.conll"
    assert [first.where(), first.where(1), second.where()] == [f"{path}:3", f"{path}:4", f"{path}:7"]


def test_columns_are_those_of_the_format(read):
    (found,) = read(f"{BEGIN}\nd 0 0 ran VBD * run 02 1 Ann * (V*) (5)\n{END}\n")
    (sentence,) = found.sentences
    assert (sentence.column(LEMMA), sentence.column(FRAMESET)) == (["run"], ["02"])
    assert sentence.rows[0][-1] == "(5)"


def test_only_ascii_white_space_separates_columns(read):
    words = ["2\u00a01/2", "x\u2028y\u0085z"]
    assert read_words(read(document(*words))) == [[words]]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("-LRB-", "("),
        ("-RRB-", ")"),
        ("-LSB-", "["),
        ("-RSB-", "]"),
        ("-LCB-", "{"),
        ("-RCB-", "}"),
        (":--RRB-", ":-)"),
        ("f-LRB-x-RRB-", "f(x)"),
        ("/.", "."),
        ("/?", "?"),
        ("/-", "-"),
        *((word, word) for word in ["/", "//", "\\", "\\\\", "/a", "/5", "/..", "and/or", "-", "--", "-lrb-", "LRB"]),
    ],
)
def test_escapes_are_undone_and_other_words_stay(read, written, meant):
    assert read_words(read(document("a", written))) == [[["a", meant]]]


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (f"{A}\n{END}\n", 1, "expected #begin document .*found 'a/b 0 0 Ann"),
        (f"#begin document a/b\n{A}\n{END}\n", 1, "expected #begin document .*found '#begin document a/b'"),
        (f"{BEGIN}\n{A}\n\n{BEGIN}\n{B}\n{END}\n", 4, "expected #end document for the document of line 1 first"),
        (f"{BEGIN}\n{A}\n{BEGIN}\n{B}\n{END}\n", 3, "expected #end document for the document of line 1 first"),
        (f"{BEGIN}\n{A}\n{END}\n\n{C}\n", 5, "expected #begin document .*found 'a/b 0 0 Yes"),
        (f"{BEGIN}\n{A}\n{END}\n{END}\n", 4, "expected #begin document .*found '#end document'"),
        (f"{BEGIN}\n{A}\n{END}\n{BEGIN}\n\n{END}\n", 4, r"an empty document \(a/b\)"),
        (f"{BEGIN}\n{A}\n{B[:-2]}\n{END}\n", 3, "12 columns, but 13 at the sentence's first token"),
        (f"{BEGIN}\n{A}\n\n{C}\n{A}\n{END}\n", 5, "13 columns, but 12 at the sentence's first token"),
        (f"{BEGIN}\n{A}\n\n{C[:-2]}\n{END}\n", 4, "expected at least 12 columns, found 11"),
        (f"{BEGIN}\n{row('x' * 1001)}\n{END}\n", 2, "a token of 1001 characters"),
        (f"{BEGIN}\n{A}\n".encode() + row("été").encode("latin-1") + b"\n#end document\n", 3, "not UTF-8"),
    ],
    ids=[
        *["no-begin", "begin-without-name", "second-begin", "second-begin-in-a-sentence", "text-after-the-end"],
        *["second-end", "empty-document", "column-missing", "column-too-many", "too-few-columns", "token-too-long"],
        "not-utf8",
    ],
)
def test_malformed_content_is_refused_with_file_and_line(read, content, line, message):
    with pytest.raises(UserError, match=rf"some\.conll:{line}: .*{message}"):
        read(content)


@pytest.mark.parametrize("content", [f"{BEGIN}\n{A}\n\n", f"{BEGIN}\n{A}", f"{BEGIN}\n"])
def test_a_file_that_ends_within_a_document_is_refused_with_the_line_where_that_began(read, content):
    with pytest.raises(UserError, match=r"some\.conll:5: the file ends without #end document"):
        read(document("a") + content)


def read_spans(read, cells):
    lines = [row("w", cell) for cell in cells.split()]
    (found,) = read("\n".join([BEGIN, *lines, END]))
    return found.sentences[0].spans(11)


@pytest.mark.parametrize(
    ("cells", "spans"),
    [
        ("* * *", []),
        ("(V*)", [(0, 1, "V")]),
        ("(ARG0* *) (V*) (C-ARG1* * *)", [(0, 2, "ARG0"), (2, 3, "V"), (3, 6, "C-ARG1")]),
        ("* (ARGM-TMP*) (ARGM-TMP*) *", [(1, 2, "ARGM-TMP"), (2, 3, "ARGM-TMP")]),
    ],
)
def test_spans_are_read_from_brackets(read, cells, spans):
    assert read_spans(read, cells) == spans


@pytest.mark.parametrize("cell", ["ARG0*", "(ARG0", "(ARG0)", "(*)", "*(", "(V**)", "*)(V*)", "((V*)", "V"])
def test_a_malformed_cell_is_refused_with_its_line(read, cell):
    with pytest.raises(
        UserError, match=r"some\.conll:3: malformed span '.*'; expected, for example, \(ARG0\*"
    ) as error:
        read_spans(read, f"* {cell} *")
    assert repr(cell) in str(error.value)


@pytest.mark.parametrize(
    ("cells", "line", "message"),
    [
        ("* (ARG0* * *", 3, "the span ARG0 is not closed before the sentence ends"),
        ("(V*) * (ARG0*", 4, "the span ARG0 is not closed"),
        ("* *)", 3, r"a closing bracket has no opening bracket \('\*\)'\)"),
        ("(ARG0* *) *) *", 4, "a closing bracket has no opening bracket"),
        ("* (V*))", 3, "a closing bracket has no opening bracket"),
        ("(ARG0* (V*) *)", 3, "V begins within ARG0; spans must not overlap"),
        ("(ARG0* * (V* *))", 4, "V begins within ARG0"),
        ("* (ARG0(V*))", 3, "V begins within ARG0"),
    ],
)
def test_brackets_that_do_not_pair_up_are_refused_with_their_line(read, cells, line, message):
    with pytest.raises(UserError, match=rf"some\.conll:{line}: {message}"):
        read_spans(read, cells)


@pytest.fixture
def tree(tmp_path):
    def tree(*names):
        for name in names:
            path = tmp_path / "tree" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(document(name))
        return tmp_path / "tree"

    (tmp_path / "tree").mkdir()
    return tree


@pytest.mark.parametrize(
    ("names", "read"),
    [
        (["b/two_conll", "a/x/one_conll", "a/notes.txt", "a/one.conll"], ["a/x/one_conll", "b/two_conll"]),
        (["a/1.v4_gold_conll", "a/1.v4_auto_conll", "a/1.v4_gold_skel"], ["a/1.v4_gold_conll"]),
        (["b/2.v4_gold_conll", "b/1.v4_gold_conll", "a/9.v4_gold_conll", "a/8_conll"], None),
        (["one_conll"], ["one_conll"]),
        (["2_book_brat.conll", "10_book_brat.conll", "a/notes.txt"], ["10_book_brat.conll", "2_book_brat.conll"]),
    ],
)
def test_a_folder_is_read_file_by_file_and_gold_is_preferred(tree, names, read):
    read = read or ["a/9.v4_gold_conll", "b/1.v4_gold_conll", "b/2.v4_gold_conll"]
    folder = tree(*names)
    assert conll_files(folder) == [folder / name for name in read]
    assert read_words(read_documents(folder)) == [[[name]] for name in read]


def test_a_folder_of_several_languages_is_refused(tree):
    folder = tree("english/a/1_conll", "chinese/a/1_conll")
    with pytest.raises(UserError, match=r": files of chinese and english; expected the folder of one language$"):
        conll_files(folder)
    assert conll_files(folder / "english") == [folder / "english/a/1_conll"]


def test_links_are_followed_below_a_folder_too_and_each_folder_is_read_once(tree, tmp_path):
    folder = tree("b/1_gold_conll", "d/3_gold_conll")
    for name in ("deep/2_gold_conll", "deep/a/0_gold_conll"):
        (tmp_path / "elsewhere" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "elsewhere" / name).write_text(document(name))
    (folder / "c").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (folder / "b" / "round").symlink_to(folder, target_is_directory=True)
    (tmp_path / "elsewhere" / "deep" / "again").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "single").write_text(document("single"))
    (folder / "a_gold_conll").symlink_to(tmp_path / "single")
    read = ["a_gold_conll", "b/1_gold_conll", "c/deep/2_gold_conll", "c/deep/a/0_gold_conll", "d/3_gold_conll"]
    for link in (folder, tmp_path / "link"):
        if link != folder:
            link.symlink_to(folder, target_is_directory=True)
        assert conll_files(link) == [link / name for name in read]
    assert len(list(read_documents(folder))) == 5


def test_a_link_that_leads_nowhere_is_named(tree, tmp_path):
    folder = tree("a/one_conll")
    (folder / "two_conll").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"tree/two_conll: cannot be read .*No such file"):
        list(read_documents(folder))


def test_a_file_is_read_whatever_its_name(tree):
    folder = tree("a.txt", "b_conll")
    assert read_words(read_documents(folder / "a.txt")) == [[["a.txt"]]]


def test_an_error_names_the_file_within_the_folder(tree):
    folder = tree("a/one_conll", "b/two_conll")
    (folder / "b" / "two_conll").write_text(f"{BEGIN}\n{END}\n")
    with pytest.raises(UserError, match=r"tree/b/two_conll:1: an empty document"):
        list(read_documents(folder))


def test_a_path_of_nothing_is_no_folder(tmp_path):
    with pytest.raises(UserError, match=r"none\.conll: no such file or folder$"):
        conll_files(tmp_path / "none.conll")


@pytest.mark.parametrize("names", [[], ["a/one.txt", "a/conll", "two_conll.txt"]])
def test_a_folder_without_conll_files_is_refused(tree, names):
    with pytest.raises(UserError, match=r"/tree: no file that ends in _conll below this folder"):
        list(read_documents(tree(*names)))


@pytest.mark.parametrize(
    ("file", "n_documents", "n_sentences"),
    [
        pytest.param("srl_ewt/train", 540, 12_542, marks=pytest.mark.slow),
        ("srl_ewt/dev", 297, 1_974),
        ("srl_ewt/test", 308, 2_062),
        ("coref_ontogum/dev", 30, 1_575),
    ],
)
def test_the_real_sets_have_their_sizes(shared, file, n_documents, n_sentences):
    documents = list(read_documents(shared / "data" / f"{file}.conll"))
    assert len(documents) == n_documents
    assert sum(len(d.sentences) for d in documents) == n_sentences


def test_a_hyphen_or_an_underscore_is_not_a_span(read):
    assert read_spans(read, "- _ (V*) *") == [(2, 3, "V")]


LITBANK = """#begin document (84_frankenstein_brat); part 0
84_frankenstein_brat\t0\t0\tYou\t_\t_\t_\t_\t_\t_\t_\t_\t(0)
84_frankenstein_brat\t0\t1\twill\t_\t_\t_\t_\t_\t_\t_\t_\t
84_frankenstein_brat\t0\t2\trejoice\t_\t_\t_\t_\t_\t_\t_\t_\t

84_frankenstein_brat\t0\t0\tOh\t_\t_\t_\t_\t_\t_\t_\t_\t
84_frankenstein_brat\t0\t1\t!\t_\t_\t_\t_\t_\t_\t_\t_\t

84_frankenstein_brat\t0\t0\tThe\t_\t_\t_\t_\t_\t_\t_\t_\t(1
84_frankenstein_brat\t0\t1\tend\t_\t_\t_\t_\t_\t_\t_\t_\t1)

#end document
"""  # the layout of LitBank's files, in which a token without mention ends in a tab


@pytest.mark.parametrize("more", ["", "\t", " ", "\t\t "])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_litbanks_files_are_read_as_they_are_whatever_white_space_follows(read, more, newline, mark):
    (found,) = read(mark + LITBANK.replace("\n", f"{more}{newline}"))
    assert [sentence.tokens for sentence in found.sentences] == [
        ["You", "will", "rejoice"],
        ["Oh", "!"],
        ["The", "end"],
    ]
    assert [sentence.column(-1) for sentence in found.sentences] == [["(0)", "_", "_"], ["_", "_"], ["(1", "1)"]]
    assert read_clusters(found) == [[(0, 1)], [(5, 7)]]


def test_a_space_between_tabs_separates_no_columns(read):
    speakers = ["Ann Lee", "Ann Berg"]
    lines = [f"d\t0\t0\tNew York\tNN\t*\t-\t-\t-\t {speaker} \t*\t(0)" for speaker in speakers]
    (found,) = read("\n\n".join([BEGIN, *lines, END]))
    assert [sentence.column(SPEAKER) for sentence in found.sentences] == [[speaker] for speaker in speakers]
    assert read_words([found]) == [[["New York"], ["New York"]]]


def test_an_empty_column_is_not_a_word(read):
    with pytest.raises(UserError, match=r"some\.conll:2: an empty word \(column 4\)"):
        read(LITBANK.replace("You", ""))
