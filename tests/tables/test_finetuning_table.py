import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from bundled import mini, start_from_mini
from rows_by_hand import digest as hex_digits

from elmo_tasks.places import HOME
from elmo_tasks.rows.collection import read_rows
from elmo_tasks.tables import FineTuning, Line
from elmo_tasks.tables.collect import Choice
from elmo_tasks.tables.command import execute, read_request
from elmo_tasks.tables.evaluate import evaluate
from elmo_tasks.tables.texts import EvaluatedTable

NER = "task=ner"
TABLE = FineTuning("t", (Line("NER", (NER,), "ner"),), "mini", paper="table_7_bilm_perplexity_dev", seeds=2)
TUNED = (NER, "bilm.name=mini_ner", "bilm.path=runs/lm/bilm")
LM = ("task=lm", "task.lm.text=ner", "task.lm.init=mini")


def evaluated(tmp_path: Path) -> EvaluatedTable:
    return evaluate(TABLE, read_rows([tmp_path / "rows"]), Choice(("data=local",)))


def missing(tmp_path: Path, capsys: Any) -> list[str]:
    request = read_request([f"rows={tmp_path / 'rows'}", f"paths.outputs={tmp_path}", "--missing"])
    assert execute((TABLE,), request) == 0
    program = "python run.py" if Path.cwd() == HOME else "elmo-tasks run"
    common = f"{program} data=local paths.outputs={tmp_path} "
    return [line.replace(common, "").replace(" data.root=DIR", "") for line in capsys.readouterr().out.splitlines()]


def write_tuned(write: Any, digest: str = "tuned", start: str = "") -> None:
    path = write(*LM, run_id="lm", tuned=(120.5, 60.0, "runs/lm/bilm", digest))
    row = json.loads(path.read_text())
    row["language_model"]["initial"]["digest"] = hex_digits(start or start_from_mini())
    path.write_text(json.dumps(row))


def write_task(write: Any, *overrides: str, digest: str, scores: tuple[float, ...]) -> None:
    for seed, score in enumerate(scores, start=1):
        write(*overrides, seed=seed, dev=score, bilm={"digest": digest})


def test_perplexities_and_scores_stand_side_by_side(tmp_path: Path, write: Any) -> None:
    write_tuned(write)
    write_task(write, NER, digest=mini(), scores=(80.0, 82.0))
    write_task(write, *TUNED, digest="tuned", scores=(83.0, 84.0))
    grid = evaluated(tmp_path).section.grid
    assert grid.header[1:] == ["perplexity before", "perplexity after", "score before", "score after", "increase"]
    assert grid.lines == [
        ["NER", "120.5; paper 103.2", "60.0; paper 46.3", "81.00 ± 1.41 (2)", "83.50 ± 0.71 (2)", "+2.50"]
    ]
    assert any(note.startswith("NER, after against before: +2.50") for note in grid.notes)
    assert not any("earlier version" in note for note in grid.notes)


def test_the_increase_is_that_of_the_seeds_that_are_compared(tmp_path: Path, write: Any) -> None:
    write_tuned(write)
    write_task(write, NER, digest=mini(), scores=(80.0, 82.0, 81.0, 10.0))
    write_task(write, *TUNED, digest="tuned", scores=(83.0, 84.0, 86.0))
    table = replace(TABLE, seeds=4)
    grid = evaluate(table, read_rows([tmp_path / "rows"]), Choice(("data=local",))).section.grid
    assert grid.lines[0][-1] == "+3.33 on the 3 shared seeds"
    assert any("on the 3 shared seeds (paired" in note for note in grid.notes)


def test_scores_of_a_bilm_that_was_fine_tuned_another_time_do_not_count(tmp_path: Path, write: Any) -> None:
    write_task(write, *TUNED, digest="earlier", scores=(83.0, 84.0))
    write_tuned(write)
    assert evaluated(tmp_path).section.grid.lines[0][4:] == ["missing [f]", "missing"]


def test_a_fine_tuning_of_weights_that_were_bundled_before_is_due_again(
    tmp_path: Path, write: Any, capsys: Any
) -> None:
    write_tuned(write, start="before")
    write_task(write, NER, digest=mini(), scores=(80.0, 82.0))
    (tmp_path / "runs" / "lm" / "bilm").mkdir(parents=True)
    assert f"{' '.join(LM)} seed=1" in missing(tmp_path, capsys)
    grid = evaluated(tmp_path).section.grid
    assert grid.lines[0][1:3] == ["120.5; paper 103.2", "60.0; paper 46.3"]
    assert "perplexities of an earlier version of the bundled mini: NER" in grid.notes


def test_the_folder_of_a_fine_tuned_bilm_may_have_any_name(tmp_path: Path, write: Any) -> None:
    write(*LM, tuned=(120.5, 60.0, "my runs, second/bilm", "tuned"))
    assert evaluated(tmp_path).section.grid.lines[0][2:] == ["60.0; paper 46.3", "missing", "missing", "missing"]


def test_a_bilm_that_was_trained_from_nothing_is_not_fine_tuned(tmp_path: Path, write: Any) -> None:
    write(*LM[:2], tuned=(None, 900.0, "runs/other/bilm", "other"))
    assert evaluated(tmp_path).section.grid.lines[0][1:3] == ["missing; paper 103.2", "missing; paper 46.3"]


def test_no_number_is_invented_where_there_is_no_row(tmp_path: Path) -> None:
    paper = ["missing; paper 103.2", "missing; paper 46.3"]
    assert evaluated(tmp_path).section.grid.lines == [["NER", *paper, "missing", "missing", "missing"]]


def test_the_task_with_the_new_bilm_is_asked_for_once_it_is_here(
    tmp_path: Path, write: Any, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    lm, folder = f"{' '.join(LM)} seed=1", tmp_path / "runs" / "lm" / "bilm"
    assert missing(tmp_path, capsys) == [lm, f"{NER} seed=1", f"{NER} seed=2"]
    write_tuned(write)
    write_task(write, NER, digest=mini(), scores=(80.0, 82.0))
    assert missing(tmp_path, capsys) == [f"{lm} force=true"]  # only its row is here
    folder.mkdir(parents=True)
    assert missing(tmp_path, capsys) == [f"{' '.join(TUNED)} seed={seed}" for seed in (1, 2)]
    write_task(write, *TUNED, digest="tuned", scores=(83.0, 84.0))
    folder.rmdir()
    assert missing(tmp_path, capsys) == ["nothing is missing"]  # the weights have done their work
