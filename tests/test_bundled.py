"""The bundled files are those that the published rows were measured with: no edit may change them unnoticed."""

import hashlib
from pathlib import Path

BUNDLED = Path(__file__).parents[1] / "elmo_tasks" / "bundled"
SUMS = Path(__file__).parent / "bundled.sha256"


def test_every_bundled_file_has_its_checksum() -> None:
    """After a change that is meant: cd elmo_tasks/bundled; find . -type f ! -name '*.md' | sort | xargs sha256sum."""
    expected = {name: digest for digest, name in (line.split() for line in SUMS.read_text().splitlines())}
    files = sorted(path for path in BUNDLED.rglob("*") if path.is_file() and path.suffix != ".md")
    found = {f"./{path.relative_to(BUNDLED)}": hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    assert found == expected
