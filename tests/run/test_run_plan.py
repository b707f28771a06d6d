"""A plan against what then happens: sizes exactly, times and memory within wide bounds."""

import json
import shutil
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kills import Killed, kill_after

import elmo_tasks.planning.room as room
import elmo_tasks.planning.timing as timing
from elmo_tasks.assembly import build_data
from elmo_tasks.bilm import BiLM
from elmo_tasks.config.compose import validate
from elmo_tasks.errors import UserError
from elmo_tasks.planning import plan as planning
from elmo_tasks.planning.cost import Batches, StepCost
from elmo_tasks.planning.layers import Layers
from elmo_tasks.planning.plan import DoneSoFar
from elmo_tasks.planning.random_layers import RandomLayerStore, random_store
from elmo_tasks.planning.show import duration
from elmo_tasks.runs.interface import build_run
from elmo_tasks.runs.run import run
from elmo_tasks.store.layers import LayerStore

NOTHING = DoneSoFar()


@pytest.fixture(autouse=True)
def _short_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "SECONDS", 0.2)


def make_plan(cfg: Any, done: DoneSoFar = NOTHING) -> planning.Plan:
    plan: planning.Plan = build_run(validate(cfg).to_json()).plan(done)  # type: ignore[attr-defined]
    return plan


def find_row(tmp_path: Path) -> dict[str, Any]:
    [path] = (tmp_path / "outputs" / "rows").glob("*.json")
    row: dict[str, Any] = json.loads(path.read_text())
    return row


@pytest.mark.parametrize("keep", ["layers", "tokens"])
def test_what_is_planned_is_what_is_computed(composed: Any, tmp_path: Path, keep: str) -> None:
    overrides = ("task=ner", "elmo.placement=both", f"bilm.store.keep={keep}")
    plan = make_plan(composed(*overrides))
    assert not (tmp_path / "outputs").exists()  # a plan writes nothing
    run(composed(*overrides))
    row = find_row(tmp_path)
    assert plan.layers is not None
    assert plan.run_id == row["run_id"]
    assert plan.layers.n_missing == row["layers"]["computed"]
    assert plan.parameters == row["parameters"]
    assert plan.items == {split: items["used"] for split, items in row["data"]["items"].items()}
    assert plan.epochs == row["training"]["epochs"]
    assert plan.updates == row["training"]["curve"][-1]["step"]
    numbers = (tmp_path / "outputs" / "layers").glob("*/*.bin")
    assert sum(path.stat().st_size for path in numbers) == plan.layers.bytes_missing == plan.layers.bytes_kept[keep]


def test_what_is_there_is_not_planned_again(composed: Any, tmp_path: Path) -> None:
    overrides = ("task=ner", "elmo.placement=input")
    run(composed(*overrides))
    other = make_plan(composed(*overrides, "seed=2", "data.fraction=1"))
    assert other.layers is not None
    assert 0 < other.layers.n_missing < other.layers.n_tokens
    same = make_plan(composed(*overrides, "elmo.lambda=0.5"))
    assert same.layers is not None
    assert same.layers.n_missing == same.layers.seconds == 0
    assert same.seconds == same.fit_seconds > 0
    done = make_plan(composed(*overrides), DoneSoFar(trained=True, scored=True))
    assert done.seconds == done.fit_seconds == 0


def test_max_steps_bound_a_plan(composed: Any) -> None:
    plan = make_plan(composed("task=ner", "trainer.max_steps=3", "trainer.max_epochs=100"))
    assert (plan.updates, plan.epochs) == (3, 1)


def test_a_key_shows_the_plan_of_what_is_left(composed: Any, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    ner = ("task=ner", "elmo.placement=none", "trainer.max_epochs=2")

    def planned(*overrides: str) -> str:
        capsys.readouterr()
        run(composed(*ner, *overrides, "plan=true"))
        return " ".join(capsys.readouterr().out.replace("│", " ").split())

    said = planned()
    assert "plan of ner-sample-cpu" in said
    assert "in all" in said
    assert not (tmp_path / "outputs").exists()
    with monkeypatch.context() as patch:
        kill_after(patch, 1)
        with pytest.raises(Killed):
            run(composed(*ner))
    n_updates = make_plan(composed(*ner)).updates
    said = planned()
    assert f"resumes after {n_updates // 2} updates" in said
    assert f"training {n_updates // 2} of {n_updates} updates in 2 epochs at most" in said
    assert f"training {n_updates} updates in 2 epochs at most" in planned("force=true")
    run(composed(*ner))
    assert "trained: its weights will be scored on the test set" in planned("test=true")
    assert "finished: nothing will be computed" in planned()
    assert f"resumes after {n_updates} updates" in planned("trainer.max_epochs=3")


def test_the_rest_of_training_is_timed() -> None:
    step = StepCost(epoch_seconds=10.0, dev_seconds=1.0, n_batches=10, peak_bytes=0, bytes_before=0)
    plan = planning.Plan("run", DoneSoFar(updates=15), {}, 1, None, step, epochs=3, updates=30)
    assert plan.fit_seconds == 15 + 2 * 1
    assert replace(plan, done=NOTHING).fit_seconds == 30 + 3 * 1


@pytest.mark.parametrize("task", ["wsd", "lm"])
def test_what_has_no_plan_says_so(composed: Any, task: str) -> None:
    with pytest.raises(UserError, match=f"plan=true: task={task} "):
        run(composed(f"task={task}", "plan=true", "data.fraction=1"))


def test_a_store_beyond_its_limit_or_the_disk_is_refused(composed: Any, tmp_path: Path, monkeypatch: Any) -> None:
    with pytest.raises(UserError, match=r"bilm\.store\.limit_gb"):
        run(composed("task=ner", "elmo.placement=input", "bilm.store.limit_gb=0.00001", "plan=true"))
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(UserError, match=r"are free; set bilm\.store\.dir"):
        run(composed("task=ner", "elmo.placement=input", "plan=true"))
    with pytest.raises(UserError, match=r"weights and state .* are free in .*; set paths\.outputs to another disk"):
        run(composed("task=ner", "elmo.placement=none", "plan=true"))


def test_a_batch_beyond_the_memory_is_refused_before_it_is_tried(composed: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(room, "available_bytes", lambda: 1000)
    with pytest.raises(
        UserError,
        match=r"the largest batch needs about .* of memory, but only .* is available; .* task\.training\.batch",
    ):
        room.allow_memory(2000)
    room.allow_memory(500)
    monkeypatch.undo()
    assert room.available_bytes() > 1e8  # type: ignore[operator]


@pytest.mark.slow
@pytest.mark.parametrize("task", ["ner", "snli"])
def test_times_are_predicted_within_wide_bounds(composed: Any, tmp_path: Path, monkeypatch: Any, task: str) -> None:
    """Processor time, which other processes disturb least, within a factor of two."""
    monkeypatch.setattr(timing, "SECONDS", 2.0)
    monkeypatch.setattr(timing, "clock", time.process_time)
    overrides = (f"task={task}", "elmo.placement=both", "data.fraction=1", "trainer.max_epochs=3", "bilm.path=null")
    plan = make_plan(composed(*overrides))
    start = time.process_time()
    run(composed(*overrides))
    taken = time.process_time() - start
    assert 0.5 < plan.seconds / taken < 2


@pytest.mark.parametrize("n", [0, 7, 5000])
def test_a_random_store_copies_no_more_than_a_sentence_has(tiny_bilm: BiLM, tmp_path: Path, n: int) -> None:
    layers = random_store(LayerStore(tmp_path, tiny_bilm))
    assert isinstance(layers, RandomLayerStore)
    tracemalloc.start()
    found = layers.get(["a"] * n)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.shape == (n, 3, 12)
    assert len(np.unique(found, axis=0)) == min(n, 4096)
    assert peak < 2 * found.nbytes + 100_000


def test_a_sentence_of_srl_counts_once_for_each_predicate(composed: Any) -> None:
    data = build_data(validate(composed("task=srl", "elmo.placement=none")).to_json())
    data.read()
    batches = Batches(data, data.epoch(0))
    collated = [batches.collate(number) for number in range(len(batches.numbers))]
    assert any(batch.tags.numel() > batch.text.mask.numel() for batch in collated)
    assert batches.sizes == [batch.tags.numel() for batch in collated]


def test_memory_is_twice_the_growth_of_the_largest_batch_and_the_filling_of_the_store() -> None:
    step = StepCost(epoch_seconds=1.0, dev_seconds=1.0, n_batches=1, peak_bytes=1500, bytes_before=1000)
    layers = Layers(1, 1, {}, "layers", Path("a"), 1, 1, 1, 1.0, fill_bytes=70)
    plan = planning.Plan("run", NOTHING, {}, 1, layers, step, epochs=1, updates=1)
    assert plan.peak_bytes == 1000 + 2 * 500 + 70
    assert replace(plan, layers=None).peak_bytes == 2000


def test_layers_that_several_runs_need_are_computed_once_for_each_encoder() -> None:
    def plan(folder: str, seconds: float) -> planning.Plan:
        layers = Layers(5, 5, {}, "layers", Path(folder), 5, 5, 5, seconds, fill_bytes=0)
        return planning.Plan(folder, NOTHING, {}, 1, layers, None, epochs=1, updates=1)

    plans = {"1": plan("mini", 10.0), "2": plan("mini", 10.0), "3": plan("small", 30.0)}
    assert planning.total(plans) == planning.total(dict(reversed(plans.items()))) == 40.0


def test_an_encoder_is_timed_by_words_and_by_tokens(tiny_bilm: BiLM, monkeypatch: Any) -> None:
    now = [0.0]
    monkeypatch.setattr(timing, "clock", lambda: now[0])
    encode, layers = tiny_bilm.encode, tiny_bilm.layers

    def slow_encode(words: Any) -> Any:
        now[0] += 0.5 * len(words)
        return encode(words)

    def slow_layers(sentences: Any, **kwargs: Any) -> Any:
        now[0] += 0.25 * sum(map(len, sentences))
        return layers(sentences, **kwargs)

    monkeypatch.setattr(tiny_bilm, "encode", slow_encode)
    monkeypatch.setattr(tiny_bilm, "layers", slow_layers)
    rate = timing.time_encoder(tiny_bilm, [[f"w{k}", "the", "."] for k in range(50)])
    assert (rate.per_word, rate.per_token) == (0.5, 0.25)


def test_words_of_a_shard_are_counted_once() -> None:
    sentences = [[f"w{k % 10}", "the"] for k in range(100)]
    assert timing.distinct_words(sentences, 1000) == 11
    assert timing.distinct_words(sentences, 100) in (21, 22)  # two shards, of about all words each


@pytest.mark.parametrize(("seconds", "text"), [(3, "3.0 s"), (600, "10 min"), (7200, "2.0 h")])
def test_durations_are_in_fitting_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text
