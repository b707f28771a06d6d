"""Files with a mistake in them: copies of good ones in which something was replaced.

Each mistake is a name, the file or folder that is copied (below the work folder; RUN is a finished run), the file in
it, what is replaced once in its bytes (all of them, where there is nothing) and by what (None: the file is removed),
and the command that reads the copy, BAD.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

QUICK = "elmo.placement=none words=random logger=none trainer.progress=false data=local data.root=data"
HEADER = b"id\tdocument\tlabel\n"


@dataclass(frozen=True)
class Mistake:
    """See above."""

    name: str
    source: str
    inner: str
    old: bytes
    new: bytes | None
    command: str


def _of_task(task: str, source: str, *edits: tuple[bytes, bytes]) -> Iterator[Mistake]:
    for k, (old, new) in enumerate(edits):
        yield Mistake(
            f"{task} file {k}", f"data/{source}", "", old, new, f"run task={task} {QUICK} task.files.train=BAD"
        )


def _of_folder(name: str, source: str, command: str, *edits: tuple[str, bytes, bytes | None]) -> Iterator[Mistake]:
    for k, (inner, old, new) in enumerate(edits):
        yield Mistake(f"{name} {k}", source, inner, old, new, command)


def mistakes() -> Iterator[Mistake]:
    """All of them."""
    yield from _of_task(
        "ner",
        "conll2003/eng.train",
        (b"", b""),
        (b" I-NP O\n", b"\n"),
        (b"CD I-NP O", b"CD I-NP X-PER"),
        (b"CD I-NP O", b"CD I-NP I-"),
        (b"CD I-NP O", b"CD I-NP"),
        (b"Four", b"New York"),
        (b"Four", b"x" * 1001),
        (b"Four", b"\xe9t\xe9"),
        (b"", "Vier CD I-NP O\n".encode("utf-16")),
        (b"", b"1\tFour\t_\tCD\n2\tmen\t_\tNN\n"),
        (b"", b"the cat sat\non the mat\n"),
        (b"Four CD I-NP O\n", b"Four CD I-NP O\rmen NN I-NP O\n"),
    )
    yield from _of_task(
        "srl",
        "srl/train.conll",
        (b"", b""),
        (b"#begin document", b"#start document"),
        (b"#begin document (sample/news_01); part 000", b"#begin document sample"),
        (b"#end document\n", b""),
        (b"#end document\n", b"#end document\n#end document\n"),
        (b"(ARG1*", b"*"),
        (b"(ARG1*", b"(BANANA*"),
        (b"(ARG1*", b"(ARG1(ARG2*"),
        (b"(ARG1*", b"ARG1*"),
        (b"(V*)", b"*"),
        (b"The\tDT", b"The"),
        (b"bridge", b""),
        (b"(ARG1*", b"(C-R-ARG1*"),
    )
    yield from _of_task(
        "coref",
        "coref/train.conll",
        (b"", b""),
        (b"(0\n", b"(0\nx\n"),
        (b"(0\n", b"0)\n"),
        (b"(0\n", b"(zero\n"),
        (b"harbour", b"\xe9"),
        (b"#end document\n", b""),
        (b"#begin document (nw/wire/nw_0001)", b"#begin document (xx/wire/nw_0001)"),
    )
    yield from _of_task(
        "sst5",
        "sst/train.txt",
        (b"", b""),
        (b"(3 ", b"(7 "),
        (b"(3 ", b"(3"),
        (b"(2 Could)", b"(2 )"),
        (b"(2 Could)", b"Could"),
        (b"\n", b")\n"),
        (b"\n", b" (2 more)\n"),
        (b"))\n", b")\n"),
        (b"Could", "é".encode("latin-1")),
        (b"", b"good\t3\n"),
    )
    yield from _of_task(
        "snli",
        "snli/snli_1.0_train.jsonl",
        (b"", b""),
        (b"{", b""),
        (b"", b"[1]\n"),
        (b'"gold_label": "contradiction"', b'"gold_label": "Contradiction"'),
        (b'"gold_label": "contradiction"', b'"gold_label": 1'),
        (b'"gold_label"', b'"label"'),
        (b'"sentence1": "A', b'"sentence1": 5, "x": "A'),
        (b'"sentence1"', b'"premise"'),
        (b'"pairID": "s0001.jpg#2r1n"', b'"pairID": "s0001.jpg#2r1c"'),
        (b"raincoat", b"\xff"),
        (b"A woman in", b"x" * 1001),
    )
    yield from _of_task(
        "squad",
        "squad/train-v1.1.json",
        (b"", b""),
        (b"{", b"["),
        (b"", b"[]"),
        (b'"1.1"', b'"2.0"'),
        (b'"version"', b'"Version"'),
        (b'"data"', b'"dat"'),
        (b'"paragraphs"', b'"paragraph"'),
        (b'"context"', b'"text"'),
        (b'"qas"', b'"questions"'),
        (b'"question"', b'"quest"'),
        (b'"id": "', b'"id": 7, "_": "'),
        (b'"answer_start": ', b'"answer_start": 9'),
        (b'"answer_start": ', b'"answer_start": "x", "y": '),
        (b'"answers"', b'"answer"'),
        (b"Danube", b"\xff"),
    )
    yield from _of_task(
        "nsmc",
        "nsmc/ratings_train.txt",
        (b"", b""),
        (HEADER, b"id,document,label\n"),
        (b"\t1\n", b"\t2\n"),
        (b"\t1\n", b"\n"),
        (b"49668\t", b"38336\t"),
        (b"", HEADER + "1\t좋다\t1\n".encode("cp949")),
    )
    yield from _of_task(
        "pos",
        "ptb/00/sample.mrg",
        (b"", b""),
        (b"(", b""),
        (b")) )\n", b") )\n"),
        (b"(NN ", b"NN "),
        (b"(DT ", b"(DT x "),
    )
    yield from _of_folder(
        "pos columns",
        "data/conll2003/eng.train",
        f"run task=pos {QUICK.replace('random', 'glove')} task.files.train=BAD task.files.dev=conll2003/eng.testa",
        ("", b"CD I-NP O", b"CD"),
        ("", b"", b"a\nb\n"),
    )
    yield from _of_folder(
        "wsd files",
        "data/wsd/semcor",
        "run task=wsd task.data.train=BAD elmo.placement=none data=local data.root=data logger=none",
        ("sample.data.xml", b"<sentence", b"<sentense"),
        ("sample.data.xml", b"", b""),
        ("sample.data.xml", b"<corpus", b'<!DOCTYPE corpus [<!ENTITY a "b">]><corpus'),
        ("sample.data.xml", b' pos="', b' pos="X'),
        ("sample.data.xml", b"<instance id=", b"<instance name="),
        ("sample.data.xml", b"<corpus", b"<text"),
        ("sample.gold.key.txt", b"%", b"#"),
        ("sample.gold.key.txt", b"", b""),
        ("sample.gold.key.txt", b"\n", b" x\n"),
        ("sample.gold.key.txt", b"", None),
    )
    yield from _of_folder(
        "vectors",
        "vectors.txt",
        "run task=ner elmo.placement=none words.dim=3 words.path=BAD logger=none",
        ("", b"", b""),
        ("", b"the ", b"the 1 "),
        ("", b"the -0.500", b"the x"),
        ("", b"cat", b"\xff"),
        ("", b"", b"il 1 2 3\n"),
        ("", b"", b"the 1 nan 3\n"),
    )
    yield from _of_folder(
        "biLM",
        "bilm",
        "run task=ner bilm.path=BAD logger=none",
        ("options.json", b"", None),
        ("options.json", b"", b"{"),
        ("options.json", b"", b"{}"),
        ("options.json", b'"lstm"', b'"lstn"'),
        ("options.json", b'"dim": 512', b'"dim": 0'),
        ("options.json", b'"dim": 512', b'"dim": 513'),
        ("options.json", b'"relu"', b'"tanhh"'),
        ("weights.hdf5", b"", None),
        ("weights.hdf5", b"", b"not HDF5"),
        ("weights.hdf5", b"CNN_proj", b"CNN_prox"),
    )
    yield from _of_folder(
        "Hugging Face",
        "hf",
        "run task=ner bilm=hf bilm.path=BAD bilm.name=tiny logger=none",
        ("config.json", b"", None),
        ("config.json", b"", b"{"),
        ("config.json", b'"bert"', b'"nosuch"'),
        ("config.json", b'"hidden_size": 16', b'"hidden_size": 18'),
        ("model.safetensors", b"", None),
        ("model.safetensors", b"", b"none"),
        ("tokenizer.json", b"", b"{}"),
        ("tokenizer.json", b"", None),
    )
    yield from _of_folder(
        "run folder",
        "RUN",
        "predict BAD --text text.txt",
        ("run.json", b"", None),
        ("run.json", b"", b"{"),
        ("run.json", b'"weights"', b'"weight"'),
        ("run.json", b'"weights": "', b'"weights": "0'),
        ("config.json", b"", None),
        ("config.json", b"", b"[]"),
        ("config.json", b'"task"', b'"tusk"'),
        ("config.json", b"elmo_tasks.data.ner.NerReader", b"os.system"),
        ("config.json", b'"placement": "none"', b'"placement": "nowhere"'),
        ("config.json", b'"hidden"', b'"hiden"'),
        ("config.json", b'"char_dim": 16', b'"char_dim": 17'),
        ("fitted.json", b"", None),
        ("fitted.json", b"", b"{}"),
        ("fitted.json", b"", b"null"),
        ("model.safetensors", b"", None),
        ("model.safetensors", b"", b"none"),
    )
    yield from _of_folder(
        "row",
        "one",
        "report BAD",
        ("row.json", b"", b""),
        ("row.json", b"", b"[]"),
        ("row.json", b"", b"{}"),
        ("row.json", b'"kind": "supervised"', b'"kind": "other"'),
        ("row.json", b'"run_id"', b'"run"'),
        ("row.json", b'"seed": ', b'"seed": -'),
        ("row.json", b'"scores": {', b'"scores": {"best": {},'),
        ("row.json", b'"schema": ', b'"schema": 9'),
        ("row.json", b'"digest": "', b'"digest": "../'),
        ("row.json", b'"dev": ', b'"dev": "x", "y": '),
        ("row.json", b'"config": {', b'"config": [], "more": {'),
    )
    items = b'{"tokens": ["Anna", "sings"]}\n'
    for k, text in enumerate(
        (b"", b"{", b"[1]\n", b'{"words": "a"}\n', b'{"tokens": ""}\n', b'{"tokens": 5}\n', b'{"tokens": ["a", 1]}\n')
    ):
        command = "predict RUN --jsonl --text BAD"
        yield Mistake(f"items {k}", "text.txt", "", b"", items + text if text else b"", command)
    for k, text in enumerate((b"", b"Anna sings .\n\xff\n", b"x" * 1001 + b"\n")):
        yield Mistake(f"lines {k}", "text.txt", "", b"", text, "predict RUN --text BAD --keep-going")


def damage(mistake: Mistake, source: Path, copy: Path) -> None:
    """Make the copy; without its ``old`` in the file, the mistake would be none."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    (shutil.copytree if source.is_dir() else shutil.copyfile)(source, copy)
    path = copy / mistake.inner if mistake.inner else copy
    content = path.read_bytes()
    assert mistake.old in content, f"{mistake.name}: {mistake.old!r} is not in {source}/{mistake.inner}"
    if mistake.new is None:
        path.unlink()
    else:
        path.write_bytes(content.replace(mistake.old, mistake.new, 1) if mistake.old else mistake.new)
