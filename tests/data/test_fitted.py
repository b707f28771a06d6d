import json
from collections import Counter

import pytest
import torch

from elmo_tasks.data.coref import CorefReader
from elmo_tasks.data.fitted import FittedData
from elmo_tasks.data.ner import NerReader
from elmo_tasks.data.nsmc import NsmcReader
from elmo_tasks.data.snli import SnliReader
from elmo_tasks.data.squad import SquadReader
from elmo_tasks.data.srl import SrlReader
from elmo_tasks.data.sst5 import SstReader
from elmo_tasks.errors import UserError
from elmo_tasks.files import MAX_JSON_BYTES
from elmo_tasks.nn.words import UNKNOWN, Vocabulary, WordVectors
from elmo_tasks.runs.saved import read_fitted

STATE = {"reader": {"types": ["LOC", "PER"]}, "words": ["a", "b"], "word_dim": 3, "update_words": True}


def test_a_large_vocabulary_is_read_back(tmp_path):
    path = tmp_path / "fitted.json"
    words = [f"word{number:0100}" for number in range(100_000)]
    path.write_text(json.dumps(STATE | {"words": words}))
    assert path.stat().st_size > MAX_JSON_BYTES
    assert read_fitted(NerReader(), path).to_json()["words"] == words


def test_what_was_fitted_is_restored_from_json():
    reader = NerReader()
    reader.restore(STATE["reader"])
    fitted = FittedData(reader, Vocabulary(["a", "b"]), torch.ones(4, 3), update_words=True)
    assert json.loads(json.dumps(fitted.to_json())) == STATE
    again = FittedData.restore(NerReader(), STATE)
    assert again.to_json() == STATE
    parts = again.model_parts()
    assert parts["tags"] == fitted.model_parts()["tags"] == reader.tags
    assert parts["words"].weight.shape == (4, 3)
    assert parts["words"].weight.requires_grad
    assert again.text([["b", "?"]]).word_ids.tolist() == [[3, 1]]


@pytest.fixture
def late(tmp_path):
    """What was fitted to the training word "known", and vectors with words that come later."""
    path = tmp_path / "vectors.txt"
    path.write_text("known -7 3\nlate 5 6\nlater 8 9\n")
    words = WordVectors(name="glove", path=str(path), dim=2, lowercase=True)
    vocabulary, matrix, _ = words.embed(Counter({"known": 1, "twice": 2}), [])
    reader = NerReader()
    reader.restore(STATE["reader"])
    return FittedData(reader, vocabulary, matrix, update_words=True), words


def test_words_that_come_after_training_have_their_vectors_in_whatever_order_they_come(late):
    fitted, vectors = late
    saved = fitted.to_json()
    model = torch.nn.ModuleDict({"words": fitted.model_parts()["words"], "other": torch.nn.Linear(2, 2)})
    numbers = torch.get_rng_state()
    fitted.add_words(["foreign", "later", "known"], vectors, [model])
    fitted.add_words(["Late", "later", "foreign"], vectors, [model])
    assert torch.equal(torch.get_rng_state(), numbers)
    embedded = model["words"](fitted.text([["known", "twice", "Late", "later", "foreign"]]))[0]
    assert torch.equal(embedded[:2], fitted.matrix[2:4])
    assert embedded[2:4].tolist() == [[5, 6], [8, 9]]
    assert torch.equal(embedded[4], fitted.matrix[UNKNOWN])
    assert fitted.to_json() == saved


def test_a_word_is_looked_for_once(late, monkeypatch):
    fitted, vectors = late
    wanted = []
    real = vectors.stored.find
    monkeypatch.setattr(vectors.stored, "find", lambda words: wanted.append(words) or real(words))
    for _ in range(2):
        fitted.add_words(["foreign", "late"], vectors, [])
    assert fitted.new_words(["foreign", "late", "known", "more"]) == ["more"]
    assert wanted == [{"foreign", "late"}]


@pytest.mark.parametrize(
    "state",
    [
        None,
        [],
        {},
        STATE | {"more": 1},
        {key: value for key, value in STATE.items() if key != "words"},
        STATE | {"words": ["a", "a"]},
        STATE | {"words": ["a", 1]},
        STATE | {"words": "ab"},
        STATE | {"word_dim": -1},
        STATE | {"word_dim": 10**9},
        STATE | {"word_dim": True},
        STATE | {"update_words": 1},
        STATE | {"reader": {}},
        STATE | {"reader": {"types": "LOC"}},
        STATE | {"reader": {"types": [1]}},
        STATE | {"reader": {"types": [], "tags": []}},
    ],
)
def test_a_file_that_is_not_a_state_is_refused_in_a_sentence(state):
    with pytest.raises(UserError) as error:
        FittedData.restore(NerReader(), state)
    assert len(str(error.value)) < 300


WORDS_OF_A_SENTENCE = [(0, "Ann", "- -", "*"), (1, "left", "leave 01", "(V*)")]
READERS = {
    "sst5": SstReader(phrases=False),
    "nsmc": NsmcReader(),
    "ner": NerReader(),
    "snli": SnliReader(),
    "squad": SquadReader(max_tokens=10),
    "srl": SrlReader(max_training_tokens=100),
    "coref": CorefReader(max_training_sentences=3),
}
READERS["srl"].restore({"labels": ["ARG0", "V"], "verbs": ["sat", "saw"]})


@pytest.mark.parametrize(
    ("task", "fields", "texts"),
    [
        ("sst5", {"text": "It's fine."}, [["It", "'s", "fine", "."]]),
        ("sst5", {"text": ["It's", "fine"]}, [["It's", "fine"]]),
        ("nsmc", {"text": "좋다ㅋㅋ!!!!!"}, [["좋다ㅋㅋ", "!!!"]]),
        ("ner", {"tokens": ["Ann", "left"]}, [["Ann", "left"]]),
        ("snli", {"hypothesis": "A man.", "premise": ["Two", "men"]}, [["Two", "men"], ["A", "man", "."]]),
        ("squad", {"question": "Who?", "context": "Ann-Lee did."}, [["Who", "?"], ["Ann", "-", "Lee", "did", "."]]),
        ("srl", {"tokens": "She sat"}, [["She", "sat"]]),
        ("coref", {"sentences": ["Ann left.", ["She", "did"]]}, [["Ann", "left", "."], ["She", "did"]]),
    ],
)
def test_a_users_input_becomes_an_item(task, fields, texts):
    reader = READERS[task]
    assert reader.texts(reader.from_json(fields, "input 1")) == texts


@pytest.mark.parametrize(
    ("task", "fields", "message"),
    [
        ("sst5", {}, r"expected the fields text \(a text\); found nothing"),
        ("sst5", {"text": "a", "label": 1}, r"expected the fields .*; found text, label"),
        ("sst5", {"text": ""}, "an empty sentence"),
        ("sst5", {"text": ["a", ""]}, "an empty token"),
        ("sst5", {"text": 5}, r"text must be a text or a list of tokens, found 5"),
        ("ner", {"tokens": [["a"]]}, "tokens must be a text or a list of tokens"),
        ("snli", {"premise": "a"}, "expected the fields premise .*, hypothesis"),
        ("squad", {"context": "a", "question": ["a"]}, r"question must be a text, found \['a'\]"),
        ("squad", {"context": "a " * 11, "question": "a"}, r"context has 11 tokens; set task\.reader\.too_long"),
        ("srl", {"tokens": "a b", "predicates": [2]}, r"predicates must be a list of whole numbers from 0 to 1"),
        ("srl", {"tokens": "a b", "predicates": [True]}, r"predicates must be"),
        ("srl", {"tokens": "a b", "predicates": None}, r"predicates must be"),
        ("coref", {"sentences": []}, "sentences must be a list of one or more"),
        ("coref", {"sentences": ["a", 1]}, "sentence 1 must be a text or a list of tokens, found 1"),
        ("coref", {"sentences": ["a"], "speakers": ["x", "y"]}, "speakers must be a list of 1 names"),
        ("coref", {"sentences": ["a"], "genre": 1}, "genre must be a text, found 1"),
    ],
)
def test_bad_input_is_refused_by_its_name(task, fields, message):
    with pytest.raises(UserError, match=f"^input 1.*{message}"):
        READERS[task].from_json(fields, "input 1")


def test_a_training_set_with_nothing_to_find_is_refused(tmp_path):
    entities, frames = tmp_path / "ner.txt", tmp_path / "train.conll"
    entities.write_text("Ann x x O\nleft x x O\n")
    with pytest.raises(
        UserError, match=r"/ner\.txt: no entity in the training set, every tag is O; expected at least one such"
    ):
        NerReader().read_file(entities, "train")
    assert len(NerReader().read_file(entities, "dev")) == 1
    rows = [{"tokens": ["Ann"], "ner_tags": ["O"]}]
    with pytest.raises(UserError, match=r"^here: no entity"):
        NerReader().read_rows(rows, "here", "train")
    lines = [f"d 0 {k} {word} X * {lemma} - - * {tag} -" for k, word, lemma, tag in WORDS_OF_A_SENTENCE]
    frames.write_text("\n".join(["#begin document (d); part 000", *lines, "", "#end document", ""]))
    with pytest.raises(UserError, match=r"/train\.conll: no predicate in the training set has an argument; expected"):
        SrlReader(max_training_tokens=100).read_file(frames, "train")
    assert len(SrlReader(max_training_tokens=100).read_file(frames, "dev")) == 1


def test_verbs_are_words_that_are_predicates_more_often_than_not_or_those_that_are_named():
    reader = READERS["srl"]
    assert reader.from_json({"tokens": "She SAT and saw"}, "").gold["predicates"] == [1, 3]
    assert reader.from_json({"tokens": "She sat", "predicates": [0, 0]}, "").gold["predicates"] == [0]


def test_speakers_are_those_of_sentences():
    item = READERS["coref"].from_json({"sentences": ["a b", "c"], "speakers": ["x", "y"], "genre": "nw"}, "")
    assert (item.speakers, item.genre) == (["x", "x", "y"], "nw")


def test_predictions_are_given_in_words():
    assert READERS["sst5"].to_json(READERS["sst5"].from_json({"text": "a"}, ""), 4) == {"label": "very positive"}
    assert READERS["nsmc"].to_json(READERS["nsmc"].from_json({"text": "a"}, ""), 0) == {"label": "negative"}
    pair = READERS["snli"].from_json({"premise": "a", "hypothesis": "b"}, "")
    assert READERS["snli"].to_json(pair, 2) == {"label": "contradiction"}
    item = READERS["ner"].from_json({"tokens": "Ann Lee left"}, "")
    assert READERS["ner"].to_json(item, ["B-PER", "I-PER", "O"])["entities"] == [
        {"text": "Ann Lee", "type": "PER", "start": 0, "stop": 2}
    ]
    item = READERS["srl"].from_json({"tokens": "She sat"}, "")
    (frame,) = READERS["srl"].to_json(item, [["B-ARG0", "B-V"]])["frames"]
    assert (frame["predicate"], frame["place"]) == ("sat", 1)
    assert frame["arguments"][0] == {"label": "ARG0", "text": "She", "start": 0, "stop": 1}
    item = READERS["coref"].from_json({"sentences": ["Ann left.", "She did"]}, "")
    assert READERS["coref"].to_json(item, [[(3, 4), (0, 1)]])["clusters"] == [
        [{"text": "Ann", "start": 0, "stop": 1}, {"text": "She", "start": 3, "stop": 4}]
    ]
