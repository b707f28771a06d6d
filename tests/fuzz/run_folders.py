"""Copies of a run's folder in which one file was changed by hand."""

import json
import shutil
from pathlib import Path

from elmo_tasks.errors import MAX_SENTENCE, UserError
from elmo_tasks.predict.predictor import load_run

from .rows import changed

CHANGED = ("config.json", "run.json", "fitted.json")
INPUTS = [{"text": "a fine film ."}, {"text": "it is dull and far too long"}]


def is_changed_read(whole: Path, copy: Path, seed: int) -> bool:
    """Whether a changed copy of a run is read; it then predicts what the whole one does.

    Raises:
        AssertionError: if it predicts anything else, or is refused in anything but one sentence.
    """
    name = CHANGED[seed % len(CHANGED)]
    shutil.copytree(whole, copy)
    (copy / name).write_bytes(changed(json.loads((whole / name).read_text()), seed))
    try:
        found = load_run(copy).predict(INPUTS)
    except UserError as error:
        sentence = str(error)
        assert str(copy) in sentence or "words.path" in sentence or "bilm" in sentence, (seed, sentence)
        assert len(sentence) - sentence.count(str(copy)) * len(str(copy)) <= MAX_SENTENCE, seed
        assert sentence.isprintable(), seed
        return False
    finally:
        shutil.rmtree(copy)
    assert found == load_run(whole).predict(INPUTS), (name, seed)
    return True
