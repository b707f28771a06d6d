"""Hydra's errors as one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from omegaconf import OmegaConf


def hydra_sentence(error: BaseException) -> str:
    """One sentence on a command line that Hydra refuses: what is wrong, and what the choices are."""
    key = getattr(error.__cause__, "full_key", None)
    parent = getattr(error.__cause__, "parent_node", None)
    if key is not None and parent is not None:
        choices = ", ".join(str(k) for k in parent if k != "hydra")
        meant = [] if "." in key else list(_ending_in(key, OmegaConf.to_container(parent, resolve=False)))
        hint = f"; {min(meant, key=len)} may be meant" if meant else ""
        return f"unknown key {key!r}; expected one of {choices}{hint}"
    options = getattr(error, "options", None)
    missing = getattr(error, "missing_cfg_file", None)
    if options and missing:
        text = str(missing)
        cut = text.find("//") if "//" in text else text.rfind("/")  # // is before an absolute path
        group, name = text[:cut], text[cut + 1 :]
        own = f"; a path of your own is {group}.path={name}" if "//" in text and group in ("bilm", "words") else ""
        return f"{group}={name}: unknown choice; expected one of {', '.join(sorted(options))}{own}"
    override = getattr(error, "override", None)
    if override is not None:
        expected = "expected KEY=VALUE, without a space at the = or after a comma"
        return f"{override!r} cannot be read; {expected}; other signs need quotes of their own: 'KEY=\"VALUE\"'"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines and lines[0].startswith("Ambiguous value for argument"):
        given = lines[0].partition("'")[2].rstrip("'")
        return f"{given}: several values make a sweep; use elmo-tasks sweep, or python run.py -m (a list is KEY=[A,B])"
    if lines[1:2] == ["Available options:"]:
        return f"{lines[0]}; there are {', '.join(lines[2:])}"
    return " ".join(lines[:2])


def _ending_in(name: str, section: Any, prefix: str = "") -> Iterator[str]:
    """The keys of a configuration whose last part is a name."""
    for key, value in section.items() if isinstance(section, dict) else ():
        if key == name and prefix:
            yield f"{prefix}{key}"
        if key != "hydra":
            yield from _ending_in(name, value, f"{prefix}{key}.")
