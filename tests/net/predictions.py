"""Predictions and scores of a finished run of each task, and of an ensemble."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .checkout import Call, Checkout, words

RUN = words(
    "trainer.max_steps=40 trainer.max_epochs=40 trainer.limit_val_batches=2 trainer.threads=1 trainer.accelerator=cpu "
    "trainer.progress=false logger=none bilm.store.dir=layers task.training.batch_size=8"
)
TASKS = {
    "sst5": ("sst/test.txt", []),
    "ner": ("conll2003/eng.testb", ["task.optimizer.lr=0.01"]),
    "snli": ("snli/snli_1.0_test.jsonl", []),
    "squad": ("squad/test-v1.1.json", ["elmo.placement=none"]),
    "srl": ("srl/test.conll", ["task.model.n_layers=2", "task.optimizer.lr=0.01"]),
    "coref": ("coref/test.conll", ["task.training.batch_size=1", "task.reader.max_training_sentences=5"]),
    "nsmc": ("nsmc/ratings_test.txt", []),
    "pos": ("ptb/22", []),
}
"""The file of the test set below the sample, and what gives a run of 40 updates something to predict."""

TEXT = {
    "sst5": "A do-it-yourself film of 1 1/2 hours.\nNot bad at all!\n",
    "ner": "Anna Berg flew from Oslo to New York (U.S.) on Tuesday.\nIt rains.\n",
    "snli": "A man plays a guitar.\tA person makes music.\nTwo dogs run.\tThe cats sleep.\n",
    "squad": "Anna Berg was born in Oslo in 1902. She wrote three books.\tWhere was Anna Berg born?\n",
    "srl": "The old bridge fell when the storm came.\nNo.\n",
    "coref": "Anna said she would come.\nThe man saw her.\n\nIt rained.\n",
    "nsmc": "정말 재미있어요ㅋㅋ\n다시는 안 봐요.\n",
    "pos": "The boats left the harbour at dawn.\n",
}
"""Raw text, as ``predict`` reads it from standard input."""


def record(checkout: Checkout) -> dict[str, Any]:
    """By task: what ``predict --json`` and ``evaluate`` print and write for one short run."""
    found: dict[str, Any] = {"machine": checkout.machine()}
    training = [
        Call(task, "run", ["run", f"task={task}", *RUN, *more, f"paths.outputs=outputs/{task}"])
        for task, (_, more) in TASKS.items()
    ]
    again = next(call for call in training if call.name == "sst5").arguments
    training.append(Call("sst5 seed 2", "run", [*again, "seed=2"]))
    training.append(Call("sst5 ensemble", "run", [*again, "ensemble=[1,2]", "test=true"]))
    folders: dict[str, Path] = {}
    for call, answer in checkout.ask(training):
        found[f"{call.name} training"] = answer["err"] if answer["status"] else "done"
        if call.name in TASKS:
            (folders[call.name],) = (checkout.work / "outputs" / call.name).glob("runs/*-s1-????????")
    calls = [
        call for task, folder in folders.items() for call in _uses(task, folder.relative_to(checkout.work), checkout)
    ]
    for call, answer in checkout.ask(calls):
        found[call.name] = [answer["out"], answer["err"], answer["status"]]
    for path in sorted((checkout.work / "scored").rglob("*")):
        if path.is_file():
            found[str(path.relative_to(checkout.work))] = checkout.plain(path.read_text("utf-8"))
    for path in sorted((checkout.work / "outputs" / "sst5" / "rows").glob("*.json")):
        found[f"row {path.stem}"] = json.loads(path.read_bytes())["scores"]
    return found


def _uses(task: str, run: Path, checkout: Checkout) -> Iterator[Call]:
    file = checkout.work / "data" / TASKS[task][0]
    items = checkout.work / f"{task}.jsonl"
    items.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in _items(task, file)), "utf-8")
    yield Call(f"{task} items", "run", ["predict", str(run), "--text", items.name, "--json"])
    yield Call(f"{task} text", "run", ["predict", str(run), "--json"], TEXT[task])
    yield Call(f"{task} text to be read", "run", ["predict", str(run)], TEXT[task])
    scored = ["evaluate", str(run), "--file", f"data/{TASKS[task][0]}", "--out", f"scored/{task}"]
    yield Call(f"{task} evaluated", "run", scored)


def _items(task: str, path: Path) -> list[dict[str, Any]]:
    """The items of a test set as ``predict`` takes them, read in a few lines of our own."""
    if path.is_dir():
        text = "\n".join(each.read_text("utf-8") for each in sorted(path.iterdir()))
    else:
        text = path.read_text("utf-8")
    if task == "squad":
        paragraphs = [each for article in json.loads(text)["data"] for each in article["paragraphs"]]
        return [
            {"context": p["context"], "question": q["question"], "id": q["id"]} for p in paragraphs for q in p["qas"]
        ]
    if task == "snli":
        pairs = [json.loads(line) for line in text.splitlines()]
        return [{"premise": pair["sentence1"], "hypothesis": pair["sentence2"]} for pair in pairs]
    if task == "nsmc":
        return [{"text": line.split("\t")[1]} for line in text.splitlines()[1:] if line.split("\t")[1]]
    if task == "sst5":
        return [{"text": re.findall(r" ([^()\s]+)\)", line)} for line in text.splitlines()]
    if task == "pos":
        trees = re.split(r"\n(?=\( )", text)
        words = [re.findall(r"\((?!-NONE-)\S+ ([^()\s]+)\)", tree) for tree in trees]
        return [{"tokens": found} for found in words if found]
    column = 0 if task == "ner" else 3
    blocks = [block for block in text.split("\n\n") if block.strip()]
    rows = [[line.split() for line in block.splitlines() if line and line[0] not in "#-"] for block in blocks]
    sentences = [[row[column] for row in block] for block in rows if block]
    return [{"sentences": sentences}] if task == "coref" else [{"tokens": sentence} for sentence in sentences]
