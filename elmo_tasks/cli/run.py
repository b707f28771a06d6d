"""``elmo-tasks run task=ner elmo.placement=both``: one experiment, or a sweep with ``-m``; also ``python run.py``."""

from __future__ import annotations

import os
import sys
import traceback
from functools import partial
from math import nan
from typing import TYPE_CHECKING

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig

from elmo_tasks import interrupts
from elmo_tasks.cli import direction, presets, sweep  # noqa: F401  (a resolver of the configuration)
from elmo_tasks.cli.keys import describe
from elmo_tasks.command_line import fail, run_command
from elmo_tasks.config.compose import hydra_sentence, validate
from elmo_tasks.config.overrides import with_quoted_paths
from elmo_tasks.config.resolvers import register
from elmo_tasks.errors import UserError
from elmo_tasks.places import CONF

if TYPE_CHECKING:
    from elmo_tasks.rows.schema import Row


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
def _main(cfg: DictConfig) -> float:
    """Run one configuration, alone or as a cell of a sweep."""
    return _run_cell(cfg) if HydraConfig.get().mode == RunMode.MULTIRUN else _run_alone(cfg)


def _run_alone(cfg: DictConfig) -> float:
    """Run one configuration; Hydra would add a line of its own to an error that a user can fix, so it ends here."""
    try:
        _refuse_sweep()
        _refuse_other_folder()
        row = run_composed(cfg)
        return nan if row is None else row.score
    except UserError as error:
        fail(error)


def _refuse_sweep() -> None:
    """Refuse a preset that is a sweep, such as ``experiment=seeds``: a single run would have none of its values."""
    hydra_cfg = HydraConfig.get()
    swept = hydra_cfg.sweeper.get("params")
    if swept:
        preset = f"experiment={hydra_cfg.runtime.choices['experiment']}"
        raise UserError(f"{preset} is a sweep over {', '.join(swept)}; use elmo-tasks sweep, or python run.py -m")


def _refuse_other_folder() -> None:
    """Refuse to run in the folder of the job, where each relative path would name something else."""
    if HydraConfig.get().job.chdir:
        start = "are those of the folder that the command starts in"
        raise UserError(f"hydra.job.chdir=true: relative paths, such as data.root, {start}; leave it out")


def _run_cell(cfg: DictConfig) -> float:
    """Run a cell; after one with a bad configuration or bad data the sweep continues."""
    cfg.if_running = cfg.if_running or "wait"  # for an equal cell, such as that of another lambda without ELMo
    interrupts.install()  # again: a launcher may have started another process for the cell
    try:
        sweep.check_cell()
        _refuse_other_folder()
        row = run_composed(cfg)
    except interrupts.Interrupted as ended:
        interrupts.hand_on(ended)
        raise
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return sweep.fail(str(error))
    except Exception as error:  # a crash: it is shown in full, and the other cells run
        traceback.print_exc()
        return sweep.fail(f"{type(error).__name__}: {error}")
    if row is None:  # a plan has no score; a sweeper that searches must be given one
        return 0.0
    sweep.record(metric=row.metric.name, scores={split: found[row.metric.name] for split, found in row.scores.items()})
    return row.score


def run_composed(cfg: DictConfig) -> Row | None:
    """Run one composed configuration; its row, or None for a plan."""
    register()  # again in each run: a launcher may have forgotten the resolvers
    validate(cfg)  # first: PyTorch and Lightning take seconds to import
    from elmo_tasks.runs.run import make_row

    return make_row(cfg)


def start(arguments: list[str], program: str = __file__) -> None:
    """Run what a command line asks for, as :func:`run_hydra`; an error ends the process."""
    run_command(partial(run_hydra, program=program), arguments)


def run_hydra(arguments: list[str], program: str = __file__) -> int:
    """Run what a command line asks for.

    Args:
        arguments: overrides, and Hydra's own options.
        program: the file that Lightning starts again for each further process of a distributed run.

    Returns:
        the exit status: 1 if a cell of a sweep has failed.

    Raises:
        UserError: if an option is none of Hydra's, Hydra refuses the command line, its folder cannot be written, or its
            launcher needs a Slurm that is not there or refuses the jobs, or presets are swept of which
            one is a sweep.
    """
    _refuse_unknown_options(arguments)
    arguments = with_quoted_paths(arguments)
    presets.check(arguments)
    sys.argv = [program, *arguments]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # the exceptions of Hydra as they are: they become one sentence here
    try:
        if {"-h", "--help"} & set(arguments):
            print(describe(arguments), flush=True)
            return 0
        with sweep.search():
            _main()
    except HydraException as error:
        raise UserError(hydra_sentence(error)) from error
    except (OSError, RuntimeError) as error:
        if "submitit" in sys.modules:
            from elmo_tasks.cli.slurm import launcher_error

            if (sentence := launcher_error(error)) is not None:
                raise sentence from error
        if isinstance(error, RuntimeError) or error.filename is None:
            raise
        # of Hydra's own folder
        raise UserError(f"{error.filename}: {error.strerror}; set paths.outputs to another folder") from error
    return 1 if sweep.failed else 0


def _refuse_unknown_options(arguments: list[str]) -> None:
    """Hydra would print all of its options and name the file ``run.py``."""
    known = {name for action in get_args_parser()._actions for name in action.option_strings}
    for argument in arguments:
        name = argument.partition("=")[0]
        if name.startswith("-") and name not in known:
            raise UserError(f"{name}: no such option; values are written KEY=VALUE, such as task=ner; see --help")


if __name__ == "__main__":
    start(sys.argv[1:])
