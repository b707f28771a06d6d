"""Small files that hold far too much: refused in a sentence, with little memory and in little time."""

import bz2
import gzip
import lzma
import os
import time
import tracemalloc

import pytest

from elmo_tasks.data import files
from elmo_tasks.data.files import read_content
from elmo_tasks.data.senses import read_sense_corpus
from elmo_tasks.data.sst5 import SstReader
from elmo_tasks.data.text import read_lines
from elmo_tasks.encoders.hf_files import read_config
from elmo_tasks.errors import UserError
from elmo_tasks.files import read_bytes, read_json

COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def refusal(read):
    """The sentence, which costs less than 60 MB and ten seconds."""
    tracemalloc.start()
    start = time.perf_counter()
    with pytest.raises(UserError) as caught:
        read()
    seconds, (_, peak) = time.perf_counter() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < 10
    assert peak < 60e6
    return str(caught.value)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_compressed_file_of_lines_without_end_is_given_up(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(files, "_RATIO_FROM", 2_000_000)
    path = tmp_path / f"text{suffix}"
    path.write_bytes(COMPRESS[suffix](b"a few words .\n" * 1_000_000))
    message = refusal(lambda: sum(1 for _ in read_lines(path)))
    assert message.endswith("100 times its own size; expected text")


def test_what_text_can_be_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_RATIO_FROM", 1_000_000)
    path = tmp_path / "text.gz"
    lines = [f"{k} {os.urandom(20).hex()}\n" for k in range(30_000)]
    path.write_bytes(gzip.compress("".join(lines).encode()))
    assert sum(1 for _ in read_lines(path)) == 30_000


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_a_word_of_a_hundred_million_characters_is_no_line(tmp_path, suffix):
    path = tmp_path / f"trees{suffix}"
    content = b"(2 " + b"x" * 30_000_000
    path.write_bytes(COMPRESS[suffix](content) if suffix else content)
    message = refusal(lambda: SstReader(phrases=False).read_file(path, "train"))
    assert "trees" in message
    assert message.endswith(":1: more than 10,000,000 bytes in a line; expected lines of text")


def test_entities_are_not_expanded(tmp_path):
    entities = "".join(f'<!ENTITY e{k + 1} "{f"&e{k};" * 10}">' for k in range(12))
    (tmp_path / "a.data.xml").write_text(f'<!DOCTYPE a [<!ENTITY e0 "ha">{entities}]><a>&e12;</a>')
    (tmp_path / "a.gold.key.txt").touch()
    message = refusal(lambda: list(read_sense_corpus(tmp_path / "a.data.xml", tmp_path / "a.gold.key.txt")))
    assert "a document type, which is not read" in message


def test_the_whole_content_of_a_file_is_bounded(tmp_path):
    path = tmp_path / "content"
    path.write_bytes(b"x" * 200_000)
    assert refusal(lambda: read_content(path, 100_000)).endswith("more than 100,000 bytes; expected a smaller file")
    assert refusal(lambda: read_bytes(path, 100_000)).endswith("larger than 100,000 bytes; expected a smaller file")
    assert read_content(path, 200_000) == read_bytes(path, 200_000)


@pytest.mark.parametrize("content", [b"[" * 1_000_000, b'{"a":' * 1_000_000, b'"' + b"x" * 11_000_000 + b'"'])
def test_json_is_bounded_in_depth_and_size(tmp_path, content):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    assert str(path) in refusal(lambda: read_json(path))
    assert str(path) in refusal(lambda: read_config(tmp_path))


@pytest.mark.parametrize("name", ["text", "text.gz", "text.xz", "text.bz2"])
@pytest.mark.parametrize("read", [lambda path: list(read_lines(path)), lambda path: read_bytes(path, 1000)])
def test_a_device_is_no_file(tmp_path, name, read):
    (tmp_path / name).symlink_to("/dev/zero")
    assert "regular file" in refusal(lambda: read(tmp_path / name))
