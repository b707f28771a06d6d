import json
import socket
import time
from threading import Thread

import datasets
import huggingface_hub
import pyarrow
import pyarrow.parquet
import pytest

from elmo_tasks.data.hub import Hub, is_reachable
from elmo_tasks.data.ner import NerReader
from elmo_tasks.data.snli import LABELS, SnliReader
from elmo_tasks.data.splits import check_dev
from elmo_tasks.data.sst5 import SstReader
from elmo_tasks.errors import UserError

SPLITS = {"train": "train", "dev": "validation", "test": "test"}
NER = [{"tokens": ["Ann", "Lee", "left"], "ner_tags": [1, 2, 0]}, {"tokens": ["Oslo"], "ner_tags": [5]}]
SST = [{"text": "a fine film", "label": 4}, {"text": "no", "label": 1}]


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def as_parquet(path, rows):
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path.with_suffix(".parquet"))


def as_json(path, rows):
    path.with_suffix(".jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


@pytest.fixture
def folder(tmp_path_factory):  # not tmp_path: `datasets` would read a split's name out of "test_..." in the path
    """Writes the three splits; dev and test hold the first row only."""

    def folder(write, rows, splits=SPLITS):
        root = tmp_path_factory.mktemp("rows")
        for split in splits.values():
            write(root / split, rows if split == "train" else rows[:1])
        return str(root)

    return folder


@pytest.mark.parametrize("write", [as_parquet, as_json])
def test_entities_come_from_a_local_copy_of_the_hubs_rows(folder, write):
    hub, reader = Hub(id=folder(write, NER), splits=SPLITS), NerReader()
    items = {split: hub.read(reader, split) for split in SPLITS}
    assert [item.tokens for item in items["train"]] == [["Ann", "Lee", "left"], ["Oslo"]]
    assert [item.spans for item in items["train"]] == [[(0, 2, "PER")], [(0, 1, "LOC")]]
    assert items["dev"] == items["test"] == items["train"][:1]


def with_names(names):
    """Writes rows whose labels are numbers into a list of names of their own."""
    label = datasets.ClassLabel(names=names)

    def write(path, rows):
        types = {"premise": text, "hypothesis": text, "label": label}
        types |= {"tokens": datasets.Sequence(text), "ner_tags": datasets.Sequence(label)}
        features = datasets.Features({key: types[key] for key in rows[0]})
        datasets.Dataset.from_list(rows, features=features).to_parquet(path.with_suffix(".parquet"))

    text = datasets.Value("string")
    return write


def test_labels_are_read_by_the_names_that_a_data_set_gives_their_numbers(folder):
    tags = ["O", "B-ORG", "B-PER", "I-PER", "I-ORG"]
    rows = [{"tokens": ["Ann", "Lee", "of", "Red", "Inc"], "ner_tags": [2, 3, 0, 1, 4]}]
    (item,) = Hub(id=folder(with_names(tags), rows), splits=SPLITS).read(NerReader(), "train")
    assert item.spans == [(0, 2, "PER"), (3, 5, "ORG")]
    pairs = [{"premise": "A man .", "hypothesis": "A dog .", "label": label} for label in (0, 1, -1)]
    hub = Hub(id=folder(with_names(["contradiction", "entailment", "neutral"]), pairs), splits=SPLITS)
    assert [LABELS[item.label] for item in hub.read(SnliReader(), "train")] == ["contradiction", "entailment"]


def test_the_digest_of_hub_rows_depends_on_the_names_of_their_labels(folder):
    rows = [{"premise": "A man .", "hypothesis": "A dog .", "label": 0}]
    orders = [["entailment", "neutral", "contradiction"], ["contradiction", "neutral", "entailment"]]
    assert len({Hub(id=folder(with_names(names), rows), splits=SPLITS).digest for names in orders}) == 2


def test_a_split_of_the_hub_is_not_both_train_and_dev(folder):
    with pytest.raises(UserError, match=r"^data=hub: 'train' of .* is both train and dev; expected different ones$"):
        Hub(id=folder(as_json, SST), splits=SPLITS | {"dev": "train"})


def test_a_split_of_the_hub_that_is_null_is_not_there(folder):
    hub = Hub(id=folder(as_json, SST), splits=SPLITS | {"dev": None})
    assert hub.splits == ["train", "test"]
    with pytest.raises(UserError, match=r"^there is no dev set: set task\.hub\.splits\.dev, or task\.dev_share=0\.1"):
        check_dev(hub, None)
    whole = Hub(id=folder(as_json, SST), splits=SPLITS)
    with pytest.raises(UserError, match=r"but there is a dev set; set task\.hub\.splits\.dev=null or"):
        check_dev(whole, 0.1)


@pytest.mark.parametrize("write", [as_parquet, as_json])
def test_sentiment_comes_from_a_local_copy_of_the_hubs_rows(folder, write):
    hub = Hub(id=folder(write, SST), splits=SPLITS)
    items = hub.read(SstReader(phrases=False), "train")
    assert [(item.tokens, item.label) for item in items] == [(["a", "fine", "film"], 4), (["no"], 1)]


def test_digest_of_hub_rows_follows_their_content_not_their_place_or_format(folder):
    digest = Hub(id=folder(as_json, SST), splits=SPLITS).digest
    assert Hub(id=folder(as_parquet, SST), splits=SPLITS).digest == digest
    for changed in (SST[::-1], [SST[0], SST[1] | {"label": 0}]):
        assert Hub(id=folder(as_json, changed), splits=SPLITS).digest != digest


def test_digest_of_hub_rows_changes_where_train_ends_and_dev_begins(folder):
    id_ = folder(as_json, SST[:1] * 2)  # the same row three times: twice in one split, once in the other
    swapped = SPLITS | {"train": SPLITS["dev"], "dev": SPLITS["train"]}
    assert Hub(id=id_, splits=SPLITS).digest != Hub(id=id_, splits=swapped).digest


def test_the_test_rows_of_the_hub_have_a_digest_of_their_own(folder):
    whole = Hub(id=folder(as_json, SST), splits=SPLITS)
    others = Hub(id=whole.id, splits={split: name for split, name in SPLITS.items() if split != "test"})
    swapped = Hub(id=whole.id, splits=SPLITS | {"test": SPLITS["dev"]})
    assert whole.digest == others.digest == swapped.digest
    assert (others.test_digest, swapped.test_digest) == (None, whole.test_digest)


def test_a_missing_split_is_named_with_those_that_are_there(folder):
    id_ = folder(as_json, SST, splits={"train": "train", "test": "test"})
    with pytest.raises(UserError, match=r"has no split 'validation' for dev; it has train, test"):
        Hub(id=id_, splits=SPLITS)


@pytest.mark.parametrize("id_", ["nobody/no-such-data", "no-such-data", "./no/such/folder"])
def test_an_id_that_is_nowhere_gives_a_one_sentence_error(id_):
    with pytest.raises(UserError, match=rf"data=hub: {id_} cannot be loaded"):
        Hub(id=id_, splits=SPLITS)


def test_a_split_without_one_usable_row_is_refused(folder):
    rows = [{"premise": "A man .", "hypothesis": "A person .", "label": -1}]
    hub = Hub(id=folder(as_json, rows), splits=SPLITS)
    with pytest.raises(UserError, match=r"^data=hub: nothing to use in .* \(validation\); expected the dev split"):
        hub.read(SnliReader(), "dev")


def test_row_errors_name_data_set_split_and_row(folder):
    hub = Hub(id=folder(as_json, [SST[0], {"text": "b", "label": 7}]), splits=SPLITS)
    with pytest.raises(UserError, match=r" \(train\) row 1: label 7 is not in 0 \.\. 4"):
        hub.read(SstReader(phrases=False), "train")


@pytest.fixture
def server():
    """A server that answers, or takes calls and never says a word; gives its address."""
    open_sockets = []

    def server(answers):
        listening = socket.create_server(("127.0.0.1", 0))
        open_sockets.append(listening)

        def serve():
            call, _ = listening.accept()
            open_sockets.append(call)
            call.recv(1000)
            call.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

        if answers:
            Thread(target=serve, daemon=True).start()
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    yield server
    for each in open_sockets:
        each.close()


def test_a_server_that_does_not_answer_is_given_up_on_soon(server, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    assert is_reachable(server(answers=True))
    start = time.perf_counter()
    assert not is_reachable(server(answers=False))
    assert not is_reachable("http://127.0.0.1:1")
    assert not is_reachable("no address")
    assert time.perf_counter() - start < 4


def test_without_a_connection_the_answer_comes_within_five_seconds_and_without_noise(server, monkeypatch, capfd):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server(answers=False))
    start = time.perf_counter()
    with pytest.raises(UserError, match=r"^data=hub: no/such-data cannot be loaded \(http://.* does not answer, and"):
        Hub(id="no/such-data", splits=SPLITS)
    assert time.perf_counter() - start < 5
    assert "".join(capfd.readouterr()) == ""
