"""A language model: train a biLM, or fine-tune one, and write it in the published layout."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

import torch
from torch import nn

from elmo_tasks import interrupts
from elmo_tasks.assembly import (
    build_initial_weights,
    build_language_model,
    build_lm_data,
    build_logger,
    check_optimizer,
    make,
)
from elmo_tasks.assembly.encoder import bilm_options
from elmo_tasks.config.identity import RunDigests, run_id, slug
from elmo_tasks.config.resolvers import SHARDS
from elmo_tasks.errors import UserError
from elmo_tasks.files import sha256
from elmo_tasks.nn.characters import MAX_CHARACTERS
from elmo_tasks.pretrain.export import write_bilm, write_vocabulary
from elmo_tasks.pretrain.heldout import score_heldout
from elmo_tasks.pretrain.model import LanguageModel
from elmo_tasks.pretrain.settings import Settings
from elmo_tasks.pretrain.team import Team
from elmo_tasks.pretrain.train import STATE, Progress, Training
from elmo_tasks.progress import say
from elmo_tasks.rows import kinds, parts
from elmo_tasks.rows.convergence import has_converged
from elmo_tasks.rows.fields import Ended, Kind, Split
from elmo_tasks.rows.io import finished_row
from elmo_tasks.rows.provenance import current_code
from elmo_tasks.rows.schema import Header, LanguageModelRow, Row
from elmo_tasks.runs.fit import SAVED_EVERY, Fit, close, log_best, required_epochs
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.layout import BILM, WEIGHTS
from elmo_tasks.runs.lm_watch import ShowAndLog
from elmo_tasks.runs.scoring import Stopwatch, describe_layers, describe_work
from elmo_tasks.store.store import Filled
from elmo_tasks.tensors import read_tensors
from elmo_tasks.training.memory import limit_primitive_caches
from elmo_tasks.training.processes import share_batch, start_processes
from elmo_tasks.training.progress import Display
from elmo_tasks.values import is_all


def refuse_other_tasks_settings(cfg: dict[str, Any]) -> None:
    """Check that no setting is given that the training of a language model would not follow.

    Raises:
        UserError: naming the first one.
    """
    options = bilm_options(cfg["bilm"])  # first: it may be no biLM at all
    path, fraction, limit = cfg["bilm"]["path"], cfg["data"]["fraction"], cfg["trainer"]["limit_val_batches"]
    if (found := cfg["elmo"]["placement"]) != "none":
        raise UserError(f"elmo.placement must be none with task=lm, which has no place for ELMo, found {found}")
    if path is not None:
        raise UserError(f"bilm.path={path} is not read by task=lm; to start from its weights set task.lm.init={path}")
    if fraction != 1 and cfg["task"]["lm"]["text"] == SHARDS:
        raise UserError(f"data.fraction={fraction:g} is for the items of a task; choose files with task.lm.train")
    if not is_all(limit) and not isinstance(limit, int):
        expected = "1.0 (all batches) or a whole number of at least 1"
        raise UserError(f"trainer.limit_val_batches must be {expected} with task=lm, found {limit}")
    if options.max_characters != MAX_CHARACTERS:
        raise UserError(
            f"bilm.options.char_cnn.max_characters_per_token={options.max_characters}: training reads words of "
            f"{MAX_CHARACTERS}; a biLM that reads others can be used, but not be trained further"
        )


def read_settings(cfg: dict[str, Any], softmax_epochs: int) -> Settings:
    """How a checked configuration says that a biLM is trained.

    Args:
        cfg: the configuration.
        softmax_epochs: epochs that train a new softmax alone.
    """
    training, trainer = cfg["task"]["training"], cfg["trainer"]
    return Settings(
        seed=cfg["seed"],
        epochs=required_epochs(cfg),
        max_steps=None if trainer["max_steps"] < 0 else trainer["max_steps"],
        softmax_epochs=softmax_epochs,
        patience=trainer["patience"],
        schedule=training["schedule"],
        grad_norm=training["grad_norm"],
        average=training["average"],
        bfloat16=trainer["precision"] == "bf16-mixed",
        score_every=trainer["val_check_interval"],
        heldout_windows=None if is_all(trainer["limit_val_batches"]) else trainer["limit_val_batches"],
        score_first=cfg["task"]["lm"]["init"] is not None,
        keep_best=True,
        save_every=SAVED_EVERY,
    )


def refuse_closures(cfg: dict[str, Any]) -> None:
    """Check that the optimizer needs one gradient for an update, since the biLM's state goes on with each.

    Raises:
        UserError: naming it if not.
    """
    weight, node = nn.Parameter(torch.zeros(1)), cfg["task"]["optimizer"]
    weight.grad = torch.zeros(1)
    try:
        make(node, cfg["packages"])([weight]).step()
    except TypeError as error:
        reason = "takes several gradients of one window for an update, which training a biLM does not have"
        raise UserError(
            f"task.optimizer: {node['_target_']} {reason}; choose another, such as torch.optim.Adam"
        ) from error


class LanguageModelRun:
    """See :class:`elmo_tasks.runs.interface.Run`."""

    kind: Kind = "language_model"

    def __init__(self, cfg: dict[str, Any]) -> None:
        check_optimizer(cfg)
        refuse_closures(cfg)
        refuse_other_tasks_settings(cfg)
        self.processes = share_batch(cfg, cfg["task"]["data"]["batch_size"])
        self.cfg, self.seed, self.rank = cfg, cfg["seed"], self.processes.rank
        self.initial = build_initial_weights(cfg)
        self.settings = read_settings(cfg, self._softmax_epochs)
        self.data = build_lm_data(cfg, self.initial)
        self.inputs = RunDigests(self.data.digest, initial=None if self.initial is None else self.initial.digest)
        self.run_id = run_id(cfg, self.kind, self.inputs)
        self.slug = slug(cfg, self.kind)

    def measure(self, folder: RunFolder, header: Header, finished: Row | None) -> Row:
        """Read, train, choose by the held-out text, score, write the biLM."""
        watch = Stopwatch()
        limit_primitive_caches()
        torch.manual_seed(self.seed)
        with watch("layers"):
            self.data.read()
        if self.rank == 0:
            self._remark()
        model = build_language_model(self.cfg, self.data, self.initial)
        bilm = folder.partial / BILM
        if self.rank == 0:  # before training, so that another run can start from the weights if this one is killed
            write_vocabulary(self.data.vocabulary, bilm)
        training, done = self._train(model, folder)
        with watch("score"):
            metric = score_heldout(model, training.words, self.data.target_ids, self.data.heldout())
            scores: dict[Split, dict[str, float]] = {"dev": metric.compute()}
            digest = write_bilm(model, bilm)
        return LanguageModelRow(
            **vars(header),
            **describe_work(self.cfg, metric, watch, done),
            data=self._describe_data(),
            scores=scores,
            files={},
            weights=sha256(folder.partial / WEIGHTS),
            parameters=sum(p.numel() for p in model.parameters()),
            elmo=None,
            layers=describe_layers(Filled()),
            language_model=self._about(done, kinds.Exported(folder=str(folder.final / BILM), digest=digest)),
        )

    def _remark(self) -> None:
        if self.data.truncated:
            say(f"text: {self.data.truncated}")
        if self.initial is not None and self.initial.grown:
            say(f"task.lm.init={self.cfg['task']['lm']['init']}: grown {self.initial.grown}")

    def _train(self, model: LanguageModel, folder: RunFolder) -> tuple[Training, Fit]:
        """Train, resuming from a saved state; then load the best weights. Of several processes, only the first returns.

        Raises:
            UserError: if training diverges, the saved state cannot be used, or the machine cannot train as asked.
        """
        if self.cfg["force"] and finished_row(folder.row) is None:  # else a run that is made again is resumed
            (folder.partial / STATE).unlink(missing_ok=True)
        fabric = start_processes(self.cfg)
        team = Team(fabric.world_size, fabric.global_rank)
        logger = build_logger(self.cfg, folder.partial, folder.run_id) if team.rank == 0 else False
        try:
            training = Training(
                model,
                self.data,
                self.settings,
                make(self.cfg["task"]["optimizer"], self.cfg["packages"]),
                folder.partial,
                ShowAndLog(self._display(team), logger, self._max_epochs, self._max_updates),
                device=fabric.device,
                team=team,
                code=asdict(current_code()),
            )
            self._resume(training)
            training.run()
            updates = training.progress.updates
            if training.stopped:
                interrupts.end(f"training is saved after {updates:,} updates", silently=team.rank != 0)
            if team.rank != 0:
                sys.exit()  # the first process does all that is left
            model.load_state_dict(read_tensors(folder.partial / WEIGHTS))
            log_best(logger, training.progress)
        finally:
            close(logger)
        fit = Fit(self._describe_training(training.progress), training.progress.seconds, str(fabric.device), team.n)
        return training, fit

    def _display(self, team: Team) -> Display:
        shown = self.cfg["trainer"]["progress"] and team.rank == 0
        title = f"lm {self.cfg['bilm']['name']}" if shown else ""
        return Display(title, tokens_per_batch=self.data.batch_size * self.data.window)

    def _resume(self, training: Training) -> None:
        """Go on from the saved state, if there is one and, with ``force=true``, if it can be used."""
        if not training.path.exists():
            return
        try:
            training.resume()
        except UserError:
            if not self.cfg["force"]:
                raise
            training.path.unlink(missing_ok=True)

    @property
    def _max_epochs(self) -> int:
        return self._softmax_epochs + required_epochs(self.cfg)

    @property
    def _max_updates(self) -> int:
        by_epochs = self._max_epochs * self.data.updates_per_epoch
        return by_epochs if self.settings.max_steps is None else min(by_epochs, self.settings.max_steps)

    def _ended(self, progress: Progress) -> Ended:
        if progress.patience_over:
            return "patience"
        max_steps = self.settings.max_steps
        return "max_epochs" if max_steps is None or progress.updates < max_steps else "max_steps"

    def _describe_training(self, progress: Progress) -> parts.TrainingRecord:
        max_steps, ended = self.settings.max_steps, self._ended(progress)
        return parts.TrainingRecord(
            epochs=progress.curve[-1]["epoch"],
            best_epoch=progress.best_epoch,
            max_epochs=self._max_epochs,
            max_steps=max_steps,
            ended=ended,
            converged=has_converged(
                ended,
                best_epoch=progress.best_epoch,
                best_step=progress.best_step,
                max_epochs=self._max_epochs,
                max_steps=max_steps,
            ),
            resumed_after=tuple(progress.resumed_after),
            code=tuple(parts.Code(**code) for code in progress.code),
            curve=tuple(parts.CurvePoint(**point, elmo={}) for point in progress.curve),
        )

    @property
    def _softmax_epochs(self) -> int:
        """Epochs that train a new softmax alone, on a biLM that came without one."""
        without = self.initial is not None and self.initial.vocabulary is None
        return int(self.cfg["task"]["lm"]["softmax_epochs"]) if without else 0

    def _describe_initial(self) -> kinds.InitialWeightsRecord | None:
        if self.initial is None:
            return None
        softmax = "new" if self.initial.vocabulary is None else "restored"
        return kinds.InitialWeightsRecord(
            name=self.cfg["task"]["lm"]["init"], digest=self.initial.digest, softmax=softmax
        )

    def _before(self, done: Fit) -> dict[str, float] | None:
        """Scores of the initial weights, if they are on the same text and in the same precision as the last ones."""
        trainer = self.cfg["trainer"]
        if not is_all(trainer["limit_val_batches"]) or trainer["precision"] != "32-true":
            return None
        before = [point.dev for point in done.training.curve if point.epoch <= self._softmax_epochs]
        return before[-1] if before else None

    def _describe_data(self) -> parts.Data:
        return parts.Data(
            name=self.cfg["data"]["name"],
            digest=self.data.digest,
            test_digest=None,
            items={},
            left_out={},
            word_coverage=None,
        )

    def _about(self, done: Fit, exported: kinds.Exported) -> kinds.LanguageModelRecord:
        return kinds.LanguageModelRecord(
            text=self.cfg["task"]["lm"]["text"],
            positions={"train": self.data.n_positions, "dev": self.data.n_heldout},
            vocabulary=len(self.data.vocabulary),
            unknown=round(self.data.unknown, 4),
            initial=self._describe_initial(),
            before=self._before(done),
            exported=exported,
        )
