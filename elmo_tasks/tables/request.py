"""The command line of a table."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from elmo_tasks.configuration.overrides import with_quoted_paths
from elmo_tasks.errors import UserError
from elmo_tasks.places import CONF, EXPERIMENTS
from elmo_tasks.render.output import add_options, asks_for_files
from elmo_tasks.tables.declared_keys import key_of_override
from elmo_tasks.tables.measure import Choice
from elmo_tasks.tables.settings import check_launcher, override, search_path, setting

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
        missing: print the commands of the missing runs.
        run: run them.
        at_a_time: how many processes run at the same time.
        output: the options of :func:`elmo_tasks.render.output.add_options`.
    """

    name: str
    choice: Choice
    folders: tuple[Path, ...]
    extra: tuple[str, ...]
    launcher: tuple[str, ...]
    missing: bool
    run: bool
    at_a_time: int
    output: argparse.Namespace


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
    read = parser.parse_intermixed_args(arguments)
    if read.j < 1:
        raise UserError(f"-j must be a whole number of at least 1, found {read.j}")
    if read.missing and asks_for_files(read):
        raise UserError("--missing prints commands and writes no table; leave out the options that write files")
    return _request(read, name)


def _refuse_twice(overrides: list[str]) -> None:
    given: dict[str, str] = {}
    for text in overrides:
        other = given.setdefault(key_of_override(text), text)
        if other is not text:
            raise UserError(f"{other} and {text}: {key_of_override(text)} is set twice")


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


def _request(read: argparse.Namespace, name: str) -> Request:
    own = read.config_dir
    if own is not None and not own.is_dir():
        raise UserError(f"--config-dir={own}: no such folder")
    words = _sort_words([*([] if own is None else [search_path(own)]), *with_quoted_paths(read.overrides)])
    if words.launcher:
        check_launcher(words.launcher)
    choice = Choice(words.overrides, _seeds(words.own.get("seeds")), _tasks(words.own.get("tasks"), own))
    config = setting(words.overrides).config
    folders = _folders(words.own.get("rows"), Path(config["results"]["dir"]))
    if "rows" in words.own and not (read.run or read.missing):
        _refuse_missing(folders)
    return Request(
        name=name,
        choice=choice,
        folders=folders,
        extra=_extra(words.overrides, config, folders[-1], name),
        launcher=words.launcher,
        missing=read.missing,
        run=read.run,
        at_a_time=read.j,
        output=read,
    )


def _sort_words(texts: Sequence[str]) -> _Words:
    own: dict[str, str] = {}
    overrides: list[str] = []
    launcher: list[str] = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"{text}: expected KEY=VALUE; see --help")
        if (name := key_of_override(text)) in ("seed", "test", "ensemble", "force", "results.dir", "task"):
            raise UserError(f"{text}: a table sets {name} itself; see --help for seeds=, rows= and tasks=")
        if key in ("rows", "seeds", "tasks"):
            if key in own:
                raise UserError(f"{key}={own[key]} and {text}: {key} is set twice")
            own[key] = value
        elif key.startswith(("hydra/", "hydra.")) and key != "hydra.searchpath":
            launcher.append(text)
        else:
            overrides.append(f"data.fraction={value}" if key == "fraction" else text)
    _refuse_twice(overrides)
    if not any(text.startswith("data=") for text in overrides):
        overrides.insert(0, "data=local")
    return _Words(own, tuple(overrides), tuple(launcher))


def _seeds(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isdecimal() and int(text) > 0):
        raise UserError(f"seeds must be a whole number of at least 1, found {text}")
    return int(text)


def _folders(text: str | None, written: Path) -> tuple[Path, ...]:
    """The folders that ``rows=`` names; else the committed rows and the configuration's ``results.dir``."""
    return (COMMITTED, written) if text is None else tuple(map(Path, text.split(",")))


def _refuse_missing(folders: Sequence[Path]) -> None:
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"rows={folder}: no such folder")


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
