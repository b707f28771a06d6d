"""Composing gives what Hydra gives, and a stored configuration is read without resolving anything."""

import os
from pathlib import Path
from typing import Any

import pytest
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.errors import HydraException

from elmo_tasks.config import compose as module
from elmo_tasks.config.compose import compose, hydra_sentence, load, resolve, search_path, validate
from elmo_tasks.errors import UserError
from elmo_tasks.places import CONF

LINES = (Path(__file__).parent / "command_lines.txt").read_text("utf-8").split("\n")[:-1]


def by_hydra(overrides: list[str]) -> Any:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return hydra_compose("config", overrides)


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Values by dotted key as texts, which tell 1, 1.0 and true apart."""
    found = {}
    for key, value in tree.items():
        below = flat(value, f"{prefix}{key}.") if isinstance(value, dict) and value else {f"{prefix}{key}": repr(value)}
        found.update(below)
    return found


def outcome(make: Any) -> dict[str, str] | str:
    try:
        return flat(make())
    except (UserError, HydraException) as error:
        return str(error) if isinstance(error, UserError) else hydra_sentence(error)


def expected(overrides: list[str]) -> dict[str, Any]:
    """What Hydra composes, resolved by OmegaConf; only what a biLM's text adds is taken from the function itself."""
    config = by_hydra(overrides)
    tree = resolve(config)
    if (lm := tree["task"].get("lm")) and lm["text"] != "shards":
        lm["source"] = module.find_text_source(config, lm["text"])
    return tree


@pytest.mark.parametrize("line", LINES[::10])
def test_a_command_line_gives_what_hydra_gives(line: str) -> None:
    overrides = line.split("\t") if line else []
    assert outcome(lambda: compose(overrides).to_json()) == outcome(lambda: expected(overrides))


@pytest.mark.slow
def test_all_command_lines_give_what_hydra_gives() -> None:
    assert len(LINES) >= 140
    for line in LINES:
        overrides = line.split("\t") if line else []
        found = outcome(lambda: compose(overrides).to_json())  # noqa: B023
        if isinstance(found, str):  # a sentence, which names the cell of a table first
            found = found.removeprefix(f"{' '.join(overrides)}: ")
        assert found == outcome(lambda: expected(overrides)), line  # noqa: B023


def test_values_of_known_keys_are_set_without_hydra_and_without_omegaconf(monkeypatch: Any) -> None:
    line = ["task=ner", "data=local", "data.root=X", "elmo.lambda=0.125"]
    compose(line)
    monkeypatch.setattr(module, "_compose_by_hydra", None)
    monkeypatch.setattr(module, "resolve", None)
    found = compose([*line, "seed=77", "task.model.hidden=[7,8]", "bilm.path=null"])
    assert (found.seed, found.to_json()["task"]["model"]["hidden"]) == (77, [7, 8])
    assert compose([*line, "seed=77"]) is compose([*line, "seed=77"])


def test_a_key_that_another_one_reads_changes_both() -> None:
    config = compose(["task=wsd", "seed=91", "data.fraction=0.25"])
    assert config.task.to_json()["data"]["seed"] == 91
    assert config.task.to_json()["data"]["fraction"] == 0.25
    assert compose(["task=ner", "task.elmo.lambda=0.75"]).elmo.lambda_ == 0.75
    assert compose(["task=ner", "trainer.max_epochs=3"]).task.to_json()["training"]["max_epochs"] != 3


def test_the_folder_of_outputs_is_that_of_the_environment_now(monkeypatch: Any) -> None:
    for folder in ("first", "second"):
        monkeypatch.setenv("ELMO_TASKS_OUTPUTS", folder)
        assert compose(["task=ner"]).results.dir == f"{folder}/rows"


def test_a_cached_composition_is_not_changed_by_another_one() -> None:
    before = compose(["task=ner"]).to_json()
    compose(["task=ner", "task.model.hidden=[1]", "bilm.options.lstm.dim=3", "~task.reader.encoding"])
    assert compose(["task=ner"]).to_json() == before


def test_configurations_of_the_user_s_own_folder(tmp_path: Path) -> None:
    for folder in ("mine", "it's (mine), 결과"):
        own = tmp_path / folder
        (own / "task").mkdir(parents=True)
        (own / "mygroup").mkdir()
        text = "defaults: [ner, _self_]\nname: chunk\nmodel: {hidden: [3]}\n"
        (own / "task" / "chunk.yaml").write_text(text)
        (own / "mygroup" / "x.yaml").write_text("# @package _global_\nseed: 5\n")
        config = compose(["task=chunk", "+mygroup=x", "elmo.gamma=one"], (own,))
        assert (config.task.name, config.seed, config.elmo.gamma) == ("chunk", 5, "one")
        found = compose([search_path(own), "task=chunk", "+mygroup=x"])
        assert found.seed == 5


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["task=nothing"], "task=nothing: task=nothing: unknown choice; expected one of coref, lm, ner, "),
        (["task=???"], "task=???: You must specify 'task', e.g, task=<OPTION>; there are coref, lm, ner, "),
        (["trainer=5"], "trainer=5: Config group override must be a string"),
        (["lambda=1"], "lambda=1: unknown key 'lambda'; expected one of words, bilm, "),
        (["elmo.placment=both"], "elmo.placment=both: unknown key 'elmo.placment'; expected one of placement, "),
        (["seed=1,2"], "seed=1,2: seed=1,2: several values make a sweep; use elmo-tasks sweep"),
        (["seed = 1"], "seed = 1: 'seed = 1' cannot be read; expected KEY=VALUE, "),
        (["data=local"], "data.root is not set; add data.root=... to the command line"),
        (["seed=${seed}"], "the configuration cannot be resolved: "),
    ],
)
def test_a_command_line_that_hydra_refuses(overrides: list[str], sentence: str) -> None:
    with pytest.raises(UserError) as error:
        compose(overrides)
    assert str(error.value).startswith(sentence)


def stored(*overrides: str) -> dict[str, Any]:
    return compose(["task=ner", *overrides]).to_json()


def test_a_stored_configuration_is_what_it_was() -> None:
    assert load(stored(), "config.json").to_json() == stored()


def test_a_stored_configuration_of_another_version_may_have_other_keys() -> None:
    older, newer = stored(), stored()
    for key in ("packages", "if_running", "plan"):
        del older[key]
    newer["elmo"]["nosuch"] = newer["nosuch"] = 1
    assert load(older, "config.json").plan is False
    assert "nosuch" not in load(newer, "config.json").to_json()["elmo"]
    del older["elmo"]["mix"]
    with pytest.raises(UserError, match=r"^config\.json: elmo\.mix is missing; it must be one of scalar, last"):
        load(older, "config.json")


def test_nothing_of_a_stored_configuration_is_resolved(monkeypatch: Any) -> None:
    monkeypatch.setenv("SECRET", "leaked")
    tree = stored()
    tree["words"]["path"] = "${oc.env:SECRET}"
    tree["task"]["reader"] = {
        "_target_": "elmo_tasks.data.ner.NerReader",
        "encoding": "${oc.create:{_target_: os.system}}",
    }
    config = load(tree, "config.json")
    assert config.words.path == "${oc.env:SECRET}"
    assert config.task.to_json()["reader"]["encoding"] == "${oc.create:{_target_: os.system}}"
    assert "leaked" not in str(config)


@pytest.mark.parametrize("target", ["os.system", "my_lab.Reader", "${oc.env:HOME}", "elmo_tasks.files.write_text", 5])
def test_a_stored_configuration_cannot_name_a_class_or_a_package_that_the_user_does_not_trust(target: Any) -> None:
    tree = stored()
    tree["packages"] = ["os", "my_lab"]
    for place in (tree["task"]["reader"], tree["task"]["model"].setdefault("deep", [{"er": {}}])[0]["er"]):
        before = dict(place)
        place["_target_"] = target
        with pytest.raises(UserError, match=r"^config\.json: task\.(reader|model\.deep\.0\.er)\._target_ must be "):
            load(tree, "config.json")
        place.clear()
        place.update(before)
    tree["task"]["reader"]["_target_"] = "my_lab.Reader"
    assert load(tree, "config.json", ("my_lab",)).packages == ("my_lab",)


@pytest.mark.parametrize("tree", [None, 5, [], "x", {}, {"task": 5}, {"task": {"kind": "other"}}])
def test_what_is_no_configuration_is_one_sentence(tree: Any) -> None:
    with pytest.raises(UserError, match=r"^row\.json: "):
        load(tree, "row.json")


def test_a_composed_configuration_is_checked_as_it_is() -> None:
    assert validate(by_hydra(["task=squad"])) == compose(["task=squad"])


def test_composing_needs_no_variable_of_the_environment() -> None:
    assert "ELMO_TASKS_OUTPUTS" not in os.environ or compose(["task=ner"]).paths.outputs
