import lzma
import shutil

import pytest

from elmo_tasks.data import files
from elmo_tasks.data.senses import Instance, SenseSentence, parse_lemma, read_inventory, read_sense_corpus
from elmo_tasks.data.wsd import WsdData
from elmo_tasks.errors import UserError
from elmo_tasks.places import BUNDLED

XML = """<?xml version="1.0" encoding="UTF-8" ?>
<corpus lang="en" source="s">
<text id="d000">
<sentence id="d000.s000">
<wf lemma="`" pos=".">``</wf>
<instance id="d000.s000.t000" lemma="Belong_to" pos="VERB">belongs to</instance>
<wf lemma="at&amp;t" pos="NOUN">AT&amp;T</wf>
<wf lemma="(" pos=".">-LRB-</wf>
<instance id="d000.s000.t001" lemma="cold" pos="ADJ">colder</instance>
</sentence>
<sentence id="d000.s001">
<wf lemma="caf\u00e9" pos="NOUN">caf\u00e9</wf>
</sentence>
</text>
</corpus>
"""
KEYS = "d000.s000.t000 belong_to%2:42:00::\nd000.s000.t001 cold%3:00:01:: cold%5:00:00:cool:03\n"
SENTENCES = [
    SenseSentence(
        ['"', "belongs", "to", "AT&T", "(", "colder"],
        [
            Instance(("belong_to", "v"), 1, 3, ("belong_to%2:42:00::",)),
            Instance(("cold", "a"), 5, 6, ("cold%3:00:01::", "cold%5:00:00:cool:03")),
        ],
    ),
    SenseSentence(["caf\u00e9"], []),
]


@pytest.fixture
def read(tmp_path):
    def read(xml=XML, keys=KEYS, name="a.data.xml"):
        (tmp_path / "a.gold.key.txt").write_text(keys, "utf-8")
        content = xml.encode()
        (tmp_path / name).write_bytes(lzma.compress(content) if name.endswith(".xz") else content)
        return list(read_sense_corpus(tmp_path / name, tmp_path / "a.gold.key.txt"))

    return read


@pytest.mark.parametrize("chunk", [1, 7, 1 << 16])
@pytest.mark.parametrize("name", ["a.data.xml", "a.data.xml.xz"])
def test_sentences_are_the_same_however_the_file_is_cut_or_packed(read, monkeypatch, chunk, name):
    monkeypatch.setattr(files, "_CHUNK_BYTES", chunk)
    assert read(name=name) == SENTENCES


def test_sentences_come_before_the_file_has_been_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_CHUNK_BYTES", 64)
    (tmp_path / "a").write_text(XML.replace("</corpus>", "<broken"), "utf-8")
    (tmp_path / "k").write_text(KEYS)
    sentences = read_sense_corpus(tmp_path / "a", tmp_path / "k")
    assert [next(sentences), next(sentences)] == SENTENCES
    with pytest.raises(UserError, match=r"a:1[56]: not well-formed XML"):
        next(sentences)


def test_no_entity_is_expanded(read):
    bomb = '<!DOCTYPE corpus [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>'
    with pytest.raises(UserError, match=r"a\.data\.xml:2: found a document type, which is not read"):
        read(XML.replace("<corpus", bomb + "<corpus", 1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("</text>", "", r":15: not well-formed XML"),
        ('id="d000.s000.t001"', 'id="d9"', r":9: found instance 'd9', which has no line"),
        ("t001", "t000", r":9: found instance 'd000\.s000\.t000', which has no line \(or no further one\)"),
        ('pos="ADJ"', 'pos="DET"', r":9: found an instance without text, lemma or a pos of NOUN, VERB, ADJ, ADV"),
        (">colder<", "> <", r":9: found an instance without text"),
        ('<sentence id="d000.s000">', "", r":5: found <wf> that is not directly in a <sentence>"),
        (">caf\u00e9<", "><", r":13: an empty sentence"),
        ("&amp;", "&nothing;", r":7: not well-formed XML"),
    ],
)
def test_bad_xml_is_named_with_its_line(read, old, new, message):
    with pytest.raises(UserError, match=r"a\.data\.xml" + message):
        read(XML.replace(old, new, 1))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (KEYS + "d1\n", r":3: expected a new instance and its sense keys, found 'd1'"),
        (KEYS + KEYS, r":3: expected a new instance"),
        (KEYS.replace("cold%3", "cold%6"), r":2: expected a new instance and its sense keys"),
        (KEYS.replace("%", "#"), r":1: expected a new instance"),
        (KEYS + "d2 cold%3:00:01::\n", r": 1 instances are not in a\.data\.xml, such as d2"),
    ],
)
def test_bad_keys_are_named_with_their_line(read, keys, message):
    with pytest.raises(UserError, match=r"a\.gold\.key\.txt" + message):
        read(keys=keys)


def test_a_key_tells_lemma_and_part_of_speech():
    keys = ["art%1:09:00::", "be%2:42:03::", "Cold%3:00:01::", "well%4:02:00::", "cold%5:00:00:cool:03", "%%1:23:00::"]
    expected = [("art", "n"), ("be", "v"), ("cold", "a"), ("well", "r"), ("cold", "a"), ("%", "n")]
    assert [parse_lemma(key) for key in keys] == expected


def test_senses_are_in_wordnets_order_with_satellites_among_the_adjectives(tmp_path):
    lines = [f"cold%5:00:00:cool:03 1 {n} 0" for n in (10,)] + ["cold%3:00:02:: 2 2 13", "cold%3:00:01:: 3 1 35"]
    (tmp_path / "index.sense").write_text("\n".join([*lines, "cold%1:26:00:: 4 1 9", "art%1:09:00:: 5 1 1"]))
    found = read_inventory(tmp_path / "index.sense", {("cold", "a"), ("art", "v")})
    assert found == {("cold", "a"): ["cold%3:00:01::", "cold%3:00:02::", "cold%5:00:00:cool:03"]}


@pytest.mark.parametrize("line", ["cold%3:00:01:: 3 1", "cold 3 1 35", "cold%3:00:01:: 3 first 35"])
def test_a_line_that_is_not_of_the_index_is_named(tmp_path, line):
    (tmp_path / "index.sense").write_text(f"art%1:09:00:: 5 1 1\n{line}\n")
    with pytest.raises(UserError, match=r"index\.sense:2: expected a sense key, offset, sense number and count"):
        read_inventory(tmp_path / "index.sense", {("cold", "a")})


def test_the_first_sense_scores_what_is_published(shared):
    folder, published = (
        shared / "data" / "wsd",
        {"senseval2": 66.8, "senseval3": 66.2, "semeval2013": 63.0, "semeval2015": 67.8},
    )
    sets = {
        name: [
            i
            for s in read_sense_corpus(
                *(folder / "eval" / name / f"{name}.{part}" for part in ("data.xml", "gold.key.txt"))
            )
            for i in s.instances
        ]
        for name in published
    }
    first = read_inventory(folder / "wordnet-3.0" / "index.sense", {i.lemma for part in sets.values() for i in part})
    right = {name: sum(first[i.lemma][0] in i.keys for i in part) for name, part in sets.items()}
    assert {name: round(100 * right[name] / len(sets[name]), 1) for name in sets} == published
    assert round(100 * sum(right.values()) / sum(map(len, sets.values())), 1) == 65.9


@pytest.mark.parametrize("encoding", ["UTF-9", "rot13", "utf-7", "x" * 500])
def test_an_encoding_that_no_text_has_is_refused_with_its_line(tmp_path, encoding):
    (tmp_path / "a.data.xml").write_text(f"<?xml version='1.0' encoding='{encoding}'?>\n<corpus></corpus>\n")
    (tmp_path / "a.gold.key.txt").touch()
    with pytest.raises(UserError, match=r"a\.data\.xml:1: .*XML") as error:
        list(read_sense_corpus(tmp_path / "a.data.xml", tmp_path / "a.gold.key.txt"))
    assert len(str(error.value)) - len(str(tmp_path)) < 300


def sense_data(root, **folders):
    """Sets that are copies of one, in folders of different names."""
    for folder in ("train", "dev", "a/data", "b/data", "f1", "f2"):
        shutil.copytree(BUNDLED / "sample" / "wsd" / "semcor", root / folder)
    (root / "index.sense").write_text("")
    given = {"train": "train", "dev": ["dev"], "test": []} | folders
    return WsdData(root=str(root), senses="index.sense", fraction=1.0, seed=1, **given)


def test_sets_to_score_have_names_of_their_own(tmp_path):
    with pytest.raises(UserError, match=r"^task\.data\.test: .* so 'data' must be another name$"):
        sense_data(tmp_path / "1", test=["a/data", "b/data"])
    with pytest.raises(UserError, match=r"^task\.data\.dev: .* so 'f1' must be another name$"):
        sense_data(tmp_path / "2", dev=["f1"])
    sense_data(tmp_path / "3", test=["b/data"])


def test_the_training_text_of_a_probe_is_not_scored(tmp_path):
    with pytest.raises(UserError, match=r" is in both train and dev; expected files of its own for each$"):
        sense_data(tmp_path, dev=["train"])


def test_the_digest_says_which_texts_are_for_training(tmp_path):
    found = []
    for k, (n_train, n_dev) in enumerate([(2, 1), (1, 2)]):
        root = tmp_path / str(k)
        for number, folder in enumerate(["train"] * n_train + ["dev"] * n_dev):
            (root / folder).mkdir(parents=True, exist_ok=True)
            (root / folder / f"t{number}.data.xml").write_text(f"<corpus>{number}</corpus>")
            (root / folder / f"t{number}.gold.key.txt").write_text("")
        (root / "index.sense").write_text("")
        data = WsdData(root=str(root), train="train", dev=["dev"], test=[], senses="index.sense", fraction=1.0, seed=1)
        found.append(data.digest)
    assert found[0] != found[1]


def test_the_digest_of_the_test_sets_has_their_names_under_which_their_scores_are_shown(tmp_path):
    one = sense_data(tmp_path / "1", test=["a/data"])
    again, other = sense_data(tmp_path / "2", test=["b/data"]), sense_data(tmp_path / "3", test=["f2"])
    assert one.test_digest == again.test_digest != other.test_digest
    assert one.digest == other.digest


def test_a_text_counts_once_and_backups_do_not(tmp_path):
    (text,) = (BUNDLED / "sample" / "wsd" / "semcor").glob("*.data.xml*")
    for name in (f"{text.name}~", f"{text.name}.bak", f"{text.name}.sha256"):
        (tmp_path / name).write_text("backup")
    sense_data(tmp_path)
    for path in tmp_path.glob(f"*{text.name}*"):
        shutil.copy(path, tmp_path / "dev")
    again = {"root": str(tmp_path), "senses": "index.sense", "fraction": 1.0, "seed": 1, "train": "train", "test": []}
    assert len(WsdData(**again, dev=["dev"]).files["dev"]["dev"]) == 1
    (tmp_path / "dev" / f"{text.name}.xz").write_bytes(lzma.compress(text.read_bytes()))
    with pytest.raises(UserError, match=r"\.data\.xml\.xz: the same text as .*\.data\.xml; expected only one of them$"):
        WsdData(**again, dev=["dev"])
