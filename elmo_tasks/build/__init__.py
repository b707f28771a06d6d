"""From a checked configuration to the objects of a run."""

from elmo_tasks.build.data import build_data
from elmo_tasks.build.encoder import BUNDLED, build_bilm, build_elmo, build_store, device_of
from elmo_tasks.build.instances import make
from elmo_tasks.build.model import (
    build_model,
    build_module,
    build_start,
    can_vote,
    check_optimizer,
    read_weights,
    softmax_epochs,
)
from elmo_tasks.build.trainer import build_logger, build_trainer

__all__ = [
    "BUNDLED",
    "build_bilm",
    "build_data",
    "build_elmo",
    "build_logger",
    "build_model",
    "build_module",
    "build_start",
    "build_store",
    "build_trainer",
    "can_vote",
    "check_optimizer",
    "device_of",
    "make",
    "read_weights",
    "softmax_epochs",
]
