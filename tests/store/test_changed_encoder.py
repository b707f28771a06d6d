"""A store whose encoder changes after the store was made: nothing of the one lies under the digest of the other."""

import pickle
import random
import threading
import time

import pytest
import torch
from stored import SENTENCES, assert_right
from torch import nn

import elmo_tasks.store.store as store_module
from elmo_tasks.bilm import BiLM
from elmo_tasks.encoders.cove import CoVe
from elmo_tasks.encoders.hf import HuggingFace
from elmo_tasks.errors import UserError
from elmo_tasks.store.index import Index
from elmo_tasks.store.layers import LayerStore
from elmo_tasks.store.tokens import TokenStore

CHANGED = r"^the encoder has changed since this layer store was made \(.*\): make a new store for it$"


def step(bilm):
    bilm.requires_grad_(True)
    bilm.layers([["a", "b"]])[0].sum().backward()
    torch.optim.SGD(bilm.parameters(), lr=0.1).step()
    bilm.requires_grad_(False)


def add_in_place(bilm):
    with torch.no_grad():
        bilm.lstms[0].weight.mul_(1.5)


def through_data(bilm):
    bilm.lstms[0].weight.data.mul_(1.5)


def one_number_through_numpy(bilm):
    bilm.lstms[0].weight.detach().numpy()[1, 2, 3] += 0.5


def load_others(bilm):
    bilm.load_state_dict({name: 2 * value for name, value in bilm.state_dict().items()})


def other_part(bilm):
    bilm.encoder.highways[0] = type(bilm.encoder.highways[0])(20).requires_grad_(False)


def halve(bilm):
    """Numbers that float16 has exactly, so that the values stay the same and the products do not."""
    bilm.half()


def precise(bilm):
    bilm.precision = "bfloat16"


CHANGES = [step, add_in_place, through_data, one_number_through_numpy, load_others, other_part, halve, precise]


@pytest.mark.parametrize("kind", [LayerStore, TokenStore])
@pytest.mark.parametrize("change", CHANGES)
def test_the_folder_stays_that_of_the_encoder_that_it_was_made_for(
    tiny_bilm, tiny_options, shake, tmp_path, kind, change
):
    tiny_bilm.half().float()  # see halve
    tiny_bilm.save(tmp_path / "before")
    store = kind(tmp_path, tiny_bilm, dtype="float32")
    store.fill(SENTENCES[:1])
    digest = tiny_bilm.digest
    change(tiny_bilm)
    assert tiny_bilm.digest != digest
    for use in (lambda: store.fill(SENTENCES), lambda: store.padded(SENTENCES[:1])):
        with pytest.raises(UserError, match=CHANGED):
            use()
    other = kind(tmp_path, tiny_bilm, dtype="float32")
    assert other.shards.folder != store.shards.folder
    assert other.fill(SENTENCES[:1]).read == 0
    before = BiLM.load(tmp_path / "before")
    again = kind(tmp_path, before, dtype="float32")
    again.fill(SENTENCES)
    for row, sentence in zip(again.padded(SENTENCES), SENTENCES, strict=True):
        torch.testing.assert_close(row[:, : len(sentence)], before.layers([sentence])[0], rtol=0, atol=1e-5)


def test_what_stays_the_same_is_still_read(tiny_bilm, tmp_path):
    store = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    store.fill(SENTENCES)
    tiny_bilm.load_state_dict({name: value.clone() for name, value in tiny_bilm.state_dict().items()})
    tiny_bilm.train().eval()
    tiny_bilm.precision = "bfloat16"
    tiny_bilm.precision = "float32"
    assert store.fill(SENTENCES).computed == 0
    assert_right(store, SENTENCES)


def test_a_second_warm_up_needs_a_second_store(tiny_bilm, tmp_path):
    with pytest.raises(UserError, match=r"^bilm\.state=warm needs a warm-up text"):
        LayerStore(tmp_path, tiny_bilm, state="warm")
    tiny_bilm.warm_up([["the", "end"]])
    store = LayerStore(tmp_path, tiny_bilm, state="warm")
    store.fill(SENTENCES[:1])
    tiny_bilm.warm_up([["another", "one"]])
    for use in (lambda: store.fill(SENTENCES), lambda: store.get(SENTENCES[0])):
        with pytest.raises(UserError, match=CHANGED):
            use()
    tiny_bilm.warm_up([["the", "end"]])
    assert store.fill(SENTENCES[:1]).computed == 0
    tiny_bilm.lstms[0].bias.data.add_(1)  # the state is that of the old weights
    with pytest.raises(UserError, match=r"^bilm\.state=warm: the biLM has changed since its warm-up"):
        LayerStore(tmp_path, tiny_bilm, state="warm")


def test_a_change_in_another_thread_while_layers_are_computed_is_not_written(tiny_bilm, tmp_path, monkeypatch):
    store, layers = LayerStore(tmp_path, tiny_bilm), tiny_bilm.layers

    def compute(sentences):
        found = layers(sentences)
        thread = threading.Thread(target=through_data, args=(tiny_bilm,))
        thread.start()
        thread.join()
        return found

    monkeypatch.setattr(tiny_bilm, "layers", compute)
    with pytest.raises(UserError, match=CHANGED):
        store.fill(SENTENCES)
    assert not list(store.shards.folder.glob("*.idx"))


def test_streams_of_two_threads_have_states_of_their_own(tiny_bilm, tmp_path, monkeypatch):
    texts, right = (SENTENCES, SENTENCES[::-1]), []
    for k, text in enumerate(texts):
        right.append(LayerStore(tmp_path / f"alone{k}", tiny_bilm, state="carry", dtype="float32"))
        right[k].fill(text)
    meeting, layers = threading.Barrier(2), BiLM.layers

    def compute(self, sentences, state="reset"):
        meeting.wait(60)  # both are in the middle of their stream
        return layers(self, sentences, state=state)

    monkeypatch.setattr(BiLM, "layers", compute)
    stores = [LayerStore(tmp_path / name, tiny_bilm, state="carry", dtype="float32") for name in "ab"]
    threads = [threading.Thread(target=store.fill, args=(text,)) for store, text in zip(stores, texts, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store, expected in zip(stores, right, strict=True):
        for sentence in SENTENCES:
            assert (store.get(sentence) == expected.get(sentence)).all()


def test_threads_that_share_a_store_read_what_each_needs(tiny_bilm, tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "_SHARD_TOKENS", 8)
    add = Index.add
    monkeypatch.setattr(Index, "add", lambda *arguments: (add(*arguments), time.sleep(0.02)))  # lets others in between
    store = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    sentences = [[f"{letter}{k}"] * (1 + k % 3) for k in range(6) for letter in "abcd"]
    threads = [threading.Thread(target=store.fill, args=(sentences[k::4] + sentences[:8],)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.fill(sentences).computed == 0
    assert_right(store, sentences)


def test_a_copy_in_another_process_opens_the_folder_by_itself(tiny_bilm, tmp_path):
    store = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    store.fill(SENTENCES)
    copied = pickle.loads(pickle.dumps(store))
    assert_right(copied, SENTENCES)


@pytest.mark.parametrize("kind", [LayerStore, TokenStore])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_an_encoder_of_another_number_format_can_be_stored(tiny_bilm, tmp_path, kind, dtype):
    tiny_bilm.to(dtype)
    store = kind(tmp_path, tiny_bilm, dtype="float32")
    store.fill(SENTENCES)
    for row, sentence in zip(store.padded(SENTENCES), SENTENCES, strict=True):
        expected = tiny_bilm.layers([sentence])[0].float()
        torch.testing.assert_close(row[:, : len(sentence)], expected, rtol=0.02, atol=0.06)


def test_what_a_store_does_not_take_is_said(tiny_bilm, tmp_path):
    with pytest.raises(UserError, match=r"^bilm\.store\.dtype=float64: expected float16 or float32$"):
        LayerStore(tmp_path, tiny_bilm, dtype="float64")
    with pytest.raises(UserError, match=r"^bilm\.state must be one of reset, carry, warm, found 'cold'$"):
        TokenStore(tmp_path, tiny_bilm, state="cold")
    store = LayerStore(tmp_path, tiny_bilm)
    with pytest.raises(UserError, match=r"^padded: expected one sentence or more, found none$"):
        store.padded([])
    with pytest.raises(UserError, match=r"^sentence 2: expected a list of tokens, each a text, found \[1, 2\]$"):
        store.fill([["a"], [1, 2]])
    with pytest.raises(UserError, match=r"^sentence 1: expected a list of tokens, found the text 'a b'"):
        store.get("a b")
    assert list(tmp_path.iterdir()) == []


def test_stored_layers_have_no_gradient_and_say_so(tiny_bilm, tmp_path):
    tiny_bilm.requires_grad_(True)
    store = LayerStore(tmp_path, tiny_bilm)
    store.fill(SENTENCES)
    with pytest.raises(UserError, match=r"^the encoder's weights require gradients, which stored layers do not have"):
        store.padded(SENTENCES)
    with torch.no_grad():
        assert store.padded(SENTENCES).shape == (5, 3, 3, 12)


class Louder(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def test_a_part_whose_weights_do_not_say_what_it_does_is_refused(tiny_bilm, tmp_path):
    store = LayerStore(tmp_path, tiny_bilm)
    hook = tiny_bilm.lstms[0].register_forward_hook(lambda *_: None)
    with pytest.raises(UserError, match=r"^a part of this BiLM was replaced by one of another kind, or has a new hook"):
        store.fill(SENTENCES)
    hook.remove()
    store.fill(SENTENCES[:1])
    old = tiny_bilm.encoder.highways[0].transform
    tiny_bilm.encoder.highways[0].transform = Louder(20, 20).requires_grad_(False)
    tiny_bilm.encoder.highways[0].transform.load_state_dict(old.state_dict())
    for use in (lambda: store.fill(SENTENCES), lambda: LayerStore(tmp_path, tiny_bilm)):
        with pytest.raises(UserError, match=r"^a part of this BiLM was replaced"):
            use()
    tiny_bilm.encoder.highways[0].transform = old
    tiny_bilm.lstms[1].cell_clip = 0.1
    with pytest.raises(UserError, match=r"^a part of this BiLM was replaced"):
        store.fill(SENTENCES)


def test_the_stores_of_other_encoders_follow_their_weights_too(cove_files, hf_folder, tmp_path):
    words = {"path": str(cove_files[1]), "dim": 5, "lowercase": False}
    cove = CoVe.load(cove_files[0], words=words, lstm={"dim": 5, "n_layers": 2})
    model = HuggingFace.load(hf_folder("bert"))
    for encoder in (cove, model):
        store = LayerStore(tmp_path, encoder, dtype="float32")
        store.fill([["the", "cat"]])
        with torch.no_grad():
            list(encoder.parameters())[-1 if encoder is cove else 3].add_(1)
        for use in (lambda s=store: s.fill([["cat"]]), lambda s=store: s.padded([["the", "cat"]])):
            with pytest.raises(UserError, match=CHANGED):
                use()
        assert LayerStore(tmp_path, encoder, dtype="float32").fill([["the", "cat"]]).read == 0


OTHER_CHANGES = {
    "in place": lambda value, encoder: value.add_(0.25),
    "through data": lambda value, encoder: value.data.mul_(1.5),
    "one number": lambda value, encoder: value.view(-1)[0].fill_(7.0),
    "others": lambda value, encoder: encoder.load_state_dict({k: v * 2 for k, v in encoder.state_dict().items()}),
}


WORDS = [["the", "cat"], ["cat"], ["the", "the", "cat"], ["cat", "the"]]


def contents(encoder):
    return [(value.dtype, value.numpy().tobytes()) for value in encoder.state_dict().values()]


def outputs(encoder):
    return [layers.numpy().tobytes() for layers in encoder.layers(WORDS)]


@pytest.mark.parametrize("name", ["cove", "hf"])
@pytest.mark.parametrize("n", [10, pytest.param(60, marks=pytest.mark.slow)])
def test_sessions_of_other_encoders_read_their_own_layers_or_are_refused(cove_files, hf_folder, tmp_path, name, n):
    """Calls drawn with a seed. What is refused has other tensors, what is answered gives the same layers as before."""
    folder = None if name == "cove" else hf_folder("bert")
    outcomes = []
    for seed in range(n):
        rng = random.Random(seed)
        words = {"path": str(cove_files[1]), "dim": 5, "lowercase": False}
        encoder = CoVe.load(cove_files[0], words=words, lstm={"dim": 5, "n_layers": 2}) if folder is None else None
        encoder = encoder or HuggingFace.load(folder)
        store, key, filled = LayerStore(tmp_path, encoder, dtype="float32"), contents(encoder), []
        before = outputs(encoder)
        for _ in range(8):
            call = rng.choice(["change", "fill", "fill", "read", "read", "new"])
            if call == "change":
                with torch.no_grad():
                    value = rng.choice([each for each in encoder.parameters() if each.numel()])
                    OTHER_CHANGES[rng.choice([*OTHER_CHANGES])](value, encoder)
            elif call == "new":
                store, key, filled = LayerStore(tmp_path, encoder, dtype="float32"), contents(encoder), []
                before = outputs(encoder)
            elif call == "fill" or filled:
                try:
                    chosen = rng.sample(WORDS if call == "fill" else filled, 1)
                    found = store.fill(chosen) if call == "fill" else store.padded(chosen)
                except UserError:
                    assert contents(encoder) != key, (seed, call)
                    outcomes.append("refused")
                    continue
                assert outputs(encoder) == before, (seed, call)
                outcomes.append(call)
                if call == "fill":
                    filled += chosen
                else:
                    torch.testing.assert_close(found[0], encoder.layers(chosen)[0], atol=1e-5, rtol=1e-5)
    assert {"refused", "fill", "read"} == {*outcomes}
