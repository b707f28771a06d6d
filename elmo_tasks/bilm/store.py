"""The layer store: each sentence's layers are computed once and shared by all placements, mixes, lambdas and seeds.

A folder per biLM (weights, state policy, number format) holds shards that only ever appear whole: ``NAME.bin`` has the
rows of several sentences one after the other, ``NAME.idx`` says which sentence begins where. Both are written under
temporary names, synced and renamed, the index last; so a killed writer loses its unfinished shard and nothing else, and
several processes can fill one store. Sentences are known by a hash of their tokens, never by place or name.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from elmo_tasks.bilm.model import BiLM
from elmo_tasks.errors import UserError

VERSION = 1

_INDEX = np.dtype([("key", "V16"), ("start", "<i8"), ("tokens", "<i8")])
_SHARD_TOKENS = 50_000
_GIGABYTE = 1e9
_STALE_SECONDS = 3600


@dataclass
class Filled:
    """How many tokens a run had computed by the biLM, and how many it found in the store."""

    computed: int = 0
    read: int = 0


class LayerStore:
    """Layers by sentence, token-major: ``[n, L, D]``.

    Args:
        root: folder of all stores.
        bilm: the frozen biLM.
        state: its state policy. With ``carry`` all sentences that :meth:`fill` is given are one stream, and a
            sentence's key covers those before it; one that comes again keeps the layers of its first occurrence.
        dtype: ``float16`` or ``float32``, the numbers on disk.
        limit_gb: refuse to let this biLM's store grow beyond.
        progress: show a progress bar while filling.
    """

    def __init__(
        self,
        root: Path,
        bilm: BiLM,
        *,
        state: str = "reset",
        dtype: str = "float16",
        limit_gb: float = 50.0,
        progress: bool = False,
    ) -> None:
        self.bilm, self.state, self.progress, self.limit_gb = bilm, state, progress, limit_gb
        self.dtype = np.dtype(dtype)
        about = {"version": VERSION, "bilm": bilm.digest, "state": state, "dtype": dtype}
        if state == "warm":
            about["warm"] = bilm.warm_digest
        name = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
        self.folder = root / name
        self._about = about | {"layers": bilm.n_layers, "dim": bilm.dim}
        self._where: dict[bytes, tuple[str, int, int]] = {}
        self._maps: dict[str, NDArray[np.floating]] = {}
        self._seen_indices: set[str] = set()
        self._aliases: dict[tuple[str, ...], bytes] = {}

    @property
    def token_bytes(self) -> int:
        """Bytes of one token's layers."""
        return self.bilm.n_layers * self.bilm.dim * self.dtype.itemsize

    def fill(self, sentences: Sequence[Sequence[str]]) -> Filled:
        """Make sure that every sentence's layers are stored; compute those that are not, each once.

        Raises:
            UserError: if the store would outgrow its limit or the disk, or its folder cannot be written.
        """
        self._scan()
        wanted = self._keys(sentences)
        missing = {key: sentence for key, sentence in wanted.items() if key not in self._where}
        if self.state == "carry" and missing:
            missing = wanted  # the state in which a stream goes on is not stored
        total = sum(len(sentence) for sentence in wanted.values())
        new = sum(len(sentence) for sentence in missing.values())
        if new:
            self._check_room(new)
            self._compute(missing, new)
        return Filled(computed=new, read=total - new)

    def get(self, sentence: Sequence[str]) -> NDArray[np.floating]:
        """The layers ``[n, L, D]`` of a sentence that :meth:`fill` was given, straight from the mapped file."""
        key = self._aliases[tuple(sentence)] if self.state == "carry" else _key(sentence)
        shard, start, n_tokens = self._where[key]
        return self._map(shard)[start : start + n_tokens]

    def _sweep(self) -> None:
        """Remove what killed writers left behind, once it is too old to belong to a living one."""
        for path in self.folder.glob("*.tmp"):
            if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                path.unlink(missing_ok=True)

    def _keys(self, sentences: Sequence[Sequence[str]]) -> dict[bytes, Sequence[str]]:
        """Key to sentence, each distinct one once, in order."""
        if self.state != "carry":
            return {_key(sentence): sentence for sentence in sentences if sentence}
        keys, chain = {}, b""
        for sentence in sentences:
            chain = _key(sentence, before=chain)
            keys[chain] = sentence
            self._aliases.setdefault(tuple(sentence), chain)
        return keys

    def _check_room(self, new_tokens: int) -> None:
        have = sum(path.stat().st_size for path in self.folder.glob("*.bin")) if self.folder.is_dir() else 0
        need = new_tokens * self.token_bytes
        text = f"{new_tokens:,} tokens of layers take {need / _GIGABYTE:.2f} GB in bilm.store.dir={self.folder.parent}"
        if have + need > self.limit_gb * _GIGABYTE:
            raise UserError(
                f"{text}, beside {have / _GIGABYTE:.2f} GB already there: "
                f"more than bilm.store.limit_gb={self.limit_gb:g}; raise it, or use a smaller data.fraction"
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            free = shutil.disk_usage(self.folder).free
        except OSError as error:
            raise self._unwritable(error) from error
        if need > free:
            raise UserError(f"{text}, but only {free / _GIGABYTE:.2f} GB are free; set bilm.store.dir to another disk")
        if self.progress:
            tqdm.write(f"layer store: computing {new_tokens:,} tokens, {need / _GIGABYTE:.2f} GB in {self.folder}")

    def _compute(self, missing: dict[bytes, Sequence[str]], n_tokens: int) -> None:
        about = self.folder / "about.json"
        with tqdm(
            total=n_tokens, unit="tok", unit_scale=True, desc="biLM", disable=not self.progress, leave=False
        ) as bar:
            try:
                self._sweep()
                if not about.exists():
                    about.write_text(json.dumps(self._about, indent=1) + "\n", "utf-8")
                self.bilm.forget()
                for keys, sentences in _shards(missing):
                    if self.state == "carry":  # one stream, in order
                        layers = [self.bilm.layers([sentence], state="carry")[0] for sentence in sentences]
                    else:
                        layers = self.bilm.layers(sentences, state=self.state)
                    self._write(keys, [x.transpose(0, 1).cpu().numpy().astype(self.dtype) for x in layers])
                    bar.update(sum(len(sentence) for sentence in sentences))
            except OSError as error:
                raise self._unwritable(error) from error

    def _write(self, keys: Sequence[bytes], layers: Sequence[NDArray[np.floating]]) -> None:
        name = uuid.uuid4().hex
        lengths = np.array([len(x) for x in layers])
        index = np.empty(len(keys), dtype=_INDEX)
        index["key"] = np.array(keys, dtype="V16")
        index["tokens"], index["start"] = lengths, lengths.cumsum() - lengths
        temporary = [self.folder / f"{name}.{suffix}.tmp" for suffix in ("bin", "idx")]
        try:
            sha = hashlib.sha256()
            with temporary[0].open("wb") as file:
                for x in layers:
                    data = np.ascontiguousarray(x).tobytes()
                    sha.update(data)
                    file.write(data)
                file.flush()
                os.fsync(file.fileno())
            with temporary[1].open("wb") as file:
                header = {"version": VERSION, "sentences": len(keys), "sha256": sha.hexdigest()}
                file.write(json.dumps(header).encode() + b"\n" + index.tobytes())
                file.flush()
                os.fsync(file.fileno())
            for path in temporary:
                path.rename(path.with_suffix(""))
        finally:
            for path in temporary:
                path.unlink(missing_ok=True)
        self._scan()

    def _scan(self) -> None:
        """Take in the indices that have appeared since the last look."""
        for path in sorted(self.folder.glob("*.idx")) if self.folder.is_dir() else ():
            if path.name in self._seen_indices:
                continue
            self._seen_indices.add(path.name)
            shard, size = path.stem, self._shard_size(path.with_suffix(".bin"))
            head, _, body = path.read_bytes().partition(b"\n")
            try:
                header = json.loads(head)
                index = np.frombuffer(body, dtype=_INDEX, count=header["sentences"])
            except (ValueError, KeyError, TypeError):
                continue  # not ours or damaged: its sentences are computed again
            if header.get("version") != VERSION or len(index) == 0 or size < index[-1]["start"] + index[-1]["tokens"]:
                continue
            for key, start, n_tokens in index.tolist():
                self._where[key] = (shard, start, n_tokens)

    def _shard_size(self, path: Path) -> int:
        return path.stat().st_size // self.token_bytes if path.exists() else 0

    def _map(self, shard: str) -> NDArray[np.floating]:
        if shard not in self._maps:
            flat = np.memmap(self.folder / f"{shard}.bin", dtype=self.dtype, mode="r")
            self._maps[shard] = flat.reshape(-1, self.bilm.n_layers, self.bilm.dim)
        return self._maps[shard]

    def _unwritable(self, error: OSError) -> UserError:
        return UserError(
            f"bilm.store.dir={self.folder.parent}: the layer store cannot be written ({error.strerror}); "
            "set bilm.store.dir to a folder with room"
        )


def _key(sentence: Sequence[str], before: bytes = b"") -> bytes:
    """Sixteen bytes for a token list; token borders count."""
    return hashlib.blake2b(before + "\x00".join(sentence).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _shards(missing: dict[bytes, Sequence[str]]) -> Iterator[tuple[list[bytes], list[Sequence[str]]]]:
    keys: list[bytes] = []
    n_tokens = 0
    for key, sentence in missing.items():
        if keys and n_tokens + len(sentence) > _SHARD_TOKENS:
            yield keys, [missing[k] for k in keys]
            keys, n_tokens = [], 0
        keys.append(key)
        n_tokens += len(sentence)
    if keys:
        yield keys, [missing[k] for k in keys]
