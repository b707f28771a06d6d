"""``python -m elmo_tasks COMMAND ...`` is the command ``elmo-tasks``."""

from elmo_tasks.cli.main import main

if __name__ == "__main__":
    main()
