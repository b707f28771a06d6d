"""Every key of the configuration with its type and range; ``conf/`` says what each is for.

The name of a field ends in ``_`` where its key is a Python keyword. A field with a default may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from elmo_tasks.values import (
    Count,
    DevBatches,
    Matching,
    Name,
    NotNegative,
    Positive,
    Range,
    Rate,
    Seed,
    Share,
    Size,
)

Mix = Annotated[str, Matching(r"scalar|last|mean|layer_\d{1,4}", "one of scalar, last, mean, layer_0, layer_1, ...")]
Placement = Literal["none", "input", "output", "both"]


@dataclass
class WordsSection:
    """Word vectors."""

    name: Literal["glove", "random", "none"]
    path: str | None
    dim: Annotated[int, Range(0, 100_000)]
    lowercase: bool
    unknown: Literal["normal", "zeros"] = "normal"
    unit_length: bool = False
    paper_dim: Size | None = None
    any_dim: bool = False


@dataclass
class StoreSection:
    """The store of a biLM's layers."""

    dir: str
    keep: Literal["layers", "tokens"]
    dtype: Literal["float16", "float32"]
    limit_gb: Positive


@dataclass
class BilmSection:
    """The biLM, or the encoder in its place (which has ``encoder``)."""

    name: Name
    path: str | None
    state: Literal["reset", "carry", "warm"]
    precision: Literal["float32", "bfloat16", "int8"]
    options: dict[str, Any]
    store: StoreSection
    warm_text: str | None = None
    encoder: dict[str, Any] | None = None


@dataclass
class ElmoSection:
    """Where and how the biLM's layers enter the task model."""

    placement: Placement
    mix: Mix
    gamma: Literal["learned", "one"]
    lambda_: NotNegative
    dropout: Rate
    layer_norm: bool


@dataclass
class DataSection:
    """Where the data come from."""

    name: Literal["sample", "local", "hub"]
    root: str | None
    fraction: Share


@dataclass
class ScaleSection:
    """Sizes and schedules."""

    name: Literal["paper", "cpu"]


@dataclass
class TrainerSection:
    """Lightning's trainer; ``max_epochs`` is null where nothing is trained."""

    max_epochs: Size | None
    max_steps: Literal[-1] | Size
    patience: Size | None
    accelerator: Literal["auto", "cpu", "gpu"]
    devices: Any  # Lightning checks it
    num_nodes: Size
    precision: Literal["32-true", "bf16-mixed"]
    threads: Annotated[int, Range(1, 1024)] | None
    progress: bool
    val_check_interval: Size | None
    limit_val_batches: DevBatches


@dataclass
class LoggerSection:
    """Curves."""

    name: Literal["csv", "wandb", "tensorboard", "none"]
    project: str = "elmo_tasks"
    offline: bool = True
    tags: Any = ()  # see validate.py


@dataclass
class PathsSection:
    """Where files are written."""

    outputs: str


@dataclass
class ResultsSection:
    """Where rows are written."""

    dir: str


@dataclass
class FilesSection:
    """A task's files by split."""

    train: str
    dev: str | None
    test: str | None


@dataclass
class HubSection:
    """A task's copy on the public hub."""

    id: str
    splits: dict[str, str | None]


@dataclass
class TaskElmoSection:
    """A task's own values for the section ``elmo``."""

    placement: Placement
    mix: Mix = "scalar"
    lambda_: NotNegative = 0.0
    dropout: Rate = 0.0
    layer_norm: bool = False


@dataclass
class LmTrainingSection:
    """How a biLM is trained."""

    max_epochs: Size
    patience: Size | None
    grad_norm: Positive | None
    schedule: Literal["linear", "halve", "decay"] | None
    average: Rate | None


@dataclass
class TrainingSection(LmTrainingSection):
    """How a task model is trained."""

    batch_size: Size
    batch_tokens: Size


@dataclass
class SupervisedTask:
    """A task with a model to train."""

    name: Name
    kind: Literal["supervised"]
    files: FilesSection
    hub: HubSection | None
    dev_share: Annotated[float, Range(0, 1, above=True, below=True)] | None
    update_words: bool
    elmo: TaskElmoSection
    reader: dict[str, Any]
    model: dict[str, Any]
    metric: dict[str, Any]
    optimizer: dict[str, Any]
    training: TrainingSection
    words: dict[str, Any] | None = None


@dataclass
class LmSection:
    """The text of a biLM's training."""

    text: str
    train: str
    heldout: str
    changes: dict[str, Any]
    init: str | None
    softmax_epochs: Count


@dataclass
class LanguageModelTask:
    """The training of a biLM."""

    name: Name
    kind: Literal["language_model"]
    lm: LmSection
    data: dict[str, Any]
    model: dict[str, Any]
    metric: dict[str, Any]
    optimizer: dict[str, Any]
    training: LmTrainingSection


@dataclass
class SenseProbeTask:
    """Text with senses, and nothing to train."""

    name: Name
    kind: Literal["sense_probe"]
    data: dict[str, Any]
    elmo: TaskElmoSection
    metric: dict[str, Any]


TASKS = {"supervised": SupervisedTask, "language_model": LanguageModelTask, "sense_probe": SenseProbeTask}


@dataclass
class Configuration:
    """The whole configuration."""

    words: WordsSection
    bilm: BilmSection
    task: Any  # one of TASKS
    elmo: ElmoSection
    data: DataSection
    scale: ScaleSection
    trainer: TrainerSection
    logger: LoggerSection
    seed: Seed
    test: bool
    ensemble: Any  # see validate.py
    force: bool
    plan: bool
    if_running: Literal["refuse", "wait"] | None
    packages: Any  # see validate.py
    paths: PathsSection
    results: ResultsSection
