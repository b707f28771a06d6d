"""A task's data, or the text that a biLM is trained on."""

from __future__ import annotations

from typing import Any

from elmo_tasks.build.encoder import BUNDLED
from elmo_tasks.build.instances import make
from elmo_tasks.config import SHARDS
from elmo_tasks.data.corpus import LmText, Shards
from elmo_tasks.data.lm import LmData
from elmo_tasks.data.module import TaskData
from elmo_tasks.data.task_text import TaskText
from elmo_tasks.data.words import WordVectors
from elmo_tasks.data.wsd import WsdData
from elmo_tasks.errors import UserError
from elmo_tasks.start import Start


def build_data(cfg: dict[str, Any], start: Start | None = None) -> TaskData | LmData | WsdData:
    """The data of the task, its files found, without layers; a biLM's training goes on with the words of its start."""
    task, root = cfg["task"], data_root(cfg)
    if "lm" in task:
        if cfg["test"]:
            raise UserError("test=true, but task=lm has no test set: its text is train and dev (held-out) alone")
        vocabulary = None if start is None else start.vocabulary
        lm_data: LmData = make(task["data"], text=build_text(cfg, root), vocabulary=vocabulary)
        return lm_data
    if "data" in task:  # text with senses
        if root is None:
            raise UserError(
                f"data={cfg['data']['name']} has no text for task={task['name']}; use data=local data.root=DIR"
            )
        wsd_data: WsdData = make(task["data"], root=root)
        return wsd_data
    data_of_task = TaskData(
        **source_of(cfg, task, task["name"]),
        root=root,
        fraction=cfg["data"]["fraction"],
        words=WordVectors(**cfg["words"]),
        update_words=task["update_words"],
        batch_size=task["training"]["batch_size"],
        batch_tokens=task["training"]["batch_tokens"],
        seed=cfg["seed"],
    )
    if cfg["test"] and "test" not in data_of_task.source.splits:
        raise UserError(f"test=true, but data={cfg['data']['name']} has no test set for task={task['name']}")
    return data_of_task


def build_text(cfg: dict[str, Any], root: str | None) -> LmText:
    """What a biLM is trained on: shards, or a task's sentences."""
    lm = cfg["task"]["lm"]
    if lm["text"] == SHARDS:
        if root is None:
            raise UserError(f"data={cfg['data']['name']} has no text for task=lm; use data=local data.root=DIR")
        return Shards(root=root, train=lm["train"], heldout=lm["heldout"])
    source = source_of(cfg, lm["source"], lm["text"])
    return TaskText(**source, root=root, fraction=cfg["data"]["fraction"], seed=cfg["seed"])


def source_of(cfg: dict[str, Any], section: dict[str, Any], name: str) -> dict[str, Any]:
    """A task's reader and where its items are."""
    hub = cfg["data"]["name"] == "hub"
    if hub and section["hub"] is None:
        raise UserError(f"task={name} has no data on the hub; use data=local data.root=DIR")
    return {"reader": make(section["reader"]), "sources": section["hub"] if hub else section["files"], "hub": hub}


def data_root(cfg: dict[str, Any]) -> str | None:
    """``data.root``, or the package's own folder of the bundled sample."""
    root: str | None = cfg["data"]["root"]
    return str(BUNDLED / "sample") if root == "bundled" else root
