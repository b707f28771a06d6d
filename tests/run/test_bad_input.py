import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import torch
from hydra.utils import get_class

from elmo_tasks.assembly.encoder import build_bilm
from elmo_tasks.config.compose import validate
from elmo_tasks.config.words import in_words
from elmo_tasks.errors import UserError
from elmo_tasks.places import BUNDLED
from elmo_tasks.runs import run as train

REPO = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("elmo.placement=inptu", r"elmo\.placement must be one of none, input, output, both, found 'inptu'"),
        ("elmo.mix=top", r"elmo\.mix must be one of scalar, last, mean, layer_0"),
        ("elmo.mix=layer_3", r"elmo\.mix=layer_3: this biLM has 3 layers: layer_0, layer_1, layer_2"),
        ("elmo.lambda=-1", r"elmo\.lambda must be a number of at least 0, found -1"),
        ("elmo.lambda=abc", r"elmo\.lambda must be a number .* found 'abc'"),
        ("elmo.lambda=nan", r"elmo\.lambda must be finite, a number of at least 0, found nan"),
        ("elmo.lambda=inf", r"elmo\.lambda must be finite, a number of at least 0, found inf"),
        (f"elmo.lambda=1{'0' * 400}", r"elmo\.lambda must be a number of at least 0, found 10+\.\.\.0+$"),
        ("elmo.dropout=1", r"elmo\.dropout must be a number of at least 0 and below 1, found 1"),
        ("elmo.layer_norm=1", r"elmo\.layer_norm must be true or false"),
        ("bilm.state=cary", r"bilm\.state must be one of reset, carry, warm"),
        ("bilm.path=/no/such", r"bilm\.path=/no/such: no such folder"),
        ("data.fraction=0", r"data\.fraction must be a number above 0 and at most 1, found 0"),
        ("data.root=/no/such", r"data\.root=/no/such is not for data=sample; use data=local data\.root=/no/such$"),
        ("data.root=null", r"data\.root is not set"),
        ("data=local", r"data\.root is not set; add data\.root="),
        (
            "task.files.dev=sst/train.txt",
            r"sst/train\.txt is in both train and dev; expected files of its own for each$",
        ),
        ("task.files.test=sst/train.txt", r"sst/train\.txt is in both train and test"),
        ("task.files.dev=sst/devel.txt", r"sst/devel\.txt: no such file; .*task\.files\.dev"),
        ("words.path=/no/such", r"words\.path=/no/such: no such file"),
        ("words.path=/", r"words\.path=/: a folder; expected a file"),
        ("~task", r"^task is missing$"),
        ("seed=-1", r"seed must be a whole number from 0 to 4,294,967,295, found -1"),
        ("seed=4294967296", r"seed must be a whole number from 0 to .*, found 4294967296"),
        ("seed=1.5", r"seed must be a whole number"),
        ("trainer.max_epochs=0", r"trainer\.max_epochs must be a whole number of at least 1"),
        ("trainer.max_steps=0", r"trainer\.max_steps must be -1 or a whole number of at least 1, found 0"),
        ("trainer.val_check_interval=0", r"trainer\.val_check_interval must be a whole number of at least 1, or null"),
        ("trainer.val_check_interval=-3", r"trainer\.val_check_interval must be .*, found -3"),
        ("trainer.val_check_interval=1.5", r"trainer\.val_check_interval must be .*, found 1\.5"),
        ("trainer.val_check_interval=abc", r"trainer\.val_check_interval must be .*, found 'abc'"),
        (
            "trainer.limit_val_batches=0",
            r"trainer\.limit_val_batches must be a number above 0 and at most 1 or a whole number of",
        ),
        ("trainer.limit_val_batches=0.0", r"trainer\.limit_val_batches must be .*, found 0\.0"),
        ("trainer.limit_val_batches=-3", r"trainer\.limit_val_batches must be .*, found -3"),
        ("trainer.limit_val_batches=1.5", r"trainer\.limit_val_batches must be .*, found 1\.5"),
        ("trainer.limit_val_batches=abc", r"trainer\.limit_val_batches must be .*, found 'abc'"),
        ("trainer.limit_val_batches=true", r"trainer\.limit_val_batches must be .*, found True"),
        ("test=perhaps", r"test must be true or false, found 'perhaps'"),
        ("task.training.schedule=cosine", r"task\.training\.schedule must be one of linear, halve, decay, or null"),
        (
            "task.training.average=1",
            r"task\.training\.average must be a number of at least 0 and below 1, or null, found 1",
        ),
        ("task.training.batch_tokens=0", r"task\.training\.batch_tokens must be a whole number of at least 1"),
        (
            "task.training.batch_tokens=20",
            r"sst/train\.txt:135: 34 tokens, more than a batch may have; .*task\.training\.batch_tokens=34 if",
        ),
        ("ensemble=3", r"ensemble must be a list of two or more different seeds"),
        ("trainer.precision=foo", r"trainer\.precision must be one of 32-true, bf16-mixed, found 'foo'"),
        ("trainer.precision=64-true", r"trainer\.precision must be one of"),
        ("trainer.precision=16-true", r"trainer\.precision must be one of"),
        ("trainer.accelerator=foo", r"trainer\.accelerator must be one of auto, cpu, gpu, found 'foo'"),
        ("trainer.accelerator=null", r"trainer\.accelerator must be one of auto, cpu, gpu, found None"),
        ("trainer.threads=99999999999", r"trainer\.threads must be a whole number from 1 to 1,024, or null, found 9"),
        ("trainer.threads=100000", r"trainer\.threads must be a whole number from 1 to 1,024, or null"),
        ("trainer.max_epochs=null", r"trainer\.max_epochs must be a whole number of at least 1, found None"),
        ("task.training.batch_size=null", r"task\.training\.batch_size must be a whole number of at least 1, found N"),
        ("task.training.batch_tokens=null", r"task\.training\.batch_tokens must be a whole number of at least 1"),
        ("task.training.grad_norm=abc", r"task\.training\.grad_norm must be a number above 0, or null"),
        ("task.training.grad_norm=-1", r"task\.training\.grad_norm must be a number above 0, or null, found -1"),
        ("task.files.train=5", r"task\.files\.train must be a text, found 5"),
        ("task.files.train=[a,b]", r"task\.files\.train must be a text, found \['a', 'b'\]"),
        ("task.files.dev=null", r"there is no dev set: set task\.files\.dev"),
        ("scale.name=foo", r"scale\.name must be one of cpu, paper, found 'foo'"),
        ("logger.name=foo", r"logger\.name must be one of csv, wandb, tensorboard, none, found 'foo'"),
        ("words.name=foo", r"words\.name must be one of glove, random, none, found 'foo'"),
        ("words.lowercase=maybe", r"words\.lowercase must be true or false, found 'maybe'"),
        ("data.root=${nosuch}", r"the configuration cannot be resolved: .*nosuch.* \(at data\.root\)$"),
        ("data.root=${oc.env:NOSUCH}", r"the configuration cannot be resolved: .*NOSUCH"),
        ("seed=${seed}", r"the configuration cannot be resolved: "),
        ("elmo.lambda=???", r"^elmo\.lambda is not set; add elmo\.lambda=\.\.\. to the command line$"),
        ("paths.outputs=???", r"^paths\.outputs is not set; add paths\.outputs="),
        ("ensemble=[1,???]", r"^ensemble\[1\] is not set; add ensemble=\.\.\. to the command line$"),
        ("bilm.warm_text=5", r"bilm\.warm_text must be a text, or null, found 5"),
        (f"bilm.name={'x' * 300}", r"bilm\.name must be a name of .*, 60 at most, found 'x{40}'\.\.\."),
        ("task.reader.phrases=maybe", r"task\.reader\.phrases must be true or false, found 'maybe'"),
        ("task.reader.unescape=5", r"task\.reader\.unescape must be true or false, found 5"),
        ("task.reader.min_phrase_tokens=abc", r"task\.reader\.min_phrase_tokens must be a whole number"),
        ("task.reader.min_phrase_tokens=-1", r"task\.reader\.min_phrase_tokens must be a whole number of at least 1"),
        ("+elmo.nosuch=1", r"unknown key 'elmo\.nosuch'; expected one of placement, mix, gamma, lambda"),
        ("++trainer.max_epoch=3", r"unknown key 'trainer\.max_epoch'; expected one of max_epochs"),
        ("+nosuch=1", r"unknown key 'nosuch'; expected one of words, bilm, task"),
        ("+task.model.nosuch=1", r"unknown key 'task\.model\.nosuch'; expected one of words, elmo"),
        ("+task.reader.nosuch=1", r"unknown key 'task\.reader\.nosuch'; expected one of phrases"),
        ("~task", r"task is missing"),
        ("~trainer.patience", r"trainer\.patience is missing; it must be a whole number of at least 1, or null"),
        ("packages=5", r"packages must be a list of packages"),
        ("if_running=maybe", r"if_running must be one of refuse, wait, or null, found 'maybe'"),
        ("task.reader._target_=torch.load", r"task\.reader\._target_ must be a class below elmo_tasks\.data, "),
        ("task.reader._target_=pathlib.Path.touch", r"task\.reader\._target_ must be a class below elmo_tasks\.data"),
        ("task.reader._target_=elmo_tasks.data.sst5.Path", r"task\.reader\._target_=.*: not a class of this package"),
        ("task.reader._target_=elmo_tasks.files.write_text", r"task\.reader\._target_ must be a class below"),
        ("task.reader._target_=elmo_tasks.data.nosuch.X", r"task\.reader\._target_=.*: there is no such class"),
        ("+task.reader.x._target_=elmo_tasks.data.files.os.remove", r"task\.reader\.x\._target_=.*: not a class of"),
        ("task.optimizer._target_=torch.optim.nosuch", r"task\.optimizer\._target_=.*: there is no such class"),
    ],
)
def test_a_wrong_value_is_named_with_its_key_and_choices(composed: Any, override: str, message: str) -> None:
    words = ["words=glove"] if override.startswith("words") else []
    with pytest.raises(UserError, match=message):
        train.run(composed(*words, override))


WHOLE, RATE = r"a whole number of at least 1", r"a number of at least 0 and below 1"
WIDTH, DEPTH = "a whole number from 1 to 100,000", "a whole number from 1 to 1,000"


@pytest.mark.parametrize(
    ("task", "key", "values", "expected"),
    [
        ("srl", "n_layers", ("0", "1.5", "true", "10000000"), DEPTH),
        ("srl", "hidden", ("0", "-3", "abc", "[5,5]", "null"), WIDTH),
        ("srl", "indicator_dim", ("0",), WIDTH),
        ("srl", "dropout", ("1", "-0.1", "abc"), RATE),
        ("coref", "hidden", ("0", "-3", "abc", "1000000000"), WIDTH),
        ("coref", "max_span_width", ("0", "2.5"), WIDTH),
        ("coref", "max_antecedents", ("0", "-1"), WHOLE),
        ("coref", "spans_per_word", ("abc", "-1", "0"), "a number above 0"),
        ("coref", "char_widths", ("[]", "3", "[3,0]", "[3,x]"), "a list of one or more, each " + WIDTH),
        ("coref", "char_filters", ("0",), WIDTH),
        ("coref", "char_dim", ("0",), WIDTH),
        ("coref", "ffnn", ("0",), WIDTH),
        ("coref", "feature_dim", ("0",), WIDTH),
        ("coref", "lexical_dropout", ("1",), RATE),
        ("ner", "hidden", ("[]", "100", "[100,0]"), "a list of one or more, each " + WIDTH),
        ("ner", "char_width", ("0",), WIDTH),
        ("snli", "hidden", ("0",), WIDTH),
        ("squad", "linear", ("0",), WIDTH),
        ("squad", "max_answer_tokens", ("0",), WHOLE),
        ("sst5", "pre_encode", ("0",), WIDTH),
        ("sst5", "classifier", ("[100]", "[100,0]", "[]"), "a list of 2, each " + WIDTH),
        ("sst5", "classifier_dropout", ("[0.2,1]",), "a list of 2, each " + RATE),
        ("nsmc", "integrator_dropout", ("2",), RATE),
    ],
)
def test_a_wrong_size_of_a_model_is_named_before_anything_is_read_or_written(
    composed: Any, tmp_path: Path, task: str, key: str, values: tuple[str, ...], expected: str
) -> None:
    for value in values:
        with pytest.raises(UserError, match=rf"^task\.model\.{key} must be {expected}, found "):
            train.run(composed(f"task={task}", f"task.model.{key}={value}"))
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize("task", ["sst5", "ner", "snli", "squad", "srl", "coref", "nsmc", "lm"])
def test_every_key_of_a_model_has_a_range_or_a_choice(composed: Any, task: str) -> None:
    model = composed(f"task={task}").task.model
    hints = get_type_hints(get_class(model._target_).__init__, include_extras=True)
    for key in set(model) - {"_target_"}:
        assert re.search(r"\d|one of", in_words(hints[key])), key


def test_a_message_quotes_at_most_a_part_of_what_was_found(composed: Any) -> None:
    with pytest.raises(UserError) as error:
        train.run(composed(f"results.dir=[{'x' * 5000}]"))
    assert len(str(error.value)) <= 300


def test_a_class_of_a_package_that_the_user_trusts_is_taken(composed: Any, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "my_lab.py").write_text("from elmo_tasks.metrics.accuracy import Accuracy\nclass Own(Accuracy): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    own = ["task=sst5", "task.metric._target_=my_lab.Own", "trainer.max_epochs=1", "elmo.placement=none"]
    with pytest.raises(UserError, match=r"^task\.metric\._target_ must be .* packages=\[NAME\] allows those"):
        train.run(composed(*own))
    train.run(composed(*own, "packages=[my_lab]"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("task", ["ner", "lm"])
def test_a_gpu_that_is_not_there_is_missed_before_anything_is_read_or_stored(
    composed: Any, tmp_path: Path, task: str
) -> None:
    with pytest.raises(UserError, match=r"^trainer\.accelerator=gpu is not possible on this machine: PyTorch finds no"):
        train.run(composed(f"task={task}", "trainer.accelerator=gpu"))
    assert not [path for path in (tmp_path / "outputs").rglob("*") if path.is_file() and path.suffix != ".lock"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("task", ["ner", "lm"])
def test_16_bit_products_need_a_processor_that_has_them(
    composed: Any, tmp_path: Path, monkeypatch: Any, task: str
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True, "avx512_bf16": False})
    with pytest.raises(UserError, match=r"^trainer\.precision=bf16-mixed: this processor has no bfloat16 instructions"):
        train.run(composed(f"task={task}", "trainer.precision=bf16-mixed"))
    assert not [path for path in (tmp_path / "outputs").rglob("*") if path.is_file() and path.suffix != ".lock"]


@pytest.mark.parametrize(
    ("task", "override", "message"),
    [
        ("squad", "task.optimizer.rho=2", r"torch\.optim\.Adadelta takes, found .*rho=2, .*\(Invalid rho value: 2"),
        (
            "coref",
            "task.optimizer.lr=-1",
            r"torch\.optim\.Adam takes, found lr=-1, fused=True \(Invalid learning rate: -1",
        ),
        ("ner", "task.optimizer.lr=abc", r"torch\.optim\.Adam takes, found lr=abc, fused=True \("),
        ("squad", "+task.optimizer.ro=1", r"torch\.optim\.Adadelta takes, found .*, ro=1 \(.*unexpected keyword"),
        ("lm", "task.optimizer.lr=-1", r"torch\.optim\.Adagrad takes, found lr=-1"),
    ],
)
def test_an_option_that_the_optimizer_does_not_have_is_one_sentence_and_nothing_is_written(
    composed: Any, tmp_path: Path, task: str, override: str, message: str
) -> None:
    with pytest.raises(UserError, match=rf"^task\.optimizer must be what {message}") as error:
        train.run(composed(f"task={task}", override))
    assert "\n" not in str(error.value)
    assert not (tmp_path / "outputs").exists()


@pytest.mark.parametrize("limit", ["0.5", "0.99"])
def test_the_held_out_text_of_a_bilm_has_no_shares(composed: Any, limit: str) -> None:
    with pytest.raises(UserError, match=r"limit_val_batches must be 1\.0 \(all batches\) or a whole number .* found"):
        train.run(composed("task=lm", f"trainer.limit_val_batches={limit}"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("import nosuchlib", "ModuleNotFoundError: No module named 'nosuchlib'"),
        ("import elmo_tasks.nosuch", "ModuleNotFoundError: No module named 'elmo_tasks.nosuch'"),
        ("def f(:", "SyntaxError: invalid syntax"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_an_error_within_a_module_of_ones_own_is_told(
    composed: Any, tmp_path: Path, monkeypatch: Any, line: str, reason: str
) -> None:
    (tmp_path / "own_readers.py").write_text(f"{line}\nclass Mine: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    own = ["task.reader._target_=own_readers.Mine", "packages=[own_readers]"]
    with pytest.raises(UserError, match=rf"^task\.reader\._target_=.*: its module cannot be imported \({reason}"):
        train.run(composed("task=ner", *own))
    sys.modules.pop("own_readers", None)


def test_a_package_that_is_not_on_the_path_is_told(composed: Any) -> None:
    with pytest.raises(
        UserError, match=r": there is no package nosuch; PYTHONPATH must have the folder that it is in$"
    ):
        train.run(composed("task=ner", "task.reader._target_=nosuch.Mine", "packages=[nosuch]"))


def test_a_training_shard_that_is_a_folder_is_named(composed: Any, tmp_path: Path) -> None:
    (tmp_path / "train.txt").mkdir()
    (tmp_path / "heldout.txt").write_text("a b\n")
    text = ["data=local", f"data.root={tmp_path}", "task.lm.train=train.txt", "task.lm.heldout=heldout.txt"]
    with pytest.raises(UserError, match=r"/train\.txt: cannot be read \(it is not a regular file\)$"):
        train.run(composed("task=lm", *text))


def test_a_korean_bilm_is_not_warmed_up_on_the_english_text(composed: Any) -> None:
    warm = ["task=nsmc", "bilm=mini_ko", "bilm.state=warm"]
    with pytest.raises(UserError, match=r"^bilm\.state=warm: .* English; set bilm\.warm_text to a Korean one"):
        train.run(composed(*warm))


def test_a_task_whose_data_are_licensed_is_not_on_the_hub(composed: Any) -> None:
    with pytest.raises(UserError, match=r"^task=srl has no data on the hub; use data=local data\.root=DIR"):
        train.run(composed("task=srl", "data=hub"))


def test_a_wrong_option_of_a_reader_gives_a_one_sentence_error(composed: Any) -> None:
    expected = r"^task\.reader\.max_training_tokens must be a whole number of at least 1, found 'many'"
    with pytest.raises(UserError, match=expected):
        train.run(composed("task=srl", "task.reader.max_training_tokens=many"))


def test_a_wrong_option_of_the_reader_of_a_task_s_text_is_told(composed: Any) -> None:
    changes = "+task.lm.changes.srl={reader: {max_training_tokens: 0}}"
    with pytest.raises(UserError, match=r"reader\.max_training_tokens must be a whole number of at least 1, found 0"):
        train.run(composed("task=lm", "task.lm.init=mini", "task.lm.text=srl", changes))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("slni={files: {train: x}}", r"unknown key 'task\.lm\.changes\.slni'; expected one of coref, ner, "),
        ("snli={file: {train: x}}", r"unknown key 'task\.lm\.changes\.snli\.file'; expected one of files, hub, reader"),
        ("snli={files: {trian: x}}", r"unknown key 'task\.lm\.changes\.snli\.files\.trian'; expected one of train, "),
        ("snli=5", r"task\.lm\.changes\.snli must be a section with keys, found 5"),
    ],
)
def test_a_change_to_a_task_s_text_that_is_none_is_refused(composed: Any, change: str, message: str) -> None:
    with pytest.raises(UserError, match=f"^{message}"):
        train.run(composed("task=lm", "task.lm.init=mini", "task.lm.text=snli", f"+task.lm.changes.{change}"))


def test_whether_the_documents_are_ontonotes_is_true_or_false(composed: Any) -> None:
    with pytest.raises(UserError, match=r"^task\.reader\.ontonotes must be true or false, found 'maybe'$"):
        train.run(composed("task=coref", "task.reader.ontonotes=maybe"))


def test_a_batch_of_coreference_is_one_document(composed: Any) -> None:
    expected = r"^task\.training\.batch_size must be 1, since a batch is one document, found 2$"
    with pytest.raises(UserError, match=expected):
        train.run(composed("task=coref", "task.training.batch_size=2"))


def test_a_set_without_test_split_cannot_be_tested(composed: Any) -> None:
    with pytest.raises(UserError, match=r"^test=true, but data=sample has no test set for task=squad"):
        train.run(composed("task=squad", "test=true", "task.files.test=null"))
    train.run(composed("task=squad", "task.files.test=null"))


def test_a_size_that_is_not_bundled_needs_its_folder(composed: Any) -> None:
    with pytest.raises(UserError, match=r"bilm=original is not bundled; set bilm\.path"):
        train.run(composed("bilm=original", "bilm.path=null"))


def test_weights_of_another_size_than_named_are_refused(composed: Any) -> None:
    with pytest.raises(UserError, match=r"bilm=original has .*dim=4096.* holds .*dim=12"):
        train.run(composed("bilm=original"))


def test_a_bundled_size_is_not_the_name_of_another_one(composed: Any) -> None:
    with pytest.raises(UserError, match=r"bilm=small has .*dim=1024.* holds .*dim=512"):
        train.run(composed("bilm=small", f"bilm.path={BUNDLED / 'bilm' / 'mini'}"))


def test_a_bilm_of_ones_own_may_have_any_sizes_and_a_name(composed: Any) -> None:
    path = composed("bilm=original")["bilm"]["path"]  # tiny
    encoder = build_bilm(
        validate(composed("bilm=mini", f"bilm.path={path}", "bilm.name=mini_cs", "elmo.placement=both")).to_json()
    )
    assert encoder is not None
    assert (encoder.dim, encoder.n_layers) == (12, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["task=foo"], "error: task=foo: unknown choice; expected one of"),
        (["elmo.placment=both"], "error: unknown key 'elmo.placment'; expected one of placement, mix"),
        (["elmo.placement=inptu"], "error: elmo.placement must be one of none, input, output, both, found 'inptu'"),
        (["bilm=/some/folder"], "error: bilm=/some/folder: unknown choice; expected one of cove, hf, medium, mini"),
        (["task=/some/folder"], "error: task=/some/folder: unknown choice; expected one of coref, lm"),
        (["--task", "ner"], "error: --task: no such option; values are written KEY=VALUE, such as task=ner"),
    ],
)
def test_the_command_line_ends_in_one_sentence_and_status_1(
    tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    command = [sys.executable, "run.py", *arguments, f"paths.outputs={tmp_path}"]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith(sentence)
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("rows/*"))
