import json
import math

import numpy as np
import pytest

from elmo_tasks.errors import UserError
from elmo_tasks.nn.words import WordVectors
from elmo_tasks.probes import nearest as module
from elmo_tasks.probes.nearest import Nearest, Occurrence, find_source, first_sources, nearest
from elmo_tasks.probes.neighbours import main

TEXT = [
    "They play in the garden",
    "A Play about two kings",
    "It rained",
    "The kings play and play again",
    "They play in the garden",
    "Two kings rained in the play",
    "play",
]
SENTENCES = [line.split() for line in TEXT]
SOURCES = [Occurrence(tuple(SENTENCES[0]), 1), Occurrence(("Kings", "like", "gardens"), 0)]


def oracle(bilm, source, layer, candidates):
    """Every token of every sentence, sorted."""
    query = bilm.layers([list(source.tokens)])[0][layer, source.position].numpy().astype(float)
    best = {}
    for tokens in SENTENCES:
        if tuple(tokens) == source.tokens:
            continue
        x = bilm.layers([tokens])[0][layer].numpy().astype(float)
        for k, word in enumerate(tokens):
            same = word.lower() == source.word.lower()
            if candidates == "all" or same == (candidates == "same"):
                cosine = round(float(query @ x[k]) / math.sqrt(float(query @ query) * float(x[k] @ x[k])), 5)
                if cosine > best.get(tuple(tokens), (-2, 0))[0]:
                    best[tuple(tokens)] = (cosine, k)
    return sorted(((c, Occurrence(tokens, k)) for tokens, (c, k) in best.items()), key=lambda pair: -pair[0])


@pytest.mark.parametrize("portion", [1, 8, 1000])
@pytest.mark.parametrize("candidates", ["all", "same", "other"])
def test_one_pass_finds_what_sorting_everything_finds(tiny_bilm, monkeypatch, portion, candidates):
    monkeypatch.setattr(module, "_PORTION_TOKENS", portion)
    found = nearest(tiny_bilm, SOURCES, iter(SENTENCES), 3, candidates)
    for source, layers in zip(SOURCES, found, strict=True):
        assert len(layers) == 3
        for layer, best in enumerate(layers):
            expected = oracle(tiny_bilm, source, layer, candidates)[:3]
            assert [cosine for cosine, _ in best.found] == pytest.approx([c for c, _ in expected], abs=2e-5)
            if layer > 0:  # in layer 0 the same word has the same vector everywhere
                assert [occurrence for _, occurrence in best.found] == [o for _, o in expected]


def test_ties_are_in_order_of_the_text_and_a_sentence_comes_once():
    best = Nearest(2)
    a, b, c, d = (Occurrence((word, "x"), 0) for word in "abcd")
    for cosine, occurrence in ((0.5, a), (0.5, b), (0.5, c), (0.5, a)):
        best.offer(cosine, occurrence)
    assert best.found == [(0.5, a), (0.5, b)]
    best.offer(0.7, Occurrence(a.tokens, 1))
    best.offer(0.6, Occurrence(a.tokens, 0))
    assert best.found == [(0.7, Occurrence(a.tokens, 1)), (0.5, b)]
    best.offer(0.6, d)
    assert best.found == [(0.7, Occurrence(a.tokens, 1)), (0.6, d)]


def test_a_source_is_the_marked_or_the_first_occurrence():
    assert find_source("Play", "they play and play") == Occurrence(("they", "play", "and", "play"), 1)
    assert find_source("play", "they play and *play* * 2") == Occurrence(("they", "play", "and", "play", "*", "2"), 3)
    with pytest.raises(UserError, match=r"^'work' is not a token in the sentence 'they play'"):
        find_source("work", "they play")
    with pytest.raises(UserError, match=r"^'play' is not marked in the sentence 'they play \*games\*'"):
        find_source("play", "they play *games*")


def test_without_a_sentence_the_first_different_ones_of_the_text_are_the_sources():
    found = first_sources("PLAY", SENTENCES, 3)
    assert [(o.tokens, o.position) for o in found] == [(tuple(SENTENCES[k]), n) for k, n in ((0, 1), (1, 1), (3, 2))]
    assert first_sources("absent", SENTENCES, 3) == []


WORDS = "the 1 2 3\nplay 3 1 0\n. . . 1 1 1\ngame 6 2 1\nwork -3 -1 0\nPlay 3 1 0.2\nplayer 3 1 1\nnothing 0 0 0\n"


@pytest.mark.parametrize("portion", [1, 3, 100])
@pytest.mark.parametrize("word", ["play", "PLAY"])
def test_static_neighbours_are_those_of_all_words_but_the_word_itself(tmp_path, monkeypatch, portion, word):
    monkeypatch.setattr("elmo_tasks.nn.glove._BLOCK", portion)
    (tmp_path / "v.txt").write_text(WORDS)
    vectors = WordVectors(name="glove", path=str(tmp_path / "v.txt"), dim=3, lowercase=True)
    table = {line.split()[0]: np.array(line.split()[1:], float) for line in WORDS.splitlines() if ". ." not in line}
    query = table["play"]
    cosines = {w: float(v @ query / max(1e-9, np.linalg.norm(v) * np.linalg.norm(query))) for w, v in table.items()}
    del cosines["play"]
    expected = sorted(cosines.items(), key=lambda pair: -pair[1])[:4]
    found = vectors.nearest(word, 4)
    assert [w for w, _ in found] == [w for w, _ in expected] == ["Play", "game", "player", "the"]
    assert [c for _, c in found] == pytest.approx([c for _, c in expected], abs=1e-6)
    with pytest.raises(UserError, match="has no vector in"):
        vectors.nearest("absent", 4)


@pytest.fixture
def files(tiny_bilm, tmp_path):
    tiny_bilm.save(tmp_path / "bilm")
    (tmp_path / "text").write_text("\n".join(TEXT))
    (tmp_path / "v.txt").write_text(WORDS)
    places = {"--text": "text", "--bilm": "bilm", "--vectors": "v.txt"}
    return [part for option, name in places.items() for part in (option, str(tmp_path / name))]


def test_the_command_prints_each_neighbour_in_its_sentence_and_writes_all_of_it(files, tiny_bilm, tmp_path, capsys):
    out = tmp_path / "out.json"
    main(["play", *files, "--sentence", "Kings *play* here", "-k", "2", "--candidates", "same", "--out", str(out)])
    printed = capsys.readouterr().out
    result = json.loads(out.read_text())
    (source,) = result["sources"]
    assert (source["tokens"], source["position"]) == (["Kings", "play", "here"], 1)
    best = nearest(tiny_bilm, [Occurrence(("Kings", "play", "here"), 1)], SENTENCES, 2, "same")[0]
    for found, layer in zip(best, source["layers"], strict=True):
        assert [(n["cosine"], tuple(n["tokens"]), n["position"]) for n in layer] == [
            (pytest.approx(c, abs=2e-6), o.tokens, o.position) for c, o in found.found
        ]
        for near in layer:
            tokens = [f"[{t}]" if k == near["position"] else t for k, t in enumerate(near["tokens"])]
            assert f"    {near['cosine']:.3f}  {' '.join(tokens)}\n" in printed
    assert "Kings [play] here\n" in printed
    assert "play in" in printed
    assert [n["word"] for n in result["static"]["neighbours"]] == ["Play", "game"]
    assert (result["text"]["sentences"], result["text"]["tokens"]) == (7, 30)
    assert result["bilm"]["digest"] == tiny_bilm.digest


def test_long_sentences_are_cut_around_the_word(files, tmp_path, capsys):
    long = ["a"] * 30
    (tmp_path / "text").write_text(" ".join([*long, "play", *long]) + "\n")
    main(["play", *files, "--sentence", "play", "--candidates", "same"])
    nine = " ".join(long[:9])
    printed = capsys.readouterr()
    assert f"  ... {nine} [play] {nine} ...\n" in printed.out
    assert printed.err.startswith("neighbours: 61 tokens in ")  # a bar is for a terminal


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent"], r"^'absent' is not in .*text; give a sentence: --sentence"),
        (["play", "--sentence", "no such"], r"^'play' is not a token in"),
        (["play", "--out", "/no/such/x.json"], r"^--out /no/such/x\.json: no such folder"),
        (["play", "--vectors", "/no/such"], r"^/no/such: cannot be read"),
        (["play", "--text", "/no/such"], r"^/no/such: cannot be read \(No such file or directory\)$"),
        (["play", "--bilm", "/no/such"], r"^.*/no/such"),
    ],
)
def test_bad_input_gives_a_one_sentence_error(files, arguments, message):
    with pytest.raises(UserError, match=message):
        main([*files, *arguments])


def test_numbers_of_neighbours_are_positive(capsys):
    with pytest.raises(SystemExit):
        main(["play", "-k", "0"])
    assert "expected a whole number of at least 1, found '0'" in capsys.readouterr().err
