import json
import random
import shutil
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from elmo_tasks.encoders import hf
from elmo_tasks.encoders.hf import HuggingFace
from elmo_tasks.encoders.pieces import best_window, window_starts
from elmo_tasks.errors import UserError

transformers = pytest.importorskip("transformers", reason="needs the extra `hf`")

KINDS = ["bert", "roberta", "gpt2"]
SENTENCES = [["The", "cat", "sat", "."], ["unhappily"], ["dogs", "on", "mats", "were", "unhappy", ","], ["a", "xyz"]]
LONG = random.Random(1).choices(["the", "cat", "unhappily", "sat", "mats", "xyz", "a", "."], k=40)

every_kind = pytest.mark.parametrize("kind", KINDS)
every_policy = pytest.mark.parametrize("pieces", ["first", "mean"])


def oracle(kind, folder, sentence, policy, window):
    """One sentence by itself, window by window, word by word, with nothing but transformers' own calls."""
    model = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    space = "" if kind == "bert" else " "
    cut = [tokenizer(space + word, add_special_tokens=False)["input_ids"] for word in sentence]
    marked = tokenizer("", add_special_tokens=True)["input_ids"]
    before, following = marked[: len(marked) // 2], marked[len(marked) // 2 :]
    ids = [piece for word in cut for piece in word]
    size = window - len(marked)
    starts = [0] if len(ids) <= size else sorted({*range(0, len(ids) - size, size // 2), len(ids) - size})
    read = []
    for start in starts:
        pieces = torch.tensor([[*before, *ids[start : start + size], *following]])
        with torch.no_grad():
            hidden = torch.stack(model(pieces, output_hidden_states=True).hidden_states)[:, 0]
        read.append(hidden[:, len(before) : hidden.shape[1] - len(following)])
    vectors, begin = [], 0
    for word in cut:
        places = [begin] if policy == "first" else range(begin, begin + len(word))
        contexts = [min(places[0] - s, s + size - 1 - places[-1]) for s in starts]
        best = contexts.index(max(contexts))
        vectors.append(torch.stack([read[best][:, k - starts[best]] for k in places]).mean(dim=0))
        begin += len(word)
    return torch.stack(vectors, dim=1)


def test_a_text_in_the_place_of_a_list_of_tokens_is_refused(hf_folder):
    with pytest.raises(UserError, match="list of tokens"):
        HuggingFace.load(hf_folder("bert")).layers(["the cat"])


@every_policy
@every_kind
def test_each_word_has_the_vectors_that_the_model_gives_it_by_itself(hf_folder, kind, pieces):
    encoder = HuggingFace.load(hf_folder(kind), pieces=pieces)
    assert (encoder.n_layers, encoder.dim) == (3, 16)
    for sentence, layers in zip(SENTENCES, encoder.layers(SENTENCES), strict=True):
        torch.testing.assert_close(layers, oracle(kind, hf_folder(kind), sentence, pieces, 1000), atol=1e-5, rtol=0)


@every_policy
@pytest.mark.parametrize(("kind", "positions"), [("bert", 22), ("roberta", 22), ("gpt2", 20)])
def test_a_long_text_is_read_in_windows_of_all_positions(hf_folder, kind, positions, pieces):
    encoder = HuggingFace.load(hf_folder(kind), pieces=pieces)
    assert encoder.window == positions
    expected = oracle(kind, hf_folder(kind), LONG, pieces, positions)
    torch.testing.assert_close(encoder.layers([LONG])[0], expected, atol=1e-5, rtol=0)


def test_a_narrower_window_changes_the_vectors_of_a_long_text_only(hf_folder):
    wide, narrow = (HuggingFace.load(hf_folder("bert"), window=window) for window in (None, 12))
    assert (narrow.layers([LONG])[0] - wide.layers([LONG])[0]).abs().max() > 0.1
    torch.testing.assert_close(
        narrow.layers([LONG])[0], oracle("bert", hf_folder("bert"), LONG, "first", 12), atol=1e-5, rtol=0
    )
    torch.testing.assert_close(narrow.layers([["the", "cat"]]), wide.layers([["the", "cat"]]), atol=1e-5, rtol=0)
    assert narrow.digest != wide.digest


@every_kind
def test_order_and_batch_mates_change_nothing(hf_folder, kind, monkeypatch):
    encoder = HuggingFace.load(hf_folder(kind), pieces="mean")
    sentences = [*SENTENCES, LONG]
    alone = [encoder.layers([sentence])[0] for sentence in sentences]
    for mates in (sentences, sentences[::-1], sentences * 2):
        wanted = alone[::-1] if mates[0] is LONG else alone * (len(mates) // len(alone))
        torch.testing.assert_close(encoder.layers(mates), wanted, atol=1e-5, rtol=0)
    monkeypatch.setattr(hf, "_BATCH_POSITIONS", 12)
    torch.testing.assert_close(encoder.layers(sentences), alone, atol=1e-5, rtol=0)


def test_each_piece_of_a_long_text_has_a_quarter_of_a_window_on_both_sides_in_some_window():
    for size in (7, 8, 13):
        for n_pieces in range(1, 60):
            starts = window_starts(n_pieces, size)
            assert starts == sorted(set(starts))
            assert (starts == [0]) == (n_pieces <= size)
            for piece in range(n_pieces):
                start = starts[best_window(piece, piece, starts, size)]
                left, right = piece - start, min(start + size, n_pieces) - 1 - piece
                assert left >= min(piece, size // 4)
                assert right >= min(n_pieces - 1 - piece, size // 4)


def test_a_word_longer_than_a_window_is_read_where_the_window_shows_its_middle(hf_folder):
    encoder = HuggingFace.load(hf_folder("gpt2"), pieces="mean")
    (layers,) = encoder.layers([["a", "zq" * 40, "b"]])
    assert layers.shape == (3, 3, 16)
    assert torch.isfinite(layers).all()
    assert layers.abs().amax(dim=(0, 2)).min() > 0.1


def test_a_word_without_pieces_is_zero_and_is_named(hf_folder):
    encoder = HuggingFace.load(hf_folder("bert"))
    (layers, nothing) = encoder.layers([["the", "\u200b", "cat"], ["\u200b"]])
    assert not layers[:, 1].any()
    assert not nothing.any()
    assert nothing.shape == (3, 1, 16)
    torch.testing.assert_close(layers[:, [0, 2]], encoder.layers([["the", "cat"]])[0], atol=1e-5, rtol=0)
    assert encoder.prepare(["the", "cat"]) == ""
    expected = "words without a piece, which are zeros: 1 of 2, such as '\\u200b'"
    assert encoder.prepare(["the", "\u200b", "the", "\u200b"]) == expected
    assert encoder.layers([]) == []


def test_a_lone_surrogate_is_skipped(hf_folder):
    encoder = HuggingFace.load(hf_folder("bert"))
    torch.testing.assert_close(encoder.layers([["c\ud800at", "\ud800"]])[0][:, 0], encoder.layers([["cat"]])[0][:, 0])


def test_words_are_cut_as_within_running_text(hf_folder):
    encoder = HuggingFace.load(hf_folder("gpt2"))
    (cut,) = encoder.piece_tokenizer([["cat", "sat"]])
    assert cut.ids == encoder.tokenizer(" cat sat", add_special_tokens=False)["input_ids"]
    (cut,) = HuggingFace.load(hf_folder("roberta")).piece_tokenizer([["cat"]])
    assert (len(cut.before), len(cut.after)) == (1, 1)


def test_truncation_and_padding_that_a_tokeniser_brings_are_not_used(hf_folder, changed):
    folder = changed()
    content = json.loads((folder / "tokenizer.json").read_text())
    content["truncation"] = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    padding = {"strategy": {"Fixed": 9}, "direction": "Left", "pad_to_multiple_of": None}
    content["padding"] = padding | {"pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    expected = HuggingFace.load(hf_folder("bert")).layers(SENTENCES)
    torch.testing.assert_close(HuggingFace.load(folder).layers(SENTENCES), expected, atol=1e-5, rtol=0)


@pytest.fixture
def changed(hf_folder, tmp_path):
    """``changed("bert", config={...}, weights=f)``: a copy of a folder with something else in it."""

    def changed(kind="bert", config=None, weights=None, without=()):
        folder = tmp_path / f"{kind}{len(list(tmp_path.iterdir()))}"
        shutil.copytree(hf_folder(kind), folder)
        if config is not None:
            path = folder / "config.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | config))
        if weights is not None:
            tensors = load_file(folder / "model.safetensors")
            weights(tensors)
            save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        for name in without:
            (folder / name).unlink()
        return folder

    return changed


def test_the_digest_covers_weights_sizes_tokeniser_and_options_but_no_unused_weight(hf_folder, changed):
    def other_bias(tensors):
        tensors["encoder.layer.0.output.dense.bias"][0] += 1e-3

    def drop_pooler(tensors):
        for name in [name for name in tensors if "pooler" in name]:
            del tensors[name]

    tokenizer = changed()
    path = tokenizer / "tokenizer.json"
    path.write_text(path.read_text().replace('"lowercase": true', '"lowercase": false'))
    digests = [
        HuggingFace.load(hf_folder("bert")).digest,
        HuggingFace.load(hf_folder("bert"), pieces="mean").digest,
        HuggingFace.load(changed(weights=other_bias)).digest,
        HuggingFace.load(changed(config={"layer_norm_eps": 1e-3})).digest,
        HuggingFace.load(tokenizer).digest,
    ]
    assert len(set(digests)) == len(digests)
    assert {HuggingFace.load(folder).digest for folder in (changed(), changed(weights=drop_pooler))} == {digests[0]}


def test_weights_are_kept_in_parts_too(hf_folder, tmp_path):
    model = transformers.AutoModel.from_pretrained(hf_folder("bert"))
    shutil.copytree(hf_folder("bert"), tmp_path / "parts")
    (tmp_path / "parts" / "model.safetensors").unlink()
    model.save_pretrained(tmp_path / "parts", max_shard_size="10KB")
    assert len(list((tmp_path / "parts").glob("*.safetensors"))) > 1
    assert HuggingFace.load(tmp_path / "parts").digest == HuggingFace.load(hf_folder("bert")).digest


def test_what_is_not_there_is_named(changed, tmp_path):
    with pytest.raises(UserError, match=r"^bilm\.path=.*nowhere: no such folder"):
        HuggingFace.load(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"config\.json is missing"):
        HuggingFace.load(changed(without=["config.json"]))
    folder = changed(without=["model.safetensors"])
    with pytest.raises(UserError, match=r"model\.safetensors is missing$"):
        HuggingFace.load(folder)
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(UserError, match=r"model\.safetensors is missing; pytorch_model\.bin is a pickle"):
        HuggingFace.load(folder)
    with pytest.raises(UserError, match=r"tokenizer\.json is missing: it makes a fast tokeniser"):
        HuggingFace.load(changed(without=["tokenizer.json"]))


def test_a_damaged_folder_gives_a_one_sentence_error(changed):
    folder = changed()
    (folder / "config.json").write_text("{")
    with pytest.raises(UserError, match=r"config\.json: not JSON"):
        HuggingFace.load(folder)
    folder = changed()
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"model\.safetensors: damaged or not a safetensors file"):
        HuggingFace.load(folder)
    with pytest.raises(UserError, match=r"the (configuration|tokeniser) cannot be loaded"):
        HuggingFace.load(changed(config={"model_type": "no such model"}))


def test_sizes_are_bounded_before_memory_is_taken(changed):
    with pytest.raises(UserError, match=r"config\.json: num_hidden_layers is 1000000; expected at most 1,000"):
        HuggingFace.load(changed(config={"num_hidden_layers": 10**6}))
    with pytest.raises(UserError, match=r"config\.json asks for [\d,]+ numbers, but the weights have [\d,]+$"):
        HuggingFace.load(changed(config={"vocab_size": 10**9}))
    folder = changed()
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["[UNK]"] = 10**9
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(
        UserError, match=r"tokenizer\.json: '\[UNK\]' is 1000000000; expected at most 10,000,000 pieces"
    ):
        HuggingFace.load(folder)


def test_weights_that_do_not_fit_are_refused_with_both_sizes(changed):
    with pytest.raises(UserError, match=r"'embeddings.word_embeddings.weight' has shape \(400, 16\), .* \(401, 16\)"):
        HuggingFace.load(changed(config={"vocab_size": 401}))
    with pytest.raises(UserError, match=r"has shape .*16.* but config\.json gives .*24"):
        HuggingFace.load(changed(config={"hidden_size": 24}))
    with pytest.raises(UserError, match=r"the weights lack 'encoder\.layer\.2\."):
        HuggingFace.load(changed(config={"num_hidden_layers": 3}))


def test_weights_that_are_not_finite_are_refused(changed):
    def spoil(tensors):
        tensors["encoder.layer.1.output.dense.weight"][2, 3] = torch.nan

    with pytest.raises(UserError, match=r"'encoder\.layer\.1\.output\.dense\.weight' holds values that are not finite"):
        HuggingFace.load(changed(weights=spoil))


def test_a_tokeniser_of_another_model_is_refused(changed, hf_folder):
    folder = changed(
        "gpt2", config={"vocab_size": 90}, weights=lambda t: t.update({"wte.weight": t["wte.weight"][:90]})
    )
    with pytest.raises(UserError, match=r"the tokeniser gives piece \d+, but the model has embeddings for 90"):
        HuggingFace.load(folder).layers([["unhappily", "xyz"]])


def test_a_slow_tokeniser_is_refused(changed):
    folder = changed("gpt2")
    (folder / "vocab.json").write_text(json.dumps({"<unk>": 0, "a</w>": 1}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "CTRLTokenizer"}))
    with pytest.raises(UserError, match=r"CTRLTokenizer is not a fast tokeniser"):
        HuggingFace.load(folder)


def test_layers_of_different_widths_are_refused(hf_folder, monkeypatch):
    encoder = HuggingFace.load(hf_folder("bert"))
    forward = type(encoder.model).forward

    def forward_with_a_wide_layer(self, *args, **kwargs):
        out = forward(self, *args, **kwargs)
        out.hidden_states = (*out.hidden_states, torch.zeros(1, 1, 5))
        return out

    monkeypatch.setattr(type(encoder.model), "forward", forward_with_a_wide_layer)
    with pytest.raises(UserError, match=r"are 16, 16, 16, 5 wide"):
        HuggingFace.load(hf_folder("bert"))


def test_an_encoder_with_a_decoder_is_refused(tmp_path, hf_folder):
    config = transformers.T5Config(vocab_size=400, d_model=16, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    transformers.T5Model(config).save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(hf_folder("bert") / name, tmp_path)
    with pytest.raises(UserError, match=r"T5Model is an encoder with a decoder"):
        HuggingFace.load(tmp_path)


def test_the_encoder_of_a_t5_alone_is_read(tmp_path, hf_folder):
    sizes = {"d_model": 16, "d_kv": 4, "d_ff": 8, "num_layers": 2, "num_heads": 2}
    model = transformers.T5EncoderModel(transformers.T5Config(vocab_size=400, **sizes)).eval()
    model.save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(hf_folder("bert") / name, tmp_path)
    encoder = HuggingFace.load(tmp_path)
    ids = encoder.tokenizer("the cat", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        expected = torch.stack(model(ids, output_hidden_states=True).hidden_states)[:, 0, 1:-1]
    torch.testing.assert_close(encoder.layers([["the", "cat"]])[0], expected, atol=1e-5, rtol=0)


def test_a_model_that_is_tuned_has_gradients_and_a_frozen_one_no_dropout(hf_folder):
    encoder = HuggingFace.load(hf_folder("bert"))
    frozen = encoder.layers(SENTENCES)
    assert not any(layers.requires_grad for layers in frozen)
    torch.testing.assert_close(encoder.train().layers(SENTENCES), frozen, rtol=0, atol=0)
    digest = encoder.digest
    encoder.requires_grad_(True)
    sum(layers.square().sum() for layers in encoder.layers(SENTENCES)).backward()
    model = transformers.AutoModel.from_pretrained(hf_folder("bert")).eval()
    tokens = [encoder.tokenizer([s], is_split_into_words=True, return_tensors="pt") for s in SENTENCES]
    plain = 0
    for sentence, cut in zip(SENTENCES, tokens, strict=True):
        hidden = torch.stack(model(cut["input_ids"], output_hidden_states=True).hidden_states)[:, 0]
        words = cut.word_ids()
        plain = plain + hidden[:, [words.index(k) for k in range(len(sentence))]].square().sum()
    plain.backward()
    for (name, one), other in zip(encoder.model.named_parameters(), model.parameters(), strict=True):
        if one.grad is not None:
            torch.testing.assert_close(one.grad, other.grad, rtol=1e-3, atol=1e-4, msg=name)
    assert encoder.model.embeddings.word_embeddings.weight.grad.any()
    encoder.train()
    with pytest.raises(UserError, match=r"^this Hugging Face model is in training mode, .* random; call eval\(\)$"):
        encoder.digest  # noqa: B018
    assert encoder.eval().digest == digest


def test_the_digest_follows_options_and_tokeniser_that_change_later(hf_folder):
    encoder = HuggingFace.load(hf_folder("bert"))
    digests = [encoder.digest]
    encoder.layers(SENTENCES)
    assert encoder.digest == digests[0]
    encoder.window = 12
    digests.append(encoder.digest)
    encoder.tokenizer.add_tokens(["unhappily"])
    digests.append(encoder.digest)
    encoder.piece_tokenizer.pieces = "mean"
    digests.append(encoder.digest)
    assert len(set(digests)) == 4


@pytest.mark.parametrize("of_its_own_kind", [False, True])
def test_code_that_a_folder_brings_is_not_run(changed, tmp_path, of_its_own_kind):
    config = {"auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Model", "AutoTokenizer": ["own.T", "own.T"]}}
    folder = changed(config=config | ({"model_type": "own"} if of_its_own_kind else {}))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    if of_its_own_kind:
        with pytest.raises(UserError, match=r"cannot be loaded"):
            HuggingFace.load(folder)
    else:
        HuggingFace.load(folder).layers([["the"]])
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "config",
    [
        {"attn_implementation": "someone/kernels"},
        {"_attn_implementation": "someone/kernels"},
        {"text_config": {"_experts_implementation": "someone/kernels"}},
        {"quantization_config": {"quant_method": "mxfp4"}},
    ],
)
def test_code_that_a_folder_names_is_not_fetched(changed, config):
    with pytest.raises(UserError, match=r"config\.json: \w+ can name code of the hub, which is not run; take it out"):
        HuggingFace.load(changed(config=config))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pieces": "last"}, r"^bilm\.options\.pieces must be one of first, mean, found 'last'"),
        ({"window": 7}, r"^bilm\.options\.window must be a whole number of at least 8, or null, found 7"),
        ({"window": 10.5}, r"^bilm\.options\.window must be a whole number"),
        ({"window": 23}, r"^bilm\.options\.window=23, but the model has positions for 22 pieces"),
    ],
)
def test_a_wrong_option_is_named(hf_folder, options, message):
    with pytest.raises(UserError, match=message):
        HuggingFace.load(hf_folder("bert"), **options)


def test_without_the_extra_the_command_that_installs_it_is_named(hf_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UserError, match=r"bilm=hf needs the extra `hf`: pip install -e '\.\[hf\]'"):
        HuggingFace.load(hf_folder("bert"))
