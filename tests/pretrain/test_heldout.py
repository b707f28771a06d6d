from pathlib import Path

import numpy as np
import pytest
import torch
from plain import Reader, cut_text

from elmo_tasks.data.corpus import read_sentences
from elmo_tasks.places import SAMPLE_TEXT
from elmo_tasks.pretrain.export import load
from elmo_tasks.pretrain.heldout import score_heldout
from elmo_tasks.pretrain.inputs import WordTable
from elmo_tasks.pretrain.pack import encode
from elmo_tasks.pretrain.text import LmData


def read(paths: list[Path], vocabulary, **changes):
    sentences = {"train": [["a"]], "heldout": [sentence for path in paths for sentence in read_sentences(path)]}
    sizes = {"batch_size": 8, "window": 6, "vocabulary_size": 10**6, "min_count": 1, "seed": 0} | changes
    data = LmData(**sizes, vocabulary=vocabulary)
    return data.use(encode({split: [found] for split, found in sentences.items()}))


def score(model, data):
    return score_heldout(model, WordTable(data.pack.words), data.target_ids, data.heldout()).compute()


def test_it_is_the_perplexity_word_by_word(text_folder):
    model, vocabulary = load("mini_ko")
    path = text_folder / "heldout.txt"
    data = read([path], vocabulary)
    reader, losses = Reader(model), [[], []]
    for window in cut_text(read_sentences(path), 8, 6):
        with torch.no_grad():
            logits = (reader.read(window.inputs) @ model.softmax_weight.t() + model.softmax_bias).double()
        for direction, steps, row in np.argwhere(np.broadcast_to(window.valid, (2, 6, 8))):
            target = vocabulary[window.targets[direction][steps][row]]
            losses[direction].append(-float(logits[direction, steps, row].log_softmax(0)[target]))
    forward, backward = (float(np.exp(np.mean(side))) for side in losses)
    assert len(losses[0]) == data.n_heldout
    expected = {"perplexity": (forward + backward) / 2, "forward": forward, "backward": backward}
    assert score(model, data) == pytest.approx(expected, rel=1e-5)


def test_each_scoring_starts_from_zeros_and_leaves_the_model_in_its_mode(text_folder):
    model, vocabulary = load("mini_ko")
    model.train()
    model.forget = model.dropout = 0.5
    data = read([text_folder / "heldout.txt"], vocabulary)
    assert score(model, data) == score(model, data)
    assert model.training


def test_the_bundled_bilm_has_its_perplexity_of_the_bundled_text():
    """The figure that every version so far has found."""
    model, vocabulary = load("mini")
    data = read([SAMPLE_TEXT / "heldout.txt"], vocabulary, batch_size=128, window=20)
    assert score(model, data)["perplexity"] == pytest.approx(65.5369290780335, rel=1e-6)
