"""Table 4: the nearest neighbours of "play" in two of its senses, by biLM layer, beside those of its word vector.

The sentences are ours; ``--text`` gives the corpus whose words are compared (the bundled sample if it is left out),
``--candidates same`` looks at other occurrences of the word alone. For other words, or sentences of your own, see
``python -m elmo_tasks.probes.neighbours --help``.
"""

from __future__ import annotations

from elmo_tasks.command_line import run_command
from elmo_tasks.probes.neighbours import main as print_neighbours

WORD = "play"
SENTENCES = (
    "The shortstop made a brilliant play on the ground ball in the ninth inning .",
    "She agreed to act in a new play that opens on Broadway in the autumn .",
)


def main(arguments: list[str]) -> None:
    """Print the neighbours; further arguments are those of ``elmo_tasks.probes.neighbours``."""
    print_neighbours([WORD, *(f"--sentence={sentence}" for sentence in SENTENCES), *arguments])


if __name__ == "__main__":
    run_command(main)
