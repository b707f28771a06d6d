"""``elmo-tasks run task=ner elmo.placement=both``: one experiment, or a sweep with ``-m``; also ``python run.py``."""

from __future__ import annotations

import os
import sys
import traceback
from math import nan

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig

from elmo_tasks import interrupts
from elmo_tasks.cli import direction, sweep  # noqa: F401  (a resolver of the configuration)
from elmo_tasks.errors import UserError, end_quietly, hydra_sentence
from elmo_tasks.places import CONF


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
def _main(cfg: DictConfig) -> float:
    """Run one configuration, alone or as a cell of a sweep."""
    return _run_cell(cfg) if HydraConfig.get().mode == RunMode.MULTIRUN else _run_alone(cfg)


def _run_alone(cfg: DictConfig) -> float:
    """Run one configuration; Hydra would add a line of its own to an error that a user can fix, so it ends here."""
    try:
        _refuse_sweep()
        return run_composed(cfg)
    except UserError as error:
        sys.exit(f"error: {error}")


def _refuse_sweep() -> None:
    """See that what is to be one run is no preset of several values, of which it would have none."""
    hydra_cfg = HydraConfig.get()
    swept = hydra_cfg.sweeper.get("params")
    if swept:
        preset = f"experiment={hydra_cfg.runtime.choices['experiment']}"
        raise UserError(f"{preset} is a sweep over {', '.join(swept)}; use elmo-tasks sweep, or python run.py -m")


def _run_cell(cfg: DictConfig) -> float:
    """Run a cell; after one with a bad configuration or bad data the sweep continues."""
    try:
        score = run_composed(cfg)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sweep.record(error=str(error))
        return nan
    except Exception as error:  # a crash: it is shown in full, and the other cells run
        traceback.print_exc()
        sweep.record(error=f"{type(error).__name__}: {error}")
        return nan
    if not cfg.plan:  # a plan has shown itself, and has no score
        sweep.record(score=score)
    return score


def run_composed(cfg: DictConfig) -> float:
    """Run one composed configuration; the development score that chose the checkpoint."""
    # torch and Lightning take seconds to import: not for --help
    from elmo_tasks.configuration.resolvers import register
    from elmo_tasks.runs.run import run

    register()  # again in each run: a launcher may have forgotten the resolvers
    return run(cfg)


def start(arguments: list[str], program: str = __file__) -> None:
    """Run what a command line asks for; an error that a user can fix is one sentence, and the exit status is 1.

    Args:
        arguments: overrides, and Hydra's own options.
        program: the file that Lightning starts again for each further process of a distributed run.
    """
    if {"-h", "--help"} & set(arguments):
        from elmo_tasks.cli.keys import describe

        try:
            print(describe(arguments), flush=True)
        except BrokenPipeError:
            end_quietly()
        return
    interrupts.install()
    sys.argv = [program, *arguments]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # the exceptions of Hydra as they are: they become one sentence here
    try:
        _main()
    except HydraException as error:
        sys.exit(f"error: {hydra_sentence(error)}")
    except UserError as error:
        sys.exit(f"error: {error}")
    except OSError as error:  # of Hydra's own folder
        if error.filename is None:
            raise
        sys.exit(f"error: {error.filename}: {error.strerror}; set paths.outputs to another folder")
    if sweep.failed:
        sys.exit(1)


if __name__ == "__main__":
    start(sys.argv[1:])
