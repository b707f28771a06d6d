"""The sections of the configuration, with every key's type and meaning.

The text under a field is its line in ``--help`` and in the manual. A field with a default may be missing, as in rows of
earlier versions. A key that is a Python keyword is a field with ``_`` behind it. :data:`NO_EFFECT` marks what cannot
change a score; see :mod:`elmo_tasks.config.identity`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, ValidationInfo, model_validator

from elmo_tasks.config import components
from elmo_tasks.config.words import InWords
from elmo_tasks.values import Count, DevBatches, Matching, Name, NotNegative, Positive, Range, Rate, Seed, Share, Size

NO_EFFECT = "no effect"
"""Metadata of a key that cannot change a score: a place, a default of another key, or what a digest stands for."""
ANOTHER_VERSION = "another version"
"""Context of a validation in which keys that are not known here are left out."""

Place = Annotated[str | None, NO_EFFECT]
Mix = Annotated[str, Matching(r"scalar|last|mean|layer_\d{1,4}", "one of scalar, last, mean, layer_0, layer_1, ...")]
Placement = Literal["none", "input", "output", "both"]


def _different(values: tuple[int, ...]) -> tuple[int, ...]:
    if not len(set(values)) == len(values) > 1:
        raise ValueError("two or more different ones")
    return values


Seeds = Annotated[
    tuple[Seed, ...],
    Strict(False),
    AfterValidator(_different),
    InWords("a list of two or more different seeds, such as [1,2,3]"),
]
Packages = Annotated[tuple[str, ...], Strict(False), InWords("a list of packages, such as [my_lab]")]
Tags = Annotated[tuple[str, ...], Strict(False), InWords("a list of texts")]


class ConfigSection(BaseModel):
    """Known keys with values of the right types; unchangeable."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        str_min_length=1,
        ser_json_inf_nan="constants",
        use_attribute_docstrings=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _of_another_version(cls, values: Any, info: ValidationInfo) -> Any:
        if info.context != ANOTHER_VERSION or not isinstance(values, dict) or cls.model_config["extra"] == "allow":
            return values
        known = {field.alias or name for name, field in cls.model_fields.items()}
        return {name: value for name, value in values.items() if name in known}

    def to_json(self) -> dict[str, Any]:
        """By the names of the keys, without defaults that were not written out: what a row stores."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class Component(ConfigSection):
    """A class by name, with values for its constructor: reader, model, metric, optimizer."""

    model_config = ConfigDict(extra="allow")

    target: Annotated[str, InWords("the name of a class")] = Field(alias="_target_")
    """the name of a class"""
    partial: bool = Field(False, alias="_partial_")
    """the call is completed later, as an optimizer's is with the parameters"""

    def check(self, key: str, packages: Sequence[str]) -> None:
        """Check the values, as :func:`elmo_tasks.config.components.check_values`."""
        components.check_values(key, self.to_json(), packages)

    def make(self, packages: Sequence[str] = (), /, **parts: Any) -> Any:
        """The object, as :func:`elmo_tasks.config.components.make`."""
        return components.make(self.to_json(), packages, **parts)


class WordsConfig(ConfigSection):
    """Word vectors."""

    name: Literal["glove", "random", "none"]
    """glove: pretrained; random: drawn and learned; none"""
    path: str | None
    """a GloVe text file; null: that of the package"""
    dim: Annotated[int, Range(0, 100_000)]
    """dimension of the vectors"""
    lowercase: bool
    """look words up in lower case if they are not found as written"""
    unknown: Literal["normal", "zeros"] = "normal"
    """rows of words without a vector: normal (drawn with the vectors' spread) or zeros"""
    unit_length: bool = False
    """scale each vector to length 1"""
    paper_dim: Annotated[Size | None, NO_EFFECT] = None
    """the paper's dimensions; at scale=paper others are an error"""
    any_dim: Annotated[bool, NO_EFFECT] = False
    """true: allow them"""


class StoreConfig(ConfigSection):
    """The store of a biLM's layers: each sentence's layers are computed once and read by all runs."""

    dir: Annotated[str, NO_EFFECT]
    """its folder"""
    keep: Literal["layers", "tokens"]
    """layers: all of each sentence; tokens (a biLM): the token layer of each word, and the LSTMs run every time"""
    dtype: Literal["float16", "float32"]
    """of the stored layers"""
    limit_gb: Annotated[Positive, NO_EFFECT]
    """refuse to fill more than this"""


class BilmConfig(ConfigSection):
    """The frozen biLM, or the encoder in its place (which has ``encoder``)."""

    name: Name
    """in names of runs and in tables"""
    path: Place
    """a folder with options.json and weights .hdf5, or an encoder's files; null: the bundled files"""
    state: Literal["reset", "carry", "warm"]
    """reset: zero state per sentence; carry: from sentence to sentence; warm: one fixed state"""
    precision: Literal["float32", "bfloat16", "int8"]
    """of matrix products; fewer bits need a processor that has instructions for them"""
    options: dict[str, Any]
    """sizes of the biLM, or the encoder's own settings"""
    store: StoreConfig
    warm_text: str | None = None
    """state=warm: a tokenised text, one sentence a line; null: the bundled one, which is English"""
    encoder: Component | None = None


class ElmoConfig(ConfigSection):
    """Where and how the biLM's layers enter the task model (sections 3.2 and 3.3 of the paper)."""

    placement: Placement
    """where: nowhere, at the input, at the output or at both"""
    mix: Mix
    """scalar (learned weights), last, mean, or one layer"""
    gamma: Literal["learned", "one"]
    """the factor on the mix; one: kept at 1"""
    lambda_: NotNegative = Field(alias="lambda")
    """penalty on the squared layer scalars"""
    dropout: Rate
    """on the ELMo vector"""
    layer_norm: bool
    """normalise each layer over the batch before mixing, as bilm-tf does"""


class DataConfig(ConfigSection):
    """Where the data come from."""

    name: Literal["sample", "local", "hub"]
    """the bundled sample, files below data.root, or the public hub"""
    root: Place
    """the folder of data=local"""
    fraction: Share
    """share of the training set that is used, the same items for every run with one seed"""


class ScaleConfig(ConfigSection):
    """Sizes and schedules."""

    name: Literal["paper", "cpu"]
    """the paper's, or narrower models with shorter schedules"""


class TrainerConfig(ConfigSection):
    """Epochs, device and precision."""

    max_epochs: Size | None
    """null: nothing is trained"""
    max_steps: Literal[-1] | Size
    """stop after this many updates; -1: never"""
    patience: Size | None
    """epochs without a better dev score until the run stops; null: never, and no run has converged"""
    accelerator: Annotated[Literal["auto", "cpu", "gpu"], NO_EFFECT]
    """where training and the biLM run"""
    devices: Annotated[Any, NO_EFFECT]
    """processes or GPUs of a machine, which share each batch; coref: one only"""
    num_nodes: Annotated[Size, NO_EFFECT]
    """machines"""
    precision: Literal["32-true", "bf16-mixed"]
    """of training"""
    threads: Annotated[Annotated[int, Range(1, 1024)] | None, NO_EFFECT]
    """CPU threads; null: all"""
    progress: Annotated[bool, NO_EFFECT]
    """show progress bars"""
    val_check_interval: Size | None
    """steps between dev scores, besides those at the end of each epoch and of training; null: only those"""
    limit_val_batches: DevBatches
    """share (1.0: all; task=lm: only 1.0) or number of dev batches read during training, drawn at random once"""


class LoggerConfig(ConfigSection):
    """Curves."""

    name: Literal["csv", "wandb", "tensorboard", "none"]
    """where they go"""
    project: str = "elmo_tasks"
    """of W&B"""
    offline: bool = True
    """W&B without an account; `wandb sync` uploads such a run later"""
    tags: Tags = ()
    """more tags of W&B"""


class PathsConfig(ConfigSection):
    """Where files are written."""

    outputs: str
    """runs, layers, rows, logs"""


class ResultsConfig(ConfigSection):
    """Where rows are written."""

    dir: str
    """a row (JSON) for each finished run"""


class FilesConfig(ConfigSection):
    """A task's files by split: patterns below data.root."""

    train: str
    dev: str | None
    test: str | None


class HubConfig(ConfigSection):
    """A task's copy on the public hub."""

    id: str
    splits: dict[str, str | None]
    """names of train, dev and test there"""


class TaskElmoConfig(ConfigSection):
    """A task's own values for the section ``elmo``."""

    placement: Placement
    mix: Mix = "scalar"
    lambda_: NotNegative = Field(0.0, alias="lambda")
    dropout: Rate = 0.0
    layer_norm: bool = False


class LmTrainingConfig(ConfigSection):
    """How a biLM is trained."""

    max_epochs: Annotated[Size, NO_EFFECT]
    """default of trainer.max_epochs"""
    patience: Annotated[Size | None, NO_EFFECT]
    """default of trainer.patience"""
    grad_norm: Positive | None
    """maximum gradient norm; null: no clipping"""
    schedule: Literal["linear", "halve", "decay"] | None
    """of the learning rate: linear (to zero), halve (when dev stalls) or decay (0.1 % every 100 updates)"""
    average: Rate | None
    """decay of the moving average of the weights; null: none"""


class TrainingConfig(LmTrainingConfig):
    """How a task model is trained."""

    batch_size: Size
    """items; coref: 1, a document"""
    batch_tokens: Size
    """padded tokens of a batch at most"""


class SourceConfig(ConfigSection):
    """Where the items of a task come from."""

    files: Annotated[FilesConfig, NO_EFFECT]
    hub: Annotated[HubConfig | None, NO_EFFECT]
    dev_share: Annotated[float, Range(0, 1, above=True, below=True)] | None
    """for a data set without dev: 0.1 takes a tenth of train (with task.files.dev=null)"""
    reader: Component


class SupervisedTaskConfig(SourceConfig):
    """A task with a model to train."""

    name: Name
    kind: Annotated[Literal["supervised"], NO_EFFECT]
    update_words: bool
    """train the word vectors too"""
    elmo: Annotated[TaskElmoConfig, NO_EFFECT]
    model: Component
    metric: Component
    optimizer: Component
    training: TrainingConfig
    words: Annotated[dict[str, Any] | None, NO_EFFECT] = None
    """defaults of the section words"""


class LmTextConfig(ConfigSection):
    """The text of a biLM's training."""

    text: str
    """shards: text files; or a task, whose training text is read, its dev text held out"""
    train: Annotated[str, NO_EFFECT]
    """text=shards: file pattern below data.root; also .xz, .gz and .bz2"""
    heldout: Annotated[str, NO_EFFECT]
    """as train, of the text that is scored"""
    changes: Annotated[dict[str, Any], NO_EFFECT]
    """a task's text: changes to that task's own files and reader"""
    init: Place
    """start from mini, small, mini_ko, a folder, or an earlier run's model.safetensors"""
    softmax_epochs: Count
    """if it has no softmax: first epochs, in which a new softmax alone is trained"""
    source: SourceConfig | None = None
    """a task's text: where it comes from; found, not set"""


class LanguageModelTaskConfig(ConfigSection):
    """The training of a biLM."""

    name: Name
    kind: Annotated[Literal["language_model"], NO_EFFECT]
    lm: LmTextConfig
    data: Component
    model: Component
    metric: Component
    optimizer: Component
    training: LmTrainingConfig


class SensesConfig(Component):
    """The sense-annotated text of a probe."""

    test: Annotated[Any, NO_EFFECT] = None
    """the sets of the test split, whose scores are recorded with their own digest"""


class SenseProbeTaskConfig(ConfigSection):
    """Text with senses, and nothing to train."""

    name: Name
    kind: Annotated[Literal["sense_probe"], NO_EFFECT]
    data: SensesConfig
    elmo: Annotated[TaskElmoConfig, NO_EFFECT]
    metric: Component


TaskConfig = Annotated[
    SupervisedTaskConfig | LanguageModelTaskConfig | SenseProbeTaskConfig, Field(discriminator="kind")
]


class Config(ConfigSection):
    """The whole configuration of a run."""

    words: WordsConfig
    bilm: BilmConfig
    task: TaskConfig
    elmo: ElmoConfig
    data: DataConfig
    scale: ScaleConfig
    trainer: TrainerConfig
    logger: LoggerConfig
    seed: Seed
    """of everything drawn at random"""
    test: bool
    """true: score the test set as well, once, with the checkpoint that dev chose"""
    ensemble: Seeds | None
    """[1,2,3]: train nothing; score the mean of these seeds' finished runs"""
    force: bool
    """true: run again even if there is a finished row, which is kept until the new one is written"""
    packages: Packages = ()
    """your own packages whose classes _target_ may name, besides this one and torch.optim"""
    if_running: Literal["refuse", "wait"] | None = None
    """if another process is making the same run: refuse or wait; null: wait in a sweep, else refuse"""
    plan: bool = False
    """true: compute nothing; estimate the disk, memory and time of the run on this machine"""
    paths: PathsConfig
    results: ResultsConfig

    def check_components(self) -> None:
        """Import every class that is named and check the values given for it; this takes seconds because of PyTorch.

        Raises:
            UserError: naming the key, what it may be, and what was found.
        """
        components.check_classes(self.to_json(), self.packages)
        for key, component in find_components(self):
            component.check(key, self.packages)


def find_components(section: ConfigSection, prefix: str = "") -> Iterator[tuple[str, Component]]:
    """The sections that name a class, with their keys."""
    for name in type(section).model_fields:
        part = getattr(section, name)
        if isinstance(part, Component):
            yield f"{prefix}{name}", part
        elif isinstance(part, ConfigSection):
            yield from find_components(part, f"{prefix}{name}.")
