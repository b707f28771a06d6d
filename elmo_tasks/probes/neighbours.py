"""Nearest neighbours of a word in its context (Table 4): ``python -m elmo_tasks.probes.neighbours play --text FILE``.

Every token of a text is a candidate. Those whose vectors in a biLM layer have the largest cosine with the source's are
shown in their sentences, beside the neighbours of the word's static vector. ``--out FILE.json`` writes

* ``word``, ``candidates``, ``k``; ``bilm`` (name, digest, state); ``text`` (files, digest, sentences, tokens);
* ``static``: ``vectors`` (where they are from) and ``neighbours``, each with ``word`` and ``cosine``;
* ``sources``: for each its ``tokens`` and ``position``, and ``layers``: by layer a list of neighbours, the nearest
  first, each with ``cosine``, ``tokens`` and ``position``;
* ``created``, ``seconds``, and ``commit``, ``dirty``, ``versions`` as in a row.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from elmo_tasks.bilm import BiLM
from elmo_tasks.command_line import run_command
from elmo_tasks.data.corpus import read_sentences
from elmo_tasks.errors import UserError
from elmo_tasks.files import digest_files, write_json
from elmo_tasks.nn.characters import composed
from elmo_tasks.nn.words import WordVectors
from elmo_tasks.places import SAMPLE_TEXT
from elmo_tasks.probes.nearest import CANDIDATES, find_source, first_sources, nearest
from elmo_tasks.progress import counting
from elmo_tasks.rows.provenance import provenance
from elmo_tasks.training.memory import keep_freed_memory

_WINDOW = 9  # words shown on each side


class _Counted:
    """Sentences of some files; counts them as they are read and shows the progress."""

    def __init__(self, texts: Sequence[Path]) -> None:
        self.texts, self.sentences, self.tokens = texts, 0, 0

    def __iter__(self) -> Iterator[list[str]]:
        with counting("neighbours", None) as counter:
            for sentence in chain.from_iterable(map(read_sentences, self.texts)):
                self.sentences += 1
                self.tokens += len(sentence)
                counter.update(len(sentence))
                yield sentence


def static_neighbours(word: str, k: int, vectors: Path | None) -> dict[str, Any]:
    """Neighbours of the word's static vector; none without a vector."""
    try:
        words = WordVectors(
            name="glove",
            path=str(vectors) if vectors else None,
            dim=_dimension(vectors) if vectors else 50,
            lowercase=True,
        )
        found = words.nearest(word, k)
    except UserError as error:
        if vectors is not None:
            raise
        return {"vectors": None, "why": str(error), "neighbours": []}
    neighbours = [{"word": other, "cosine": round(cosine, 6)} for other, cosine in found]
    return {"vectors": words.where, "neighbours": neighbours}


def _dimension(vectors: Path) -> int:
    try:
        with vectors.open(encoding="utf-8") as lines:
            return max(1, len(next(lines, "").split()) - 1)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{vectors}: cannot be read ({error})") from error


def run(chosen: argparse.Namespace) -> dict[str, Any]:
    """The result for parsed arguments; its fields are described at the top of this file."""
    start = time.perf_counter()
    if chosen.out is not None and not chosen.out.parent.is_dir():
        raise UserError(f"--out {chosen.out}: no such folder")
    texts = chosen.text or sorted(SAMPLE_TEXT.glob("*.txt"))
    sources = [find_source(chosen.word, sentence) for sentence in chosen.sentence]
    if not sources:
        sources = first_sources(chosen.word, chain.from_iterable(map(read_sentences, texts)), chosen.occurrences)
    if not sources:
        raise UserError(f"{chosen.word!r} is not in {', '.join(map(str, texts))}; give a sentence: --sentence '...'")
    bilm, text = BiLM.load(chosen.bilm), _Counted(texts)
    found = nearest(bilm, sources, text, chosen.k, chosen.candidates)
    return {
        "word": chosen.word,
        "candidates": chosen.candidates,
        "k": chosen.k,
        "bilm": {"name": Path(chosen.bilm).name, "digest": bilm.digest, "state": "reset"},
        "text": {
            "files": [path.name for path in texts],
            "digest": digest_files(texts),
            "sentences": text.sentences,
            "tokens": text.tokens,
        },
        "static": static_neighbours(chosen.word, chosen.k, chosen.vectors),
        "sources": [
            {
                **asdict(source),
                "layers": [[{"cosine": cosine, **asdict(near)} for cosine, near in best.found] for best in layers],
            }
            for source, layers in zip(sources, found, strict=True)
        ],
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.perf_counter() - start, 2),
        **provenance(),
    }


def show(result: dict[str, Any], console: Console) -> None:
    """Print a result: one line per neighbour, with the word in brackets within its sentence."""
    static = result["static"]
    words = ", ".join(f"{near['word']} {near['cosine']:.2f}" for near in static["neighbours"])
    console.print(
        Text.assemble((result["word"], "bold"), f" in {static['vectors']}: {words}" if words else static["why"])
    )
    for source in result["sources"]:
        console.print(Text.assemble("\n", _in_context(source, whole=True)), soft_wrap=True)
        for layer, neighbours in enumerate(source["layers"]):
            console.print(f"  layer {layer}", style="bold")
            for near in neighbours:
                console.print(Text.assemble(f"    {near['cosine']:.3f}  ", _in_context(near)), soft_wrap=True)
    text = result["text"]
    console.print(f"\n{text['sentences']:,} sentences, {text['tokens']:,} tokens, {result['seconds']:.0f} seconds")


def _in_context(occurrence: dict[str, Any], whole: bool = False) -> Text:
    tokens, k = occurrence["tokens"], occurrence["position"]
    first, last = (0, len(tokens)) if whole else (max(0, k - _WINDOW), k + 1 + _WINDOW)
    before = ("... " if first > 0 else "") + "".join(f"{token} " for token in tokens[first:k])
    after = "".join(f" {token}" for token in tokens[k + 1 : last]) + (" ..." if last < len(tokens) else "")
    return Text.assemble(before, (f"[{tokens[k]}]", "bold"), after)


def main(arguments: list[str]) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m elmo_tasks.probes.neighbours")
    parser.add_argument("word", type=composed)
    parser.add_argument("--text", type=Path, nargs="+", help="one tokenised sentence per line, plain, .xz, .gz or .bz2")
    parser.add_argument(
        "--sentence",
        type=composed,
        action="append",
        default=[],
        help="a tokenised source sentence; *word* marks which occurrence",
    )
    parser.add_argument(
        "--occurrences", type=_positive, default=2, help="without --sentence: use the first n in the text (2)"
    )
    parser.add_argument("-k", type=_positive, default=5, help="neighbours to show (5)")
    parser.add_argument("--candidates", default="all", choices=CANDIDATES, help="all words, the same, or other ones")
    parser.add_argument("--bilm", default="mini", help="mini, small, mini_ko, or a folder with its two files")
    parser.add_argument("--vectors", type=Path, help="a GloVe text file; else the package's vectors")
    parser.add_argument("--out", type=Path, help="also write the result to this JSON file")
    chosen = parser.parse_args(arguments)
    keep_freed_memory()
    result = run(chosen)
    if chosen.out is not None:
        write_json(chosen.out, result)
    show(result, Console(highlight=False))


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, found {text!r}")
    return int(text)


if __name__ == "__main__":
    run_command(main)
