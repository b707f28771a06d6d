"""A warm-up text of the user's own: what counts is its content, wherever it is."""

from pathlib import Path
from typing import Any

import pytest

from elmo_tasks import load_run
from elmo_tasks.config.compose import validate
from elmo_tasks.config.identity import setting_key
from elmo_tasks.errors import UserError
from elmo_tasks.runs import run as train

TEXT = "The film was long .\nNobody left .\n"
ITEMS = [{"text": "A fine film ."}]


@pytest.fixture
def warmed(composed: Any, tmp_path: Path) -> Any:
    """Train on a text and return the folders of all finished runs."""

    def warmed(name: str, content: str = TEXT) -> list[Path]:
        (tmp_path / name).write_text(content)
        train.run(composed("task=sst5", "elmo.placement=input", "bilm.state=warm", f"bilm.warm_text={tmp_path / name}"))
        return sorted(path for path in (tmp_path / "outputs" / "runs").iterdir() if path.is_dir())

    return warmed


def test_the_same_text_elsewhere_is_the_same_run_and_another_text_is_another(warmed: Any) -> None:
    first = warmed("a.txt")
    assert warmed("b.txt") == first
    assert len(warmed("c.txt", TEXT + "They slept .\n")) == len(first) + 1


def test_runs_whose_texts_are_in_other_places_are_averaged(composed: Any) -> None:
    warm = ["task=sst5", "elmo.placement=input", "bilm.state=warm"]
    texts = (["bilm.warm_text=/a"], ["bilm.warm_text=/b"], [])
    keys = [setting_key(validate(composed(*warm, *text)).to_json(), "supervised") for text in texts]
    assert keys[0] == keys[1] != keys[2]


def test_a_prediction_needs_the_text_of_the_training(warmed: Any, tmp_path: Path) -> None:
    (folder,) = warmed("a.txt")
    expected = load_run(folder).predict(ITEMS)
    (tmp_path / "a.txt").rename(tmp_path / "moved.txt")
    with pytest.raises(UserError, match=r"/a\.txt: cannot be read"):
        load_run(folder)
    assert load_run(folder, warm_text=str(tmp_path / "moved.txt")).predict(ITEMS) == expected
    (tmp_path / "a.txt").write_text("Another text .\n")
    with pytest.raises(
        UserError, match=r"bilm\.warm_text=\S+/a\.txt is not the text that warmed up the biLM of the run$"
    ):
        load_run(folder)


def test_a_text_for_a_run_that_read_none_is_refused(composed: Any, tmp_path: Path) -> None:
    train.run(composed("task=sst5", "elmo.placement=none"))
    (folder,) = (path for path in (tmp_path / "outputs" / "runs").iterdir() if path.is_dir())
    with pytest.raises(UserError, match=r"^warm-up text w\.txt: run sst5-\S+ read no such file$"):
        load_run(folder, warm_text="w.txt")
