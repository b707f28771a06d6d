"""Who starts the processes of a run (Slurm, torchrun, Lightning), and a trainer that nothing else around it changes."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from typing import Any

import pytorch_lightning as pl
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from lightning_fabric.plugins.environments.lsf import LSFEnvironment
from lightning_fabric.plugins.environments.mpi import MPIEnvironment
from lightning_fabric.plugins.environments.slurm import SLURMEnvironment
from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from pytorch_lightning.utilities import rank_zero_only

from elmo_tasks.errors import UserError

_DEFAULTS = {name: parameter.default for name, parameter in inspect.signature(pl.Trainer).parameters.items()}
_INTERACTIVE = ("bash", "interactive")
"""Names of Slurm jobs with a shell, in which Lightning starts the processes itself."""


def make_trainer(*, devices: Any, num_nodes: int, plugins: Sequence[Any] = (), **options: Any) -> pl.Trainer:
    """Lightning's trainer, with these options and nothing else.

    Lightning would also take options from variables such as ``PL_TRAINER_FAST_DEV_RUN``, and under Slurm it would
    requeue the job at SIGUSR1, write ``hpc_ckpt_1.ckpt`` into the current folder, and start a later run from there.

    Args:
        devices: ``trainer.devices``.
        num_nodes: ``trainer.num_nodes``.
        plugins: besides the one that says who starts the processes.
        options: of the trainer.

    Raises:
        MisconfigurationException: or another error of Lightning, if it refuses the options.
    """
    own = {
        "default_root_dir": os.devnull,  # nothing can be read from there, and nothing written
        "plugins": [*plugins, *_environment(devices, num_nodes)],
        "devices": devices,
        "num_nodes": num_nodes,
    }
    return pl.Trainer(**{**_DEFAULTS, **own, **options})


def make_fabric(*, devices: Any, num_nodes: int, accelerator: str) -> Fabric:
    """The processes that such a trainer would have, for training without it.

    Raises:
        MisconfigurationException: or another error of Lightning, if it refuses the options.
    """
    plugins: list[Any] = list(_environment(devices, num_nodes))
    return Fabric(accelerator=accelerator, devices=devices, num_nodes=num_nodes, plugins=plugins)


def _environment(devices: Any, num_nodes: int) -> list[ClusterEnvironment]:
    """Who starts the processes; empty where Lightning is to find that out."""
    if devices == num_nodes == 1:
        # Lightning's guess comes from variables such as RANK and SLURM_PROCID, whoever set them
        rank_zero_only.rank = 0  # type: ignore[attr-defined]
        return [LightningEnvironment()]
    if _slurm_tasks() is None or TorchElasticEnvironment.detect():
        return []
    if type(devices) is int and num_nodes == 1:  # else Lightning wants to be told that each machine has as many tasks
        os.environ.setdefault("SLURM_NTASKS_PER_NODE", str(devices))
    return [SLURMEnvironment(auto_requeue=False)]


def _slurm_tasks() -> int | None:
    """The tasks that Slurm gives; None outside of it, and in a job with a shell (but not below ``srun`` there)."""
    n, in_step = os.environ.get("SLURM_NTASKS", ""), os.environ.get("SLURM_STEP_NUM_TASKS", "1") != "1"
    shell = os.environ.get("SLURM_JOB_NAME") in _INTERACTIVE and not in_step
    return int(n) if n.isdecimal() and not shell else None


def check_start(devices: Any, num_nodes: int) -> None:
    """Check that as many processes are started as a run asks for: Lightning would wait for the others for ever.

    Args:
        devices: ``trainer.devices``; if it is no number, Lightning checks it.
        num_nodes: ``trainer.num_nodes``.

    Raises:
        UserError: if not.
    """
    if type(devices) is not int:
        return
    n_tasks, wanted = _slurm_tasks(), devices * num_nodes
    asked = f"trainer.devices={devices}" + (f" with trainer.num_nodes={num_nodes}" if num_nodes > 1 else "")
    if TorchElasticEnvironment.detect():
        n_started = int(os.environ.get("WORLD_SIZE", "1"))
        if n_started != wanted:
            remedy = f"torchrun --nnodes={num_nodes} --nproc-per-node={devices}"
            raise UserError(f"torchrun starts {n_started} processes, {asked} is {wanted}: {remedy}")
    elif n_tasks is not None:
        _check_slurm(n_tasks, devices, num_nodes, asked)
    elif num_nodes > 1 and not (LSFEnvironment.detect() or MPIEnvironment.detect() or "MASTER_ADDR" in os.environ):
        raise UserError(
            f"trainer.num_nodes={num_nodes}: nothing has started this run on {num_nodes} machines; start it by srun in "
            f"a Slurm job (#SBATCH --nodes={num_nodes} --ntasks-per-node={devices}) or by torchrun, or set "
            "trainer.num_nodes=1"
        )
    elif wanted > 1 and "LOCAL_RANK" in os.environ and "MASTER_ADDR" not in os.environ:  # Lightning sets both
        raise UserError(f"{asked}: LOCAL_RANK is set, so that Lightning starts no other process; unset LOCAL_RANK")


def _check_slurm(n_tasks: int, devices: int, num_nodes: int, asked: str) -> None:
    wanted, nodes = devices * num_nodes, os.environ.get("SLURM_NNODES", str(num_nodes))
    given = f"Slurm gives {n_tasks} task{'s' * (n_tasks != 1)}"
    if wanted == 1 and n_tasks > 1:
        raise UserError(f"{given}, {asked} is one: #SBATCH --ntasks=1 (threads are --cpus-per-task)")
    if n_tasks != wanted or (wanted > 1 and nodes != str(num_nodes)):
        remedy = f"#SBATCH --nodes={num_nodes} --ntasks-per-node={devices}, and start the run by srun"
        raise UserError(f"{given} on {nodes} node{'s' * (nodes != '1')}, {asked} is {wanted}: {remedy}")
    if wanted > 1 and "SLURM_STEP_ID" not in os.environ:
        raise UserError(f"{given}, but only one of them runs: start the run by srun, as in srun elmo-tasks run ...")
