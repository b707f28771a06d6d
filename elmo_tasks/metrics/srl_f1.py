"""Precision, recall and F1 of arguments as the CoNLL-2005 scorer (srl-eval) counts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from elmo_tasks.data.frames import SrlGold
from elmo_tasks.data.tags import Span, find_spans

Pieces = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Argument:
    """A label and the spans (first token, token after the last) that it has, more than one if it is discontinuous."""

    label: str
    pieces: Pieces

    @property
    def extent(self) -> tuple[int, int]:
        """The first token of the first piece, and the token after the last piece."""
        return self.pieces[0][0], self.pieces[-1][1]


class SrlF1:
    """Micro average over all arguments of all predicates.

    The predicate's own span V is not counted; C-X continues the last X before it and is no argument of its own; R-X is
    an ordinary label. An argument is right if label and all its pieces are.
    """

    name = "f1"
    higher_is_better = True
    bounds = (0.0, 100.0)
    reported = ("f1",)

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.predictions: dict[int, tuple[SrlGold, Sequence[list[str]]]] = {}

    def update(self, predictions: Sequence[Sequence[list[str]]], gold: Sequence[SrlGold]) -> None:
        """IOB2 tags of each predicate of some sentences."""
        for tags, sentence in zip(predictions, gold, strict=True):
            self.predictions[sentence["number"]] = sentence, tags

    def compute(self) -> dict[str, float]:
        right = found = wanted = 0
        for gold, predicted in self.predictions.values():
            for gold_tags, tags in zip(gold["tags"], predicted, strict=True):
                counts = compare(arguments(find_spans(gold_tags)), arguments(find_spans(tags)))
                right, found, wanted = (a + b for a, b in zip((right, found, wanted), counts, strict=True))
        precision = 100 * right / found if found else 0.0
        recall = 100 * right / wanted if wanted else 0.0
        f1 = 2 * precision * recall / (precision + recall) if right else 0.0
        return {"f1": f1, "precision": precision, "recall": recall}

    def files(self) -> dict[str, str]:
        """Gold and predictions in the scorer's format."""
        in_order = [self.predictions[number] for number in sorted(self.predictions)]
        return {
            "gold.props": "".join(props(gold, gold["tags"]) for gold, _ in in_order),
            "predicted.props": "".join(props(gold, tags) for gold, tags in in_order),
        }


def arguments(spans: Sequence[Span]) -> list[Argument]:
    """Spans of one predicate to arguments, V among them; a C-X that continues nothing is an X."""
    found: list[Argument] = []
    last: dict[str, int] = {}
    for start, stop, label in spans:
        continued = label.removeprefix("C-")
        if label != continued and continued in last:
            k = last[continued]
            found[k] = Argument(continued, (*found[k].pieces, (start, stop)))
        else:
            last[continued] = len(found)
            found.append(Argument(continued, ((start, stop),)))
    return found


def compare(gold: Sequence[Argument], predicted: Sequence[Argument]) -> tuple[int, int, int]:
    """The numbers of right, predicted and gold arguments of one predicate, without V."""
    wanted = {argument.extent: argument for argument in gold}
    right = sum(wanted.get(argument.extent) == argument for argument in predicted if argument.label != "V")
    return (
        right,
        sum(argument.label != "V" for argument in predicted),
        sum(argument.label != "V" for argument in wanted.values()),
    )


def props(gold: SrlGold, tags_of_predicates: Sequence[list[str]]) -> str:
    """One sentence: the predicates' lemmas, then a column of brackets for each of them."""
    n_tokens = len(gold["tags"][0])
    lemmas = ["-"] * n_tokens
    for k, lemma in zip(gold["predicates"], gold["lemmas"], strict=True):
        lemmas[k] = lemma
    columns = [lemmas, *(brackets(find_spans(tags), n_tokens) for tags in tags_of_predicates)]
    return "".join(" ".join(row) + "\n" for row in zip(*columns, strict=True)) + "\n"


def brackets(spans: Sequence[Span], n_tokens: int) -> list[str]:
    """One cell for each token, such as ``(ARG0*``, ``*`` or ``*)``: where spans open and close."""
    cells = ["*"] * n_tokens
    for start, stop, label in spans:
        cells[start] = f"({label}*"
        cells[stop - 1] += ")"
    return cells
