"""Reports: tables, figures and a page from rows, and from nothing else (``python -m elmo_tasks.report --help``)."""

from elmo_tasks.report.document import render, renew
from elmo_tasks.report.grid import Grid, html, markdown
from elmo_tasks.report.tex import latex

__all__ = ["Grid", "html", "latex", "markdown", "render", "renew"]
