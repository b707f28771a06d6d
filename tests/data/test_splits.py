import pytest

from elmo_tasks.data.ner import NerReader
from elmo_tasks.data.snli import SnliReader
from elmo_tasks.data.source import Files
from elmo_tasks.data.splits import read_splits
from elmo_tasks.data.sst5 import SstReader
from elmo_tasks.data.text import read_lines
from elmo_tasks.errors import UserError


@pytest.fixture
def source(tmp_path):
    """Files with these contents, some of which may be missing."""

    def source(**contents):
        for split, content in contents.items():
            (tmp_path / split).write_text(content, "utf-8")
        splits = {split: split if split in contents else None for split in ("train", "dev", "test")}
        return Files(str(tmp_path), splits, SstReader(phrases=False))

    return source


TREES = "".join(f"({k % 5} word{k})\n" for k in range(100))


def test_the_share_of_train_that_is_dev_does_not_depend_on_the_seed_and_the_two_are_disjoint(source):
    items = read_splits(SstReader(phrases=False), source(train=TREES, test=TREES), dev_share=0.2)
    assert list(items) == ["train", "dev", "test"]
    assert {split: len(part) for split, part in items.items()} == {"train": 80, "dev": 20, "test": 100}
    train, dev = (["".join(item.tokens) for item in items[split]] for split in ("train", "dev"))
    assert sorted(train + dev) == sorted(f"word{k}" for k in range(100))
    for part in (train, dev):
        assert part == sorted(part, key=lambda word: int(word[4:])), "in the order of the file"
    again = read_splits(SstReader(phrases=False), source(train=TREES), dev_share=0.2, splits=("train", "dev"))
    assert again == {"train": items["train"], "dev": items["dev"]}


def test_items_that_belong_together_stay_in_one_split(source):
    line = '{{"gold_label": "neutral", "sentence1": "Premise {}", "sentence2": "Hypothesis {}"}}\n'
    pairs = "".join(line.format(k // 3, k) for k in range(60))
    items = read_splits(SnliReader(), source(train=pairs), dev_share=0.25)
    premises = [{tuple(item.premise) for item in items[split]} for split in ("train", "dev")]
    assert not premises[0] & premises[1]
    assert (len(items["train"]), len(items["dev"])) == (45, 15)


def test_labels_are_learned_before_dev_is_cut_off(source):
    content = "".join(f"word{k} B-TYPE{k}\n\n" for k in range(10))
    reader = NerReader()
    read_splits(reader, source(train=content), dev_share=0.5)
    assert reader.types == [f"TYPE{k}" for k in range(10)]


def test_a_data_set_has_one_dev_set(source):
    with pytest.raises(UserError, match=r"there is no dev set: set task\.files\.dev, or task\.dev_share=0\.1"):
        read_splits(SstReader(phrases=False), source(train=TREES), dev_share=None)
    with pytest.raises(UserError, match=r"task\.dev_share=0\.1 cuts dev off train, but there is a dev set"):
        read_splits(SstReader(phrases=False), source(train=TREES, dev=TREES), dev_share=0.1)


@pytest.mark.parametrize(("train", "share"), [("(1 one)\n", 0.1), ("(1 one)\n(1 two)\n", 0.9)])
def test_neither_side_may_be_empty(source, train, share):
    with pytest.raises(UserError, match=rf"task\.dev_share={share:g} leaves 0 training items and \d dev items"):
        read_splits(SstReader(phrases=False), source(train=train), dev_share=share)


def test_phrases_cannot_be_cut(source):
    with pytest.raises(UserError, match=r"cannot cut dev off phrases.*; add task\.reader\.phrases=false"):
        read_splits(SstReader(phrases=True), source(train=TREES), dev_share=0.1)


def test_an_encoding_is_a_readers_option(tmp_path):
    path = tmp_path / "trees"
    path.write_bytes("(3 caf\u00e9)\n".encode("latin-1"))
    (item,) = SstReader(phrases=False, encoding="latin-1").read_file(path, "dev")
    assert item.tokens == ["caf\u00e9"]
    with pytest.raises(UserError, match=r"trees:1: not UTF-8 .*; set task\.reader\.encoding to the file's"):
        SstReader(phrases=False).read_file(path, "dev")


@pytest.mark.parametrize("encoding", ["utf-9", "utf-16", "rot13", "hex", "", 5, None, "x" * 100])
def test_an_encoding_must_be_one_in_which_lines_end_at_a_byte(encoding):
    with pytest.raises(UserError, match=r"^task\.reader\.encoding must be an encoding .* latin-1 or cp949, found"):
        SstReader(phrases=False, encoding=encoding)


@pytest.mark.parametrize("encoding", ["euc-kr", "cp949", "shift_jis", "gb18030", "latin-1", "cp1252", "koi8-r"])
def test_encodings_in_use_are_known(encoding):
    assert SstReader(phrases=False, encoding=encoding).encoding


def test_a_text_whose_encoding_has_no_key_can_be_converted(tmp_path):
    (tmp_path / "text").write_bytes(b"caf\xe9\n")
    with pytest.raises(
        UserError, match=r"text:1: not UTF-8 \([^)]*\); convert it to UTF-8, .*: iconv -f latin-1 -t UTF-8$"
    ):
        list(read_lines(tmp_path / "text"))
