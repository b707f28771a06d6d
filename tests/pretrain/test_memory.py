import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from elmo_tasks.training import memory

REPO = Path(__file__).parents[2]
PROGRAM = """
import ctypes
import torch
from elmo_tasks.bilm.token_encoder import TokenEncoder
from elmo_tasks.training.memory import limit_primitive_caches

class Info(ctypes.Structure):  # glibc's mallinfo2
    _fields_ = [(f"field_{k}", ctypes.c_size_t) for k in range(10)]

library = ctypes.CDLL(None)
library.mallinfo2.restype = Info

def megabytes_in_use():
    info = library.mallinfo2()
    return (info.field_4 + info.field_7) / 2**20

torch.set_num_threads(1)
limit_primitive_caches()
encoder = TokenEncoder(filters=((1, 16), (7, 48)), embedding_dim=16, n_highway=1, projection_dim=32)
for n_words in range(200, 1000):
    encoder(torch.randint(1, 262, (n_words, 12))).sum().backward()
    if n_words in (599, 999):
        print(megabytes_in_use())
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc 2.33 or newer")
def test_windows_of_ever_new_shapes_do_not_make_the_process_grow() -> None:
    environment = {key: value for key, value in os.environ.items() if "CACHE_CAPACITY" not in key}
    environment["PYTHONPATH"] = str(REPO)
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    after_400, after_800 = map(float, done.stdout.split())
    assert after_800 - after_400 < 3  # about 45 with the caches' own capacities


KEPT_BLOCKS = """
from pathlib import Path
from elmo_tasks.training.memory import HeapTrimmer, keep_freed_memory

def megabytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6

assert keep_freed_memory()
heap = HeapTrimmer()
heap.after_step()
blocks = [b"x" * 1_000_000 for _ in range(200)]
del blocks[:-1]
before = megabytes()
heap.after_step()
print(before, megabytes())
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="needs glibc")
def test_freed_blocks_go_back_to_the_kernel_when_the_process_has_grown() -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    done = subprocess.run([sys.executable, "-c", KEPT_BLOCKS], env=environment, capture_output=True, text=True)
    before, after = map(float, done.stdout.split())
    assert before - after > 150


class Process:
    """Says how many pages it has, and notes at how many its heap is trimmed."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.statm, self.trimmed_at = folder / "statm", list[int]()
        self.grow_to(0)
        monkeypatch.setattr(memory, "_STATM", self.statm)
        monkeypatch.setattr(memory, "_of_c_library", lambda name: lambda padding: self.trimmed_at.append(self.pages))

    def grow_to(self, pages: int) -> None:
        self.pages = pages
        self.statm.write_text(f"5000 {pages}")


def test_the_heap_is_trimmed_when_the_process_has_grown_by_15_percent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process(tmp_path, monkeypatch)
    heap = memory.HeapTrimmer()
    for pages in (1000, 1150, 1151, 900, 950, 1035, 1036, 2000):
        process.grow_to(pages)
        heap.after_step()
    assert process.trimmed_at == [1151, 1036]  # each followed by the first step of another round


def test_the_heap_is_trimmed_before_the_first_batch_and_between_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process(tmp_path, monkeypatch)
    process.grow_to(3000)
    batches = [1000, 1100, 1200, 1300]
    seen = []
    for pages in memory.HeapTrimmer().between(batches):
        seen.append(pages)
        process.grow_to(pages)
    assert seen == batches
    assert process.trimmed_at == [3000, 1200]
