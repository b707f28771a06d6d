"""The biLM's sizes, as bilm-tf's ``options.json`` gives them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_tasks.bilm.chars import MAX_CHARACTERS, N_CHARACTERS
from elmo_tasks.errors import UserError


@dataclass(frozen=True)
class BiLMOptions:
    """Sizes of a biLM. P is the width of one direction, so that a layer is D = 2 P wide; P cells are not projected."""

    filters: tuple[tuple[int, int], ...]
    character_dim: int
    n_highway: int
    dim: int
    projection_dim: int
    n_layers: int = 2
    cell_clip: float = 3.0
    proj_clip: float = 3.0
    skip_connections: bool = True

    @classmethod
    def read(cls, path: Path) -> BiLMOptions:
        """Read and check an ``options.json``.

        Raises:
            UserError: naming the file and the key that is missing or out of range.
        """
        try:
            raw = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise UserError(f"{path}: cannot be read as JSON options of a biLM ({error})") from error
        return cls.from_json(raw, source=str(path))

    @classmethod
    def from_json(cls, raw: dict[str, Any], source: str = "options") -> BiLMOptions:
        """Take over bilm-tf's nested dictionary (see :meth:`read`)."""
        if not isinstance(raw, dict):
            raise UserError(f"{source}: expected bilm-tf's options with 'lstm' and 'char_cnn', found {str(raw)[:40]}")
        char = _section(raw, "char_cnn", source)
        lstm = _section(raw, "lstm", source)
        _expect(source, "char_cnn.n_characters", char.get("n_characters"), (N_CHARACTERS - 1, N_CHARACTERS))
        _expect(source, "char_cnn.max_characters_per_token", char.get("max_characters_per_token"), (MAX_CHARACTERS,))
        _expect(source, "char_cnn.activation", char.get("activation"), ("relu",))
        filters = char.get("filters")
        if not isinstance(filters, list) or not all(isinstance(f, list) and len(f) == 2 for f in filters):
            raise UserError(f"{source}: char_cnn.filters must be a list of [width, count], found {filters!r}")
        dim = _positive(source, "lstm.dim", lstm.get("dim"))
        projection_dim = _positive(source, "lstm.projection_dim", lstm.get("projection_dim"))
        if projection_dim > dim:  # bilm-tf projects down only, and cannot put layers of two widths together
            raise UserError(
                f"{source}: lstm.projection_dim must be at most lstm.dim, found {projection_dim} and {dim}: the token "
                "layer would be wider than the others"
            )
        return cls(
            filters=tuple((_positive(source, "filter width", w), _positive(source, "filters", n)) for w, n in filters),
            character_dim=_positive(source, "char_cnn.embedding.dim", _section(char, "embedding", source).get("dim")),
            n_highway=_positive(source, "char_cnn.n_highway", char["n_highway"]) if char.get("n_highway") else 0,
            dim=dim,
            projection_dim=projection_dim,
            n_layers=_positive(source, "lstm.n_layers", lstm.get("n_layers")),
            cell_clip=_clip(source, "lstm.cell_clip", lstm.get("cell_clip")),
            proj_clip=_clip(source, "lstm.proj_clip", lstm.get("proj_clip")),
            skip_connections=bool(lstm.get("use_skip_connections", False)),
        )

    def to_json(self) -> dict[str, Any]:
        """bilm-tf's nested dictionary, the inverse of :meth:`from_json`."""
        return {
            "lstm": {
                "use_skip_connections": self.skip_connections,
                "n_layers": self.n_layers,
                "dim": self.dim,
                "projection_dim": self.projection_dim,
                "cell_clip": self.cell_clip if self.cell_clip != float("inf") else None,
                "proj_clip": self.proj_clip if self.proj_clip != float("inf") else None,
            },
            "char_cnn": {
                "activation": "relu",
                "embedding": {"dim": self.character_dim},
                "filters": [list(f) for f in self.filters],
                "n_highway": self.n_highway,
                "n_characters": N_CHARACTERS,
                "max_characters_per_token": MAX_CHARACTERS,
            },
        }


def _section(raw: dict[str, Any], key: str, source: str) -> dict[str, Any]:
    section = raw.get(key)
    if not isinstance(section, dict):
        raise UserError(
            f"{source}: the section {key!r} is missing; expected bilm-tf's options with 'lstm' and 'char_cnn'"
        )
    return section


def _expect(source: str, key: str, found: object, choices: tuple[object, ...]) -> None:
    if found not in choices:
        expected = " or ".join(str(choice) for choice in choices)
        raise UserError(f"{source}: {key} must be {expected}, found {found!r}")


def _positive(source: str, key: str, found: object) -> int:
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise UserError(f"{source}: {key} must be a positive whole number, found {found!r}")
    return found


def _clip(source: str, key: str, found: object) -> float:
    """A bound; none is infinity."""
    if found is None or found == 0:
        return float("inf")
    if not isinstance(found, (int, float)) or isinstance(found, bool) or not found > 0:
        raise UserError(f"{source}: {key} must be a positive number, or null for none, found {found!r}")
    return float(found)
