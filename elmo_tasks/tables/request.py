"""The command line of a table."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from elmo_tasks.config.compose import search_path
from elmo_tasks.config.overrides import with_quoted_paths
from elmo_tasks.errors import UserError
from elmo_tasks.places import CONF, EXPERIMENTS
from elmo_tasks.render.output import add_options, asks_for_files
from elmo_tasks.tables.collect import Choice
from elmo_tasks.tables.declared_keys import key_of_override
from elmo_tasks.tables.wanted import check_launcher, compose_wanted, override

COMMITTED = EXPERIMENTS / "rows"

_EPILOG = """
overrides are those of run.py and hold for all cells (scale=paper bilm=original bilm.path=DIR data=sample ...);
data=local unless another one is given. Besides them:
  rows=A,B       folders of rows that are read; new ones are written into the last
                 (experiments/rows and the configuration's results.dir)
  seeds=N        the seeds 1 to N instead of the declared number
  tasks=A,B      these tasks' lines only
  fraction=X     data.fraction=X
  hydra/launcher=NAME hydra.launcher.KEY=VALUE   with --run: the seeds of a setting as one sweep through this launcher
"""


@dataclass(frozen=True)
class Request:
    """A parsed command line.

    Args:
        name: of the declaration's file.
        choice: what holds for all cells.
        folders: of rows; new ones are written into the last.
        extra: overrides for all runs that change no score.
        launcher: overrides of Hydra's own, such as ``hydra/launcher=submitit_slurm``.
        given: the options: ``missing`` prints the commands of the missing runs, ``run`` runs them, ``j`` at a time, and
            those of :func:`elmo_tasks.render.output.add_options` write files.
    """

    name: str
    choice: Choice
    folders: tuple[Path, ...]
    extra: tuple[str, ...]
    launcher: tuple[str, ...]
    given: argparse.Namespace


def read_request(arguments: list[str], name: str = "tables") -> Request:
    """Parse a command line.

    Args:
        arguments: what follows ``elmo-tasks table NAME``.
        name: of the declaration's file.

    Raises:
        UserError: for a word that is no override, for a key that every table sets, and for one that is set twice.
    """
    parser = argparse.ArgumentParser(
        prog=f"elmo-tasks table {name}", epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.error = _refuse  # type: ignore[method-assign]
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--missing", action="store_true", help="print the commands that are still to be run")
    add_options(parser)
    what.add_argument("--run", action="store_true", help="run them; run again, it does what is left")
    parser.add_argument(
        "-j",
        type=int,
        default=1,
        metavar="N",
        help="with --run: processes at a time; with a launcher, settings at a time",
    )
    parser.add_argument("--config-dir", type=Path, metavar="DIR", help="a folder of configurations of your own")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    given = parser.parse_intermixed_args(arguments)
    if given.j < 1:
        raise UserError(f"-j must be a whole number of at least 1, found {given.j}")
    if given.missing and asks_for_files(given):
        raise UserError("--missing prints commands and writes no table; leave out the options that write files")
    own = given.config_dir
    if own is not None and not own.is_dir():
        raise UserError(f"--config-dir={own}: no such folder")
    words = _sort_words([*([] if own is None else [search_path(own)]), *with_quoted_paths(given.overrides)])
    if words.launcher:
        check_launcher(words.launcher)
    choice = Choice(words.overrides, _seeds(words.own.get("seeds")), _tasks(words.own.get("tasks"), own))
    config = compose_wanted(words.overrides).config
    folders: tuple[Path, ...] = (COMMITTED, Path(config["results"]["dir"]))
    if (named := words.own.get("rows")) is not None:
        folders = tuple(map(Path, named.split(",")))
        for folder in folders:
            if not (folder.is_dir() or given.run or given.missing):
                raise UserError(f"rows={folder}: no such folder")
    extra = _extra(words.overrides, config, folders[-1], name)
    return Request(name, choice, folders, extra, words.launcher, given)


@dataclass(frozen=True)
class _Words:
    """The words of a command line, sorted by what they set.

    Args:
        own: a table's own keys: ``rows``, ``seeds``, ``tasks``.
        overrides: of the configuration.
        launcher: of Hydra's own configuration.
    """

    own: dict[str, str]
    overrides: tuple[str, ...]
    launcher: tuple[str, ...]


def _sort_words(texts: Sequence[str]) -> _Words:
    own, launcher = dict[str, str](), list[str]()
    overrides: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"{text}: expected KEY=VALUE; see --help")
        if (name := key_of_override(text)) in ("seed", "test", "ensemble", "force", "results.dir", "task"):
            raise UserError(f"{text}: a table sets {name} itself; see --help for seeds=, rows= and tasks=")
        if key.startswith(("hydra/", "hydra.")) and key != "hydra.searchpath":
            launcher.append(text)
            continue
        if key == "fraction":
            name, text = "data.fraction", f"data.fraction={value}"
        if key in own or name in overrides:
            before = f"{key}={own[key]}" if key in own else overrides[name]
            raise UserError(f"{before} and {text}: {name} is set twice")
        if key in ("rows", "seeds", "tasks"):
            own[key] = value
        else:
            overrides[name] = text
    default = [] if any(text.startswith("data=") for text in overrides.values()) else ["data=local"]
    return _Words(own, (*default, *overrides.values()), tuple(launcher))


def _seeds(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isdecimal() and int(text) > 0):
        raise UserError(f"seeds must be a whole number of at least 1, found {text}")
    return int(text)


def _extra(overrides: tuple[str, ...], config: dict[str, Any], last: Path, name: str) -> tuple[str, ...]:
    """What all runs get beside their settings: where their rows go, and a tag by which W&B can show a table's runs."""
    extra = [] if last == Path(config["results"]["dir"]) else [override("results.dir", str(last))]
    if config["logger"]["name"] == "wandb" and not any(text.startswith("logger.tags=") for text in overrides):
        extra.append(f"logger.tags=[{name}]")
    return tuple(extra)


def _tasks(text: str | None, own: Path | None) -> frozenset[str]:
    if text is None:
        return frozenset()
    known = {path.stem for folder in (CONF, own) if folder for path in (folder / "task").glob("*.yaml")}
    for name in text.split(","):
        if name not in known:
            raise UserError(f"tasks={text}: unknown task {name!r}; expected one of {', '.join(sorted(known))}")
    return frozenset(text.split(","))


def _refuse(message: str) -> NoReturn:
    raise UserError(f"{message}; see --help")
