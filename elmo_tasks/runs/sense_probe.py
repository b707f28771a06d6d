"""A sense probe: word senses by the nearest sense mean of one biLM layer (Table 5). Nothing is trained."""

from __future__ import annotations

import time
from typing import Any

import torch

from elmo_tasks.assembly import build_bilm, build_elmo, build_sense_data, build_store, choose_device, make
from elmo_tasks.configuration.identity import RunInputs, identify, slug
from elmo_tasks.data.source import SPLITS
from elmo_tasks.elmo import Elmo, ScalarMix
from elmo_tasks.errors import UserError
from elmo_tasks.metrics.base import Metric
from elmo_tasks.probes.sense_means import SenseMeans, vectors
from elmo_tasks.rows import kinds, parts
from elmo_tasks.rows.fields import Kind
from elmo_tasks.rows.schema import Measured, Row
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.inputs import describe_bilm
from elmo_tasks.runs.scoring import describe_elmo, describe_layers, describe_metric, score_splits
from elmo_tasks.store.store import Filled
from elmo_tasks.training.processes import require_one_process


class SenseProbeRun:
    """See :class:`elmo_tasks.runs.kinds.Kind`."""

    name: Kind = "sense_probe"
    rank = 0

    def __init__(self, cfg: dict[str, Any]) -> None:
        require_one_process(cfg)
        self.cfg, self.seed = cfg, cfg["seed"]
        self.encoder = build_bilm(cfg)
        self.mix = choose_layer(cfg, build_elmo(cfg, self.encoder))
        self.data = build_sense_data(cfg)
        self.inputs = RunInputs(self.data.digest, self.data.test_digest, describe_bilm(cfg, self.encoder))
        self.run_id = identify(cfg, self.inputs)
        self.slug = slug(cfg)

    def measure(self, folder: RunFolder, finished: Row | None) -> Measured:
        """Average the vectors of the training instances by sense, choose senses for those of dev (and test)."""
        start = time.perf_counter()
        splits = SPLITS if self.cfg["test"] else SPLITS[:2]
        self.data.read(splits)
        store = build_store(self.cfg, self.encoder)
        filled = Filled() if store is None else store.fill(self.data.sentences())
        after_layers = time.perf_counter()
        means = SenseMeans(self.data.inventory)
        if store is not None and self.mix is not None:
            for instance, vector in vectors(self.data.train, store, self.mix):
                means.add(instance.keys, vector)
        metric: Metric = make(self.cfg["task"]["metric"])
        unseen: dict[str, int] = {}

        def score(split: str) -> dict[str, float]:
            metric.reset()
            unseen[split] = 0
            for name, sentences in self.data.sets[split].items():
                for instance, vector in vectors(sentences, store, self.mix):
                    metric.update([means.choose(instance.lemma, vector)], [(name, instance.keys)])
                    unseen[split] += not means.seen(instance.lemma)
            return metric.compute()

        scores, _ = score_splits(splits[1:], metric, folder, finished is not None, score)
        counts = self.data.counts()
        instances = counts["instances"]
        return Measured(
            data=parts.Data(
                name=self.cfg["data"]["name"],
                digest=self.data.digest,
                test_digest=self.data.test_digest if "test" in splits else None,
                items={split: parts.Items(**counts[split]) for split in SPLITS if split in counts},
                left_out={},
                word_coverage=None,
            ),
            metric=describe_metric(metric),
            scores=scores,
            files={},
            weights=None,
            parameters=0,
            training=None,
            elmo=describe_elmo(self.cfg),
            layers=describe_layers(filled),
            seconds=parts.Durations(
                layers=round(after_layers - start, 2), fit=None, score=round(time.perf_counter() - after_layers, 2)
            ),
            device=choose_device(self.cfg),
            processes=1,
            threads=torch.get_num_threads(),
            sense_probe=kinds.SenseProbe(
                instances={**instances, "train": {"train": instances["train"]}},
                first_sense=unseen,
            ),
        )


def choose_layer(cfg: dict[str, Any], elmo: Elmo) -> ScalarMix | None:
    """The mix that selects the layer; None for the baseline, which always takes WordNet's first sense.

    Raises:
        UserError: if the configuration does not select a single layer.
    """
    placement, mix, task = cfg["elmo"]["placement"], cfg["elmo"]["mix"], cfg["task"]["name"]
    if placement not in ("input", "none"):
        raise UserError(f"elmo.placement must be input or none with task={task}, not an output, found {placement!r}")
    if placement == "input" and mix == "scalar":
        raise UserError(f"elmo.mix must be layer_0, layer_1, ..., last or mean with task={task}: it learns no weights")
    return None if placement == "none" else elmo.mixes["input"]
