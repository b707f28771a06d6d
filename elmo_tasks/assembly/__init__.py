"""From a checked configuration to the objects of a run."""

from elmo_tasks.assembly.data import build_data, build_lm_data, build_sense_data
from elmo_tasks.assembly.encoder import build_bilm, build_elmo, build_store, choose_device
from elmo_tasks.assembly.model import (
    build_initial_weights,
    build_language_model,
    build_model,
    check_optimizer,
    read_weights,
)
from elmo_tasks.assembly.trainer import (
    build_logger,
    build_module,
    build_trainer,
    check_machine,
)
from elmo_tasks.config.components import make

__all__ = [
    "build_bilm",
    "build_data",
    "build_elmo",
    "build_initial_weights",
    "build_language_model",
    "build_lm_data",
    "build_logger",
    "build_model",
    "build_module",
    "build_sense_data",
    "build_store",
    "build_trainer",
    "check_machine",
    "check_optimizer",
    "choose_device",
    "make",
    "read_weights",
]
