"""Sessions with a layer store whose encoder changes between its calls, and weight files that other programs wrote.

What is read must be what the encoder computes as it then is, or the call is refused in one sentence.
"""

import copy
import json
import random
from collections import Counter

import h5py
import numpy as np
import torch
from torch import nn

from elmo_tasks.bilm import BiLM
from elmo_tasks.bilm.lstm import ProjectedLSTM
from elmo_tasks.errors import UserError
from elmo_tasks.store.layers import LayerStore
from elmo_tasks.store.tokens import TokenStore

SENTENCES = [["the", "cat"], ["ab", "c"], ["a", "bc"], ["l'", "été"], ["</S>", "dog"]]
TEXTS = [[["some", "text"]], [["another", "one", "."]]]


def shake(module, rng):
    """Draw all parameters anew."""
    generator = torch.Generator().manual_seed(rng.randrange(10**6))
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5, generator=generator)
    return module


def step(bilm, rng):
    """One step, as the optimizers of PyTorch make it."""
    parameters = list(bilm.parameters())
    with torch.no_grad():
        torch._foreach_add_(parameters, [torch.ones_like(each) for each in parameters], alpha=rng.uniform(0.1, 0.5))


def add_to_data(bilm, rng):
    """As old code does it: PyTorch does not count such a change."""
    for parameter in rng.choice([bilm.lstms, bilm.encoder]).parameters():
        parameter.data.add_(rng.uniform(0.2, 0.5))


def through_numpy(bilm, rng):
    rng.choice(list(bilm.lstms)).weight.detach().numpy()[...] *= rng.uniform(1.5, 2)


def one_number(bilm, rng):
    """The smallest change, which PyTorch counts."""
    with torch.no_grad():
        bilm.lstms[0].bias[0, rng.randrange(12)] += 3


def copy_over(bilm, rng):
    with torch.no_grad():
        for parameter in bilm.encoder.parameters():
            parameter.copy_(1.5 * parameter)


def load_others(bilm, rng):
    bilm.load_state_dict(shake(BiLM(bilm.options), rng).state_dict())


def assign_others(bilm, rng):
    """Other parameters in the place of the old ones."""
    bilm.load_state_dict(shake(BiLM(bilm.options), rng).state_dict(), assign=True)
    bilm.requires_grad_(False)


def replace_part(bilm, rng):
    size = bilm.options
    part = ProjectedLSTM(
        input_dim=size.projection_dim, dim=size.dim, projection_dim=size.projection_dim, cell_clip=3, proj_clip=3
    )
    bilm.lstms[rng.randrange(2)] = shake(part, rng).requires_grad_(False)


def other_precision(bilm, rng):
    bilm.float()
    bilm.precision = rng.choice(["float32", "bfloat16", "int8"])


def other_format(bilm, rng):
    bilm.precision = "float32"
    bilm.to(rng.choice([torch.float32, torch.float64, torch.float16, torch.bfloat16]))


def warm_up(bilm, rng):
    bilm.warm_up(rng.choice(TEXTS))
    bilm.warmed_by = contents(bilm)


def tune(bilm, rng):
    bilm.requires_grad_(rng.random() < 0.5)


CHANGES = [step, add_to_data, through_numpy, one_number, copy_over, load_others, assign_others, replace_part]
CHANGES += [other_precision, other_format, warm_up, tune]


def contents(bilm):
    """All that may change a layer, but for the warm state: exactly, and not by a digest."""
    tensors = {name: (value.dtype, value.double().numpy().tobytes()) for name, value in bilm.state_dict().items()}
    return bilm.precision, tensors


class Session:
    """A biLM, and the stores that were made for it; calls are drawn with a seed.

    Attributes:
        said: what was done, for messages; counts: how often a call was answered or refused.
    """

    def __init__(self, seed, options, root):
        self.rng, self.root = random.Random(seed), root
        self.bilm = shake(BiLM(options), self.rng).requires_grad_(False)
        self.bilm.warmed_by = None
        self.said, self.counts, self.made = [], Counter(), []
        self.new_store()

    def run(self, n_calls):
        for _ in range(n_calls):
            self.rng.choice([self.change, self.fill, self.fill, self.read, self.read, self.new_store])()
        self.check_all()

    def change(self):
        """Change the biLM in one way."""
        change = self.rng.choice(CHANGES)
        self.said.append(change.__name__)
        change(self.bilm, self.rng)

    def new_store(self):
        """A store for the biLM as it is now; none where the state is that of another text's weights."""
        kind, state = self.rng.choice([(LayerStore, "reset"), (LayerStore, "warm"), (TokenStore, "reset")])
        dtype = self.rng.choice(["float16", "float32"])
        self.said.append(f"{kind.__name__} {state} {dtype}")
        try:
            store = kind(self.root, self.bilm, state=state, dtype=dtype)
        except UserError:
            assert state == "warm", self.said
            assert self.bilm.warmed_by != contents(self.bilm), self.said
            if not self.made:
                self.new_store()
            return
        assert state != "warm" or self.bilm.warmed_by == contents(self.bilm), self.said
        self.store, self.filled = store, []
        self.key = (contents(self.bilm), self.bilm.warm_digest if state == "warm" else None)
        self.made.append((copy.deepcopy(self.bilm), kind, state, dtype, self.filled))

    def is_current(self):
        """Whether the biLM is what the store is for."""
        return self.key == (contents(self.bilm), self.bilm.warm_digest if self.store.state == "warm" else None)

    def fill(self):
        """Fill the store, which must refuse if and only if the biLM is another one."""
        sentences = self.rng.sample(SENTENCES, 2)
        self.said.append("fill")
        try:
            self.store.fill(sentences)
        except UserError:
            assert not self.is_current(), self.said
            self.counts["fill refused"] += 1
            return
        assert self.is_current(), self.said
        self.filled += sentences
        self.counts["filled"] += 1

    def read(self):
        """Read what was filled: what the biLM computes now, or a refusal."""
        self.said.append("read")
        if not self.filled:
            return
        sentences = self.rng.sample(self.filled, 2)
        tuned = any(each.requires_grad for each in self.bilm.parameters())
        try:
            found = self.store.padded(sentences)
        except UserError:
            assert tuned or not self.is_current(), self.said
            self.counts["read refused"] += 1
            return
        assert not tuned, self.said
        assert_layers(self.bilm, self.store, sentences, found, self.said)
        self.counts["read"] += 1

    def check_all(self):
        """Every folder, read by a biLM that is what the first one was when the folder was made."""
        for bilm, kind, state, dtype, filled in self.made:
            bilm.requires_grad_(False)
            if filled:
                del filled[3:]
                store = kind(self.root, bilm, state=state, dtype=dtype)
                assert store.fill(filled).computed == 0, self.said
                assert_layers(bilm, store, filled, store.padded(filled), self.said)


def assert_layers(bilm, store, sentences, found, said):
    """Compare with a plain model of the same weights, a sentence at a time."""
    plain = BiLM(bilm.options).to(bilm.lstms[0].weight.dtype).requires_grad_(False)
    plain.load_state_dict(bilm.state_dict())
    plain.precision = bilm.precision
    if store.state == "warm":
        plain.warm_up(next(text for text in TEXTS if _warmed(plain, text) == bilm.warm_digest))
    exact = bilm.precision == "float32" and bilm.lstms[0].weight.dtype in (torch.float32, torch.float64)
    rounded = store.shards.dtype == "float16"
    enlarged = rounded and isinstance(store, TokenStore)  # by the LSTMs: what is lost in the token layer
    tolerance = {True: 2e-3, False: 1e-4}[rounded] if exact and not enlarged else 0.06
    for row, sentence in zip(found, sentences, strict=True):
        expected = plain.layers([sentence], state=store.state)[0].float()
        error = (row[:, : len(sentence)] - expected).abs() / (1 + expected.abs())
        assert error.max() < tolerance, (said, float(error.max()))
        assert not row[:, len(sentence) :].any(), said


def _warmed(bilm, text):
    bilm.warm_up(text)
    return bilm.warm_digest


# Weight files: each edit says whether the layers stay as they are (True), or the files must be refused (False).


def _rewrite(file, name, **how):
    values = file[name][...]
    del file[name]
    file.create_dataset(name, data=values.astype(how.pop("dtype", values.dtype)), **how)


def stored_otherwise(file, options, rng):
    how = [{"dtype": "f8"}, {"dtype": ">f4"}, {"compression": "gzip"}, {"compression": "lzf"}, {"chunks": True}]
    how += [{"fletcher32": True}, {"shuffle": True, "compression": "gzip"}, {"track_times": True}]
    for name in rng.sample(_names(file), 3):
        _rewrite(file, name, **rng.choice(how))
    return True


def with_attributes(file, options, rng):
    for item in (file, file["CNN"], file[rng.choice(_names(file))]):
        item.attrs[rng.choice(["backend", "keras_version", "é"])] = rng.choice(["x", 3, np.zeros(4), b"\xff", [1.5]])
    return True


def beside(file, options, rng):
    """What a training leaves beside the layers."""
    for name in rng.sample(["softmax/W", "lm/optimizer/slot", "global_step", "meta"], 2):
        file[name] = rng.choice([np.zeros((3, 4)), 7, "text"])
    return True


def through_links(file, options, rng):
    name = rng.choice(_names(file))
    file.move(name, "elsewhere")
    file[name] = rng.choice([h5py.SoftLink("/elsewhere"), file["elsewhere"]])
    return True


def said_otherwise(file, options, rng):
    """What the options may also say."""
    rng.choice(
        [
            lambda: options.update(unroll_steps=20, n_tokens_vocab=10, dropout=0.1),
            lambda: options["char_cnn"].update(note=None),
            lambda: options["char_cnn"].update(n_characters=261),
            lambda: options["lstm"].update(proj_clip=3, cell_clip=3),
            lambda: options["char_cnn"].update(max_characters_per_token=60),  # no word is as long
        ]
    )()
    return True


def lost(file, options, rng):
    del file[rng.choice([*_names(file), "CNN", "RNN_0", "RNN_1/RNN", "CNN_proj"])]
    return False


def one_more(file, options, rng):
    first, *_ = rng.choice(["CNN/W_cnn_3", "CNN_high_1/W_carry", "RNN_2/x", "RNN_0/RNN/MultiRNNCell/Cell2/W"]), 0
    file[first] = np.zeros((2, 2), "f4")
    return False


def other_shape(file, options, rng):
    name = rng.choice(_names(file))
    values = file[name][...]
    del file[name]
    shapes = [values[..., :-1], values[None], values.reshape(-1)[:1], np.float32(1), values[:0]]
    file[name] = rng.choice(shapes)
    return False


def other_numbers(file, options, rng):
    name = rng.choice(_names(file))
    values = file[name][...]
    kind = rng.choice(["i4", "u1", "?", "c8", "S4", "nan", "inf"])
    del file[name]
    if kind in ("nan", "inf"):
        values.reshape(-1)[rng.randrange(values.size)] = float(kind)
    file[name] = values if kind in ("nan", "inf") else values.astype(kind)
    return False


def group_for_numbers(file, options, rng):
    name = rng.choice(_names(file))
    del file[name]
    if rng.random() < 0.5:
        file.create_group(name)
    else:
        file[name] = rng.choice([h5py.SoftLink("/nowhere"), h5py.ExternalLink("other.hdf5", "/x")])
    return False


def wrong_option(file, options, rng):
    section, key = rng.choice(
        [("lstm", key) for key in ("dim", "projection_dim", "n_layers", "cell_clip", "use_skip_connections")]
        + [("char_cnn", key) for key in ("n_characters", "filters", "n_highway", "activation", "embedding")]
        + [("char_cnn", "max_characters_per_token")]
    )
    options[section][key] = rng.choice(["x", -1, 10**9, [], {}, 2.5, [[0, 1]], [["1", 1]]])
    return False


def missing_option(file, options, rng):
    section = rng.choice(["lstm", "char_cnn"])
    keys = {"lstm": ["dim", "projection_dim", "n_layers"], "char_cnn": ["filters", "embedding", "activation"]}
    if rng.random() < 0.3:
        del options[section]
    else:
        del options[section][rng.choice([*keys[section]])]
    return False


EDITS = [stored_otherwise, with_attributes, beside, through_links, said_otherwise]
EDITS += [lost, one_more, other_shape, other_numbers, group_for_numbers, wrong_option, missing_option]


def _names(file):
    found = []
    file.visititems(lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) else None)
    return sorted(name for name in found if name.startswith(("CNN", "RNN", "char")))


def edit(folder, seed):
    """Change a folder's two files in one way; the edit's name, and whether the layers must stay as they are."""
    rng = random.Random(seed)
    change = EDITS[seed % len(EDITS)]
    path = folder / "options.json"
    options = json.loads(path.read_text())
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        stays = change(file, options, rng)
    path.write_text(json.dumps(options))
    return change.__name__, stays
