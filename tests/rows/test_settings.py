"""What the rows of one setting say together."""

import statistics

import pytest
from rows_by_hand import changed, finished, row_json

from elmo_tasks.rows.schema import Row
from elmo_tasks.rows.settings import Setting
from elmo_tasks.tables.weights import layer_weights, no_mean_notes


def row(seed: int, s: list[float], gamma: float) -> Row:
    config = {"task": {"name": "ner"}, "elmo": {"placement": "input", "mix": "scalar", "lambda": 0.1}, "bilm": {}}
    config["bilm"]["name"] = "mini"
    made = row_json(config, run_id=f"r{seed}", seed=seed, dev=50.0)
    return finished(changed(made, {"elmo.weights.input": {"s": s, "gamma": gamma}}))


def test_mixes_are_averaged_by_layer() -> None:
    seeds = [(0.1, 0.2, 0.7), (0.3, 0.6, 0.1)]
    setting = Setting(tuple(row(seed, [*s], 1.0 + seed) for seed, s in enumerate(seeds, start=1)))
    (found,) = layer_weights("ner", setting)
    assert found.s == [statistics.fmean(layer) for layer in zip(*seeds, strict=True)]
    assert (found.gamma, found.n, no_mean_notes({"ner": setting})) == (2.5, 2, [])


@pytest.mark.parametrize("other", [[0.5, 0.5], [1.0]])
def test_mixes_of_different_numbers_of_layers_make_no_mean_and_are_named(other: list[float]) -> None:
    setting = Setting((row(1, [0.2, 0.7, 0.1], 1.0), row(2, other, 1.0)))
    assert layer_weights("ner", setting) == []
    assert no_mean_notes({"ner": setting}) == [
        "ner: no mean, the seeds' mixes differ in their places or their numbers of layers"
    ]
