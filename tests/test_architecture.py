import ast
import re
from collections import defaultdict
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


NO_FRAMEWORK = ("models", "nn", "metrics", "bilm", "encoders", "store", "elmo.py", "batch.py")


@pytest.mark.parametrize("path", files(*NO_FRAMEWORK), ids=str)
def test_models_import_no_framework(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(path)} & FRAMEWORKS


@pytest.mark.parametrize("path", files("data"), ids=str)
def test_data_imports_no_model(path: Path) -> None:
    assert not any(name.startswith(("elmo_tasks.models", "elmo_tasks.training.module")) for name in imports(path))


@pytest.mark.parametrize(
    ("folder", "known"),
    [("rows", {"config", "errors", "files", "rows"}), ("render", {"errors", "files", "rows", "render"})],
)
def test_rows_tables_and_rendering_import_no_framework(folder: str, known: set[str]) -> None:
    found = set.union(*(imports(path) for path in files(folder)))
    assert {name.split(".")[1] for name in found if name.startswith("elmo_tasks.")} <= known
    assert not {name.split(".")[0] for name in found} & {"torch", "numpy", "pytorch_lightning", "hydra", "omegaconf"}


def test_tables_import_no_model() -> None:
    found = set.union(*(imports(path) for path in files("tables")))
    assert not {name for name in found if name.startswith(("elmo_tasks.models", "elmo_tasks.runs", "torch"))}


def test_hydra_instantiates_nothing() -> None:
    assert not [path for path in PACKAGE.rglob("*.py") if any("instantiate" in name for name in imports(path))]


def test_public_classes_have_different_names() -> None:
    found = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_nothing_is_unpickled() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert not imports(path) & {"pickle", "dill", "joblib", "cloudpickle"}, path
        assert "torch.load(" not in path.read_text("utf-8"), path


FLOORS = [
    {"errors", "formatting", "interrupts", "places", "processor", "values", "batch"},
    {"command_line", "files", "progress", "config"},
    {"lock", "rows", "tensors", "nn"},
    {"render", "elmo", "encoders"},
    {"bilm"},
    {"store"},
    {"data"},
    {"metrics", "models"},
    {"training"},
    {"pretrain"},
    {"assembly", "probes"},
    {"planning"},
    {"runs", "tables"},
    {"report", "predict", "embedding"},
    {"cli"},
]
"""Folders and modules of the package from the ground up: each imports from lower floors, and from none beside it."""


def find_room(path: Path) -> str:
    """The folder of a file, or the file itself at the top of the package."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def arrows() -> dict[str, set[str]]:
    """What each folder imports; ``__main__`` and the package's own front door may import anything."""
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        if path.name == "__main__.py" or path == PACKAGE / "__init__.py":
            continue
        names = {name.split(".")[1] for name in imports(path) if name.startswith("elmo_tasks.")}
        found.setdefault(find_room(path), set()).update(names - {find_room(path), "__version__"})
    return found


def test_every_folder_has_a_layer_of_the_architecture() -> None:
    assert set(arrows()) == set.union(*FLOORS)


@pytest.mark.parametrize("room", sorted(set.union(*FLOORS)))
def test_folders_import_from_lower_layers_only(room: str) -> None:
    height = {name: floor for floor, names in enumerate(FLOORS) for name in names}
    assert not {name for name in arrows()[room] if height[name] >= height[room]}


KIND_FILES = {"supervised.py", "language_model.py", "sense_probe.py", "ensemble.py", "interface.py"}
PROBES = re.compile(r"""["']lm["'] (not )?in |isinstance\([^)]*\b(LmData|WsdData|TaskData|LanguageModel)\b""")


def test_the_kind_of_a_run_is_not_guessed() -> None:
    for path in PACKAGE.rglob("*.py"):
        found = PROBES.search(path.read_text("utf-8"))
        assert found is None, f"{path}: {found}"


def test_a_kind_of_run_imports_no_other_kind() -> None:
    kinds = {f"elmo_tasks.runs.{name.removesuffix('.py')}" for name in KIND_FILES - {"interface.py"}}
    for name in KIND_FILES - {"interface.py"}:
        assert not imports(PACKAGE / "runs" / name) & kinds, name


def test_no_shared_file_names_a_task() -> None:
    tasks = {path.stem for path in (PACKAGE.parent / "conf" / "task").glob("*.yaml")} - {"lm"}
    for folder in ("config", "assembly", "training", "runs", "store", "nn"):
        for path in (PACKAGE / folder).rglob("*.py"):
            texts = {
                node.value
                for node in ast.walk(ast.parse(path.read_text("utf-8")))
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
            }
            assert not texts & tasks, path
