"""A language model: train a biLM, or fine-tune one, and write it in the published layout."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl

from elmo_tasks.assembly import (
    build_initial_weights,
    build_language_model,
    build_lm_data,
    build_lm_module,
    check_optimizer,
)
from elmo_tasks.assembly.encoder import bilm_options
from elmo_tasks.config.identity import RunDigests, run_id, slug
from elmo_tasks.config.resolvers import SHARDS
from elmo_tasks.data.windows import PADDED_CHARACTERS
from elmo_tasks.errors import UserError
from elmo_tasks.files import sha256
from elmo_tasks.nn.characters import MAX_CHARACTERS
from elmo_tasks.progress import say
from elmo_tasks.rows import kinds, parts
from elmo_tasks.rows.fields import Kind, Split
from elmo_tasks.rows.schema import Measured, Row
from elmo_tasks.runs.fit import Fit, fit, required_epochs
from elmo_tasks.runs.folder import BILM, WEIGHTS, RunFolder
from elmo_tasks.runs.scoring import Stopwatch, describe_layers, describe_work
from elmo_tasks.store.store import Filled
from elmo_tasks.training.budget import Budget
from elmo_tasks.training.initial_weights import write_bilm, write_vocabulary
from elmo_tasks.training.lm_module import LanguageModelModule, SoftmaxFirst, TrimHeap
from elmo_tasks.training.memory import HeapTrimmer, limit_primitive_caches
from elmo_tasks.training.module import score
from elmo_tasks.training.processes import share_batch
from elmo_tasks.training.progress import ShowProgress
from elmo_tasks.values import is_all


def refuse_other_tasks_settings(cfg: dict[str, Any]) -> None:
    """Check that no setting is given that the training of a language model would not follow.

    Raises:
        UserError: naming the first one.
    """
    options = bilm_options(cfg["bilm"])  # first: it may be no biLM at all
    widest = max(width for width, _ in options.filters)
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
    if widest > PADDED_CHARACTERS:
        raise UserError(
            f"bilm.options.char_cnn.filters: a filter of {widest} characters; training pads words for filters of at "
            f"most {PADDED_CHARACTERS}"
        )


class LanguageModelRun:
    """See :class:`elmo_tasks.runs.interface.Run`."""

    kind: Kind = "language_model"

    def __init__(self, cfg: dict[str, Any]) -> None:
        check_optimizer(cfg)
        refuse_other_tasks_settings(cfg)
        self.processes = share_batch(cfg, cfg["task"]["data"]["batch_size"])
        self.cfg, self.seed, self.rank = cfg, cfg["seed"], self.processes.rank
        self.n_epochs = required_epochs(cfg)
        self.initial = build_initial_weights(cfg)
        self.data = build_lm_data(cfg, self.initial)
        self.inputs = RunDigests(self.data.digest, initial=None if self.initial is None else self.initial.digest)
        self.run_id = run_id(cfg, self.kind, self.inputs)
        self.slug = slug(cfg, self.kind)

    def measure(self, folder: RunFolder, finished: Row | None) -> Measured:
        """Read, train, choose by the held-out text, score, write the biLM."""
        watch = Stopwatch()
        limit_primitive_caches()
        pl.seed_everything(self.seed, workers=True, verbose=False)
        with watch("layers"):
            self.data.read()
        if self.rank == 0 and self.initial is not None and self.initial.grown:
            say(f"task.lm.init={self.cfg['task']['lm']['init']}: grown {self.initial.grown}")
        model = build_language_model(self.cfg, self.data, self.initial)
        module = build_lm_module(self.cfg, model)
        bilm = folder.partial / BILM
        if self.rank == 0:  # before training, so that another run can start from the weights if this one is killed
            write_vocabulary(self.data.vocabulary, bilm)
        done = self._train(module, folder)
        with watch("score"):
            heldout = HeapTrimmer().between(self.data.batches("dev"))
            scores: dict[Split, dict[str, float]] = {"dev": score(model, module.metric, heldout)}
            digest = write_bilm(model, bilm)
        return Measured(
            **describe_work(self.cfg, module.metric, watch, done),
            data=self._describe_data(),
            scores=scores,
            files={},
            weights=sha256(folder.partial / WEIGHTS),
            parameters=model.n_trained,
            elmo=None,
            layers=describe_layers(Filled()),
            language_model=self._about(done, kinds.Exported(folder=str(folder.final / BILM), digest=digest)),
        )

    def _train(self, module: LanguageModelModule, folder: RunFolder) -> Fit:
        trainer, n_softmax = self.cfg["trainer"], self._softmax_epochs
        budget = Budget(
            max_epochs=n_softmax + self.n_epochs,
            max_steps=trainer["max_steps"] if trainer["max_steps"] >= 0 else None,
            steps_per_epoch=self.data.steps_per_epoch,
            dev_batches=trainer["limit_val_batches"],
        )
        n_tokens = self.data.batch_size * self.data.window
        title = f"lm {self.cfg['bilm']['name']}"
        shown = ShowProgress(title, max_steps=trainer["max_steps"], tokens_per_batch=n_tokens)
        progress = [shown] if trainer["progress"] else []
        softmax = [SoftmaxFirst(n_softmax)] if n_softmax else []
        options: dict[str, Any] = {"num_sanity_val_steps": 0 if self.initial is None else -1}  # scores initial weights
        if n_softmax and self.processes.n > 1:
            options["strategy"] = "ddp_find_unused_parameters_true"
        return fit(self.cfg, module, self.data, folder, budget, [*progress, *softmax, TrimHeap()], **options)

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
