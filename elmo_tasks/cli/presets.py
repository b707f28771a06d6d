"""Presets that are sweeps, such as ``experiment=lambdas``: Hydra forgets their values in a sweep over presets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hydra import compose, initialize_config_dir
from hydra._internal.utils import get_args_parser
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Glob, Override
from hydra.errors import HydraException

from elmo_tasks.errors import UserError
from elmo_tasks.places import CONF

_GROUP = "experiment"


def check(arguments: Sequence[str]) -> None:
    """Check that a sweep over presets has none that is itself a sweep.

    Args:
        arguments: of the command line.

    Raises:
        UserError: naming the first such preset.
    """
    given, others = get_args_parser().parse_known_args(list(arguments))
    texts = [*given.overrides, *others]
    try:
        overrides = [OverridesParser.create().parse_override(text) for text in texts if _GROUP in text]
    except HydraException:
        return  # Hydra says what is wrong
    for override in overrides:
        for name in _swept(override, given.config_dir):
            keys = _keys(name, given.config_dir, texts)
            if keys:
                raise UserError(
                    f"{override.input_line}: {name} is itself a sweep over {', '.join(keys)}, which Hydra "
                    f"forgets among several presets; make one sweep for each, such as elmo-tasks sweep {_GROUP}={name}"
                )


def _swept(override: Override, config_dir: str | None) -> list[str]:
    """The presets of a sweep over presets."""
    value = override.value()
    if override.key_or_group != _GROUP:
        return []
    if isinstance(value, Glob):
        folders = [CONF, *(() if config_dir is None else (Path(config_dir),))]
        return value.filter(sorted(path.stem for folder in folders for path in (folder / _GROUP).glob("*.yaml")))
    if not isinstance(value, ChoiceSweep):
        return []
    return [str(getattr(each, "text", each)) for each in value.list if each is not None]


def _keys(name: str, config_dir: str | None, texts: Sequence[str]) -> list[str]:
    """The keys that a preset sweeps over; none if there is no such preset."""
    from elmo_tasks.config.compose import search_path  # what it imports takes time: not for --help

    own = [text for text in texts if text.startswith("hydra.searchpath=")]
    own += [] if config_dir is None else [search_path(Path(config_dir))]
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            cfg = compose("config", [f"{_GROUP}={name}", *own], return_hydra_config=True)
    except HydraException:
        return []
    return [str(key) for key in cfg.hydra.sweeper.get("params") or {}]
