"""Every wrong value ends in one sentence with its key, what it must be and what was found."""

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ValidationError

from elmo_tasks.config.compose import compose
from elmo_tasks.config.words import InWords, first_problem, in_words
from elmo_tasks.errors import UserError
from elmo_tasks.values import DevBatches, Name, Positive, Probability, Range, Rate, Seed, Size

LINES = (Path(__file__).parent / "sentences.txt").read_text("utf-8").splitlines()
CASES = list(zip(LINES[::2], map(str.strip, LINES[1::2]), strict=True))


def test_the_sentences_of_wrong_values() -> None:
    found = {}
    for line, _ in CASES:
        with pytest.raises(UserError) as error:
            compose(line.split("\t")).check_components()
        found[line] = str(error.value)
    assert found == dict(CASES)
    assert len(found) >= 230


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (bool, "true or false"),
        (int, "a whole number"),
        (float, "a number"),
        (str, "a text"),
        (Size, "a whole number of at least 1"),
        (Seed, "a whole number from 0 to 4,294,967,295"),
        (Positive, "a number above 0"),
        (Probability, "a number from 0 to 1"),
        (Rate | None, "a number of at least 0 and below 1, or null"),
        (DevBatches, "a number above 0 and at most 1 or a whole number of at least 1"),
        (Annotated[float, Range(0, 1, above=True, below=True)], "a number above 0 and below 1"),
        (Name, "a name of letters, digits, '.', '_' and '-', 60 at most"),
        (Literal["a", "b"] | None, "one of a, b, or null"),
        (Literal[-1] | Size, "-1 or a whole number of at least 1"),
        (tuple[Size, Size], "a list of 2, each a whole number of at least 1"),
        (list[str], "a list of one or more, each a text"),
        (dict[str, Any], "keys with values"),
        (Annotated[Annotated[int, InWords("some number")] | None, "metadata"], "some number, or null"),
        (BaseModel | None, "a section with keys, or null"),
        (Path, "anything"),
    ],
)
def test_a_type_in_words(annotation: Any, words: str) -> None:
    assert in_words(annotation) == words


class Inner(BaseModel, extra="forbid"):
    size: Size


class Outer(BaseModel, extra="forbid"):
    inner: Inner
    others: list[Size]


@pytest.mark.parametrize(
    ("tree", "sentence"),
    [
        ({"inner": {"size": 0}, "others": []}, "inner.size must be a whole number of at least 1, found 0"),
        ({"inner": {"sise": 1}, "others": []}, "unknown key 'inner.sise'; expected one of size"),
        ({"inner": {}, "others": []}, "inner.size is missing; it must be a whole number of at least 1"),
        ({"others": []}, "inner is missing"),
        (
            {"inner": {"size": 1}, "others": [1, "x"]},
            "others must be a list of one or more, each a whole number of at least 1, found [1, 'x']",
        ),
        (5, "the configuration must be a section with keys, found 5"),
    ],
)
def test_the_first_problem_of_a_tree(tree: Any, sentence: str) -> None:
    with pytest.raises(ValidationError) as error:
        Outer.model_validate(tree)
    assert first_problem(error.value, Outer, tree) == sentence
