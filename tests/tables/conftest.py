"""Rows as a run would write them, without the run."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bundled import mini
from rows_by_hand import bilm, ensemble, finished, language_model, row_json
from rows_by_hand import digest as hex_digits

from elmo_tasks.rows.settings import moment
from elmo_tasks.tables.wanted import compose_wanted

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """``write("task=snli", ..., seed=1, dev=60.0)`` writes a row into tmp_path / "rows".

    ``curve`` gives the dev scores of an epoch each; ``members`` makes it an ensemble, ``tuned`` a training of a biLM
    (before, after, folder, digest); other fields by name, and parts of a mapping as a mapping.
    """
    folder = tmp_path / "rows"
    folder.mkdir()

    def write_row(
        *overrides: str,
        seed: int = 1,
        dev: float = 50.0,
        test: float | None = None,
        curve: list[float] | None = None,
        members: dict[int, str] | None = None,
        tuned: tuple[float, float, str, str] | None = None,
        **other: Any,
    ) -> Path:
        config = copy.deepcopy(compose_wanted(("data=local", *overrides)).config)
        config["seed"] = seed
        n = len(list(folder.iterdir()))
        name = f"{config['task']['name']}-{n}-s{seed}"
        row = row_json(config, run_id=name, seed=seed, dev=curve or dev, test=test)
        row |= {"scale": config["scale"]["name"], "created": f"2026-01-01T00:00:{n:02d}+00:00"}
        if row["bilm"] is not None:
            row["bilm"] = bilm(mini())
        if members is not None:
            row = ensemble(row, [*members], [*members.values()])
        if tuned is not None:
            before, after, path, digest = tuned
            row = language_model(row, before=before, after=after, folder=path, exported=digest)
        for key, value in other.items():
            if isinstance(value, dict) and "digest" in value:
                value = value | {"digest": hex_digits(value["digest"])}
            row[key] = row[key] | value if isinstance(value, dict) and isinstance(row[key], dict) else value
        path = folder / f"{row['run_id']}.json"
        path.write_text(json.dumps(row))
        assert moment(finished(row))  # a row that a run could have written
        return path

    return write_row
