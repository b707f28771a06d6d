import io
import re
import shutil
import string
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from elmo_tasks.render.grid import Grid, html, markdown, markdown_text
from elmo_tasks.render.latex import latex, latex_text
from elmo_tasks.render.terminal import print_grids

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
    """What LaTeX prints for this source, by a minimal reader; unescaped special characters are errors."""
    words = {
        "textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textless": "<", "textgreater": ">",
        "textbar": "|", "textasciigrave": "`", "textquotesingle": "'",
    }  # fmt: skip
    out, i = "", 0
    while i < len(source):
        character = source[i]
        if character == "\\":
            if source[i + 1] in "{}$&#%_":
                out, i = out + source[i + 1], i + 2
                continue
            if source.startswith(r"\symbol{34}", i):  # in whatever encoding
                out, i = out + '"', i + len(r"\symbol{34}")
                continue
            name = re.match(r"[A-Za-z]+", source[i + 1 :])
            assert name, source[i : i + 9]
            assert source[i + 1 + name.end() :].startswith("{}"), "the word would eat the space after it"
            out, i = out + words[name[0]], i + 1 + name.end() + 2
        elif source.startswith(r"$\pm$", i):
            out, i = out + "±", i + 5
        elif character == "{":  # a group around one character, which keeps it from joining its neighbours
            assert source[i + 2] == "}"
            out, i = out + source[i + 1], i + 3
        else:
            assert character not in '}$&#%_~^<>|"`' + "'-[]"
            out, i = out + character, i + 1
    return out


@pytest.mark.parametrize("text", [HOSTILE, string.printable, "--- ''", "\\\\[3pt]", "µ ü"])
def test_latex_prints_what_was_given(text: str) -> None:
    assert printed(latex_text(text)) == " ".join(text.split())


def test_a_latex_table_has_a_line_for_each_line_and_numbers_to_the_right() -> None:
    grid = Grid(
        "T & U", ["name", "score", "n"], [["a_b", "81.00 ± 1.41", "2"], ["c", "-", "10"]], ["A note, 5%.", "Another."]
    )
    assert latex(grid).splitlines() == [
        r"\begin{table*}",
        r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
        r"\caption{T \& U}",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"name & score & n \\",
        r"\midrule",
        r"a\_b & 81.00 $\pm$ 1.41 & 2 \\",
        r"c & {-} & 10 \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\smallskip\footnotesize\raggedright A note, 5\%. \textbullet{} Another.\par",
        r"\end{table*}",
    ]


def test_a_caption_leaves_the_number_to_latex() -> None:
    for title, caption in (("Table 1: six tasks", "Six tasks"), ("Figure 2: a: b", "A: b"), ("Tables: x", "Tables: x")):
        assert rf"\caption{{{caption}}}" in latex(Grid(title, ["a"], [["b"]]))


def test_columns_that_are_too_wide_for_a_page_share_it() -> None:
    long = "a word " * 40
    text = latex(
        Grid("T", ["name", "n", "text", "other"], [["a", "1", long, long], ["b", "2", "internationalisation", ""]])
    )
    (shares,) = re.findall(r"\\begin\{tabular\}\{(.*)\}$", text, flags=re.MULTILINE)
    widths = [float(width) for width in re.findall(r"p\{\\dimexpr ([\d.]+)\\linewidth-2\\tabcolsep\}", shares)]
    assert len(widths) == 4
    assert sum(widths) == pytest.approx(1, abs=1e-3)
    assert widths[2] == widths[3] > 0.4
    assert [">{\\raggedleft" in part for part in shares.split("}p")[:-1]] == [False, True, False, False]


def test_a_table_that_is_too_long_for_a_page_goes_over_several() -> None:
    short, long = (latex(Grid("T", ["a"], [["b"]] * n, ["A note."])) for n in (40, 41))
    assert r"\begin{table*}" in short
    assert "longtable" not in short
    assert r"\begin{longtable}{l}" in long
    assert r"\endhead" in long
    assert "table*" not in long
    wrapped = latex(Grid("T", ["a", "b"], [["word " * 80, "b"]] * 12))
    assert "longtable" in wrapped  # twelve lines, each on several


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_takes_the_tables(tmp_path: Path) -> None:
    grids = [
        Grid("Table 1: x", ["a", HOSTILE.replace("é", "e")], [["b", "word " * 40]] * n, ["note", "note"])
        for n in (1, 41)
    ]
    head = "\\documentclass{article}\\usepackage{booktabs,array,longtable}\\begin{document}\n"
    (tmp_path / "a.tex").write_text(head + "\n".join(map(latex, grids)) + "\\end{document}", "utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "a.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]


def test_html_shows_what_was_given_and_has_no_tag_from_it() -> None:
    parser = Cells()
    parser.feed(html(Grid(HOSTILE, [HOSTILE, "b"], [[HOSTILE, "1"]], [HOSTILE])))
    cells = [cell.replace("\N{NO-BREAK SPACE}", " ") for cell in parser.cells]
    assert cells == [HOSTILE, "b", HOSTILE, "1"]
    assert set(parser.tags) == {"figure", "figcaption", "div", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<script>alert(1)</script> & more", "&lt;script>alert(1)&lt;/script> & more"),
        ("a < b > c <0.05 <= 1", "a < b > c <0.05 <= 1"),
        ("<!-- a --> <?b?> <http://c> <d@e.f>", "&lt;!-- a --> &lt;?b?> &lt;http://c> &lt;d@e.f>"),
        ("&lt;b> &#60;b> &#x3C;", "&amp;lt;b> &amp;#60;b> &amp;#x3C;"),
        ("> a quotation", "&gt; a quotation"),
        ("a | b", r"a \| b"),
        ("[click](javascript:x)", r"[click]\(javascript:x)"),
        ("![x](http://y)", r"![x]\(http://y)"),
        ("*bold* `code` ~gone~ $x$", r"\*bold\* \`code\` \~gone\~ \$x\$"),
        ("_a_ mini_ko", r"\_a\_ mini_ko"),
        ("a\\", "a\\\\"),
        ("# no heading", r"\# no heading"),
        ("70.20 ± 0.80 (5) [ab]", "70.20 ± 0.80 (5) [ab]"),
    ],
)
def test_markdown_prints_any_text_as_it_is(text: str, expected: str) -> None:
    assert markdown_text(text) == expected
    assert expected in markdown(Grid("T", ["a"], [[text]], [text]))


def test_a_terminal_shows_aligned_columns_and_cuts_no_word() -> None:
    words = ["internationalisation-of-everything", "short"]
    grid = Grid("Title", ["name", "score"], [[words[0], "81.00"], [words[1], "7.25"]], ["a note of several words"])
    for width in (20, 200):
        file = io.StringIO()
        print_grids([grid], Console(file=file, width=width))
        lines = file.getvalue().splitlines()
        assert lines[0] == "Title"
        assert [line.split() for line in lines[1:4]] == [["name", "score"], [words[0], "81.00"], [words[1], "7.25"]]
        assert lines[2].rindex("81.00") + 5 == lines[3].rindex("7.25") + 4  # to the right
        assert "- a note of several words" in lines


def test_a_terminal_breaks_lines_between_words_alone() -> None:
    text = "some words that are too many for one line of a narrow terminal"
    file = io.StringIO()
    print_grids([Grid("T", ["a", "b"], [[text, "[red]x[/red]"]])], Console(file=file, width=40))
    assert set(text.split()) <= set(file.getvalue().split())
    assert "[red]x[/red]" in file.getvalue()  # no markup of the terminal's
    assert max(map(len, file.getvalue().splitlines())) <= 40


def test_a_bar_or_a_line_break_in_a_cell_does_not_break_a_markdown_table() -> None:
    text = markdown(Grid("T", ["a"], [["x | y\nz"]], ["A note."]))
    assert text == "| a |\n| --- |\n| x \\| y z |\n\n- A note."


def test_lines_are_as_long_as_the_header() -> None:
    with pytest.raises(ValueError, match="1 cells in a line below 2 headings"):
        Grid("T", ["a", "b"], [["x"]])
