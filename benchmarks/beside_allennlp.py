"""Time of a training epoch of each task model beside AllenNLP's, on the same items at AllenNLP's sizes.

``python benchmarks/beside_allennlp.py PYTHON DIR [only=sst5,ner] [threads=1]``

PYTHON is an interpreter with AllenNLP 2.10.1 and its models (see allennlp_train.py), DIR a folder as for data.root. The
first items of each training set are read for three epochs, by AllenNLP and then here, with word vectors alone and with
the bundled biLM ``mini`` at the input. An epoch is all that a user waits for: making batches, training, scoring a few
dev items, saving. Printed are the second and third epoch and the ratio of their means. In the first one the programs
warm up; here the biLM's layers are computed before it, once. Compare the numbers of one run with each other, not with
those of another run.
"""

from __future__ import annotations

import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from allennlp_configs import config

HERE = Path(__file__).parent
MINI = HERE.parent / "elmo_tasks" / "bundled" / "bilm" / "mini"
EPOCHS = 3
FILES = {  # below the data root: train, dev
    "sst5": ("sst/train.txt", "sst/dev.txt"),
    "ner": ("conll2003/eng.train", "conll2003/eng.testa"),
    "snli": ("snli/snli_1.0_train_subset.jsonl", "snli/snli_1.0_dev.jsonl"),
    "squad": ("squad/train-subset-v1.1.json", "squad/dev-subset-v1.1.json"),
    "srl": ("srl_ewt/train.conll", "srl_ewt/dev.conll"),
    "coref": ("coref_ontogum/train.conll", "coref_ontogum/dev.conll"),
}
N_TRAIN = {"sst5": 1000, "ner": 2000, "snli": 1600, "squad": 30, "srl": 2, "coref": 2}  # squad: paragraphs; documents
N_DEV = {"sst5": 100, "ner": 100, "snli": 100, "squad": 1, "srl": 5, "coref": 1}
MAX_SENTENCES = 50  # of a document: coreference trains on a stretch of as many
DIMS = {"sst5": 300, "ner": 50, "snli": 300, "squad": 300, "srl": 100, "coref": 300}  # of the word vectors
OURS = {
    "sst5": ["task.reader.phrases=false"],
    "snli": ["task.training.batch_size=64"],
    "squad": ["task.model.hidden=100", "task.model.linear=200"],
    "srl": ["task.training.batch_size=20"],  # sentences with about 80 predicates
    "coref": ["task.model.max_antecedents=100"],
}


def first_items(task: str, text: str, n: int) -> str:
    """The first ``n`` items of a file in the format of ``task``."""
    if task in ("sst5", "snli"):
        return "".join(text.splitlines(keepends=True)[:n])
    if task == "ner":
        return "\n\n".join(text.split("\n\n")[:n]) + "\n\n"
    if task == "squad":
        paragraphs = [paragraph for article in json.loads(text)["data"] for paragraph in article["paragraphs"]]
        return json.dumps({"version": "1.1", "data": [{"title": "-", "paragraphs": paragraphs[:n]}]})
    end = "#end document\n"
    documents = [document + end for document in text.split(end)[:-1]]
    return "".join([document for document in documents if document.count("\n\n") <= MAX_SENTENCES][:n])


def write_data(task: str, source: Path, folder: Path) -> list[Path]:
    """A few items of ``source`` below ``folder``, where both readers find them: train and dev."""
    paths = []
    for name, n in zip(FILES[task], (N_TRAIN[task], N_DEV[task]), strict=True):
        path = folder / name
        if task == "srl":  # AllenNLP looks for this ending in a folder
            path = path.with_suffix("") / "sample.gold_conll"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(first_items(task, (source / name).read_text("utf-8"), n), "utf-8")
        paths.append(path)
    return paths


def write_words(paths: list[Path], dim: int, folder: Path) -> Path:
    """Random vectors of all words of the files: the time does not depend on the values."""
    words = {word.lower() for path in paths for word in re.findall(r'[^\s"()]+', path.read_text("utf-8"))}
    draw = random.Random(0)
    lines = [" ".join([word, *(f"{draw.gauss(0, 1):.3f}" for _ in range(dim))]) for word in sorted(words)]
    path = folder / f"words.{dim}.txt"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def time_allennlp(python: str, settings: dict[str, Any], folder: Path, threads: int) -> list[float]:
    """Seconds of each epoch but the first. A file of metrics is written when an epoch has ended."""
    path, out = folder / "config.json", folder / "allennlp"
    path.write_text(json.dumps(settings), "utf-8")
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    program = [python, str(HERE / "allennlp_train.py"), str(path), str(out)]
    done = subprocess.run(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return durations(sorted(file.stat().st_mtime for file in out.glob("metrics_epoch_*.json")), done.stdout)


def time_ours(task: str, words: Path, placement: str, folder: Path, threads: int) -> list[float]:
    """Seconds of each epoch but the first. A line of progress is printed when an epoch has ended."""
    settings = [f"task={task}", "scale=paper", "data=local", f"data.root={folder}", f"elmo.placement={placement}"]
    settings += [f"words.path={words}", f"words.dim={DIMS[task]}", "task.training.average=null", *OURS.get(task, [])]
    settings += [f"trainer.max_epochs={EPOCHS}", f"trainer.threads={threads}", f"paths.outputs={folder / 'outputs'}"]
    program = [sys.executable, str(HERE.parent / "run.py"), *settings]
    ends, lines = [], []
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if re.search(rf"epoch \d+ of {EPOCHS}", line):
                ends.append(time.perf_counter())
    return durations(ends, "".join(lines))


def durations(ends: list[float], printed: str) -> list[float]:
    """Seconds between the ends of epochs; what a program printed is shown if it did not get so far."""
    if len(ends) != EPOCHS:
        raise SystemExit(f"{printed[-3000:]}\nexpected {EPOCHS} epochs, found {len(ends)}; see above")
    return [end - before for before, end in pairwise(ends)]


def compare(task: str, placement: str, python: str, root: Path, threads: int) -> str:
    """A line of the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = write_data(task, root, folder)
        words = write_words(paths, DIMS[task], folder)
        train, dev = [path.parent if task == "srl" else path for path in paths]
        elmo = MINI if placement == "input" else None
        theirs = time_allennlp(python, config(task, train, dev, words, DIMS[task], elmo, EPOCHS), folder, threads)
        ours = time_ours(task, words, placement, folder, threads)
    columns = ["  ".join(f"{seconds:6.2f}" for seconds in times) for times in (theirs, ours)]
    return (
        f"{task:7}{placement:7}{columns[0]:>20}{columns[1]:>20}{statistics.mean(theirs) / statistics.mean(ours):8.1f}"
    )


def main(python: str, root: Path, tasks: list[str], threads: int) -> None:
    print(f"seconds of the second and third epoch, {threads} thread(s)")
    print(f"{'task':7}{'ELMo':7}{'AllenNLP':>20}{'elmo_tasks':>20}{'ratio':>8}")
    for task in tasks:
        for placement in ("none", "input"):
            print(compare(task, placement, python, root, threads), flush=True)


if __name__ == "__main__":
    options = dict(argument.split("=", 1) for argument in sys.argv[3:])
    chosen = options["only"].split(",") if "only" in options else list(FILES)
    main(sys.argv[1], Path(sys.argv[2]), chosen, int(options.get("threads", 1)))
