"""``python run.py task=sst5 elmo.placement=both``: one experiment, or a sweep with ``-m``. See conf/ for every key."""

import sys

import hydra
from omegaconf import DictConfig

from elmo_tasks.errors import UserError


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(cfg: DictConfig) -> float:
    """Run one configuration; what a user can mend ends in one sentence and exit status 1."""
    from elmo_tasks.train import run  # torch and Lightning take seconds to import: not for --help

    try:
        return run(cfg)
    except UserError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
