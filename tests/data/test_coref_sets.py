from pathlib import Path

import pytest

from elmo_tasks.data.coref import CorefReader
from elmo_tasks.metrics.coref import CorefF1

BUNDLED = Path(__file__).parents[2] / "elmo_tasks" / "bundled" / "sample" / "coref"


def counts(items):
    clusters = [cluster for item in items for cluster in item.gold["clusters"]]
    return {
        "documents": len(items),
        "sentences": sum(len(item.sentences) for item in items),
        "tokens": sum(len(item.speakers) for item in items),
        "clusters": len(clusters),
        "mentions": sum(map(len, clusters)),
    }


def well_formed(item):
    """Mentions in several places of a document, each within a sentence."""
    ends = [sum(item.gold["sentence_lengths"][: k + 1]) for k in range(len(item.sentences))]
    begins = [0, *ends[:-1]]
    return [len(sentence) for sentence in item.sentences] == item.gold["sentence_lengths"] and all(
        len(cluster) > 1
        and all(
            any(begin <= start < stop <= end for begin, end in zip(begins, ends, strict=True))
            for start, stop in cluster
        )
        for cluster in item.gold["clusters"]
    )


@pytest.mark.parametrize(
    ("split", "sizes"),
    [("train", (24, 203, 2_733, 177, 622)), ("dev", (6, 53, 729, 44, 161)), ("test", (6, 52, 752, 44, 174))],
)
def test_the_bundled_sample_has_its_sizes_and_nothing_is_left_out(split, sizes):
    reader = CorefReader(max_training_sentences=50)
    items = reader.read_file(BUNDLED / f"{split}.conll", split)
    assert tuple(counts(items).values()) == sizes
    assert reader.left_out == {}
    assert all(well_formed(item) for item in items)
    assert {item.genre for item in items} == {"bc", "bn", "mz", "nw", "pt", "wb"}
    assert all((len(set(item.speakers)) > 1) == (item.genre == "bc") for item in items)


@pytest.mark.parametrize(
    ("split", "sizes", "n_across"),
    [
        ("train", (177, 10_224, 177_410, 5_298, 23_301), 6),
        ("dev", (30, 1_575, 28_119, 855, 3_815), 2),
        ("test", (30, 1_464, 28_397, 857, 3_580), 0),
    ],
)
def test_the_real_set_has_its_sizes_and_gold_against_itself_scores_100(shared, split, sizes, n_across):
    folder = shared / "data" / "coref_ontogum"
    if not folder.is_dir():
        pytest.skip("needs ../shared/data/coref_ontogum")
    reader, metric = CorefReader(max_training_sentences=50), CorefF1()
    items = reader.read_file(folder / f"{split}.conll", split)
    assert tuple(counts(items).values()) == sizes
    assert reader.left_out == ({f"{split} mentions that cross another": n_across} if n_across else {})
    assert all(well_formed(item) for item in items)
    if split == "train":
        return
    metric.update([item.gold["clusters"] for item in items], [item.gold for item in items])
    assert set(metric.compute().values()) == {100}
