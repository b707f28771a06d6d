"""AllenNLP's models of the six tasks at its own sizes, as configurations for ``allennlp train``.

Layers and batches have the sizes of its published training configurations. So that both programs do the same work, word
and character vectors have the sizes that are usual here and are trained in the same tasks, and a batch of SQuAD has 45
questions in place of 40. NER's batches are in the order of the file, the others are of items of about the same length.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

Config = dict[str, Any]
LOWERCASE: Config = {"type": "single_id", "lowercase_tokens": True}
READERS: dict[str, Config] = {
    "sst5": {"type": "sst_tokens"},
    "ner": {"type": "conll2003", "tag_label": "ner", "convert_to_coding_scheme": "BIOUL"},
    "snli": {"type": "snli", "tokenizer": {"type": "spacy"}},
    "squad": {"type": "squad1", "tokenizer": {"type": "spacy"}},
    "srl": {"type": "srl"},
    "coref": {"type": "coref", "max_span_width": 10},
}
CHARACTERS = {"ner": (16, 128, [3]), "squad": (20, 100, [5]), "coref": (8, 50, [3, 4, 5])}  # size, filters, widths
BATCH_SIZES = {"sst5": 100, "ner": 64, "snli": 64, "squad": 45, "srl": 80, "coref": 1}  # srl: a predicate an instance
OPTIMIZERS: dict[str, Config] = {
    "squad": {"type": "adadelta", "lr": 1.0, "rho": 0.95},
    "srl": {"type": "adadelta", "lr": 1.0, "rho": 0.95},
}
METRICS = {"sst5": "+accuracy", "ner": "+f1-measure-overall", "snli": "+accuracy", "coref": "+coref_f1"}


def config(task: str, train: Path, dev: Path, words: Path, dim: int, elmo: Path | None, epochs: int) -> Config:
    """A training run with word vectors of the file ``words``, and with the biLM of the folder ``elmo`` beside them."""
    indexers: Config = {"tokens": LOWERCASE}
    embedders: Config = {
        "tokens": {
            "type": "embedding",
            "embedding_dim": dim,
            "pretrained_file": str(words),
            "trainable": task in ("ner", "srl"),
        }
    }
    width = dim
    if task in CHARACTERS:
        size, filters, widths = CHARACTERS[task]
        indexers["token_characters"] = {"type": "characters", "min_padding_length": max(widths)}
        cnn = {"type": "cnn", "embedding_dim": size, "num_filters": filters, "ngram_filter_sizes": widths}
        embedders["token_characters"] = {
            "type": "character_encoding",
            "embedding": {"embedding_dim": size},
            "encoder": cnn,
        }
        width += filters * len(widths)
    more: Config = {}
    if elmo is not None:
        indexers["elmo"] = {"type": "elmo_characters"}
        files = {"options_file": str(elmo / "options.json"), "weight_file": str(elmo / "weights.hdf5"), "dropout": 0.5}
        width += 256
        if task == "sst5":  # this model has a biLM of its own
            more = {"elmo": {**files, "num_output_representations": 1}, "use_input_elmo": True}
        else:
            embedders["elmo"] = {"type": "elmo_token_embedder", **files}
    loader: Config = {"batch_sampler": {"type": "bucket", "batch_size": BATCH_SIZES[task]}}
    if task == "ner":
        loader = {"batch_size": BATCH_SIZES[task]}
    return {
        "dataset_reader": {**READERS[task], "token_indexers": indexers},
        "train_data_path": str(train),
        "validation_data_path": str(dev),
        "model": {**MODELS[task](width), **more, "text_field_embedder": {"token_embedders": embedders}},
        "data_loader": loader,
        "trainer": {
            "optimizer": OPTIMIZERS.get(task, {"type": "adam", "lr": 0.001}),
            "num_epochs": epochs,
            "grad_norm": 5.0,
            "cuda_device": -1,
            **({"validation_metric": METRICS[task]} if task in METRICS else {}),
        },
    }


def lstm(width: int, hidden: int, n_layers: int = 1, **more: Any) -> Config:
    sizes = {"input_size": width, "hidden_size": hidden, "num_layers": n_layers}
    return {"type": "lstm", "bidirectional": True, **sizes, **more}


def feedforward(width: int, hidden: list[int], dropout: float = 0.0, activation: str = "relu") -> Config:
    sizes = {"input_dim": width, "num_layers": len(hidden), "hidden_dims": hidden}
    return {**sizes, "activations": activation, "dropout": dropout}


def bcn(width: int) -> Config:
    return {
        "type": "bcn",
        "embedding_dropout": 0.25,
        "pre_encode_feedforward": feedforward(width, [300], 0.25),
        "encoder": lstm(300, 300),
        "integrator": lstm(1800, 300),
        "integrator_dropout": 0.1,
        "output_layer": {
            "input_dim": 2400,
            "num_layers": 3,
            "output_dims": [1200, 600, 5],
            "pool_sizes": 4,
            "dropout": [0.2, 0.3, 0.0],
        },
    }


def crf_tagger(width: int) -> Config:
    labels = {"label_encoding": "BIOUL", "constrain_crf_decoding": True, "calculate_span_f1": True}
    return {"type": "crf_tagger", "dropout": 0.5, "encoder": lstm(width, 200, 2, dropout=0.5), **labels}


def esim(width: int) -> Config:
    return {
        "type": "esim",
        "dropout": 0.5,
        "encoder": lstm(width, 300),
        "matrix_attention": {"type": "dot_product"},
        "projection_feedforward": feedforward(2400, [300]),
        "inference_encoder": lstm(300, 300),
        "output_feedforward": feedforward(2400, [300], 0.5),
        "output_logit": feedforward(300, [3], activation="linear"),
    }


def bidaf(width: int) -> Config:
    attention = {"type": "linear", "combination": "x,y,x*y", "tensor_1_dim": 200, "tensor_2_dim": 200}
    return {
        "type": "bidaf",
        "dropout": 0.2,
        "num_highway_layers": 2,
        "phrase_layer": lstm(width, 100),
        "matrix_attention": attention,
        "modeling_layer": lstm(800, 100, 2, dropout=0.2),
        "span_end_encoder": lstm(1400, 100),
    }


def srl(width: int) -> Config:
    sizes = {"input_size": width + 100, "hidden_size": 300, "num_layers": 8}
    encoder = {"type": "alternating_lstm", "recurrent_dropout_probability": 0.1, "use_highway": True, **sizes}
    return {"type": "srl", "binary_feature_dim": 100, "encoder": encoder, "ignore_span_metric": True}


def coref(width: int) -> Config:
    return {
        "type": "coref",
        "context_layer": lstm(width, 200),
        "mention_feedforward": feedforward(2 * 400 + width + 20, [150, 150], 0.2),
        "antecedent_feedforward": feedforward(3 * (2 * 400 + width + 20) + 20, [150, 150], 0.2),
        "feature_size": 20,
        "max_span_width": 10,
        "spans_per_word": 0.4,
        "max_antecedents": 100,
        "lexical_dropout": 0.5,
    }


MODELS = {"sst5": bcn, "ner": crf_tagger, "snli": esim, "squad": bidaf, "srl": srl, "coref": coref}
