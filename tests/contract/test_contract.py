"""What every task model promises. A task is found by its file in conf/task: a new one is covered from its first day."""

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from other_device import AWAY, here, other_device, sent_away
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_tasks.assembly import build_data, build_elmo, build_model, build_module, make
from elmo_tasks.batch import Text
from elmo_tasks.bilm import BiLM
from elmo_tasks.config.compose import validate
from elmo_tasks.data.fitted import FittedData
from elmo_tasks.data.module import TaskData
from elmo_tasks.store.layers import LayerStore

CONF = Path(__file__).parents[2] / "conf"
TASKS = [path.stem for path in sorted((CONF / "task").glob("*.yaml")) if "reader" in OmegaConf.load(path)]
PLACEMENTS = ["none", "input", "output", "both"]
N_ITEMS, N_STEPS = 6, 50

every_task = pytest.mark.parametrize("task", TASKS)
every_placement = pytest.mark.parametrize("placement", PLACEMENTS)


@cache
def configured(task: str, *overrides: str) -> dict[str, Any]:
    small = ["words=random", "scale=cpu", "trainer.accelerator=cpu"]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return validate(compose("config", [f"task={task}", *small, *overrides])).to_json()


@cache
def make_data(task: str) -> TaskData:
    """The bundled sample, cut to a few training items of different lengths that are not the longest.

    Of documents, which make a batch each, it is one: its sentences are the rows.
    """
    data = build_data(configured(task))
    data.read()
    by_length = sorted(data.items["train"], key=lambda item: sum(map(len, data.reader.texts(item))))
    n_items = 1 if data.reader.documents else N_ITEMS
    data.items["train"] = by_length[:: len(by_length) // N_ITEMS][:n_items]
    return data


@dataclass
class Built:
    """A task's model and one batch of all its items."""

    cfg: dict[str, Any]
    data: TaskData
    bilm: BiLM
    model: nn.Module

    @property
    def items(self) -> list[Any]:
        return self.data.items["train"]

    def batch(self, items: list[Any] | None = None) -> Any:
        return self.data.collate(self.items if items is None else items)

    def loss(self, batch: Any) -> Tensor:
        return self.model.loss(self.model(batch), batch)

    @torch.no_grad()
    def predict(self, batch: Any) -> tuple[dict[str, Tensor], list[Any]]:
        """Every tensor of the output, and the decoded predictions."""
        self.model.eval()
        out = self.model(batch)
        return {field.name: getattr(out, field.name) for field in fields(out)}, self.model.decode(out, batch)

    def train(self) -> Iterator[float]:
        """The losses of a few updates, each made when it is asked for; without dropout, which would need more."""
        module = build_module(self.cfg, self.model.eval())
        optimizer = module.make_optimizer([p for p in self.model.parameters() if p.requires_grad])
        batch = self.batch()
        for _step in range(N_STEPS):
            optimizer.zero_grad()
            loss = self.loss(batch)
            (loss + self.model.elmo.penalty()).backward()
            optimizer.step()
            yield float(loss)


@pytest.fixture
def build(tmp_path, tiny_bilm):
    def build(task, placement="both", *overrides, seed=0):
        cfg = configured(task, f"elmo.placement={placement}", "elmo.layer_norm=false", *overrides)
        data, bilm = copy.copy(make_data(task)), tiny_bilm if placement != "none" else None
        data.use_layers(bilm and LayerStore(tmp_path / "store", bilm, dtype="float32"), ["train"])
        torch.manual_seed(seed)
        return Built(cfg, data, tiny_bilm, build_model(cfg, data, build_elmo(cfg, bilm)))

    return build


def texts_in(batch: Any) -> Iterator[Text]:
    return (value for field in fields(batch) if isinstance(value := getattr(batch, field.name), Text))


def with_several_items(built: Built) -> Built:
    if len(built.items) == 1:
        pytest.skip("a batch is one document")
    return built


def assert_same_predictions(found, expected):
    torch.testing.assert_close(found[0], expected[0])
    assert found[1] == expected[1]


def test_there_are_tasks():
    assert {"coref", "ner", "pos", "snli", "squad", "srl", "sst5"} <= set(TASKS)


@every_task
@every_placement
def test_it_learns_a_handful_of_items(build, task, placement):
    losses = build(task, placement).train()
    first = next(losses)
    assert any(loss < 0.5 * first for loss in losses)


@every_task
@every_placement
def test_saved_and_loaded_it_predicts_the_same_and_the_file_holds_nothing_of_the_bilm(
    build, task, placement, shake, tmp_path
):
    built = build(task, placement)
    shake(built.model, std=0.2)
    expected = built.predict(built.batch())
    save_file(built.model.state_dict(), tmp_path / "model.safetensors")
    saved, other = load_file(tmp_path / "model.safetensors"), build(task, placement, seed=1)
    with pytest.raises(AssertionError):
        assert_same_predictions(other.predict(other.batch()), expected)
    other.model.load_state_dict(saved)
    found = other.predict(other.batch())
    assert all(torch.equal(found[0][name], expected[0][name]) for name in expected[0])
    assert found[1] == expected[1]
    assert not any(isinstance(part, BiLM) for part in other.model.modules())
    frozen = [p for p in built.bilm.parameters() if p.numel() > 1]
    assert not any(torch.equal(tensor, p) for tensor in saved.values() for p in frozen if tensor.shape == p.shape)


@every_task
@every_placement
def test_every_trainable_parameter_gets_a_finite_gradient_and_none_of_the_bilm_gets_one(build, task, placement):
    built = build(task, placement)
    built.loss(built.batch()).backward()
    for name, parameter in built.model.named_parameters():
        if not parameter.requires_grad:
            assert parameter.grad is None, name
            continue
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        if parameter.dim() > 1 or name.startswith("elmo."):  # a bias may rightly be without influence
            assert parameter.grad.any(), name
    assert all(p.grad is None for p in built.bilm.parameters())


@every_task
@every_placement
def test_an_item_alone_gives_what_it_gives_in_a_padded_batch(build, task, placement):
    built = with_several_items(build(task, placement))
    outputs, predictions = built.predict(built.batch())
    for k, item in enumerate(built.items):
        alone, (prediction,) = built.predict(built.batch([item]))
        for name, (row,) in alone.items():
            in_batch = outputs[name][k][tuple(slice(size) for size in row.shape)]
            torch.testing.assert_close(row, in_batch, msg=lambda text, name=name: f"{name}: {text}")
        assert prediction == predictions[k]


@every_task
@every_placement
def test_more_padding_changes_no_prediction(build, task, placement, shake):
    built = build(task, placement)
    shake(built.model, std=0.2)
    batch = built.batch()
    _, expected = built.predict(batch)
    for text in texts_in(batch):
        text.word_ids, text.mask = (F.pad(part, (0, 3)) for part in (text.word_ids, text.mask))
        text.char_ids = F.pad(text.char_ids, (0, 0, 0, 3))
        text.layers = None if text.layers is None else F.pad(text.layers, (0, 0, 0, 3))
    assert built.predict(batch)[1] == expected


@every_task
@every_placement
def test_garbage_in_the_padding_changes_nothing(build, task, placement):
    built = build(task, placement)
    batch = built.batch()
    expected, loss = built.predict(batch), built.loss(batch)
    for text in texts_in(batch):
        padding = ~text.mask
        assert padding.any(), "the texts have one length: the sample needs longer and shorter ones"
        text.word_ids[padding] = torch.randint(len(built.data.fitted.vocabulary), (int(padding.sum()),))
        text.char_ids[padding] = torch.randint(262, text.char_ids[padding].shape)
        if text.layers is not None:
            text.layers.transpose(1, 2)[padding] = 100 * torch.randn_like(text.layers.transpose(1, 2)[padding])
    found = built.predict(batch)
    torch.testing.assert_close(built.loss(batch), loss)
    assert found[1] == expected[1]


@every_task
def test_the_order_of_items_changes_no_prediction(build, task, shake):
    built = with_several_items(build(task))
    shake(built.model)
    outputs, predictions = built.predict(built.batch())
    turned, turned_predictions = built.predict(built.batch(built.items[::-1]))
    assert turned_predictions == predictions[::-1]
    torch.testing.assert_close({name: value.flip(0) for name, value in turned.items()}, outputs, rtol=1e-5, atol=1e-5)


@every_task
def test_placements_differ_by_their_mixes_and_by_the_width_of_what_reads_them(build, task):
    shapes = {}
    for placement in PLACEMENTS:
        model = build(task, placement).model
        shapes[placement] = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
        places = {"none": (), "both": ("input", "output")}.get(placement, (placement,))
        mixes = {f"elmo.mixes.{place}.{name}" for place in places for name in ("w", "gamma")}
        assert set(shapes[placement]) == set(shapes["none"]) | mixes
    wider = {
        placement: {name: shape for name, shape in shapes["none"].items() if shapes[placement][name] != shape}
        for placement in PLACEMENTS
    }
    dim = build(task).bilm.dim
    for placement in PLACEMENTS[1:]:
        assert wider[placement]
        for name, shape in wider[placement].items():
            *other, width = shapes[placement][name]
            assert tuple(other) == shape[:-1]
            assert width > shape[-1], name
            assert (width - shape[-1]) % dim == 0, name
    assert set(wider["both"]) == set(wider["input"]) | set(wider["output"])


@every_task
def test_both_ways_to_ask_for_the_baseline_are_the_same_run_without_layers(build, task):
    by_value, by_file = build(task, "none"), build(task, "none", "elmo=none")
    expected, batch = by_value.predict(by_value.batch()), by_file.batch()
    for text in texts_in(batch):
        assert text.layers is None
        text.layers = torch.full((len(text.tokens), 3, text.mask.shape[1], 4), torch.nan)
    assert_same_predictions(by_file.predict(batch), expected)


@every_task
@pytest.mark.parametrize("placement", PLACEMENTS[1:])
def test_the_layers_enter_through_the_mixes_alone(build, task, placement):
    built = build(task, placement)
    batch = built.batch()
    with_layers = built.predict(batch)[0]
    for mix in built.model.elmo.mixes.values():
        mix.gamma.data.zero_()
    without = built.predict(batch)
    for text in texts_in(batch):
        text.layers.normal_()
    assert_same_predictions(built.predict(batch), without)
    assert not all(torch.equal(with_layers[name], without[0][name]) for name in with_layers)


@every_task
@pytest.mark.parametrize(
    ("mix", "learned"), [("scalar", {"w", "gamma"}), ("mean", {"gamma"}), ("last", {"gamma"}), ("layer_0", {"gamma"})]
)
def test_a_mix_learns_what_its_name_says(build, task, mix, learned):
    built = build(task, "both", f"elmo.mix={mix}")
    built.loss(built.batch()).backward()
    for part in built.model.elmo.mixes.values():
        assert {name for name, p in part.named_parameters() if p.grad is not None and p.grad.any()} == learned


@every_task
@pytest.mark.parametrize("placement", ["none", "both"])
@pytest.mark.parametrize("training", [False, True])
def test_on_another_device_all_tensors_are_made_there_and_the_numbers_are_the_same(build, task, placement, training):
    built = build(task, placement)
    built.model.train(training)
    losses, gradients, predictions = [], [], []
    for where in ("cpu", AWAY):
        with other_device():
            model = built.model if where == "cpu" else sent_away(built.model)
            batch = built.batch().to(where)
            torch.manual_seed(3)
            loss = model.loss(model(batch), batch)
            loss.backward()
            with torch.no_grad():
                predictions.append(model.eval().decode(model(batch), batch))
        losses.append(here(loss).detach())
        gradients.append({name: here(p.grad) for name, p in model.named_parameters() if p.grad is not None})
    assert predictions[1] == predictions[0]
    if not training:  # with dropout a device has random numbers of its own
        torch.testing.assert_close(losses[1], losses[0])
        torch.testing.assert_close(gradients[1], gradients[0])


def is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(is_plain, [*value.keys(), *value.values()]))
    if isinstance(value, (list, tuple)):
        return all(map(is_plain, value))
    return value is None or type(value) in (str, int, float, bool)


@every_task
def test_predictions_are_plain_python_that_the_metric_compares_with_gold(build, task):
    built = build(task)
    metric = build_module(built.cfg, built.model).metric
    for items in filter(None, (built.items[:1], built.items[1:])):
        batch = built.batch(items)
        _, predictions = built.predict(batch)
        assert is_plain(predictions)
        assert is_plain(batch.gold)
        assert len(predictions) == len(batch.gold) == len(items)
        metric.update(predictions, batch.gold)
    scores = metric.compute()
    assert metric.name in scores
    assert all(type(score) is float and 0 <= score <= 100 for score in scores.values())


INPUTS = {
    "coref": {"sentences": ["Ann saw Bo .", "She left him ."]},
    "snli": {"premise": "A man sleeps.", "hypothesis": "Nobody is awake."},
    "squad": {"context": "Ann saw Bo in Oslo.", "question": "Who saw Bo?"},
    "srl": {"tokens": "Ann saw Bo .", "predicates": [1]},
    "ner": {"tokens": "Ann saw Bo ."},
    "pos": {"tokens": "Ann saw Bo ."},
}


@every_task
def test_a_model_that_is_restored_without_the_data_predicts_the_same(build, task, tiny_bilm, tmp_path):
    built = build(task)
    expected = built.predict(built.batch())
    reader = build_data(built.cfg).reader
    fitted = FittedData.restore(reader, json.loads(json.dumps(built.data.fitted.to_json())))
    model = make(built.cfg["task"]["model"], elmo=build_elmo(built.cfg, tiny_bilm), **fitted.model_parts())
    model.load_state_dict(built.model.state_dict())
    restored = replace(built, model=model)
    assert_same_predictions(restored.predict(fitted.collate(built.items, built.data.store)), expected)
    item = reader.from_json(INPUTS.get(task, {"text": "Ann saw Bo ."}), "input")
    built.data.store.fill(reader.texts(item))
    _, (prediction,) = restored.predict(fitted.collate([item], built.data.store))
    message = reader.to_json(item, prediction)
    assert message
    assert json.loads(json.dumps(message)) == message
