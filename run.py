"""``python run.py task=sst5 elmo.placement=both``: one experiment, or a sweep with ``-m``. See conf/ for every key."""

import os
import sys

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig

from elmo_tasks.errors import UserError, hydra_sentence


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(cfg: DictConfig) -> float:
    """Run one configuration."""
    from elmo_tasks import ensemble, train  # torch and Lightning take seconds to import: not for --help

    try:
        return train.run(cfg) if cfg.ensemble is None else ensemble.run(cfg)
    except UserError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra's exceptions as they are, to be put into one sentence here
    try:
        main()
    except HydraException as error:
        sys.exit(f"error: {hydra_sentence(error)}")
