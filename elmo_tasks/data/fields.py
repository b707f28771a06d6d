"""What readers are given, checked: the fields of a user's input, and a saved state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from elmo_tasks.data.text import check_tokens
from elmo_tasks.errors import UserError, quoted, shortened


def text_field(fields: Mapping[str, Any], name: str, where: str) -> str:
    """A field that is a text and not empty.

    Raises:
        UserError: if it is not.
    """
    value = fields[name]
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"{where}: {name} must be a text, found {quoted(value)}")
    return value


def as_tokens(value: Any, where: str, token: Callable[[str], str], tokenize: Callable[[str], list[str]]) -> list[str]:
    """A sentence: a list of tokens, or a text, which is tokenised.

    Args:
        value: what the user gave.
        where: what it is, for messages.
        token: what is read for a token of a list.
        tokenize: makes the tokens of a text.

    Raises:
        UserError: if it is neither, or has no token.
    """
    if isinstance(value, str):
        tokens = tokenize(value)
    elif isinstance(value, list) and all(isinstance(each, str) for each in value):
        tokens = list(map(token, value))
    else:
        raise UserError(f"{where} must be a text or a list of tokens, found {quoted(value)}")
    check_tokens(tokens, where)
    return tokens


def state_lists(state: Mapping[str, Any], names: Sequence[str]) -> list[list[str]]:
    """The lists of texts that a reader's state consists of.

    Raises:
        UserError: if the state has other entries, or lacks some.
    """
    lists = [state.get(name) for name in names]
    if set(state) != set(names) or not all(
        isinstance(part, list) and all(isinstance(text, str) for text in part) for part in lists
    ):
        found = shortened(", ".join(map(str, state)), 60) or "nothing"
        raise UserError(f"the state of a reader must have lists of texts named {', '.join(names)}, found {found}")
    return [list(part) for part in lists if part is not None]
