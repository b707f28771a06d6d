"""Digests of what runs of several kinds read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from elmo_tasks.bilm import BiLM
from elmo_tasks.encoders.base import Encoder
from elmo_tasks.files import digest_files
from elmo_tasks.rows.parts import BilmRecord


def describe_bilm(cfg: dict[str, Any], encoder: Encoder | None) -> BilmRecord | None:
    """What of the biLM, or of the encoder in its place, can change a score."""
    if encoder is None:
        return None
    return BilmRecord(
        name=cfg["bilm"]["name"],
        digest=encoder.digest,
        state=cfg["bilm"]["state"],
        dtype=cfg["bilm"]["store"]["dtype"],
        warm=encoder.warm_digest if isinstance(encoder, BiLM) else None,
    )


def words_digest(cfg: dict[str, Any]) -> str | None:
    """Digest of the file of word vectors; None where there is none of the user's own."""
    words = cfg["words"]
    return digest_files([Path(words["path"])]) if words["name"] == "glove" and words["path"] is not None else None
