"""What the tests of the layer store put into it, and what it must give."""

import numpy as np

from elmo_tasks.bilm import BiLM

SENTENCES = [["the", "cat", "sat"], ["a"], ["ab", "c"], ["a", "bc"], ["l'", "été", "日本"]]
N_TOKENS = 11
TOLERANCE = {"float16": {"rtol": 2**-11, "atol": 1e-6}, "float32": {"rtol": 0, "atol": 1e-5}}


def assert_right(store, sentences, dtype="float32"):
    for sentence in sentences:
        expected = BiLM.layers(store.encoder, [sentence])[0].transpose(0, 1).numpy()
        found = store.get(sentence)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, **TOLERANCE[dtype])
