"""Files as users have them, in the work folder: copies of the checkout's, and some of a user's own.

The bytes of the latter follow from this file alone, since run ids have their digests in them.
"""

import json
import shutil
import struct
from itertools import count
from pathlib import Path

WORDS = ["the", "cat", "sat", ".", "Paris", "a"]


def numbers(n):
    """Some numbers between -0.5 and 0.5 without order."""
    return [(7919 * k * k + 104729 * k) % 1009 / 1009 - 0.5 for k in range(n)]


def save(path, shapes):
    """Tensors of float32 in the safetensors format."""
    header, values = {}, []
    for name, shape in shapes.items():
        n = 1
        for size in shape:
            n *= size
        start = 4 * len(values)
        values += numbers(n)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [start, 4 * len(values)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + struct.pack(f"<{len(values)}f", *values))


def vectors(path, dim):
    """GloVe's text format."""
    found = iter(numbers(dim * len(WORDS)))
    lines = [" ".join([word, *(f"{next(found):.3f}" for _ in range(dim))]) for word in WORDS]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def cove(folder, dim=5):
    """CoVe's two biLSTMs."""
    shapes = {}
    for layer, width in ((0, dim), (1, 2 * dim)):
        for ending in ("", "_reverse"):
            name = f"l{layer}{ending}"
            shapes |= {f"weight_ih_{name}": (4 * dim, width), f"weight_hh_{name}": (4 * dim, dim)}
            shapes |= {f"bias_ih_{name}": (4 * dim,), f"bias_hh_{name}": (4 * dim,)}
    folder.mkdir()
    save(folder / "cove.safetensors", shapes)
    vectors(folder / "glove.txt", dim)


def bert(folder, dim=16, n_layers=2, wide=20, positions=22):
    """A BERT of two layers, with one piece a letter."""
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    letters = list("abcdefghijklmnopqrstuvwxyz.,")
    pieces = [*marks, *letters, *(f"##{letter}" for letter in letters)]
    table = {"vocab_size": len(pieces), "hidden_size": dim, "num_hidden_layers": n_layers, "num_attention_heads": 2}
    table |= {"intermediate_size": wide, "max_position_embeddings": positions, "type_vocab_size": 2}
    folder.mkdir()
    about = {"model_type": "bert", "architectures": ["BertModel"], "torch_dtype": "float32", **table}
    (folder / "config.json").write_text(json.dumps(about))
    first = "embeddings"
    shapes = {
        f"{first}.word_embeddings.weight": (len(pieces), dim),
        f"{first}.position_embeddings.weight": (positions, dim),
        f"{first}.token_type_embeddings.weight": (2, dim),
        f"{first}.LayerNorm.weight": (dim,),
        f"{first}.LayerNorm.bias": (dim,),
    }
    for k in range(n_layers):
        sizes = {f"attention.self.{name}": (dim, dim) for name in ("query", "key", "value")}
        sizes |= {"attention.output.dense": (dim, dim), "intermediate.dense": (wide, dim), "output.dense": (dim, wide)}
        for name, size in sizes.items():
            shapes |= {f"encoder.layer.{k}.{name}.weight": size, f"encoder.layer.{k}.{name}.bias": size[:1]}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"encoder.layer.{k}.{name}.{each}": (dim,) for each in ("weight", "bias")}
    shapes |= {"pooler.dense.weight": (dim, dim), "pooler.dense.bias": (dim,)}
    save(folder / "model.safetensors", shapes)
    numbered = count()
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"}
    model |= {"max_input_chars_per_word": 100, "vocab": {piece: next(numbered) for piece in pieces}}
    ends = [{"SpecialToken": {"id": mark, "type_id": 0}} for mark in ("[CLS]", "[SEP]")]
    tokens = {mark: {"id": mark, "ids": [pieces.index(mark)], "tokens": [mark]} for mark in ("[CLS]", "[SEP]")}
    single = [ends[0], {"Sequence": {"id": "A", "type_id": 0}}, ends[1]]
    pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}, ends[1]]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    normalizer = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": k, "content": mark, **plain} for k, mark in enumerate(marks)],
        "normalizer": {**normalizer, "strip_accents": None},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens},
        "decoder": None,
        "model": model,
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    named = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]", "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(named))


def rows(committed, folder):
    """The rows that ``rows.txt`` names, as the checkout has them: later ones are no part of what is compared."""
    folder.mkdir()
    for name in (Path(__file__).parent / "rows.txt").read_text("utf-8").split():
        shutil.copy(committed / f"{name}.json", folder)


def make(folders):
    """All of them, in the current folder.

    Args:
        folders: where the checkout has its ``sample``, its ``bilms`` and its ``rows``.
    """
    if Path("data").exists():  # made by an earlier process
        return
    shutil.copytree(folders["sample"], "data")
    shutil.copytree(Path(folders["bilms"]) / "mini", "bilm")
    rows(Path(folders["rows"]), Path("rows"))
    vectors(Path("vectors.txt"), 3)
    Path("text.txt").write_text("the cat sat .\na cat in Paris .\n", "utf-8")
    cove(Path("cove"))
    bert(Path("hf"))
