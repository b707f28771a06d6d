"""A sense probe: word senses by the nearest sense mean of one biLM layer (Table 5). Nothing is trained."""

from __future__ import annotations

from typing import Any

from elmo_tasks.assembly import build_bilm, build_elmo, build_sense_data, build_store, make
from elmo_tasks.config.identity import RunDigests, run_id, slug
from elmo_tasks.data.source import SPLITS
from elmo_tasks.elmo import Elmo, ScalarMix
from elmo_tasks.errors import UserError
from elmo_tasks.metrics.base import Metric
from elmo_tasks.probes.sense_means import SenseMeans, vectors
from elmo_tasks.rows import kinds, parts
from elmo_tasks.rows.fields import Kind
from elmo_tasks.rows.schema import Header, Row, SenseProbeRow
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.inputs import describe_bilm
from elmo_tasks.runs.scoring import Stopwatch, describe_elmo, describe_layers, describe_work, score_splits
from elmo_tasks.store.store import Filled, Store
from elmo_tasks.training.processes import require_one_process


class SenseProbeRun:
    """See :class:`elmo_tasks.runs.interface.Run`."""

    kind: Kind = "sense_probe"
    rank = 0

    def __init__(self, cfg: dict[str, Any]) -> None:
        require_one_process(cfg)
        self.cfg, self.seed = cfg, cfg["seed"]
        self.splits = SPLITS if cfg["test"] else SPLITS[:2]
        self.encoder = build_bilm(cfg)
        self.mix = choose_layer(cfg, build_elmo(cfg, self.encoder))
        self.data = build_sense_data(cfg)
        self.inputs = RunDigests(self.data.digest, self.data.test_digest, describe_bilm(cfg, self.encoder))
        self.run_id = run_id(cfg, self.kind, self.inputs)
        self.slug = slug(cfg, self.kind)

    def measure(self, folder: RunFolder, header: Header, finished: Row | None) -> Row:
        """Average the vectors of the training instances by sense, choose senses for those of dev (and test)."""
        watch = Stopwatch()
        with watch("layers"):
            self.data.read(self.splits)
            store = build_store(self.cfg, self.encoder)
            filled = Filled() if store is None else store.fill(self.data.sentences())
        metric: Metric = make(self.cfg["task"]["metric"], self.cfg["packages"])
        with watch("score"):
            means = self._train(store)
            scores, _ = score_splits(
                self.splits[1:],
                metric,
                folder,
                finished is not None,
                lambda split: self._score(split, means, store, metric),
            )
        return SenseProbeRow(
            **vars(header),
            **describe_work(self.cfg, metric, watch),
            data=self._describe_data(),
            scores=scores,
            files={},
            weights=None,
            parameters=0,
            elmo=describe_elmo(self.cfg),
            layers=describe_layers(filled),
            sense_probe=self._describe_instances(means),
        )

    def _train(self, store: Store | None) -> SenseMeans:
        """The mean vector of each sense; none for the baseline."""
        means = SenseMeans(self.data.inventory)
        if store is not None and self.mix is not None:
            for instance, vector in vectors(self.data.train, store, self.mix):
                means.add(instance.keys, vector)
        return means

    def _score(self, split: str, means: SenseMeans, store: Store | None, metric: Metric) -> dict[str, float]:
        metric.reset()
        for name, sentences in self.data.sets[split].items():
            for instance, vector in vectors(sentences, store, self.mix):
                metric.update([means.choose(instance.lemma, vector)], [(name, instance.keys)])
        return metric.compute()

    def _describe_data(self) -> parts.Data:
        counts = self.data.counts()
        return parts.Data(
            name=self.cfg["data"]["name"],
            digest=self.data.digest,
            test_digest=self.data.test_digest if "test" in self.splits else None,
            items={split: parts.Items(**counts[split]) for split in SPLITS if split in counts},
            left_out={},
            word_coverage=None,
        )

    def _describe_instances(self, means: SenseMeans) -> kinds.SenseProbe:
        instances = self.data.counts()["instances"]
        first_sense = {
            split: sum(
                not means.seen(instance.lemma)
                for sentences in self.data.sets[split].values()
                for sentence in sentences
                for instance in sentence.instances
            )
            for split in self.splits[1:]
        }
        return kinds.SenseProbe(
            instances={**instances, "train": {"train": instances["train"]}}, first_sense=first_sense
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
