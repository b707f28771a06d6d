"""A task trained by two processes that share each batch is the one that a single process trains."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from attack.children import Child, start_run
from rows_as_json import load
from safetensors.torch import load_file

from elmo_tasks.assembly import build_model, build_store
from elmo_tasks.config.compose import validate
from elmo_tasks.data.sharing import Placeholder, process_rows
from elmo_tasks.errors import UserError
from elmo_tasks.runs import run as train
from elmo_tasks.runs.supervised import SupervisedRun

TASKS = ("sst5", "ner", "snli", "squad", "srl", "pos", "nsmc")
SMALL = ("elmo.placement=both", "data.fraction=1", "bilm.store.dtype=float32")


def without_dropout(cfg: Any) -> list[str]:
    """Overrides that set every rate of a task's model to zero; in two processes it would draw other units."""
    found = ["elmo.dropout=0"]
    for key, value in cfg.task.model.items():
        if "dropout" in key and value is not None:
            zero = json.dumps([0.0] * len(value)) if not isinstance(value, (int, float)) else "0"
            found.append(f"task.model.{key}={zero}")
    return found


def test_each_row_of_a_batch_is_in_one_process_and_placeholders_fill_up() -> None:
    items, batches = list("abcdef"), [[0, 1, 2, 3], [4], [5, 2]]
    parts = [process_rows(items, batches, n=3, rank=rank) for rank in range(3)]
    for number, batch in enumerate(batches):
        chosen = [part_items[k] for part_items, part in parts for k in part[number]]
        real = [item for item in chosen if not isinstance(item, Placeholder)]
        assert sorted(real) == sorted(items[k] for k in batch)
        assert all(part[number] for _, part in parts)


def gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return found


@pytest.mark.parametrize("n_processes", [2, 3])
@pytest.mark.parametrize("task", TASKS)
def test_weighted_gradients_of_the_parts_average_to_those_of_the_batch(
    composed: Any, tmp_path: Path, task: str, n_processes: int
) -> None:
    run = SupervisedRun(validate(composed(f"task={task}", *SMALL)).to_json())
    run.data.read()
    run.data.use_layers(build_store(run.cfg, run.encoder), ["train", "dev"])
    model = build_model(run.cfg, run.data, run.elmo).eval()  # without dropout
    items = run.data.items["train"][
        :5
    ]  # shared unevenly; of three processes, the second batch leaves one without a row
    batches = [[0, 1, 2, 3, 4], [2, 3]]
    whole = [run.data.collate([items[k] for k in batch]) for batch in batches]
    parts = [process_rows(items, batches, n=n_processes, rank=rank) for rank in range(n_processes)]
    for number, batch in enumerate(whole):
        model.loss(model(batch), batch).backward()
        expected = gradients(model)
        shared = [run.data.collate([part_items[k] for k in part[number]]) for part_items, part in parts]
        weights = [0 if part.is_placeholder else model.loss_weight(part) for part in shared]
        assert sum(weights) == model.loss_weight(batch)
        for part, weight in zip(shared, weights, strict=True):
            (n_processes * weight / sum(weights) * model.loss(model(part), part) / n_processes).backward()
        found = gradients(model)
        assert found.keys() == expected.keys()
        for name, gradient in expected.items():
            torch.testing.assert_close(
                found[name], gradient, rtol=1e-3, atol=1e-5 * max(1.0, float(gradient.abs().max()))
            )


def run_processes(folder: Path, n: int, *overrides: str) -> dict[str, Any]:
    arguments = [f"trainer.devices={n}", f"paths.outputs={folder}", *overrides]
    folder.mkdir()
    child = Child(lambda: start_run(arguments), folder / "log.txt")
    assert child.wait(300) == 0, child.output()
    (row,) = load(folder / "rows")
    return row | {"weights_on_disk": load_file(folder / "runs" / row["run_id"] / "model.safetensors")}


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_two_processes_train_the_same_model_as_one(composed: Any, tmp_path: Path, task: str) -> None:
    overrides = [
        f"task={task}",
        "elmo.placement=both",
        *without_dropout(composed(f"task={task}")),
        f"bilm.path={tmp_path / 'bilm'}",
        "words=random",
        "trainer.max_epochs=1",
        "trainer.max_steps=4",
        "trainer.accelerator=cpu",
        "trainer.threads=1",
        "trainer.progress=false",
        "task.training.batch_size=7",
        "logger=none",
    ]
    one, two = (run_processes(tmp_path / str(n), n, *overrides) for n in (1, 2))
    assert (one["processes"], two["processes"]) == (1, 2)
    assert one["run_id"] == two["run_id"]
    for point, other in zip(two["training"]["curve"], one["training"]["curve"], strict=True):
        assert point["step"] == other["step"]
        assert point["train_loss"] == pytest.approx(other["train_loss"], rel=1e-3)
        assert point["dev"] == pytest.approx(other["dev"], abs=1e-3)
    assert two["scores"]["dev"] == pytest.approx(one["scores"]["dev"], abs=1e-3)
    for name, value in one["weights_on_disk"].items():
        torch.testing.assert_close(two["weights_on_disk"][name], value, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["task=coref"], r"^trainer\.devices=2: a batch of task=coref is one document, which several devices cannot"),
        (["task=ner", "elmo.layer_norm=true"], r"^trainer\.devices=2: elmo\.layer_norm=true normalises over a whole"),
        (["task=wsd"], r"^trainer\.devices=2: task=wsd runs on one device only"),
    ],
)
def test_what_cannot_be_shared_gives_a_one_sentence_error(
    composed: Any, tmp_path: Path, overrides: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        train.run(composed(*overrides, "trainer.devices=2", "data.fraction=1"))
    assert not list(tmp_path.glob("outputs/rows/*"))
