"""A supervised task: train a model, choose by dev, score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytorch_lightning as pl

from elmo_tasks.assembly import (
    build_bilm,
    build_data,
    build_elmo,
    build_model,
    build_module,
    build_store,
    check_optimizer,
    choose_device,
    read_weights,
)
from elmo_tasks.config.identity import RunDigests, run_id, slug
from elmo_tasks.data.module import TaskData
from elmo_tasks.data.source import SPLITS
from elmo_tasks.files import sha256
from elmo_tasks.planning.plan import DoneSoFar, Plan, make_plan
from elmo_tasks.rows import parts
from elmo_tasks.rows.fields import Kind
from elmo_tasks.rows.schema import Header, Row, SupervisedRow
from elmo_tasks.runs.fit import Fit, fit, required_epochs
from elmo_tasks.runs.folder import RunFolder, write_model
from elmo_tasks.runs.inputs import describe_bilm, words_digest
from elmo_tasks.runs.layout import FITTED, WEIGHTS
from elmo_tasks.runs.saved import read_fitted
from elmo_tasks.runs.scoring import Scored, Stopwatch, describe_elmo, describe_layers, describe_work, score_splits
from elmo_tasks.store.store import Filled
from elmo_tasks.training.budget import Budget, epochs_stand_alone
from elmo_tasks.training.callbacks import mixes
from elmo_tasks.training.module import TaskModule, score
from elmo_tasks.training.processes import share_items
from elmo_tasks.training.progress import ShowProgress


class SupervisedRun:
    """See :class:`elmo_tasks.runs.interface.Run`."""

    kind: Kind = "supervised"

    def __init__(self, cfg: dict[str, Any]) -> None:
        check_optimizer(cfg)
        self.cfg, self.seed, self.n_epochs = cfg, cfg["seed"], required_epochs(cfg)
        self.splits = SPLITS if cfg["test"] else SPLITS[:2]
        self.encoder = build_bilm(cfg)
        self.elmo = build_elmo(cfg, self.encoder)
        self.data = build_data(cfg)
        self.processes = share_items(cfg, documents=self.data.reader.documents)
        self.rank = self.processes.rank
        bilm, words = describe_bilm(cfg, self.encoder), words_digest(cfg)
        self.inputs = RunDigests(self.data.digest, self.data.test_digest, bilm, words)
        self.run_id = run_id(cfg, self.kind, self.inputs)
        self.slug = slug(cfg, self.kind)

    def plan(self, done: DoneSoFar) -> Plan:
        """What the run will take; see :func:`elmo_tasks.planning.plan.make_plan`."""
        return make_plan(self.cfg, self.run_id, self.data, self.encoder, self.elmo, done)

    def with_smaller_budgets(self) -> Iterator[tuple[str, int]]:
        """See :class:`elmo_tasks.runs.larger_budget.Extendable`; several processes would have to wait for the first."""
        if self.processes.n == 1 and epochs_stand_alone(self.cfg):
            for n_epochs in range(self.n_epochs - 1, 0, -1):
                trainer = {**self.cfg["trainer"], "max_epochs": n_epochs}
                yield run_id({**self.cfg, "trainer": trainer}, self.kind, self.inputs), n_epochs

    def measure(self, folder: RunFolder, header: Header, finished: Row | None) -> Row:
        """Read, train, choose by dev, score; of a finished run, score its weights on the test set alone."""
        return self._train_and_score(folder, header) if finished is None else self._add_test_scores(folder, finished)

    def _train_and_score(self, folder: RunFolder, header: Header) -> Row:
        watch = Stopwatch()
        with watch("layers"):
            filled = self._read()
        model = build_model(self.cfg, self.data, self.elmo)
        parameters = model.n_trained  # before words of the test set are added
        module = build_module(self.cfg, model, distributed=self.processes.n > 1)
        done = self._train(module, folder)
        with watch("score"):
            scores, files = self._score(module, folder, finished=False)
        write_model(folder.partial, self.run_id, self.cfg, self.inputs, self.data.fitted)
        return SupervisedRow(
            **vars(header),
            **describe_work(self.cfg, module.metric, watch, done),
            data=describe_data(self.cfg, self.data, self.inputs, with_test="test" in scores),
            scores=scores,
            files=files,
            weights=sha256(folder.partial / WEIGHTS),
            parameters=parameters,
            elmo=describe_elmo(self.cfg, mixes(module.mixes())),
            layers=describe_layers(filled),
        )

    def _add_test_scores(self, folder: RunFolder, finished: Row) -> Row:
        """The row of a finished run with the scores of its weights on the test set; all else stays."""
        weights = folder.check_weights(finished)
        self._read()
        self.data.fitted = read_fitted(self.data.reader, folder.final / FITTED)  # the words whose rows its weights have
        module = build_module(self.cfg, build_model(self.cfg, self.data, self.elmo))
        read_weights(module.model, weights)
        module.to(choose_device(self.cfg))
        scores, files = self._score(module, folder, finished=True)
        return replace(
            finished,
            data=describe_data(self.cfg, self.data, self.inputs, with_test=True),
            scores=finished.scores | scores,
            files=finished.files | files,
            config={**finished.config, "test": True},
        )

    def _read(self) -> Filled:
        """Read the data and compute the layers that the store lacks."""
        # Before any number is drawn, so that words without a vector get the same one with and without ELMo.
        pl.seed_everything(self.seed, workers=True, verbose=False)
        self.data.read()
        return self.data.use_layers(build_store(self.cfg, self.encoder), self.splits)

    def _train(self, module: TaskModule, folder: RunFolder) -> Fit:
        trainer = self.cfg["trainer"]
        budget = Budget(
            max_epochs=self.n_epochs,
            max_steps=trainer["max_steps"] if trainer["max_steps"] >= 0 else None,
            dev_batches=dev_batches(trainer["limit_val_batches"], self.data),
        )
        title = f"{self.cfg['task']['name']} {self.cfg['elmo']['placement']} seed {self.seed}"
        progress = [ShowProgress(title, max_steps=trainer["max_steps"])] if trainer["progress"] else []
        return fit(self.cfg, module, self.data, folder, budget, [*progress])

    def _score(self, module: TaskModule, folder: RunFolder, *, finished: bool) -> Scored:
        """Score dev (and test); of a finished run, test alone."""
        splits = self.splits[2:] if finished else self.splits[1:]
        if "test" in splits:
            self.data.add_words("test", [module.model])
        return score_splits(
            splits,
            module.metric,
            folder,
            finished,
            lambda split: score(module.model, module.metric, self.data.batches(split)),
        )


def describe_data(cfg: dict[str, Any], data: TaskData, inputs: RunDigests, *, with_test: bool) -> parts.Data:
    """What was read, as a row has it."""
    counts = data.counts()
    return parts.Data(
        name=cfg["data"]["name"],
        digest=inputs.data,
        test_digest=inputs.test if with_test else None,
        items={split: parts.Items(**counts[split]) for split in SPLITS if split in counts},
        left_out=counts["left_out"],
        word_coverage=counts["word_coverage"] if cfg["words"]["name"] == "glove" else None,
        word_vectors=inputs.words,
    )


def dev_batches(limit: float, data: TaskData) -> float:
    """``trainer.limit_val_batches``; a share of the dev batches as their number, one at least."""
    is_share = isinstance(limit, float) and limit < 1
    return max(1, int(limit * len(data.batches("dev")))) if is_share else limit
