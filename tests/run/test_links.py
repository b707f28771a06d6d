"""Links in place of what a run writes: nothing is written through them, but the folder of all outputs may be one."""

from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.errors import UserError
from elmo_tasks.lock import owned
from elmo_tasks.runs import run as train
from elmo_tasks.runs.folder import RunFolder

SMALL = ("task=sst5", "elmo.placement=none", "trainer.max_epochs=1", "data.fraction=0.05")
KEPT = "what the user has written"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A file of the user, to which the links lead."""
    path = tmp_path / "elsewhere"
    path.mkdir()
    (path / "file").write_text(KEPT)
    return path


def test_a_lock_that_is_a_link_is_not_written_through(tmp_path: Path, elsewhere: Path) -> None:
    lock = tmp_path / "run.lock"
    lock.symlink_to(elsewhere / "file")
    with pytest.raises(UserError, match=r"run\.lock: a link, which is not written through; remove it$"):
        owned(lock, wait=False).__enter__()
    assert (elsewhere / "file").read_text() == KEPT
    lock.unlink()
    lock.symlink_to(elsewhere / "new")
    with pytest.raises(UserError, match=r"run\.lock: a link"):
        owned(lock, wait=True).__enter__()
    assert not (elsewhere / "new").exists()


def test_a_lock_that_is_another_name_of_a_file_is_not_written_to(tmp_path: Path, elsewhere: Path) -> None:
    (tmp_path / "run.lock").hardlink_to(elsewhere / "file")
    with pytest.raises(UserError, match=r"run\.lock: another name of a file .*; remove it$"):
        owned(tmp_path / "run.lock", wait=False).__enter__()
    assert (elsewhere / "file").read_text() == KEPT


PLACES = {
    "the curves": ("partial", "metrics.csv", "file"),
    "the weights": ("partial", "model.safetensors", "file"),
    "the state": ("partial", "state.safetensors", "file"),
    "predictions": ("partial", "predictions", ""),
    "the folder": ("partial", "", ""),
    "a biLM": ("final", "bilm/weights.hdf5", "file"),
    "the curves of W&B": ("partial", "wandb", ""),
    "the predictions beside the row": ("row", "dev", ""),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_link_in_the_folder_of_a_run_is_refused(tmp_path: Path, elsewhere: Path, place: str) -> None:
    folder = RunFolder(tmp_path / "outputs", tmp_path / "rows", "a-run")
    folder.check_links()
    kind, name, target = PLACES[place]
    link = {"partial": folder.partial, "final": folder.final, "row": folder.row.with_suffix("")}[kind] / name
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere / target)
    with pytest.raises(UserError, match=rf"^{link}: a link .*; remove it$"):
        folder.check_links()


def test_a_link_is_refused_before_anything_is_trained(composed: Any, tmp_path: Path, elsewhere: Path) -> None:
    cfg = composed(*SMALL, "logger=csv")
    train.run(cfg)
    (row,) = (tmp_path / "outputs" / "rows").glob("*.json")
    partial = tmp_path / "outputs" / "runs" / f"{row.stem}.partial"
    partial.mkdir()
    (partial / "metrics.csv").symlink_to(elsewhere / "file")
    cfg.force = True
    with pytest.raises(UserError, match=r"metrics\.csv: a link in the folder of a run"):
        train.run(cfg)
    assert (elsewhere / "file").read_text() == KEPT


def test_the_folder_of_all_outputs_may_be_a_link(composed: Any, tmp_path: Path) -> None:
    for name in ("outputs", "rows"):
        (tmp_path / "scratch" / name).mkdir(parents=True)
        (tmp_path / name).symlink_to(tmp_path / "scratch" / name)
    (tmp_path / "scratch" / "outputs" / "runs").symlink_to(tmp_path / "scratch")
    train.run(composed(*SMALL, "logger=csv", f"results.dir={tmp_path / 'rows'}"))
    (row,) = (tmp_path / "scratch" / "rows").glob("*.json")
    assert (tmp_path / "scratch" / row.stem / "metrics.csv").is_file()


def test_a_row_that_is_a_link_is_replaced(composed: Any, tmp_path: Path, elsewhere: Path) -> None:
    train.run(composed(*SMALL))
    (row,) = (tmp_path / "outputs" / "rows").glob("*.json")
    row.rename(elsewhere / "row")
    before = (elsewhere / "row").read_bytes()
    row.symlink_to(elsewhere / "row")
    train.run(composed(*SMALL, "force=true"))
    assert not row.is_symlink()
    assert (elsewhere / "row").read_bytes() == before
