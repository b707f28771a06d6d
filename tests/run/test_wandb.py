import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kills import Killed

from elmo_tasks.errors import UserError
from elmo_tasks.runs import run as train
from elmo_tasks.runs import supervised as run_supervised
from elmo_tasks.training.state_file import TensorsAndJson

wandb = pytest.importorskip("wandb")


def records(path: Path) -> Iterator[Any]:
    """The records of an offline run: a 7-byte header, then LevelDB log blocks of 32,768 bytes."""
    from wandb.proto.wandb_internal_pb2 import Record

    data = path.read_bytes()
    position, parts = 7, b""
    while position + 7 <= len(data):
        room = 32768 - position % 32768
        if room < 7:
            position += room
            continue
        length, kind = struct.unpack("<HB", data[position + 4 : position + 7])
        parts += data[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):  # a whole record, or the last part of one
            yield Record.FromString(parts)
            parts = b""


def read_run(path: Path) -> tuple[dict[str, Any], dict[str, list[float]], Any]:
    config: dict[str, Any] = {}
    history: dict[str, list[float]] = {}
    run = None
    for record in records(path):
        kind = record.WhichOneof("record_type")
        if kind == "run":
            run = record.run
        items = record.run.config.update if kind == "run" else record.config.update if kind == "config" else ()
        for item in items:
            config[item.key or "/".join(item.nested_key)] = json.loads(item.value_json)
        for item in record.history.item if kind == "history" else ():
            history.setdefault(item.key or "/".join(item.nested_key), []).append(json.loads(item.value_json))
    return config, history, run


@pytest.mark.slow
def test_an_offline_run_holds_config_curves_layer_weights_group_and_tags(composed: Any, tmp_path: Path) -> None:
    for value in ("0.001", "1"):
        train.run(composed("elmo.placement=both", f"elmo.lambda={value}", "logger=wandb", "logger.tags=[table2]"))
    files = sorted((tmp_path / "outputs").glob("runs/*/wandb/offline-run-*/run-*.wandb"))
    assert len(files) == 2  # one W&B run for each run, though both ran in one process
    seen, settings = set(), set()
    for file in files:
        config, history, run = read_run(file)
        seen.add(config["elmo"]["lambda"])
        settings.add(config["setting"])
        assert config["task"]["name"] == "sst5"
        assert len(history["dev/accuracy"]) == 2
        assert len(history["elmo/input/gamma"]) == len(history["elmo/output/s_2"]) == 2
        assert "best/dev/accuracy" in history
        assert run.run_group == "sst5-sample-cpu"
        assert {"table2", "placement=both", "mix=scalar", f"lambda={config['elmo']['lambda']:g}"} <= set(run.tags)
    assert seen == {0.001, 1}
    assert len(settings) == 2  # a dashboard keeps them apart


def undisturbed(composed: Any, tmp_path: Path) -> dict[str, list[float]]:
    """The history of the same run, made elsewhere without being killed."""
    outputs = tmp_path / "undisturbed"
    train.run(composed("elmo.placement=none", "logger=wandb", f"paths.outputs={outputs}"))
    (file,) = outputs.glob("runs/*/wandb/offline-run-*/run-*.wandb")
    return read_run(file)[1]


@pytest.mark.slow
def test_a_resumed_run_continues_its_wandb_run(composed: Any, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    config = composed("elmo.placement=none", "logger=wandb")
    save = TensorsAndJson.save_checkpoint

    def save_and_stop(*arguments: Any, **options: Any) -> None:
        save(*arguments, **options)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(TensorsAndJson, "save_checkpoint", save_and_stop)
        with pytest.raises(Killed):
            train.run(config)
    train.run(config)
    folders = sorted((tmp_path / "outputs").glob("runs/*/wandb/offline-run-*"))
    assert len(folders) == 2  # one for each process
    first, second = (read_run(next(folder.glob("run-*.wandb"))) for folder in folders)
    assert first[2].run_id == second[2].run_id
    assert [len(history["dev/accuracy"]) for _, history, _ in (first, second)] == [1, 2]
    assert second[1]["_step"] == [*range(len(second[1]["_step"]))]
    assert [*dict.fromkeys(second[1]["trainer/global_step"])] == sorted(set(second[1]["trainer/global_step"]))
    assert f"upload the curves: wandb sync {folders[1]}\n" in capsys.readouterr().out
    whole = undisturbed(composed, tmp_path)
    for name in ("dev/accuracy", "trainer/global_step", "best/dev/accuracy", "epoch"):
        assert second[1][name] == pytest.approx(whole[name], rel=1e-6), name
    train.run(composed("elmo.placement=none", "logger=wandb", "force=true"))
    (folder,) = (tmp_path / "outputs").glob("runs/*/wandb/offline-run-*")
    assert read_run(next(folder.glob("run-*.wandb")))[2].run_id != first[2].run_id


SMALL = ("task=sst5", "elmo.placement=none", "trainer.max_epochs=1", "data.fraction=0.05", "logger=wandb")


def test_wandb_that_is_disabled_writes_nothing(composed: Any, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("WANDB_MODE", "disabled")
    train.run(composed(*SMALL))
    assert len([*tmp_path.glob("outputs/rows/*.json")]) == 1
    assert not [*tmp_path.glob("outputs/runs/*/wandb")]
    assert "upload" not in capsys.readouterr().out


def test_wandb_without_a_key_is_missed_before_any_work(composed: Any, tmp_path: Path, monkeypatch: Any) -> None:
    for name in ("WANDB_MODE", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")  # nothing answers
    wandb.teardown()  # it reads the environment once in a process
    monkeypatch.setattr(run_supervised, "fit", lambda *_, **__: pytest.fail("it is trained"))
    with pytest.raises(UserError, match=r"^logger\.offline=false: W&B has no key \(.*\); run `wandb login`, or set"):
        train.run(composed(*SMALL, "logger.offline=false"))
    assert not [*tmp_path.glob("outputs/rows/*.json")]
    assert not [*tmp_path.glob("outputs/runs/*")]


def test_the_mode_of_one_run_is_not_that_of_the_next(composed: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv("WANDB_MODE")
    train.run(composed(*SMALL))
    assert "WANDB_MODE" not in os.environ
    assert len([*tmp_path.glob("outputs/runs/*/wandb/offline-run-*")]) == 1
