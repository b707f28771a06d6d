import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from elmo_tasks.cli.main import main
from elmo_tasks.places import BUNDLED
from elmo_tasks.predict import predictor
from elmo_tasks.predict.lines import _paragraphs, _read
from elmo_tasks.predict.readable import readable

Finished = Callable[..., Path]
NER = {"tokens": ["Anna", "Berg", "left"], "tags": [], "entities": [{"type": "PER", "start": 0, "stop": 2}]}
FRAME = {"predicate": "left", "arguments": [{"label": "ARG0", "text": "Anna"}, {"label": "V", "text": "left"}]}


@pytest.mark.parametrize(
    ("prediction", "expected"),
    [
        (NER, "[PER Anna Berg] left"),
        ({"tokens": ["a", "b"], "tags": ["DT", "NN"]}, "a/DT b/NN"),
        ({"text": "so so", "label": "neutral"}, "neutral\tso so"),
        ({"premise": ["a", "b"], "hypothesis": "c", "label": "entailment"}, "entailment\ta b\tc"),
        ({"context": "In Rome.", "question": "Where?", "answer": "Rome"}, "Rome\tIn Rome.\tWhere?"),
        ({"tokens": ["Anna", "left"], "frames": [FRAME]}, "Anna left\n  left: [ARG0 Anna] [V left]"),
        ({"tokens": [], "clusters": [[{"text": "Anna"}, {"text": "she"}]]}, "clusters:\n  1: Anna | she"),
        ({"tokens": [], "clusters": []}, "no clusters"),
    ],
)
def test_a_prediction_is_readable(prediction: dict, expected: str) -> None:
    assert readable(prediction) == expected


def test_a_file_of_sentences_is_tagged(finished: Finished, tmp_path: Path, capsys) -> None:
    text = tmp_path / "text.txt"
    text.write_text("Anna lives in Berlin.\nIt rains .\n")
    main(["predict", str(finished("ner")), "--text", str(text)])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].replace("[", "").replace("]", "").endswith("Berlin .")


def test_json_lines_go_in_and_come_out(finished: Finished, tmp_path: Path, capsys) -> None:
    text = tmp_path / "items.jsonl"
    text.write_text('{"tokens": ["Anna", "sings"]}\n\n{"tokens": "It rains ."}\n')
    main(["predict", str(finished("ner")), "--text", str(text), "--json"])
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["tokens"] for one in found] == [["Anna", "sings"], ["It", "rains", "."]]
    assert all(len(one["tags"]) == len(one["tokens"]) for one in found)


def test_compressed_json_lines_are_no_text(finished: Finished, tmp_path: Path, capsys) -> None:
    text = tmp_path / "items.jsonl.gz"
    text.write_bytes(gzip.compress(b'{"tokens": ["Anna", "sings"]}\n'))
    main(["predict", str(finished("ner")), "--text", str(text), "--json"])
    assert json.loads(capsys.readouterr().out)["tokens"] == ["Anna", "sings"]


def test_an_item_keeps_its_name(finished: Finished, monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"id": "doc-7", "tokens": "Anna sings ."}\n'))
    main(["predict", str(finished("ner")), "--jsonl", "--json"])
    assert json.loads(capsys.readouterr().out)["id"] == "doc-7"


def test_empty_lines_are_skipped(finished: Finished, monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\nAnna sings .\n \nPaul too .\n\n"))
    main(["predict", str(finished("ner"))])
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 2
    assert not shown.err


@pytest.mark.slow
@pytest.mark.parametrize("text", ["The end\n", "The end\nAnna sings in Rome .\nRome\n"])
def test_a_sentence_without_a_predicate_has_no_frame(finished: Finished, monkeypatch, capsys, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    main(["predict", str(finished("srl")), "--json"])
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [" ".join(one["tokens"]) for one in found] == text.splitlines()
    assert found[0]["frames"] == []


def test_standard_input_is_read_and_tokens_can_be_given(finished: Finished, monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("A do-it-yourself  film of 1\u00a01/2\thours .\n"))
    main(["predict", str(finished("sst5")), "--tokenized", "--json"])
    (found,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found["text"] == ["A", "do-it-yourself", "film", "of", "1\u00a01/2", "hours", "."]
    assert isinstance(found["label"], str)


def test_a_bad_line_is_named(finished: Finished, tmp_path: Path, capsys) -> None:
    text = tmp_path / "text.txt"
    text.write_text(f"Anna sings .\n{'x' * 1001}\nPaul too .\n")
    with pytest.raises(SystemExit, match=rf"^error: {text}:2: tokens"):
        main(["predict", str(finished("ner")), "--text", str(text)])
    assert not capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"^error: 1 of 3 items skipped$"):
        main(["predict", str(finished("ner")), "--text", str(text), "--keep-going"])
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 2
    assert shown.err.startswith(f"skipped: {text}:2: tokens")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[1]", "expected a JSON object"),
        ('{"words": "a"}', "expected the fields tokens"),
        (r'{"tokens": "a", "id": ["\ud800"]}', "half a character"),
    ],
)
def test_a_line_that_is_no_item_is_named(finished: Finished, tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text(content + "\n")
    with pytest.raises(SystemExit, match=rf"^error: .*items\.jsonl:1: {message}"):
        main(["predict", str(finished("ner")), "--text", str(path)])


def test_lines_that_cannot_be_read_are_skipped_and_counted(finished: Finished, tmp_path: Path, capsys) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text('{\n{"tokens": "Anna sings ."}\n[1]\n{"tokens": ""}\n')
    with pytest.raises(SystemExit, match=r"^error: 3 of 4 items skipped$"):
        main(["predict", str(finished("ner")), "--text", str(path), "--keep-going"])
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize("name", ["items.txt", "items.jsonl"])
def test_a_line_that_is_not_utf_8_is_named_or_skipped(finished: Finished, tmp_path: Path, capsys, name: str) -> None:
    sentences = ["Anna sings .", "Un café .", "Oslo too ."]
    lines = [json.dumps({"tokens": s}, ensure_ascii=False) if "jsonl" in name else s for s in sentences]
    (tmp_path / name).write_bytes("\n".join(lines).encode("latin-1"))
    command = ["predict", str(finished("ner")), "--text", str(tmp_path / name), "--json"]
    with pytest.raises(
        SystemExit, match=rf"{name}:2: not UTF-8; set task\.reader\.encoding to the file's, such as latin-1$"
    ):
        main(command)
    capsys.readouterr()
    with pytest.raises(SystemExit, match=r"^error: 1 of 3 items skipped$"):
        main([*command, "--keep-going"])
    printed = capsys.readouterr()
    assert printed.err.endswith(f"{name}:2: not UTF-8; set task.reader.encoding to the file's, such as latin-1\n")
    assert [json.loads(line)["tokens"][0] for line in printed.out.splitlines()] == ["Anna", "Oslo"]


def test_a_byte_order_mark_on_standard_input_is_no_token(finished: Finished, capsys, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\ufeffAnna sings .\n"))
    main(["predict", str(finished("ner")), "--json"])
    assert json.loads(capsys.readouterr().out)["tokens"] == ["Anna", "sings", "."]


@pytest.mark.parametrize("locale", ["utf-8", "latin-1"])
def test_standard_input_is_utf_8_as_files_are(finished: Finished, capsys, monkeypatch, locale: str) -> None:
    def given(content: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding=locale))

    given("Zoë sings .\n".encode())
    main(["predict", str(finished("ner")), "--json"])
    assert json.loads(capsys.readouterr().out)["tokens"] == ["Zoë", "sings", "."]
    given("Anna sings .\nZoë too .\n".encode("latin-1"))
    with pytest.raises(
        SystemExit,
        match=r"^error: standard input:2: not UTF-8; set task\.reader\.encoding to the file's, such as latin-1$",
    ):
        main(["predict", str(finished("ner")), "--json"])


def test_utf_16_on_standard_input_is_named(finished: Finished, monkeypatch) -> None:
    content = io.BytesIO("Anna sings .\n".encode("utf-16"))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(content, encoding="utf-8"))
    with pytest.raises(SystemExit, match=r"^error: standard input:1: UTF-16, which is not read; convert it to UTF-8"):
        main(["predict", str(finished("ner"))])


def test_predictions_are_utf_8_whatever_the_locale(finished: Finished, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("Łódź sings .\n"))
    printed = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(printed, encoding="latin-1"))
    main(["predict", str(finished("ner")), "--json"])
    assert json.loads(printed.getvalue())["tokens"] == ["Łódź", "sings", "."]


def test_empty_input_is_an_error(finished: Finished, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    with pytest.raises(SystemExit, match=r"^error: standard input: no item in it$"):
        main(["predict", str(finished("ner"))])
    (tmp_path / "empty.txt").touch()
    with pytest.raises(SystemExit, match=r"empty\.txt: no item in it$"):
        main(["predict", str(finished("ner")), "--text", str(tmp_path / "empty.txt")])


@pytest.mark.slow
def test_fields_are_separated_by_tabs_and_documents_by_empty_lines(finished: Finished, tmp_path: Path, capsys) -> None:
    pairs, paragraphs, documents = (tmp_path / f"{name}.txt" for name in ("pairs", "paragraphs", "documents"))
    pairs.write_text("A man sleeps.\tA man is awake.\n")
    paragraphs.write_text("The bank opened in Oslo.\tWhere did the bank open?\n")
    documents.write_text("Anna came .\nShe sat .\n\nPaul left .\n")
    main(["predict", str(finished("snli")), "--text", str(pairs), "--json"])
    assert json.loads(capsys.readouterr().out)["label"] in ("entailment", "neutral", "contradiction")
    main(["predict", str(finished("squad")), "--text", str(paragraphs), "--json"])
    assert json.loads(capsys.readouterr().out)["answer"] in paragraphs.read_text()
    main(["predict", str(finished("coref")), "--text", str(documents), "--json"])
    found = [json.loads(line)["tokens"] for line in capsys.readouterr().out.splitlines()]
    assert found == [["Anna", "came", ".", "She", "sat", "."], ["Paul", "left", "."]]
    pairs.write_text("A man sleeps.\n")
    with pytest.raises(SystemExit, match=r"pairs\.txt:1: expected premise and hypothesis with a tab between"):
        main(["predict", str(finished("snli")), "--text", str(pairs)])
    pairs.write_text("A man sleeps.\nA man sleeps.\tA man is awake.\n")
    with pytest.raises(SystemExit, match=r"^error: 1 of 2 items skipped$"):
        main(["predict", str(finished("snli")), "--text", str(pairs), "--keep-going"])


def test_a_file_is_scored_and_the_scores_are_written(finished: Finished, tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = finished("ner")
    main(["evaluate", str(folder), "--file", str(BUNDLED / "sample" / "conll2003" / "eng.testb")])
    (written,) = tmp_path.glob("evaluation/*/scores.json")
    about = json.loads(written.read_text())
    assert about["run_id"] == folder.name
    assert f"f1 {about['scores']['f1']:.2f}" in capsys.readouterr().out
    main(["evaluate", str(folder), "--file", str(BUNDLED / "sample" / "conll2003" / "eng.testa")])
    assert len([*tmp_path.glob("evaluation/*/scores.json")]) == 2
    other = tmp_path / "eng.testb"
    other.write_text((BUNDLED / "sample" / "conll2003" / "eng.testa").read_text())
    with pytest.raises(SystemExit, match=r"scores\.json has the scores of .*eng\.testb; set --out to another folder$"):
        main(["evaluate", str(folder), "--file", str(other)])
    assert json.loads(written.read_text()) == about


@pytest.mark.slow
def test_the_files_of_the_official_scorer_are_written(finished: Finished, tmp_path: Path) -> None:
    file = BUNDLED / "sample" / "srl" / "test.conll"
    main(["evaluate", str(finished("srl")), "--file", str(file), "--out", str(tmp_path / "here")])
    assert {path.name for path in (tmp_path / "here").iterdir()} == {"gold.props", "predicted.props", "scores.json"}


def test_a_file_with_an_unknown_tag_gives_a_one_sentence_error(finished: Finished, tmp_path: Path) -> None:
    (tmp_path / "bad.conll").write_text("Anna B-PER\nsings verb\n")
    with pytest.raises(SystemExit, match=r"^error: .*bad\.conll:2: unknown tag 'verb'"):
        main(["evaluate", str(finished("ner")), "--file", str(tmp_path / "bad.conll")])


def test_a_task_whose_answers_are_parts_of_the_text_takes_no_tokens(finished: Finished, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("The film is long .\tHow is it ?\n"))
    with pytest.raises(SystemExit, match=r"^error: --tokenized: task=squad takes text, not tokens; leave it out$"):
        main(["predict", str(finished("squad")), "--tokenized"])


def test_what_was_left_out_of_a_file_is_told_and_written(finished: Finished, tmp_path: Path, capsys) -> None:
    pairs = (BUNDLED / "sample" / "snli" / "snli_1.0_test.jsonl").read_text().splitlines()
    unclear = json.loads(pairs[0]) | {"gold_label": "-", "pairID": "unclear"}
    file = tmp_path / "pairs.jsonl"
    file.write_text("\n".join([*pairs[:5], json.dumps(unclear)]) + "\n")
    main(["evaluate", str(finished("snli")), "--file", str(file), "--out", str(tmp_path / "here")])
    assert "(5 items)\nwhile reading: no majority: 1\n" in capsys.readouterr().out
    about = json.loads((tmp_path / "here" / "scores.json").read_text())
    assert (about["items"], about["left_out"]) == (5, {"no majority": 1})


def test_each_document_is_named_by_its_first_line():
    lines = [("f:1", "a"), ("f:2", "b"), ("f:3", ""), ("f:4", "c")]
    read = _read(_paragraphs(lines), lambda sentences, name: {"sentences": sentences}, None)
    assert list(read) == [("f:1", {"sentences": ["a", "b"]}), ("f:4", {"sentences": ["c"]})]


def test_a_document_with_a_bad_line_is_skipped_as_a_whole():
    lines = [("f:1", "a"), ("f:2", "b\udce9"), ("f:3", ""), ("f:4", "c")]
    errors: list[str] = []
    read = _read(_paragraphs(lines), lambda sentences, name: {}, lambda place, error: errors.append(str(error)))
    assert [name for name, _ in read] == ["f:4"]
    assert errors == ["f:2: not UTF-8; set task.reader.encoding to the file's, such as latin-1"]


def test_every_item_has_a_prediction_however_many_are_read_at_a_time(finished, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setattr(predictor, "_AT_A_TIME", 2)
    words = ["Anna", "Paul", "Rome", "Oslo", "Bonn"]
    (tmp_path / "text.txt").write_text("\n".join(words))
    main(["predict", str(finished("ner")), "--text", str(tmp_path / "text.txt"), "--json"])
    assert [json.loads(line)["tokens"] for line in capsys.readouterr().out.splitlines()] == [[word] for word in words]
