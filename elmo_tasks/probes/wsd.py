"""Senses by nearest neighbour (Table 5): ``python run.py task=wsd elmo.mix=layer_2``.

Nothing is trained. The vectors of SemCor's instances in one biLM layer are averaged by sense, and an instance takes the
sense of its lemma whose mean is closest. ``elmo.placement=none`` is the baseline, WordNet's first sense throughout.

The row is that of any run (see ``results.py``) without ``epochs``, ``best_epoch``, ``curve`` and ``parameters``, and

* ``scores``: for ``dev`` and (``test=true``) ``test`` the percentage ``f1`` over all of the split's instances, and one
  by set, such as ``senseval2``;
* ``data``: ``train``, ``dev``, ``test`` count sentences; ``instances`` those of ``train``, and by split and set;
  ``first_sense`` how many of each split's instances had no training instance of their lemma;
* ``elmo.mix``: the layer; ``elmo.weights`` is empty.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_tasks.bilm.store import Filled, LayerStore, TokenStore
from elmo_tasks.build import build_store, device_of, make
from elmo_tasks.data.senses import Instance, Lemma, SenseSentence
from elmo_tasks.data.source import SPLITS
from elmo_tasks.data.wsd import WsdData
from elmo_tasks.elmo import Elmo, ScalarMix
from elmo_tasks.encoders.base import Encoder
from elmo_tasks.errors import UserError
from elmo_tasks.metrics.base import Metric

Vector = NDArray[np.float64]

_SENTENCES = 32  # whose layers are held at once


class SenseMeans:
    """The sum of the vectors of each sense's instances, and the choice among a lemma's senses.

    Args:
        inventory: the sense keys of each lemma in WordNet's order.
    """

    def __init__(self, inventory: Mapping[Lemma, Sequence[str]]) -> None:
        self.inventory = inventory
        self.sums: dict[str, Vector] = {}

    def add(self, keys: Sequence[str], vector: Vector) -> None:
        """An instance, ``[D]``; one of several senses counts for each."""
        for key in keys:
            self.sums[key] = self.sums[key] + vector if key in self.sums else vector

    def seen(self, lemma: Lemma) -> list[str]:
        """The senses of a lemma that have instances, in WordNet's order."""
        return [key for key in self.inventory.get(lemma, ()) if key in self.sums]

    def choose(self, lemma: Lemma, vector: Vector) -> str | None:
        """The seen sense whose mean has the largest cosine with ``vector``, the earlier one in WordNet of equal ones.

        Where no sense was seen, it is WordNet's first, and None for a lemma that WordNet does not have.
        """
        senses = self.seen(lemma)
        if not senses:
            return next(iter(self.inventory.get(lemma, ())), None)
        sums = np.stack([self.sums[key] for key in senses])  # as good as means: a cosine knows no length
        cosines = sums @ vector / np.maximum(np.linalg.norm(sums, axis=1), np.finfo(np.float64).tiny)
        return senses[int(cosines.argmax())]


def experiment(cfg: dict[str, Any], data: WsdData, encoder: Encoder | None, elmo: Elmo) -> dict[str, Any]:
    """Average SemCor's instances by sense, answer those of dev (and test).

    Args:
        cfg: the checked configuration.
        data: not yet read.
        encoder: frozen; None for the first-sense baseline.
        elmo: its mix is the layer to use.

    Returns:
        the measured part of the row.

    Raises:
        UserError: if the configuration asks for what is not a probe of a layer.
    """
    start = time.perf_counter()
    mix = layer_of(cfg, elmo)
    splits = SPLITS if cfg["test"] else SPLITS[:2]
    data.read(splits)
    store = build_store(cfg, encoder)
    filled = Filled() if store is None else store.fill(data.sentences())
    after_layers = time.perf_counter()
    means = SenseMeans(data.inventory)
    if store is not None and mix is not None:
        for instance, vector in vectors(data.train, store, mix):
            means.add(instance.keys, vector)
    metric: Metric = make(cfg["task"]["metric"])
    scores, unseen = {}, {}
    for split in splits[1:]:
        metric.reset()
        unseen[split] = 0
        for name, sentences in data.sets[split].items():
            for instance, vector in vectors(sentences, store, mix):
                metric.update([means.choose(instance.lemma, vector)], [(name, instance.keys)])
                unseen[split] += not means.seen(instance.lemma)
        scores[split] = metric.compute()
    return {
        "data": {"name": cfg["data"]["name"], "digest": data.digest, **data.counts(), "first_sense": unseen},
        "metric": metric.name,
        "scores": scores,
        "elmo": {"placement": cfg["elmo"]["placement"], "mix": cfg["elmo"]["mix"], "weights": {}},
        "layers": asdict(filled),
        "seconds": {
            "layers": round(after_layers - start, 2),
            "score": round(time.perf_counter() - after_layers, 2),
        },
        "device": device_of(cfg),
        "threads": torch.get_num_threads(),
    }


def layer_of(cfg: dict[str, Any], elmo: Elmo) -> ScalarMix | None:
    """What takes the layer out of all of them; None for the baseline."""
    placement, mix = cfg["elmo"]["placement"], cfg["elmo"]["mix"]
    if placement not in ("input", "none"):
        raise UserError(f"elmo.placement must be input or none with task=wsd, which has no output, found {placement!r}")
    if placement == "input" and mix == "scalar":
        raise UserError("elmo.mix must be layer_0, layer_1, ..., last or mean with task=wsd, which learns no weights")
    return elmo.mixes["input"] if placement == "input" else None  # type: ignore[return-value]


@torch.no_grad()
def vectors(
    sentences: Sequence[SenseSentence], store: LayerStore | TokenStore | None, mix: ScalarMix | None
) -> Iterator[tuple[Instance, Vector]]:
    """Each instance with its vector ``[D]``, that of several words their mean; zeros ``[1]`` without layers."""
    for start in range(0, len(sentences), _SENTENCES):
        portion = [sentence for sentence in sentences[start : start + _SENTENCES] if sentence.instances]
        if store is None or mix is None:
            yield from ((instance, np.zeros(1)) for sentence in portion for instance in sentence.instances)
            continue
        layers = store.padded([sentence.tokens for sentence in portion]).cpu()  # [B, L, T, D]
        lengths = torch.tensor([len(sentence.tokens) for sentence in portion])
        chosen = mix(layers, torch.arange(layers.shape[2]) < lengths.unsqueeze(1)).double().numpy()  # [B, T, D]
        for sentence, row in zip(portion, chosen, strict=True):
            for instance in sentence.instances:
                yield instance, row[instance.start : instance.end].mean(axis=0)
