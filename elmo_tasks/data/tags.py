"""Chunk tags: spans from any of the IOB schemes, and spans to IOB2 and BIOES."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

Span = tuple[int, int, str]
"""First token, token after the last, type."""


NO_TYPE = "ENTITY"
"""The type of an entity whose tags have none (``B``, ``I``)."""

_SAME = {"L": "E", "U": "S", "M": "I", "W": "S"}  # BIOUL, BMES, BMEWO
_PREFIXES = ("B", "I", "E", "S", *_SAME)


def has_type(tag: str) -> bool:
    """Whether a tag is more than the letter of a scheme."""
    return tag not in _PREFIXES


def typed(tag: str) -> str:
    """``B`` to ``B-ENTITY``; any other text as it is."""
    return tag if has_type(tag) else f"{tag}-{NO_TYPE}"


def split_tag(tag: str) -> tuple[str, str] | None:
    """``B-PER`` to ``("B", "PER")``, ``O`` to ``("O", "")``, None for what is no tag.

    The letters of other schemes are read as those of BIOES: L as E, M as I, U and W as S.
    """
    if tag == "O":
        return "O", ""
    prefix, dash, kind = tag.partition("-")
    if not dash or not kind or prefix not in _PREFIXES:
        return None
    return _SAME.get(prefix, prefix), kind


def find_spans(tags: Sequence[str]) -> list[Span]:
    """Chunks as conlleval reads them, whatever the scheme.

    A token continues the chunk of the one before if that one is B or I, this one is I or E, and their types agree;
    every other tag but O begins a chunk. So an I may begin one (IOB1).
    """
    spans: list[Span] = []
    before = ("O", "")
    for k, tag in enumerate(tags):
        now = split_tag(tag)
        assert now is not None, tag
        if before[0] in "BI" and now[0] in "IE" and before[1] == now[1]:
            spans[-1] = (spans[-1][0], k + 1, now[1])
        elif now[0] != "O":
            spans.append((k, k + 1, now[1]))
        before = now
    return spans


def iob2(spans: Iterable[Span], length: int) -> list[str]:
    """B at the first token of each span, I at the others, O elsewhere."""
    tags = ["O"] * length
    for start, stop, kind in spans:
        tags[start:stop] = [f"B-{kind}"] + [f"I-{kind}"] * (stop - start - 1)
    return tags


def bioes(spans: Iterable[Span], length: int) -> list[str]:
    """S for spans of one token; B, I ..., E for longer ones (AllenNLP's BIOUL under the field's other letters)."""
    tags = ["O"] * length
    for start, stop, kind in spans:
        if stop - start == 1:
            tags[start] = f"S-{kind}"
        else:
            tags[start:stop] = [f"B-{kind}", *[f"I-{kind}"] * (stop - start - 2), f"E-{kind}"]
    return tags


def bioes_tags(kinds: Iterable[str]) -> list[str]:
    """All tags of the scheme, O first."""
    return ["O", *(f"{prefix}-{kind}" for kind in sorted(kinds) for prefix in "BIES")]


def bioes_constraints(tags: Sequence[str]) -> tuple[Tensor, Tensor, Tensor]:
    """Which tag sequences spell whole spans.

    Returns:
        bool ``[K, K]`` (from, to), ``[K]`` (may come first), ``[K]`` (may come last).
    """
    parts = [part for part in map(split_tag, tags) if part is not None]
    opens = [prefix in "BI" for prefix, _ in parts]  # a span is open after this tag
    continues = [prefix in "IE" for prefix, _ in parts]  # this tag needs an open span of its type before it
    allowed = torch.tensor(
        [
            [opens[a] == continues[b] and (not opens[a] or parts[a][1] == parts[b][1]) for b in range(len(parts))]
            for a in range(len(parts))
        ]
    )
    return allowed, ~torch.tensor(continues), ~torch.tensor(opens)
