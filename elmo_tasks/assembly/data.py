"""The data of a task, the text that a biLM is trained on, or the sense-annotated text of a probe."""

from __future__ import annotations

from typing import Any

from elmo_tasks.config.components import make
from elmo_tasks.config.resolvers import SHARDS
from elmo_tasks.data.corpus import LmText, TextFiles
from elmo_tasks.data.hub import Hub
from elmo_tasks.data.module import TaskData
from elmo_tasks.data.reader import Reader
from elmo_tasks.data.source import Files
from elmo_tasks.data.task_text import TaskText
from elmo_tasks.data.wsd import WsdData
from elmo_tasks.errors import UserError
from elmo_tasks.nn.words import WordVectors
from elmo_tasks.places import SAMPLE
from elmo_tasks.pretrain.export import InitialWeights
from elmo_tasks.pretrain.text import LmData


def build_data(cfg: dict[str, Any]) -> TaskData:
    """The data of a supervised task. The files are found, but nothing is read yet.

    Raises:
        UserError: if there are none, or no test set with ``test=true``.
    """
    task = cfg["task"]
    data = TaskData(
        **source_arguments(cfg, task, task["name"]),
        fraction=cfg["data"]["fraction"],
        words=WordVectors(**cfg["words"]),
        update_words=task["update_words"],
        batch_size=task["training"]["batch_size"],
        batch_tokens=task["training"]["batch_tokens"],
        seed=cfg["seed"],
    )
    if cfg["test"] and "test" not in data.source.splits:
        raise UserError(f"test=true, but data={cfg['data']['name']} has no test set for task={task['name']}")
    return data


def build_lm_data(cfg: dict[str, Any], initial: InitialWeights | None) -> LmData:
    """The text that a biLM is trained on; initial weights bring their vocabulary.

    Raises:
        UserError: if there are no files, or with ``test=true``.
    """
    if cfg["test"]:
        raise UserError("test=true, but task=lm has no test set: its text has only train and dev (held-out)")
    vocabulary = None if initial is None else initial.vocabulary
    data: LmData = make(cfg["task"]["data"], cfg["packages"], text=build_text(cfg), vocabulary=vocabulary)
    return data


def build_sense_data(cfg: dict[str, Any]) -> WsdData:
    """The sense-annotated text of a probe."""
    data: WsdData = make(cfg["task"]["data"], cfg["packages"], root=text_root(cfg))
    return data


def build_text(cfg: dict[str, Any]) -> LmText:
    """The text that a biLM is trained on: text files, or the sentences of a task."""
    lm = cfg["task"]["lm"]
    if lm["text"] == SHARDS:
        return TextFiles(root=text_root(cfg), train=lm["train"], heldout=lm["heldout"])
    source = source_arguments(cfg, lm["source"], lm["text"], files_key=f"+task.lm.changes.{lm['text']}.files")
    return TaskText(**source, fraction=cfg["data"]["fraction"], seed=cfg["seed"])


def source_arguments(
    cfg: dict[str, Any], section: dict[str, Any], name: str, files_key: str = "task.files"
) -> dict[str, Any]:
    """The reader of a task and the source of its items, as keyword arguments.

    Raises:
        UserError: if there are none.
    """
    root, hub = data_root(cfg), cfg["data"]["name"] == "hub"
    if hub and section["hub"] is None:
        raise UserError(f"task={name} has no data on the hub; use data=local data.root=DIR")
    reader: Reader[Any] = make(section["reader"], cfg["packages"])
    files = section["files"]
    return {
        "reader": reader,
        "source": Hub(**section["hub"]) if hub else Files(root, files, reader, files_key),
        "dev_share": section["dev_share"],
    }


def text_root(cfg: dict[str, Any]) -> str:
    """The folder of a text that is never on the hub.

    Raises:
        UserError: if none is given.
    """
    root = data_root(cfg)
    if root is None:
        name, task = cfg["data"]["name"], cfg["task"]["name"]
        raise UserError(f"data={name} has no text for task={task}; use data=local data.root=DIR")
    return root


def data_root(cfg: dict[str, Any]) -> str | None:
    """``data.root``, or the package's own folder of the bundled sample.

    Raises:
        UserError: if a folder is given to a data set that has none, as the run would have that set's name and sizes.
    """
    root: str | None
    name, root = cfg["data"]["name"], cfg["data"]["root"]
    if name in ("sample", "hub") and root not in ("bundled", None):
        raise UserError(f"data.root={root} is not for data={name}; use data=local data.root={root}")
    return str(SAMPLE) if root == "bundled" else root
