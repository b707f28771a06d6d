"""The one exception for whatever a user can mend: its message is the whole explanation."""

from __future__ import annotations


class UserError(Exception):
    """Bad input: one clear sentence that names the file, line or key, what was expected and what was found.

    ``run.py`` prints the sentence without a traceback and exits with status 1.
    """
