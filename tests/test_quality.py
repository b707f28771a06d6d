import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["ruff check .", "ruff format --check ."])
def test_the_code_passes(command: str) -> None:
    """mypy passes too: tests/docs/test_extending.py calls it for the package and one more task."""
    done = subprocess.run([sys.executable, "-m", *command.split()], cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
