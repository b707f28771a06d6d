"""A prediction as text for a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def readable(prediction: Mapping[str, Any]) -> str:
    """One or more lines, whose form depends on the keys of the prediction, not on the task."""
    for key, render in _RENDERERS.items():
        if key in prediction:
            return render(prediction)
    return "  ".join(f"{key}: {value}" for key, value in prediction.items())


def _entities(prediction: Mapping[str, Any]) -> str:
    """``[PER Anna Berg] lives in [LOC Berlin] .``."""
    words = list(prediction["tokens"])
    for entity in prediction["entities"]:
        start, stop = entity["start"], entity["stop"] - 1
        words[start] = f"[{entity['type']} {words[start]}"
        words[stop] = f"{words[stop]}]"
    return " ".join(words)


def _tags(prediction: Mapping[str, Any]) -> str:
    """``The/DT film/NN``."""
    pairs = zip(prediction["tokens"], prediction["tags"], strict=True)
    return " ".join(f"{token}/{tag}" for token, tag in pairs)


def _frames(prediction: Mapping[str, Any]) -> str:
    """The sentence, then a line for each predicate with its arguments."""
    lines = [" ".join(prediction["tokens"])]
    for frame in prediction["frames"]:
        arguments = (f"[{part['label']} {part['text']}]" for part in frame["arguments"])
        lines.append(f"  {frame['predicate']}: {' '.join(arguments)}")
    return "\n".join(lines)


def _clusters(prediction: Mapping[str, Any]) -> str:
    """A line for each cluster: its mentions, in order."""
    lines = [
        f"  {number}: {' | '.join(mention['text'] for mention in cluster)}"
        for number, cluster in enumerate(prediction["clusters"], start=1)
    ]
    return "\n".join(["clusters:" if lines else "no clusters", *lines])


def _last(key: str) -> Callable[[Mapping[str, Any]], str]:
    """One value, then the input."""

    def render(prediction: Mapping[str, Any]) -> str:
        rest = (value for name, value in prediction.items() if name != key)
        return "\t".join([str(prediction[key]), *(" ".join(v) if isinstance(v, list) else str(v) for v in rest)])

    return render


_RENDERERS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "entities": _entities,
    "frames": _frames,
    "clusters": _clusters,
    "tags": _tags,
    "answer": _last("answer"),
    "label": _last("label"),
}
