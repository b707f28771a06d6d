import re
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.errors import UserError
from elmo_tasks.render.grid import Grid
from elmo_tasks.render.page import page
from elmo_tasks.render.sections import Section, latex_files
from elmo_tasks.render.series import Curve, LayerWeights, Panel, Point
from elmo_tasks.rows.collection import Rows, read_rows

COMMITTED = Path(__file__).parents[2] / "experiments" / "rows"
GRID = Grid("Table 3: places <b>", ["", "input"], [["SQuAD", "85.1 & more"]], ["a note"])


def test_the_page_has_the_tables_and_each_run_once(tmp_path: Path) -> None:
    found = page([Section(GRID)], read_rows([COMMITTED, tmp_path / "empty", COMMITTED]))
    names = [path.stem for path in COMMITTED.glob("*.json")]
    assert f"{len(names)} finished runs, 0 failed, 0 left out." in found
    assert "<h2>Table 3: places &lt;b&gt;</h2>" in found
    assert "85.1 &amp; more" in found
    assert found.count("a note") == 1


def test_figures_stand_above_their_tables_each_with_ids_of_its_own() -> None:
    points = [Point(1, 50.0, 0.0, 1), Point(2, 61.5, 1.0, 3)]
    epochs = Section(Grid("Epochs"), (Panel("SNLI", "accuracy", [Curve("ELMo", "both", points)]),), "epoch")
    weights = Section(Grid("Weights"), mixes=(LayerWeights("SNLI", "input", [0.1, 0.7, 0.2], 1.5, 3),))
    found = page([epochs, Section(GRID), weights, epochs], Rows((), [], [], []))
    sections = found.split("<section ")[1:]
    assert ["<svg" in section for section in sections] == [True, False, True, True, False]
    assert "0.700" in sections[2]
    ids = re.findall(r' id="([^"]+)"', found)
    assert len(ids) == len(set(ids))


def test_latex_files_are_named_after_their_tables_and_none_is_lost() -> None:
    other = Grid("Figure 1: epochs", ["x"], [["1"]])
    grids = [GRID, other, Grid("Figure 1: shares", ["x"], [["2"]]), Grid("The claims", ["x"], [["3"]]), Grid("Empty")]
    files = {name: content.decode() for name, content in latex_files([*map(Section, grids)]).items()}
    assert list(files) == ["table-3.tex", "figure-1.tex", "figure-1-2.tex", "the-claims.tex"]
    assert "85.1 \\& more" in files["table-3.tex"]
    assert "Epochs" in files["figure-1.tex"]
    assert "Shares" in files["figure-1-2.tex"]


def test_tables_are_put_between_the_markers_of_a_document(tmp_path: Path) -> None:
    from elmo_tasks.tables.command import execute, read_request
    from experiments.table6 import TABLE

    document = tmp_path / "a.md"
    document.write_text("before\n<!-- tables: begin -->old<!-- tables: end -->\nafter\n")
    request = read_request([f"rows={COMMITTED}", "--into", str(document)])
    assert execute((TABLE,), request) == 0
    text = document.read_text("utf-8")
    assert text.startswith("before\n<!-- tables: begin -->\n\n**Table 6")
    assert text.endswith("<!-- tables: end -->\nafter\n")
    assert "old" not in text
    document.write_text("no markers")
    with pytest.raises(UserError, match="tables: begin"):
        execute((TABLE,), request)
    assert document.read_text() == "no markers"


def test_files_are_written_in_place_of_markdown(tmp_path: Path, write: Any, capsys: Any) -> None:
    from elmo_tasks.tables.command import execute, read_request
    from experiments.table6 import TABLE

    for seed, score in ((1, 96.25), (2, 97.0)):
        write("task=pos", "elmo.mix=layer_1", seed=seed, test=score)
    html, folder = tmp_path / "page.html", tmp_path / "tex"
    request = read_request([f"rows={tmp_path / 'rows'}", "--html", str(html), "--latex", str(folder)])
    assert execute((TABLE,), request) == 0
    assert capsys.readouterr().out.splitlines() == [str(html), str(folder / "table-6.tex")]
    assert "96.62\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.53" in html.read_text("utf-8")
    assert r"96.62 $\pm$ 0.53" in (folder / "table-6.tex").read_text("utf-8")


@pytest.fixture
def ner(tmp_path: Path, write: Any) -> str:
    """Rows of NER in full and with a tenth, with and without ELMo."""
    for share in ("1.0", "0.1"):
        for placement in ("none", "input"):
            more = ("task=ner", f"data.fraction={share}", f"elmo.placement={placement}")
            for seed in (1, 2):
                write(*more, seed=seed, curve=[50.0 + seed, 60.0 + seed])
    return f"rows={tmp_path / 'rows'}"


def test_figures_are_written_by_the_name_of_their_table(tmp_path: Path, ner: str, capsys: Any) -> None:
    from elmo_tasks.tables.command import execute, read_request
    from experiments import figure1, figure2

    request = read_request([ner, "tasks=ner", "--figures", str(tmp_path)])
    assert execute((figure1.SHARE, figure1.EPOCHS, figure2.FIGURE), request) == 0
    names = [f"{name}.{suffix}" for name in ("figure-1", "figure-1-2", "figure-2") for suffix in ("svg", "png")]
    assert capsys.readouterr().out.splitlines() == [str(tmp_path / name) for name in names]
    assert "share of training items" in (tmp_path / "figure-1.svg").read_text("utf-8")
    assert "0.700" in (tmp_path / "figure-2.svg").read_text("utf-8")
    assert (tmp_path / "figure-1-2.png").read_bytes().startswith(b"\x89PNG")


def test_where_there_is_no_figure_none_is_promised(tmp_path: Path) -> None:
    from elmo_tasks.tables.command import execute, read_request
    from experiments.table6 import TABLE

    request = read_request([f"rows={COMMITTED}", "--figures", str(tmp_path / "f"), "--latex", str(tmp_path / "l")])
    with pytest.raises(UserError, match=r"^--figures: Table 6: .*: no figure is declared, or there is no row to draw$"):
        execute((TABLE,), request)
    assert list(tmp_path.iterdir()) == []


def test_everything_goes_to_wandb_as_one_artifact_named_after_the_declaration(
    ner: str, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from elmo_tasks.render import output
    from elmo_tasks.tables import command
    from experiments.figure2 import FIGURE

    logged: dict[str, Any] = {}

    def log_files(files: dict[str, bytes], project: str, *, name: str, n_runs: int) -> str:
        logged.update(files=files, project=project, name=name, n_runs=n_runs)
        return "logged"

    monkeypatch.setattr(output, "log_files", log_files)
    request = command.read_request([ner, "tasks=ner", "--wandb", "p"], "figure2")
    assert command.execute((FIGURE,), request) == 0
    assert capsys.readouterr().out == "logged\n"
    assert (logged["project"], logged["name"], logged["n_runs"]) == ("p", "figure2", 8)
    drawn = {"figure-2.svg", "figure-2.png"}
    assert set(logged["files"]) == {"tables.md", "report.html", "runs.csv", "figure-2.tex", *drawn}
    assert b"**Figure 2" in logged["files"]["tables.md"]
    assert b"<svg" in logged["files"]["report.html"]


def test_a_page_that_cannot_be_written_names_the_option_for_another_place(tmp_path: Path) -> None:
    from elmo_tasks.tables.command import execute, read_request
    from experiments.table6 import TABLE

    (tmp_path / "file").write_text("")
    request = read_request([f"rows={COMMITTED}", "--html", str(tmp_path / "file" / "x.html")])
    with pytest.raises(UserError, match=r"cannot be written .*; name another place$"):
        execute((TABLE,), request)
