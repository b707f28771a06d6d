"""From a checked configuration to the objects of a run; the only caller of Hydra's instantiate."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from hydra.errors import InstantiationException
from hydra.utils import get_class, instantiate
from pytorch_lightning.callbacks import Callback, EarlyStopping, TQDMProgressBar
from pytorch_lightning.loggers import CSVLogger, Logger
from torch import nn

from elmo_tasks.bilm.model import BiLM, bundled_folder
from elmo_tasks.bilm.options import BiLMOptions
from elmo_tasks.bilm.store import LayerStore, TokenStore
from elmo_tasks.callbacks import AverageWeights, ScoreDev, SoftmaxFirst, TokensASecond
from elmo_tasks.checkpoint import TensorsAndJson
from elmo_tasks.config import SHARDS
from elmo_tasks.data.corpus import LmText, Shards, read_sentences
from elmo_tasks.data.lm import LmData
from elmo_tasks.data.module import TaskData
from elmo_tasks.data.task_text import TaskText
from elmo_tasks.data.words import WordVectors
from elmo_tasks.data.wsd import WsdData
from elmo_tasks.elmo import Elmo
from elmo_tasks.encoders.base import Encoder
from elmo_tasks.errors import UserError
from elmo_tasks.models.lm import LanguageModel
from elmo_tasks.module import TaskModule
from elmo_tasks.processes import count_processes, devices_of
from elmo_tasks.start import Start, check_shapes, read_start, read_tensors

BUNDLED = Path(__file__).parent / "bundled"


def uses_elmo(cfg: dict[str, Any]) -> bool:
    """Whether the task has a place for ELMo and the configuration fills it."""
    return "elmo" in cfg["task"] and cfg["elmo"]["placement"] != "none"


def build_bilm(cfg: dict[str, Any]) -> Encoder | None:
    """The frozen biLM or the encoder in its place, or None where it takes no part.

    Raises:
        UserError: if the files are missing or are not of the size that ``bilm=`` names.
    """
    is_bilm = "encoder" not in cfg["bilm"]
    if not is_bilm and "elmo" not in cfg["task"]:
        raise UserError(f"task={cfg['task']['name']} trains a biLM, and bilm={cfg['bilm']['name']} is none")
    if not uses_elmo(cfg):
        return None
    return _language_model(cfg) if is_bilm else _other_encoder(cfg)


def _language_model(cfg: dict[str, Any]) -> BiLM:
    name, path = cfg["bilm"]["name"], cfg["bilm"]["path"]
    if path is None and bundled_folder(name) is None:
        raise UserError(
            f"bilm={name} is not bundled; set bilm.path to the folder with its options.json and weights.hdf5"
        )
    warm_text = cfg["bilm"]["warm_text"]
    if cfg["bilm"]["state"] == "warm" and warm_text is None and name == "mini_ko":
        raise UserError(
            "bilm.state=warm: the bundled text is English; set bilm.warm_text to a Korean one for bilm=mini_ko"
        )
    bilm = BiLM.load(path or name)
    bilm.precision = cfg["bilm"]["precision"]
    expected = bilm_options(cfg)
    if bundled_folder(name) is None and bilm.options != expected:
        raise UserError(f"bilm={name} has {expected}, but bilm.path={path} holds {bilm.options}")
    if cfg["bilm"]["state"] == "warm":
        bilm.warm_up(list(read_sentences(Path(warm_text or BUNDLED / "sample" / "lm" / "en" / "heldout.txt"))))
    return bilm.to(device_of(cfg))


def _other_encoder(cfg: dict[str, Any]) -> Encoder:
    bilm = cfg["bilm"]
    found_and_only = [
        ("state", bilm["state"], "reset"),
        ("precision", bilm["precision"], "float32"),
        ("store.keep", bilm["store"]["keep"], "layers"),
    ]
    for key, found, only in found_and_only:
        if found != only:
            raise UserError(f"bilm.{key}={found} is for a biLM, which bilm={bilm['name']} is not; it has {only} only")
    if bilm["path"] is None:
        raise UserError(f"bilm={bilm['name']} is not bundled; set bilm.path to its files")
    encoder: Encoder = make(bilm["encoder"], path=bilm["path"], **bilm["options"], _convert_="all").to(device_of(cfg))
    return encoder


def device_of(cfg: dict[str, Any]) -> str:
    """Where the biLM and an ensemble run; a trainer finds its own place."""
    return "cuda" if torch.cuda.is_available() and cfg["trainer"]["accelerator"] != "cpu" else "cpu"


def build_store(cfg: dict[str, Any], encoder: Encoder | None) -> LayerStore | TokenStore | None:
    """The store of this encoder's layers (or of a biLM's token layer alone), or None."""
    if encoder is None:
        return None
    store = cfg["bilm"]["store"]
    settings = {key: store[key] for key in ("dtype", "limit_gb")}
    settings |= {"state": cfg["bilm"]["state"], "progress": cfg["trainer"]["progress"]}
    if store["keep"] == "layers":
        return LayerStore(Path(store["dir"]), encoder, **settings)
    assert isinstance(encoder, BiLM)  # see _other_encoder
    return TokenStore(Path(store["dir"]), encoder, **settings)


def data_root(cfg: dict[str, Any]) -> str | None:
    """``data.root``, or the package's own folder of the bundled sample."""
    root: str | None = cfg["data"]["root"]
    return str(BUNDLED / "sample") if root == "bundled" else root


def make(node: dict[str, Any], **parts: Any) -> Any:
    """Hydra's instantiate, but that a constructor's own complaint is not wrapped up.

    Raises:
        UserError: from the constructor.
    """
    try:
        return instantiate(node, **parts)
    except InstantiationException as error:
        if isinstance(error.__cause__, UserError):
            raise error.__cause__ from None
        raise


def check_optimizer(cfg: dict[str, Any]) -> None:
    """Try the optimizer's settings, before anything is read.

    Raises:
        UserError: if the optimizer does not take them.
    """
    if "optimizer" not in cfg["task"]:
        return
    node = cfg["task"]["optimizer"]
    try:
        make(node)([nn.Parameter(torch.zeros(1))])
    except (TypeError, ValueError) as error:
        found = ", ".join(f"{key}={value}" for key, value in node.items() if key not in ("_target_", "_partial_"))
        raise UserError(f"task.optimizer must be what {node['_target_']} takes, found {found} ({error})") from error


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


def source_of(cfg: dict[str, Any], section: dict[str, Any], name: str) -> dict[str, Any]:
    """A task's reader and where its items are."""
    hub = cfg["data"]["name"] == "hub"
    if hub and section["hub"] is None:
        raise UserError(f"task={name} has no data on the hub; use data=local data.root=DIR")
    return {"reader": make(section["reader"]), "sources": section["hub"] if hub else section["files"], "hub": hub}


def build_text(cfg: dict[str, Any], root: str | None) -> LmText:
    """What a biLM is trained on: shards, or a task's sentences."""
    lm = cfg["task"]["lm"]
    if lm["text"] == SHARDS:
        if root is None:
            raise UserError(f"data={cfg['data']['name']} has no text for task=lm; use data=local data.root=DIR")
        return Shards(root=root, train=lm["train"], heldout=lm["heldout"])
    source = source_of(cfg, lm["source"], lm["text"])
    return TaskText(**source, root=root, fraction=cfg["data"]["fraction"], seed=cfg["seed"])


def build_start(cfg: dict[str, Any]) -> Start | None:
    """The weights that a biLM's training starts from, if it does not start afresh."""
    init = cfg["task"]["lm"]["init"] if "lm" in cfg["task"] else None
    return None if init is None else read_start(init, bilm_options(cfg))


def softmax_epochs(cfg: dict[str, Any], start: Start | None) -> int:
    """Epochs that train a new softmax alone, on a biLM that came without one."""
    without = start is not None and start.vocabulary is None
    return int(cfg["task"]["lm"]["softmax_epochs"]) if without else 0


def bilm_options(cfg: dict[str, Any]) -> BiLMOptions:
    """The sizes that ``bilm=`` names."""
    return BiLMOptions.from_json(cfg["bilm"]["options"], source=f"bilm={cfg['bilm']['name']}")


def build_elmo(cfg: dict[str, Any], encoder: Encoder | None) -> Elmo | None:
    """Where and how the encoder enters the task model; None for a task that has no place for it (lm)."""
    if "elmo" not in cfg["task"]:
        return None
    elmo = cfg["elmo"]
    return Elmo(
        placement=elmo["placement"],
        n_layers=encoder.n_layers if encoder else 0,
        dim=encoder.dim if encoder else 0,
        mix=elmo["mix"],
        gamma=elmo["gamma"],
        l2=elmo["lambda"],
        dropout=elmo["dropout"],
        layer_norm=elmo["layer_norm"],
    )


def build_model(
    cfg: dict[str, Any], data: TaskData | LmData, elmo: Elmo | None, start: Start | None = None
) -> nn.Module:
    """The task model; what depends on data (numbers of labels, the word embedding) is handed to it here."""
    parts: dict[str, Any] = data.model_parts()
    if elmo is None:
        parts["bilm"] = BiLM(bilm_options(cfg))
    else:
        parts["elmo"] = elmo
    model: nn.Module = make(cfg["task"]["model"], **parts, _convert_="all")
    if start is not None:
        assert isinstance(model, LanguageModel)
        start.put_into(model)
    return model


def read_weights(model: nn.Module, path: Path) -> None:
    """Take over the weights of an earlier run, its ``model.safetensors``.

    Raises:
        UserError: if the file is missing, damaged or of another model.
    """
    weights = read_tensors(path)
    check_shapes(model, weights, path)
    model.load_state_dict(weights)


def can_vote(cfg: dict[str, Any]) -> bool:
    """Whether the task's model can be a member of an ensemble (see ``Votes`` in ``models/base.py``)."""
    model = cfg["task"].get("model")
    return model is not None and hasattr(get_class(model["_target_"]), "log_probabilities")


def build_module(cfg: dict[str, Any], model: nn.Module) -> TaskModule:
    """The training loop body."""
    return TaskModule(
        model=model,
        metric=make(cfg["task"]["metric"]),
        optimizer=make(cfg["task"]["optimizer"]),
        schedule=cfg["task"]["training"]["schedule"],
        max_steps=cfg["trainer"]["max_steps"],
    )


def build_logger(cfg: dict[str, Any], run_dir: Path, run_id: str) -> Logger | bool:
    """Curves to a CSV file, to W&B, or nowhere."""
    name = cfg["logger"]["name"]
    if name == "none":
        return False
    run_dir.mkdir(parents=True, exist_ok=True)
    if name == "csv":
        return CSVLogger(str(run_dir), name="", version="")
    try:
        import wandb  # noqa: F401
    except ImportError as error:
        raise UserError("logger=wandb needs the extra `wandb`: pip install -e '.[wandb]'; or use logger=csv") from error
    from pytorch_lightning.loggers import WandbLogger

    os.environ.setdefault("WANDB_SILENT", "true")
    elmo = cfg["elmo"]
    tags = [cfg["task"]["name"], cfg["data"]["name"], cfg["scale"]["name"], f"placement={elmo['placement']}"]
    if elmo["placement"] != "none":
        tags += [f"mix={elmo['mix']}", f"lambda={elmo['lambda']:g}", f"bilm={cfg['bilm']['name']}"]
    tags += cfg["logger"]["tags"]
    return WandbLogger(
        project=cfg["logger"]["project"],
        offline=cfg["logger"]["offline"],
        save_dir=str(run_dir),
        name=run_id,
        group=f"{cfg['task']['name']}-{cfg['data']['name']}-{cfg['scale']['name']}",
        tags=tags,
        config=cfg,
    )


def build_trainer(
    cfg: dict[str, Any],
    module: TaskModule,
    data: TaskData | LmData,
    logger: Logger | bool,
    callbacks: list[Callback],
    start: Start | None = None,
) -> pl.Trainer:
    """Lightning's trainer with this project's habits: no banners, own checkpoints, own curves."""
    trainer, metric = cfg["trainer"], module.metric
    text = data if isinstance(data, LmData) else None
    callbacks = [*callbacks, ScoreDev(trainer["val_check_interval"], trainer["max_steps"])]
    n_softmax_epochs = softmax_epochs(cfg, start)
    if n_softmax_epochs:
        callbacks = [*callbacks, SoftmaxFirst(n_softmax_epochs)]
    if cfg["task"]["training"]["average"] is not None:
        callbacks = [*callbacks, AverageWeights(cfg["task"]["training"]["average"])]  # behind the one that saves
    if trainer["progress"]:
        usual = TQDMProgressBar(leave=False)
        bar = TokensASecond(text.batch_size * text.window, trainer["max_steps"]) if text else usual
        callbacks = [*callbacks, bar]
    if trainer["patience"] is not None:
        mode = "max" if metric.higher_is_better else "min"
        stopping = EarlyStopping(
            f"dev/{metric.name}",
            patience=trainer["patience"],
            mode=mode,
            check_on_train_epoch_end=trainer["val_check_interval"] is None,
        )
        callbacks = [*callbacks, stopping]
    return pl.Trainer(
        **devices_of(cfg),
        strategy="ddp_find_unused_parameters_true" if n_softmax_epochs and count_processes(cfg).n > 1 else "auto",
        precision=trainer["precision"],
        max_epochs=n_softmax_epochs + trainer["max_epochs"],
        limit_train_batches=text.steps_per_epoch if text else 1.0,
        reload_dataloaders_every_n_epochs=0 if text else 1,
        limit_val_batches=_dev_batches(trainer["limit_val_batches"], data),
        gradient_clip_val=cfg["task"]["training"]["grad_norm"],
        logger=logger,
        callbacks=callbacks,
        enable_progress_bar=trainer["progress"],
        plugins=[TensorsAndJson()],
        enable_checkpointing=True,  # by KeepState
        enable_model_summary=False,
        num_sanity_val_steps=0 if start is None else -1,  # a start is scored before it is trained further
        log_every_n_steps=10,
        inference_mode=True,
    )


def _dev_batches(limit: float, data: TaskData | LmData) -> float:
    """``trainer.limit_val_batches``, a share of a task's dev batches as their number, one at least."""
    is_share = isinstance(data, TaskData) and isinstance(limit, float) and limit < 1
    return max(1, int(limit * len(data.batches("dev")))) if is_share else limit
