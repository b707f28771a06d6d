import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from attack.children import Child, start_run
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from rows_as_json import load

from elmo_tasks.bilm import BiLM
from elmo_tasks.config.compose import validate
from elmo_tasks.errors import UserError
from elmo_tasks.metrics.accuracy import Accuracy
from elmo_tasks.places import BUNDLED
from elmo_tasks.runs import run as train
from elmo_tasks.runs import supervised
from elmo_tasks.runs.supervised import SupervisedRun

REPO = Path(__file__).parents[2]


def read_rows(tmp_path: Path, status: str = "finished") -> list[dict[str, Any]]:
    return load(tmp_path / "outputs" / "rows", status)


@pytest.mark.parametrize("task", ["sst5", "ner", "srl", "coref"])
def test_a_run_leaves_one_complete_row(composed: Any, tmp_path: Path, task: str) -> None:
    value = train.run(composed(f"task={task}", "elmo.placement=both", "test=true"))
    (row,) = read_rows(tmp_path)
    assert row["scores"]["dev"][row["metric"]["name"]] == value
    assert set(row["scores"]) == {"dev", "test"}
    assert set(row["elmo"]["weights"]) == {"input", "output"}
    assert sum(row["elmo"]["weights"]["input"]["s"]) == pytest.approx(1)
    assert row["data"]["items"]["train"]["used"] == round(0.1 * row["data"]["items"]["train"]["original"])
    assert row["layers"]["computed"] > 0
    assert row["layers"]["read"] == 0
    assert len(row["training"]["curve"]) == row["training"]["epochs"] == 2
    best = max(row["training"]["curve"], key=lambda point: point["dev"][row["metric"]["name"]])
    assert best["dev"][row["metric"]["name"]] == value
    assert row["config"]["task"]["name"] == task
    assert row["parameters"] > 0


def test_a_layer_is_tagged_from_without_word_vectors_and_the_baseline_from_them(composed: Any, tmp_path: Path) -> None:
    with_words = composed("task=pos", "elmo.placement=none")  # the fixture's words=random
    with initialize_config_dir(str(REPO / "conf"), version_base="1.3"):
        alone = compose("config", ["task=pos", "elmo.mix=layer_1"])
        assert compose("config", ["task=pos", "words=glove"]).words.dim == 50
        assert compose("config", ["task=ner"]).words.name == "glove"
        with pytest.raises(UserError, match=r"^words=none needs ELMo at the input; set elmo.placement"):
            validate(compose("config", ["task=pos", "elmo.placement=none"])).to_json()
    small = {key: with_words[key] for key in ("paths", "trainer", "logger", "data")}
    alone = OmegaConf.merge(alone, small, {"bilm": {"path": str(tmp_path / "bilm")}})
    values = [train.run(with_words), train.run(alone)]
    rows = {row["elmo"]["placement"]: row for row in read_rows(tmp_path)}
    assert [rows[name]["scores"]["dev"]["accuracy"] for name in ("none", "input")] == values
    n_tags = rows["input"]["parameters"] - 1  # gamma
    assert n_tags % (12 + 1) == 0  # a tag has a weight for each number of the layer, and a bias
    assert rows["none"]["elmo"]["weights"] == {}
    assert rows["input"]["elmo"]["weights"]["input"]["s"] == [0, 1, 0]


def test_the_test_set_is_not_read_by_default(composed: Any, tmp_path: Path) -> None:
    train.run(composed())
    assert set(read_rows(tmp_path)[0]["scores"]) == {"dev"}


def test_another_test_set_is_the_same_run_and_only_its_scores_are_new(
    composed: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    value = train.run(composed("test=true"))
    (first,) = read_rows(tmp_path)
    monkeypatch.setattr(supervised, "fit", None)  # nothing is trained again
    other = "task.files.test=sst/dev.txt"
    assert train.run(composed(other)) == value
    assert read_rows(tmp_path) == [first]
    assert train.run(composed(other, "test=true")) == value
    (second,) = read_rows(tmp_path)
    assert second["run_id"] == first["run_id"]
    assert second["scores"]["dev"] == first["scores"]["dev"] == second["scores"]["test"] != first["scores"]["test"]
    assert second["data"]["digest"] == first["data"]["digest"]
    assert len({second["data"]["test_digest"], first["data"]["test_digest"], None}) == 3
    assert (second["seconds"], second["layers"]) == (first["seconds"], first["layers"])  # those of the training


def test_a_finished_run_is_not_repeated_unless_forced(
    composed: Any, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    first = train.run(composed())
    ran = []
    real = supervised.fit
    monkeypatch.setattr(supervised, "fit", lambda *a: ran.append(1) or real(*a))
    assert train.run(composed()) == first
    assert "already finished; nothing was run (force=true repeats it)" in capsys.readouterr().out
    train.run(composed("logger=tensorboard"))
    assert "nothing was run, so there are no curves for logger=tensorboard (force" in capsys.readouterr().out
    assert not ran
    train.run(composed("force=true"))
    assert len(ran) == 1
    assert len(read_rows(tmp_path)) == 1


def test_lambda_as_whole_and_as_decimal_number_is_one_run(composed: Any, tmp_path: Path) -> None:
    for value in ("1", "1.0"):
        train.run(composed(f"elmo.lambda={value}"))
    assert len(read_rows(tmp_path)) == 1


def test_baselines_do_not_multiply_with_elmo_settings(composed: Any, tmp_path: Path) -> None:
    for value in ("0", "1"):
        train.run(composed("elmo.placement=none", f"elmo.lambda={value}", "elmo.mix=last"))
    (row,) = read_rows(tmp_path)
    assert row["bilm"] is None
    assert row["elmo"]["weights"] == {}


def test_gamma_one_is_another_run_and_stays_at_one(composed: Any, tmp_path: Path) -> None:
    for gamma in ("learned", "one"):
        train.run(composed("task=sst5", "elmo.placement=input", f"elmo.gamma={gamma}", "trainer.max_epochs=1"))
    one, learned = load(tmp_path / "outputs" / "rows")  # by name
    assert "-l0.001-s1-" in learned["run_id"]
    assert "-l0.001-g1-s1-" in one["run_id"]
    assert one["elmo"]["weights"]["input"]["gamma"] == 1.0 != learned["elmo"]["weights"]["input"]["gamma"]
    assert one["parameters"] == learned["parameters"] - 1


def test_one_pass_of_the_bilm_serves_placements_mixes_and_seeds(
    composed: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    train.run(composed("elmo.placement=both", "data.fraction=1.0", "trainer.max_epochs=1"))

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the biLM was run again")

    monkeypatch.setattr(BiLM, "layers", refuse)
    for override in ("elmo.placement=input", "elmo.mix=layer_1", "seed=2"):
        train.run(composed(override))
    assert [row["layers"]["computed"] for row in read_rows(tmp_path)].count(0) == 3


def test_one_seed_is_bit_identical_and_another_is_not(composed: Any, tmp_path: Path) -> None:
    train.run(composed())
    before = read_rows(tmp_path)[0]
    train.run(composed("force=true"))
    after = read_rows(tmp_path)[0]
    curves = ([{**point, "seconds": 0} for point in row["training"]["curve"]] for row in (before, after))
    assert next(curves) == next(curves)
    assert after["weights"] == before["weights"]
    train.run(composed("seed=2"))
    assert len({row["training"]["curve"][0]["train_loss"] for row in read_rows(tmp_path)}) == 2


def test_a_crash_leaves_a_failed_row_and_is_raised(composed: Any, tmp_path: Path, monkeypatch: Any) -> None:
    def crash(*_: Any) -> None:
        raise ZeroDivisionError("in the middle")

    monkeypatch.setattr(supervised, "score", crash)
    with pytest.raises(ZeroDivisionError):
        train.run(composed())
    (row,) = read_rows(tmp_path, "failed")
    assert "in the middle" in row["error"]
    assert read_rows(tmp_path) == []
    monkeypatch.undo()
    train.run(composed())
    assert read_rows(tmp_path, "failed") == []
    assert len(read_rows(tmp_path)) == 1


def test_bad_data_leaves_no_row(composed: Any, tmp_path: Path) -> None:
    for name in ("train", "dev", "test"):
        path = tmp_path / "data" / "sst" / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("(3 (2 fine) (2 .))\n(3 (2 broken\n")
    with pytest.raises(UserError, match=r"train\.txt:2: malformed tree"):
        train.run(composed("data=local", f"data.root={tmp_path / 'data'}"))
    assert list((tmp_path / "outputs" / "rows").iterdir()) == []


def test_a_results_folder_that_cannot_be_written_is_named_before_any_work(composed: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match=r"results\.dir"):
        train.run(composed(f"results.dir={tmp_path / 'file' / 'rows'}"))


def test_the_stored_model_holds_no_bilm_and_predicts_the_scores_of_the_row(composed: Any, tmp_path: Path) -> None:
    from safetensors import safe_open

    train.run(composed())
    (file,) = (tmp_path / "outputs" / "runs").glob("*/model.safetensors")
    with safe_open(file, "pt") as tensors:
        assert not any("bilm" in name or "lstms" in name for name in tensors.keys())  # noqa: SIM118
        assert any("mixes.input.w" in name for name in tensors.keys())  # noqa: SIM118


SMALL_LM = (
    "task=lm",
    "task.data.batch_size=8",
    "task.model.n_samples=50",
    "trainer.max_steps=20",
    "trainer.val_check_interval=10",
    "bilm.options.lstm.dim=12",
    "bilm.options.lstm.projection_dim=6",
    "bilm.options.char_cnn.filters=[[1,4],[2,8],[3,8]]",
    "bilm.options.char_cnn.embedding.dim=4",
)


@pytest.mark.parametrize("width", [6, 12])  # as wide as the LSTM, which is not projected then
def test_a_language_model_is_trained_scored_and_exported(composed: Any, tmp_path: Path, width: int) -> None:
    value = train.run(composed(*SMALL_LM, f"bilm.options.lstm.projection_dim={width}"))
    (row,) = read_rows(tmp_path)
    assert row["scores"]["dev"]["perplexity"] == value
    assert {"forward", "backward"} <= set(row["scores"]["dev"])
    assert [point["step"] for point in row["training"]["curve"]] == [10, 20]
    (folder,) = (tmp_path / "outputs" / "runs").glob("*/bilm")
    assert BiLM.load(folder).layers([["Hello", "."]])[0].shape == (3, 2, 2 * width)
    assert (folder / "vocabulary.txt").read_text().startswith("<S>\n</S>\n<UNK>\n")


def test_the_end_of_training_is_scored_wherever_it_is(composed: Any, tmp_path: Path) -> None:
    train.run(composed(*SMALL_LM, "trainer.max_steps=7", "trainer.val_check_interval=3"))
    epochs = ["task.data.batch_size=64", "trainer.max_steps=-1", "trainer.max_epochs=2"]
    train.run(composed(*SMALL_LM, *epochs, "trainer.val_check_interval=4"))
    by_steps, by_epochs = sorted((row["training"]["curve"] for row in read_rows(tmp_path)), key=len)
    assert [point["step"] for point in by_steps] == [3, 6, 7]
    assert [(point["epoch"], point["step"]) for point in by_epochs] == [
        *((1, step) for step in (4, 8, 10)),
        *((2, step) for step in (14, 18, 20)),
    ]


@pytest.mark.parametrize("patience", ["1", "null"])
@pytest.mark.parametrize("task", ["lm", "sst5", "snli"])
def test_training_that_ends_within_its_first_epoch_is_scored_there(
    composed: Any, tmp_path: Path, task: str, patience: str
) -> None:
    sizes = SMALL_LM if task == "lm" else [f"task={task}", "task.training.batch_size=4", "elmo.placement=none"]
    short = ["trainer.max_steps=3", "trainer.val_check_interval=null", f"trainer.patience={patience}"]
    train.run(composed(*sizes, *short))
    (row,) = read_rows(tmp_path)
    assert [point["step"] for point in row["training"]["curve"]] == [3]
    assert row["training"]["epochs"] == row["training"]["best_epoch"] == 1


def test_fine_tuning_that_ends_within_its_first_epoch_is_scored_there(composed: Any, tmp_path: Path) -> None:
    train.run(composed(*SMALL_LM))
    (weights,) = (tmp_path / "outputs" / "runs").glob("*/model.safetensors")
    short = ["trainer.max_steps=3", "trainer.val_check_interval=null", "trainer.patience=1"]
    train.run(composed(*SMALL_LM, f"task.lm.init={weights}", *short, f"paths.outputs={tmp_path / 'second'}"))
    (row,) = load(tmp_path / "second" / "rows")
    assert [(point["epoch"], point["step"]) for point in row["training"]["curve"]] == [(0, 0), (1, 3)]


@pytest.mark.parametrize("task", ["lm", "sst5"])
def test_an_interval_longer_than_an_epoch_is_the_epoch_s_end(composed: Any, tmp_path: Path, task: str) -> None:
    sizes = [*SMALL_LM, "task.data.batch_size=64"] if task == "lm" else [f"task={task}"]
    for interval in ("null", "1000"):
        several = ["trainer.max_steps=-1", f"trainer.val_check_interval={interval}"]
        train.run(composed(*sizes, *several, f"results.dir={tmp_path / interval}"))
    rows = [load(tmp_path / interval)[0] for interval in ("null", "1000")]
    by_default, longer = ([point["step"] for point in row["training"]["curve"]] for row in rows)
    assert longer == by_default
    assert len(longer) == 2


def test_a_share_or_a_number_of_the_dev_batches_is_scored_during_training(composed: Any, tmp_path: Path) -> None:
    numbers = []
    real = Accuracy.update

    def update(self: Any, *arguments: Any) -> None:
        numbers[-1] += 1
        real(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Accuracy, "update", update)
        for limit in ("1.0", "0.5", "0.001", "1"):
            numbers.append(0)
            train.run(composed("task=sst5", "trainer.max_steps=1", f"trainer.limit_val_batches={limit}"))
    whole = numbers[0] // 2  # the chosen weights are always scored on all batches
    assert [n - whole for n in numbers] == [whole, whole // 2, 1, 1]
    assert whole > 2


def test_a_language_model_starts_from_an_earlier_one(composed: Any, tmp_path: Path) -> None:
    first = train.run(composed(*SMALL_LM))
    (weights,) = (tmp_path / "outputs" / "runs").glob("*/model.safetensors")
    start = [f"task.lm.init={weights}", "task.training.schedule=linear"]
    assert train.run(composed(*SMALL_LM, *start)) < first
    train.run(composed(*SMALL_LM, *start, "task.optimizer.lr=0.0"))
    (unmoved,) = [row for row in read_rows(tmp_path) if row["config"]["task"]["optimizer"]["lr"] == 0]
    assert unmoved["scores"]["dev"]["perplexity"] == pytest.approx(first, rel=1e-6)


def test_weights_of_another_model_are_no_start(composed: Any, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"model\.safetensors: (damaged or not a safetensors file|cannot be read)"):
        train.run(composed(*SMALL_LM, f"task.lm.init={tmp_path / 'model.safetensors'}"))


@pytest.mark.slow
def test_a_killed_run_leaves_no_row_and_can_be_run_again(composed: Any, tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    arguments = ["task=ner", f"paths.outputs={outputs}", f"bilm.path={tmp_path / 'bilm'}", "words=random"]
    arguments += ["trainer.progress=false", "trainer.threads=1"]
    killed = Child(lambda: start_run(arguments), tmp_path / "killed.txt")
    deadline = time.time() + 120
    while not list(outputs.glob("runs/*/model.safetensors")) and time.time() < deadline:
        time.sleep(0.05)
    killed.end()
    assert not list(outputs.glob("rows/*.json"))
    again = Child(lambda: start_run([*arguments, "trainer.max_epochs=1"]), tmp_path / "again.txt")
    assert again.wait(200) == 0, again.output()
    row = json.loads(next(outputs.glob("rows/*.json")).read_text())
    assert row["status"] == "finished"
    assert row["layers"]["computed"] == 0  # what the killed run had stored is used


def test_layers_that_do_not_fit_the_limit_stop_the_run_before_any_is_written(composed: Any, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"bilm\.store\.limit_gb"):
        train.run(composed("bilm.store.limit_gb=0.000001"))
    assert not list((tmp_path / "outputs").glob("layers/**/*.bin"))


def test_data_are_identified_by_content_and_not_by_path(composed: Any, tmp_path: Path) -> None:
    def name(root: Path) -> str:
        cfg = validate(composed("task=sst5", "elmo.placement=none", "data=local", f"data.root={root}")).to_json()
        return SupervisedRun(cfg).run_id

    data = Path(shutil.copytree(BUNDLED / "sample", tmp_path / "data"))
    first = name(data)
    assert name(BUNDLED / "sample") == first
    for split, same in (("test", True), ("dev", False)):  # a run can score another test set
        path = data / "sst" / f"{split}.txt"
        path.write_text(path.read_text("utf-8") + "(3 fine)\n", "utf-8")
        assert (name(data) == first) is same
