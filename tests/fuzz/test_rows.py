"""Rows that were changed by hand are left out with one sentence each, or are read; the others' report stays."""

import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest

from elmo_tasks.errors import MAX_SENTENCE
from elmo_tasks.render.output import csv_text, markdown_document
from elmo_tasks.render.page import page
from elmo_tasks.report import sections
from elmo_tasks.rows.collection import Rows, read_rows
from elmo_tasks.rows.schema import Row

from .rows import LETTERS, WHOLE, changed_row, read_changed, write


def rendered(rows: Rows) -> str:
    """All that a report shows."""
    found = sections(rows)
    return "\n".join([markdown_document(found), csv_text(rows), page(found, rows)])


def attack(folder: Path, seeds: range) -> tuple[int, int]:
    """Write changed rows beside whole ones; how many are left out, and how many are read."""
    for row in WHOLE:
        write(folder / "good", json.dumps(row).encode(), row["run_id"])
    good = read_rows([folder / "good"])
    assert not good.left_out
    expected = rendered(good)
    refused, accepted = 0, []
    for seed in seeds:
        if (one := read_changed(folder / "one", seed)) is None:
            write(folder / "refused", changed_row(seed)[1], f"{seed}")
            refused += 1
        else:
            accepted.append(replace(one, run_id=f"{one.run_id}-{seed}"))
    both = read_rows([folder / "good", folder / "refused"])
    assert len(both.left_out) == refused
    assert rendered(replace(both, folders=good.folders, left_out=[])) == expected
    finished = [row for row in accepted if isinstance(row, Row)]
    failed = [row for row in accepted if not isinstance(row, Row)]
    text = rendered(Rows((folder,), [*good.finished, *finished], [*good.failed, *failed], []))
    assert "<script>alert" not in text[text.index("<html") :]
    return refused, len(accepted)


def test_changed_rows_are_left_out_or_read(tmp_path: Path) -> None:
    refused, read = attack(tmp_path, range(600))
    assert refused + read == 600
    assert min(refused, read) > 50


@pytest.mark.slow
def test_many_changed_rows_are_left_out_or_read(tmp_path: Path) -> None:
    read = [read_changed(tmp_path, seed) is not None for seed in range(1_000, 10_000)]
    assert min(read.count(True), read.count(False)) > 1_000


BY_HAND = {
    "a biLM without a name": (("config", "bilm", "name"), None),
    "a biLM of the name null": (("config", "bilm", "name"), "null"),
    "a file elsewhere": (("config", "bilm", "name"), "../../elsewhere/bilm"),
    "data without a name": (("config", "data"), {"name": None}),
    "a lambda that is no number of a computer": (("config", "elmo", "lambda"), 10**400),
    "no training items": (("data", "items"), {"dev": {"original": 5, "used": 5}}),
    "no item at all": (("data", "items", "train"), {"original": 0, "used": 0}),
    "a weight that JSON cannot write": (("elmo", "weights", "input", "gamma"), 1e999),
    "a score whose mean is infinite": (("seconds", "fit"), 1e308),
    "a task of 5,000 letters": (("task",), LETTERS),
    "a biLM of 5,000 letters": (("config", "bilm", "name"), LETTERS),
    "a task that is a reference": (("task",), "${oc.env:HOME}"),
    "a task that is a sweep": (("task",), "ner,sst5"),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_row_changed_by_hand_stops_no_report(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    from elmo_tasks.report import main

    row, other = copy.deepcopy(WHOLE[0]), WHOLE[3]
    *path, key = BY_HAND[name][0]
    node = row
    for part in path:
        node = node[part]
    node[key] = BY_HAND[name][1]
    bad = write(tmp_path / "rows", json.dumps(row).encode(), row["run_id"])
    write(tmp_path / "rows", json.dumps(other).encode(), other["run_id"])
    main([str(tmp_path / "rows")])
    printed = capsys.readouterr()
    assert other["slug"] in printed.out or other["task"] in printed.out
    for line in printed.err.splitlines():
        assert line.startswith(f"left out: {bad}: ")
        assert len(line) - len(str(bad)) <= MAX_SENTENCE


def test_a_row_composes_no_file_but_those_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration beside the rows would be code of theirs: it can name classes and ask for resolvers."""
    from elmo_tasks.rows.io import from_json
    from elmo_tasks.tables import wanted

    asked = []
    monkeypatch.setattr(wanted, "compose_wanted", lambda overrides: asked.append(overrides))
    for name in ("../x", "/x", "null", "a,b", "${x}", "mini@elmo", "x" * 300, "", "."):
        row = copy.deepcopy(WHOLE[0])
        row["config"]["bilm"]["name"] = name
        wanted.defaults(from_json(row, "row"))
    assert not [text for overrides in asked for text in overrides if text.startswith("bilm=")]


def test_rows_of_one_bilm_whose_mixes_have_other_layers_are_left_out(tmp_path: Path) -> None:
    """A mean over layers that do not correspond would be one of nothing."""
    for seed in (1, 2, 3):
        row = copy.deepcopy(WHOLE[0])
        row["run_id"], row["seed"], row["config"]["seed"] = f"snli-s{seed}", seed, seed
        if seed == 2:
            row["elmo"]["weights"]["input"]["s"] = [0.1, 0.2, 0.3, 0.4]
        write(tmp_path, json.dumps(row).encode(), row["run_id"])
    rows = read_rows([tmp_path])
    assert [row.seed for row in rows.finished] == [1, 3]
    assert rows.left_out == [
        f"{tmp_path / 'snli-s2.json'}: its mix has 4 layers; with the same biLM other rows have 3",
    ]
    assert "Left out" in rendered(rows) or "left out" in rendered(rows)
