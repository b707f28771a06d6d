"""The biLM's sizes, as bilm-tf's ``options.json`` gives them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from elmo_tasks.errors import UserError, quoted
from elmo_tasks.files import read_json
from elmo_tasks.nn.characters import MAX_CHARACTERS, N_CHARACTERS

MAX_LAYERS = 100
_MAX_CLIP = 1e30  # as a float32 it is finite
MAX_WIDTH = 100_000
MAX_WORD = 1000
"""The largest ``max_characters_per_token``."""
MAX_PARAMETERS = 2_000_000_000
"""Twenty times the size of the published biLM: 8 GB. A larger number is a mistake in the options."""


@dataclass(frozen=True)
class BiLMOptions:
    """Sizes of a biLM. A direction has width P, so that a layer has D = 2 P; with P cells there is no projection.

    Attributes:
        filters: width (in characters) and number of each group of filters.
        character_dim: size of a character embedding.
        n_highway: number of highway layers.
        dim: cells H of a direction.
        projection_dim: width P of a direction's output.
        n_layers: number of LSTM layers, L - 1.
        cell_clip: bound of a cell's absolute value.
        proj_clip: bound of a projected output's absolute value.
        skip_connections: whether the input of each LSTM layer but the first is added to its output.
        activation: of the filters' maxima, ``relu`` or ``tanh``.
        max_characters: ids of a word at most, those that mark its ends included.
    """

    filters: tuple[tuple[int, int], ...]
    character_dim: int
    n_highway: int
    dim: int
    projection_dim: int
    n_layers: int = 2
    cell_clip: float = 3.0
    proj_clip: float = 3.0
    skip_connections: bool = True
    activation: str = "relu"
    max_characters: int = MAX_CHARACTERS

    @classmethod
    def read(cls, path: Path) -> BiLMOptions:
        """Read and check an ``options.json``.

        Raises:
            UserError: naming the file and the key that is missing or out of range.
        """
        return cls.from_json(read_json(path), source=str(path))

    @classmethod
    def from_json(cls, raw: Any, source: str = "options") -> BiLMOptions:
        """The sizes in bilm-tf's nested dictionary, checked as by :meth:`read`; ``source`` names it in messages."""
        if not isinstance(raw, dict):
            raise UserError(f"{source}: expected bilm-tf's options with 'lstm' and 'char_cnn', found {quoted(raw)}")
        char = _section(raw, "char_cnn", source)
        lstm = _section(raw, "lstm", source)
        _expect(source, "char_cnn.n_characters", char.get("n_characters"), (N_CHARACTERS - 1, N_CHARACTERS))
        key = "char_cnn.max_characters_per_token"  # at least one character between the marks of a word's ends
        max_characters = _whole(source, key, char.get("max_characters_per_token"), MAX_WORD, least=3)
        _expect(source, "char_cnn.activation", char.get("activation"), ("relu", "tanh"))
        dim = _whole(source, "lstm.dim", lstm.get("dim"), MAX_WIDTH)
        projection_dim = _whole(source, "lstm.projection_dim", lstm.get("projection_dim"), MAX_WIDTH)
        if projection_dim > dim:  # bilm-tf projects down only, and cannot put layers of two widths together
            raise UserError(
                f"{source}: lstm.projection_dim must be at most lstm.dim, found {projection_dim} and {dim}: the token "
                "layer would be wider than the others"
            )
        character_dim = _section(char, "embedding", source).get("dim")
        n_highway = 0 if char.get("n_highway") is None else char["n_highway"]
        options = cls(
            filters=_filters(source, char.get("filters"), max_characters),
            character_dim=_whole(source, "char_cnn.embedding.dim", character_dim, MAX_WIDTH),
            n_highway=_whole(source, "char_cnn.n_highway", n_highway, MAX_LAYERS, least=0),
            dim=dim,
            projection_dim=projection_dim,
            n_layers=_whole(source, "lstm.n_layers", lstm.get("n_layers"), MAX_LAYERS),
            cell_clip=_clip(source, "lstm.cell_clip", lstm.get("cell_clip")),
            proj_clip=_clip(source, "lstm.proj_clip", lstm.get("proj_clip")),
            skip_connections=_true_or_false(source, "lstm.use_skip_connections", lstm.get("use_skip_connections")),
            activation=char["activation"],
            max_characters=max_characters,
        )
        if options.n_parameters > MAX_PARAMETERS:
            raise UserError(
                f"{source}: these sizes make {options.n_parameters:,} parameters; expected at most {MAX_PARAMETERS:,}"
            )
        return options

    @property
    def n_parameters(self) -> int:
        """Weights of a biLM of these sizes."""
        n_filters = sum(count for _, count in self.filters)
        kernels = sum(width * self.character_dim * count for width, count in self.filters)
        highways = self.n_highway * 2 * (n_filters + 1) * n_filters
        projection = 0 if n_filters == self.projection_dim else (n_filters + 1) * self.projection_dim
        cell_projection = 0 if self.dim == self.projection_dim else self.dim * self.projection_dim
        lstm = (2 * self.projection_dim + 1) * 4 * self.dim + cell_projection
        characters = N_CHARACTERS * self.character_dim + kernels + n_filters
        return characters + highways + projection + 2 * self.n_layers * lstm

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
                "activation": self.activation,
                "embedding": {"dim": self.character_dim},
                "filters": [list(f) for f in self.filters],
                "n_highway": self.n_highway,
                "n_characters": N_CHARACTERS,
                "max_characters_per_token": self.max_characters,
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
        raise UserError(f"{source}: {key} must be {expected}, found {quoted(found)}")


def _filters(source: str, found: object, max_width: int) -> tuple[tuple[int, int], ...]:
    """Width and count of each group; no filter is wider than a word can be."""
    groups = found if isinstance(found, list) and len(found) <= MAX_LAYERS else []
    if not groups or not all(isinstance(group, list) and len(group) == 2 for group in groups):
        raise UserError(f"{source}: char_cnn.filters must be a list of [width, count], found {quoted(found)}")
    return tuple(
        (_whole(source, "filter width", width, max_width), _whole(source, "filters", count, MAX_WIDTH))
        for width, count in groups
    )


def _whole(source: str, key: str, found: object, most: int, least: int = 1) -> int:
    if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
        raise UserError(f"{source}: {key} must be a whole number from {least} to {most:,}, found {quoted(found)}")
    return found


def _clip(source: str, key: str, found: object) -> float:
    """A bound; infinity where there is none."""
    if found is None or found == 0:
        return float("inf")
    if not isinstance(found, (int, float)) or isinstance(found, bool) or not 0 < found <= _MAX_CLIP:
        raise UserError(f"{source}: {key} must be a positive number, or null for none, found {quoted(found)}")
    return float(found)


def _true_or_false(source: str, key: str, found: object) -> bool:
    """A switch, off where there is none."""
    if found is not None and not isinstance(found, bool):
        raise UserError(f"{source}: {key} must be true or false, found {quoted(found)}")
    return bool(found)


def differing(one: BiLMOptions, other: BiLMOptions) -> tuple[str, str]:
    """The sizes in which two biLMs differ, as text: those of the one, then those of the other."""
    names = [field.name for field in fields(one) if getattr(one, field.name) != getattr(other, field.name)]
    in_words = [", ".join(f"{name}={getattr(each, name)}" for name in names) for each in (one, other)]
    return in_words[0], in_words[1]
