"""The sections hold what was set, as it was set, and cannot be changed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from elmo_tasks.config.compose import compose
from elmo_tasks.config.schema import Config, ConfigSection
from elmo_tasks.config.words import section_of
from elmo_tasks.values import is_all

REPO = Path(__file__).parents[2]
ROWS = sorted((REPO / "experiments" / "rows").glob("*.json"))


def test_every_committed_row_holds_a_configuration_which_is_stored_as_it_was() -> None:
    for path in ROWS:
        stored = json.loads(path.read_text("utf-8"))["config"]
        again = Config.model_validate(stored).to_json()
        assert json.dumps(again, sort_keys=True) == json.dumps(stored, sort_keys=True), path
    assert len(ROWS) >= 308


def test_a_default_that_was_not_written_out_is_not_stored() -> None:
    config = compose(["task=ner", "words=random"])
    assert config.words.unknown == "normal"
    assert "unknown" not in config.to_json()["words"]


def test_a_number_stays_what_it_was() -> None:
    config = compose(["task=ner", "elmo.lambda=0", "elmo.dropout=0.0"])
    assert [repr(config.elmo.lambda_), repr(config.elmo.dropout)] == ["0", "0.0"]
    whole, share = (
        compose(["task=ner", f"trainer.limit_val_batches={n}"]).trainer.limit_val_batches for n in ("1", "1.0")
    )
    assert (is_all(whole), is_all(share)) == (False, True)


def test_a_list_may_be_the_value_of_a_tuple() -> None:
    config = compose(["task=sst5", "task.model.classifier=[10,20]", "ensemble=[3,1]"])
    config.check_components()
    assert config.ensemble == (3, 1)
    assert config.to_json()["task"]["model"]["classifier"] == [10, 20]
    assert config.to_json()["ensemble"] == [3, 1]


def test_a_configuration_cannot_be_changed() -> None:
    config = compose(["task=ner"])
    for section, key in ((config, "seed"), (config.elmo, "lambda_"), (config.task.training, "batch_size")):
        with pytest.raises(ValidationError):
            setattr(section, key, 1)


def test_the_kind_of_the_task_chooses_its_section() -> None:
    kinds = {compose([f"task={task}"]).task.kind for task in ("ner", "lm", "wsd")}
    assert kinds == {"supervised", "language_model", "sense_probe"}


def test_the_text_of_a_bilm_says_where_it_comes_from() -> None:
    lm = compose(["task=lm", "task.lm.text=sst5"]).task.to_json()["lm"]
    assert lm["source"]["reader"]["phrases"] is False  # task.lm.changes
    assert lm["source"]["files"]["train"] == "sst/train.txt"
    assert "source" not in compose(["task=lm"]).task.to_json()["lm"]


def sections(section: type[ConfigSection]) -> set[type[ConfigSection]]:
    found = {section}
    for field in section.model_fields.values():
        for part in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(part, type) and issubclass(part, ConfigSection):
                found |= sections(part)
    return found


def test_every_section_and_every_key_that_is_not_plain_says_what_it_is_for() -> None:
    plain = {"name", "kind", "train", "dev", "test", "id", "hub", "reader", "model", "metric", "optimizer", "lm"}
    for section in sections(Config):
        assert section.__doc__
        for name, field in section.model_fields.items():
            is_section = section_of(field.rebuild_annotation()) is not None
            is_default = section.__name__ == "TaskElmoConfig"  # of the keys of ElmoConfig
            assert field.description or is_section or name in plain or is_default, f"{section.__name__}.{name}"


@pytest.mark.parametrize(
    ("module", "missing"),
    [
        ("elmo_tasks.values", ("pydantic", "torch", "hydra")),
        ("elmo_tasks.config.identity", ("torch", "hydra", "omegaconf", "numpy")),
        ("elmo_tasks.config.compose", ("torch", "numpy", "scipy")),
    ],
)
def test_what_a_module_does_not_import(module: str, missing: tuple[str, ...]) -> None:
    code = f"import sys, {module}; print([name for name in {missing} if name in sys.modules])"
    done: Any = subprocess.run([sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
