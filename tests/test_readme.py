import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from elmo_tasks import report
from elmo_tasks.config import validate
from elmo_tasks.tables.command import execute
from elmo_tasks.tables.request import read_request
from experiments.claims import CLAIMS

REPO = Path(__file__).parents[1]
README = (REPO / "README.md").read_text("utf-8")
COMMANDS = [
    line.split(" #")[0].strip()
    for block in re.findall(r"```bash\n(.*?)```", README, flags=re.DOTALL)
    for line in block.splitlines()
]
RUNS = sorted({part.strip() for line in COMMANDS for part in line.split("&&") if "run.py" in part})


def test_there_are_two_commands_that_do_everything() -> None:
    for name, ending in (("run", "python run.py task=sst5 elmo.placement=both"), ("test", "python -m pytest")):
        (command,) = re.findall(rf"<!-- command: {name} -->\n```bash\n(.*)\n```", README)
        assert command.startswith("pip install -c constraints.txt")
        assert command.endswith(ending)


@pytest.mark.parametrize("command", RUNS)
def test_each_run_of_the_readme_composes_to_a_valid_configuration(command: str) -> None:
    words = [re.sub("DIR|FILE", "folder", word) for word in shlex.split(command)[2:] if word != "-m"]
    first_of_sweep = [re.sub(r"=([^=,\[]+),.*", r"=\1", word) for word in words]
    with initialize_config_dir(str(REPO / "conf"), version_base="1.3"):
        validate(compose("config", first_of_sweep))


@pytest.mark.parametrize("command", [line for line in COMMANDS if line.startswith("python -m ")])
def test_each_module_of_the_readme_runs(command: str, tmp_path: Path) -> None:
    """On the bundled sample; what would train for hours only says what it would run."""
    if "submitit" in command:
        pytest.importorskip("hydra_plugins.hydra_submitit_launcher", reason="needs the extra slurm")
    text = tmp_path / "text.txt"
    text.write_text("The river burst its bank .\nThe bank lent him money .\n")
    places = {"DIR": str(tmp_path), "FILE": str(text), "TEXT": str(text), "OUT.hdf5": "out.hdf5"}
    rows = str(REPO / "experiments" / "rows")
    places |= {"experiments/rows": rows, "rows=experiments/rows": f"rows={rows}", "--run": "--missing"}
    words = [places.get(word, re.sub("DIR", str(tmp_path), word)) for word in shlex.split(command)[1:]]
    if {"experiments.claims", "experiments.paper"} & set(words):
        words.append("tasks=ner")  # every cell is a configuration to be composed
    words = [word for word in words if not word.startswith(("data.root=", "bilm"))]  # what is not here
    (tmp_path / "README.md").write_text(README)
    done = subprocess.run(
        [sys.executable, *words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(REPO)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_python_example_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(example, names)
    (layers,) = names["layers"]  # type: ignore[misc]
    assert tuple(layers.shape) == (3, 3, 256)


def test_the_results_are_those_of_the_committed_rows() -> None:
    assert report.renew(README, report.render(REPO / "experiments" / "rows")) == README


def test_the_verdicts_are_those_of_the_committed_rows(tmp_path: Path) -> None:
    assert "python -m experiments.claims rows=experiments/rows --into README.md" in COMMANDS
    copy = tmp_path / "README.md"
    copy.write_text(README, "utf-8")
    request = read_request([f"rows={REPO / 'experiments' / 'rows'}", "--into", str(copy)])
    assert execute((CLAIMS,), request) == 0
    renewed = copy.read_text("utf-8").replace(str(REPO / "experiments" / "rows"), "experiments/rows")
    assert renewed == README


def test_every_file_that_the_readme_links_to_is_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (REPO / target).exists(), target


def test_the_card_of_the_bundled_bilm_gives_the_recorded_perplexities() -> None:
    card = (REPO / "elmo_tasks" / "bundled" / "bilm" / "mini" / "CARD.md").read_text("utf-8")
    records = REPO / "experiments" / "bilm_mini"
    first = [line.split(",") for line in (records / "first_run_dev.csv").read_text().splitlines()[1:]]
    second, third = (json.loads((records / f"{name}_run.json").read_text()) for name in ("second", "third"))
    assert_curve(card, [float(line[1]) for line in first], second)
    assert_curve(card, [], third)
    assert_final(card, third)


def test_the_card_of_the_bundled_bilm_gives_its_perplexities_by_kind_of_text() -> None:
    card = (REPO / "elmo_tasks" / "bundled" / "bilm" / "mini" / "CARD.md").read_text("utf-8")
    rows = [json.loads(path.read_text()) for path in (REPO / "experiments" / "rows").glob("lm-local-cpu-mini-*.json")]
    by_text = {row["config"]["task"]["lm"]["text"]: row for row in rows}
    for text, corpus in {"snli": "SNLI", "sst5": "SST-5", "ner": "CoNLL-2003", "squad": "SQuAD"}.items():
        before, after = by_text[text]["before"]["perplexity"], by_text[text]["scores"]["dev"]["perplexity"]
        assert f"({corpus}) | {before:.1f} | {after:.1f} |" in card


def test_the_card_of_the_bundled_korean_bilm_gives_the_recorded_perplexities() -> None:
    card = (REPO / "elmo_tasks" / "bundled" / "bilm" / "mini_ko" / "CARD.md").read_text("utf-8")
    first, second = (
        json.loads((REPO / "experiments" / "bilm_mini_ko" / f"{name}_run.json").read_text())
        for name in ("first", "second")
    )
    assert_curve(card, [point["dev"]["perplexity"] for point in first["curve"]], second)
    assert_final(card, second)


def assert_curve(card: str, before: list[float], row: dict[str, Any]) -> None:
    curve = before + [point["dev"]["perplexity"] for point in row["curve"]]
    assert f"| mean perplexity | {' | '.join(f'{value:.1f}' for value in curve)} |" in card


def assert_final(card: str, row: dict[str, Any]) -> None:
    final = row["scores"]["dev"]
    assert f"forward {final['forward']:.1f}, backward {final['backward']:.1f}, mean {final['perplexity']:.1f}" in card


def test_the_bundled_weights_stay_small() -> None:
    files = (REPO / "elmo_tasks" / "bundled" / "bilm").rglob("*")
    assert sum(path.stat().st_size for path in files) < 30e6
