"""Coreference scores as the official scorer (v8.01) counts them: MUC, B-cubed, CEAF with phi 4, and their mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from elmo_tasks.data.clusters import CorefGold, write_document

Mention = tuple[int, int]
Clusters = Sequence[Sequence[Mention]]


@dataclass
class _Sums:
    """Numerators and denominators of recall and precision, over documents."""

    recall: list[float] = field(default_factory=lambda: [0.0, 0.0])
    precision: list[float] = field(default_factory=lambda: [0.0, 0.0])

    def add(self, recall: tuple[float, float], precision: tuple[float, float]) -> None:
        for sums, parts in ((self.recall, recall), (self.precision, precision)):
            sums[0] += parts[0]
            sums[1] += parts[1]

    def scores(self) -> tuple[float, float, float]:
        """Recall, precision and F1, percentages."""
        recall, precision = (100 * top / below if below else 0.0 for top, below in (self.recall, self.precision))
        return recall, precision, 2 * recall * precision / (recall + precision) if recall + precision else 0.0


class CorefF1:
    """The mean F1 of the three metrics, each over the whole corpus (not a mean over documents).

    Clusters of one mention count as they are. Repeats count as the scorer has them, which reads the clusters in the
    order of a file: a gold mention that a prediction gives twice counts in the first of its clusters there, any other
    each time; one that the gold gives twice counts, for MUC and B-cubed, in the last of its clusters. (The scorer
    refuses a prediction that repeats more than ten gold mentions; here it has a score.)
    """

    name = "f1"
    higher_is_better = True
    bounds = (0.0, 100.0)
    reported = ("f1", "muc_f1", "b_cubed_f1", "ceaf_e_f1")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.predictions: dict[int, tuple[CorefGold, Clusters]] = {}

    def update(self, predictions: Sequence[Clusters], gold: Sequence[CorefGold]) -> None:
        """Clusters of mentions (first token, token after the last) of some documents."""
        for clusters, document in zip(predictions, gold, strict=True):
            self.predictions[document["number"]] = document, clusters

    def compute(self) -> dict[str, float]:
        sums = {"muc": _Sums(), "b_cubed": _Sums(), "ceaf_e": _Sums()}
        for gold, predicted in self.predictions.values():
            key = as_read(gold["clusters"])
            response = without_repeats(as_read(predicted), {mention for cluster in key for mention in cluster})
            for name, count in (("muc", muc), ("b_cubed", b_cubed), ("ceaf_e", ceaf_e)):
                sums[name].add(*count(key, response))
        scores = {name: part.scores() for name, part in sums.items()}
        result = {"f1": sum(f1 for _, _, f1 in scores.values()) / len(scores)}
        for name, (recall, precision, f1) in scores.items():
            result |= {f"{name}_f1": f1, f"{name}_recall": recall, f"{name}_precision": precision}
        return result

    def files(self) -> dict[str, str]:
        """Gold and predictions in the scorer's format."""
        in_order = [self.predictions[number] for number in sorted(self.predictions)]
        return {
            "gold.conll": "".join(write_document(gold, gold["clusters"]) for gold, _ in in_order),
            "predicted.conll": "".join(write_document(gold, clusters) for gold, clusters in in_order),
        }


def as_read(clusters: Clusters) -> list[list[Mention]]:
    """The clusters in the order in which the scorer meets them in a file.

    That is by their first token; there, mentions of one token come before longer ones, and of these the longest.
    """

    def place(cluster: list[Mention]) -> tuple[int, bool, int]:
        return min((start, stop - start > 1, start - stop) for start, stop in cluster)

    return sorted(([(mention[0], mention[1]) for mention in cluster] for cluster in clusters if cluster), key=place)


def without_repeats(clusters: Clusters, key_mentions: Set[Mention]) -> list[list[Mention]]:
    """Each mention of the key only where it comes first; clusters that lose all of theirs are gone."""
    seen: set[Mention] = set()
    kept: list[list[Mention]] = []
    for cluster in clusters:
        fresh: list[Mention] = []
        for mention in cluster:
            if mention not in seen:
                fresh.append(mention)
            if mention in key_mentions:
                seen.add(mention)
        kept += [fresh] if fresh else []
    return kept


def muc(key: Clusters, response: Clusters) -> tuple[tuple[float, float], tuple[float, float]]:
    """Links: those of the response that join mentions of one key cluster (Vilain et al., 1995).

    Returns:
        recall, then precision, each as numerator and denominator.
    """
    cluster_ids = _number_mentions(key)
    right = 0
    for cluster in response:
        together = Counter(cluster_ids[mention] for mention in cluster if mention in cluster_ids)
        right += sum(n - 1 for n in together.values())
    wanted, found = (sum(len(cluster) - 1 for cluster in clusters) for clusters in (key, response))
    return (right, wanted), (right, found)


def b_cubed(key: Clusters, response: Clusters) -> tuple[tuple[float, float], tuple[float, float]]:
    """Mentions: how much of a mention's cluster its cluster on the other side has too (Bagga and Baldwin, 1998).

    Returns:
        as :func:`muc`.
    """
    cluster_ids = _number_mentions(key)
    recall = precision = 0.0
    for cluster in response:
        for mention in cluster:
            if mention in cluster_ids:
                own = key[cluster_ids[mention]]
                common = len(set(cluster) & set(own))
                precision += common / len(cluster)
                recall += common / len(own)
    wanted, found = (sum(map(len, clusters)) for clusters in (key, response))
    return (recall, wanted), (precision, found)


def ceaf_e(key: Clusters, response: Clusters) -> tuple[tuple[float, float], tuple[float, float]]:
    """Entities: similarity of the clusters under the best one-to-one alignment (Luo, 2005, phi 4).

    Returns:
        as :func:`muc`.
    """
    from scipy.optimize import linear_sum_assignment

    similarity = np.zeros((len(key), len(response)))
    for j, cluster in enumerate(response):
        mentions = set(cluster)
        for i, own in enumerate(key):
            similarity[i, j] = 2 * sum(mention in mentions for mention in own) / (len(own) + len(cluster))
    total = float(similarity[linear_sum_assignment(similarity, maximize=True)].sum())
    return (total, len(key)), (total, len(response))


def _number_mentions(clusters: Clusters) -> dict[Mention, int]:
    """The number of each mention's cluster."""
    return {mention: k for k, cluster in enumerate(clusters) for mention in cluster}
