import random
import re
import statistics
import unicodedata
from itertools import islice
from types import SimpleNamespace

import pytest
import torch

from elmo_tasks.data.batching import make_batches
from elmo_tasks.data.coref import CorefReader
from elmo_tasks.data.module import TaskData
from elmo_tasks.data.source import Files
from elmo_tasks.data.sst5 import SstReader
from elmo_tasks.errors import UserError
from elmo_tasks.nn.characters import PADDING
from elmo_tasks.nn.words import WordVectors
from elmo_tasks.store.layers import LayerStore
from elmo_tasks.store.tokens import TokenStore

FILES = {"train": "train", "dev": "dev", "test": "test"}


@pytest.fixture
def make_data(tmp_path):
    """Data of flat trees, one for each list of words."""

    def make_data(train, dev=(["a"],), **options):
        for split, sentences in (("train", train), ("dev", dev), ("test", [["a"]])):
            lines = ("(2 " + " ".join(f"(2 {word})" for word in words) + ")\n" for words in sentences)
            (tmp_path / split).write_text("".join(lines), "utf-8")
        settings = {"fraction": 1.0, "batch_size": 8, "seed": 1} | options
        words = WordVectors(name="random", path=None, dim=3, lowercase=True)
        reader = SstReader(phrases=False)
        data = TaskData(
            reader=reader,
            source=Files(str(tmp_path), FILES, reader),
            words=words,
            update_words=False,
            **{"batch_tokens": 10_000, **settings},
        )
        data.read()
        return data

    return make_data


def sentences_of_many_lengths(n=203):
    rng = random.Random(0)
    return [[f"item{k}"] * rng.randint(1, 40) for k in range(n)]


def contents(loader):
    """The sentences of each batch of one epoch, in order."""
    return [batch.text.tokens for batch in loader]


def flat(batches):
    return [sentence for batch in batches for sentence in batch]


def test_every_training_item_comes_once_an_epoch_in_batches_of_the_size_asked_for(make_data):
    sentences = sentences_of_many_lengths()
    data = make_data(sentences)
    for epoch in range(2):
        loader = data.epoch(epoch)
        batches = contents(loader)
        assert sorted(flat(batches)) == sorted(sentences)
        assert sorted(map(len, batches)) == [3] + [8] * 25
        assert len(loader) == len(batches)


def test_order_differs_between_epochs_and_seeds_and_is_the_same_for_one_seed(make_data):
    def epochs(seed):
        data = make_data(sentences_of_many_lengths(), seed=seed)
        return contents(data.epoch(0)), contents(data.epoch(1))

    first, second = epochs(seed=1)
    assert first != second
    assert epochs(seed=1) == (first, second)
    assert epochs(seed=2)[0] != first


def test_batches_come_in_random_order_but_hold_similar_lengths(make_data):
    batches = contents(make_data(sentences_of_many_lengths()).train_dataloader())
    shortest, longest = zip(*((min(map(len, b)), max(map(len, b))) for b in batches), strict=True)
    # sorted lengths 1 .. 40 cut into batches: the spreads cannot add up to more than the whole range
    assert sum(longest) - sum(shortest) <= 39
    assert list(longest) != sorted(longest)


def test_batch_mates_change_when_there_are_more_items_than_a_pool_of_batches(make_data):
    data = make_data([[f"item{k}"] for k in range(220)], batch_size=2)
    pairs = [{frozenset(map(tuple, batch)) for batch in contents(data.epoch(k))} for k in range(2)]
    assert len(pairs[0] & pairs[1]) < 20


@pytest.mark.parametrize("split", ["train", "dev"])
def test_scoring_takes_every_item_once_in_order_of_length(make_data, split):
    sentences = sentences_of_many_lengths(30)
    found = flat(contents(make_data(sentences, dev=sentences).batches(split)))
    assert sorted(found) == sorted(sentences)
    assert list(map(len, found)) == sorted(map(len, sentences))


def test_a_fraction_takes_the_same_items_for_a_seed_and_says_so(make_data):
    sentences = sentences_of_many_lengths(40)

    def kept(seed):
        data = make_data(sentences, fraction=0.25, seed=seed)
        assert data.counts()["train"] == {"original": 40, "used": 10}
        assert data.counts()["dev"] == {"original": 1, "used": 1}
        return [item.tokens for item in data.items["train"]]

    assert kept(1) == kept(1) != kept(2)
    assert kept(1) == [s for s in sentences if s in kept(1)], "in the order of the file"


def test_only_the_words_of_a_share_make_the_vocabulary(make_data):
    data = make_data([[f"item{k}"] * 2 for k in range(5)], fraction=0.2)
    (item,) = data.items["train"]
    assert set(data.fitted.vocabulary.ids) == set(item.tokens)


def test_a_share_without_any_item_is_refused_with_the_least_that_has_one(make_data):
    sentences = [[f"item{k}"] for k in range(5)]
    with pytest.raises(UserError, match=r"^data\.fraction=0\.01 leaves none of the 5 .*; set it to 0\.2 or more$"):
        make_data(sentences, fraction=0.01)
    assert len(make_data(sentences, fraction=0.2).items["train"]) == 1


@pytest.mark.parametrize("n_items", [7, 40, 203])
@pytest.mark.parametrize("fraction", [0.15, 0.3, 0.5, 0.9, 1.0])
def test_an_epoch_of_a_share_has_as_many_updates_as_one_of_the_whole_set(make_data, n_items, fraction):
    data = make_data(sentences_of_many_lengths(n_items), fraction=fraction)
    used = sorted(item.tokens for item in data.items["train"])
    batches = contents(data.epoch(0))
    assert len(batches) == -(-n_items // 8)
    n_passes = len(flat(batches)) / len(used)
    times = [flat(batches).count(sentence) for sentence in used]
    assert sum(times) == len(flat(batches)), "no others than those of the share"
    assert max(times) - min(times) <= 1, "each pass has every item once; the last may be cut off"
    assert n_passes <= 1 / fraction + 1
    assert all(len(batch) == len(set(map(tuple, batch))) for batch in batches), "no item twice in a batch"
    first, second = (contents(data.epoch(number)) for number in (0, 1))
    assert first == batches
    assert len(used) <= 8 or second != first


@pytest.mark.parametrize("fraction", [0.1, 0.5])
def test_an_epoch_of_a_share_has_as_many_updates_where_tokens_bound_the_batches(make_data, fraction):
    sentences = sentences_of_many_lengths(800)
    whole, share = (make_data(sentences, fraction=part, batch_tokens=60) for part in (1.0, fraction))
    n_updates = len(contents(whole.epoch(0)))
    assert n_updates > 2 * len(sentences) / 8, "batches of fewer than 8"
    assert len(contents(share.epoch(0))) == pytest.approx(n_updates, rel=0.02)  # pools of another order differ a little


def test_scoring_a_part_of_dev_during_training_takes_items_of_all_lengths(make_data):
    sentences = sentences_of_many_lengths(400)
    data = make_data(sentences[:10], dev=sentences)
    everything = contents(data.val_dataloader())
    data.trainer = SimpleNamespace(limit_val_batches=1.0, world_size=1)
    assert contents(data.val_dataloader()) == everything
    data.trainer.limit_val_batches = 1
    assert contents(data.val_dataloader())[0] != everything[0], "one batch, not the shortest"
    data.trainer.limit_val_batches = 0.3
    part = contents(data.val_dataloader())[: int(0.3 * len(everything))]
    assert contents(data.val_dataloader())[: len(part)] == part, "the same ones each time"
    assert statistics.fmean(map(len, flat(part))) == pytest.approx(statistics.fmean(map(len, sentences)), rel=0.25)


def test_a_word_is_one_however_its_accents_are_encoded(make_data):
    written = [unicodedata.normalize(form, "café") for form in ("NFC", "NFD")]
    data = make_data([[written[0]], [written[1]]])
    assert written[0] != written[1]
    assert list(data.fitted.vocabulary.ids) == [written[0]]  # seen twice
    assert data.fitted.text([written]).word_ids.tolist() == [[2, 2]]
    assert data.fitted.new_words(written) == []


def test_ids_and_mask_of_a_batch_token_by_token(make_data):
    data = make_data([["aa", "b", "é", "aa"], ["b"]])
    text = data.fitted.text([["aa", "b", "é"], ["b"]])
    known = data.fitted.vocabulary.ids
    assert text.mask.tolist() == [[True, True, True], [True, False, False]]
    assert text.lengths.tolist() == [3, 1]
    assert text.word_ids.tolist() == [[known["aa"], known["b"], 1], [known["b"], 0, 0]]
    letters = {"aa": [98, 98], "b": [99], "é": [196, 170]}  # bytes plus one, as 0 is no character
    marked = {word: [259, *ids, 260] + [PADDING] * (2 - len(ids)) for word, ids in letters.items()}
    assert text.char_ids.tolist() == [[marked["aa"], marked["b"], marked["é"]], [marked["b"], [0] * 4, [0] * 4]]
    assert text.layers is None


@pytest.mark.parametrize("store", [LayerStore, TokenStore])
def test_layers_of_a_batch_are_the_bilms_own_and_zero_on_padding(make_data, tiny_bilm, tmp_path, store):
    data = make_data([["a", "long", "one", "."], ["short"]])
    data.use_layers(store(tmp_path / "store", tiny_bilm, dtype="float32"), ["train"])
    (batch,) = data.train_dataloader()
    assert batch.text.layers.shape == (2, tiny_bilm.n_layers, 4, tiny_bilm.dim)
    for row, sentence in zip(batch.text.layers, batch.text.tokens, strict=True):
        (own,) = tiny_bilm.layers([sentence])
        torch.testing.assert_close(row[:, : len(sentence)], own)
        assert not row[:, len(sentence) :].any()


def test_a_batch_moves_with_all_its_tensors(make_data):
    (batch,) = islice(make_data([["a", "b"]]).train_dataloader(), 1)
    moved = batch.to("meta")
    text = moved.text
    assert {x.device.type for x in (moved.labels, text.mask, text.word_ids, text.char_ids)} == {"meta"}
    assert moved.gold == [2]


@pytest.fixture
def documents(tmp_path):
    """Data of coreference documents of some numbers of sentences, cut to three in training."""

    def documents(*n_sentences, last=1, batch_tokens=1000, fraction=1.0):
        lines = []
        for k, n in enumerate(n_sentences):
            rows = [f"d{k}\t0\t0\td{k}s{s}\tX\t*\t-\t-\t-\t-\t*\t({s % 2})\n" for s in range(n)]
            rows[-1] = rows[-1] * last
            lines.append(f"#begin document (d{k}); part 000\n" + "\n".join(rows) + "\n#end document\n")
        for split in FILES:
            (tmp_path / split).write_text("".join(lines), "utf-8")
        reader = CorefReader(max_training_sentences=3)
        data = TaskData(
            reader=reader,
            source=Files(str(tmp_path), FILES, reader),
            fraction=fraction,
            words=WordVectors(name="random", path=None, dim=3, lowercase=True),
            update_words=False,
            batch_size=1,
            batch_tokens=batch_tokens,
            seed=1,
        )
        data.read()
        return data

    return documents


def test_a_batch_is_a_document_whose_rows_are_sentences_and_each_epoch_sees_another_stretch_of_a_long_one(documents):
    data = documents(2, 30, 3, 20)
    seen = set()
    for epoch in range(8):
        batches = contents(data.epoch(epoch))
        assert batches == contents(data.epoch(epoch))
        assert sorted(len(document) for document in batches) == [2, 3, 3, 3]
        for document in batches:
            name, first = re.fullmatch(r"(d\d)s(\d+)", document[0][0]).groups()
            assert document == [[f"{name}s{int(first) + k}"] for k in range(len(document))]
            seen.add((name, first))
    assert {name for name, first in seen if first != "0"} == {"d1", "d3"}
    assert len({first for name, first in seen if name == "d1"}) > 4
    assert sorted(len(document) for document in contents(data.batches("dev"))) == [2, 3, 20, 30]


def test_each_pass_over_a_share_of_the_documents_sees_another_stretch_of_a_long_one(documents):
    data = documents(*[30] * 20, fraction=0.1)
    batches = contents(data.epoch(0))
    assert len(batches) == 20
    assert len({document[0][0].partition("s")[0] for document in batches}) == 2
    assert len({document[0][0] for document in batches}) > 10


def test_the_padding_of_a_document_s_sentences_counts_as_tokens(documents):
    documents(10, 4, last=5, batch_tokens=10 * 5)
    with pytest.raises(UserError, match=r"/train:1: 50 tokens, more than a batch may have"):
        documents(10, 4, last=5, batch_tokens=10 * 5 - 1)


def test_random_word_vectors_are_trained_even_where_a_task_keeps_its_vectors(make_data):
    assert make_data([["a", "a"]]).model_parts()["words"].weight.requires_grad  # update_words=False


def test_the_padding_of_both_texts_of_a_pair_counts_as_tokens():
    lengths = [(9, 1), (1, 10)]  # padded to 9 and 10: 38 tokens together
    assert make_batches([0, 1], lengths, batch_size=8, batch_tokens=38) == [[0, 1]]
    assert make_batches([0, 1], lengths, batch_size=8, batch_tokens=37) == [[0], [1]]
