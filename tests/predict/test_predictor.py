import io
import json
import os
import shutil
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmo_tasks import load_run
from elmo_tasks.assembly import build_data
from elmo_tasks.cli.main import main
from elmo_tasks.errors import UserError
from elmo_tasks.places import BUNDLED
from tests.fuzz.texts import KINDS, inputs

Finished = Callable[..., Path]

SLOW = ("squad", "srl", "coref", "snli", "pos", "nsmc")
TASKS = ["ner", "sst5", *(pytest.param(task, marks=pytest.mark.slow) for task in SLOW)]
DEV = {
    "ner": "conll2003/eng.testa",
    "sst5": "sst/dev.txt",
    "snli": "snli/snli_1.0_dev.jsonl",
    "squad": "squad/dev-v1.1.json",
    "srl": "srl/dev.conll",
    "coref": "coref/dev.conll",
    "nsmc": "nsmc/ratings_dev.txt",
    "pos": "ptb",
}


def find_row(folder: Path) -> dict[str, Any]:
    row: dict[str, Any] = json.loads((folder.parents[1] / "rows" / f"{folder.name}.json").read_text())
    return row


def without_gold(predictor: Any, item: Any) -> Mapping[str, Any]:
    """The item as a user would give it: the tokens that the run read, or the raw text where offsets count."""
    fields = predictor.required_fields
    if fields == ["context", "question"]:
        return {"context": item.paragraph.context, "question": " ".join(item.question)}
    if fields == ["sentences"]:
        starts = [0]
        for sentence in item.sentences:
            starts.append(starts[-1] + len(sentence))
        speakers = [item.speakers[start] for start in starts[:-1]]
        return {"sentences": item.sentences, "genre": item.genre, "speakers": speakers}
    found = dict(zip(fields, predictor.reader.texts(item), strict=True))
    return found | ({"predicates": item.gold["predicates"]} if "predicates" in predictor.reader.fields else {})


@pytest.mark.parametrize("task", TASKS)
def test_it_scores_what_the_run_scored(finished: Finished, task: str) -> None:
    folder = finished(task)
    predictor = load_run(folder)
    result = predictor.evaluate(BUNDLED / "sample" / DEV[task], "dev")
    assert predictor.evaluate(BUNDLED / "sample" / DEV[task], "dev").left_out == result.left_out  # not added up
    row = find_row(folder)
    assert result.scores == pytest.approx(row["scores"]["dev"], abs=1e-9)
    assert result.n_items == row["data"]["items"]["dev"]["used"]


@pytest.mark.parametrize("task", TASKS)
def test_without_gold_it_predicts_what_the_run_predicted(finished: Finished, task: str) -> None:
    predictor = load_run(finished(task))
    items = predictor.reader.read_file(BUNDLED / "sample" / DEV[task], "dev")[:40]
    expected = [
        predictor.reader.to_json(item, prediction)
        for item, prediction in zip(items, predictor._decode(items), strict=True)
    ]
    found = predictor.predict([without_gold(predictor, item) for item in items])
    for one, other in zip(found, expected, strict=True):
        assert one is not None
        assert {key: one[key] for key in other} == other


@pytest.mark.parametrize("task", TASKS)
def test_the_tokens_of_a_file_are_predicted_as_they_are_scored(
    finished: Finished, tmp_path: Path, task: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given as they stand in the file, in a list, as a text, and to the command: escapes, marks, spaces in a token."""
    predictor = load_run(finished(task))
    cases = [case for case in islice(inputs(seed=3), 4 * len(KINDS)) if case.task == task and case.inputs]
    assert len(cases) > 1
    for case in cases:
        path = tmp_path / "file"
        path.write_text(str(case.text))
        items = predictor.reader.read_file(path, "test")
        predictor._add_words(items)  # as evaluate does
        scored = [predictor.reader.to_json(*pair) for pair in zip(items, predictor._decode(items), strict=True)]
        given = [as_given(task, case.inputs[k], items[k % len(items)]) for k in range(len(case.inputs))]
        found = predictor.predict(given)
        assert len(found) % len(items) == 0
        read = [predictor.reader.texts(predictor._item(fields, "item")) for fields in given]  # labels alone show little
        assert read == [predictor.reader.texts(item) for item in items] * (len(found) // len(items))
        assert [{key: one[key] for key in scored[0]} for one in found] == scored * (len(found) // len(items))
        if task in ("sst5", "pos", "nsmc"):
            lines = [" ".join(value) for fields in given for value in fields.values() if isinstance(value, list)]
            (tmp_path / "text").write_text("\n".join(lines))
            main(["predict", str(finished(task)), "--text", str(tmp_path / "text"), "--json", "--tokenized"])
            printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
            assert [{key: one[key] for key in scored[0]} for one in printed] == scored


def as_given(task: str, fields: Mapping[str, Any], item: Any) -> dict[str, Any]:
    """A generated input, with what the file says besides the tokens."""
    if task == "srl":
        return {**fields, "predicates": item.gold["predicates"]}
    if task == "coref":
        return {**fields, "genre": item.genre, "speakers": ["ann"] * len(item.sentences)}
    return dict(fields)


@pytest.mark.parametrize("placement", ["none", "both"])
def test_a_moved_folder_is_enough(finished: Finished, placement: str, tmp_path: Path, monkeypatch: Any) -> None:
    folder = finished("ner", f"elmo.placement={placement}")
    moved = tmp_path / "elsewhere" / "model"
    shutil.copytree(folder, moved)
    items = [{"tokens": "Anna Berg lives in Berlin ."}, {"tokens": ["The", "bank", "."]}]
    expected = load_run(folder).predict(items)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("elmo_tasks.assembly.build_data", None)
    assert load_run(moved).predict(items) == expected
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere"]


def test_a_long_lived_predictor_keeps_no_file_open(finished: Finished) -> None:
    predictor = load_run(finished("sst5"))
    n_open = len(os.listdir("/dev/fd"))
    for _ in range(5):
        predictor.predict([{"text": "A fine film ."}])
    assert len(os.listdir("/dev/fd")) == n_open


def test_the_word_vectors_are_read_once_however_many_items_there_are(finished: Finished, monkeypatch: Any) -> None:
    monkeypatch.setattr("elmo_tasks.predict.predictor._AT_A_TIME", 2)
    predictor = load_run(finished("sst5"))
    looked_up: list[list[str]] = []
    lookup = predictor.run.vectors.lookup
    monkeypatch.setattr(predictor.run.vectors, "lookup", lambda words: looked_up.append([*words]) or lookup(words))
    predictor.predict([{"text": f"zyx{k} ."} for k in range(5)])
    assert looked_up == [[f"zyx{k}" for k in range(5)]]


def test_order_and_batch_mates_change_no_prediction(finished: Finished) -> None:
    predictor = load_run(finished("ner"))
    items = [{"tokens": text} for text in ("Anna met Paul in Rome .", "Rain .", "The Bank of Norway closed .")]
    together = predictor.predict(items)
    assert [predictor.predict([item])[0] for item in items] == together
    assert predictor.predict(items[::-1]) == together[::-1]


def test_a_bad_item_is_named_or_given_to_the_caller(finished: Finished) -> None:
    predictor = load_run(finished("ner"))
    items: list[dict[str, Any]] = [{"tokens": "Anna sings ."}, {"tokens": ""}, {"text": "x"}, {"tokens": "Paul ."}]
    with pytest.raises(UserError, match=r"^item 2: tokens"):
        predictor.predict(items)
    bad: dict[int, str] = {}
    found = predictor.predict(items, on_error=lambda place, error: bad.update({place: str(error)}))
    assert [prediction is None for prediction in found] == [False, True, True, False]
    assert sorted(bad) == [1, 2]
    assert bad[2].startswith("item 3: expected the fields tokens")


def test_an_item_that_is_no_dictionary_is_named(finished: Finished) -> None:
    items: Any = ["Anna sings ."]
    with pytest.raises(UserError, match=r"^item 1: expected a dictionary with tokens, found 'Anna sings \.'$"):
        load_run(finished("ner")).predict(items)


def test_items_come_as_numpy_and_pandas_have_them(finished: Finished) -> None:
    predictor = load_run(finished("ner"))
    tokens = [["Anna", "lives", "in", "Berlin", "."], ["Peter", "works"]]
    expected = predictor.predict([{"tokens": sentence} for sentence in tokens])
    pandas = pytest.importorskip("pandas")
    arrays = [{"tokens": np.array(sentence)} for sentence in tokens]
    for items in (arrays, iter(arrays), pandas.DataFrame({"tokens": tokens}), pandas.Series(arrays, index=[4, 2])):
        found = predictor.predict(items)
        assert found == expected
        assert json.loads(json.dumps(found)) == found
    assert predictor.predict(np.array([], dtype=object)) == []


@pytest.mark.parametrize("items", ["Anna lives in Berlin .", {"tokens": ["Anna"]}, None, 3])
def test_a_text_or_one_item_in_the_place_of_a_list_of_items_is_named(finished: Finished, items: Any) -> None:
    with pytest.raises(UserError, match=r"^expected a list of items, such as \[\{'text': 'A fine film \.'\}\], found "):
        load_run(finished("ner")).predict(items)


def test_the_training_of_a_bilm_predicts_nothing(tmp_path: Path) -> None:
    (tmp_path / "bilm").mkdir()
    with pytest.raises(UserError, match=r": this run trained a biLM and has no task model; use it with bilm\.path=.*$"):
        load_run(tmp_path)


def test_an_item_that_is_too_long_is_named(finished: Finished) -> None:
    predictor = load_run(finished("ner"))
    with pytest.raises(
        UserError, match=r"^item 1: 20,000 tokens, more than a batch may have; .* task\.training\.batch_tokens=20000 if"
    ):
        predictor.predict([{"tokens": ["word"] * 20_000}])


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "run.json", "fitted.json"])
def test_an_incomplete_folder_gives_a_one_sentence_error(finished: Finished, name: str, tmp_path: Path) -> None:
    shutil.copytree(finished("ner"), tmp_path / "run")
    (tmp_path / "run" / name).unlink()
    with pytest.raises(UserError, match=name.replace(".", r"\.")):
        load_run(tmp_path / "run")


def test_a_folder_that_is_no_run_gives_a_one_sentence_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere: no such folder; expected that of a finished run"):
        load_run(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r": no run\.json in it; expected the folder of one finished run, outputs/"):
        load_run(tmp_path)


def test_weights_of_another_run_are_refused(finished: Finished, tmp_path: Path) -> None:
    shutil.copytree(finished("ner"), tmp_path / "run")
    shutil.copy(finished("sst5") / "model.safetensors", tmp_path / "run" / "model.safetensors")
    with pytest.raises(UserError, match=r"model\.safetensors: not the weights of run ner-"):
        load_run(tmp_path / "run")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            ("task", "model", "char_filters"),
            10**9,
            r"config\.json: task\.model\.char_filters must be a whole number from",
        ),
        (("task", "model", "hidden"), [90_000, 90_000], r"weights of another size"),
        (("task", "model", "dropout"), "x", r"config\.json: task\.model\.dropout must be a number of at least 0"),
        (("task", "metric", "_target_"), "os.system", r"config\.json: task\.metric\._target_ must be a class below"),
        (("task", "training", "batch_size"), None, r"config\.json: task\.training: batch_size must be a whole number"),
        (("words", "dim"), None, r"config\.json: words: dim must be a whole number"),
        (("words", "unit_lenght"), True, r"config\.json: words\.unit_lenght is not a setting of word vectors"),
        (("elmo", "placement"), "above", r"config\.json: elmo\.placement must be one of"),
        (("packages",), ["os"], None),
    ],
)
def test_a_damaged_configuration_is_named_and_no_memory_is_taken_for_it(
    finished: Finished, tmp_path: Path, key: tuple[str, ...], value: object, message: str | None
) -> None:
    shutil.copytree(finished("ner"), tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    config = json.loads(path.read_text())
    node = config
    for part in key[:-1]:
        node = node[part]
    node[key[-1]] = value
    path.write_text(json.dumps(config))
    if message is None:
        load_run(tmp_path / "run")
        return
    with pytest.raises(UserError, match=message):
        load_run(tmp_path / "run")


def test_a_run_with_a_class_of_ones_own_needs_its_package_named(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own_lab.py").write_text("from elmo_tasks.data.sst5 import SstReader\nclass Own(SstReader): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    own = ["elmo.placement=none", "task.reader._target_=own_lab.Own", "packages=[own_lab]"]
    folder = finished("sst5", *own)
    with pytest.raises(UserError, match=r"config\.json: task\.reader\._target_ must be .* packages=\[NAME\] allows"):
        load_run(folder)
    assert load_run(folder, packages=["own_lab"]).task == "sst5"
    monkeypatch.setattr("sys.stdin", io.StringIO("A fine film .\n"))
    main(["predict", str(folder), "--package", "own_lab"])
    assert "A fine film ." in capsys.readouterr().out


def test_the_data_are_those_of_the_run(finished: Finished) -> None:
    """The oracle: the run's own data, read anew with their gold."""
    predictor = load_run(finished("sst5"))
    data: Any = build_data(predictor.run.config)
    data.read()
    assert predictor.reader.state() == data.reader.state()
    assert predictor.run.fitted.vocabulary.words == data.fitted.vocabulary.words
