from pathlib import Path
from unicodedata import normalize

import pytest
import torch

from elmo_tasks.nn.characters import character_id_table, character_ids, remark_on_truncated

# bilm-tf: 256 begin of sentence, 257 end of sentence, 258 begin of word, 259 end of word, 260 filling; all plus one


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("<S>", (259, 257, 260)),
        ("</S>", (259, 258, 260)),
        ("cat", (259, 100, 98, 117, 260)),
        ("é", (259, 196, 170, 260)),  # bytes C3 A9
        ("日", (259, 231, 152, 166, 260)),  # bytes E6 97 A5
        ("", (259, 260)),
        ("<s>", (259, 61, 116, 63, 260)),  # no mark: case counts
    ],
)
def test_a_word_is_its_bytes_plus_one_between_word_marks(word, expected):
    assert character_ids(word) == expected


def test_a_word_of_48_bytes_is_whole_and_one_of_49_is_truncated():
    assert character_ids("a" * 47 + "b") == (259, *[98] * 47, 99, 260)
    assert character_ids("a" * 48 + "b") == (259, *[98] * 48, 260)


def test_a_long_word_is_cut_inside_a_character():
    ids = character_ids("a" * 47 + "é")
    assert ids == (259, *[98] * 47, 196, 260)  # C3 without its A9


@pytest.mark.parametrize("word", ["é", "한국", "ệ", "naïve"])
def test_composed_and_decomposed_spellings_are_one_word(word):
    assert character_ids(normalize("NFD", word)) == character_ids(word)
    assert normalize("NFD", word) != word


@pytest.mark.parametrize("word", ["ﬁne", "m²", "①", "Ａ"])
def test_compatibility_characters_are_kept(word):
    assert character_ids(word) == (259, *(byte + 1 for byte in word.encode()), 260)
    assert normalize("NFKC", word) != word


def test_truncated_words_are_named_once_in_order():
    longest, korean = "a" * 48, "한" * 16
    words = ["b" * 49, longest, "é" * 25, korean, normalize("NFD", korean), korean + "a", "b" * 49, "é" * 24, "short"]
    assert remark_on_truncated(words) == f"words longer than 48 bytes are truncated: 3, such as '{'b' * 49}'"
    assert remark_on_truncated(words[1:]) == f"words longer than 48 bytes are truncated: 3, such as '{'é' * 25}'"
    assert remark_on_truncated([longest, korean, "é" * 24]) == ""


@pytest.mark.parametrize("letter", ["\u0958", "\ufb2c", "\U0001d160"])
def test_a_short_word_whose_letters_grow_when_composed_is_truncated_too(letter):
    n = 48 // len(normalize("NFC", letter).encode())
    assert len(letter * (n + 1)) <= 12
    assert remark_on_truncated([letter * n]) == ""
    assert remark_on_truncated([letter * (n + 1)])


def test_lone_surrogates_are_left_out():
    assert character_ids("a\ud800b") == (259, 98, 99, 260)


def test_a_table_is_filled_with_261_to_the_longest_word():
    table = character_id_table(["<S>", "cat", "I"])
    assert table.dtype == torch.long
    assert table.tolist() == [
        [259, 257, 260, 261, 261],
        [259, 100, 98, 117, 260],
        [259, 74, 260, 261, 261],
    ]


def test_a_table_takes_extra_filling_but_never_more_than_50_columns():
    assert character_id_table(["I"], extra=2).tolist() == [[259, 74, 260, 261, 261]]
    assert character_id_table(["a" * 40], extra=7).shape == (1, 49)
    assert character_id_table(["a" * 46], extra=7).shape == (1, 50)
    assert character_id_table(["a" * 99]).shape == (1, 50)


def test_a_table_of_no_words_has_no_rows():
    assert len(character_id_table([])) == 0


def test_published_weights_read_a_decomposed_word_as_the_composed_one(tiny_bilm):
    """Other programs read its letters and accents as they come; see docs/departures.md, Accents."""
    decomposed, composed = "cafe\u0301", "café"
    assert decomposed != composed
    torch.testing.assert_close(tiny_bilm.layers([[decomposed]]), tiny_bilm.layers([[composed]]), atol=0, rtol=0)
    assert "**Accents.** Every word is composed (NFC)" in (
        Path(__file__).parents[2] / "docs" / "departures.md"
    ).read_text("utf-8")
