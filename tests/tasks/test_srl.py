import re
from pathlib import Path

import pytest
import torch

from elmo_tasks.batch import Text
from elmo_tasks.data.conll2012 import FRAMESET, read_documents
from elmo_tasks.data.module import TaskData
from elmo_tasks.data.source import Files
from elmo_tasks.data.srl import SrlItem, SrlReader
from elmo_tasks.elmo import Elmo
from elmo_tasks.errors import UserError
from elmo_tasks.metrics.srl_f1 import SrlF1
from elmo_tasks.models.srl_lstm import SrlLstm, SrlOutput
from elmo_tasks.nn.embedding import WordEmbedding
from elmo_tasks.nn.words import WordVectors
from elmo_tasks.store.layers import LayerStore
from elmo_tasks.store.store import Filled

BUNDLED = Path(__file__).parents[2] / "elmo_tasks" / "bundled" / "sample" / "srl"

SAID = """
Ann   -     -  (ARG0*)  *
said  say   01 (V*)     *
she   -     -  (ARG1*   (ARG0*)
left  leave 02 *)       (V*)
-RRB- -     -  *        *
"""
GOOD_NIGHT = """
Good  - -
night - -
"""
RAINED = """
It     -    -  *
rained rain 01 (V*
down   -    -  *)
now    -    -  (ARGM-TMP*)
"""
ITEMS = [
    SrlItem(
        ["Ann", "said", "she", "left", ")"],
        {
            "number": 0,
            "predicates": [1, 3],
            "lemmas": ["say", "leave"],
            "tags": [["B-ARG0", "B-V", "B-ARG1", "I-ARG1", "O"], ["O", "O", "B-ARG0", "B-V", "O"]],
        },
    ),
    SrlItem(
        ["It", "rained", "down", "now"],
        {"number": 2, "predicates": [1], "lemmas": ["rain"], "tags": [["O", "B-V", "I-V", "B-ARGM-TMP"]]},
    ),
]


def conll(*documents):
    """Documents of sentences in the format; a line has word, lemma, frameset and a cell for each predicate."""
    lines = []
    for sentences in documents:
        lines.append("#begin document (d); part 000")
        for sentence in sentences:
            for k, (word, lemma, frameset, *cells) in enumerate(map(str.split, sentence.strip().split("\n"))):
                lines.append("\t".join(["d", "0", str(k), word, "X", "*", lemma, frameset, "-", "-", "*", *cells, "-"]))
            lines.append("")
        lines.append("#end document")
    return "\n".join(lines) + "\n"


@pytest.fixture
def read(tmp_path):
    def read(content, split="train", reader=None, longest=100):
        path = tmp_path / f"{split}.conll"
        path.write_text(content, "utf-8")
        return (reader or SrlReader(max_training_tokens=longest)).read_file(path, split)

    return read


@pytest.mark.parametrize("documents", [[[SAID, GOOD_NIGHT, RAINED]], [[SAID], [GOOD_NIGHT, RAINED]]])
def test_an_item_is_a_sentence_with_all_its_predicates_and_its_place_in_the_file(read, documents):
    reader = SrlReader(max_training_tokens=100)
    assert read(conll(*documents), "train", reader) == ITEMS
    assert reader.left_out == {"train sentences without predicates": 1}
    assert [reader.texts(item) for item in ITEMS] == [[item.tokens] for item in ITEMS]


def test_a_folder_is_one_split_and_its_sentences_are_counted_on(tmp_path):
    for name, sentences in (("b/2_gold_conll", [RAINED]), ("a/1_gold_conll", [SAID, GOOD_NIGHT])):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(conll(sentences))
    assert SrlReader(max_training_tokens=100).read_file(tmp_path, "train") == ITEMS


def test_the_model_is_told_the_tags_of_all_training_labels(read):
    reader = SrlReader(max_training_tokens=100)
    read(conll([SAID.replace("ARG1", "ARG5")]), "dev", reader)
    reader.fit(read(conll([SAID, RAINED]), "train", reader))
    tags = ["O", "B-ARG0", "I-ARG0", "B-ARG1", "I-ARG1", "B-ARGM-TMP", "I-ARGM-TMP", "B-V", "I-V"]
    assert reader.model_parts() == {"tags": tags}


@pytest.mark.parametrize(
    ("sentence", "line", "message"),
    [
        (SAID.replace("(V*)     *", "*        *"), 9, "no V in column 12, .* the predicate 'said'"),
        (SAID.replace("*)       (V*)", "*)       *"), 11, "no V in column 13, .* the predicate 'left'"),
        (SAID.replace("(V*)     *", "(C-V*)   *"), 9, "no V in column 12, .* 'said'"),
        (RAINED.replace("(V*", "*").replace("*)\nnow", "*\nnow").replace("ARGM-TMP", "V"), 9, "no V .* 'rained'"),
        (SAID.replace("say   01", "say   -"), 8, "1 predicate but 2 columns of arguments"),
        (GOOD_NIGHT.replace("night - -", "night night 01"), 8, "1 predicate but 0 columns of arguments"),
        (SAID.replace("*        *\n", "*        (V*)\n"), 12, "a second V in column 13, .* 'left'; expected C-V"),
        (SAID.replace("ARG1", "V"), 10, "a second V in column 12, .* 'said'; expected C-V"),
        (SAID.replace("*)       (V*)", "*        (V*)"), 10, "the span ARG1 is not closed"),
    ],
)
@pytest.mark.parametrize("split", ["train", "dev"])
def test_bad_annotation_is_refused_with_file_and_line(read, split, sentence, line, message):
    with pytest.raises(UserError, match=rf"{split}\.conll:{line}: {message}"):
        read(conll([RAINED.replace("ARGM-TMP", "ARG1"), sentence]).replace("\n\n", "\n\n\n", 1), split)


@pytest.mark.parametrize(
    "label",
    [
        *("BANANA", "Arg1", "arg1", "ARG", "ARG6", "ARG9", "ARG10", "ARGB", "ARG1-", "ARG1_X", "ARG1-dsp", "ARG1-2"),
        *("ARGM-", "-ARG1", "ARGM-TMP-", "A1", "AM-TMP", "TMP", "X-ARG1", "C-", "R-V", "C-R-ARG1", "R-BANANA", "rel"),
    ],
)
def test_a_label_that_is_none_of_propbanks_is_refused_with_file_and_line(tmp_path, read, label):
    with pytest.raises(UserError) as error:
        read(conll([SAID.replace("ARG1", label)]))
    assert str(error.value) == (
        f"{tmp_path}/train.conll:4: unknown label {label!r}; expected one of PropBank's, such as ARG0, ARGM-TMP, "
        "R-ARG0 or C-V"
    )


@pytest.mark.parametrize(
    "label",
    [
        *("ARG0", "ARG1", "ARG2", "ARG3", "ARG4", "ARG5", "ARGA", "ARGM", "ARGM-TMP", "ARGM-PRX", "ARG1-DSP", "C-V"),
        *("C-ARG1", "R-ARG5", "R-ARGM-LOC", "C-ARGM-DSP", "C-ARG1-DSP", "ARGM-ADV-CXN"),
    ],
)
def test_propbanks_labels_are_read(read, label):
    (item,) = read(conll([SAID.replace("ARG1", label)]))
    assert item.gold["tags"][0] == ["B-ARG0", "B-V", f"B-{label}", f"I-{label}", "O"]


NESTED = SAID.replace("(ARG1*   ", "(ARG1(ARG2*) ")
AROUND = RAINED.replace("(V*\n", "(C-ARG2(V*\n").replace("*)\nnow", "*)\nnow").replace("(ARGM-TMP*)", "*)")
BOTH = GOOD_NIGHT.replace("Good  - -", "Good - - (ARG1(ARG2*))").replace("night - -", "night night 01 (V*)")


@pytest.mark.parametrize(
    ("sentence", "line", "refused", "tags"),
    [
        (NESTED, 4, "ARG2 begins within ARG1", ["B-ARG0", "B-V", "B-ARG1", "I-ARG1", "O"]),
        (AROUND, 3, "V begins within C-ARG2", ["O", "B-V", "I-V", "O"]),
        (BOTH, 2, "ARG2 begins within ARG1", ["B-ARG1", "B-V"]),
    ],
    ids=["an-argument-in-another", "around-the-v", "of-the-same-tokens"],
)
def test_nested_labels_are_refused_or_the_inner_ones_left_out_and_counted(read, sentence, line, refused, tags):
    message = f"{refused}; spans must not overlap; task.reader.nested_labels=drop keeps the outer one"
    with pytest.raises(UserError, match=rf"dev\.conll:{line}: {message}"):
        read(conll([sentence]), "dev")
    reader = SrlReader(max_training_tokens=100, nested_labels="drop")
    items = read(conll([sentence, SAID]), "dev", reader)
    assert items[0].gold["tags"][0] == tags
    assert items[1].gold["tags"] == ITEMS[0].gold["tags"]
    assert reader.left_out == {"dev arguments within another": 1}
    with pytest.raises(UserError, match="a closing bracket has no opening bracket"):
        read(conll([SAID.replace("(V*)", "(V*))")]), "dev", reader)


def test_labels_that_training_lacks_are_counted_and_stay_in_the_gold(read):
    reader = SrlReader(max_training_tokens=100)
    reader.fit(read(conll([SAID]), "train", reader))
    items = read(conll([RAINED, RAINED.replace("ARGM", "C-ARGM"), SAID]), "dev", reader)
    reader.check(items, "dev")
    assert items[0].gold["tags"] == [["O", "B-V", "I-V", "B-ARGM-TMP"]]
    assert reader.left_out == {"dev arguments with a label that training lacks": 2}
    reader.check(items[2:], "test")
    assert reader.left_out == {"dev arguments with a label that training lacks": 2}


@pytest.mark.parametrize(("longest", "n_items"), [(4, 1), (5, 3)])
def test_long_training_sentences_are_left_out_and_counted_but_never_those_of_dev_and_test(read, longest, n_items):
    reader = SrlReader(max_training_tokens=longest)
    content = conll([SAID, RAINED, GOOD_NIGHT, SAID])
    assert len(read(content, "train", reader)) == n_items
    left_out = {
        "train sentences without predicates": 1,
        **({"train sentences that are too long": 3 - n_items} if n_items < 3 else {}),
    }
    assert reader.left_out == left_out
    for split in ("dev", "test"):
        assert len(read(content, split, reader)) == 3
    others = {f"{split} sentences without predicates": 1 for split in ("dev", "test")}
    assert reader.left_out == left_out | others


@pytest.mark.parametrize(
    ("sentences", "split", "message"),
    [
        ([GOOD_NIGHT], "train", "no train sentence of at most 3 tokens has a predicate; 1 sentence read"),
        (
            [SAID, RAINED, GOOD_NIGHT],
            "train",
            "no train sentence of at most 3 tokens has a predicate; 3 sentences read",
        ),
        ([GOOD_NIGHT] * 1_200, "dev", "no dev sentence has a predicate; 1,200 sentences read"),
    ],
)
def test_a_file_without_one_usable_sentence_is_refused_with_the_reason(tmp_path, read, sentences, split, message):
    with pytest.raises(UserError) as error:
        read(conll(sentences), split, longest=3)
    assert str(error.value) == f"{tmp_path}/{split}.conll: {message}"


def make_text(items, n_words=9, layers=None):
    lengths = torch.tensor([len(item.tokens) for item in items])
    mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
    layers = None if layers is None else torch.randn(len(items), layers[0], mask.shape[1], layers[1])
    char_ids = torch.zeros(*mask.shape, 1, dtype=torch.long)
    return Text([item.tokens for item in items], torch.randint(n_words, mask.shape), char_ids, mask, layers)


def test_a_batch_has_the_predicates_of_its_sentences_one_after_the_other(read):
    reader = SrlReader(max_training_tokens=100)
    reader.fit(read(conll([SAID, RAINED]), "train", reader))
    batch = reader.collate(ITEMS[::-1], [make_text(ITEMS[::-1])])
    assert batch.valid.tolist() == [[True, False], [True, True]]
    assert batch.predicates.tolist() == [1, 1, 3]
    assert [[reader.tags[k] for k in row] for row in batch.tags.tolist()] == [
        ["O", "B-V", "I-V", "B-ARGM-TMP", "O"],
        ["B-ARG0", "B-V", "B-ARG1", "I-ARG1", "O"],
        ["O", "O", "B-ARG0", "B-V", "O"],
    ]
    assert (batch.tags.dtype, batch.predicates.dtype, batch.valid.dtype) == (torch.long, torch.long, torch.bool)
    assert batch.gold == [item.gold for item in ITEMS[::-1]]
    assert batch.text.tokens == [item.tokens for item in ITEMS[::-1]]


def test_tags_that_training_lacks_are_o_in_a_batch(read):
    reader = SrlReader(max_training_tokens=100)
    reader.fit(read(conll([SAID]), "train", reader))
    (item,) = read(conll([RAINED]), "dev", reader)
    batch = reader.collate([item], [make_text([item])])
    assert [reader.tags[k] for k in batch.tags[0]] == ["O", "B-V", "I-V", "O"]
    assert batch.gold[0]["tags"] == [["O", "B-V", "I-V", "B-ARGM-TMP"]]


def test_a_sentences_layers_are_computed_and_stored_once_for_all_its_predicates(tmp_path, tiny_bilm, monkeypatch):
    calls, layers = [], tiny_bilm.layers
    monkeypatch.setattr(tiny_bilm, "layers", lambda s, **kwargs: calls.extend(s) or layers(s, **kwargs))
    for split in ("train", "dev"):
        (tmp_path / f"{split}.conll").write_text(conll([SAID, GOOD_NIGHT, RAINED, SAID]))
    reader = SrlReader(max_training_tokens=100)
    data = TaskData(
        reader=reader,
        source=Files(str(tmp_path), {"train": "train.conll", "dev": "dev.conll", "test": None}, reader),
        fraction=1.0,
        words=WordVectors(name="random", path=None, dim=3, lowercase=True),
        update_words=False,
        batch_size=8,
        batch_tokens=100,
        seed=1,
    )
    data.read()
    assert data.use_layers(LayerStore(tmp_path / "store", tiny_bilm), ["train", "dev"]) == Filled(5 + 4, 0)
    assert sorted(calls) == [item.tokens for item in ITEMS]
    stored = sum(path.stat().st_size for path in (tmp_path / "store").rglob("*.bin"))
    assert stored == (5 + 4) * tiny_bilm.n_layers * tiny_bilm.dim * 2
    (batch,) = data.batches("dev")
    assert tuple(batch.text.layers.shape) == (3, tiny_bilm.n_layers, 5, tiny_bilm.dim)
    assert int(batch.valid.sum()) == len(batch.predicates) == len(batch.tags) == 5
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("word", "lemma", "name"),
    [
        ("said", "say", "say"),
        ("said", "-", "said"),
        ("said", "say\u00a0so", "said"),
        ("-", "-", "_"),
        ("-", "say\x0bso", "_"),
        ("sa\u2003id", "-", "_"),
    ],
)
def test_a_predicate_is_named_in_the_scorers_files_so_that_it_is_one_there(read, word, lemma, name):
    items, metric = read(conll([SAID]).replace("\tsaid\tX\t*\tsay\t", f"\t{word}\tX\t*\t{lemma}\t")), SrlF1()
    metric.update([item.gold["tags"] for item in items], [item.gold for item in items])
    for content in metric.files().values():
        rows = [re.split(r"\s+", line) for line in content[:-2].split("\n")]
        assert [row[0] for row in rows] == ["-", name, "-", "leave", "-"]
        assert {len(row) for row in rows} == {3}


def find_labels(items):
    return {tag[2:] for item in items for tags in item.gold["tags"] for tag in tags if tag != "O"}


def test_the_bundled_sample_has_its_sizes_and_every_label_in_training():
    reader, items = SrlReader(max_training_tokens=100), {}
    sizes = {"train": (150, 146, 286), "dev": (40, 39, 77), "test": (40, 39, 87)}
    for split, (n_sentences, n_items, n_predicates) in sizes.items():
        path = BUNDLED / f"{split}.conll"
        sentences = [sentence for document in read_documents(path) for sentence in document.sentences]
        assert len(sentences) == n_sentences
        items[split] = reader.read_file(path, split)
        assert len(items[split]) == n_items
        assert sum(len(item.gold["predicates"]) for item in items[split]) == n_predicates
        numbers = [k for k, sentence in enumerate(sentences) if set(sentence.column(FRAMESET)) != {"-"}]
        assert [item.gold["number"] for item in items[split]] == numbers
    reader.fit(items["train"])
    for split in ("dev", "test"):
        reader.check(items[split], split)
    assert reader.left_out == {
        f"{split} sentences without predicates": n for split, n in (("train", 4), ("dev", 1), ("test", 1))
    }
    assert find_labels(items["dev"]) | find_labels(items["test"]) <= find_labels(items["train"]) == reader.labels
    tokens = [tuple(item.tokens) for part in items.values() for item in part]
    assert len(tokens) == len(set(tokens))


@pytest.mark.parametrize(
    ("split", "n_items", "n_predicates", "left_out"),
    [
        pytest.param(
            *("train", 10_549, 40_346, {"sentences without predicates": 1_988, "sentences that are too long": 5}),
            marks=pytest.mark.slow,
        ),
        ("dev", 1_536, 4_977, {"sentences without predicates": 438}),
        ("test", 1_538, 4_799, {"sentences without predicates": 524}),
    ],
)
def test_the_real_set_has_its_sizes_and_gold_against_itself_scores_100(shared, split, n_items, n_predicates, left_out):
    reader, metric = SrlReader(max_training_tokens=100), SrlF1()
    items = reader.read_file(shared / "data" / "srl_ewt" / f"{split}.conll", split)
    assert len(items) == n_items
    assert sum(len(item.gold["predicates"]) for item in items) == n_predicates
    assert reader.left_out == {f"{split} {reason}": n for reason, n in left_out.items()}
    metric.update([item.gold["tags"] for item in items], [item.gold for item in items])
    assert metric.compute() == {"f1": 100, "precision": 100, "recall": 100}


def test_certain_scores_decode_to_gold_and_score_100(read):
    reader, metric = SrlReader(max_training_tokens=100), SrlF1()
    reader.fit(read(conll([SAID, RAINED]), "train", reader))
    model = SrlLstm(
        words=WordEmbedding(torch.randn(9, 6), trainable=True),
        elmo=Elmo(placement="none", n_layers=3, dim=4, dropout=0.5),
        **reader.model_parts(),
        indicator_dim=2,
        hidden=5,
        n_layers=3,
        dropout=0.5,
    )
    batch = reader.collate(ITEMS, [make_text(ITEMS)])
    scores = torch.zeros(*batch.valid.shape, batch.tags.shape[1], len(reader.tags))
    scores[batch.valid] = 50 * torch.nn.functional.one_hot(batch.tags, len(reader.tags)).float()
    decoded = model.decode(SrlOutput(scores), batch)
    assert decoded == [item.gold["tags"] for item in ITEMS]
    assert model.loss(SrlOutput(scores), batch) < 1e-6
    metric.update(decoded, batch.gold)
    assert metric.compute()["f1"] == 100


RAINED_AS_SAID = """
It     -    -  *
rained rain 01 (V*)
as     -    -  *
Said   -    -  (ARG1*)
"""


def test_verbs_are_learned_from_training_whatever_their_case(read):
    reader = SrlReader(max_training_tokens=100)
    reader.fit(read(conll([SAID, RAINED_AS_SAID]), "train", reader))
    assert reader.state()["verbs"] == ["left", "rained"]  # said is a predicate once in two times
