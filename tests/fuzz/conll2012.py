"""Files of documents with predicates and clusters, by the grammar of CoNLL-2012, and files that are none."""

import random
from collections.abc import Callable, Iterator

from .case import REFUSED, Case

WORDS = ["Ann", "saw", "it", "1", "2", "2\u00a01/2", "서울", "and/or", "#", "."]


def document(name: str, sentences: list[list[list[str]]], begin: str = "", separator: str = " ") -> str:
    """A document; a token is its word and the cells from the lemma on, of which the last is that of mentions."""
    lines = [begin or f"#begin document ({name}); part 000"]
    for sentence in sentences:
        for k, (word, *cells) in enumerate(sentence):
            lines.append(separator.join([name, "0", str(k), word, "NN", "*", *cells]))
        lines.append("")
    return "\n".join([*lines, "#end document", ""])


def words(rng: random.Random, n: int) -> list[str]:
    return [rng.choice(WORDS[:3]), *rng.choices(WORDS, k=n - 1)]


def numbered(rng: random.Random) -> Iterator[Case]:
    """CoNLL-X, CoNLL-2009 and three columns for SRL and coreference."""
    task, width, start = rng.choice(["srl", "coref"]), rng.choice([3, 8, 10, 14, 16]), rng.randint(0, 1)
    separator = rng.choice("\t ")
    blocks = [
        "".join(separator.join([str(k), w, *["_"] * (width - 2)]) + "\n" for k, w in enumerate(found, start=start))
        for found in (words(rng, rng.randint(2, 5)) for _ in range(rng.randint(1, 12)))
    ]
    yield Case(f"{task}_numbered", "\n".join(blocks), task, REFUSED)


def shifted(rng: random.Random) -> Iterator[Case]:
    """Numbers in the column of the document or in that of the word; all else is as it should be."""
    task, start, column = rng.choice(["srl", "coref"]), rng.randint(0, 1), rng.choice([0, 3])
    lines = ["#begin document (nw/a); part 000"]
    for _ in range(rng.randint(2, 12)):
        for k, word in enumerate(words(rng, rng.randint(2, 5))):
            frame = ["run", "01", "-", "-", "*", "(V*)"] if k == 0 else ["-", "-", "-", "-", "*", "(ARG1*)"]
            row = ["nw/a", "0", str(k), word, "NN", "*", *frame, "(0)"]
            row[column] = str(start + k)
            lines.append(" ".join(row))
        lines.append("")
    yield Case(f"{task}_shifted", "\n".join([*lines, "#end document", ""]), task, REFUSED)


def marks(rng: random.Random) -> Iterator[Case]:
    """Joined files with a byte order mark each, and blank lines of any white space."""
    blank = "".join(rng.choices(" \t\u00a0\u3000\f", k=rng.randint(1, 3)))
    texts = [[words(rng, rng.randint(1, 4)) for _ in range(rng.randint(1, 3))] for _ in range(rng.randint(1, 4))]
    files = [
        document(f"nw/{n}", [[[w, *"----*", "(0)" if k == 0 else "-"] for k, w in enumerate(s)] for s in text])
        for n, text in enumerate(texts)
    ]
    expected = []
    for text in texts:
        starts = [sum(map(len, text[:k])) for k in range(len(text))]
        expected.append((text, "nw", [[(start, start + 1) for start in starts]]))
    yield Case("coref_marks", "".join("\ufeff" + f.replace("\n\n", f"\n{blank}\n") for f in files), "coref", expected)


def nested(rng: random.Random) -> Iterator[Case]:
    """Arguments within arguments and around the V: the outer ones stay, unless the V is within."""
    n = rng.randint(4, 9)
    predicate = rng.randrange(n)
    opened, closed, tags = [""] * n, [""] * n, ["O"] * n
    opened[predicate], closed[predicate], tags[predicate] = "(V", ")", "B-V"
    around, has_inner = rng.random() < 0.5, False
    if around:  # an argument from the predicate on, around the V: it is left out
        stop = rng.randint(predicate, n - 1)
        opened[predicate], closed[stop] = "(C-ARG2" + opened[predicate], closed[stop] + ")"
    else:
        stop = predicate
    for k in range(stop + 1, n - 1, 2):  # an argument of two tokens, with one on its first token in it
        if rng.random() < 0.7:
            has_inner = True
            opened[k], closed[k], closed[k + 1] = "(ARG1(ARGM-TMP", ")", ")"
            tags[k : k + 2] = ["B-ARG1", "I-ARG1"]
    found = words(rng, n)
    rows = [
        [w, *(["run", "01"] if k == predicate else ["-", "-"]), "-", "-", "*", f"{opened[k]}*{closed[k]}", "-"]
        for k, w in enumerate(found)
    ]
    text, expected = document("nw/a", [rows]), [(found, [predicate], [tags])]
    is_nested = around or has_inner
    yield Case("srl_nested", text, "srl", REFUSED if is_nested else expected, split="dev")
    yield Case("srl_nested_read", text, "srl", expected, {"nested_labels": "drop"}, split="dev")


def clusters(rng: random.Random) -> Iterator[Case]:
    """Brackets with and without |, repeated mentions, names without a slash, a folder of *.conll."""
    with_slash, files, expected = rng.random() < 0.5, {}, []
    for d in range(rng.randint(1, 4)):
        name, n = f"{'bc/' if with_slash else ''}doc{d}", rng.randint(3, 8)
        cells: list[list[str]] = [[] for _ in range(n)]
        found: dict[int, set[tuple[int, int]]] = {}
        for cluster in rng.sample(range(30), rng.randint(1, 3)):
            for start in rng.sample(range(n), rng.randint(1, 3)):
                found.setdefault(cluster, set()).add((start, start + 1))
                cells[start] += [f"({cluster})"] * rng.choice([1, 1, 2])
        long = rng.sample(range(31, 40), 2)  # from the first token to the last, one within the other
        cells[0] = [f"({long[0]}", f"({long[1]}", *cells[0]]
        cells[-1] += [f"{long[1]})", f"{long[0]})"]
        found |= {cluster: {(0, n)} for cluster in long}
        text = words(rng, n)
        rows = [[w, *"----*", glued(rng, cell) or "-"] for w, cell in zip(text, cells, strict=True)]
        begin = rng.choice([f"#begin document ({name});", f"#begin document ({name})", ""])
        files[f"{d}.conll"] = document(name, [rows], begin, "\t")
        expected.append(([text], "bc" if with_slash else "", sorted(sorted(cluster) for cluster in found.values())))
    text_or_files = files if len(files) > 1 else files["0.conll"]
    yield Case("coref_clusters", text_or_files, "coref", expected, split="dev")


def glued(rng: random.Random, pieces: list[str]) -> str:
    """Brackets of a cell; | may be left out where no two numbers meet."""
    text = ""
    for piece in pieces:
        must = text[-1:].isdigit() and piece[0].isdigit()
        text += ("|" if text and (must or rng.random() < 0.5) else "") + piece
    return text


KINDS: list[Callable[[random.Random], Iterator[Case]]] = [numbered, shifted, marks, nested, clusters]
