import errno
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from elmo_tasks import __version__
from elmo_tasks.cli import run as program
from elmo_tasks.cli.main import COMMANDS, main
from elmo_tasks.places import CONF, EXPERIMENTS

REPO = Path(__file__).parents[2]

SLOW_TO_IMPORT = {"torch", "pytorch_lightning", "datasets", "wandb", "sklearn", "matplotlib", "transformers"}


def test_the_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    shown = capsys.readouterr().out
    for name in COMMANDS:
        assert f"  {name} " in shown


def test_the_package_itself_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "elmo_tasks", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"elmo-tasks {__version__}\n"


def test_an_unknown_command_gives_a_one_sentence_error() -> None:
    with pytest.raises(SystemExit, match=r"^error: elmo-tasks: unknown command 'tran'; expected one of run, sweep"):
        main(["tran"])


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["run", "--help"], ["table"], ["report", "--help"], ["predict", "--help"], ["evaluate", "--help"]],
)
def test_help_imports_nothing_slow(arguments: list[str]) -> None:
    program = (
        "import sys; from elmo_tasks.cli.main import main\n"
        f"try: main({arguments!r})\nexcept SystemExit: pass\n"
        "print('IMPORTED', *{name.split('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = next(line for line in done.stdout.splitlines() if line.startswith("IMPORTED")).split()
    assert not SLOW_TO_IMPORT & set(imported)


def test_the_paper_is_listed_with_the_title_of_each_declaration(capsys: pytest.CaptureFixture[str]) -> None:
    main(["table"])
    shown = capsys.readouterr().out
    for path in EXPERIMENTS.glob("*.py"):
        assert f"  {path.stem} " in shown
    assert "table2     Table 2: all layers of the biLM against its last one" in shown


def test_a_table_that_does_not_exist_names_the_others() -> None:
    with pytest.raises(
        SystemExit, match=r"^error: elmo-tasks table: unknown 'table9'; expected one of .*table1, table2"
    ):
        main(["table", "table9"])


def test_a_table_tells_what_is_missing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main(["table", "table3", "tasks=ner,snli", "seeds=1", f"rows={tmp_path}", "--missing"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1
    assert all(line.startswith("python run.py data=local task=snli") for line in lines)


@pytest.mark.parametrize("group", ["task", "bilm", "words", "data", "trainer", "logger", "scale", "elmo"])
def test_the_help_of_run_has_every_choice_and_key_of_a_group(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", "--help"])
    shown = capsys.readouterr().out
    line = next(line for line in shown.splitlines() if line.startswith(f"  {group}="))
    assert {path.stem for path in (CONF / group).glob("*.yaml")} == set(line.split("=", 1)[1].replace("|", " ").split())
    assert f"\n  {group}.name" in shown or group in ("trainer", "elmo")


def test_the_help_of_run_explains_the_keys_of_the_task_that_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", "task=coref", "--help"])
    shown = capsys.readouterr().out
    assert "task.model.max_span_width" in shown
    assert "task.reader.phrases" not in shown
    assert "# true: an error unless there are CoNLL-2012's 2,802, 343 and 348 documents" in shown


def leaves(section: Any, *names: str) -> Iterator[tuple[str, ...]]:
    """The path of each value of a configuration."""
    if isinstance(section, dict) and section:
        for name, value in section.items():
            yield from leaves(value, *names, name)
    else:
        yield names


@pytest.mark.parametrize("task", [path.stem for path in sorted((CONF / "task").glob("*.yaml"))])
@pytest.mark.parametrize("scale", ["cpu", "paper"])
def test_the_help_has_every_key_of_the_composed_configuration_and_the_choices_of_the_task(
    task: str, scale: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["run", f"task={task}", f"scale={scale}", "--help"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    shown = {words[0]: words[1] for words in lines if len(words) > 1}
    with initialize_config_dir(str(CONF), version_base="1.3"):
        composed = compose("config", [f"task={task}", f"scale={scale}"])
    cfg = OmegaConf.to_container(composed, resolve=False)
    assert isinstance(cfg, dict)
    for names in leaves(cfg):
        if not {"_target_", "_partial_", "sizes"} & set(names):
            assert any(".".join(names[:n]) in shown for n in range(1, len(names) + 1)), names
    assert [shown["bilm="], shown["words="]] == [cfg["bilm"]["name"], cfg["words"]["name"]]
    if "optimizer" in cfg["task"]:
        assert shown["task.optimizer.lr"] == str(composed.task.optimizer.lr)
    assert "${" not in "".join(shown.values())  # what a value that depends on others is here


def test_hydra_prints_the_resolved_configuration(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "elmo_tasks", "run", "task=ner", "--cfg", "job", "--resolve"]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(REPO)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert OmegaConf.create(done.stdout).task.model.hidden == [100, 100]


def start_failing(monkeypatch: pytest.MonkeyPatch, failure: OSError) -> None:
    """The command ``run``, as it answers to an error of Hydra's own folder."""

    def fail() -> None:
        raise failure

    monkeypatch.setattr(program, "_main", fail)
    monkeypatch.setattr("elmo_tasks.interrupts.install", lambda: None)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    program.start(["task=ner"])


@pytest.mark.parametrize("override", ["seed=1,", "seed =2", "foo", "task.model.x=[1,2"])
def test_an_override_that_cannot_be_read_is_shown(override: str) -> None:
    expected = f"error: {override!r} cannot be read; expected KEY=VALUE, without a space at the = or after a comma"
    expected += """; other signs need quotes of their own: 'KEY="VALUE"'"""
    with pytest.raises(SystemExit, match=rf"^{re.escape(expected)}$"):
        main(["run", override])


def test_several_values_are_a_sweep() -> None:
    with pytest.raises(SystemExit, match=r"^error: seed=1,2: several values make a sweep; use elmo-tasks sweep, or"):
        main(["run", "task=ner", "seed=1,2"])


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_folder_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    reason = os.strerror(number)
    with pytest.raises(SystemExit, match=rf"^error: outputs/x: {reason}; set paths\.outputs to another folder$"):
        start_failing(monkeypatch, OSError(number, reason, "outputs/x"))


def test_an_error_that_names_no_file_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="something else"):
        start_failing(monkeypatch, OSError("something else"))
