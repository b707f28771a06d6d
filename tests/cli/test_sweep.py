import os
import random
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from elmo_tasks.cli import presets
from elmo_tasks.cli.sweep import differing, show
from elmo_tasks.errors import UserError

REPO = Path(__file__).parents[2]
SMALL = ["elmo.placement=none", "words=random", "data.fraction=0.1", "trainer.max_epochs=1", "trainer.progress=false"]


def elmo_tasks(folder: Path, *arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
    program = f"{before}\nfrom elmo_tasks.cli.main import main; main({[*arguments]!r})"
    environment = os.environ | {"PYTHONPATH": str(REPO), "COLUMNS": "100"}
    return subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True)


def test_the_keys_that_differ_are_those_with_more_than_one_value() -> None:
    cells = [{"task": "ner", "seed": "1"}, {"task": "ner", "seed": "2"}, {"task": "ner", "seed": "2", "test": "true"}]
    assert differing(cells) == ["seed", "test"]


def test_brackets_in_a_value_or_an_error_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    failed = {"number": 0, "overrides": ["packages=[mine]"], "metric": None, "scores": {}}
    failed["error"] = "data.root=[/x]: no such folder"
    show(
        [
            failed,
            {"number": 1, "overrides": ["packages=[other]"], "metric": "f1", "scores": {"dev": 1.0}, "error": None},
        ]
    )
    printed = capsys.readouterr().out
    assert all(text in printed for text in ("[mine]", "[other]", "packages=[mine]: data.root=[/x]: no such folder"))


def test_the_table_has_a_line_for_each_cell(capsys: pytest.CaptureFixture[str]) -> None:
    dev = {"number": 0, "overrides": ["task=ner", "seed=1"], "metric": "f1", "scores": {"dev": 12.346}, "error": None}
    failed = {"number": 1, "overrides": ["task=ner", "seed=2"], "metric": None, "scores": {}, "error": "no such file"}
    both = {
        "number": 2,
        "overrides": ["task=ner", "seed=3"],
        "metric": "f1",
        "scores": {"dev": 1, "test": 2},
        "error": None,
    }
    show([dev, failed])
    shown = capsys.readouterr().out
    assert shown.startswith("2 runs, f1 ")
    assert re.search(r"1 +│ +12\.35 │", shown)
    assert re.search(r"2 +│ +failed │", shown)
    assert "task=ner seed=2: no such file" in shown
    assert "│ ner" not in shown
    show([dev, failed, both])
    shown = capsys.readouterr().out
    assert re.search(r"1 +│ +12\.35 │ +│", shown)
    assert re.search(r"2 +│ +failed │ +│", shown)
    assert re.search(r"3 +│ +1\.00 │ +2\.00 │", shown)


@pytest.mark.slow
def test_a_bad_cell_is_reported_and_the_others_run(tmp_path: Path) -> None:
    done = elmo_tasks(tmp_path, "sweep", "task=ner", *SMALL, "task.training.batch_tokens=5,16384")
    assert done.returncode == 1
    assert "tokens, more than a batch may have; leave it out, or set task.training.batch_tokens=" in done.stderr
    assert re.search(r"│ 5 +│ failed │", done.stdout)
    assert re.search(r"│ 16384 +│ +\d+\.\d\d │", done.stdout)
    assert len([*(tmp_path / "outputs" / "rows").glob("*.json")]) == 1


def test_a_plan_is_not_shown_as_a_score(tmp_path: Path) -> None:
    done = elmo_tasks(tmp_path, "sweep", "task=ner", *SMALL, "seed=1,2", "plan=true")
    assert done.returncode == 0, done.stderr
    assert "2 runs so far, one after the other" in done.stdout
    assert "┃" not in done.stdout  # as in the heading of the table of scores


@pytest.mark.parametrize("preset", ["lambdas", "optuna"])
def test_a_preset_of_several_runs_is_no_single_run(tmp_path: Path, preset: str) -> None:
    done = elmo_tasks(tmp_path, "run", "task=ner", *SMALL, f"experiment={preset}")
    sentence = f"error: experiment={preset} is a sweep over elmo.lambda; use elmo-tasks sweep, or python run.py -m\n"
    assert (done.returncode, done.stderr) == (1, sentence)
    assert not [*tmp_path.glob("outputs/rows/*")]


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_another_working_folder_is_refused(tmp_path: Path, command: str) -> None:
    """There, data.root=data would be another folder than the user's."""
    done = elmo_tasks(tmp_path, command, "task=ner", *SMALL, "hydra.job.chdir=true")
    assert done.returncode == 1
    assert "error: hydra.job.chdir=true: relative paths, such as data.root, are those of the folder that" in done.stderr
    assert not [*tmp_path.rglob("rows")]


@pytest.mark.slow
def test_a_sweep_through_another_launcher_ends_with_the_same_table(tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher", reason="needs the extra sweep")
    launcher = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=1")  # both cells in one process
    done = elmo_tasks(tmp_path, "sweep", *launcher, "task=ner", *SMALL, "seed=1,2")
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"│ [12] +│ +\d+\.\d\d │", done.stdout)) == 2
    assert done.stdout.endswith("means over seeds: elmo-tasks report outputs/rows\n")


@pytest.mark.slow
def test_equal_cells_that_run_side_by_side_are_one_run(tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher", reason="needs the extra sweep")
    launcher = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    done = elmo_tasks(tmp_path, "sweep", *launcher, "task=ner", *SMALL, "elmo.lambda=0.001,1")
    assert done.returncode == 0, done.stderr
    scores = re.findall(r"│ [\d.]+ +│ +(\d+\.\d\d) │", done.stdout)
    assert len(scores) == 2
    assert scores[0] == scores[1]
    assert len([*(tmp_path / "outputs" / "rows").glob("*.json")]) == 1


def test_slurm_on_a_machine_without_it_is_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher", reason="needs the extra slurm")
    if shutil.which("srun"):
        pytest.skip("there is Slurm; tests/run/test_slurm.py has it refuse a job")
    done = elmo_tasks(tmp_path, "sweep", "hydra/launcher=submitit_slurm", "task=ner", *SMALL, "seed=1,2")
    sentence = "hydra/launcher=submitit_slurm needs Slurm, but there is no `srun` here; use hydra/launcher=joblib"
    assert (done.returncode, done.stderr) == (1, f"error: {sentence}\n")


PRESETS = {
    "two sweeps": ["-m", "experiment=lambdas,placements", "task=sst5"],
    "a sweep and none": ["--multirun", "task=ner", "experiment=null,seeds"],
    "in other words": ["experiment=choice(bilm,layers)", "-m"],
    "by a pattern": ["-m", "experiment=glob([l*,b*])"],
    "by Optuna": ["-m", "hydra/sweeper=optuna", "experiment=choice(seeds,bilm)"],
    "of one's own": ["-m", "--config-dir", "CONF", "experiment=mine,null"],
    "of one's own, by Hydra's key": ["-m", "hydra.searchpath=[CONF]", "experiment=mine,null"],
}


@pytest.mark.parametrize("name", PRESETS)
def test_a_sweep_over_presets_that_are_sweeps_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "experiment").mkdir()
    own = '# @package _global_\nhydra: {sweeper: {params: {seed: "1,2"}}}\n'
    (tmp_path / "experiment" / "mine.yaml").write_text(own)
    with pytest.raises(
        UserError, match=r"^experiment=.*: \w+ is itself a sweep over (elmo\.\w+|seed), .* sweep for each"
    ):
        presets.check([text.replace("CONF", str(tmp_path)) for text in PRESETS[name]])


def test_a_sweep_over_presets_runs_what_it_asks_for_or_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred command lines drawn with a seed; which presets are sweeps is read off their files."""
    files = {path.stem: path.read_text() for path in (REPO / "conf" / "experiment").glob("*.yaml")}
    sweeps = {name for name, text in files.items() if "sweeper:" in text}
    composed = presets._keys
    found = cache(lambda name: composed(name, None, []))
    monkeypatch.setattr(presets, "_keys", lambda name, *_: found(name))
    refused = 0
    for seed in range(100):
        rng = random.Random(seed)
        names = rng.sample([*files, "null"], rng.randint(1, 3))
        forms = ["experiment={}", "experiment=choice({})", "experiment=shuffle({})", "experiment=sort({})"]
        # Hydra knows no null within its functions
        text = rng.choice(forms[: 1 if len(names) == 1 or "null" in names else 4]).format(",".join(names))
        arguments = ["-m", "task=ner", "elmo.lambda=0,1", "seed=1", text]
        rng.shuffle(arguments)
        said = ""
        try:
            presets.check(arguments)
        except UserError as error:
            said = str(error)
        assert bool(said) == (len(names) > 1 and not sweeps.isdisjoint(names)), arguments
        refused += bool(said)
    assert 40 < refused < 80


def test_presets_that_are_no_sweeps_can_be_swept() -> None:
    presets.check(["-m", "experiment=bilm,null", "task=ner,sst5"])
    presets.check(["-m", "experiment=seeds", "task=ner,sst5"])
    presets.check(["-m", "experiment=nosuch,null"])  # Hydra says so
    presets.check(["experiment=,"])


def test_nothing_is_run_for_a_sweep_over_sweeps(tmp_path: Path) -> None:
    done = elmo_tasks(tmp_path, "sweep", "experiment=lambdas,placements", "task=sst5", *SMALL)
    assert done.returncode == 1
    assert done.stderr.startswith("error: experiment=lambdas,placements: lambdas is itself a sweep over elmo.lambda,")
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
def test_a_cell_without_the_values_of_its_preset_fails(tmp_path: Path) -> None:
    """A group of one's own, which is not looked at before."""
    (tmp_path / "conf" / "mine").mkdir(parents=True)
    for name, seeds in (("a", "1,2"), ("b", "3,4")):
        text = f'# @package _global_\nhydra: {{sweeper: {{params: {{seed: "{seeds}"}}}}}}\n'
        (tmp_path / "conf" / "mine" / f"{name}.yaml").write_text(text)
    done = elmo_tasks(tmp_path, "sweep", "--config-dir", "conf", "+mine=a,b", "task=ner", *SMALL)
    assert done.returncode == 1
    assert done.stdout.count("this cell is to sweep over seed, which cannot be within a sweep over presets") == 2
    assert not [*tmp_path.glob("outputs/rows/*")]


SEARCH = ["sweep", "experiment=optuna", "task=ner", *SMALL[1:], "hydra.sweeper.sampler.seed=3"]


@pytest.mark.slow
def test_a_search_goes_on_after_a_trial_that_failed(tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper", reason="needs the extra optuna")
    trials = ["hydra.sweeper.n_trials=4", "elmo.mix=choice(layer_0,layer_7)"]
    done = elmo_tasks(tmp_path, *SEARCH, *trials)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    found = re.findall(r"│ +layer_(\d) +│ +(\w+)", done.stdout)
    assert len(found) == 4
    assert {number: score == "failed" for number, score in found} == {"0": False, "7": True}


CRASH = """
from elmo_tasks.cli import run
made = run.run_composed
def run_composed(cfg):
    if cfg.elmo.mix == "layer_1":
        raise RuntimeError("out of order")
    return made(cfg)
run.run_composed = run_composed
"""


@pytest.mark.slow
def test_a_search_goes_on_after_a_trial_that_crashed(tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper", reason="needs the extra optuna")
    trials = ["hydra.sweeper.n_trials=4", "elmo.mix=choice(layer_0,layer_1)"]
    done = elmo_tasks(tmp_path, *SEARCH, *trials, before=CRASH)
    assert done.returncode == 1
    assert "RuntimeError: out of order" in done.stderr  # in full, with its place
    found = re.findall(r"│ +layer_(\d) +│ +(\w+)", done.stdout)
    assert len(found) == 4
    assert {number: score == "failed" for number, score in found} == {"0": False, "1": True}


@pytest.mark.slow
def test_a_search_in_which_every_trial_failed_ends_with_the_table(tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper", reason="needs the extra optuna")
    done = elmo_tasks(tmp_path, *SEARCH, "hydra.sweeper.n_trials=2", "elmo.mix=layer_7")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert len(re.findall(r"│ +failed │", done.stdout)) == 2


@pytest.mark.slow
def test_a_second_call_goes_on_with_a_stored_search(tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna", reason="needs the extra optuna")
    storage = f"sqlite:///{tmp_path}/study.db"
    small = [*SEARCH, "data.fraction=0.05", f"hydra.sweeper.storage={storage}"]
    for n_trials, n_stored in ((2, 2), (1, 3)):
        done = elmo_tasks(tmp_path, *small, f"hydra.sweeper.n_trials={n_trials}")
        assert done.returncode == 0, done.stderr
        study = optuna.load_study(study_name="ner", storage=storage)
        assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * n_stored
        assert study.direction.name == "MAXIMIZE"
    done = elmo_tasks(tmp_path, *small, "hydra.sweeper.n_trials=1", "elmo.lambda=choice(0,1)")
    assert done.returncode == 1
    assert re.search(r"^error: the search by Optuna cannot go on \(ValueError: ", done.stderr, re.MULTILINE)
    assert "Traceback" not in done.stderr
