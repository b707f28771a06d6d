"""A class is named, checked and made; nothing that is not trusted is imported or called."""

import sys
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.config import components
from elmo_tasks.config.compose import compose
from elmo_tasks.config.schema import Component, find_components
from elmo_tasks.data.ner import NerReader
from elmo_tasks.errors import UserError

TASKS = ("sst5", "ner", "snli", "squad", "srl", "coref", "nsmc", "pos", "wsd", "lm")
LAB = """
from __future__ import annotations
from typing import Any
from elmo_tasks.errors import UserError
from elmo_tasks.values import Size


class Part:
    def __init__(self, size: Size, numbers: tuple[Size, Size] = (1, 2)) -> None:
        self.size, self.numbers = size, numbers


class Whole:
    def __init__(self, *, part: Part, extra: Any = None) -> None:
        if extra == "crash":
            raise RuntimeError("crashed")
        if extra == "bad":
            raise UserError("extra must be good")
        self.part, self.extra = part, extra


def function() -> None:
    raise AssertionError
"""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: Any) -> Any:
    (tmp_path / "component_lab.py").write_text(LAB)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "component_lab", raising=False)
    return ("component_lab",)


def node(**values: Any) -> Component:
    part = {"_target_": "component_lab.Part", "size": 3, "numbers": [4, 5]}
    return Component.model_validate({"_target_": "component_lab.Whole", "part": part, **values})


def test_nested_components_are_made_first(lab: Any) -> None:
    whole = node(extra=1).make(lab, extra=2)
    assert (whole.part.size, whole.part.numbers, whole.extra) == (3, [4, 5], 2)


def test_a_partial_call_is_completed_later(lab: Any) -> None:
    assert node(_partial_=True).make(lab)(extra=7).extra == 7


def check(component: Component, packages: Any, section: str = "x") -> None:
    components.check_classes({"task": {section: component.to_json()}}, packages)
    component.check(f"task.{section}", packages)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"part": {"_target_": "component_lab.Part", "size": 0}},
            r"task\.x\.part\.size must be a whole number of at l",
        ),
        (
            {"part": {"_target_": "component_lab.Part", "sise": 1}},
            r"unknown key 'task\.x\.part\.sise'; expected one of",
        ),
        ({"part": {"_target_": "os.system"}}, r"task\.x\.part\._target_ must be a class below elmo_tasks\.data, "),
        ({"extra": [{"_target_": "os.system"}]}, r"extra\.0\._target_ must be a class below elmo_tasks\.data, "),
        ({"nosuch": 1}, r"unknown key 'task\.x\.nosuch'; expected one of part, extra"),
        ({"_args_": [1]}, r"unknown key 'task\.x\._args_'; of Hydra's own keys only _target_ and _partial_ are read"),
        ({"extra": [{"_recursive_": False}]}, r"unknown key 'task\.x\.extra\.0\._recursive_'; of Hydra's own keys"),
        ({"_partial_": True}, r"task\.x\._partial_ must be true for task\.optimizer and stands nowhere else"),
        (
            {"part": {"_target_": "elmo_tasks.data.ner.NerReader"}},
            r"not a class for this place; expected no class there",
        ),
        ({"_target_": "component_lab:Whole"}, r"_target_ must be a class below"),
        ({"_target_": "torch.optim.Adam.mro"}, r"not a class of this package"),
        ({"_target_": "component_lab.function"}, r"task\.x\._target_=component_lab\.function: not a class of this"),
        ({"_target_": "component_lab.nosuch"}, r"there is no such class"),
        ({"_target_": "component_lab.Whole.__init__.__globals__"}, r"not a class of this package"),
    ],
)
def test_what_is_wrong_is_named_with_its_key(lab: Any, values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        check(node(**values), lab)


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [("bad", "^extra must be good$"), ("crash", r"^component_lab\.Whole does not take what .* gives it \(crashed\)")],
)
def test_an_error_of_the_constructor_is_one_sentence(lab: Any, extra: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        node(extra=extra).make(lab)


def test_a_class_of_this_package_stands_where_one_of_its_kind_is_meant() -> None:
    reader = Component.model_validate({"_target_": "elmo_tasks.data.ner.NerReader"})
    check(reader, (), "reader")
    with pytest.raises(UserError, match=r"^task\.model\._target_=.*: not a class for this place; expected one with"):
        check(reader, (), "model")


def test_sections_that_are_nested_too_deeply() -> None:
    tree: Any = {}
    for _ in range(900):
        tree = {"deep": tree}
    with pytest.raises(UserError, match=r"^deep: sections that are nested too deeply$"):
        components.check_targets(tree, ())


def test_what_is_not_trusted_is_not_even_imported(lab: Any) -> None:
    for attempt in (
        lambda: node().check("x", ()),
        lambda: node().make(),
        lambda: components.check_targets(node().to_json(), ()),
    ):
        with pytest.raises(UserError, match=r"_target_ must be a class below elmo_tasks\.data"):
            attempt()
    assert "component_lab" not in sys.modules


def test_a_class_that_is_imported_from_elsewhere_is_none_of_this_package() -> None:
    for target in ("elmo_tasks.data.sst5.Path", "elmo_tasks.data.files.os.remove"):
        with pytest.raises(UserError, match=r"not a class of this package"):
            components.make({"_target_": target})


@pytest.mark.parametrize("task", TASKS)
def test_the_classes_of_every_task_take_their_values(task: str) -> None:
    config = compose([f"task={task}"])
    config.check_components()
    assert {key for key, _ in find_components(config)} >= {"task.metric"}


def test_a_reader_is_made() -> None:
    reader = dict(find_components(compose(["task=ner", "task.reader.encoding=latin-1"])))["task.reader"].make()
    assert isinstance(reader, NerReader)
    assert reader.encoding == "iso8859-1"
