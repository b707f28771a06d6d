"""The names of runs are those that rows have always had."""

from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.config.compose import compose
from elmo_tasks.config.identity import RunDigests, paths_without_effect, relevant, run_id, setting_key
from elmo_tasks.rows.io import read_row
from elmo_tasks.rows.schema import LanguageModelRow

ROWS = sorted((Path(__file__).parents[2] / "experiments" / "rows").glob("*.json"))
OTHERS = {
    f"lm-local-cpu-mini-{name}"
    for name in ("ner-s1-9fe981de", "snli-s1-1e8039bd", "squad-s1-0e6d9b7c", "sst5-s1-3885626b")
}
"""Runs that were named before a biLM's text had its hub's and its files' places left out."""

WITHOUT_EFFECT = """
bilm.path bilm.store.dir bilm.store.limit_gb data.root task.data.test task.elmo task.files task.hub task.kind
task.lm.changes task.lm.heldout task.lm.init task.lm.source.files task.lm.source.hub task.lm.train
task.training.max_epochs task.training.patience task.words trainer.accelerator trainer.devices trainer.num_nodes
trainer.progress trainer.threads words.any_dim words.paper_dim
"""


def test_the_keys_that_cannot_change_a_score() -> None:
    assert sorted(paths_without_effect()) == WITHOUT_EFFECT.split()
    assert len(paths_without_effect()) == 25


def test_every_committed_row_has_the_name_that_its_configuration_and_inputs_give() -> None:
    differing = set()
    for path in ROWS:
        row: Any = read_row(path)
        initial = row.language_model.initial if isinstance(row, LanguageModelRow) else None
        digests = RunDigests(
            row.data.digest,
            bilm=row.bilm,
            words=row.data.word_vectors,
            initial=initial.digest if initial else None,
        )
        if run_id(row.config, row.kind, digests) != row.run_id:
            differing.add(row.run_id)
    assert differing == OTHERS
    assert len(ROWS) - len(differing) >= 304


def name(*overrides: str) -> str:
    config = compose(["task=ner", *overrides]).to_json()
    return run_id(config, "supervised", RunDigests("d"))


def test_what_is_stored_elsewhere_is_the_same_run() -> None:
    same = ("bilm.path=x", "bilm.store.dir=x", "trainer.threads=1", "task.files.test=x", "logger=none", "test=true")
    assert {name(one) for one in same} == {name()}
    others = ("seed=2", "elmo.lambda=1", "task.model.dropout=0.1", "bilm.store.dtype=float32", "+task.model.new=1")
    assert len({name(one) for one in (*others, "task.training.batch_size=7")} | {name()}) == 7


@pytest.mark.parametrize("kind", ["supervised", "ensemble"])
def test_a_part_of_a_configuration_has_a_key_too(kind: Any) -> None:
    part = {"task": {"name": "mine", "files": {"train": "a"}, "model": {"hidden": 3}}, "elmo": {"placement": "none"}}
    assert relevant(part, kind) == {"task": {"name": "mine", "model": {"hidden": 3}}, "elmo": {"placement": "none"}}
    assert setting_key(part, kind) == setting_key({**part, "seed": 5}, kind)


def test_a_default_written_out_makes_no_other_setting_and_an_own_file_does() -> None:
    def key(*overrides: str) -> str:
        return setting_key(compose(["task=ner", *overrides]).to_json(), "supervised")

    assert key("elmo.lambda=1e-1") == key() == key("seed=9")
    assert key("words.path=a") == key("words.path=b") != key()
    assert key("bilm.path=a") == key("bilm.path=b") != key()
