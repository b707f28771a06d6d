"""What a run finds around it: who has started how many processes, and variables that somebody has left there.

The generator knows how many processes it pretends to have started, and so whether a run of so many devices fits.
"""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from lightning_fabric.plugins.environments.lightning import LightningEnvironment

from elmo_tasks.errors import MAX_SENTENCE, UserError
from elmo_tasks.training.cluster import check_start, make_trainer

LEFT_BEHIND = {
    "PL_TRAINER_MAX_EPOCHS": "7",
    "PL_TRAINER_FAST_DEV_RUN": "true",
    "PL_TRAINER_DEFAULT_ROOT_DIR": ".",
    "PL_TRAINER_ACCELERATOR": "tpu",
    "RANK": "3",
    "GLOBAL_RANK": "2",
    "GROUP_RANK": "1",
    "NODE_RANK": "1",
    "MASTER_PORT": "1",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
    "SLURM_JOB_ID": "77",
    "SLURM_CPUS_PER_TASK": "8",
    "SLURM_RESTART_COUNT": "2",
}
"""Variables that must not matter, whoever set them."""


@dataclass
class Surroundings:
    """The variables, what the run asks for, and whether that is what was started."""

    variables: dict[str, str]
    devices: int
    num_nodes: int
    fits: bool


def alone(rng: random.Random, devices: int, num_nodes: int) -> tuple[dict[str, str], bool]:
    """Started by hand, perhaps in a shell of Slurm; Lightning starts the other processes of this machine."""
    shell = {"SLURM_JOB_NAME": rng.choice(["bash", "interactive"]), "SLURM_NTASKS": str(rng.randint(1, 4))}
    return rng.choice([{}, shell]), num_nodes == 1


def by_slurm(rng: random.Random, devices: int, num_nodes: int) -> tuple[dict[str, str], bool]:
    """A batch job; several tasks come from srun alone."""
    nodes, in_step = rng.choice([num_nodes, rng.randint(1, 3)]), rng.random() < 0.7
    n_tasks = rng.choice([devices * num_nodes, rng.randint(1, 6)])
    found = {"SLURM_NTASKS": str(n_tasks), "SLURM_NNODES": str(nodes), "SLURM_JOB_NAME": "ner", "SLURM_JOB_ID": "5"}
    if in_step:
        found |= {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": str(n_tasks)}
    several = nodes == num_nodes and in_step
    return found, n_tasks == devices * num_nodes and (n_tasks == 1 or several)


def by_torchrun(rng: random.Random, devices: int, num_nodes: int) -> tuple[dict[str, str], bool]:
    n = rng.choice([devices * num_nodes, rng.randint(1, 6)])
    found = {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": str(n), "LOCAL_RANK": "0", "MASTER_ADDR": "localhost"}
    return found, n == devices * num_nodes


def surroundings(seed: int) -> Surroundings:
    rng = random.Random(seed)
    devices, num_nodes = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 1, 2])
    variables, fits = rng.choice([alone, by_slurm, by_torchrun])(rng, devices, num_nodes)
    stray = {name: LEFT_BEHIND[name] for name in rng.sample([*LEFT_BEHIND], rng.randint(0, 6))}
    return Surroundings({**stray, **variables}, devices, num_nodes, fits)


@contextmanager
def within(variables: dict[str, str]) -> Iterator[None]:
    """An environment with these variables, and none of this machine's that are like them."""
    known = ("SLURM_", "PL_", "TORCHELASTIC_", "MASTER_", "LOCAL_", "WORLD_", *LEFT_BEHIND)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(known)}
    with patch.dict(os.environ, {**clean, **variables}, clear=True):
        yield


def is_started(seed: int) -> bool:
    """Whether a run starts; one of one process is then the run that it is without any variable.

    Raises:
        AssertionError: if it starts although others would never come, or does not start although all are there.
    """
    around = surroundings(seed)
    with within(around.variables):
        said = ""
        try:
            check_start(around.devices, around.num_nodes)
        except UserError as error:
            said = str(error)
        assert len(said) <= MAX_SENTENCE, (around, said)
        assert around.fits == (not said), (around, said)
        if around.fits and around.devices == around.num_nodes == 1:
            trainer = make_trainer(
                devices=1, num_nodes=1, accelerator="cpu", max_epochs=2, logger=False, enable_progress_bar=False
            )
            assert (trainer.world_size, trainer.global_rank, trainer.max_epochs) == (1, 0, 2), around
            assert trainer.default_root_dir == os.devnull, around
            assert not trainer.fast_dev_run, around  # type: ignore[attr-defined]
            assert isinstance(trainer._accelerator_connector.cluster_environment, LightningEnvironment), around
    return around.fits
