from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["WANDB_MODE"] = "offline"
os.environ["OMP_NUM_THREADS"] = "1"  # in programs that tests start: more would wait for each other

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from elmo_tasks.bilm import BiLM
from elmo_tasks.bilm.options import BiLMOptions

REPO = Path(__file__).parent.parent

pytest_plugins = ["tiny_encoders"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first, so that all processes end at about the same time."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(autouse=True)
def _one_thread_and_a_fixed_seed() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def shared() -> Path:
    folder = REPO.parent / "shared"
    if not folder.is_dir():
        pytest.skip("needs ../shared")
    return folder


@pytest.fixture
def limited(capsys: pytest.CaptureFixture[str]) -> Callable[[int], AbstractContextManager[None]]:
    """Within ``limited(n)`` no file grows beyond n bytes, as on a full disk; what pytest captures stays in memory."""

    @contextmanager
    def limit(n_bytes: int) -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limit


class Largest(TorchDispatchMode):
    """Elements of the largest tensor that any operation within it makes."""

    def __init__(self) -> None:
        super().__init__()
        self.n_elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        sizes = [leaf.numel() for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]
        self.n_elements = max(self.n_elements, *sizes, 0)
        return out


@pytest.fixture
def largest() -> Largest:
    return Largest()


@pytest.fixture(scope="session")
def shake() -> Callable[[nn.Module], nn.Module]:
    """Makes every parameter matter: as initialised, the biases are zero and the highways nearly closed."""

    def shake(module: nn.Module, seed: int = 1, std: float = 0.5) -> nn.Module:
        generator = torch.Generator().manual_seed(seed)
        for parameter in module.parameters():
            nn.init.normal_(parameter, std=std, generator=generator)
        return module

    return shake


@pytest.fixture(scope="session")
def tiny_options() -> BiLMOptions:
    return BiLMOptions(
        filters=((1, 4), (2, 8), (3, 8)), character_dim=4, n_highway=1, dim=12, projection_dim=6
    )  # two LSTM layers, skip connection, clips at 3


@pytest.fixture
def tiny_bilm(tiny_options: BiLMOptions, shake: Callable[[nn.Module], nn.Module]) -> BiLM:
    bilm = shake(BiLM(tiny_options)).eval().requires_grad_(False)
    bilm.encoder.characters[0] = 0  # the row for "no word here" is in no weight file
    return bilm
