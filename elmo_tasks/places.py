"""Where the files beside the code are: in a clone at its top level, in an installed package within it."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parent
BUNDLED = PACKAGE / "bundled"
"""The folder of the bundled biLMs and the bundled sample."""

SAMPLE = BUNDLED / "sample"
"""The data sets of ``data=sample``."""

SAMPLE_TEXT = SAMPLE / "lm" / "en"
"""English text for language models, one tokenised sentence a line: ``train-00.txt`` and ``heldout.txt``."""

HOME = PACKAGE if (PACKAGE / "conf").is_dir() else PACKAGE.parent
"""The folder that holds ``conf`` and ``experiments``."""

CONF = HOME / "conf"
EXPERIMENTS = HOME / "experiments"


def expand_home(path: str) -> str:
    """A path whose ``~`` at the beginning is the home folder, as a shell has it."""
    return str(Path(path).expanduser()) if path == "~" or path.startswith("~/") else path


def bundled_folder(name: str) -> Path | None:
    """Where the files of a bundled biLM are; None if there is none of that name."""
    folder = BUNDLED / "bilm" / name
    return folder if name == folder.name and folder.is_dir() else None
