import numpy as np
import pytest

from elmo_tasks.bilm.sizes import SIZES
from elmo_tasks.pretrain.pack import write_pack

WORDS = [f"w{k}" for k in range(40)] + ["zebra", "a_long_word_of_a_text", "é", "日本", "x" * 60]


@pytest.fixture(scope="session")
def text_folder(tmp_path_factory):
    """Two shards and a held-out file of short sentences in which each word tells much of the next one."""
    folder, rng = tmp_path_factory.mktemp("text"), np.random.default_rng(1)

    def sentence():
        start, step = rng.integers(len(WORDS)), rng.integers(1, 3)
        return " ".join(WORDS[(start + step * k) % len(WORDS)] for k in range(rng.integers(1, 9)))

    for name, n in (("train-0", 200), ("train-1", 150), ("heldout", 60)):
        (folder / f"{name}.txt").write_text("".join(f"{sentence()}\n" for _ in range(n)), "utf-8")
    return folder


@pytest.fixture(scope="session")
def pack_folder(text_folder):
    paths = {"train": sorted(text_folder.glob("train-*.txt")), "heldout": [text_folder / "heldout.txt"]}
    write_pack(text_folder / "pack", paths)
    return text_folder / "pack"


@pytest.fixture
def tiny_size(tiny_options, monkeypatch):
    """Tests train the size ``tiny``."""
    monkeypatch.setitem(SIZES, "tiny", tiny_options)
    return "tiny"
