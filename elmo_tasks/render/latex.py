"""A table in LaTeX that fits the page (packages ``booktabs``, ``array`` and ``longtable``)."""

from __future__ import annotations

import math
import re

from elmo_tasks.render.grid import Grid, numeric, one_line

_CHARACTERS = 84  # of \footnotesize that fit into the text width of an article
_NARROW = 12  # characters of a column that is not to be broken
_FLOAT = 40  # printed lines that a float has room for, above its notes


def latex(grid: Grid) -> str:
    """A ``table*``, or a ``longtable`` where there are too many lines for one page; notes stand below it.

    The caption omits the paper's table number, since LaTeX counts by itself. Where the lines are too long for the
    page, columns have shares of it and cells are broken.
    """
    lines = [grid.header, *grid.lines]
    texts = [[one_line(line[column]) for line in lines] for column in range(len(grid.header))]
    fits = sum(max(map(len, column)) + 2 for column in texts) <= _CHARACTERS
    shares = [1.0] * len(texts) if fits else _shares(texts)
    sides = ["left" if right else "right" for right in numeric(grid)]
    if fits:
        columns = "".join("r" if side == "left" else "l" for side in sides)
    else:
        columns = "".join(
            rf">{{\ragged{side}\arraybackslash}}p{{\dimexpr {share:.4f}\linewidth-2\tabcolsep}}"
            for side, share in zip(sides, shares, strict=True)
        )
    size = r"\footnotesize\setlength{\tabcolsep}{3pt}"
    caption = rf"\caption{{{latex_text(_unnumbered(grid.title))}}}"
    head, body = [r"\toprule", _line(grid.header), r"\midrule"], [*map(_line, grid.lines), r"\bottomrule"]
    if sum(_height(line, shares) for line in grid.lines) <= _FLOAT:
        begin, end = [r"\begin{table*}", rf"\centering{size}", caption], r"\end{table*}"
        table = [rf"\begin{{tabular}}{{{columns}}}", *head, *body, r"\end{tabular}"]
    else:
        begin, end = [rf"{{{size}"], "}"
        table = [rf"\begin{{longtable}}{{{columns}}}", rf"{caption}\\", *head, r"\endhead", *body, r"\end{longtable}"]
    return "\n".join([*begin, *table, *_notes(grid), end, ""])


def _shares(columns: list[list[str]]) -> list[float]:
    """Shares of the page width for columns of texts: short columns get what they need, the others share the rest."""
    longest = [max(map(len, texts)) for texts in columns]
    words = [max(len(word) for text in texts for word in [*text.split(), ""]) for texts in columns]
    parts = [math.sqrt(n) if n > _NARROW else 0 for n in longest]
    rest = _CHARACTERS - sum(n + 3 for n, part in zip(longest, parts, strict=True) if not part)
    widths = [
        max(rest * part / sum(parts), word + 2) if part else n + 3
        for n, word, part in zip(longest, words, parts, strict=True)
    ]
    return [width / sum(widths) for width in widths]


def _height(line: list[str], shares: list[float]) -> int:
    """How many lines a line of the table is printed on."""
    widths = [max(1, share * _CHARACTERS - 2) for share in shares]
    return max(math.ceil(len(one_line(cell)) / width) for cell, width in zip(line, widths, strict=True))


def _unnumbered(title: str) -> str:
    own = re.sub(r"^(Table|Figure) \d+: ", "", title)
    return own[:1].upper() + own[1:]


def _notes(grid: Grid) -> list[str]:
    """One paragraph."""
    text = r" \textbullet{} ".join(map(latex_text, grid.notes))
    return [rf"\par\smallskip\footnotesize\raggedright {text}\par"] if text else []


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\symbol{34}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "±": r"$\pm$",
    "-": "{-}",  # not the dash that two of them make
    "[": "{[}",  # not the argument of a line break before it
    "]": "{]}",
}


def latex_text(text: str) -> str:
    """Any text, escaped so that LaTeX prints it literally, in fonts of any encoding."""
    return "".join(_LATEX.get(character, character) for character in one_line(text))


def _line(cells: list[str]) -> str:
    return f"{' & '.join(map(latex_text, cells))} \\\\"
