import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from elmo_tasks.errors import UserError
from elmo_tasks.render.sections import markdown_document
from elmo_tasks.report import main, read_report, sections
from elmo_tasks.rows.collection import read_rows
from elmo_tasks.rows.schema import Row

pytest.importorskip("matplotlib")

MakeRow = Callable[..., Row]
WriteRows = Callable[..., Path]

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def render(folder: Path) -> str:
    return markdown_document(sections(read_rows([folder])))


def report(*arguments: str | Path) -> None:
    """``report("rows", "--html", "x.html")``: the command line in this process."""
    main([*map(str, arguments)])


def test_tables_are_printed(make_row: MakeRow, write_rows: WriteRows, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_rows(make_row(1, 80.0))
    report(folder)
    assert capsys.readouterr() == (f"{render(folder)}\n", "")


def test_a_document_is_renewed_and_nothing_is_printed(
    make_row: MakeRow, write_rows: WriteRows, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, document = write_rows(make_row(1, 80.0)), tmp_path / "README.md"
    document.write_text(f"a{BEGIN}{END}b")
    report(folder, "--into", document)
    assert document.read_text() == f"a{BEGIN}\n\n{render(folder)}\n\n{END}b"
    assert capsys.readouterr() == (f"{document}\n", "")


def test_everything_is_written_where_it_was_asked_for(
    make_row: MakeRow, write_rows: WriteRows, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_rows(make_row(1, [80.0, 81.0]), make_row(1, [69.0, 70.0], placement="none"))
    (folder / "broken.json").write_text("{")
    out = tmp_path / "out"
    report(folder, "--html", out / "r.html", "--latex", out / "tex", "--figures", out / "figures")
    names = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    drawn = ("elmo-against-the-baseline", "layer-weights", "training-curves")
    figures = [f"figures/{name}.{suffix}" for name in drawn for suffix in ("png", "svg")]
    tables = ("elmo-against-the-baseline", "layer-store", "layer-weights", "scores")
    assert names == [*figures, "r.html", *(f"tex/{name}.tex" for name in tables)]
    printed = capsys.readouterr()
    assert sorted(printed.out.split()) == [str(out / name) for name in names]
    assert printed.err.startswith(f"left out: {folder}/broken.json: not a readable row")
    assert (out / "figures" / "training-curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"no markers", "the document has no <!-- results: begin --> ... <!-- results: end --> to put the tables in"),
        (f"caf\xe9{BEGIN}{END}".encode("latin-1"), "not a text in UTF-8 (invalid continuation byte at byte 3)"),
    ],
)
def test_a_document_that_cannot_be_renewed_is_named_and_stays(
    make_row: MakeRow, write_rows: WriteRows, tmp_path: Path, content: bytes, sentence: str
) -> None:
    folder, document = write_rows(make_row(1, 80.0)), tmp_path / "README.md"
    document.write_bytes(content)
    with pytest.raises(UserError) as error:
        report(folder, "--into", document)
    assert str(error.value) == f"{document}: {sentence}"
    assert document.read_bytes() == content


@pytest.mark.parametrize("arguments", [["--html", "file/x.html"], ["--into", "README.md"], ["--figures", "file"]])
def test_what_cannot_be_written_is_named_and_nothing_is_left(
    make_row: MakeRow, write_rows: WriteRows, tmp_path: Path, arguments: list[str]
) -> None:
    folder = write_rows(make_row(1, 80.0))
    (tmp_path / "file").write_text("")
    (tmp_path / "README.md").write_text("no markers")
    *options, path = arguments
    with pytest.raises(UserError, match=r"(cannot be written|has no)"):
        report(folder, *options, tmp_path / path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["README.md", "file", "rows"]
    assert (tmp_path / "README.md").read_text() == "no markers"


def test_without_matplotlib_tables_are_printed_and_figures_name_the_extra(
    make_row: MakeRow, write_rows: WriteRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    folder = write_rows(make_row(1, [80.0, 81.0]))
    report(folder, "--latex", tmp_path / "tex")
    for option in ("--html", "--figures"):
        with pytest.raises(UserError, match=r"^figures need the extra `report`: pip install -e '\.\[report\]'$"):
            report(folder, option, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_an_empty_folder_ends_in_one_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "elmo_tasks.report", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == f"error: {tmp_path}: no rows (*.json) here; a run writes its row into results.dir\n"


def test_a_row_in_place_of_its_folder_is_told(make_row: MakeRow, write_rows: WriteRows) -> None:
    (path,) = write_rows(make_row(1, 80.0)).glob("*.json")
    with pytest.raises(UserError, match=r"\.json: a file; expected the folder of rows that it is in$"):
        read_report(path)


def test_a_pipe_that_is_closed_early_is_not_an_error(make_row: MakeRow, write_rows: WriteRows) -> None:
    folder = write_rows(make_row(1, 80.0))
    end, start = os.pipe()
    os.close(end)
    command = [sys.executable, "-m", "elmo_tasks.report", str(folder)]
    done = subprocess.run(command, stdout=start, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    os.close(start)
    assert (done.returncode, done.stderr) == (0, "")
