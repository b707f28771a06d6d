"""One biLM trained by two processes is the one that a single process trains; processes that do not fit are refused."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from attack.children import Child, start_run
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from lightning_fabric.plugins.environments.slurm import SLURMEnvironment
from pytorch_lightning.utilities import rank_zero_only
from rows_as_json import load
from safetensors.torch import load_file

from elmo_tasks.errors import UserError
from elmo_tasks.runs import run as train
from elmo_tasks.training.checkpoint import STATE
from elmo_tasks.training.cluster import check_start, make_trainer

REPO = Path(__file__).parents[2]
SMALL = [
    "task=lm",
    "task.data.batch_size=32",
    "task.model.n_samples=50",
    "task.model.dropout=0.0",
    "task.model.forget=0.0",
    "trainer.accelerator=cpu",
    "trainer.threads=1",
    "trainer.progress=false",
    "trainer.val_check_interval=5",
    "trainer.max_steps=15",
    "bilm.options.lstm.dim=12",
    "bilm.options.lstm.projection_dim=6",
    "bilm.options.char_cnn.filters=[[1,4],[2,8],[3,8]]",
    "bilm.options.char_cnn.embedding.dim=4",
    "logger=none",
]


def run(folder: Path, *overrides: str) -> str:
    """What ``run.py`` prints, with its further processes; what they print to the standard error is in errors.txt."""
    folder.mkdir(exist_ok=True)
    arguments = [*SMALL, f"paths.outputs={folder}", *overrides]
    child = Child(lambda: start_run(arguments), folder / "log.txt", errors=folder / "errors.txt")
    assert child.wait(300) == 0, child.errors.read_text()
    return child.output()


def outcome(folder: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    (row,) = load(folder / "rows")
    return row, load_file(folder / "runs" / row["run_id"] / "model.safetensors")


def assert_close(found: Path, expected: Path) -> None:
    (row, weights), (expected_row, expected_weights) = outcome(found), outcome(expected)
    assert row["run_id"] == expected_row["run_id"]
    curve, expected_curve = row["training"]["curve"], expected_row["training"]["curve"]
    assert [point["step"] for point in curve] == [point["step"] for point in expected_curve] == [5, 10, 15]
    for point, other in zip(curve, expected_curve, strict=True):
        assert point["train_loss"] == pytest.approx(other["train_loss"], rel=1e-5)
        assert point["dev"] == pytest.approx(other["dev"], rel=1e-5)
    assert row["scores"]["dev"] == pytest.approx(expected_row["scores"]["dev"], rel=1e-5)
    apart = torch.cat([(weights[name] - value).abs().flatten() for name, value in expected_weights.items()])
    # the maximum of a filter whose two best places differ by a rounding may go to the other one
    assert apart.max() < 1e-3
    assert (apart > 1e-5).float().mean() < 0.01


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The outputs of a single process and what it printed."""
    folder = tmp_path_factory.mktemp("alone")
    return folder, run(folder)


@pytest.mark.slow
def test_two_processes_train_the_same_bilm_as_one_and_only_one_prints(tmp_path: Path, alone: tuple[Path, str]) -> None:
    (folder, one), two = alone, run(tmp_path / "2", "trainer.devices=2")
    assert_close(tmp_path / "2", folder)
    row, _ = outcome(tmp_path / "2")
    assert (row["processes"], row["status"]) == (2, "finished")
    last = row["training"]["curve"][-1]["dev"]
    assert last == pytest.approx(row["scores"]["dev"], rel=1e-6)  # shared, and by one of them
    assert all((outputs / "errors.txt").read_text() == "" for outputs in (folder, tmp_path / "2"))
    assert two.count("perplexity") == one.count("perplexity") == 1
    assert two.count("\n") == one.count("\n")
    assert not list((tmp_path / "2").glob(f"runs/*.partial/{STATE}"))


KILLED_AT_THE_FIRST_STATE = """
import os, runpy, sys
from elmo_tasks.training import tree

real = tree.write_tree

def save(*arguments):
    real(*arguments)
    os.kill(os.getpid(), 9)

tree.write_tree = save
sys.argv = sys.argv[1:]
runpy.run_path("run.py", run_name="__main__")
"""


@pytest.mark.slow
def test_two_killed_processes_are_resumed(tmp_path: Path, alone: tuple[Path, str]) -> None:
    script = tmp_path / "stop.py"
    script.write_text(KILLED_AT_THE_FIRST_STATE)
    command = [sys.executable, str(script), "run.py", *SMALL, f"paths.outputs={tmp_path / 'killed'}"]
    killed = subprocess.run(
        [*command, "trainer.devices=2"],
        cwd=REPO,
        capture_output=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(REPO)},
    )
    assert killed.returncode != 0
    assert list((tmp_path / "killed").glob(f"runs/*/{STATE}"))
    run(tmp_path / "killed", "trainer.devices=2")
    assert_close(tmp_path / "killed", alone[0])
    row, _ = outcome(tmp_path / "killed")
    assert row["training"]["resumed_after"] == [5]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["task=lm", "trainer.devices=3"], r"batch_size=128 rows cannot be shared evenly by 3 processes"),
        (["task=lm", "trainer.devices=few"], r"^trainer\.devices=few with trainer\.accelerator=cpu: "),
        (["task=lm", "trainer.num_nodes=0"], r"^trainer\.num_nodes must be a whole number of at least 1, found 0"),
    ],
)
def test_what_cannot_be_split_gives_a_one_sentence_error(
    composed: Any, tmp_path: Path, overrides: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        train.run(composed(*overrides))
    assert not list(tmp_path.glob("outputs/rows/*"))


SLURM = {
    **{"SLURM_JOB_ID": "4711", "SLURM_JOB_NAME": "train", "SLURM_NNODES": "1", "SLURM_NODELIST": "localhost"},
    **{"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"},
}
STEP = {**SLURM, "SLURM_STEP_ID": "0"}
TORCHRUN = {"TORCHELASTIC_RUN_ID": "1", "RANK": "0", "LOCAL_RANK": "0"}
SRUN = "#SBATCH --nodes={} --ntasks-per-node={}, and start the run by srun"
STARTS: list[tuple[dict[str, str], tuple[int, int], str]] = [
    ({}, (1, 1), ""),
    ({}, (2, 1), ""),  # Lightning starts the other
    ({**SLURM, "SLURM_NTASKS": "1"}, (1, 1), ""),
    ({**SLURM, "SLURM_NTASKS": "2", "SLURM_JOB_NAME": "bash"}, (1, 1), ""),  # salloc, srun --pty
    ({**SLURM, "SLURM_NTASKS": "2", "SLURM_JOB_NAME": "interactive"}, (2, 1), ""),
    ({**STEP, "SLURM_NTASKS": "2"}, (2, 1), ""),
    (
        {**STEP, "SLURM_NTASKS": "2", "SLURM_STEP_NUM_TASKS": "2", "SLURM_JOB_NAME": "bash"},
        (2, 1),
        "",
    ),  # in salloc
    ({**STEP, "SLURM_NTASKS": "1", "SLURM_STEP_NUM_TASKS": "1", "SLURM_JOB_NAME": "bash"}, (2, 1), ""),  # srun --pty
    ({**STEP, "SLURM_NTASKS": "4", "SLURM_NNODES": "2"}, (2, 2), ""),
    ({**TORCHRUN, "WORLD_SIZE": "2"}, (2, 1), ""),
    ({**TORCHRUN, "WORLD_SIZE": "4", **STEP, "SLURM_NTASKS": "2", "SLURM_NNODES": "2"}, (2, 2), ""),
    ({"MASTER_ADDR": "first", "NODE_RANK": "1"}, (1, 3), ""),  # by hand on each machine
    (
        {**SLURM, "SLURM_NTASKS": "2"},
        (1, 1),
        "Slurm gives 2 tasks, trainer.devices=1 is one: #SBATCH --ntasks=1 (threads are --cpus-per-task)",
    ),
    (
        {**STEP, "SLURM_NTASKS": "2", "SLURM_STEP_NUM_TASKS": "2", "SLURM_JOB_NAME": "bash"},
        (1, 1),
        "Slurm gives 2 tasks, trainer.devices=1 is one: #SBATCH --ntasks=1 (threads are --cpus-per-task)",
    ),
    (
        {**STEP, "SLURM_NTASKS": "1"},
        (2, 1),
        "Slurm gives 1 task on 1 node, trainer.devices=2 is 2: " + SRUN.format(1, 2),
    ),
    (
        {**STEP, "SLURM_NTASKS": "4", "SLURM_NNODES": "2"},
        (4, 1),
        "Slurm gives 4 tasks on 2 nodes, trainer.devices=4 is 4: " + SRUN.format(1, 4),
    ),
    (
        {**SLURM, "SLURM_NTASKS": "2"},
        (2, 1),
        "Slurm gives 2 tasks, but only one of them runs: start the run by srun, as in srun elmo-tasks run ...",
    ),
    (
        {**TORCHRUN, "WORLD_SIZE": "2"},
        (1, 1),
        "torchrun starts 2 processes, trainer.devices=1 is 1: torchrun --nnodes=1 --nproc-per-node=1",
    ),
    ({"LOCAL_RANK": "0"}, (1, 1), ""),
    ({"LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1"}, (2, 1), ""),  # a process that Lightning has started
    (
        {"LOCAL_RANK": "0"},
        (2, 1),
        "trainer.devices=2: LOCAL_RANK is set, so that Lightning starts no other process; unset LOCAL_RANK",
    ),
    (
        {},
        (1, 3),
        "trainer.num_nodes=3: nothing has started this run on 3 machines; start it by srun in a Slurm job (#SBATCH "
        "--nodes=3 --ntasks-per-node=1) or by torchrun, or set trainer.num_nodes=1",
    ),
]


@pytest.fixture
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*os.environ]:
        if name.startswith(("SLURM_", "TORCHELASTIC_", "PL_TRAINER_")) or name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
            monkeypatch.delenv(name)
    monkeypatch.delenv("MASTER_ADDR", raising=False)


@pytest.mark.usefixtures("_no_cluster")
@pytest.mark.parametrize(("environment", "asked", "message"), STARTS)
def test_as_many_processes_are_started_as_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], asked: tuple[int, int], message: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    if not message:
        check_start(*asked)
        return
    with pytest.raises(UserError) as error:
        check_start(*asked)
    assert str(error.value) == message


@pytest.mark.usefixtures("_no_cluster")
@pytest.mark.parametrize(
    ("environment", "overrides"),
    [({**SLURM, "SLURM_NTASKS": "2"}, ["task=sst5"]), ({}, ["task=lm", "trainer.num_nodes=3"])],
)
def test_what_does_not_fit_is_said_before_anything_is_read(
    composed: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, environment: dict[str, str], overrides: list[str]
) -> None:
    monkeypatch.setattr(train, "build_run", None)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=r"Slurm gives 2 tasks|trainer\.num_nodes=3"):
        train.run(composed("elmo.placement=none" if "task=lm" not in overrides else "seed=1", *overrides))
    assert not list(tmp_path.glob("outputs/*"))


QUIET: dict[str, Any] = {"accelerator": "cpu", "logger": False, "enable_checkpointing": False}
QUIET |= {"enable_progress_bar": False, "enable_model_summary": False}


@pytest.mark.usefixtures("_no_cluster")
def test_a_trainer_takes_nothing_from_the_environment_or_the_current_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hpc_ckpt_1.ckpt").write_bytes(b"the state of another run")
    for name, value in {**SLURM, "SLURM_NTASKS": "1", "SLURM_PROCID": "1"}.items():
        monkeypatch.setenv(name, value)
    for name, value in {"FAST_DEV_RUN": "True", "ACCUMULATE_GRAD_BATCHES": "4", "MAX_TIME": "00:00:00:01"}.items():
        monkeypatch.setenv(f"PL_TRAINER_{name}", value)
    monkeypatch.setattr(rank_zero_only, "rank", 1)
    trainer = make_trainer(devices=1, num_nodes=1, **QUIET)
    assert (trainer.fast_dev_run, trainer.accumulate_grad_batches) == (False, 1)
    assert not [each for each in trainer.callbacks if type(each).__name__ == "Timer"]
    assert trainer._checkpoint_connector._hpc_resume_path is None
    assert type(trainer._accelerator_connector.cluster_environment) is LightningEnvironment
    assert rank_zero_only.rank == 0
    for name, value in {**STEP, "SLURM_NTASKS": "2"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SLURM_NTASKS_PER_NODE", "")  # so that it is as before when the test has ended
    monkeypatch.delenv("SLURM_NTASKS_PER_NODE")
    shared = make_trainer(devices=2, num_nodes=1, **QUIET)
    environment = shared._accelerator_connector.cluster_environment
    assert type(environment) is SLURMEnvironment
    assert not environment.auto_requeue
    assert shared.world_size == 2
