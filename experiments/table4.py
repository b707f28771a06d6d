"""Table 4: the nearest neighbours of "play" in two of its senses, by biLM layer, beside those of its word vector.

The sentences are ours; ``--text`` gives the corpus whose words are compared (the bundled sample if it is left out),
``--candidates same`` looks at other occurrences of the word alone. For other words, or sentences of your own, see
``python -m elmo_tasks.probes.neighbours --help``.
"""

import sys

from elmo_tasks.probes.neighbours import main

WORD = "play"
SENTENCES = (
    "The shortstop made a brilliant play on the ground ball in the ninth inning .",
    "She agreed to act in a new play that opens on Broadway in the autumn .",
)

if __name__ == "__main__":
    main([WORD, *(f"--sentence={sentence}" for sentence in SENTENCES), *sys.argv[1:]])
