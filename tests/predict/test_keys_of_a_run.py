"""Keys of a run that may be changed when it is used; every remedy that a sentence names works when it is typed."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from elmo_tasks import load_run
from elmo_tasks.cli.main import main
from elmo_tasks.errors import UserError
from elmo_tasks.places import BUNDLED
from elmo_tasks.predict.predictor import Predictor
from elmo_tasks.predict.settings import parse_settings

Finished = Callable[..., Path]
SQUAD = BUNDLED / "sample" / "squad" / "dev-v1.1.json"


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("task.reader.encoding=latin-1", "latin-1"),
        ("k=1000", 1000),
        ("k=0.5", 0.5),
        ("k=true", True),
        ("k=null", None),
        ("k=[1,-1]", [1, -1]),
        ("k=#", "#"),
        ("k='#'", "#"),
        ("k=a=b", "a=b"),
        ("k={", "{"),
        ("k=", ""),
        ("k=/데이터/a b", "/데이터/a b"),
        ("k=${oc.env:HOME}", "${oc.env:HOME}"),
    ],
)
def test_a_value_is_what_it_looks_like(argument: str, expected: object) -> None:
    assert [*parse_settings([argument]).values()] == [expected]


@pytest.mark.parametrize("argument", ["task.reader.encoding", "=1", ""])
def test_what_is_no_setting_is_named(argument: str) -> None:
    with pytest.raises(UserError, match=rf"^{re.escape(repr(argument))}: expected KEY=VALUE, such as task\.reader\."):
        parse_settings([argument])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "task.reader.phrases=false",
            "'task.reader.phrases' is no key that a finished run takes; expected one of task",
        ),
        ("seed=1", "'seed' is no key that a finished run takes; expected one of task.reader.encoding, task.training"),
        ("task.training.batch_tokens=0", "task.training.batch_tokens must be a whole number of at least 1, found 0"),
        ("task.reader.encoding=utf-16", "task.reader.encoding must be an encoding that extends ASCII"),
        ("task.reader.encoding=1", "task.reader.encoding must be a text, found 1"),
        ("bilm.path=1", "bilm.path must be a text, found 1"),
        ("bilm.path=/nowhere", "bilm.path=/nowhere: no such folder"),
        ("bilm.store.dir=/nowhere", "bilm.store.dir=/nowhere: no such folder"),
    ],
)
def test_what_belongs_to_the_training_or_has_no_sense_is_refused(
    finished: Finished, setting: str, message: str
) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        load_run(finished("sst5"), settings=parse_settings([setting])).predict([{"text": "A fine film ."}])


def typed(error: str) -> list[str]:
    """The settings that a sentence names, as a user types them."""
    named = [rf"{key}={value}" for key, value in re.findall(r"set ([\w.]+) to the file's, such as ([\w-]+)", error)]
    return named + re.findall(r"[\w.]+=[\w.-]*\w", error.partition("; ")[2])


def remedied(command: list[str], n_remedies: int = 1) -> None:
    """Run a command that ends in one sentence, and again with each remedy in it."""
    with pytest.raises(SystemExit) as error:
        main(command)
    remedies = typed(str(error.value))
    assert len(remedies) == n_remedies, error.value
    for remedy in remedies:
        main([*command, remedy])


@pytest.mark.parametrize(
    ("task", "content", "encoding"),
    [
        ("ner", "Zoë B-PER\n", "latin-1"),
        ("sst5", "(3 (2 재미있는) (2 영화))\n", "cp949"),
        ("sst5", "(3 (2 똠방각하) (2 최고))\n", "cp949"),
        ("squad", '{"data": [{"paragraphs": [{"context": "Zoë left.", "qas": [{"id": "a", "question": "Who?", '
         '"answers": [{"text": "Zoë"}]}]}]}]}', "latin-1"),
    ],
)  # fmt: skip
def test_a_file_in_another_encoding_is_scored_as_its_sentence_says(
    finished: Finished, tmp_path: Path, task: str, content: str, encoding: str, capsys
) -> None:
    (tmp_path / "file").write_bytes(content.encode(encoding))
    remedied(["evaluate", str(finished(task)), "--file", str(tmp_path / "file"), "--out", str(tmp_path / "out")])
    assert json.loads((tmp_path / "out" / "scores.json").read_text())["items"] == 1


@pytest.mark.parametrize("name", ["text.txt", "text.jsonl"])
@pytest.mark.parametrize(("text", "encoding"), [("Zoë sings .", "latin-1"), ("미나는 노래한다 .", "cp949")])
def test_a_text_in_another_encoding_is_predicted_as_its_sentence_says(
    finished: Finished, tmp_path: Path, capsys, name: str, text: str, encoding: str
) -> None:
    line = json.dumps({"tokens": text}, ensure_ascii=False) if name.endswith("jsonl") else text
    (tmp_path / name).write_bytes(f"{line}\n".encode(encoding))
    remedied(["predict", str(finished("ner")), "--text", str(tmp_path / name), "--json"])
    assert json.loads(capsys.readouterr().out)["tokens"] == text.split()


def test_an_item_beyond_a_batch_is_named_with_its_line_and_read_as_its_sentence_says(
    finished: Finished, tmp_path: Path, capsys
) -> None:
    lines = ["Anna B-PER", "sings O", "", *["word O"] * 30, "", *["la O"] * 40, ""]
    (tmp_path / "long.txt").write_text("\n".join(lines))
    small = "task.training.batch_tokens=20"
    command = ["evaluate", str(finished("ner")), "--file", str(tmp_path / "long.txt"), "--out", str(tmp_path), small]
    with pytest.raises(SystemExit, match=r"long\.txt:35: 40 tokens, more than a batch may have; .*batch_tokens=40 if"):
        main(command)
    remedied(command)
    (tmp_path / "text.txt").write_text("It rains .\n" + "la " * 30)
    command = ["predict", str(finished("ner")), "--text", str(tmp_path / "text.txt"), small]
    with pytest.raises(SystemExit, match=r"text\.txt:2: 30 tokens, more than a batch may have; .*batch_tokens=30 if"):
        main(command)
    remedied(command)


def test_settings_stand_before_or_after_the_options(finished: Finished, tmp_path: Path, capsys) -> None:
    (tmp_path / "file").write_bytes("Zoë B-PER\n".encode("latin-1"))
    run, setting = str(finished("ner")), "task.reader.encoding=latin-1"
    for part in ([run, setting, "--file", str(tmp_path / "file")], [run, "--file", str(tmp_path / "file"), setting]):
        main(["evaluate", *part, "--out", str(tmp_path)])


def test_a_wrong_offset_or_none_does_not_stop_scoring(finished: Finished, tmp_path: Path, capsys) -> None:
    """The oracle: the scores of the file with right offsets."""
    content = json.loads(SQUAD.read_text())
    predictor = load_run(finished("squad"))
    expected = predictor.evaluate(SQUAD)
    questions = [q for article in content["data"] for paragraph in article["paragraphs"] for q in paragraph["qas"]]
    for question in questions:
        for answer in question["answers"]:
            answer["answer_start"] += 1
    del questions[0]["answers"][0]["answer_start"]
    (tmp_path / "wrong.json").write_text(json.dumps(content))
    assert predictor.evaluate(tmp_path / "wrong.json") == expected
    assert predictor.evaluate(tmp_path / "wrong.json", split="train") == expected
    strict = load_run(finished("squad"), settings={"task.reader.bad_answers": "error"})
    assert strict.evaluate(tmp_path / "wrong.json") == expected
    with pytest.raises(UserError, match="no 'answer_start'"):
        strict.evaluate(tmp_path / "wrong.json", split="train")


def long_paragraph(tmp_path: Path) -> Path:
    filler = " ".join(f"The river Oda{k} runs by the town of Ost{k}." for k in range(40))
    context = f"{filler} The bank opened in Oslo in 1921. {filler}"
    questions = ["Where did the bank open?", "When did the bank open?", "What runs by the town of Ost3?"]
    qas = [
        {"id": str(k), "question": text, "answers": [{"text": "Oslo", "answer_start": context.index("Oslo")}]}
        for k, text in enumerate(questions)
    ]
    short = {"context": "Anna left Rome.", "qas": [{**qas[0], "id": "short", "answers": [{"text": "Rome"}]}]}
    path = tmp_path / "long.json"
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": context, "qas": qas}, short]}]}))
    return path


def test_a_paragraph_that_is_too_long_is_answered_in_windows(finished: Finished, tmp_path: Path) -> None:
    """The oracle: each window by itself, the answer of the one whose best span has the highest score."""
    path, n = long_paragraph(tmp_path), 100
    predictor = load_run(finished("squad"), settings={"task.reader.max_tokens": n})
    items = predictor.reader.read_file(path, "test")
    fields = [{"context": item.paragraph.context, "question": " ".join(item.question)} for item in items]
    found = [one["answer"] for one in predictor.predict(fields) if one]
    expected = []
    for item, asked in zip(items, fields, strict=True):
        tokens, best = item.paragraph.tokens, (-float("inf"), "")
        starts = [*range(0, max(0, len(tokens) - n), n // 2), max(0, len(tokens) - n)]
        for start in starts:
            part = tokens[start : start + n]
            context = asked["context"][part[0].start : part[-1].stop]
            whole = predictor.reader.from_json({"context": context, "question": asked["question"]}, "x")
            with predictor._store([whole]) as store, torch.no_grad():
                batch = predictor.run.fitted.collate([whole], store)
                out = predictor.run.model(batch)
                score = float(predictor.run.model.scores(out, batch))
                best = max(best, (score, predictor.run.model.decode(out, batch)[0]))
        expected.append(best[1])
    assert found == expected
    assert len(items[0].paragraph.tokens) > 3 * n
    result = predictor.evaluate(path)
    assert [*json.loads(result.files["predictions.json"]).values()] == expected
    assert result.n_items == 4


def test_a_paragraph_that_fits_has_one_window(finished: Finished) -> None:
    items = [
        {"context": paragraph["context"], "question": question["question"]}
        for article in json.loads(SQUAD.read_text())["data"]
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]
    plain = load_run(finished("squad"))
    longest = max(len(plain.reader.from_json(item, "x").paragraph.tokens) for item in items)
    just = load_run(finished("squad"), settings={"task.reader.max_tokens": longest})
    assert just.predict(items) == plain.predict(items)


def test_the_setting_that_refuses_a_long_paragraph_names_the_others(
    finished: Finished, tmp_path: Path, capsys: Any
) -> None:
    command = ["evaluate", str(finished("squad")), "--file", str(long_paragraph(tmp_path)), "--out", str(tmp_path)]
    remedied([*command, "task.reader.max_tokens=100", "task.reader.too_long=error"])
    main([*command, "task.reader.max_tokens=100", "task.reader.too_long=windows"])


def test_a_model_that_cannot_choose_between_windows_is_named() -> None:
    predictor: Any = SimpleNamespace(run=SimpleNamespace(model=object()))
    with pytest.raises(UserError, match=r"^object has no method scores, .*; set task\.reader\.too_long=truncate$"):
        Predictor._scores(predictor, None, None)
