"""Fixtures: tiny encoders with random weights, in files as users have them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

SIZES = {"vocab_size": 400, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
TEXT = ["the cat sat on the mat", "unhappy cats sat there", "a dog and a cat were unhappily sitting on mats"] * 3


def special(tokenizer, before, after):
    from tokenizers import processors

    ids = [(mark, tokenizer.token_to_id(mark)) for mark in (before, after)]
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{before} $A {after}", special_tokens=ids)


def word_pieces():
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    alphabet = list("abcdefghijklmnopqrstuvwxyz.,")
    tokenizer.train_from_iterator(
        TEXT, trainers.WordPieceTrainer(vocab_size=100, special_tokens=marks, initial_alphabet=alphabet)
    )
    special(tokenizer, "[CLS]", "[SEP]")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]")


def byte_pieces(marks):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        TEXT, trainers.BpeTrainer(vocab_size=330, special_tokens=marks, initial_alphabet=alphabet)
    )
    if marks:
        special(tokenizer, "<s>", "</s>")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **({"pad_token": "<pad>"} if marks else {}))


def make(kind):
    transformers = pytest.importorskip("transformers", reason="needs the extra `hf`")
    torch.manual_seed(1)
    if kind == "bert":
        config = transformers.BertConfig(**SIZES, intermediate_size=20, max_position_embeddings=22)
        return transformers.BertModel(config), word_pieces()
    if kind == "roberta":
        config = transformers.RobertaConfig(**SIZES, intermediate_size=20, max_position_embeddings=24, pad_token_id=1)
        return transformers.RobertaModel(config), byte_pieces(["<s>", "<pad>", "</s>"])
    config = transformers.GPT2Config(vocab_size=400, n_embd=16, n_layer=2, n_head=2, n_positions=20, bos_token_id=None)
    return transformers.GPT2Model(config), byte_pieces([])


@pytest.fixture(scope="session")
def hf_folder(tmp_path_factory):
    """``hf_folder("bert")``: the folder of a tiny model; made once, not to be changed."""
    folders: dict[str, Path] = {}

    def hf_folder(kind):
        if kind not in folders:
            folders[kind] = tmp_path_factory.mktemp(kind)
            model, tokenizer = make(kind)
            for parameter in model.parameters():  # as initialised, layers hardly differ
                torch.nn.init.normal_(parameter, std=0.3)
            model.save_pretrained(folders[kind])
            tokenizer.save_pretrained(folders[kind])
        return folders[kind]

    return hf_folder


COVE_DIM = 5


@pytest.fixture
def cove_files(tmp_path):
    """A tiny translation model's encoder under its published names, and GloVe vectors of its size."""
    generator = torch.Generator().manual_seed(3)
    tensors = {}
    for layer, width in ((0, COVE_DIM), (1, 2 * COVE_DIM)):
        for ending in ("", "_reverse"):
            shapes = {"weight_ih": (4 * COVE_DIM, width), "weight_hh": (4 * COVE_DIM, COVE_DIM)}
            shapes |= {"bias_ih": (4 * COVE_DIM,), "bias_hh": (4 * COVE_DIM,)}
            for name, shape in shapes.items():
                tensors[f"{name}_l{layer}{ending}"] = 0.7 * torch.randn(shape, generator=generator)
    save_file(tensors, tmp_path / "cove.safetensors")
    vectors = np.random.default_rng(4).normal(size=(6, COVE_DIM)).round(3)
    words = ["the", "cat", "sat", ".", "Paris", "a"]
    lines = [f"{word} {' '.join(map(str, vector))}\n" for word, vector in zip(words, vectors, strict=True)]
    (tmp_path / "glove.txt").write_text("".join(lines))
    return tmp_path / "cove.safetensors", tmp_path / "glove.txt"
