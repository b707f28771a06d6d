"""A sentence for the user is one line of printable characters and of bounded length, whatever is put into it."""

import random

import pytest

from elmo_tasks.errors import MAX_SENTENCE, UserError, sentence

PARTS = [
    "a",
    "word",
    "x" * 500,
    "'quoted text'",
    "\n",
    "\r",
    "\t",
    "\x1b[31m",
    "\ud800",
    "\u2028",
    "é",
    "1,234",
    "",
    " ",
]


def cost(text: str) -> int:
    """Characters, a path of any length as twenty."""
    return sum(20 if "/" in word else len(word) for word in text.split(" ")) + text.count(" ")


@pytest.mark.parametrize("seed", range(200))
def test_any_text_becomes_a_bounded_printable_line(seed: int) -> None:
    rng = random.Random(seed)
    text = "/data/of/mine.txt:7: " + " ".join(rng.choices([*PARTS, "/a/path"], k=rng.choice([1, 10, 300, 5000])))
    said = str(UserError(f"{text}; the remedy"))
    assert cost(said) <= MAX_SENTENCE
    assert said.isprintable()
    assert said.startswith("/data/of/mine.txt:7: ")
    assert said.endswith("the remedy")
    assert sentence(said) == said
    said.encode()


def test_a_short_sentence_and_a_long_path_are_left_as_they_are() -> None:
    said = f"/{'folder/' * 100}file.txt:12: expected 'a  b', found \"c\"; set data.root"
    assert sentence(said) == said


def test_the_middle_of_a_long_sentence_is_left_out() -> None:
    said = sentence(f"data.txt:3: expected one word, found {'many words ' * 100}; set task.reader.encoding")
    assert said.startswith("data.txt:3: expected one word, found many words many words")
    assert " ... " in said
    assert said.endswith("; set task.reader.encoding")
