import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from elmo_tasks.render.run_table import csv_text
from elmo_tasks.report import main
from elmo_tasks.rows.collection import Rows
from elmo_tasks.rows.io import to_json
from elmo_tasks.rows.schema import FailedRow, Row

MakeRow = Callable[..., Row]

ODD = 'one, "two"\nthree'


def lines(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines(keepends=True)))


def at(row: dict[str, Any], name: str) -> Any:
    """The value of a dotted name."""
    for key in name.split("."):
        row = row.get(key, {}) if isinstance(row, dict) else {}
    return row


def test_each_run_is_a_line_with_its_main_scores_first(make_row: MakeRow, tmp_path: Path) -> None:
    finished = [make_row(1, 80.0, test=79.5), make_row(2, [69.0, 70.0], placement="none")]
    header = {key: getattr(finished[0], key) for key in ("task", "slug", "scale", "created", "commit", "dirty")}
    failed = FailedRow(
        **header, versions={}, run_id="a", kind="supervised", seed=3, bilm=None, config={"x": {"y": ODD}}, error=ODD
    )
    text = csv_text(Rows((), finished, [failed], []))
    assert text.startswith("run_id,status,dev,test,")
    found = lines(text)
    main_cells = [[line[key] for key in ("run_id", "status", "dev", "test", "error")] for line in found]
    assert main_cells == [
        ["a", "failed", "", "", ODD],
        ["ner-input-l0.1-u1000-s1", "finished", "80.0", "79.5", ""],
        ["ner-none-l0.1-u1000-s2", "finished", "70.0", "", ""],
    ]
    assert [line["config.x.y"] for line in found] == [ODD, "", ""]
    columns = text.partition("\n")[0].split(",")
    of_configuration = [name.startswith("config.") for name in columns]
    assert of_configuration == sorted(of_configuration)
    assert len(set(columns)) == len(columns)


def test_every_cell_is_the_field_of_its_name(make_row: MakeRow) -> None:
    row = make_row(1, [80.0, 81.0])
    (line,) = lines(csv_text(Rows((), [row], [], [])))
    content = to_json(row)
    for name, cell in line.items():
        if name in ("dev", "test"):
            continue
        value = at(content, name)
        assert cell == (json.dumps(value) if isinstance(value, list) else str(value)), name
    assert line["elmo.weights.input.s"] == "[0.5, 0.25, 0.25]"
    assert line["config.elmo.lambda"] == "0.1"
    assert not any("curve" in name or name.startswith("files") for name in line)


def test_a_report_writes_the_runs(
    make_row: MakeRow, write_rows: Callable[..., Path], collect: Callable[..., Rows], tmp_path: Path, capsys: Any
) -> None:
    row = make_row(1, 80.0)
    path = tmp_path / "new" / "runs.csv"
    main([str(write_rows(row)), "--csv", str(path)])
    assert path.read_text("utf-8") == csv_text(collect(row))
    assert capsys.readouterr().out == f"{path}\n"
