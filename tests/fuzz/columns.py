"""Files of columns and of trees by the grammar of their formats.

The writer of a file knows its words and tags, so that what a reader must find is known without reading anything.
"""

import random
from collections.abc import Callable, Iterator

from .case import REFUSED, Case
from .conll2012 import KINDS as KINDS_2012

N_EACH = 100
"""How many files of each kind a seed gives."""

WORDS = ["The", "dog", "ran", ",", "Oslo", "EU-27", "2\u00a01/2", "naïve", "#", "co-op", "서울", "'S", "(", "3.5"]
WORDS += ["...", "a\u2028b", "-LRBX"]
TAGS = ["DT", "NN", "VBD", ".", "NNP", "CD"]
TYPES = ["PER", "LOC", "creative-work"]

Sentences = list[tuple[list[str], list[str]]]


def sentences(rng: random.Random, tags: list[str] | None = None, n: int = 0) -> Sentences:
    """Words and tags; one of the sentences has two words at least."""
    found = []
    for k in range(n or rng.randint(1, 14)):
        length = rng.randint(1 if k else 2, 6)
        words = rng.sample(WORDS, length)
        found.append((words, rng.choices(tags, k=length) if tags else iob2(rng, length)))
    return rng.sample(found, len(found))


def iob2(rng: random.Random, length: int) -> list[str]:
    """Random entities, one at least."""
    tags: list[str] = []
    while len(tags) < length:
        kind, size = rng.choice(TYPES), rng.randint(1, 3)
        tags += [f"B-{kind}", *[f"I-{kind}"] * (size - 1)] if not tags or rng.random() < 0.4 else ["O"]
    return tags[:length]


def spans(tags: list[str]) -> list[tuple[int, int, str]]:
    """Those of IOB2 tags."""
    begins = [k for k, tag in enumerate(tags) if tag[0] == "B"]
    ends = [next((k for k in range(b + 1, len(tags)) if tags[k][0] != "I"), len(tags)) for b in begins]
    return [(b, e, tags[b][2:]) for b, e in zip(begins, ends, strict=True)]


def ner(found: Sentences) -> list[tuple[list[str], list[tuple[int, int, str]]]]:
    return [(words, spans(tags)) for words, tags in found]


def joined(rows: list[list[list[str]]], separator: str, blank: str = "") -> str:
    """The text of a file from the columns of each token of each sentence."""
    return f"\n{blank}\n".join("\n".join(separator.join(row) for row in sentence) for sentence in rows) + "\n"


def numbered(rng: random.Random, found: Sentences, middle: list[str], after: int, on: bool) -> list[list[list[str]]]:
    """Columns: number, word, ``middle``, tag, ``after`` others; ``on`` counts through all sentences."""
    start, rows, count = rng.randint(0, 1), [], 0
    for words, tags in found:
        count = count if on else 0
        rows.append([])
        for word, tag in zip(words, tags, strict=True):
            rows[-1].append([str(start + count), word, *middle, tag, *rng.choices(["_", "x", "0"], k=after)])
            count += 1
    return rows


def ner_numbered(rng: random.Random) -> Iterator[Case]:
    """The token's number first, as NeuroNLP2 and GermEval have it; 3 to 7 columns, the tag last or not."""
    found, middle, after = sentences(rng), rng.choice([[], ["NN"], ["NN", "I-NP"]]), rng.choice([0, 0, 1, 2])
    text = joined(numbered(rng, found, middle, after, rng.random() < 0.2), rng.choice(["\t", " ", "  "]))
    yield Case("ner_numbered", text, "ner", REFUSED)
    keys = {"token_column": 2, **({"tag_column": -1 - after} if after else {})}
    yield Case("ner_numbered_read", text, "ner", ner(found), keys)


def pos_numbered(rng: random.Random) -> Iterator[Case]:
    """Three to fourteen columns, tabs or spaces, the numbers from 0 or 1, in each sentence or through all."""
    found, middle, width = sentences(rng, TAGS), ["lemma"] * rng.randint(0, 2), rng.randint(3, 14)
    rows = numbered(rng, found, middle, max(0, width - 3 - len(middle)), rng.random() < 0.3)
    text = joined(rows, rng.choice(["\t", " ", "   "]))
    yield Case("pos_numbered", text, "pos", REFUSED)
    yield Case("pos_numbered_read", text, "pos", found, {"token_column": 2, "tag_column": 3 + len(middle)})


def conll_2009(rng: random.Random) -> Iterator[Case]:
    """One column more for each predicate of a sentence: the sentences are of different widths."""
    found = sentences(rng, TAGS)
    rows = []
    for words, tags in found:
        more = ["_"] * rng.randint(0, 3)
        numbers = range(1, len(words) + 1)
        rows.append(
            [
                [str(k), w, "l", "l", t, t, *"______", "_", "_", *more]
                for k, w, t in zip(numbers, words, tags, strict=True)
            ]
        )
    text = joined(rows, rng.choice(["\t", " "]))
    yield Case("conll_2009", text, "pos", REFUSED)
    yield Case("conll_2009_read", text, "pos", found, {"token_column": 2, "tag_column": 5})


def conll_u(rng: random.Random) -> Iterator[Case]:
    """With or without comments, ranges and empty nodes."""
    found, comments, lines = sentences(rng, TAGS), rng.random() < 0.6, []
    for n, (words, tags) in enumerate(found):
        lines += [f"# sent_id = s-{n}", f"# text = {' '.join(words)}"] if comments else []
        for k, (word, tag) in enumerate(zip(words, tags, strict=True), start=1):
            if rng.random() < 0.2 and k < len(words):
                lines.append("\t".join([f"{k}-{k + 1}", word + words[k], *"________"]))
            lines.append("\t".join([str(k), word, "l", tag, *"______"]))
            if rng.random() < 0.1:
                lines.append("\t".join([f"{k}.1", "empty", "l", "X", *"______"]))
        lines.append("")
    text = "\n".join(lines) + "\n"
    keys = {"token_column": 2, "tag_column": 4, **({"comment": "#"} if comments else {})}
    yield Case("conll_u", text, "pos", REFUSED)
    yield Case("conll_u_read", text, "pos", found, keys)


def real_numbers(rng: random.Random) -> Iterator[Case]:
    """Words that are numbers: counting sentences among others, prices, dates, nothing but lists."""
    kind = rng.randrange(5)
    if kind == 0:
        count = [str(k) for k in range(rng.randint(0, 1), rng.randint(3, 6))]
        words = [count, *(s for s, _ in sentences(rng, TAGS, 4)), count]
        rng.shuffle(words)
    elif kind == 1:
        words = [[f"{rng.randint(2, 99)}.{rng.randint(10, 99)}", "EUR", "1"] for _ in range(rng.randint(1, 20))]
    elif kind == 2:
        words = [[str(rng.randint(1, 31)), str(rng.randint(1, 12)), "1999"] for _ in range(rng.randint(1, 20))]
    else:
        words = [["1", "2", "3", "4"][: rng.randint(1, 4)] for _ in range(1 if kind == 3 else 12)]
    tags = [["CD"] * len(sentence) for sentence in words]
    separator, more = rng.choice(["\t", " "]), rng.choice([[], ["B-NP"], ["x", "y"]])
    rows = [[[w, t, *more] for w, t in zip(ws, ts, strict=True)] for ws, ts in zip(words, tags, strict=True)]
    yield Case("real_numbers", joined(rows, separator), "pos", list(zip(words, tags, strict=True)))


def trees(rng: random.Random) -> Iterator[Case]:
    """One a line or over several, with and without a root of its own, null elements left out."""
    found, lines, inside = sentences(rng, TAGS), [], rng.choice([" ", "\n    "])
    begin, end = rng.choice([("( ", " )"), ("(TOP ", ")"), ("", "")])
    for words, tags in found:
        words[:] = ["x" if word == "(" else word for word in words]
        leaves = [f"({tag} {word})" for word, tag in zip(words, tags, strict=True)]
        leaves.insert(rng.randint(0, len(leaves)), "(NP (-NONE- *T*-1))")
        lines.append(f"{begin}(S{inside}{inside.join(leaves)}){end}")
    yield Case("trees", rng.choice(["\n", "\n\n"]).join(lines) + "\n", "pos", found)


def bracket_first(rng: random.Random) -> Iterator[Case]:
    """Columns whose first token is a bracket."""
    found = sentences(rng, TAGS)
    found[0][0][0], found[0][1][0] = "(", rng.choice(["(", "-LRB-"])
    rows = [[list(pair) for pair in zip(words, tags, strict=True)] for words, tags in found]
    yield Case("bracket_first", joined(rows, rng.choice(["\t", " "])), "pos", found)


def marks(rng: random.Random) -> Iterator[Case]:
    """Files with a byte order mark each, joined."""
    parts = [sentences(rng) for _ in range(rng.randint(1, 4))]
    head = rng.choice(["", "-DOCSTART- O\n\n"])
    rows = [[[list(pair) for pair in zip(words, tags, strict=True)] for words, tags in part] for part in parts]
    text = "\n".join("\ufeff" + head + joined(part, " ") for part in rows)
    yield Case("marks", text, "ner", ner([sentence for part in parts for sentence in part]))


def white_space(rng: random.Random) -> Iterator[Case]:
    """Lines of any white space between sentences; a token may hold some."""
    found = sentences(rng)
    rows = [[list(pair) for pair in zip(words, tags, strict=True)] for words, tags in found]
    blank = "".join(rng.choices(" \t\u00a0\u3000\f\v\u2003\u1680", k=rng.randint(1, 4)))
    yield Case("white_space", joined(rows, rng.choice(["\t", " "]), blank), "ner", ner(found))


def commented(rng: random.Random) -> Iterator[Case]:
    """Comments of a mark with which tokens begin too; tokens with spaces between tabs."""
    found = [([*words, "#"], [*tags, "O"]) for words, tags in sentences(rng)]
    mark, tabs = rng.choice(["#", "##"]), rng.random() < 0.5
    for words, _ in found if tabs else []:
        words[0] = rng.choice([" ", "New York", words[0]])
    blocks = [
        f"{mark} id {n} a b c\n" + "".join(f"{w}\t{t}\n" for w, t in zip(words, tags, strict=True))
        for n, (words, tags) in enumerate(found)
    ]
    keys = {"comment": mark, **({"separator": "tab"} if tabs else {})}
    yield Case("commented", "\n".join(blocks), "ner", ner(found), keys)


def schemes(rng: random.Random) -> Iterator[Case]:
    """Plain B and I, BMES, BMEWO; two tags in one, and tags with and without a type in one file."""
    found = sentences(rng)
    kind = rng.choice(["plain", "BMES", "BMEWO", "mixed", "double"])
    rows = []
    for words, tags in found:
        spelled = ["O"] * len(tags)
        for start, stop, name in spans(tags):
            letters = ["S" if kind == "BMES" else "W"] if stop - start == 1 else ["B", *"M" * (stop - start - 2), "E"]
            spelled[start:stop] = [f"{letter}-{name}" for letter in letters]
        if kind not in ("BMES", "BMEWO"):
            spelled = [tag[0] if kind == "plain" else tag for tag in tags]
        rows.append([list(pair) for pair in zip(words, spelled, strict=True)])
    if kind == "mixed":
        rows.append([["gene", "B"]])
    if kind == "double":
        rows[-1][0][1] = "B-PER|B-LOC"
    expected = [(w, [(a, b, "ENTITY" if kind == "plain" else name) for a, b, name in spans(t)]) for w, t in found]
    yield Case(f"schemes_{kind}", joined(rows, " "), "ner", REFUSED if kind in ("mixed", "double") else expected)


KINDS: list[Callable[[random.Random], Iterator[Case]]] = [
    *[ner_numbered, pos_numbered, conll_2009, conll_u, real_numbers, trees, bracket_first, marks, white_space],
    *[commented, schemes],
    *KINDS_2012,
]


def inputs(seed: int) -> Iterator[Case]:
    """:data:`N_EACH` files of each kind in turn, always the same for a seed."""
    for n in range(N_EACH):
        for kind in KINDS:
            yield from kind(random.Random(f"{seed}-{n}-{kind.__name__}"))
