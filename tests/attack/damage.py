"""Seeded damage to a file's bytes, to JSON by its structure, and what may stand in a file's place."""

import json
import random
from pathlib import Path

TOKENS = [
    *[b"\0", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\r\n", b"\r", b"\n\n", b"\t", b"\t\t", b" "],
    *[
        b"(",
        b")",
        b"[",
        b"]",
        b"{",
        b"}",
        b'"',
        b"'",
        b"\\",
        b"/",
        b"|",
        b"-",
        b"_",
        b"*",
        b"%",
        b"<",
        b">",
        b"&",
        b"#",
    ],
    *[b"-1", b"0", b"1e999", b"NaN", b"Infinity", b"null", b"true", b"99999999999999999999", b"\\ud800"],
    *["\u2028".encode(), "\u0085".encode(), "\u00a0".encode(), b"-DOCSTART-", b"#begin document (x)", b"#end document"],
    *[b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"x" * 2000, b"(" * 2000, b"[" * 2000, b"word " * 500],
]
VALUES = [None, True, False, 0, -1, 1.5, 10**9, 10**30, 1e308, "", "x", "x" * 1000, "\ud800", [], {}, [[]], [1, "a"]]


def replaced(path: Path, k: int) -> None:
    """What stands in a file's place without being one, or holds far too much: the k-th of ``N_REPLACEMENTS``."""
    path.unlink()
    match k:
        case 0:
            return  # it is missing
        case 1:
            path.mkdir()
        case 2:
            path.symlink_to("/dev/zero")
        case 3:
            path.write_bytes(b"[" * 1_000_000)
        case 4:
            path.write_bytes(b"x" * 30_000_000)


N_REPLACEMENTS = 5


def damaged(content: bytes, rng: random.Random) -> bytes:
    """A copy with one to four changes."""
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        content = rng.choice(CHANGES)(content, rng)
    return content


def flip(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]


def flip_near_the_start(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(min(len(content), 200) + 1)
    return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]


def truncate(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.choice([0, 1, rng.randrange(len(content) + 1), max(0, len(content) - 1)])]


def delete(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + content[at + rng.choice([1, 5, 100]) :]


def duplicate(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + content[at : at + rng.choice([1, 10, 300])] * 2 + content[at:]


def insert(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.choice(TOKENS) + content[at:]


def insert_noise(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.randbytes(rng.choice([1, 4, 50])) + content[at:]


def swap_lines(content: bytes, rng: random.Random) -> bytes:
    lines = content.split(b"\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return b"\n".join(lines)


def drop_line(content: bytes, rng: random.Random) -> bytes:
    lines = content.split(b"\n")
    del lines[rng.randrange(len(lines))]
    return b"\n".join(lines)


def replace_byte_everywhere(content: bytes, rng: random.Random) -> bytes:
    if not content:
        return content
    return content.replace(bytes([rng.choice(content)]), rng.choice([b"", b" ", b"\t", b"\xe9", b"0"]))


def carriage_returns(content: bytes, rng: random.Random) -> bytes:
    return content.replace(b"\n", b"\r\n")


CHANGES = [
    *[flip, flip, flip_near_the_start, truncate, delete, duplicate, insert, insert, insert, insert_noise],
    *[swap_lines, drop_line, replace_byte_everywhere, carriage_returns],
]


def damaged_json(content: bytes, rng: random.Random) -> bytes:
    """A copy that stays JSON: values replaced, keys dropped or added, anywhere; now and then damaged bytes."""
    if rng.random() < 0.3:
        return damaged(content, rng)
    document = json.loads(content)
    for _ in range(rng.choice([1, 1, 2])):
        places = list(_places(document))
        if not places:
            break
        parent, key = rng.choice(places)
        change = rng.choice(["replace", "replace", "drop", "add"])
        if change == "replace":
            parent[key] = rng.choice(VALUES)
        elif change == "drop":
            del parent[key]
        elif isinstance(parent, dict):
            parent[rng.choice(["", "x", "x" * 500, "name"])] = rng.choice(VALUES)
        else:
            parent.insert(key, rng.choice(VALUES))
    return json.dumps(document).encode()


def _places(document):
    """Every container with each of its keys."""
    pairs = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in list(pairs) if isinstance(document, (dict, list)) else ():
        yield document, key
        if isinstance(value, (dict, list)):
            yield from _places(value)
