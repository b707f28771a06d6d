import copy
import json
import re
from pathlib import Path

import pytest

from elmo_tasks.config.components import check_values
from elmo_tasks.config.compose import compose
from elmo_tasks.data.squad import SquadReader
from elmo_tasks.errors import UserError
from elmo_tasks.metrics.squad import SquadScore

REPO = Path(__file__).parents[2]
READER = "elmo_tasks.data.squad.SquadReader"
BUNDLED = REPO / "elmo_tasks" / "bundled" / "sample" / "squad"


@pytest.fixture
def write(tmp_path):
    """A file with this content: bytes as they stand, the rest as JSON."""

    def write(content, **options):
        path = tmp_path / "squad.json"
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content, **options).encode())
        return path

    return write


def question(id_, *answers, text="Who?"):
    return {"id": id_, "question": text, "answers": [{"text": t, "answer_start": start} for t, start in answers]}


def make_content(*paragraphs):
    """Each paragraph, a context and its questions, in an article of its own."""
    articles = [{"title": "T", "paragraphs": [{"context": context, "qas": qas}]} for context, *qas in paragraphs]
    return {"version": "1.1", "data": articles}


def make_reader(**options):
    return SquadReader(**{"max_tokens": 100, **options})


@pytest.mark.parametrize(
    ("context", "answer", "start", "span", "spanned", "left_out"),
    [
        ("The cat sat.", "cat", 4, (1, 1), "cat", 0),
        ("The cat sat.", "The cat sat.", 0, (0, 3), "The cat sat.", 0),
        ("The cat  sat\n.", "cat  sat\n.", 4, (1, 3), "cat  sat\n.", 0),
        ("The cat sat.", " cat ", 3, (1, 1), "cat", 0),
        ("to be or not to be", "be", 3, (1, 1), "be", 0),
        ("to be or not to be", "be", 16, (5, 5), "be", 0),
        ("to be or not to be", "to be", 13, (4, 5), "to be", 0),
        ("a well-known man", "known", 7, (3, 3), "known", 0),
        ("a well-known man", "well-known", 2, (1, 3), "well-known", 0),
        ("won 15–1.", "15–1", 4, (1, 3), "15–1", 0),
        ("He said “yes” twice", "yes", 9, (3, 3), "yes", 0),
        ("He said “yes” twice", "“yes”", 8, (2, 4), "“yes”", 0),
        ("Ann’s cat", "Ann", 0, (0, 0), "Ann", 0),
        ("😀😀 Ann 🏳️ left", "Ann", 3, (2, 2), "Ann", 0),
        ("😀 Zoe\u0308 left", "Zoe\u0308", 2, (1, 1), "Zoe\u0308", 0),
        ("in the 1990s.", "1990", 7, (2, 2), "1990s", 1),
        ("It didn't stop", "n't sto", 6, (2, 3), "n't stop", 1),
        ("It didn't stop", "'t", 7, (2, 2), "n't", 1),
        ("in the U.S. today", " U.S", 6, (2, 2), "U.S.", 1),
        ("京都市は大きい", "京都", 0, (0, 0), "京都市は大きい", 1),
    ],
)
@pytest.mark.parametrize("escaped", [False, True])
def test_an_answer_is_spanned_by_the_tokens_that_it_touches(
    write, context, answer, start, span, spanned, left_out, escaped
):
    reader = make_reader()
    path = write(make_content((context, question("q", (answer, start)))), ensure_ascii=escaped)
    (item,) = reader.read_file(path, "train")
    assert item.span == span
    assert item.paragraph.text(*item.span) == spanned
    assert item.gold == {"id": "q", "number": 0, "answers": [answer]}
    assert reader.left_out == ({"answers within a token": left_out} if left_out else {})


def test_questions_come_in_the_order_of_the_file_with_all_their_references(write):
    content = make_content(
        ("Ann left Bob.", question("z", ("Bob", 9), ("Ann left Bob", 0), ("Bob", 9)), question("y", ("Ann", 0))),
        ("Ann left Bob.", question("x", ("left", 4), text="Isn't it well-known?")),
    )
    items = make_reader().read_file(write(content), "train")
    assert [item.gold for item in items] == [
        {"id": "z", "number": 0, "answers": ["Bob", "Ann left Bob", "Bob"]},
        {"id": "y", "number": 1, "answers": ["Ann"]},
        {"id": "x", "number": 2, "answers": ["left"]},
    ]
    assert [item.span for item in items] == [(2, 2), (0, 0), (1, 1)]
    assert items[2].question == ["Is", "n't", "it", "well-known", "?"]
    assert items[0].paragraph is items[1].paragraph
    batch = make_reader().collate(items, [None, None])
    assert (batch.starts.tolist(), batch.ends.tolist()) == ([2, 0, 1], [2, 0, 1])
    assert batch.gold == [item.gold for item in items]


CONTEXT = "Ann left Bob."


@pytest.mark.parametrize(
    ("answer", "start"), [("Ann", 1), ("ann", 0), ("Bob", 8), ("Bob.", -4), ("Bob.!", 9), ("Bob", 10**30), ("Anne", 0)]
)
def test_an_answer_that_is_not_at_its_offset_is_refused_with_the_questions_id(write, answer, start):
    path = write(make_content((CONTEXT, question("good", ("Ann", 0)), question("bad7", ("Bob", 9), (answer, start)))))
    with pytest.raises(UserError, match=rf"^{path}: 1 .*answer_start: bad7; task\.reader\.bad_answers=drop"):
        make_reader().read_file(path, "train")
    (good, bad) = make_reader().read_file(path, "dev")  # the scorer compares texts: no offset is read
    assert (good.gold["answers"], bad.gold["answers"]) == (["Ann"], ["Bob", answer])


@pytest.mark.parametrize(("n", "shown"), [(10, "q0, .*, q9;"), (11, r"q0, .*, q9, \.\.\.;"), (40, r"q9, \.\.\.;")])
def test_only_ten_ids_of_mismatched_answers_are_shown(write, n, shown):
    path = write(make_content((CONTEXT, *(question(f"q{k}", ("Bob", 0)) for k in range(n)))))
    with pytest.raises(UserError, match=f": {n} .*{shown}"):
        make_reader().read_file(path, "train")


@pytest.mark.parametrize("split", ["train", "dev"])
def test_mismatched_answers_are_dropped_from_training_and_counted_if_asked_for(write, split):
    questions = [
        question("none", ("Ann", 1), ("Bob", 0)),
        question("some", ("Ann", 1), ("Bob", 9), ("left", 4)),
        question("all", ("Ann", 0)),
    ]
    reader = make_reader(bad_answers="drop")
    items = reader.read_file(write(make_content((CONTEXT, *questions))), split)
    answers = {item.gold["id"]: item.gold["answers"] for item in items}
    if split == "train":
        assert answers == {"some": ["Bob", "left"], "all": ["Ann"]}
    else:  # an official scorer reads all of them
        assert answers == {"none": ["Ann", "Bob"], "some": ["Ann", "Bob", "left"], "all": ["Ann"]}
    spans = {item.gold["id"]: item.span for item in items}
    assert spans == ({"some": (2, 2), "all": (0, 0)} if split == "train" else dict.fromkeys(answers))
    assert [item.gold["number"] for item in items] == ([1, 2] if split == "train" else [0, 1, 2])
    assert reader.left_out == ({"questions with answers that do not match": 2} if split == "train" else {})


def test_an_id_that_comes_twice_is_refused(write):
    twice = [(CONTEXT, question("a", ("Ann", 0)), question("b7", ("Ann", 0))), ("Bob.", question("b7", ("Bob", 0)))]
    with pytest.raises(UserError, match=r"squad\.json: the id 'b7' comes twice"):
        make_reader().read_file(write(make_content(*twice)), "dev")


GONE = object()
PARAGRAPH = ("data", 0, "paragraphs", 0)
QUESTION = (*PARAGRAPH, "qas", 0)
ANSWER = (*QUESTION, "answers", 0)
BAD_SHAPES = [
    ((), [], "expected an object, found a list"),
    ((), None, "expected an object, found None"),
    (("data",), GONE, "no 'data'; found version"),
    (("data",), {}, "'data' must be a list, found an object"),
    (("data", 0), [], r"data\[0\]: expected an object, found a list"),
    (("data", 0, "paragraphs"), GONE, r"data\[0\]: no 'paragraphs'; found title"),
    (("data", 0, "paragraphs"), {}, r"data\[0\]: 'paragraphs' must be a list, found an object"),
    (PARAGRAPH, "Ann", r"paragraphs\[0\]: expected an object, found a text"),
    ((*PARAGRAPH, "context"), GONE, r"paragraphs\[0\]: no 'context'; found qas"),
    ((*PARAGRAPH, "context"), 5, r"paragraphs\[0\]: 'context' must be a text, found a whole number"),
    ((*PARAGRAPH, "context"), ["Ann"], r"paragraphs\[0\]: 'context' must be a text, found a list"),
    ((*PARAGRAPH, "context"), " \n\u00a0", r"paragraphs\[0\]: 'context' is empty"),
    ((*PARAGRAPH, "qas"), GONE, r"paragraphs\[0\]: no 'qas'; found context"),
    ((*PARAGRAPH, "qas"), {}, r"paragraphs\[0\]: 'qas' must be a list, found an object"),
    (QUESTION, None, r"qas\[0\]: expected an object, found None"),
    ((*QUESTION, "id"), GONE, r"qas\[0\]: no 'id'; found question, answers"),
    ((*QUESTION, "id"), 7, r"qas\[0\]: 'id' must be a text, found a whole number"),
    ((*QUESTION, "id"), "\ud800", r"qas\[0\]: half a character \(a lone surrogate\) in 'id'"),
    ((*QUESTION, "id"), "", r"qas\[0\]: 'id' is empty"),
    ((*QUESTION, "question"), GONE, "question q7.*no 'question'"),
    ((*QUESTION, "question"), "", "question q7.*'question' is empty"),
    ((*QUESTION, "question"), " \t", "question q7.*'question' is empty"),
    ((*QUESTION, "question"), True, "question q7.*'question' must be a text, found True"),
    ((*QUESTION, "answers"), [], r"question q7.*no answer; SQuAD 2\.0's unanswerable questions .* are not supported"),
    ((*QUESTION, "answers"), GONE, "question q7.*no 'answers'"),
    ((*QUESTION, "answers"), {"text": "Ann", "answer_start": 0}, "question q7.*'answers' must be a list"),
    (ANSWER, ["Ann", 0], "question q7.*expected an object, found a list"),
    ((*ANSWER, "text"), GONE, "question q7.*no 'text'; found answer_start"),
    ((*ANSWER, "text"), "", "question q7.*'text' is empty"),
    ((*ANSWER, "text"), " ", "question q7.*'text' is empty"),
    ((*ANSWER, "text"), 1990, "question q7.*'text' must be a text, found a whole number"),
    ((*ANSWER, "answer_start"), GONE, "question q7.*no 'answer_start'; found text"),
    ((*ANSWER, "answer_start"), "0", "question q7.*'answer_start' must be a whole number, found a text"),
    ((*ANSWER, "answer_start"), False, "question q7.*'answer_start' must be a whole number, found False"),
    ((*ANSWER, "answer_start"), 0.0, r"question q7.*'answer_start' must be a whole number, found 0\.0"),
    ((*ANSWER, "answer_start"), None, "question q7.*'answer_start' must be a whole number, found None"),
]


def replaced(content, place, value):
    """A copy of nested lists and objects with another value at one place."""
    if not place:
        return value
    content, (first, *rest) = copy.copy(content), place
    if rest or value is not GONE:
        content[first] = replaced(content[first], rest, value)
    else:
        del content[first]
    return content


@pytest.mark.parametrize(("place", "value", "message"), BAD_SHAPES)
def test_another_shape_gives_a_one_sentence_error_with_file_and_place(write, place, value, message):
    path = write(replaced(make_content((CONTEXT, question("q7", ("Ann", 0)))), place, value))
    with pytest.raises(UserError, match=rf"^{re.escape(str(path))}: .*{message}") as error:
        make_reader(bad_answers="drop", too_long="truncate").read_file(path, "train")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON"),
        (b'{"version": "1.1", "data": [', "not JSON"),
        (b'{"version": "1.1"}\n{"version": "1.1"}', "not JSON"),
        (b"[" * 100_000, "not JSON"),
        ('{"version": "1.1", "title": "Café"}'.encode("latin-1"), "not UTF-8"),
        ('{"version": "1.1"}'.encode("utf-16"), "UTF-16, which is not read; convert it to UTF-8 "),
        ('{"version": "1.1"}'.encode("utf-16-le"), "UTF-16, which is not read; convert it to UTF-8 "),
        (
            '{"data": "재미있는 영화"}'.encode("cp949"),
            "not UTF-8 .*; set task.reader.encoding to the file's, such as cp949",
        ),
    ],
)
def test_anything_but_json_in_utf_8_is_refused(write, content, message):
    with pytest.raises(UserError, match=rf"squad\.json: {message}"):
        make_reader().read_file(write(content), "train")


def test_a_file_that_cannot_be_read_is_named_and_a_byte_order_mark_does_not_matter(write, tmp_path):
    with pytest.raises(UserError, match=rf"{tmp_path}: cannot be read"):
        make_reader().read_file(tmp_path, "train")
    content = b"\xef\xbb\xbf" + json.dumps(make_content((CONTEXT, question("a", ("Ann", 0))))).encode()
    assert len(make_reader().read_file(write(content), "train")) == 1


@pytest.mark.parametrize("version", [GONE, "1.0", 1.1, "KorQuAD_v1.0_train", "v2.0", None])
def test_a_file_is_judged_by_its_structure_and_not_by_its_version(write, version):
    content = make_content((CONTEXT, question("q7", ("Ann", 0)) | {"is_impossible": False}))
    (item,) = make_reader().read_file(write(replaced(content, ("version",), version)), "dev")
    assert item.gold["answers"] == ["Ann"]


def test_a_question_that_is_called_unanswerable_is_named(write):
    content = make_content((CONTEXT, question("q7", ("Ann", 0)) | {"is_impossible": True}))
    with pytest.raises(
        UserError, match=r"\(question q7\): no answer; SQuAD 2\.0's unanswerable questions .* leave them"
    ):
        make_reader().read_file(write(content), "dev")


def in_use(**changes):
    """The reader of a finished run that was trained with the defaults."""
    return SquadReader(**SquadReader.after_training({"max_tokens": 100}) | changes)


@pytest.mark.parametrize("split", ["train", "dev", "test"])
@pytest.mark.parametrize("answer", [{"answer_start": 22}, {"answer_start": -1}, {"answer_start": "x"}, {}])
def test_scoring_reads_no_offsets(write, split, answer):
    asked = [question("a", ("Ann", 0)), {"id": "b", "question": "Who?", "answers": [{"text": "Ann left", **answer}]}]
    reader = in_use()
    items = reader.read_file(write(make_content((CONTEXT, *asked))), split)
    assert [item.gold["answers"] for item in items] == [["Ann"], ["Ann left"]]
    assert reader.left_out == {}


@pytest.mark.parametrize("n_tokens", [1, 2, 7, 30, 61, 100])
def test_windows_cover_all_tokens_and_every_answer_of_half_a_window(n_tokens):
    reader = SquadReader(max_tokens=n_tokens, too_long="windows")
    item = reader.from_json({"context": " ".join(f"w{k}" for k in range(61)), "question": "Who?"}, "x")
    parts = reader.parts(item)
    assert (parts == [item]) == (n_tokens >= 61)
    assert all(part.question == item.question and part.paragraph.context == item.paragraph.context for part in parts)
    assert all(part.paragraph.words == [token.word for token in part.paragraph.tokens] for part in parts)
    inside = [{token.start for token in part.paragraph.tokens} for part in parts]
    assert all(len(starts) == min(n_tokens, 61) for starts in inside)
    starts = [token.start for token in item.paragraph.tokens]
    for k in range(61):
        answer = set(starts[k : k + max(1, n_tokens // 2)])
        assert any(answer <= window for window in inside)


def test_a_run_that_cut_its_paragraphs_goes_on_to_cut_them():
    settings = {"max_tokens": 9, "too_long": "truncate", "bad_answers": "drop"}
    assert SquadReader.after_training(settings) == settings


LONG = ("Ann and Bob left - for Rome.", question("q0", ("Ann", 0)), question("q1", ("Rome", 23)))  # 8 tokens


@pytest.mark.parametrize("split", ["train", "dev"])
def test_a_paragraph_that_is_too_long_is_refused_with_both_options(write, split):
    path = write(make_content(LONG))
    with pytest.raises(UserError, match=r"q0 has 8 tokens.*task\.reader\.too_long=truncate.* task\.reader\.max_tokens"):
        make_reader(max_tokens=7).read_file(path, split)
    assert len(make_reader(max_tokens=8).read_file(path, split)) == 2


@pytest.mark.parametrize(
    ("answer", "start", "kept"),
    [("left", 12, True), ("left ", 12, True), ("left -", 12, False), ("-", 17, False), (" -", 16, False)],
)
def test_training_questions_whose_answer_is_cut_off_are_dropped_and_counted(write, answer, start, kept):
    path = write(make_content((LONG[0], question("a", (answer, start)), question("b", ("Ann", 0)))))
    reader = make_reader(max_tokens=4, too_long="truncate")
    items = reader.read_file(path, "train")
    assert [item.gold["id"] for item in items] == ["a", "b"][not kept :]
    assert [item.paragraph.words for item in items] == [["Ann", "and", "Bob", "left"]] * len(items)
    assert reader.left_out == {"paragraphs truncated": 1} | ({} if kept else {"answers beyond max_tokens": 1})


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_question_on_a_cut_paragraph_is_still_asked_and_scored_outside_of_training(write, split):
    reader, metric = make_reader(max_tokens=4, too_long="truncate"), SquadScore()
    items = reader.read_file(write(make_content(LONG)), split)
    assert [item.gold["answers"] for item in items] == [["Ann"], ["Rome"]]
    batch = reader.collate(items, [None, None])
    assert (batch.starts[0], batch.ends[0]) == (0, 0)
    metric.update([paragraph.text(0, 0) for paragraph in batch.paragraphs], batch.gold)
    assert metric.compute() == {"f1": 50, "exact_match": 50}
    assert json.loads(metric.files()["predictions.json"]) == {"q0": "Ann", "q1": "Ann"}


def test_only_training_questions_are_counted_as_dropped(write):
    reader = make_reader(max_tokens=4, too_long="truncate")
    assert len(reader.read_file(write(make_content(LONG)), "dev")) == 2
    assert reader.left_out == {"paragraphs truncated": 1}


@pytest.mark.parametrize(
    ("option", "value"),
    [("too_long", "cut"), ("too_long", None), ("too_long", True), ("bad_answers", "ignore"), ("bad_answers", None)]
    + [("max_tokens", value) for value in (0, -1, 2.5, "many")],
)
def test_a_wrong_option_is_refused_by_name(option, value):
    with pytest.raises(UserError, match=rf"^task\.reader\.{option} must be .*found {value!r}"):
        check_values("task.reader", {"_target_": READER, "too_long": "truncate", option: value}, ())


def test_a_wrong_option_on_the_command_line_gives_a_one_sentence_error_too():
    config = compose(["task=squad", "words=random", "task.reader.too_long=cut"])
    with pytest.raises(UserError, match=r"task\.reader\.too_long must be one of error, truncate, found 'cut'"):
        config.check_components()


def row(id_="q7", text=("Ann",), answer_start=(0,), **other):
    answers = {"text": list(text), "answer_start": list(answer_start)}
    return {"id": id_, "title": "T", "context": CONTEXT, "question": "Who?", "answers": answers, **other}


def test_hub_rows_become_the_same_items_as_the_official_file(write):
    rows = [row("a", ["Bob", "Ann left"], [9, 0]), row("b")]
    content = make_content((CONTEXT, question("a", ("Bob", 9), ("Ann left", 0)), question("b", ("Ann", 0))))
    items = make_reader().read_rows(rows, "hub", "dev")
    assert items == make_reader().read_file(write(content), "dev")
    assert items[0].paragraph is items[1].paragraph


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (row(answers=[{"text": "Ann", "answer_start": 0}]), " row 1: 'answers' must be an object, found a list"),
        (row(answers=None), " row 1: 'answers' must be an object, found None"),
        (row(answers={"text": ["Ann"]}), " row 1: answers: no 'answer_start'; found text"),
        (row(answers={"text": "Ann", "answer_start": [0]}), " row 1: answers: 'text' must be a list, found a text"),
        (row(text=["Ann", "Bob"]), " row 1: answers: 2 texts but 1 answer_starts"),
        (row(text=[], answer_start=[]), r" row 1 \(question q7\): no answer"),
        (row(text=[""]), r" row 1 \(question q7\): answer: 'text' is empty"),
        (row(answer_start=["0"]), r" row 1 \(question q7\): answer: 'answer_start' must be a whole number"),
        (row(answer_start=[True]), r" row 1 \(question q7\): answer: 'answer_start' must be a whole number"),
        (row(context=None), " row 1: 'context' must be a text, found None"),
        (row(question=" "), r" row 1 \(question q7\): 'question' is empty"),
        (row(id=5), " row 1: 'id' must be a text"),
        (row(id="a"), ": the id 'a' comes twice"),
        (row(answer_start=[3]), ": 1 .*: q7; task.reader.bad_answers=drop"),
    ],
)
def test_malformed_hub_rows_are_refused(bad, message):
    with pytest.raises(UserError, match=f"^hub{message}"):
        make_reader().read_rows([row("a"), bad], "hub", "train")


def test_the_bundled_sample_has_literal_answers_at_borders_of_tokens():
    contexts = []
    for split, n_paragraphs, n_answers in (("train", 40, 160), ("dev", 10, 117), ("test", 10, 120)):
        reader = make_reader(max_tokens=1000)
        items = reader.read_file(BUNDLED / f"{split}-v1.1.json", split)
        assert len(items) == 4 * n_paragraphs
        assert sum(len(item.gold["answers"]) for item in items) == n_answers
        items = reader.read_file(BUNDLED / f"{split}-v1.1.json", "train")  # with the answers' places
        assert all(item.paragraph.text(*item.span) == item.gold["answers"][0] for item in items)
        assert reader.left_out == {}
        contexts += {item.paragraph.context for item in items}
    assert len(contexts) == len(set(contexts)) == 60


@pytest.mark.parametrize(
    ("split", "n", "n_paragraphs", "n_within"),
    [pytest.param("train", 23_022, 4_526, 41, marks=pytest.mark.slow), ("dev", 7_018, 1_378, 23)],
)
def test_the_real_set_has_its_sizes_and_nearly_all_answers_are_literal(shared, split, n, n_paragraphs, n_within):
    reader = make_reader(max_tokens=1000)
    items = reader.read_file(shared / "data" / "squad" / f"{split}-subset-v1.1.json", "train")  # with answers' places
    assert len(items) == n
    assert len({item.paragraph.context for item in items}) == n_paragraphs
    assert [item.gold["number"] for item in items] == list(range(n))
    spanned = [(item.paragraph.text(*item.span), item.gold["answers"][0].strip()) for item in items]
    assert all(answer in text for text, answer in spanned)
    assert sum(answer != text for text, answer in spanned) == n_within
    assert reader.left_out == {"answers within a token": n_within}
