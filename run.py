"""``python run.py task=ner elmo.placement=both``: one experiment, or a sweep with ``-m``. See conf/ for every key."""

import sys

from elmo_tasks import interrupts

if __name__ == "__main__":
    interrupts.install()  # before the imports that take seconds
    from elmo_tasks.cli.run import start

    start(sys.argv[1:], __file__)
