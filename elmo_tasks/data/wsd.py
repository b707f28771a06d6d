"""Word sense disambiguation: SemCor to learn from, all-words sets to score, WordNet's senses to choose from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elmo_tasks.data.files import decompressed_name, refuse_copies
from elmo_tasks.data.leaks import refuse_leaks
from elmo_tasks.data.senses import Lemma, SenseSentence, parse_lemma, read_inventory, read_sense_corpus
from elmo_tasks.data.source import SPLITS
from elmo_tasks.data.splits import take_fraction
from elmo_tasks.errors import UserError, quoted
from elmo_tasks.files import digest_files

_TEXT, _KEYS = ".data.xml", ".gold.key.txt"


class WsdData:
    """Folders of ``NAME.data.xml`` (plain, .xz, .gz or .bz2), each file with its ``NAME.gold.key.txt``.

    Args:
        root: where all of them are.
        train: folder of the training text.
        dev, test: folders of the sets to score; a set is named as its folder. Missing test sets are an error only
            when they are to be scored.
        senses: WordNet's ``index.sense``.
        fraction: share of the training sentences that is used; the same ones for a given seed.
        seed: of the fraction.

    Raises:
        UserError: if a folder or file is missing, two sets have one name, or a training file is in another split.
    """

    def __init__(
        self,
        *,
        root: str,
        train: str,
        dev: Sequence[str],
        test: Sequence[str],
        senses: str,
        fraction: float,
        seed: int,
    ) -> None:
        if not Path(root).is_dir():
            raise UserError(f"data.root={root}: no such folder")
        self.fraction, self.seed = fraction, seed
        self.senses = Path(root) / senses
        self.missing = [folder for folder in test if not (Path(root) / folder).exists()]
        if not self.senses.is_file():
            raise UserError(f"{self.senses}: no such file; set data.root, or task.data.senses to its place below it")
        folders = {"train": [train], "dev": dev, "test": test}
        for split in ("dev", "test"):
            _check_names(folders[split], f"task.data.{split}")
        self.files = {
            split: {Path(folder).name: _pairs(Path(root) / folder, split) for folder in folders[split]}
            for split in SPLITS
            if split != "test" or not self.missing
        }
        refuse_leaks({split: self._list_files(split) for split in self.files})
        self.digest = self._digest("train", "dev", also=[self.senses])
        self.test_digest = self._digest("test") if "test" in self.files else None

    def _digest(self, *splits: str, also: Sequence[Path] = ()) -> str:
        """Digest of the texts of some splits, of the names of their sets, and of which set each text is in."""
        sets = {split: {name: len(pairs) for name, pairs in self.files[split].items()} for split in splits}
        files = [file for split in splits for file in self._list_files(split)]
        return digest_files([*files, *also], json.dumps(sets).encode())

    def _list_files(self, split: str) -> list[Path]:
        return [file for pairs in self.files[split].values() for pair in pairs for file in pair]

    def read(self, splits: Sequence[str]) -> None:
        """Read the training text, these splits and the senses of all their lemmas.

        Raises:
            UserError: for bad input.
        """
        for split in splits:
            if split not in self.files:
                missing = ", ".join(self.missing)
                raise UserError(f"{missing}: no such folder; set data.root, or task.data.test to the test sets")
        self.sets: dict[str, dict[str, list[SenseSentence]]] = {
            split: {
                name: [sentence for text, keys in pairs for sentence in read_sense_corpus(text, keys)]
                for name, pairs in self.files[split].items()
            }
            for split in splits
        }
        (train,) = self.sets["train"].values()
        self.original = len(train)
        self.train = take_fraction(train, self.fraction, self.seed)
        instances = [i for sets in self.sets.values() for part in sets.values() for s in part for i in s.instances]
        lemmas = {i.lemma for i in instances} | {parse_lemma(key) for i in instances for key in i.keys}
        self.inventory: dict[Lemma, list[str]] = read_inventory(self.senses, lemmas)

    def sentences(self) -> list[list[str]]:
        """All token lists that :meth:`read` has read and the training uses."""
        scored = [s for split in self.sets if split != "train" for part in self.sets[split].values() for s in part]
        return [sentence.tokens for sentence in (*self.train, *scored)]

    def counts(self) -> dict[str, Any]:
        """How many sentences each split had and how many are used, and their instances by set."""
        numbers = {split: sum(map(len, sets.values())) for split, sets in self.sets.items()}
        sizes = {split: {"original": n, "used": n} for split, n in numbers.items()}
        sizes["train"] = {"original": self.original, "used": len(self.train)}
        instances = {
            split: {name: _count(part) for name, part in sets.items()}
            for split, sets in self.sets.items()
            if split != "train"
        }
        return {**sizes, "instances": {"train": _count(self.train), **instances}}


def _count(sentences: Sequence[SenseSentence]) -> int:
    return sum(len(sentence.instances) for sentence in sentences)


def _check_names(folders: Sequence[str], key: str) -> None:
    """Check that the sets of a split can be told apart, and from the score of all of them, by their folders' names."""
    names = [Path(folder).name for folder in folders]
    for name in names:
        if names.count(name) > 1 or name == "f1":
            raise UserError(f"{key}: a set has the name of its folder, so {quoted(name)} must be another name")


def _pairs(folder: Path, split: str) -> list[tuple[Path, Path]]:
    """The text files of a folder, each with its keys."""
    texts = sorted(path for path in folder.glob(f"*{_TEXT}*") if decompressed_name(path).endswith(_TEXT))
    refuse_copies(texts)
    if not texts:
        raise UserError(f"{folder}: no *{_TEXT} in it; set data.root, or task.data.{split} to its place below it")
    pairs = [(text, folder / f"{text.name.partition(_TEXT)[0]}{_KEYS}") for text in texts]
    for text, keys in pairs:
        if not keys.is_file():
            raise UserError(f"{keys}: no such file; expected the sense keys of {text.name}")
    return pairs
