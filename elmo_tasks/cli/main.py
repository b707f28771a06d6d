"""``elmo-tasks COMMAND ...``: each command is imported only when it is asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from elmo_tasks import __version__
from elmo_tasks.command_line import Command, run_command
from elmo_tasks.errors import UserError
from elmo_tasks.places import EXPERIMENTS, HOME, PACKAGE


def run(arguments: list[str]) -> int:
    """One experiment: train a model, score it, write its row."""
    from elmo_tasks.cli.run import run_hydra

    return run_hydra(arguments)


def sweep(arguments: list[str]) -> int:
    """All combinations of comma-separated values, then a table of them."""
    from elmo_tasks.cli.run import run_hydra

    return run_hydra(["-m", *arguments])


def table(arguments: list[str]) -> int | None:
    """A table, a figure or the claims of the paper: what the rows say, what is missing, or run it."""
    declarations = _declarations()
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: elmo-tasks table NAME [--missing | --run] [KEY=VALUE ...]\n\nNAME is one of:")
        print("\n".join(f"  {name:<10} {title}" for name, title in declarations.items()))
        print("\nelmo-tasks table NAME --help tells the options.")
        return 0
    name, *rest = arguments
    if name not in declarations:
        raise UserError(f"elmo-tasks table: unknown {name!r}; expected one of {', '.join(declarations)}")
    package = "experiments" if EXPERIMENTS.parent != PACKAGE else "elmo_tasks.experiments"
    if str(HOME) not in sys.path and package == "experiments":
        sys.path.insert(0, str(HOME))
    command: Command = importlib.import_module(f"{package}.{name}").main
    return command(rest)


def report(arguments: list[str]) -> None:
    """Tables, figures and a page of everything that a folder of rows holds."""
    from elmo_tasks.report import main as report_rows

    report_rows(arguments)


def store(arguments: list[str]) -> None:
    """The layer store: its size and kinds, removing what is unused, verifying checksums."""
    from elmo_tasks.store.__main__ import main as manage_store

    manage_store(arguments)


def predict(arguments: list[str]) -> None:
    """Predictions of a finished run for new text."""
    from elmo_tasks.predict.command import predict as predict_lines

    predict_lines(arguments)


def evaluate(arguments: list[str]) -> None:
    """Scores of a finished run on another file."""
    from elmo_tasks.predict.command import evaluate as evaluate_file

    evaluate_file(arguments)


def pretrain(arguments: list[str]) -> None:
    """A biLM's text as a pack; training on it, also without Hydra; perplexities."""
    from elmo_tasks.pretrain.__main__ import main as train_bilm

    train_bilm(arguments)


COMMANDS: dict[str, Command] = {
    command.__name__: command for command in (run, sweep, table, report, predict, evaluate, store, pretrain)
}


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script."""
    run_command(_choose, arguments)


def _choose(arguments: list[str]) -> int | None:
    name, *rest = arguments or ["--help"]
    if name in ("-h", "--help"):
        print(_usage())
    elif name == "--version":
        print(f"elmo-tasks {__version__}")
    elif name not in COMMANDS:
        raise UserError(f"elmo-tasks: unknown command {name!r}; expected one of {', '.join(COMMANDS)}")
    else:
        return COMMANDS[name](rest)
    return 0


def _usage() -> str:
    lines = [f"  {name:<9} {(command.__doc__ or '').strip()}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: elmo-tasks COMMAND ...",
            "",
            "Downstream-task experiments for ELMo: train and score task models with and without a frozen biLM.",
            "",
            *lines,
            "",
            "elmo-tasks COMMAND --help tells more; elmo-tasks run --help explains every key of the configuration.",
        ]
    )


def _declarations() -> dict[str, str]:
    """Name and first line of each file of ``experiments``."""
    found = {}
    for path in sorted(EXPERIMENTS.glob("*.py")):
        first = path.read_text("utf-8").partition("\n")[0]
        if path.stem != "__init__":
            found[path.stem] = first.strip('"').partition(". ")[0]
    return found
