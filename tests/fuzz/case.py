"""One generated file, what is expected of it, and what the task's reader makes of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elmo_tasks.data.coref import CorefReader
from elmo_tasks.data.ner import NerReader
from elmo_tasks.data.nsmc import NsmcReader
from elmo_tasks.data.pos import PosReader
from elmo_tasks.data.snli import SnliReader
from elmo_tasks.data.squad import SquadReader
from elmo_tasks.data.srl import SrlReader
from elmo_tasks.data.sst5 import SstReader
from elmo_tasks.errors import MAX_SENTENCE, UserError

REFUSED = "refused in one sentence"


@dataclass
class Case:
    """A file, or several by their names, and the items that are expected of it, as :func:`plain` shows them.

    ``inputs`` are the same sentences, once or several times, as a user gives them to ``predict``.

    ``fixed`` has the reader's keys with which the same file gives the items, where ``expected`` is :data:`REFUSED`.
    """

    kind: str
    text: str | Mapping[str, str]
    task: str
    expected: Any
    keys: Mapping[str, Any] = field(default_factory=dict)
    split: str = "train"
    said: str = ""
    inputs: Sequence[Mapping[str, Any]] = ()


READERS: dict[str, Any] = {
    "ner": NerReader,
    "pos": PosReader,
    "srl": lambda **keys: SrlReader(max_training_tokens=1000, **keys),
    "sst5": lambda **keys: SstReader(phrases=False, **keys),
    "nsmc": NsmcReader,
    "snli": SnliReader,
    "squad": lambda **keys: SquadReader(max_tokens=1000, **keys),
    "coref": lambda **keys: CorefReader(max_training_sentences=1000, **keys),
}


def plain(task: str, items: list[Any]) -> Any:
    """Items as the generator describes them."""
    if task == "ner":
        return [(item.tokens, item.spans) for item in items]
    if task == "pos":
        return [(item.tokens, item.tags) for item in items]
    if task == "srl":
        return [(item.tokens, item.gold["predicates"], item.gold["tags"]) for item in items]
    if task in ("sst5", "nsmc"):
        return [(item.tokens, item.label) for item in items]
    if task == "snli":
        return [(item.premise, item.hypothesis, item.label) for item in items]
    if task == "squad":
        return [(i.question, i.paragraph.words, i.gold["answers"], i.paragraph.text(*i.span)) for i in items]
    clusters = [sorted(sorted(cluster) for cluster in item.gold["clusters"]) for item in items]
    return [(item.sentences, item.genre, found) for item, found in zip(items, clusters, strict=True)]


def read(case: Case, folder: Path) -> Any:
    """What the reader makes of a case: its items, or :data:`REFUSED`; the sentence is then in ``case.said``.

    Raises:
        AssertionError: if it is refused in anything but one short sentence.
    """
    files = {"file": case.text} if isinstance(case.text, str) else case.text
    for name, text in files.items():
        (folder / name).write_bytes(text.encode())
    try:
        reader = READERS[case.task](**case.keys)
        return plain(case.task, reader.read_file(folder / "file" if len(files) == 1 else folder, case.split))
    except UserError as error:
        case.said = str(error)
        assert str(folder) in case.said
        assert len(case.said.replace(str(folder), "")) <= MAX_SENTENCE
        return REFUSED
