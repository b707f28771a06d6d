"""Every command of the documents is run, or it is in the tables below and is composed or parsed."""

import os
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
from attack.children import Child
from documents import REPO, Command, commands
from hydra import compose, initialize_config_dir

from elmo_tasks.cli.main import COMMANDS, main
from elmo_tasks.cli.run import run_composed
from elmo_tasks.config.compose import validate
from elmo_tasks.nn.words import WordVectors
from elmo_tasks.places import CONF

ALL = [*commands("bash")]
RUNS = [one for one in ALL if re.match(r"elmo-tasks (run|sweep) ", one.line)]
OTHERS = [one for one in ALL if one not in RUNS]

NEEDS = {
    "DIR": "a folder of real data or of published weights",
    "FILE": "published weights",
    "data=hub": "a network",
    "hydra/launcher=submitit_slurm": "Slurm",
    "experiment=optuna": "the extra optuna",
    "logger=tensorboard": "the extra tensorboard",
    "ensemble=[1,2,3]": "finished runs",
    "task=lm": "a minute a run",
}
"""Runs with one of these words are composed and checked, and not started."""

NOT_RUN = {
    "pip install": "CI's own job does it in a fresh environment",
    "python -m pytest": "this is it",
    "python -m benchmarks.rehearsal": "tests/rehearsal runs it at a small share",
    "elmo-tasks pretrain": "tests/pretrain runs it on a small text",
    "python benchmarks/": "it needs a GPU, or minutes",
    "elmo-tasks table figure1 --figures": "it needs rows of today's settings; tests/tables draws its figures",
    "elmo-tasks store verify --recompute": "tests/store runs it on a store of that encoder",
    "elmo-tasks predict RUN": "tests/predict runs it on a finished run",
    "elmo-tasks evaluate RUN": "tests/predict runs it on a finished run",
}
"""Beginnings of other commands that are not run here."""

SHELL = {
    "eval ": "the completion of Hydra",
    "(head ": "NSMC's files",
    "head ": "NSMC's files",
    "export ": "variables",
    "python -c ": "a published pickle",
    "python -m pytest tests/contract -k trec": "test_extending.py",
    "python run.py task=trec": "test_extending.py",
    "python my_table.py ": "test_documents.py",
    "elmo-tasks run --config-dir my_conf": "test_extending.py",
    "elmo-tasks predict outputs/runs/ID --package": "test_extending.py",
    "srun elmo-tasks run task=snli data=local data.root=": "a batch script of Slurm",
    "elmo-tasks run task=snli data=local data.root=$DATA": "a batch script of Slurm",
    "pip wheel ": "the wheels for a machine without a network",
    "pip install --no-index ": "the wheels for a machine without a network",
}
"""Beginnings of the lines in blocks that show other people's programs."""

HYDRAS_OWN = ("hydra/", "hydra.")


def command_name(command: Command) -> str:
    return f"{command.document}: {command.line}"


def find_overrides(command: Command) -> list[str]:
    """The overrides of a run, the first value of each sweep in place of all; Hydra's own are left out."""
    words = [re.sub("DIR|FILE", "folder", word) for word in shlex.split(command.line)[2:]]
    words = [re.sub(r"=interval\((.*?),.*", r"=\1", word) for word in words]
    words = [re.sub(r"=([^=,\[]+),.*", r"=\1", word) for word in words]
    return [word for word in words if not word.startswith(HYDRAS_OWN)]


@pytest.mark.parametrize("command", RUNS, ids=command_name)
def test_a_run_composes_to_a_valid_configuration(command: Command) -> None:
    overrides = find_overrides(command)
    if "experiment=optuna" in overrides:
        pytest.importorskip("hydra_plugins.hydra_optuna_sweeper", reason="needs the extra optuna")
    with initialize_config_dir(str(CONF), version_base="1.3"):
        words = validate(compose("config", overrides)).to_json()["words"]
    if words["path"] is None:
        WordVectors(**words)  # at scale=paper their size is checked


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [one for one in RUNS if not any(word in one.line for word in NEEDS)], ids=command_name
)
def test_a_run_on_the_sample_writes_a_row(command: Command, tmp_path: Path, tiny_bilm) -> None:
    """With a tiny biLM, a tenth of the sample and one epoch; of a sweep the first cell."""
    tiny_bilm.save(tmp_path / "bilm")
    overrides = [
        *find_overrides(command),
        f"paths.outputs={tmp_path}",
        "trainer.progress=false",
        "trainer.max_epochs=1",
    ]
    if "task=lm" not in overrides:
        overrides += ["bilm.name=mini", f"bilm.path={tmp_path / 'bilm'}", "data.fraction=0.1"]  # a name of any sizes
    with initialize_config_dir(str(CONF), version_base="1.3"):
        cfg = compose("config", overrides)
    run_composed(cfg)
    assert len([*(tmp_path / "rows").glob("*.json")]) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [one for one in OTHERS if not one.line.startswith(tuple(NOT_RUN))], ids=command_name
)
def test_any_other_command_runs(command: Command, tmp_path: Path) -> None:
    """What would train for hours only says what it would run; claims and the whole paper are asked of one task."""
    if "submitit" in command.line:
        pytest.importorskip("hydra_plugins.hydra_submitit_launcher", reason="needs the extra slurm")
    text = tmp_path / "text.txt"
    text.write_text("The river burst its bank .\nThe bank lent him money .\n")
    places = {"FILE": str(text), "TEXT": str(text), "OUT.hdf5": "out.hdf5", "--run": "--missing"}
    words = [places.get(word, re.sub("DIR", str(tmp_path), word)) for word in shlex.split(command.line)]
    words = [word.replace("experiments/rows", str(REPO / "experiments" / "rows")) for word in words]
    words = [word for word in words if not word.startswith("data.root=")]  # what is not here
    if {"claims", "paper"} & set(words):
        words.append("tasks=ner")  # every cell is a configuration to be composed

    def begin() -> None:
        os.chdir(tmp_path)
        if words[0] == "elmo-tasks":
            main(words[1:])
        else:  # python -m MODULE
            sys.argv = words[2:]
            runpy.run_module(words[2], run_name="__main__", alter_sys=True)

    child = Child(begin, tmp_path / "log.txt", errors=tmp_path / "errors.txt")
    assert child.wait(300) == 0, child.errors.read_text()
    assert child.output()


@pytest.mark.parametrize("command", OTHERS, ids=command_name)
def test_every_command_is_one_that_there_is(command: Command) -> None:
    words = shlex.split(command.line)
    if words[0] == "elmo-tasks":
        assert words[1] in COMMANDS
    else:
        assert command.line.startswith(("python -m elmo_tasks.", *NOT_RUN))


@pytest.mark.parametrize("command", [*commands("sh")], ids=command_name)
def test_lines_for_other_programs_are_listed(command: Command) -> None:
    assert command.line.startswith(tuple(SHELL))


def test_readme_has_the_two_commands_that_do_everything() -> None:
    readme = (REPO / "README.md").read_text("utf-8")
    expected = {"run": "elmo-tasks sweep task=ner elmo.placement=none,input", "test": "python -m pytest"}
    for name, ending in expected.items():
        (command,) = re.findall(rf"<!-- command: {name} -->\n```bash\n(.*)\n```", readme)
        assert command.startswith("pip install -c constraints.txt -e ")
        assert command.endswith(ending)
