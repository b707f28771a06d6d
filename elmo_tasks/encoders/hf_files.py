"""Loading a transformer from a local folder: nothing is fetched, nothing is unpickled, no code of the folder is run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from elmo_tasks.errors import UserError, quoted, shortened
from elmo_tasks.files import read_json
from elmo_tasks.tensors import read_shapes

_LOCAL = {"local_files_only": True, "trust_remote_code": False}
_MAX_TOKENIZER_BYTES = 100_000_000
_MAX_PIECES, _MAX_LAYERS = 10_000_000, 1000
_ENDLESS = 10**9  # what tokenisers give as their limit when they have none is larger
_ENCODERS = ("T5EncoderModel", "MT5EncoderModel", "UMT5EncoderModel")  # the one half of models with a decoder
_BY_KERNELS = ("quantization_config", "kernel_config", "use_kernels")  # keys by which the library fetches code


def read_config(folder: Path) -> dict[str, Any]:
    """A folder's ``config.json``, after a check that the other files are there.

    Raises:
        UserError: if the folder, the configuration, safetensors weights or ``tokenizer.json`` are missing, or if the
            configuration names code to be fetched.
    """
    if not folder.is_dir():
        raise UserError(f"bilm.path={folder}: no such folder; expected one with config.json, weights and a tokeniser")
    if not (folder / "config.json").exists():
        raise UserError(f"bilm.path={folder}: config.json is missing; expected a Hugging Face model")
    config = read_json(folder / "config.json")
    if not isinstance(config, dict):
        raise UserError(f"{folder / 'config.json'}: expected a JSON object, found {quoted(config)}")
    if not any((folder / name).is_file() for name in ("model.safetensors", "model.safetensors.index.json")):
        pickled = sorted(path.name for path in folder.glob("*.bin"))
        found = f"; {pickled[0]} is a pickle, which is not read, since it can run code" if pickled else ""
        raise UserError(f"bilm.path={folder}: model.safetensors is missing{found}")
    if not (folder / "tokenizer.json").is_file():
        raise UserError(
            f"bilm.path={folder}: tokenizer.json is missing: it makes a fast tokeniser, and only those say which word "
            "a piece belongs to"
        )
    _check_ids(folder / "tokenizer.json")
    for key, value in _entries(config):
        named = "implementation" in key and isinstance(value, str) and "/" in value
        if named or (key in _BY_KERNELS and value):
            raise UserError(f"{folder / 'config.json'}: {key} can name code of the hub, which is not run; take it out")
    return config


def load_tokenizer(folder: Path) -> Any:
    """The folder's fast tokeniser.

    Raises:
        UserError: if it cannot be loaded or is not a fast one.
    """
    tokenizer = _loaded(folder, "tokeniser", library().AutoTokenizer.from_pretrained)
    if not tokenizer.is_fast:
        raise UserError(
            f"bilm.path={folder}: {type(tokenizer).__name__} is not a fast tokeniser, and only those say which word "
            "a piece belongs to"
        )
    return tokenizer


def load_model(folder: Path) -> Any:
    """The folder's model, frozen, in single precision.

    Raises:
        UserError: if it cannot be loaded, has both an encoder and a decoder, or if a weight is missing, of another
            size than ``config.json`` gives, or not finite.
    """
    _check_size(folder)
    model, info = _loaded(
        folder,
        "model",
        _model_class(folder).from_pretrained,
        use_safetensors=True,
        dtype=torch.float32,
        attn_implementation="eager",  # which every model has
        ignore_mismatched_sizes=True,  # refused here, in one sentence
        output_loading_info=True,
    )
    if model.config.is_encoder_decoder:
        raise UserError(
            f"bilm.path={folder}: {type(model).__name__} is an encoder with a decoder; expected one of them, such as "
            "a T5's encoder: T5EncoderModel.from_pretrained(NAME).save_pretrained(FOLDER)"
        )
    for name, stored, expected in sorted(info["mismatched_keys"]):
        raise UserError(
            f"bilm.path={folder}: {name!r} has shape {tuple(stored)}, but config.json gives {tuple(expected)}"
        )
    for name in sorted(info["missing_keys"]):
        if not is_unused(name):
            raise UserError(f"bilm.path={folder}: the weights lack {name!r}, which config.json asks for")
    for name, value in model.state_dict().items():
        if not torch.isfinite(value).all():
            raise UserError(f"bilm.path={folder}: {name!r} holds values that are not finite")
    model.config.use_cache = False
    return model.eval().requires_grad_(False)


def _model_class(folder: Path) -> Any:
    """The class of the library for a folder's model: the automatic one, which takes T5's encoder for the whole T5."""
    named = read_json(folder / "config.json").get("architectures")
    name = named[0] if isinstance(named, list) and named else None
    return getattr(library(), name) if name in _ENCODERS else library().AutoModel


def _check_ids(path: Path) -> None:
    """Check that no number of a tokeniser is too large for a piece; the library makes a table as long as the largest.

    Raises:
        UserError: naming the first that is not.
    """
    for key, value in _entries(read_json(path, _MAX_TOKENIZER_BYTES)):
        if isinstance(value, int) and value > _MAX_PIECES:
            raise UserError(f"{path}: {quoted(key)} is {quoted(value)}; expected at most {_MAX_PIECES:,} pieces")


def _check_size(folder: Path) -> None:
    """Check that the model of ``config.json`` is about as large as its weights, before any memory is taken for it.

    Raises:
        UserError: if it has more layers than any model, or far more numbers than the files.
    """
    for key, value in _entries(read_json(folder / "config.json")):
        if "layer" in key and isinstance(value, int) and value > _MAX_LAYERS:
            raise UserError(f"{folder / 'config.json'}: {key} is {quoted(value)}; expected at most {_MAX_LAYERS:,}")
    settings = _loaded(folder, "configuration", library().AutoConfig.from_pretrained)
    stored = sum(math.prod(shape) for path in folder.glob("*.safetensors") for shape in read_shapes(path).values())
    kind = _model_class(folder)
    with torch.device("meta"):
        model = _loaded(folder, "model", lambda _, **__: getattr(kind, "from_config", kind)(settings))
    asked = sum(value.numel() for value in model.parameters())
    if asked > 2 * stored:
        raise UserError(f"{folder / 'config.json'} asks for {asked:,} numbers, but the weights have {stored:,}")


def is_unused(weight: str) -> bool:
    """Whether no layer uses a weight: those of a pooler, which are often missing from the file and then random."""
    return "pooler" in weight


def max_positions(model: Any, tokenizer: Any) -> int | None:
    """How many pieces a model can read at a time; None without a limit."""
    limits = [tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None)]
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and "position" in name:  # RoBERTa's begin after the padding's
            limits.append(module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1))
    return min((limit for limit in limits if limit is not None and 0 < limit < _ENDLESS), default=None)


def library() -> Any:
    """The module ``transformers``, told to be quiet.

    Raises:
        UserError: if it is not installed.
    """
    try:
        import transformers
    except ImportError as error:
        raise UserError("bilm=hf needs the extra `hf`: pip install -e '.[hf]'") from error
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Every key of nested JSON with its value."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield from part.items()
            waiting += part.values()
        elif isinstance(part, list):
            waiting += [each for each in part if isinstance(each, (dict, list))]


def _loaded(folder: Path, what: str, load: Callable[..., Any], **settings: Any) -> Any:
    try:
        return load(str(folder), **_LOCAL, **settings)
    except Exception as error:  # whatever a folder's contents make the library raise
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise UserError(f"bilm.path={folder}: the {what} cannot be loaded ({shortened(reason, 160)})") from error
