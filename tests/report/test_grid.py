import re
import string
from html.parser import HTMLParser

import pytest

from elmo_tasks.report import Grid, html, latex, markdown
from elmo_tasks.report.grid import latex_text

HOSTILE = "</td><script>alert(1)</script> | a_b & 50% $x$ #1 {c} ~ ^ \\end{table} \"q\" 'p' `r` -- [2] ± é"


class Cells(HTMLParser):
    """The texts of the cells, and every tag."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attributes: object) -> None:
        self.tags.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.tags[-1] in ("td", "th") and self.cells:
            self.cells[-1] += data.strip("\n")


def printed(source: str) -> str:
    """What LaTeX prints for this source, by a reader that knows no more than it must; unescaped specials are errors."""
    words = {
        "textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textless": "<", "textgreater": ">",
        "textbar": "|", "textquotedbl": '"', "textasciigrave": "`", "textquotesingle": "'",
    }  # fmt: skip
    out, i = "", 0
    while i < len(source):
        sign = source[i]
        if sign == "\\":
            if source[i + 1] in "{}$&#%_":
                out, i = out + source[i + 1], i + 2
                continue
            name = re.match(r"[A-Za-z]+", source[i + 1 :])
            assert name, source[i : i + 9]
            assert source[i + 1 + name.end() :].startswith("{}"), "the word would eat the space behind it"
            out, i = out + words[name[0]], i + 1 + name.end() + 2
        elif source.startswith(r"$\pm$", i):
            out, i = out + "±", i + 5
        elif sign == "{":  # a group around one sign, which keeps it from joining its neighbours
            assert source[i + 2] == "}"
            out, i = out + source[i + 1], i + 3
        else:
            assert sign not in '}$&#%_~^<>|"`' + "'-[]"
            out, i = out + sign, i + 1
    return out


@pytest.mark.parametrize("text", [HOSTILE, string.printable, "--- ''", "\\\\[3pt]", "µ ü"])
def test_latex_prints_what_was_given(text: str) -> None:
    assert printed(latex_text(text)) == " ".join(text.split())


def test_a_latex_table_has_a_line_for_each_line_and_numbers_to_the_right() -> None:
    grid = Grid("T & U", ["name", "score", "n"], [["a_b", "81.00 ± 1.41", "2"], ["c", "-", "10"]], ["A note, 5%."])
    assert latex(grid).splitlines() == [
        r"\begin{table}",
        r"\centering\small",
        r"\caption{T \& U}",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"name & score & n \\",
        r"\midrule",
        r"a\_b & 81.00 $\pm$ 1.41 & 2 \\",
        r"c & {-} & 10 \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\smallskip\footnotesize A note, 5\%.",
        r"\end{table}",
    ]


def test_html_shows_what_was_given_and_has_no_tag_from_it() -> None:
    parser = Cells()
    parser.feed(html(Grid(HOSTILE, [HOSTILE, "b"], [[HOSTILE, "1"]], [HOSTILE])))
    assert parser.cells == [HOSTILE, "b", HOSTILE, "1"]
    assert set(parser.tags) == {"figure", "figcaption", "table", "thead", "tbody", "tr", "th", "td", "p"}


def test_a_bar_or_a_line_break_in_a_cell_does_not_break_a_markdown_table() -> None:
    text = markdown(Grid("T", ["a"], [["x | y\nz"]], ["A note."]))
    assert text == "| a |\n| --- |\n| x \\| y z |\n\n- A note."


def test_lines_are_as_long_as_the_header() -> None:
    with pytest.raises(ValueError, match="1 cells in a line below 2 headings"):
        Grid("T", ["a", "b"], [["x"]])
