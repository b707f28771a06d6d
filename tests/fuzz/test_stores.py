import shutil
from collections import Counter

import pytest
import torch

import elmo_tasks.store.shard as shard_module
from elmo_tasks.bilm import BiLM
from elmo_tasks.errors import MAX_SENTENCE, UserError

from .stores import EDITS, SENTENCES, Session, edit


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(shard_module.os, "fsync", lambda _: None)


@pytest.mark.parametrize("seeds", [range(25), pytest.param(range(25, 150), marks=pytest.mark.slow)])
def test_a_store_gives_what_its_encoder_computes_or_refuses(tiny_options, tmp_path, seeds):
    counts = Counter()
    for seed in seeds:
        session = Session(seed, tiny_options, tmp_path / str(seed % 10))  # several share a root, as on a real disk
        session.run(9)
        counts += session.counts
    assert min(counts[what] for what in ("filled", "fill refused", "read", "read refused")) > 5, counts


def test_weight_files_are_read_as_they_were_meant_or_refused_in_one_sentence(tiny_bilm, tmp_path):
    tiny_bilm.save(tmp_path / "whole")
    expected = tiny_bilm.layers(SENTENCES)
    counts = Counter()
    for seed in range(9 * len(EDITS)):
        folder = shutil.copytree(tmp_path / "whole", tmp_path / "changed")
        name, stays = edit(folder, seed)
        if stays:
            torch.testing.assert_close(BiLM.load(folder).layers(SENTENCES), expected, rtol=0, atol=1e-6)
        else:
            with pytest.raises(UserError) as refused:
                BiLM.load(folder)
            assert len(str(refused.value)) - len(str(folder)) < MAX_SENTENCE, (seed, name)
        counts[name] += 1
        shutil.rmtree(folder)
    assert set(counts.values()) == {9}
