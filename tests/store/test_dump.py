import gzip
import json

import h5py
import numpy as np
import pytest
import torch

from elmo_tasks.bilm.__main__ import main
from elmo_tasks.cli import dump as module
from elmo_tasks.cli.dump import dump
from elmo_tasks.errors import UserError

LINES = ["Ann left .", "", "It rained all day", "  in   May ", "Yes"]


def read(path):
    with h5py.File(path) as file:
        return [file[str(k)][:] for k in range(len(file))]


@pytest.mark.parametrize("portion", [1, 5, 10_000])
def test_each_line_has_its_layers_under_its_number(tiny_bilm, tmp_path, monkeypatch, portion):
    monkeypatch.setattr(module, "_PORTION_TOKENS", portion)
    (tmp_path / "text").write_text("\n".join(LINES))
    assert dump(tiny_bilm, tmp_path / "text", tmp_path / "out.hdf5") == 10
    found = read(tmp_path / "out.hdf5")
    assert [x.dtype for x in found] == [np.float32] * len(LINES)
    assert found[1].shape == (3, 0, 12)
    for line, layers in zip(LINES, found, strict=True):
        if line:
            torch.testing.assert_close(torch.from_numpy(layers), tiny_bilm.layers([line.split()])[0])


@pytest.mark.parametrize("portion", [1, 10_000])
def test_carried_state_continues_from_line_to_line_and_starts_from_zeros(tiny_bilm, tmp_path, monkeypatch, portion):
    monkeypatch.setattr(module, "_PORTION_TOKENS", portion)
    (tmp_path / "text").write_text("\n".join(LINES))
    for _ in range(2):
        dump(tiny_bilm, tmp_path / "text", tmp_path / "out.hdf5", state="carry")
    found = read(tmp_path / "out.hdf5")
    tiny_bilm.reset_carried_state()
    for line, layers in zip(LINES, found, strict=True):
        if line:
            torch.testing.assert_close(torch.from_numpy(layers), tiny_bilm.layers([line.split()], "carry")[0])
    assert np.abs(found[4] - tiny_bilm.layers([["Yes"]])[0].numpy()).max() > 1e-3


@pytest.mark.parametrize("row", [0, 1, 2])
def test_with_carried_state_the_top_layer_is_the_official_one(shared, tmp_path, row):
    folder = shared / "fixtures" / "elmo"
    lines = json.loads((folder / "sentences.json").read_text("utf-8"))[row]
    (tmp_path / "text").write_text("\n".join(lines), "utf-8")
    main(["dump", str(tmp_path / "text"), str(tmp_path / "out.hdf5"), "--bilm", str(folder), "--state", "carry"])
    found = read(tmp_path / "out.hdf5")
    with h5py.File(folder / f"lm_embeddings_{row}.hdf5") as file:
        assert len(found) == len(file) == len(lines)
        for k, layers in enumerate(found):
            np.testing.assert_allclose(layers[-1], np.concatenate(list(file[str(k)][...]), axis=1), atol=1e-5)


def test_text_that_cannot_be_read_or_has_no_line_leaves_nothing(tiny_bilm, tmp_path):
    for name, content, message in (("a", b"fine\n\xff\n", r"a:2: not UTF-8"), ("b", b"", r"b: no line in it")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match=message):
            dump(tiny_bilm, tmp_path / name, tmp_path / "out.hdf5")
    with pytest.raises(UserError, match=r"out\.hdf5: cannot be written"):
        dump(tiny_bilm, tmp_path / "b", tmp_path / "no" / "out.hdf5")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize("share", [0, 0.3, 0.9, 0.999])
def test_a_dump_to_a_full_disk_is_one_sentence_and_leaves_nothing(tiny_bilm, tmp_path, limited, share):
    (tmp_path / "text").write_text("\n".join(LINES * 20))
    dump(tiny_bilm, tmp_path / "text", tmp_path / "out.hdf5")
    n_bytes = int(share * (tmp_path / "out.hdf5").stat().st_size)
    (tmp_path / "out.hdf5").unlink()
    with pytest.raises(UserError, match=r"^\S*/out\.hdf5: cannot be written \(File too large\)$"), limited(n_bytes):
        dump(tiny_bilm, tmp_path / "text", tmp_path / "out.hdf5")
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


def test_an_error_in_computing_is_not_reported_as_one_in_writing(tiny_bilm, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("no memory")

    (tmp_path / "text").write_text("a")
    monkeypatch.setattr(tiny_bilm, "layers", fail)
    with pytest.raises(RuntimeError, match=r"^no memory$"):
        dump(tiny_bilm, tmp_path / "text", tmp_path / "out.hdf5")
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a " * 5001, "5001 tokens; expected one sentence a line"),
        ("é" * 500_001, "more than 1,000,000 bytes in a line;"),
    ],
)
def test_a_line_without_end_is_refused_with_its_number(tiny_bilm, tmp_path, line, message):
    (tmp_path / "text").write_text(f"a long paragraph is fine: {'a ' * 4000}\n{line}\n", "utf-8")
    with pytest.raises(UserError, match=f"^{tmp_path}/text:2: {message}"):
        dump(tiny_bilm, tmp_path / "text", tmp_path / "out.hdf5")
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


def test_lines_without_tokens_are_not_held_in_memory_either(tmp_path):
    assert [len(portion) for portion in module.portions(iter([[]] * 7), 3)] == [3, 3, 1]


@pytest.mark.parametrize("portion", [1, 10_000])
def test_truncated_tokens_are_named_once(tiny_bilm, tmp_path, monkeypatch, capsys, recwarn, portion):
    monkeypatch.setattr(module, "_PORTION_TOKENS", portion)
    (tmp_path / "text").write_text(f"a {'b' * 48}\n{'c' * 60}\nd {'e' * 49} {'c' * 60}\n")
    dump(tiny_bilm, tmp_path / "text", tmp_path / "out.hdf5")
    message = f"{tmp_path / 'text'}: tokens longer than 48 bytes are truncated: 3, such as '{'c' * 60}'\n"
    assert capsys.readouterr().err.splitlines()[-1] == message.strip()
    assert not recwarn.list


def test_the_command_line(tiny_bilm, tmp_path, capsys):
    tiny_bilm.save(tmp_path / "bilm")
    with gzip.open(tmp_path / "text.gz", "wt") as file:
        file.write("a b\nc\n")
    main(["dump", str(tmp_path / "text.gz"), str(tmp_path / "out.hdf5"), "--bilm", str(tmp_path / "bilm")])
    assert capsys.readouterr().out == f"{tmp_path / 'out.hdf5'}: 3 tokens\n"
    assert [x.shape for x in read(tmp_path / "out.hdf5")] == [(3, 2, 12), (3, 1, 12)]
    with pytest.raises(UserError, match="nowhere"):
        main(["dump", str(tmp_path / "text.gz"), str(tmp_path / "x"), "--bilm", str(tmp_path / "nowhere")])
