"""Run folders that somebody else made: they run no code, and no file is written where they say."""

import io
import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fuzz.run_folders import is_changed_read

from elmo_tasks.cli.main import main
from elmo_tasks.config.components import check_classes, make
from elmo_tasks.errors import MAX_SENTENCE, UserError
from elmo_tasks.predict.predictor import load_run

Finished = Callable[..., Path]
Change = Callable[[dict[str, Any], str, str], None]  # of config.json; given a pickle, and a file that code would make


class Code:
    """Makes a file when it is unpickled."""

    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.made),)


@pytest.fixture
def foreign(finished: Finished, tmp_path: Path) -> Callable[[Change], Path]:
    """A copy of a finished run with a changed configuration."""

    def change(edit: Change) -> Path:
        folder = tmp_path / "run"
        shutil.copytree(finished("sst5", "elmo.placement=none"), folder)
        planted = tmp_path / "code.pkl"
        planted.write_bytes(pickle.dumps(Code(tmp_path / "ran")))
        config = json.loads((folder / "config.json").read_text())
        edit(config, str(planted), str(tmp_path / "ran"))
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    return change


def create(planted: str) -> str:
    return "${oc.create:{_target_:pandas.read_pickle,filepath_or_buffer:'file://" + planted + "'}}"


def put(*path: str) -> Callable[[Any], Change]:
    """A change: a value at a place of the configuration."""

    def with_value(value: Any) -> Change:
        def edit(config: dict[str, Any], planted: str, made: str) -> None:
            node = config
            for name in path[:-1]:
                node = node.setdefault(name, {})
            node[path[-1]] = value(planted, made) if callable(value) else value

        return edit

    return with_value


def code(planted: str, made: str) -> str:
    return create(planted)


def mkdir(planted: str, made: str) -> dict[str, Any]:
    return {"_target_": "os.mkdir", "path": made}


ATTACKS: dict[str, Change] = {
    "a section made of text, in the reader": put("task", "reader", "encoding")(code),
    "in the model": put("task", "model", "hidden")(code),
    "in a list of the model": put("task", "model", "classifier")(lambda planted, _: [create(planted), 100]),
    "in the metric": put("task", "metric", "own")(code),
    "in the optimizer": put("task", "optimizer", "lr")(code),
    "in place of the reader": put("task", "reader")(code),
    "as a class": put("task", "reader", "_target_")(code),
    "in the words": put("words", "unknown")(code),
    "in the words' file": put("words", "path")(code),
    "in a section that nothing reads": put("own", "section")(code),
    "a class of another package": put("task", "model", "own")(mkdir),
    "the same in a list": put("task", "model", "own")(lambda planted, made: [[mkdir(planted, made)]]),
    "a package that the file trusts": lambda config, planted, made: config.update(
        packages=["os", "pandas"], task={**config["task"], "reader": mkdir(planted, made)}
    ),
    "a resolver of the environment": put("task", "reader", "encoding")("${oc.env:HOME}"),
    "a decoded text": put("task", "reader", "encoding")(
        lambda planted, made: "${oc.decode:\"{_target_: os.mkdir, path: '" + made + "'}\"}"
    ),
    "our own resolver": put("task", "reader", "encoding")("${by_scale:{paper:utf-8,cpu:utf-8}}"),
    "a reference": put("task", "reader", "encoding")("${own.section}"),
    "arguments in a list": put("task", "reader", "_args_")(lambda planted, made: [made]),
    "a key of Hydra": put("task", "reader", "_recursive_")(True),
    "another key of Hydra": put("task", "reader", "_convert_")("all"),
    "a function of a module": put("task", "reader", "_target_")("elmo_tasks.data.files.os.mkdir"),
    "a class within another module": put("task", "reader", "_target_")("elmo_tasks.data.files:Path"),
    "a method": put("task", "reader", "_target_")("torch.optim.Adam.mro"),
    "a class for something else": put("task", "reader", "_target_")("elmo_tasks.models.bcn.BiattentiveClassifier"),
    "a class that opens files": put("task", "model")(
        lambda planted, _: {"_target_": "elmo_tasks.data.source.Files", "root": "/", "files": {"train": planted}}
    ),
    "a class of ours within another": put("task", "model", "own")(
        {"_target_": "elmo_tasks.data.wsd.WsdData", "root": "/"}
    ),
    "an encoder that is none": put("bilm", "encoder")({"_target_": "elmo_tasks.data.sst5.SstReader"}),
    "an optimizer at another place": put("bilm", "encoder")({"_target_": "torch.optim.Adam", "params": []}),
    "a part of a class": put("task", "reader", "_partial_")(True),
    "the deepest of sections": put("own")(json.loads("[" * 900 + "]" * 900)),
    "two sections of one name": lambda config, planted, made: config.update(
        {"bilm.encoder": {"_target_": "elmo_tasks.encoders.cove.CoVe.load"}},
        bilm={**config["bilm"], "encoder": mkdir(planted, made)},
    ),
}
READ = ("in a section that nothing reads", "in the words' file", "in the optimizer")
"""What is a text that predictions have no use for: the file is read for words that the run has not seen."""


@pytest.mark.parametrize("name", ATTACKS)
def test_a_configuration_from_a_file_runs_no_code(foreign: Callable[[Change], Path], name: str, tmp_path: Path) -> None:
    folder = foreign(ATTACKS[name])
    sentence = ""
    try:
        load_run(folder).predict([{"text": "a fine film ."}])
    except UserError as error:
        sentence = str(error)
    assert sentence.startswith(str(folder)) or name in READ
    assert len(sentence) - len(str(folder)) <= MAX_SENTENCE
    assert "\n" not in sentence
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_neither_command_runs_code_of_a_run_folder(
    foreign: Callable[[Change], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    folder = foreign(put("task", "reader", "encoding")(code))
    monkeypatch.setattr("sys.stdin", io.StringIO("a fine film .\n"))
    file = tmp_path / "dev.txt"
    file.write_text("(3 (2 a) (3 film))\n")
    with pytest.raises(SystemExit) as ended:
        main([command, str(folder), *(["--file", str(file)] if command == "evaluate" else [])])
    assert str(ended.value.code).startswith(f"error: {folder / 'config.json'}: task.reader.encoding must be ")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("run_id", ["../../elsewhere/x", "/tmp/x", "..", "", "x\ny", "x" * 300, "a/b"])
def test_scores_are_not_written_where_a_run_folder_says(finished: Finished, tmp_path: Path, run_id: str) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished("sst5", "elmo.placement=none"), folder)
    about = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**about, "run_id": run_id}))
    with pytest.raises(UserError, match=r"run\.json: run_id must be the name of a run, found "):
        load_run(folder)


class Inner:
    """A class of a package that is named on the command line."""

    def __init__(self, size: int) -> None:
        self.size = size


class Metric:
    """Of the same package; it has another of its classes."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def update(self, predictions: Any, gold: Any) -> None: ...

    def compute(self) -> dict[str, float]:
        return {}


def test_a_text_that_looks_like_a_reference_is_a_text() -> None:
    """Also on the command line a value is resolved once: what comes of it, such as a folder's name, is a text."""
    values = {"a": "${oc.env:HOME}", "b": ["${x}"]}
    assert make({"_target_": f"{__name__}.Metric", "inner": values}, [__name__]).inner == values


def test_classes_of_a_package_of_ones_own_may_stand_within_one_another() -> None:
    metric = {"_target_": f"{__name__}.Metric", "inner": {"_target_": f"{__name__}.Inner", "size": 3}}
    check_classes({"task": {"metric": metric}}, [__name__])
    assert make(metric, [__name__]).inner.size == 3
    with pytest.raises(UserError, match=r"^task\.metric.*_target_ must be a class below"):
        check_classes({"task": {"metric": metric}}, [])


def test_changed_run_folders_are_refused_or_read(finished: Finished, tmp_path: Path) -> None:
    whole = finished("sst5", "elmo.placement=none", "words=random", "task.model.hidden=5", "task.model.pre_encode=5")
    read = [is_changed_read(whole, tmp_path / str(seed), seed) for seed in range(210)]
    assert 50 < sum(read) < 160


@pytest.mark.slow
def test_many_changed_run_folders_are_refused_or_read(finished: Finished, tmp_path: Path) -> None:
    whole = finished("sst5", "elmo.placement=none")
    read = [is_changed_read(whole, tmp_path / str(seed), seed) for seed in range(1_000, 3_000)]
    assert 500 < sum(read) < 1500
