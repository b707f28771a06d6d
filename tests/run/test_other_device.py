"""Everything that runs on a GPU makes its tensors there, seen without one; task models are in the contract test."""

import pytest
import torch
from other_device import AWAY, MixedDevicesError, Shell, here, other_device, sent_away
from torch import nn
from torch.nn import functional as F

from elmo_tasks.assembly.encoder import load_encoder
from elmo_tasks.bilm import BiLM
from elmo_tasks.config.compose import validate
from elmo_tasks.encoders.cove import CoVe
from elmo_tasks.encoders.hf import HuggingFace
from elmo_tasks.errors import UserError
from elmo_tasks.pretrain.heldout import score_heldout
from elmo_tasks.pretrain.inputs import Inputs, WordTable
from elmo_tasks.pretrain.model import LanguageModel
from elmo_tasks.pretrain.pack import encode
from elmo_tasks.pretrain.step import TrainingStep
from elmo_tasks.pretrain.text import LmData

SENTENCES = [["the", "cat", "sat", "."], ["Paris"], [], ["a", "word", "of", "many", "characters"], ["the", "the"]]


@pytest.mark.parametrize(
    "operation",
    [
        lambda away, near: away + near,
        lambda away, near: near @ away,
        lambda away, near: torch.cat([away, near]),
        lambda away, near: F.embedding(near.long(), away),
        lambda away, near: away.index_select(0, near[0].long()),
        lambda away, near: torch.where(near > 0, away, away),
        lambda away, near: near[away.long()],
        lambda away, near: away.numpy(),
    ],
)
def test_what_fails_on_a_gpu_fails_on_the_simulated_one(operation):
    near = torch.ones(2, 2)
    with other_device(), pytest.raises(MixedDevicesError):
        operation(near.to(AWAY), near)


def test_transfers_from_the_cpu_are_simulated():
    near = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    with other_device():
        away = near.to(AWAY)
        assert (away + torch.tensor(1.0)).tolist() == [[2.0, 3.0], [4.0, 5.0]]
        assert away[torch.tensor([1, 0])].tolist() == [[3.0, 4.0], [1.0, 2.0]]
        assert away[:, [1, 0]].tolist() == [[2.0, 1.0], [4.0, 3.0]]
        assert away.sum().item() == 10
        made = torch.zeros(2, device=away.device).copy_(near[0])
        assert isinstance(made, Shell)
        assert torch.tensor([7, 8], device=AWAY).tolist() == [7, 8]
        assert torch.equal(away.cpu(), near)


def test_gradients_are_computed_on_the_other_device_too():
    layer, x = nn.LSTM(3, 2, batch_first=True), torch.randn(2, 4, 3)
    layer(x)[0].sum().backward()
    with other_device():
        away = sent_away(layer)
        away.zero_grad()
        away(x.to(AWAY))[0].sum().backward()
    for name, parameter in layer.named_parameters():
        assert isinstance(away.get_parameter(name).grad, Shell)
        torch.testing.assert_close(here(away.get_parameter(name).grad), parameter.grad)


@pytest.mark.parametrize("state", ["reset", "carry", "warm"])
def test_a_bilm(tiny_bilm, state):
    found = []
    for bilm in (tiny_bilm, sent_away(tiny_bilm)):
        with other_device():
            if state == "warm":
                bilm.warm_up([["a", "text"], ["."]])
            batches = [bilm.layers(SENTENCES[:3], state), bilm.layers(SENTENCES[2:], state)]
        found.append(here(batches))
    for near, away in zip(*found, strict=True):
        torch.testing.assert_close(away, near)


def test_the_training_of_a_bilm(pack_of_sentences, tiny_options):
    data = LmData(batch_size=2, window=4, vocabulary_size=20, min_count=1, seed=1).use(pack_of_sentences)
    words, adam = WordTable(data.pack.words), torch.optim.Adam
    inputs, found = Inputs(data, words, 5, seed=1), []
    for where in ("cpu", AWAY):
        torch.manual_seed(0)
        model = LanguageModel(bilm=BiLM(tiny_options), vocabulary_size=len(data.vocabulary), n_samples=5, dropout=0.0)
        with other_device():
            model = model if where == "cpu" else sent_away(model)
            scores = score_heldout(model, words, data.target_ids, data.heldout()).compute()
            step = TrainingStep(model.train(), words.char_ids.to(where), (2, 4, 2), adam, 10.0, bfloat16=False)
            step.run(*inputs.make(next(data.windows(0)), 0, None))  # weights are no views there: one update tells
            found.append((scores, here(step.loss), here(step.norm)))
    assert found[1][0] == pytest.approx(found[0][0])
    torch.testing.assert_close(found[1][1:], found[0][1:])
    assert all(isinstance(vector.data, Shell) for vector in step.vectors)


@pytest.fixture
def pack_of_sentences():
    text = [[sentence for sentence in SENTENCES if sentence]]
    return encode({"train": text * 3, "heldout": text})


@pytest.mark.parametrize("kind", ["cove", "bert", "gpt2"])
def test_other_encoders(kind, cove_files, hf_folder):
    if kind == "cove":
        weights, words = cove_files
        options = {"words": {"path": str(words), "dim": 5, "lowercase": False}, "lstm": {"dim": 5, "n_layers": 2}}
        encoder = CoVe.load(path=str(weights), **options)
    else:
        encoder = HuggingFace.load(path=str(hf_folder(kind)), pieces="mean", window=8)
    near = encoder.layers(SENTENCES)
    with other_device():
        away = here(sent_away(encoder).layers(SENTENCES))
    torch.testing.assert_close(away, near)


def test_products_of_8_bits_are_for_a_cpu(composed):
    bilm = validate(composed("task=ner", "bilm.precision=int8")).to_json()["bilm"]
    assert load_encoder(bilm, "cpu").precision == "int8"
    with pytest.raises(UserError, match=r"^bilm\.precision=int8 is for a CPU, and the biLM would run on cuda"):
        load_encoder(bilm, "cuda")
