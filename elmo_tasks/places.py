"""Where the files beside the code are: in a clone at its top level, in an installed package within it."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parent
BUNDLED = PACKAGE / "bundled"
"""The bundled biLMs and the bundled sample."""

HOME = PACKAGE if (PACKAGE / "conf").is_dir() else PACKAGE.parent
"""The folder that holds ``conf`` and ``experiments``."""

CONF = HOME / "conf"
EXPERIMENTS = HOME / "experiments"
