"""Trees, JSON, comments and raw texts by the grammar of their formats, and tokens with a treebank's escapes.

Where a case has ``inputs``, they are the same sentences as a user gives them to ``predict``: as the tokens that stand
in the file, and as a raw text. The writer knows the words, so that nothing is read to know what must be found.
"""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any
from unicodedata import normalize

from .case import REFUSED, Case

N_EACH = 100
"""How many files of each kind a seed gives."""

PLAIN = ["fine", "film", "naïve", "co-op", "U.S.", "3.5", "서울", "हिन्दी", "O", "Mr"]
TREEBANK = {"-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]", "``": '"', "''": '"'}
TREEBANK |= {"3\\/4": "3/4", "and\\/or": "and/or", "\\*": "*", "\\*\\*": "**"}
ONTONOTES = {"-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]", "a-LRB-s-RRB-": "a(s)"}
ONTONOTES |= {"/.": ".", "/?": "?", "/!": "!", "/-": "-", "/,": ","}

SCRIPTS = {
    "Devanagari": ("कखगतदनपमरलसह", "\u093e\u093f\u0940\u0947\u094d\u0902\u093c"),
    "Arabic": ("ابتجدرسكلم", "\u064b\u064e\u064f\u0650\u0651\u0652\u0670"),
    "Hebrew": ("אבגדהולמשת", "\u05b0\u05b4\u05b8\u05bc\u05c1"),
    "Tamil": ("கசடதபமயரலவ", "\u0bbe\u0bbf\u0bcd\u0bc8"),
    "Thai": ("กขคงจชดตนปมร", "\u0e31\u0e34\u0e35\u0e48\u0e49"),
    "Bengali": ("কগচতনপমরল", "\u09be\u09bf\u09cd\u09cb"),
    "Khmer": ("កខគចតនបម", "\u17b6\u17b7\u17d2\u17c6"),
    "Latin": ("bcdfgkmprz", "\u0327\u0331\u0357\u20dd\u1dc4"),
    "Brahmi": ("\U00011005\U00011013\U00011014", "\U00011038\U00011046"),
}
"""Letters of a script and marks that stand on them, without a composed form."""
JOINERS = "\u200c\u200d\u00ad"


def marked_word(rng: random.Random) -> str:
    """A word of one script: letters with marks, some joined."""
    letters, marks = rng.choice([*SCRIPTS.values()])
    parts = [rng.choice(letters) + "".join(rng.choices(marks, k=rng.randint(0, 2))) for _ in range(rng.randint(1, 5))]
    parts[0] = parts[0][0] + rng.choice(marks)
    return "".join(p + (rng.choice(JOINERS) if rng.random() < 0.2 else "") for p in parts[:-1]) + parts[-1]


def marked_text(rng: random.Random, joiners: str = JOINERS) -> tuple[str, list[str]]:
    """A raw text and its tokens."""
    words = [rng.choice([marked_word(rng), marked_word(rng), "film", "2", "서울"]) for _ in range(rng.randint(1, 8))]
    words = ["".join(c for c in word if c not in JOINERS or c in joiners) for word in words]
    text, tokens = "", []
    for word in words:
        after = rng.choice(["", "", "", ",", "!", ")"])
        text += word + after + rng.choice([" ", "  ", "\u00a0"])
        tokens += [word, *after]
    return text, tokens


def escaped(rng: random.Random, escapes: dict[str, str]) -> tuple[list[str], list[str]]:
    """Tokens as they stand in a file, one of them escaped at least, and the words that they are."""
    tokens = [rng.choice([rng.choice(PLAIN), rng.choice([*escapes])]) for _ in range(rng.randint(0, 6))]
    tokens.insert(rng.randint(0, len(tokens)), rng.choice([*escapes]))
    return tokens, [escapes.get(token, token) for token in tokens]


def several(rng: random.Random, make: Callable[[random.Random], Any]) -> list[Any]:
    return [make(rng) for _ in range(rng.randint(1, 5))]


def given(name: str, sentences: list[list[str]]) -> list[dict[str, Any]]:
    """Sentences as tokens, and as raw texts."""
    return [{name: tokens} for tokens in sentences] + [{name: " ".join(tokens)} for tokens in sentences]


def tree(rng: random.Random, tokens: list[str], label: int) -> str:
    if len(tokens) == 1:
        return f"({label} {tokens[0]})"
    k = rng.randint(1, len(tokens) - 1)
    return f"({label} {tree(rng, tokens[:k], rng.randint(0, 4))} {tree(rng, tokens[k:], rng.randint(0, 4))})"


def sst5_escapes(rng: random.Random) -> Case:
    found = [(*escaped(rng, TREEBANK), rng.randint(0, 4)) for _ in range(rng.randint(1, 5))]
    text = "".join(tree(rng, tokens, label) + "\n" for tokens, _, label in found)
    expected = [(words, label) for _, words, label in found]
    return Case("sst5_escapes", text, "sst5", expected, inputs=given("text", [tokens for tokens, _, _ in found]))


def pos_escapes(rng: random.Random) -> Case:
    found = several(rng, lambda rng: escaped(rng, TREEBANK))
    tags = [[rng.choice(["NN", "DT", "``", "-LRB-"]) for _ in tokens] for tokens, _ in found]
    pairs = [list(zip(tokens, own, strict=True)) for (tokens, _), own in zip(found, tags, strict=True)]
    if rng.random() < 0.5:
        text = "\n".join("".join(f"{token}\t{tag}\n" for token, tag in sentence) for sentence in pairs)
    else:
        text = "".join(f"( (S {' '.join(f'({tag} {token})' for token, tag in sentence)}))\n" for sentence in pairs)
    expected = [(words, own) for (_, words), own in zip(found, tags, strict=True)]
    return Case("pos_escapes", text, "pos", expected, inputs=given("tokens", [tokens for tokens, _ in found]))


def ner_escapes(rng: random.Random) -> Case:
    """Columns in which nothing is undone: a bracket that stands there as -LRB- is the word -LRB-."""
    found = several(rng, lambda rng: [*escaped(rng, TREEBANK)[0], "2\u00a01/2"])
    text = "\n".join("".join(f"{token} B-PER\n" for token in tokens) for tokens in found)
    expected = [(tokens, [(k, k + 1, "PER") for k in range(len(tokens))]) for tokens in found]
    return Case("ner_escapes", text, "ner", expected, inputs=[{"tokens": tokens} for tokens in found])


def rows_2012(sentence: list[str], verb: int | None) -> str:
    """The lines of a sentence; the first token is a cluster's mention, ``verb`` a predicate."""
    lines = []
    for k, token in enumerate(sentence):
        frame = ["run", "01"] if k == verb else ["-", "-"]
        arguments = [] if verb is None else ["(V*)" if k == verb else "(ARG0*)" if k == 0 else "*"]
        cells = ["nw/x", "0", str(k), token, "NN", "*", *frame, "-", "ann", "*", *arguments, "(1)" if k == 0 else "-"]
        lines.append(" ".join(cells))
    return "\n".join(lines) + "\n\n"


def srl_escapes(rng: random.Random) -> Case:
    found = several(rng, lambda rng: escaped(rng, ONTONOTES))
    text = "#begin document (nw/x); part 000\n"
    expected, inputs = [], []
    for tokens, words in found:
        tokens, words = ["Anna", *tokens], ["Anna", *words]
        verb = rng.randint(1, len(tokens) - 1)
        text += rows_2012(tokens, verb)
        tags = ["B-ARG0", *("B-V" if k == verb else "O" for k in range(1, len(tokens)))]
        expected.append((words, [verb], [tags]))
        inputs.append(tokens)
    return Case("srl_escapes", f"{text}#end document\n", "srl", expected, inputs=given("tokens", inputs))


def coref_escapes(rng: random.Random) -> Case:
    found = [escaped(rng, ONTONOTES) for _ in range(rng.randint(2, 5))]
    text = "".join(rows_2012(tokens, None) for tokens, _ in found)
    starts = [sum(len(words) for _, words in found[:k]) for k in range(len(found))]
    expected = [([words for _, words in found], "nw", [[(start, start + 1) for start in starts]])]
    sentences = [tokens for tokens, _ in found]
    inputs = [{"sentences": sentences}, {"sentences": [" ".join(tokens) for tokens in sentences]}]
    text = f"#begin document (nw/x); part 000\n{text}#end document\n"
    return Case("coref_escapes", text, "coref", expected, inputs=inputs)


def snli(rng: random.Random, sentence: Callable[[random.Random], tuple[str, list[str]]], kind: str) -> Case:
    """Pairs; those that are left out may be empty."""
    labels, lines, expected, inputs = ["entailment", "neutral", "contradiction"], [], [], []
    for number in range(rng.randint(1, 6)):
        (premise, first), (hypothesis, second) = sentence(rng), sentence(rng)
        label = rng.choice([*labels, *(["-"] if number else [])])
        if label == "-":
            hypothesis = rng.choice([hypothesis, "", " ", None])
        else:
            expected.append((first, second, labels.index(label)))
            inputs.append({"premise": premise, "hypothesis": second})
        pair = {"gold_label": label, "sentence1": premise, "sentence2": hypothesis, "pairID": str(number)}
        lines.append(json.dumps(pair, ensure_ascii=rng.random() < 0.5))
    return Case(kind, "\n".join(lines), "snli", expected, inputs=inputs)


def snli_marks(rng: random.Random) -> Case:
    return snli(rng, marked_text, "snli_marks")


def snli_left_out(rng: random.Random) -> Case:
    return snli(rng, lambda rng: ("A man's here.", ["A", "man", "'s", "here", "."]), "snli_left_out")


def snli_languages(rng: random.Random) -> Case:
    """A file in several languages, in which each pair comes once in each."""
    languages = rng.sample(["ar", "de", "en", "hi", "zh"], rng.randint(2, 5))
    pair = {"gold_label": "neutral", "sentence1": "A man.", "sentence2": "A dog.", "pairID": "1"}
    text = "\n".join(json.dumps({**pair, "language": language}) for language in languages)
    return Case("snli_languages", text, "snli", REFUSED)


def squad(rng: random.Random, kind: str) -> Case:
    """Paragraphs of words with marks, each answer one of the words; whatever the file calls its version."""
    paragraphs, expected, inputs = [], [], []
    for number in range(rng.randint(1, 3)):
        context, tokens = marked_text(rng)
        asked, question = marked_text(rng)
        place = rng.randrange(len(tokens))
        start = 0
        for token in tokens[:place]:
            start = context.index(token, start) + len(token)
        answer = {"text": tokens[place], "answer_start": context.index(tokens[place], start)}
        qas = [{"id": str(number), "question": asked, "answers": [answer]}]
        paragraphs.append({"context": context, "qas": qas})
        expected.append((question, tokens, [tokens[place]], tokens[place]))
        inputs.append({"context": context, "question": asked})
    version = rng.choice([{"version": "1.1"}, {"version": 1.1}, {}, {"version": "KorQuAD_v1.0"}, {"version": "v2.0"}])
    if kind == "squad_unanswerable":
        question = rng.choice(paragraphs)["qas"][0]
        question.update(rng.choice([{"answers": []}, {"is_impossible": True}, {"answers": [], "is_impossible": True}]))
        expected, inputs = REFUSED, []
    text = json.dumps({**version, "data": [{"title": "T", "paragraphs": paragraphs}]}, ensure_ascii=rng.random() < 0.5)
    return Case(kind, text, "squad", expected, inputs=inputs)


def squad_marks(rng: random.Random) -> Case:
    return squad(rng, "squad_marks")


def squad_unanswerable(rng: random.Random) -> Case:
    return squad(rng, "squad_unanswerable")


def nsmc_marks(rng: random.Random) -> Case:
    """Comments, which are composed (NFC) and lose their soft hyphens."""
    lines, expected, inputs = ["id\tdocument\tlabel"], [], []
    for number in range(rng.randint(1, 5)):
        text, tokens = marked_text(rng, joiners="\u200c\u200d")
        label = rng.randint(0, 1)
        written = text.replace("film", "fi\u00adlm")
        lines.append(f"{number}\t{written}\t{label}")
        expected.append(([normalize("NFC", token) for token in tokens], label))
        inputs += [{"text": text}, {"text": tokens}]
    inputs = inputs[::2] + inputs[1::2]
    return Case("nsmc_marks", "\n".join(lines), "nsmc", expected, inputs=inputs)


KINDS = (sst5_escapes, ner_escapes, pos_escapes, srl_escapes, coref_escapes, snli_marks, snli_left_out, snli_languages)
KINDS += (squad_marks, squad_unanswerable, nsmc_marks)


def inputs(seed: int) -> Iterator[Case]:
    """As many cases of each kind, in turn; one seed always gives the same."""
    rng = random.Random(seed)
    for _ in range(N_EACH):
        for make in KINDS:
            yield make(rng)
