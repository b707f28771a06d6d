import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "elmo_tasks"
FRAMEWORKS = {"pytorch_lightning", "hydra", "omegaconf", "wandb"}


def imports(path: Path) -> set[str]:
    """Every module that a file imports, at the top or within functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return found


def files(*places: str) -> list[Path]:
    return [
        f for place in places for f in ([PACKAGE / place] if place.endswith(".py") else (PACKAGE / place).rglob("*.py"))
    ]


@pytest.mark.parametrize("path", files("models", "nn", "metrics", "bilm", "encoders", "elmo.py", "batch.py"), ids=str)
def test_models_know_no_framework(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(path)} & FRAMEWORKS


@pytest.mark.parametrize("path", files("data"), ids=str)
def test_data_imports_no_model(path: Path) -> None:
    assert not any(name.startswith(("elmo_tasks.models", "elmo_tasks.module")) for name in imports(path))


def test_reports_read_rows_and_nothing_else() -> None:
    found = set.union(*(imports(path) for path in files("report")))
    assert {name.split(".")[1] for name in found if name.startswith("elmo_tasks.")} == {"errors", "results", "report"}
    assert not {name.split(".")[0] for name in found} & {"torch", "numpy", "pytorch_lightning", "hydra", "omegaconf"}


def test_only_build_instantiates() -> None:
    users = {path.name for path in PACKAGE.rglob("*.py") if any("instantiate" in name for name in imports(path))}
    assert users == {"instances.py"}


def test_nothing_is_unpickled() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert not imports(path) & {"pickle", "dill", "joblib", "cloudpickle"}, path
        assert "torch.load(" not in path.read_text("utf-8"), path
