"""The layer store at size: memory and time of its index for millions of sentences, opening, lookups, checksums.

    python benchmarks/store.py                      # the index of 10 million sentences, without layers
    python benchmarks/store.py --shards 4000000     # a store on disk of 4 million rows of 96 bytes

Only the index takes memory that grows with the number of sentences; the layers are memory-mapped.
"""

import argparse
import resource
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from elmo_tasks.store.index import Index
from elmo_tasks.store.shard import ShardIndex, write_shard
from elmo_tasks.store.shards import Shards

TOKENS = 12
SENTENCES_A_SHARD = 4_000  # of 50,000 tokens


def resident() -> float:
    """Megabytes of resident memory of this process, without mapped files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith("RssAnon"))


def make_keys(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.frombuffer(rng.bytes(16 * n), "V16")


def index(n: int) -> None:
    rng = np.random.default_rng(1)
    before = resident()
    found = Index()
    some: list[bytes] = []
    start = time.process_time()
    for shard in range(n // SENTENCES_A_SHARD):
        keys = make_keys(SENTENCES_A_SHARD, rng)
        some.append(bytes(keys[0]))
        entries = np.empty(SENTENCES_A_SHARD, [("key", "V16"), ("start", "<i8"), ("rows", "<i8")])
        entries["key"], entries["rows"] = keys, TOKENS
        entries["start"] = np.arange(SENTENCES_A_SHARD) * TOKENS
        found.add(shard, entries)
    found.find(bytes(16))
    print(f"{len(found):,} sentences: index built in {time.process_time() - start:.1f} s (processor)")
    print(f"  memory {resident() - before:,.0f} MB, {(resident() - before) * 1e6 / len(found):.0f} bytes a sentence")
    print(f"  peak of the process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:,.0f} MB")
    start = time.process_time()
    for key in some:
        assert found.find(key) is not None
    print(f"  one lookup {(time.process_time() - start) / len(some) * 1e6:.1f} us")
    many = some + [rng.bytes(16) for _ in range(1_000_000)]
    start = time.process_time()
    assert found.contains(many).sum() == len(some)
    print(f"  a million at once {time.process_time() - start:.2f} s")


def shards(n: int) -> None:
    rng = np.random.default_rng(1)
    root = Path(tempfile.mkdtemp())
    try:
        store = Shards(root / "store", (3, 16), "float16", {})
        store.folder.mkdir(parents=True)
        rows = np.zeros((TOKENS, 3, 16), np.float16)
        start = time.process_time()
        n_shards = n // (SENTENCES_A_SHARD * TOKENS)
        for _ in range(n_shards):
            keys = [bytes(key) for key in make_keys(SENTENCES_A_SHARD, rng)]
            write_shard(store.folder, keys, [TOKENS] * len(keys), [rows] * len(keys))
        gigabytes = sum(path.stat().st_size for path in store.folder.glob("*.bin")) / 1e9
        print(f"{n_shards} shards, {gigabytes:.2f} GB: written in {time.process_time() - start:.1f} s")
        start = time.process_time()
        store.scan()
        print(f"  opened in {time.process_time() - start:.2f} s")
        start = time.process_time()
        for path in store.folder.glob("*.idx"):
            ShardIndex.read(path).verify()
        print(f"  checksums verified in {time.process_time() - start:.2f} s")
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=10_000_000)
    parser.add_argument("--shards", type=int, metavar="ROWS", default=0)
    chosen = parser.parse_args()
    shards(chosen.shards) if chosen.shards else index(chosen.sentences)
