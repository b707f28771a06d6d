"""Command lines as people write them: paths that Hydra's grammar does not know."""

from __future__ import annotations

from collections.abc import Iterable

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from elmo_tasks.places import expand_home

_PATHS = ("root", "outputs", "dir", "path", "text", "init", "train", "dev", "test", "files")
"""Last parts of the keys whose values are paths."""


def with_quoted_paths(overrides: Iterable[str]) -> list[str]:
    """Overrides in which each path that Hydra could not read is in quotes, and ``~`` is the home folder.

    Hydra's grammar takes ``=``, parentheses and most letters beyond ASCII for something else. Commas separate the
    values of a sweep. What begins with a quote, or is no path, stays as it is.
    """
    return [_with_quoted_path(text) for text in overrides]


def _with_quoted_path(text: str) -> str:
    key, equals, value = text.partition("=")
    if not equals or key.rpartition(".")[2] not in _PATHS:
        return text
    return f"{key}={','.join(_quoted(key, expand_home(path)) for path in value.split(','))}"


def _quoted(key: str, path: str) -> str:
    try:
        OverridesParser.create().parse_override(f"{key}={path}")
    except HydraException:
        return path if path[:1] in ("'", '"') else '"' + path.replace('"', r"\"") + '"'
    return path
