"""``elmo-tasks predict RUN --text FILE`` and ``elmo-tasks evaluate RUN --file FILE``."""

from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from elmo_tasks.data.files import decompressed_name
from elmo_tasks.data.text import check_encoding
from elmo_tasks.errors import UserError, shortened
from elmo_tasks.files import read_json as read_json_file
from elmo_tasks.files import write_json, write_text
from elmo_tasks.predict.readable import readable
from elmo_tasks.predict.settings import ENCODING, parse_settings
from elmo_tasks.runs.layout import expect_finished_run

if TYPE_CHECKING:
    from elmo_tasks.predict.predictor import Predictor


def predict(arguments: list[str]) -> None:
    """Read items, print a prediction for each; the exit status is 1 if some were skipped."""
    parser = _parser("predict", "Predictions of a finished run for new text.")
    parser.add_argument("--text", default="-", metavar="FILE", help="one item a line; - is standard input (default)")
    parser.add_argument("--jsonl", action="store_true", help="lines are JSON objects (the default for FILE.jsonl)")
    parser.add_argument("--tokenized", action="store_true", help="split at spaces only")
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    parser.add_argument("--keep-going", action="store_true", help="report bad items and skip them")
    given = parser.parse_intermixed_args(arguments)
    expect_finished_run(Path(given.run))
    from elmo_tasks.predict.lines import numbered_lines, read_json, read_text  # torch takes seconds: not for --help

    n_skipped = 0

    def skip(place: int, error: UserError) -> None:
        nonlocal n_skipped
        n_skipped += 1
        print(f"skipped: {error}", file=sys.stderr)

    on_error = skip if given.keep_going else None
    predictor = _load(given)
    encoding = check_encoding(parse_settings(given.settings).get(ENCODING, "utf-8"))  # not that of the run's files
    if given.tokenized and not predictor.reader.takes_tokens:
        task = predictor.run.config["task"]["name"]
        raise UserError(f"--tokenized: task={task} takes text, not tokens; leave it out")
    lines = numbered_lines(given.text, encoding)
    as_json = given.jsonl or decompressed_name(Path(given.text)).endswith(".jsonl")
    if as_json:
        read = read_json(lines, on_error, encoding)
    else:
        read = read_text(lines, predictor, on_error, tokenized=given.tokenized, encoding=encoding)
    inputs = [*read]
    n_items = len(inputs) + n_skipped  # so far, those that could not be read
    if not inputs and not n_skipped:
        raise UserError(f"{'standard input' if given.text == '-' else given.text}: no item in it")
    if isinstance(sys.stdout, io.TextIOWrapper):  # as input is read, whatever the locale
        sys.stdout.reconfigure(encoding="utf-8")
    names, items = [one.name for one in inputs], [one.fields for one in inputs]
    for prediction in predictor.stream(items, names=names, on_error=on_error):
        if prediction is not None:
            print(json.dumps(prediction, ensure_ascii=False) if given.json else readable(prediction), flush=True)
    if n_skipped:
        sys.exit(f"error: {n_skipped} of {n_items} items skipped")


def evaluate(arguments: list[str]) -> None:
    """Score a file, print the scores, write them and the files of the official scorer."""
    parser = _parser("evaluate", "Scores of a finished run on any file of its task's format.")
    parser.add_argument(
        "--file", required=True, type=Path, metavar="FILE", help="file (or folder) in the task's format"
    )
    parser.add_argument(
        "--split",
        default="test",
        choices=("train", "dev", "test"),
        help="read FILE as this split (default: test)",
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="for scores and official files")
    given = parser.parse_intermixed_args(arguments)
    expect_finished_run(Path(given.run))
    predictor = _load(given)
    folder = given.out or Path("evaluation") / f"{predictor.run.run_id}-{given.file.name}"
    _refuse_other_scores(folder / "scores.json", given.file)
    result = predictor.evaluate(given.file, given.split)
    remedy = "set --out to another folder"
    about = {
        "run_id": predictor.run.run_id,
        "file": str(given.file),
        "items": result.n_items,
        "left_out": result.left_out,
        "scores": result.scores,
    }
    for name, content in result.files.items():
        write_text(folder / name, content, remedy)
    write_json(folder / "scores.json", about, remedy)
    print("   ".join(f"{name} {value:.2f}" for name, value in result.scores.items()), f"  ({result.n_items:,} items)")
    for reason, n in result.left_out.items():
        print(f"while reading: {reason}: {n:,}")
    for name in (*result.files, "scores.json"):
        print(folder / name)


def _refuse_other_scores(path: Path, file: Path) -> None:
    """Check that no scores of another file are replaced."""
    earlier = read_json_file(path) if path.exists() else None
    if isinstance(earlier, dict) and earlier.get("file") != str(file):
        raise UserError(
            f"{path} has the scores of {shortened(str(earlier.get('file')), 200)}; set --out to another folder"
        )


def _load(given: argparse.Namespace) -> Predictor:
    from elmo_tasks.predict.predictor import load_run  # torch takes seconds: not for --help

    moved = {"bilm_path": given.bilm, "words_path": given.words, "warm_text": given.warm_text}
    return load_run(given.run, **moved, packages=given.package, settings=parse_settings(given.settings))


def _parser(command: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(f"elmo-tasks {command}", description=description)
    parser.add_argument("run", metavar="RUN", help="folder of a finished run: outputs/runs/ID")
    parser.add_argument(
        "settings",
        nargs="*",
        metavar="KEY=VALUE",
        help="keys that do not concern what was trained, such as task.reader.encoding=latin-1",
    )
    parser.add_argument("--bilm", metavar="DIR", help="where the biLM is now, if it was moved")
    parser.add_argument("--words", metavar="FILE", help="where your file of word vectors is now, if it was moved")
    parser.add_argument("--warm-text", metavar="FILE", help="where your bilm.warm_text is now, if it was moved")
    parser.add_argument(
        "--package", action="append", default=[], metavar="NAME", help="a package of your own whose classes it may use"
    )
    return parser
