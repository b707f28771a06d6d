"""Every kind of input: how a whole one is made, which of its files are damaged, and how it is read.

Kinds of one file or two are here, whole folders in :mod:`folders`.
"""

import bz2
import gzip
import json
import lzma
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from elmo_tasks.bilm import BiLM
from elmo_tasks.data.coref import CorefReader
from elmo_tasks.data.corpus import LmVocabulary, read_lists
from elmo_tasks.data.fitted import FittedData
from elmo_tasks.data.ner import NerReader
from elmo_tasks.data.nsmc import NsmcReader
from elmo_tasks.data.pos import PosReader
from elmo_tasks.data.reader import Reader
from elmo_tasks.data.senses import read_inventory, read_sense_corpus
from elmo_tasks.data.snli import SnliReader
from elmo_tasks.data.squad import SquadReader
from elmo_tasks.data.srl import SrlReader
from elmo_tasks.data.sst5 import SstReader
from elmo_tasks.encoders.parameters import read_parameters
from elmo_tasks.nn.words import Vocabulary, WordVectors
from elmo_tasks.rows.io import read_row
from elmo_tasks.runs.saved import read_fitted
from elmo_tasks.store.layers import LayerStore
from elmo_tasks.tensors import check_weights, read_tensors
from elmo_tasks.training.state_file import TensorsAndJson

from .folders import FOLDERS
from .kind import SAMPLE, SENTENCES, Input, some, tiny_bilm


def file_of(name: str, content: Callable[[], bytes]) -> Callable[[Path], list[Path]]:
    def make(folder: Path) -> list[Path]:
        (folder / name).write_bytes(content())
        return [folder / name]

    return make


def whole(reader: Callable[[], Reader[Any]], name: str, split: str = "train") -> Callable[[Path], Any]:
    """Read, fit, check: all that happens to a file before training."""

    def read(folder: Path) -> Any:
        fresh = reader()
        items = fresh.read_file(folder / name, split)
        fresh.fit(items)
        fresh.check(items, split)
        return [fresh.texts(item) for item in items]

    return read


def reader_input(reader: Callable[[], Reader[Any]], content: Callable[[], bytes], name: str = "data") -> Input:
    return Input(file_of(name, content), whole(reader, name))


def documents(source: Path, n: int = 2) -> bytes:
    """The first documents of a CoNLL-2012 file."""
    return b"#end document\n".join([*source.read_bytes().split(b"#end document\n")[:n], b""])


def squad() -> bytes:
    """Two articles of the sample's questions."""
    content = json.loads((SAMPLE / "squad" / "dev-v1.1.json").read_bytes())
    return json.dumps({**content, "data": content["data"][:2]}).encode()


def make_trees(folder: Path) -> list[Path]:
    (folder / "data").mkdir()
    source = next(SAMPLE.glob("ptb/00/*.mrg"))
    (folder / "data" / "wsj_0001.mrg").write_bytes(some(source))
    return [folder / "data" / "wsj_0001.mrg"]


def make_senses(folder: Path) -> list[Path]:
    text = sorted(SAMPLE.glob("wsd/**/*.data.xml*"))[0]
    opener = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}.get(text.suffix, open)
    with opener(text, "rb") as file:
        xml = file.read()
    end = xml.find(b"</text>")
    xml = xml[: end + len(b"</text>")] + b"\n</corpus>\n" if end > 0 else xml
    (folder / "a.data.xml").write_bytes(xml)
    keys = (text.parent / f"{text.name.partition('.data.xml')[0]}.gold.key.txt").read_bytes().splitlines(keepends=True)
    (folder / "a.gold.key.txt").write_bytes(b"".join(k for k in keys if b'id="' + k.split()[0] + b'"' in xml))
    (folder / "index.sense").write_bytes(some(next(SAMPLE.glob("wsd/**/index.sense*"))))
    return [folder / "a.data.xml", folder / "a.gold.key.txt", folder / "index.sense"]


def read_senses(folder: Path) -> Any:
    sentences = list(read_sense_corpus(folder / "a.data.xml", folder / "a.gold.key.txt"))
    lemmas = {instance.lemma for sentence in sentences for instance in sentence.instances}
    return sentences, read_inventory(folder / "index.sense", lemmas)


def make_vectors(folder: Path) -> list[Path]:
    torch.manual_seed(0)
    lines = [f"{word} {' '.join(f'{x:.3f}' for x in torch.randn(5).tolist())}\n" for word in ("the", "a", ". .", "of")]
    (folder / "vectors.txt").write_text("".join(lines), "utf-8")
    return [folder / "vectors.txt"]


def read_vectors(folder: Path) -> Any:
    words = WordVectors(name="glove", path=str(folder / "vectors.txt"), dim=5, lowercase=True)
    found = words.lookup(["the", "of", "nothing"])
    words.expect_any_found(bool(found))
    return found, words.nearest("the", 2)


def make_bilm(folder: Path) -> list[Path]:
    tiny_bilm().save(folder)
    return [folder / "options.json"]


def make_weights(folder: Path) -> list[Path]:
    tiny_bilm().save(folder)
    return [folder / "weights.hdf5"]


def make_store(folder: Path) -> list[Path]:
    LayerStore(folder, tiny_bilm(), dtype="float32").fill(SENTENCES)
    return [*folder.rglob("*.bin"), *folder.rglob("*.idx")]


def read_store(folder: Path) -> Any:
    """Whatever is damaged, the numbers are right: read as they are or computed again."""
    bilm = tiny_bilm()
    store = LayerStore(folder, bilm, dtype="float32")
    store.fill(SENTENCES)
    for sentence in SENTENCES:
        torch.testing.assert_close(store.padded([sentence])[0], bilm.layers([sentence])[0])


def model() -> torch.nn.Module:
    torch.manual_seed(2)
    return torch.nn.LSTM(4, 3, bidirectional=True)


def make_model(folder: Path) -> list[Path]:
    save_file(model().state_dict(), folder / "model.safetensors")
    return [folder / "model.safetensors"]


def read_model(folder: Path) -> Any:
    weights = read_tensors(folder / "model.safetensors")
    check_weights(model(), weights, folder / "model.safetensors")
    model().load_state_dict(weights)


def read_cove(folder: Path) -> Any:
    shapes = {name: value.shape for name, value in model().state_dict().items()}
    return read_parameters(folder / "model.safetensors", shapes, "the options")


def make_state(folder: Path) -> list[Path]:
    state = {"epoch": 3, "state_dict": model().state_dict(), "optimizer": [{0: (1.5, None)}]}
    TensorsAndJson().save_checkpoint(state, folder / "state.safetensors")
    return [folder / "state.safetensors"]


def make_fitted(folder: Path) -> list[Path]:
    reader = NerReader()
    reader.fit(reader.read_file(SAMPLE / "conll2003" / "eng.testa", "train"))
    fitted = FittedData(reader, Vocabulary(["a", "b"]), torch.zeros(4, 3), update_words=True)
    (folder / "fitted.json").write_text(json.dumps(fitted.to_json()))
    return [folder / "fitted.json"]


def compressed(suffix: str) -> Callable[[Path], list[Path]]:
    compress = {".xz": lzma.compress, ".gz": gzip.compress, ".bz2": bz2.compress}[suffix]
    return file_of(f"text{suffix}", lambda: compress(b"a few words in a line .\n" * 200))


def row() -> dict[str, Any]:
    """A row with every field, which the tests of rows have."""
    names = runpy.run_path(str(Path(__file__).parents[1] / "rows" / "conftest.py"))
    return {**names["HEADER"], **names["MEASURED"]}


def make_row(folder: Path) -> list[Path]:
    path = folder / f"{row()['run_id']}.json"
    path.write_text(json.dumps(row()))
    return [path]


def read_the_row(folder: Path) -> Any:
    return read_row(folder / f"{row()['run_id']}.json")


INPUTS: dict[str, Input] = {
    "sst": reader_input(lambda: SstReader(phrases=True), lambda: some(SAMPLE / "sst" / "dev.txt")),
    "nsmc": reader_input(NsmcReader, lambda: some(SAMPLE / "nsmc" / "ratings_dev.txt")),
    "ner": reader_input(NerReader, lambda: some(SAMPLE / "conll2003" / "eng.testa")),
    "snli": reader_input(SnliReader, lambda: some(SAMPLE / "snli" / "snli_1.0_dev.jsonl")),
    "squad": reader_input(lambda: SquadReader(max_tokens=1000), squad, "data.json"),
    "srl": reader_input(lambda: SrlReader(max_training_tokens=100), lambda: documents(SAMPLE / "srl" / "dev.conll")),
    "coref": reader_input(
        lambda: CorefReader(max_training_sentences=50), lambda: documents(SAMPLE / "coref" / "dev.conll")
    ),
    "trees": Input(make_trees, whole(PosReader, "data")),
    "columns": reader_input(PosReader, lambda: some(SAMPLE / "conll2003" / "eng.testa")),
    "senses": Input(make_senses, read_senses),
    "text": Input(file_of("text", lambda: b"a few words in a line .\n" * 200), lambda f: list(read_lists(f / "text"))),
    "text.xz": Input(compressed(".xz"), lambda folder: list(read_lists(folder / "text.xz"))),
    "text.gz": Input(compressed(".gz"), lambda folder: list(read_lists(folder / "text.gz"))),
    "text.bz2": Input(compressed(".bz2"), lambda folder: list(read_lists(folder / "text.bz2"))),
    "vocabulary": Input(
        file_of("vocabulary.txt", lambda: b"<S>\n</S>\n<UNK>\nthe\nof\n"),
        lambda folder: LmVocabulary.read(folder / "vocabulary.txt"),
    ),
    "vectors": Input(make_vectors, read_vectors),
    "options": Input(make_bilm, BiLM.load),
    "weights": Input(make_weights, BiLM.load),
    "store": Input(make_store, read_store),
    "model": Input(make_model, read_model),
    "parameters": Input(make_model, read_cove),
    "state": Input(make_state, lambda folder: TensorsAndJson().load_checkpoint(folder / "state.safetensors")),
    "fitted": Input(make_fitted, lambda folder: read_fitted(NerReader(), folder / "fitted.json")),
    "row": Input(make_row, read_the_row),
    **FOLDERS,
}
