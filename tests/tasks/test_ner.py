import re
from collections import Counter

import pytest
import torch

from elmo_tasks.batch import Text
from elmo_tasks.config.components import check_values
from elmo_tasks.data.ner import NerBatch, NerItem, NerReader
from elmo_tasks.data.tags import bioes_tags
from elmo_tasks.elmo import Elmo
from elmo_tasks.errors import UserError
from elmo_tasks.metrics.span_f1 import SpanF1
from elmo_tasks.models.crf_tagger import CrfTagger, CrfTaggerOutput
from elmo_tasks.nn.characters import character_id_table
from elmo_tasks.nn.embedding import WordEmbedding

READER = "elmo_tasks.data.ner.NerReader"

IOB1 = """-DOCSTART- -X- -X- O

Ann NNP I-NP I-PER
Lee NNP I-NP I-PER
Bo NNP I-NP B-PER
met VBD I-VP O
Oslo NNP I-NP I-LOC
Reuters NNP I-NP I-ORG

Lund NNP I-NP I-LOC
Oslo NNP I-NP B-LOC
Oslo NNP I-NP B-LOC
"""
ITEMS = [
    NerItem(
        ["Ann", "Lee", "Bo", "met", "Oslo", "Reuters"],
        [(0, 2, "PER"), (2, 3, "PER"), (4, 5, "LOC"), (5, 6, "ORG")],
    ),
    NerItem(["Lund", "Oslo", "Oslo"], [(0, 1, "LOC"), (1, 2, "LOC"), (2, 3, "LOC")]),
]


@pytest.fixture
def read(tmp_path):
    def read(text, split="train", reader=None):
        path = tmp_path / f"{split}.conll"
        path.write_text(text, "utf-8")
        return (reader or NerReader()).read_file(path, split)

    return read


def test_adjacent_entities_are_distinguished_in_iob1(read):
    assert read(IOB1) == ITEMS


def test_the_same_items_come_from_two_columns_in_other_schemes(read):
    iob2 = ["B-PER I-PER B-PER O B-LOC B-ORG", "B-LOC B-LOC B-LOC"]
    bioul = ["B-PER L-PER U-PER O U-LOC U-ORG", "U-LOC U-LOC U-LOC"]
    for scheme in (iob2, bioul):
        lines = [
            "\n".join(f"{word}\t{tag}" for word, tag in zip(item.tokens, tags.split(), strict=True))
            for item, tags in zip(ITEMS, scheme, strict=True)
        ]
        assert read("\n\t\n".join(lines)) == ITEMS


@pytest.mark.parametrize("tag", ["PER", "X-PER", "I-", "0", "B-PER|B-LOC", "B-PER|O", "I-PER|X|I-LOC"])
def test_an_unknown_tag_is_refused_with_its_line(read, tag):
    with pytest.raises(UserError, match=rf"train\.conll:4: unknown tag '{re.escape(tag)}'; expected O, or B-"):
        read(f"Ann I-PER\n\nthe O\ncat {tag}\n")


def test_a_type_may_have_a_bar(read):
    assert read("Ann B-PER|LOC\n")[0].spans == [(0, 1, "PER|LOC")]


def test_tags_without_a_type_are_of_one_type(read):
    assert read("BRCA1 B\ngene I\nis O\nP53 B\n") == [
        NerItem(["BRCA1", "gene", "is", "P53"], [(0, 2, "ENTITY"), (3, 4, "ENTITY")])
    ]
    for text, line, other in (("a B\n\nb B-X\n", 3, "without"), ("a B-X\nb I\n", 2, "with")):
        with pytest.raises(
            UserError, match=rf"train\.conll:{line}: tag '.*', but one {other} a type at .*:1; expected"
        ):
            read(text)


def test_the_letters_of_bmes_and_bmewo_are_those_of_bioes(read):
    for tags in ("B-X M-X M-X E-X S-Y", "B-X M-X M-X E-X W-Y"):
        lines = "\n".join(f"w {tag}" for tag in tags.split())
        assert read(lines)[0].spans == [(0, 4, "X"), (4, 5, "Y")]


NUMBERED = (
    "1 Harbour NNP I-NP O\n2 in IN I-PP O\n3 Oslo NNP I-NP I-LOC\n\n1 Anna NNP I-NP I-PER\n2 Berg NNP I-NP I-PER\n"
)


@pytest.mark.parametrize("text", [NUMBERED, NUMBERED.replace(" ", "\t"), NUMBERED.partition("\n\n")[0]])
def test_a_first_column_that_counts_is_refused_or_read_with_the_key_that_is_named(read, text):
    with pytest.raises(
        UserError, match=r"train\.conll:1: CoNLL-U or CoNLL-X, whose .*; add task\.reader\.token_column=2"
    ):
        read(text)
    items = read(text, reader=NerReader(token_column=2))
    assert items[0] == NerItem(["Harbour", "in", "Oslo"], [(2, 3, "LOC")])
    assert items[1:] in ([], [NerItem(["Anna", "Berg"], [(0, 2, "PER")])])


GERMEVAL = "#\thttp://x.org/ [2009-10-17]\n1\tAufgrund\tO\tO\n2\tStuttgart\tB-LOC\tO\n"
KLUE = "## n-1\t특히 <영동:LC> 에서\n특\tO\n \tO\n영\tB-LC\n동\tI-LC\n\n## n-2\t좋다\n좋\tO\n다\tO\n"
HIPE = "TOKEN\tLIT\tMETO\n# language = fr\n# date = 1898\nParis\tB-loc\tO\n#\tO\tO\n"


@pytest.mark.parametrize(
    ("text", "keys", "items"),
    [
        (
            GERMEVAL,
            {"comment": "#", "token_column": 2, "tag_column": 3},
            [(["Aufgrund", "Stuttgart"], [(1, 2, "LOC")])],
        ),
        (
            GERMEVAL,
            {"comment": "#", "token_column": -3, "tag_column": -2},
            [(["Aufgrund", "Stuttgart"], [(1, 2, "LOC")])],
        ),
        (KLUE, {"comment": "##", "separator": "tab"}, [(["특", " ", "영", "동"], [(2, 4, "LC")]), (["좋", "다"], [])]),
        (HIPE, {"comment": ["#", "TOKEN"], "tag_column": 2}, [(["Paris", "#"], [(0, 1, "loc")])]),
        ("New York\tB-LOC\n", {"separator": "tab"}, [(["New York"], [(0, 1, "LOC")])]),
    ],
    ids=["germeval", "germeval-from-the-end", "klue", "hipe", "space-in-a-token"],
)
def test_other_layouts_are_read_with_keys(read, text, keys, items):
    check_values("task.reader", {"_target_": READER, **keys}, ())
    assert read(text, reader=NerReader(**keys)) == [NerItem(*item) for item in items]


@pytest.mark.parametrize(
    ("text", "keys", "message"),
    [
        (GERMEVAL, {}, r":2: expected 3 columns, as in line 1, found 4: .*; \"task\.reader\.comment='#'\" leaves out"),
        (
            GERMEVAL,
            {"comment": "#"},
            r":2: CoNLL-U or .* add task\.reader\.token_column=2, and task\.reader\.tag_column=N",
        ),
        (KLUE, {}, r":2: expected 5 columns, as in line 1, found 2: .*; \"task\.reader\.comment='##'\" leaves out"),
        (KLUE, {"comment": "##"}, r":3: expected at least 2 columns, found 1: .*; task\.reader\.separator=tab if"),
        (HIPE, {"comment": "#"}, r":1: unknown tag 'METO'; .*; \"task\.reader\.comment=\['#', 'TOKEN'\]\" leaves out"),
        (
            "a B-X 1\nb O 2\n",
            {},
            r":1: unknown tag '1'; .*; task\.reader\.tag_column=N takes the tag from another column",
        ),
    ],
    ids=["comment", "number", "long-mark", "space", "header", "other-column"],
)
def test_a_refusal_names_the_key_that_helps(read, text, keys, message):
    with pytest.raises(UserError, match=r"train\.conll" + message):
        read(text, reader=NerReader(**keys))


@pytest.mark.parametrize("value", [0, 1001, "2", True])
def test_a_column_is_counted_from_1_or_from_the_last(value):
    with pytest.raises(UserError, match=r"task\.reader\.token_column must be a whole number from 1 .*, or null, found"):
        check_values("task.reader", {"_target_": READER, "token_column": value}, ())


def test_entities_of_a_type_that_training_lacks_are_counted_and_missed(read):
    reader = NerReader()
    reader.fit(read(IOB1, "train", reader))
    dev = read("Bo B-PER\nFinnish I-MISC\nsauna I-MISC\n", "dev", reader)
    reader.check(dev, "dev")
    assert reader.left_out == {"dev entities of a type that training lacks": 1}
    batch = reader.collate(dev, [make_text(dev)])
    assert batch.tags.tolist() == [[reader.tags.index("S-PER"), 0, 0]]
    metric = SpanF1()
    metric.update([["B-PER", "O", "O"]], batch.gold)
    assert (metric.compute()["precision"], metric.compute()["recall"]) == (100, 50)


def test_a_split_without_any_type_of_the_training_set_is_refused(read):
    reader = NerReader()
    reader.fit(read(IOB1, "train", reader))
    reader.check(read("the O\n", "test", reader), "test")
    dev = read("Bo B-per\nOslo B-loc\n", "dev", reader)
    with pytest.raises(UserError, match=r"the dev data has no .* training set, LOC, ORG, PER; it has loc, per"):
        reader.check(dev, "dev")


NUMBERS = {"O": 0, "B-PER": 1, "I-PER": 2, "B-ORG": 3, "I-ORG": 4, "B-LOC": 5, "I-LOC": 6, "B-MISC": 7, "I-MISC": 8}


def test_hub_rows_may_name_or_number_their_tags():
    tags = [["B-PER", "I-PER", "B-PER", "O", "B-LOC", "B-ORG"], ["B-LOC"] * 3]
    for as_tag in (str, NUMBERS.__getitem__):
        rows = [
            {"tokens": item.tokens, "ner_tags": [as_tag(tag) for tag in row]}
            for item, row in zip(ITEMS, tags, strict=True)
        ]
        assert NerReader().read_rows(rows, "hub", "train") == ITEMS


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"tokens": ["a"]}, "expected the columns tokens and ner_tags"),
        ({"tokens": ["a"], "ner_tags": None}, "expected the columns tokens and ner_tags"),
        ({"tokens": ["a"], "ner_tags": [9]}, "ner_tags"),
        ({"tokens": ["a"], "ner_tags": [-1]}, "ner_tags"),
        ({"tokens": ["a"], "ner_tags": [11]}, "ner_tags: 11 has no name; expected names .*numbers, 0 to 8"),
        ({"tokens": ["a"], "ner_tags": [True]}, "ner_tags: True has no name"),
        ({"tokens": ["a"], "ner_tags": [[1]]}, r"ner_tags: \[1\] has no name"),
        ({"tokens": ["a", "b"], "ner_tags": [0]}, "2 tokens but 1 tags"),
        ({"tokens": [], "ner_tags": []}, "an empty sentence"),
        ({"tokens": ["a", ""], "ner_tags": [0, 0]}, "an empty token"),
        ({"tokens": ["a", None], "ner_tags": [0, 0]}, r"tokens must be a list of texts, found \['a', None\]"),
        ({"tokens": [1], "ner_tags": [0]}, r"tokens must be a list of texts, found \[1\]"),
        ({"tokens": "EU", "ner_tags": [3, 0]}, "tokens must be a list of texts, found 'EU'"),
        ({"tokens": ["a", "b"], "ner_tags": ["O", "Q"]}, "token 1: unknown tag 'Q'"),
    ],
)
def test_malformed_hub_rows_are_refused_by_number(row, message):
    with pytest.raises(UserError, match=f"hub row 1.*{message}"):
        NerReader().read_rows([{"tokens": ["a"], "ner_tags": [0]}, row], "hub", "train")


def make_text(items):
    lengths = torch.tensor([len(item.tokens) for item in items])
    mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
    table = character_id_table([token for item in items for token in item.tokens])
    char_ids = torch.zeros(*mask.shape, table.shape[1], dtype=torch.long)
    char_ids[mask] = table
    return Text([item.tokens for item in items], torch.randint(2, 9, mask.shape), char_ids, mask, None)


@pytest.fixture
def reader():
    reader = NerReader()
    reader.fit(ITEMS)
    return reader


def test_a_batch_holds_bioes_numbers_for_the_crf_and_iob2_for_the_metric(reader):
    batch = reader.collate(ITEMS, [make_text(ITEMS)])
    names = [[reader.tags[k] for k in row] for row in batch.tags.tolist()]
    assert names == [
        ["B-PER", "E-PER", "S-PER", "O", "S-LOC", "S-ORG"],
        ["S-LOC", "S-LOC", "S-LOC", "O", "O", "O"],
    ]
    assert batch.gold == [["B-PER", "I-PER", "B-PER", "O", "B-LOC", "B-ORG"], ["B-LOC"] * 3]


def tagger(tags):
    return CrfTagger(
        words=WordEmbedding(torch.randn(9, 4), trainable=True),
        elmo=Elmo(placement="none", n_layers=0, dim=0),
        tags=tags,
        char_dim=3,
        char_filters=5,
        char_width=3,
        hidden=[6, 7],
        dropout=0.5,
    )


def test_tags_are_numbered_alike_by_reader_and_model_whatever_the_order_of_types(reader):
    assert tagger(reader.tags).tags == bioes_tags(["ORG", "PER", "LOC"])


def test_emissions_are_those_of_the_layers_run_one_after_the_other_on_each_sentence_alone(reader):
    text = make_text(ITEMS)
    model = tagger(reader.tags).eval()
    emissions = model(NerBatch(text, torch.zeros(1), [])).emissions
    characters = model.characters(text)
    for row, ids, chars, item in zip(emissions, text.word_ids, characters, ITEMS, strict=True):
        n = len(item.tokens)
        x = torch.cat([model.words.weight[ids[:n]], chars[:n]], dim=1)[None]
        for layer in model.layers:
            x = torch.cat([layer.left_to_right(x)[0], layer.right_to_left(x.flip(1))[0].flip(1)], dim=2)
        torch.testing.assert_close(row[:n], x[0] @ model.to_tags.weight.T + model.to_tags.bias)


def test_certain_emissions_decode_to_gold_and_the_loss_is_a_mean_over_sentences(reader):
    batch = reader.collate(ITEMS, [make_text(ITEMS)])
    model = tagger(reader.tags).eval()
    certain = CrfTaggerOutput(50 * torch.nn.functional.one_hot(batch.tags, len(reader.tags)).float())
    assert model.decode(certain, batch) == batch.gold
    out = model(batch)
    apart = [
        model.crf.loss(row[None, :n], tags[None, :n], torch.ones(1, n, dtype=torch.bool))
        for row, tags, n in zip(out.emissions, batch.tags, batch.text.lengths.tolist(), strict=True)
    ]
    torch.testing.assert_close(model.loss(out, batch), sum(apart)[0] / 2)


@pytest.mark.parametrize(
    ("file", "sentences", "tokens", "entities"),
    [
        ("conll2003/eng.train", 14041, 203621, {"LOC": 7140, "MISC": 3438, "ORG": 6321, "PER": 6600}),
        ("conll2003/eng.testa", 3250, 51362, {"LOC": 1837, "MISC": 922, "ORG": 1341, "PER": 1842}),
        ("conll2003/eng.testb", 3453, 46435, {"LOC": 1668, "MISC": 702, "ORG": 1661, "PER": 1617}),
        (
            "wnut17/wnut17train.conll",
            *(3394, 62730),
            {"person": 660, "location": 548, "group": 264, "corporation": 221, "product": 142, "creative-work": 140},
        ),
        (
            "wnut17/emerging.dev.conll",
            *(1009, 15733),
            {"person": 470, "location": 74, "group": 39, "corporation": 34, "product": 114, "creative-work": 105},
        ),
        (
            "wnut17/emerging.test.annotated",
            *(1287, 23394),
            {"person": 429, "location": 150, "group": 165, "corporation": 66, "product": 127, "creative-work": 142},
        ),
    ],
)
def test_the_real_sets_have_their_published_sizes(shared, file, sentences, tokens, entities):
    items = NerReader().read_file(shared / "data" / file, "train")
    assert (len(items), sum(len(item.tokens) for item in items)) == (sentences, tokens)
    assert Counter(kind for item in items for _, _, kind in item.spans) == entities
