"""``train`` on a pack, as on a machine with a GPU and without Hydra."""

import argparse
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
from elmo_tasks.errors import UserError
from elmo_tasks.pretrain import train as training_module
from elmo_tasks.pretrain.__main__ import begin, main, make_parser
from elmo_tasks.pretrain.flags import Options
from elmo_tasks.pretrain.inputs import Inputs
from elmo_tasks.pretrain.train import STATE, Training
from elmo_tasks.training.tree import read_tree, write_tree

CPU = torch.device("cpu")
TINY = {"rows": 4, "window": 5, "vocabulary": 60, "min_count": 1, "samples": 10, "dropout": 0.2, "forget": 0.1}
CALL = argparse.Namespace(log_every=7, score_every=0, save_minutes=1e9, no_graph=False)


def options(size, **changes):
    return Options(**{"size": size, **TINY, "rate": 0.02, "warm_up": 4, "epochs": 0.5} | changes)


@pytest.fixture
def train(pack_folder, tiny_size):
    """Trains for some updates, or to the end."""

    def train(out, n_updates=None, **changes):
        training = begin(options(tiny_size, **changes), pack_folder, out, CPU, CALL)
        if n_updates is not None:
            stop_after(training, n_updates)
        training.run()
        return training

    return train


def stop_after(training, n_updates):
    """Ends a call after some updates, as the clock does, but without a score."""
    updated, last = training.watch.updated, training.progress.updates + n_updates

    def stop(self):
        updated(self)
        if self.progress.updates == last:
            training_module.interrupts._State.received = signal.SIGTERM

    training.watch.updated = stop


@pytest.fixture(autouse=True)
def _no_signal():
    yield
    training_module.interrupts._State.received = None


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_resumed_training_ends_in_the_same_bits(train, tmp_path, precision):
    changes = {"precision": precision, "epochs": 1.3}
    whole = train(tmp_path / "whole", **changes)
    assert whole.is_finished
    per_epoch, done = whole.data.updates_per_epoch, 0
    for n in (3, 20, per_epoch - 10, None):  # the third one stops in the second epoch
        torch.manual_seed(9)
        part = train(tmp_path / "parts", n_updates=n, **changes)
        training_module.interrupts._State.received = None
        assert part.progress.updates == (done := done + n if n else whole.progress.updates)
    assert done > per_epoch
    assert part.progress.resumed_after == [3, 23, 13 + per_epoch]
    whole, parts = (read_tree(tmp_path / name / STATE) for name in ("whole", "parts"))
    for state in (whole, parts):
        for name in ("seconds", "curve", "resumed_after"):
            del state["progress"][name]
    assert repr(parts) == repr(whole)
    for name in ("weights", "carried"):
        assert all(map(torch.equal, parts[name], whole[name]))


def test_training_lowers_the_perplexity(train, tmp_path):
    training = train(tmp_path, dropout=0.0, epochs=4.0, rate=0.03)
    before, after = 61, training.progress.curve[-1]["dev"]["perplexity"]
    assert after < before / 3


def test_training_stops_when_its_minutes_are_over_counted_over_all_calls(pack_folder, tiny_size, tmp_path):
    own = options(tiny_size, epochs=None, budget_minutes=0.05)  # 3 seconds
    spent = []
    for _ in range(30):
        training = begin(own, pack_folder, tmp_path, CPU, CALL)
        training.run(1.2)
        spent.append(training.progress.seconds)
        if training.is_finished:
            break
    assert training.is_finished
    assert len(spent) >= 2
    assert spent[-1] >= 3
    assert training.rates == [0]


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
    folder, out = tmp_path / "pack", tmp_path / "out"
    status, sentence = run(
        capsys, "pack", "--train", text_folder / "train-*.txt", "--heldout", text_folder / "held*.txt", "--out", folder
    )
    assert status == 0
    assert "45 words" in sentence.out or "47 words" in sentence.out
    given = {**TINY, "precision": "float32"}
    tiny = [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", value)]
    common = ["--pack", folder, "--out", out, "--size", tiny_size, *tiny, "--epochs", 0.4, "--device"]
    status, sentence = run(capsys, "train", *common, "cpu", "--log-every", 20)
    assert status == 0, sentence.err
    assert "training is complete" in sentence.out
    status, sentence = run(capsys, "perplexity", "--pack", folder, "--bilm", out / "bilm", "--device", "cpu")
    assert status == 0
    found = float(sentence.out.split("perplexity ")[1].split(",")[0])
    curve = read_tree(out / STATE)["progress"]["curve"]
    assert found == pytest.approx(curve[-1]["dev"]["perplexity"], rel=0.2)  # in other rows; stored as float16
    assert run(capsys, "export", "--out", out, "--to", tmp_path / "again")[0] == 0
    assert BiLM.load(tmp_path / "again").digest == BiLM.load(out / "bilm").digest
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
        (["--minutes", "-1"], "--minutes must be above 0 and finite, found -1.0"),
        (["--save-minutes", "nan"], "--save-minutes must be above 0 and finite, found nan"),
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


@pytest.mark.parametrize("command", ["pack", "train", "export", "perplexity"])
def test_every_option_is_explained(command):
    (commands,) = (action.choices for action in make_parser()._actions if action.choices)
    for action in commands[command]._actions:
        assert action.help, action.dest
        if action.default not in (None, False) and action.dest != "help":
            assert "default: " in action.help, action.dest


def test_a_training_that_has_ended_does_no_further_update(flags, capsys, tmp_path):
    assert run(capsys, "train", *flags)[0] == 0
    before = (tmp_path / "out" / STATE).read_bytes()
    weights = BiLM.load(tmp_path / "out" / "bilm").digest
    (tmp_path / "out" / "bilm" / "weights.hdf5").unlink()
    assert run(capsys, "train", *flags)[0] == 0
    assert (tmp_path / "out" / STATE).read_bytes() == before
    assert BiLM.load(tmp_path / "out" / "bilm").digest == weights


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_the_state(flags, capsys, tmp_path, number):
    def begin():
        stream = Inputs.stream

        def interrupted(*arguments, **options):
            for n, each in enumerate(stream(*arguments, **options), start=1):
                if n == 6:
                    os.kill(os.getpid(), number)
                yield each

        Inputs.stream = interrupted
        run_command(main, ["train", *map(str, flags)])

    child = Child(begin, tmp_path / "log.txt", errors=tmp_path / "errors.txt")
    assert child.wait(60) == 128 + number
    sentence = f"{number.name}: training is saved after 6 updates; run the same command again to resume\n"
    assert child.errors.read_text() == sentence
    assert read_tree(tmp_path / "out" / STATE)["progress"]["updates"] == 6
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
    path = tmp_path / "out" / STATE
    before = path.read_bytes()
    status, sentence = run(capsys, "train", *flags, "--dropout", 0.3)
    assert status == 1
    assert "the state of another training: its dropout is 0.2, here it is 0.3; choose another --out" in sentence.err
    assert path.read_bytes() == before
    path.write_bytes(before[:-1])
    status, sentence = run(capsys, "train", *flags)
    assert status == 1
    assert f"{STATE}: damaged" in sentence.err
    assert sentence.err.endswith("; choose another --out\n")


def change(name, value):
    def changed(state):
        state[name] = value

    return changed


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (change("weights", []), r"not a saved state of this run \(weights of another size: \[\] and \["),
        (change("carried", [1, 2]), r"carried of another size: \[None, None\] and"),
        (change("progress", {}), r"progress: updates is missing"),
        (lambda state: state["progress"].update(updates=-1), r"updates must be at least 0, found -1"),
        (lambda state: state["progress"].update(guess=1), r"damaged \(.*guess"),
        (change("optimizer", {"a": 1}), r"damaged \(.*param_groups"),
        (lambda state: state.pop("progress"), r"a state of an earlier version, from which this one cannot resume"),
    ],
)
def test_a_forged_state_is_one_sentence(train, tmp_path, forge, message):
    train(tmp_path, n_updates=3)
    state = read_tree(tmp_path / STATE)
    forge(state)
    write_tree(tmp_path / STATE, state)
    with pytest.raises(UserError, match=message) as caught:
        train(tmp_path)
    assert str(caught.value).endswith("; choose another --out")


def test_a_state_of_an_earlier_version_is_named(flags, capsys, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "state.json").write_text("{}")
    status, sentence = run(capsys, "train", *flags)
    assert status == 1
    assert sentence.err.endswith(
        "state.json: the state of an earlier version, from which this one cannot resume; choose another --out\n"
    )


def test_a_loss_that_is_not_finite_leaves_the_last_good_state(train, tmp_path, monkeypatch):
    train(tmp_path, n_updates=8)
    training_module.interrupts._State.received = None
    before, resume = (tmp_path / STATE).read_bytes(), Training.resume

    def broken(self):
        resume(self)
        self.step.vectors[0].data[5] = math.nan

    monkeypatch.setattr(Training, "resume", broken)
    with pytest.raises(UserError, match=r"not finite after 8 updates.*lower --rate; the last good state is kept in"):
        train(tmp_path)
    assert (tmp_path / STATE).read_bytes() == before


def test_too_little_gpu_memory_gives_a_one_sentence_error(flags, capsys, monkeypatch):
    def fail(*_, **__):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB. GPU 0 has ...")

    monkeypatch.setattr("elmo_tasks.pretrain.step.TrainingStep.find_gradients", fail)
    status, sentence = run(capsys, "train", *flags)
    assert status == 1
    assert sentence.err == (
        "error: the GPU has too little memory (CUDA out of memory); lower --rows or --samples; a saved state is kept\n"
    )
