"""The keys of a run that may have other values when it is used, such as ``task.reader.encoding=latin-1``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from omegaconf import OmegaConf

from elmo_tasks.config.components import check_value
from elmo_tasks.errors import UserError, quoted
from elmo_tasks.values import Positive, Size

READER, STORE = "task.reader.", "bilm.store."
BATCH_SIZE, BATCH_TOKENS = "task.training.batch_size", "task.training.batch_tokens"
ENCODING = f"{READER}encoding"
FILES = ("bilm.path", "words.path", "bilm.warm_text")
"""Keys of files that may have been moved."""

_COMMON: dict[str, Any] = {
    BATCH_SIZE: Size,
    BATCH_TOKENS: Size,
    f"{STORE}dir": str,
    f"{STORE}dtype": Literal["float16", "float32"],
    f"{STORE}limit_gb": Positive,
}


def parse_settings(arguments: Iterable[str]) -> dict[str, Any]:
    """Each ``KEY=VALUE``; a value is a number, true, false, null, a list, or else the text as it stands.

    Raises:
        UserError: if one has another form.
    """
    settings: dict[str, Any] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not key or not equals:
            raise UserError(f"{quoted(argument, 60)}: expected KEY=VALUE, such as {ENCODING}=latin-1")
        settings[key] = _value(value)
    return settings


def _value(text: str) -> Any:
    try:
        value = OmegaConf.to_container(OmegaConf.from_dotlist([f"value={text}"]))["value"]  # type: ignore[index,call-overload]
    except Exception:  # YAML's and OmegaConf's, about a text such as {
        return text
    return text if value is None and text != "null" else value


def files_and_others(settings: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """The settings of :data:`FILES`, checked, and the others.

    Raises:
        UserError: naming a key of a file whose value is no text.
    """
    files = {key: value for key, value in settings.items() if key in FILES}
    for key, value in files.items():
        check_value(key, value, str)
    return files, {key: value for key, value in settings.items() if key not in FILES}


def check_settings(settings: Mapping[str, Any], changeable: Mapping[str, Any]) -> None:
    """Check that all keys may be changed after training, and that they may have these values.

    Args:
        settings: by key.
        changeable: the reader's own keys (see :attr:`~elmo_tasks.data.reader.Reader.changeable`).

    Raises:
        UserError: naming the key.
    """
    known = {f"{READER}{name}": annotation for name, annotation in changeable.items()} | _COMMON
    for key, value in settings.items():
        if key not in known:
            choices = ", ".join((*known, *FILES))
            raise UserError(f"{quoted(key, 60)} is no key that a finished run takes; expected one of {choices}")
        check_value(key, value, known[key])


def below(settings: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The settings whose keys begin with a prefix, without it."""
    return {key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)}
