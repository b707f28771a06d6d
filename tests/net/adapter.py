"""The only imports of the package. When an entry moves, it is followed here, and nowhere else.

The process that imports this has the checkout's folder first on its path.
"""

import importlib
from pathlib import Path

MODULES = {
    "bilm": "elmo_tasks.bilm.__main__",
    "neighbours": "elmo_tasks.probes.neighbours",
    "pretraining": "elmo_tasks.pretrain.__main__",
}
"""Commands that are modules of their own, ``python -m MODULE``."""


def preload() -> None:
    """Import what most commands import late, once for all of them."""
    for name in ("predict.predictor", "runs.run", "runs.supervised", "tables", "cli.main", "cli.run"):
        importlib.import_module(f"elmo_tasks.{name}")
    for name in (*MODULES.values(), "seqeval.metrics", "scipy.optimize"):
        importlib.import_module(name)
    run_id(["task=ner", "elmo.placement=none", "words=random"])  # Hydra looks for its plugins once


def run(arguments: list[str]) -> None:
    """``elmo-tasks ARGUMENTS``, within this process."""
    from elmo_tasks.cli.main import main
    from elmo_tasks.command_line import run_command

    if arguments and arguments[0] in MODULES:
        run_command(importlib.import_module(MODULES[arguments[0]]).main, arguments[1:])
    else:
        main(arguments)


def run_id(overrides: list[str]) -> str:
    """The name of the run that ``elmo-tasks run OVERRIDES`` would make; nothing is trained."""
    from elmo_tasks.cli import direction  # noqa: F401  (a resolver of the configuration)
    from elmo_tasks.config.compose import compose
    from elmo_tasks.runs.interface import build_run

    return str(build_run(compose(overrides).to_json()).run_id)


def row_ids(folder: list[str]) -> dict[str, str]:
    """The name that each stored row's configuration and digests give, by the row's file."""
    from elmo_tasks.config.identity import RunDigests, run_id, short_digest, slug
    from elmo_tasks.rows.io import read_row
    from elmo_tasks.rows.schema import Row

    found = {}
    for path in sorted(Path(folder[0]).glob("*.json")):
        row = read_row(path)
        assert isinstance(row, Row)
        members = getattr(getattr(row, "ensemble", None), "members", ())
        if members:
            digest = short_digest({"members": [[each.run_id, each.weights] for each in members]})
            found[path.stem] = f"{row.task}-{slug(row.config, row.kind)}-e{len(members)}-{digest}"
            continue
        initial = getattr(getattr(row, "language_model", None), "initial", None)
        start = None if initial is None else initial.digest
        inputs = RunDigests(row.data.digest, bilm=row.bilm, words=row.data.word_vectors, initial=start)
        found[path.stem] = run_id(row.config, row.kind, inputs)
    return found


def folders() -> dict[str, str]:
    """Where the bundled sample, the bundled biLMs and the committed rows are."""
    from elmo_tasks.places import BUNDLED, EXPERIMENTS, SAMPLE

    return {"sample": str(SAMPLE), "bilms": str(BUNDLED / "bilm"), "rows": str(EXPERIMENTS / "rows")}
