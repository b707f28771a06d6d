import json
import math
import os
import signal
import subprocess
import sys

import pytest
import torch
from attack.children import Child

from elmo_tasks.bilm import BiLM
from elmo_tasks.command_line import run_command
from elmo_tasks.data.corpus import TextFiles
from elmo_tasks.data.lm import LmData
from elmo_tasks.errors import UserError
from elmo_tasks.metrics.perplexity import Perplexity
from elmo_tasks.pretraining.__main__ import main, make_parser
from elmo_tasks.pretraining.evaluate import load
from elmo_tasks.pretraining.pack import read_pack
from elmo_tasks.pretraining.settings import Settings
from elmo_tasks.pretraining.state import INDEX, load_state
from elmo_tasks.pretraining.stream import Stream
from elmo_tasks.pretraining.train import Training

CPU = torch.device("cpu")
TINY = {"rows": 4, "window": 5, "vocabulary": 60, "min_count": 1, "samples": 10, "dropout": 0.2, "forget": 0.1}


def settings(size, **changes):
    return Settings(**{"size": size, **TINY, "rate": 0.02, "warm_up": 4, "epochs": 0.5} | changes)


@pytest.fixture
def train(pack_folder, tiny_size):
    """Trains for some updates, or to the end."""

    def train(out, n_updates=None, max_bytes=None, **changes):
        training = Training(read_pack(pack_folder), settings(tiny_size, **changes), CPU, out, max_bytes=max_bytes)
        if n_updates is not None:
            stop_after(training, n_updates)
        training.run(math.inf, log_every=7, score_every=0, save_seconds=math.inf)
        return training

    return train


def stop_after(training, n_updates):
    """Ends a call after some updates, as the clock does."""
    read = training.stream.read

    def few(*arguments, **options):
        for number, each in zip(range(n_updates), read(*arguments, **options), strict=False):
            yield each
            if number == n_updates - 1:
                return

    training.stream.read = few


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("max_bytes", [None, 30_000])
def test_a_resumed_training_ends_in_the_same_bits(train, tmp_path, precision, max_bytes):
    options = {"precision": precision, "max_bytes": max_bytes, "epochs": 1.3}
    whole = train(tmp_path / "whole", **options)
    assert whole.progress >= 1
    done = 0
    for n in (3, 20, whole.stream.updates_per_epoch - 10, None):  # the third one stops in the second epoch
        torch.manual_seed(9)
        part = train(tmp_path / "parts", n_updates=n, **options)
        assert part.step.updates == (done := done + n if n else whole.step.updates)
    assert done > whole.stream.updates_per_epoch
    assert torch.equal(part.step.weights, whole.step.weights)
    assert torch.equal(part.step.moments, whole.step.moments)
    states = [load_state(tmp_path / name)[0] for name in ("whole", "parts")]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    sizes = [path.stat().st_size for path in (tmp_path / "parts").glob("state-*")]
    assert (len(sizes) > 3 and max(sizes) <= 30_000) if max_bytes else len(sizes) == 1


def test_training_lowers_the_perplexity_that_task_lm_measures(train, tmp_path, text_folder):
    training = train(tmp_path, dropout=0.0, epochs=4.0, rate=0.03)
    before, after = 61, training.curve[-1]["perplexity"]
    assert after < before / 3
    model, vocabulary = load(str(tmp_path / "bilm"))
    text = TextFiles(root=str(text_folder), train="train-*.txt", heldout="heldout.txt")
    data = LmData(text=text, batch_size=128, window=20, vocabulary_size=60, min_count=1, seed=1)
    data.vocabulary = vocabulary
    metric = Perplexity()
    with torch.no_grad():
        for batch in data.batches("dev"):
            metric.update(model.decode(model(batch), batch), batch.gold)
    assert metric.compute()["perplexity"] == pytest.approx(after, rel=0.01)  # stored as float16


def test_training_stops_when_its_minutes_are_over_counted_over_all_calls(pack_folder, tiny_size, tmp_path):
    own = settings(tiny_size, epochs=None, budget_minutes=0.05)  # 3 seconds
    spent = []
    for _ in range(9):
        training = Training(read_pack(pack_folder), own, CPU, tmp_path)
        done = training.run(1.2, log_every=50, score_every=0, save_seconds=math.inf)
        spent.append(training.seconds)
        if done:
            break
    assert done
    assert len(spent) >= 2
    assert spent[-1] == pytest.approx(3, abs=0.5)
    assert training._rate() == 0


def run(capsys, *arguments):
    """The exit status, and what the process would have printed."""
    status = 0
    try:
        run_command(main, [str(a) for a in arguments])
    except SystemExit as ended:
        print(ended.code, file=sys.stderr)
        status = 1
    return status, capsys.readouterr()


@pytest.fixture
def flags(pack_folder, tiny_size, tmp_path):
    given = {"pack": pack_folder, "out": tmp_path / "out", "size": tiny_size, **TINY, "epochs": 0.4, "device": "cpu"}
    given["precision"] = "float32"  # every processor has it
    return [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", value)]


def test_the_commands_one_after_the_other(text_folder, tiny_size, tmp_path, capsys):
    folder = tmp_path / "pack"
    status, sentence = run(
        capsys, "pack", "--train", text_folder / "train-*.txt", "--heldout", text_folder / "held*.txt", "--out", folder
    )
    assert status == 0
    assert "45 words" in sentence.out or "47 words" in sentence.out
    given = {**TINY, "precision": "float32"}
    tiny = [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", value)]
    common = ["--pack", folder, "--out", tmp_path / "out", "--size", tiny_size, *tiny, "--epochs", 0.4, "--device"]
    status, sentence = run(capsys, "train", *common, "cpu", "--split-mb", 0.03, "--log-every", 20)
    assert status == 0, sentence.err
    assert "training is complete" in sentence.out
    assert max(path.stat().st_size for path in tmp_path.glob("out/**/*") if path.is_file()) <= 30_000
    assert run(capsys, "join", tmp_path / "out" / "bilm")[0] == 0
    status, sentence = run(
        capsys, "perplexity", "--pack", folder, "--bilm", tmp_path / "out" / "bilm", "--device", "cpu"
    )
    assert status == 0
    about = json.loads((tmp_path / "out" / INDEX).read_text())["about"]
    found = float(sentence.out.split("perplexity ")[1].split(",")[0])
    assert found == pytest.approx(about["curve"][-1]["perplexity"], rel=0.01)
    assert run(capsys, "export", "--out", tmp_path / "out", "--to", tmp_path / "again")[0] == 0
    assert BiLM.load(tmp_path / "again").digest == BiLM.load(tmp_path / "out" / "bilm").digest
    status, sentence = run(capsys, "train", *common, "cpu")
    assert "resumed after" in sentence.out
    assert "training is complete" in sentence.out


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--rows", "0"], "--rows must be at least 1, found 0"),
        (["--dropout", "1"], "--dropout must be from 0 to below 1, found 1.0"),
        (["--budget-minutes", "3"], "either --epochs or --budget-minutes"),
        (["--rows", "3000"], "but a window takes 15,000"),
        (["--pack", "nowhere"], "pack.json: cannot be read"),
        (["--log-every", "0"], "--log-every must be at least 1, found 0"),
        (["--score-every", "-1"], "--score-every must be at least 0, found -1"),
        (["--split-mb", "0"], "--split-mb must be at least 0.03, found 0.0"),
        (["--minutes", "-1"], "--minutes must be above 0 and finite, found -1.0"),
        (["--save-minutes", "nan"], "--save-minutes must be above 0 and finite, found nan"),
        (["--split-mb", "inf"], "--split-mb must be above 0 and finite, found inf"),
        (["--grad-norm", "inf"], "--grad-norm must be above 0 and finite, found inf"),
        (["--seed", str(2**64)], "--seed must be from 0 to below 2**63, found 18446744073709551616"),
        (["--device", "cuda"], "there is no GPU that PyTorch can use"),
    ],
)
def test_bad_input_gives_a_one_sentence_error(flags, capsys, changes, message):
    status, sentence = run(capsys, "train", *flags, *changes)
    assert status == 1
    assert sentence.err.startswith("error: ")
    assert message in sentence.err
    assert sentence.err.count("\n") == 1


def test_16_bit_products_need_a_processor_that_has_them(flags, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    status, sentence = run(capsys, "train", *flags, "--precision", "bfloat16")
    assert status == 1
    assert sentence.err.startswith("error: --precision bfloat16: this processor has no bfloat16 instructions, so")
    assert sentence.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["pack", "train", "export", "perplexity", "join"])
def test_every_option_is_explained(command):
    (commands,) = (action.choices for action in make_parser()._actions if action.choices)
    for action in commands[command]._actions:
        assert action.help, action.dest
        if action.default not in (None, False) and action.dest != "help":
            assert "default: " in action.help, action.dest


def test_a_training_that_has_ended_does_no_further_update(flags, capsys, tmp_path):
    assert run(capsys, "train", *flags)[0] == 0
    before = (tmp_path / "out" / INDEX).read_bytes()
    weights = BiLM.load(tmp_path / "out" / "bilm").digest
    (tmp_path / "out" / "bilm" / "weights.hdf5").unlink()
    assert run(capsys, "train", *flags)[0] == 0
    assert (tmp_path / "out" / INDEX).read_bytes() == before
    assert BiLM.load(tmp_path / "out" / "bilm").digest == weights


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_the_state(flags, capsys, tmp_path, number):
    def begin():
        read = Stream.read

        def interrupted(*arguments, **options):
            for n, each in enumerate(read(*arguments, **options), start=1):
                if n == 6:
                    os.kill(os.getpid(), number)
                yield each

        Stream.read = interrupted
        run_command(main, ["train", *map(str, flags)])

    child = Child(begin, tmp_path / "log.txt", errors=tmp_path / "errors.txt")
    assert child.wait(60) == 128 + number
    sentence = f"{number.name}: saved after 6 updates; run the same command again to resume\n"
    assert child.errors.read_text() == sentence
    assert load_state(tmp_path / "out")[1]["updates"] == 6
    status, sentence = run(capsys, "train", *flags)
    assert status == 0
    assert "resumed after 6 updates" in sentence.out


def test_a_folder_belongs_to_one_training_at_a_time(flags, capsys, tmp_path):
    owner = "import sys; from pathlib import Path; from elmo_tasks.lock import owned\n"
    owner += "with owned(Path(sys.argv[1]), wait=False): print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", owner, str(tmp_path / "out" / "training.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline()
        status, sentence = run(capsys, "train", *flags)
        process.communicate()
    assert status == 1
    assert sentence.err.startswith(f"error: training: this run is already being made by process {process.pid} on ")
    assert sentence.err.endswith("; let it end, or choose another --out\n")
    assert run(capsys, "train", *flags)[0] == 0


def test_a_state_of_another_training_is_refused_and_kept(flags, capsys, tmp_path):
    assert run(capsys, "train", *flags)[0] == 0
    before = load_state(tmp_path / "out")[0]["weights"]
    status, sentence = run(capsys, "train", *flags, "--dropout", 0.3)
    assert status == 1
    assert "the state of another training: its dropout is 0.2, here it is 0.3" in sentence.err
    assert torch.equal(load_state(tmp_path / "out")[0]["weights"], before)
    damaged = next((tmp_path / "out").glob("state-*"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    status, sentence = run(capsys, "train", *flags)
    assert status == 1
    assert f"{damaged.name}: damaged" in sentence.err


def test_a_state_of_a_schedule_that_there_no_longer_is_is_refused(flags, capsys, tmp_path):
    assert run(capsys, "train", *flags)[0] == 0
    path = tmp_path / "out" / INDEX
    path.write_text(path.read_text().replace('"schedule": "linear"', '"schedule": "cosine"'))
    status, sentence = run(capsys, "train", *flags)
    assert status == 1
    assert "the state of another training: its schedule is cosine, here it is linear" in sentence.err


def test_a_loss_that_is_not_finite_leaves_the_last_good_state(train, tmp_path):
    train(tmp_path, n_updates=8)
    before = load_state(tmp_path)
    with pytest.raises(UserError, match=r"not finite after .* updates.*lower --rate; the last good state is kept"):
        break_after_resuming(train, tmp_path)
    after = load_state(tmp_path)
    assert after[1] == before[1]
    assert torch.equal(after[0]["weights"], before[0]["weights"])


def break_after_resuming(train, out):
    resume = Training._resume

    def broken(self):
        resume(self)
        self.step.weights[5] = math.nan

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Training, "_resume", broken)
        train(out)


def test_too_little_gpu_memory_gives_a_one_sentence_error(flags, capsys, monkeypatch):
    def fail(*_):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB. GPU 0 has ...")

    monkeypatch.setattr("elmo_tasks.pretraining.step.TrainingStep.run", fail)
    status, sentence = run(capsys, "train", *flags)
    assert status == 1
    assert sentence.err == (
        "error: the GPU has too little memory (CUDA out of memory); lower --rows or --samples; a saved state is kept\n"
    )
