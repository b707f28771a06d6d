"""``task=lm task.lm.init=... task.lm.text=...``: a biLM is fine-tuned on a task's text."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from rows_as_json import load

from elmo_tasks.assembly import build_data, build_lm_data
from elmo_tasks.bilm import BiLM
from elmo_tasks.config.compose import TASKS, validate
from elmo_tasks.data.module import TaskData
from elmo_tasks.data.sst5 import SstReader
from elmo_tasks.data.task_text import TaskText
from elmo_tasks.errors import UserError
from elmo_tasks.places import BUNDLED
from elmo_tasks.runs import run as train
from elmo_tasks.runs.language_model import LanguageModelRun

NAMES = [path.stem for path in sorted(TASKS.glob("*.yaml")) if "reader" in OmegaConf.load(path)]
SIZES = [
    "task=lm",
    "data.fraction=1.0",
    "task.data.batch_size=64",
    "task.data.window=10",
    "task.data.min_count=1",
    "task.model.n_samples=50",
    "bilm.options.lstm.dim=12",
    "bilm.options.lstm.projection_dim=6",
    "bilm.options.char_cnn.filters=[[1,4],[2,8],[3,8]]",
    "bilm.options.char_cnn.embedding.dim=4",
]


@pytest.fixture
def small(composed: Any, tmp_path: Path) -> Any:
    """Composed for the tiny biLM of the tests, which has no softmax."""
    return lambda *overrides: composed(*SIZES, "trainer.max_epochs=1", f"task.lm.init={tmp_path / 'bilm'}", *overrides)


@pytest.mark.parametrize("task", NAMES)
@pytest.mark.parametrize("fraction", [1.0, 0.3])
def test_the_text_is_every_token_list_of_the_items_of_the_task(composed: Any, task: str, fraction: float) -> None:
    lm = build_lm_data(validate(composed(*SIZES, f"task.lm.text={task}", f"data.fraction={fraction}")).to_json(), None)
    own = build_data(validate(composed(f"task={task}", f"data.fraction={fraction}")).to_json())
    assert isinstance(own, TaskData)
    assert isinstance(lm.text, TaskText)
    own.read()
    assert lm.digest == own.digest
    for split in ("train", "dev"):
        items = own.items[split]
        expected = [text for item in items for text in own.reader.texts(item)]
        if task == "squad":  # a paragraph is of several questions
            contexts = dict.fromkeys(item.paragraph.context for item in items)
            first = {item.paragraph.context: item.paragraph.words for item in reversed(items)}
            expected = [item.question for item in items] + [first[context] for context in contexts]
            assert len(contexts) < len(items)
        assert sorted(shard for [shard] in lm.text.shards(split)) == sorted(expected)


def test_the_text_of_sst5_is_whole_sentences_at_the_scale_of_the_paper_too(composed: Any) -> None:
    lm = build_lm_data(validate(composed(*SIZES, "task.lm.text=sst5", "scale=paper")).to_json(), None)
    assert isinstance(lm.text, TaskText)
    assert len(list(lm.text.shards("train"))) == 425


def test_a_task_s_files_and_reader_can_be_changed(composed: Any, tmp_path: Path) -> None:
    changes = "+task.lm.changes.ner={files: {dev: conll2003/eng.testb}}"
    lm, other = (
        build_lm_data(validate(composed(*SIZES, "task.lm.text=ner", *more)).to_json(), None) for more in ([], [changes])
    )
    assert isinstance(lm.text, TaskText)
    assert isinstance(other.text, TaskText)
    assert list(lm.text.shards("train")) == list(other.text.shards("train"))
    assert list(lm.text.shards("dev")) != list(other.text.shards("dev"))


@pytest.mark.parametrize("task", ["sst5", *(pytest.param(n, marks=pytest.mark.slow) for n in NAMES if n != "sst5")])
def test_a_new_softmax_is_trained_alone_and_then_both(small: Any, tmp_path: Path, task: str) -> None:
    train.run(small(f"task.lm.text={task}"))
    (row,) = load(tmp_path / "outputs" / "rows")
    assert f"-{task}-" in row["run_id"]
    assert [point["epoch"] for point in row["training"]["curve"]] == [0, 1, 2]
    untrained, alone, both = (point["dev"] for point in row["training"]["curve"])
    assert row["language_model"]["before"] == alone
    assert alone["perplexity"] < untrained["perplexity"]
    assert row["scores"]["dev"]["perplexity"] == pytest.approx(min(alone["perplexity"], both["perplexity"]), rel=1e-6)
    assert row["language_model"]["initial"]["softmax"] == "new"
    tuned = BiLM.load(row["language_model"]["exported"]["folder"])
    assert row["language_model"]["exported"]["digest"] == tuned.digest != BiLM.load(tmp_path / "bilm").digest


def test_a_score_on_a_part_of_the_text_is_not_called_the_one_before(small: Any, tmp_path: Path) -> None:
    short = ("task.lm.softmax_epochs=0", "trainer.max_steps=1", "trainer.val_check_interval=1")
    train.run(small("task.lm.text=sst5", *short, "trainer.limit_val_batches=1"))
    (row,) = load(tmp_path / "outputs" / "rows")
    assert row["training"]["curve"][0]["epoch"] == 0
    assert row["language_model"]["before"] is None


@pytest.mark.parametrize(("precision", "known"), [("32-true", True), ("bf16-mixed", False)])
def test_a_score_in_other_precision_is_not_called_the_one_before(small: Any, precision: str, known: bool) -> None:
    run = LanguageModelRun(validate(small("task.lm.text=sst5")).to_json())
    run.cfg["trainer"]["precision"] = precision
    done: Any = SimpleNamespace(training=SimpleNamespace(curve=[SimpleNamespace(epoch=0, dev={"perplexity": 9.0})]))
    assert run._before(done) == ({"perplexity": 9.0} if known else None)


def test_weights_are_averaged_over_both_parts_of_a_fine_tuning(small: Any, tmp_path: Path) -> None:
    train.run(small("task.lm.text=sst5", "task.training.average=0.9"))
    (row,) = load(tmp_path / "outputs" / "rows")
    assert [point["epoch"] for point in row["training"]["curve"]] == [0, 1, 2]
    assert row["training"]["curve"][2]["dev"] != row["training"]["curve"][1]["dev"]


def test_the_bilm_stays_as_it_was_while_the_softmax_is_trained(small: Any, tmp_path: Path) -> None:
    steps = 10  # within the first epoch
    train.run(small("task.lm.text=sst5", f"trainer.max_steps={steps}", f"trainer.val_check_interval={steps}"))
    (row,) = load(tmp_path / "outputs" / "rows")
    assert [point["step"] for point in row["training"]["curve"]] == [0, steps]
    rounded = BiLM.load(tmp_path / "bilm")
    rounded.save(tmp_path / "rounded", dtype="float16")
    assert row["language_model"]["exported"]["digest"] == BiLM.load(tmp_path / "rounded").digest


def test_a_run_s_own_softmax_and_words_are_trained_further(small: Any, tmp_path: Path) -> None:
    train.run(small("task.lm.text=sst5"))
    (first,) = load(tmp_path / "outputs" / "rows")
    weights = tmp_path / "outputs" / "runs" / first["run_id"] / "model.safetensors"
    words = (weights.parent / "bilm" / "vocabulary.txt").read_text()
    train.run(small("task.lm.text=ner", f"task.lm.init={weights}", f"paths.outputs={tmp_path / 'second'}"))
    (row,) = load(tmp_path / "second" / "rows")
    assert row["language_model"]["initial"]["softmax"] == "restored"
    assert row["language_model"]["vocabulary"] == len(words.split("\n")) - 1
    assert row["language_model"]["unknown"] > 0.1
    assert (Path(row["language_model"]["exported"]["folder"]) / "vocabulary.txt").read_text() == words
    assert [point["epoch"] for point in row["training"]["curve"]] == [0, 1]
    assert row["language_model"]["before"] == row["training"]["curve"][0]["dev"]
    for init in (weights, first["language_model"]["exported"]["folder"]):
        again = ["task.lm.text=sst5", f"task.lm.init={init}", "trainer.max_steps=1", "trainer.val_check_interval=1"]
        train.run(small(*again, f"paths.outputs={tmp_path / 'again'}"))
    rows = {Path(row["language_model"]["initial"]["name"]).suffix: row for row in load(tmp_path / "again" / "rows")}
    exact, rounded = rows[".safetensors"], rows[""]
    assert exact["language_model"]["before"] == pytest.approx(first["scores"]["dev"], rel=1e-6)
    assert rounded["language_model"]["before"] == pytest.approx(first["scores"]["dev"], rel=1e-2)


def test_a_run_says_what_its_initial_weights_were_grown_to(small: Any, tmp_path: Path, capsys: Any) -> None:
    short = ("task.lm.text=sst5", "trainer.max_steps=1", "trainer.val_check_interval=1")
    train.run(small(*short))
    assert "grown" not in capsys.readouterr().err
    train.run(small(*short, "bilm.options.lstm.dim=20"))
    assert f"task.lm.init={tmp_path / 'bilm'}: grown from dim=12 to dim=20\n" in capsys.readouterr().err


def test_a_task_reads_the_fine_tuned_bilm(small: Any, composed: Any, tmp_path: Path) -> None:
    train.run(small("task.lm.text=ner"))
    (tuned,) = load(tmp_path / "outputs" / "rows")
    rows = {}
    for name, folder in (("before", tmp_path / "bilm"), ("after", tuned["language_model"]["exported"]["folder"])):
        train.run(composed("task=ner", f"bilm.path={folder}", f"results.dir={tmp_path / name}"))
        (rows[name],) = load(tmp_path / name)
    assert rows["after"]["bilm"]["digest"] == tuned["language_model"]["exported"]["digest"]
    assert rows["after"]["run_id"] != rows["before"]["run_id"]


def test_initial_weights_are_identified_by_content_and_not_by_path(small: Any, tmp_path: Path, tiny_bilm: Any) -> None:
    def name(*overrides: str) -> str:
        return LanguageModelRun(validate(small("task.lm.text=sst5", *overrides)).to_json()).run_id

    first = name()
    tiny_bilm.save(tmp_path / "elsewhere")
    assert name(f"task.lm.init={tmp_path / 'elsewhere'}") == first
    assert len({first, name("task.lm.text=ner"), name("data.fraction=0.5"), name("task.data.window=9")}) == 4
    tiny_bilm.encoder.kernel_bias[0] += 1
    tiny_bilm.save(tmp_path / "bilm")
    assert name() != first


@pytest.mark.parametrize(
    ("overrides", "n_epochs"), [([], 30), (["task.lm.text=sst5"], 1), (["data=local", "data.root=DIR"], 1)]
)
def test_a_task_s_text_is_read_once_by_default(overrides: list[str], n_epochs: int) -> None:
    with initialize_config_dir(str(TASKS.parent), version_base="1.3"):
        cfg = validate(compose("config", ["task=lm", *overrides])).to_json()
    assert cfg["trainer"]["max_epochs"] == n_epochs


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["task.lm.text=lm"], r"^task\.lm\.text must be shards or one of .*ner.*sst5, found 'lm'"),
        (["task.lm.text=srl", "data=hub"], r"^task=srl has no data on the hub"),
        (["task.lm.text=ner", "data=local", "data.root=/no/such"], r"^data\.root=/no/such: no such folder"),
        (["task.lm.text=ner", "task.data.batch_size=4000"], r"^the training text has .* or task\.lm\.text to more"),
        (
            ["bilm.options.lstm.dim=11", "bilm.options.char_cnn.filters=[[1,4],[2,5]]"],
            r"other sizes .* add bilm\.options\.lstm\.dim=12 'bilm\.options\.char_cnn\.filters=\[\[1,\d+\],.*\]\]' \(",
        ),
        (["test=true"], r"^test=true, but task=lm has no test set"),
        (
            ["bilm.path=DIR"],
            r"^bilm\.path=DIR is not read by task=lm; to start from .* set task\.lm\.init=DIR$",
        ),
        (["data.fraction=0.5"], r"^data\.fraction=0\.5 is for the items of a task; choose files with task\.lm\.train$"),
        (
            ["bilm.options.char_cnn.max_characters_per_token=20"],
            r"^bilm\.options\.char_cnn\.max_characters_per_token=20: training reads words of 50; a biLM",
        ),
        (["task.data.window=0"], r"^task\.data\.window must be a whole number of at least 1, found 0"),
        (["task.model.forget=2"], r"^task\.model\.forget must be a number from 0 to 1, found 2"),
        (["task.data.batch_size=none"], r"^task\.data\.batch_size must be a whole number"),
    ],
)
def test_a_wrong_value_gives_a_one_sentence_error(
    small: Any, tmp_path: Path, overrides: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        train.run(small(*overrides))
    assert not list(tmp_path.glob("outputs/rows/*.json"))


def test_the_bilm_is_trained_once_the_softmax_has_been(small: Any, tmp_path: Path) -> None:
    train.run(small("task.lm.text=sst5"))
    (row,) = load(tmp_path / "outputs" / "rows")
    assert row["training"]["best_epoch"] == 2
    BiLM.load(tmp_path / "bilm").save(tmp_path / "rounded", dtype="float16")  # as a biLM is exported
    assert row["language_model"]["exported"]["digest"] != BiLM.load(tmp_path / "rounded").digest


def test_the_row_counts_the_predictions_of_each_split(small: Any, tmp_path: Path) -> None:
    train.run(small("task.lm.text=sst5", "trainer.max_steps=1", "trainer.val_check_interval=1"))
    (row,) = load(tmp_path / "outputs" / "rows")
    files = {split: BUNDLED / "sample" / "sst" / f"{split}.txt" for split in ("train", "dev")}
    sentences = {split: SstReader(phrases=False).read_file(path, split) for split, path in files.items()}
    counted = {split: sum(len(item.tokens) + 1 for item in items) for split, items in sentences.items()}
    assert row["language_model"]["positions"] == counted
