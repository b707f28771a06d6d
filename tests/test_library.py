import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import elmo_tasks
from elmo_tasks import BiLM, Elmo, ScalarMix, embed
from elmo_tasks.errors import UserError
from elmo_tasks.store.layers import LayerStore

SENTENCES = [["The", "bank", "."], ["Hello"], ["a", "b", "c", "d", "e"]]


def test_importing_the_package_is_fast_and_its_names_are_there() -> None:
    program = "import sys, elmo_tasks; assert 'torch' not in sys.modules; print(*elmo_tasks.__all__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted(elmo_tasks.__all__)
    assert all(isinstance(getattr(elmo_tasks, name), object) for name in elmo_tasks.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Bilm'"):
        elmo_tasks.Bilm  # noqa: B018
    assert Elmo.__module__ == ScalarMix.__module__ == "elmo_tasks.elmo"


def test_layers_are_those_of_each_sentence_alone_and_zero_on_padding(tiny_bilm: BiLM) -> None:
    found = embed(SENTENCES, tiny_bilm)
    assert found.layers.shape == (3, 3, 5, tiny_bilm.dim)
    assert found.mask.tolist() == [[k < len(sentence) for k in range(5)] for sentence in SENTENCES]
    for row, mask, sentence in zip(found.layers, found.mask, SENTENCES, strict=True):
        (alone,) = tiny_bilm.layers([sentence])
        torch.testing.assert_close(row[:, mask], alone)
        assert not row[:, ~mask].any()


def test_a_bundled_bilm_is_loaded_by_its_name() -> None:
    assert embed([["Hello", "!"]]).layers.shape == (1, 3, 2, 256)


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        (["Hello there"], r"^sentence 1: expected a list of tokens, found the text 'Hello there'; text\.split\(\)"),
        ([["a"], "b c"], r"^sentence 2: expected a list of tokens, found the text 'b c'"),
        ("Hello there", r"^expected a list of sentences, each a list of tokens, found the text 'Hello there'$"),
        ([], r"^embed: expected one sentence or more, found none$"),
        ([["a"], []], r"^embed: sentence 2 has no token; leave it out, or call the encoder's layers\(sentences\)"),
        ([["a"], ["b", ""]], r"^embed: sentence 2 has an empty token; leave it out or write a token there$"),
        (np.array(["Hello", "there"]), r"^sentence 1: expected a list of tokens, found the text 'Hello'; text\.split"),
        (np.array("Hello"), r"^expected a list of sentences, each a list of tokens, found the text 'Hello'$"),
        ({"a": ["b"]}, r"^expected a list of sentences, each a list of tokens, found \{"),
        ([["a"], {"b", "c"}], r"^sentence 2: expected a list of tokens, each a text, found \{"),
        (3, r"^expected a list of sentences, each a list of tokens, found 3$"),
        (np.zeros((2, 2)), r"^sentence 1: expected a list of tokens, each a text, found \[0\.0, 0\.0\]$"),
        ([[b"a"]], r"^sentence 1: expected a list of tokens, each a text, found \[b'a'\]$"),
        ([float("nan")], r"^sentence 1: expected a list of tokens, each a text, found nan$"),
    ],
)
def test_anything_but_a_list_of_token_lists_is_refused(tiny_bilm: BiLM, sentences, message: str) -> None:
    with pytest.raises(UserError, match=message):
        embed(sentences, tiny_bilm)


@pytest.mark.parametrize("sentence", [[1, 2], ["a", None], 3])
def test_tokens_that_are_no_texts_are_refused(tiny_bilm: BiLM, sentence: Any) -> None:
    with pytest.raises(UserError, match=r"^sentence 2: expected a list of tokens, each a text, found "):
        embed([["a"], sentence], tiny_bilm)


def test_a_sentence_may_be_an_array(tiny_bilm: BiLM) -> None:
    sentences: Any = [np.array(["a", "b"])]
    assert embed(sentences, tiny_bilm).mask.tolist() == [[True, True]]


def array_of(*sentences: list[str]) -> Any:
    found = np.empty(len(sentences), dtype=object)
    found[:] = [np.array(sentence) for sentence in sentences]
    return found


@pytest.mark.parametrize(
    "given",
    [
        lambda: array_of(["a", "b"], ["c"]),
        lambda: (iter(sentence) for sentence in [["a", "b"], ["c"]]),
        lambda: (("a", "b"), ("c",)),
        lambda: map(str.split, ["a b", "c"]),
        lambda: [np.array(["a", "b"]), [np.str_("c")]],
        lambda: pytest.importorskip("pandas").Series([["a", "b"], ["c"]], index=[5, 9]),
        lambda: pytest.importorskip("pandas").Series(["a b", "c"]).str.split(),
        lambda: [pytest.importorskip("pandas").Series(["a", "b"], index=[3, 1]), ["c"]],
    ],
)
def test_sentences_come_as_numpy_and_pandas_have_them(tiny_bilm: BiLM, tmp_path: Path, given: Any) -> None:
    expected = tiny_bilm.layers([["a", "b"], ["c"]])
    found = embed(given(), tiny_bilm)
    assert found.mask.tolist() == [[True, True], [True, False]]
    torch.testing.assert_close(found.layers[0], expected[0])
    torch.testing.assert_close(tiny_bilm.layers(given()), expected)
    store = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    assert store.fill(given()).computed == 3
    torch.testing.assert_close(store.padded(given()), found.layers, rtol=0, atol=1e-5)
    tiny_bilm.warm_up(given())
    digest = tiny_bilm.warm_digest
    tiny_bilm.warm_up([["a", "b"], ["c"]])
    assert tiny_bilm.warm_digest == digest


def test_what_is_no_encoder_is_named() -> None:
    encoder: Any = 3
    with pytest.raises(UserError, match=r"^embed: expected an encoder, or the name or folder of a biLM, found 3$"):
        embed([["a"]], encoder)


def test_a_table_of_strings_is_a_sentence_a_row(tiny_bilm: BiLM) -> None:
    assert embed(np.array([["a", "b"], ["c", "d"]]), tiny_bilm).mask.tolist() == [[True, True]] * 2


def test_the_bilm_itself_refuses_a_text(tiny_bilm: BiLM) -> None:
    with pytest.raises(UserError, match="sentence 1: expected a list of tokens"):
        tiny_bilm.layers(["Hello there"])
