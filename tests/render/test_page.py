import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.render.grid import Grid
from elmo_tasks.render.page import page
from elmo_tasks.render.sections import Section
from elmo_tasks.render.series import Pair, point
from elmo_tasks.report import sections
from elmo_tasks.rows.collection import Rows, read_rows
from elmo_tasks.rows.schema import FailedRow, Row

pytest.importorskip("matplotlib")

MakeRow = Callable[..., Row]
HOSTILE = "</script><script>boom()</script><img src=x onerror=boom()> \"'><b> <!-- ]]> &lt; `${x}`"
VOID = {"meta", "input", "link", "img", "br", "hr"}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Document(HTMLParser):
    """A strict reader: every element is closed where it should be, every attribute is given once."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({key for key, _ in attrs}) == len(attrs), (tag, attrs)
        self.elements.append((tag, {key: value or "" for key, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag, (tag, self.open[-3:])

    def handle_data(self, data: str) -> None:
        self.text.append(data)


HOSTILE_ROW: dict[str, Any] = {
    "run_id": HOSTILE,
    "commit": HOSTILE,
    "task": HOSTILE,
    "scale": HOSTILE,
    "device": HOSTILE,
    "data.name": HOSTILE,
    "config.data.name": HOSTILE,
    "config.task.name": HOSTILE,
    "config.words.name": HOSTILE,
    "config.words.x": {HOSTILE: [HOSTILE]},
    f"scores.dev.{HOSTILE.replace('.', '')}": 1.0,
}


@pytest.fixture(scope="module")
def rows(make_row: MakeRow, make_lm_row: MakeRow) -> Rows:
    changes = {"language_model.initial.name": HOSTILE, "language_model.text": HOSTILE, "training.converged": False}
    lm = make_lm_row(9, 120.0, 30.0, changes)
    header = {name: getattr(lm, name) for name in ("task", "slug", "scale", "created", "commit", "dirty", "versions")}
    failed = FailedRow(**header, run_id="f", kind="supervised", seed=None, bilm=None, config={}, error=HOSTILE)
    finished = [make_row(seed, [10.0, 20.0 + seed], placement=p) for seed in (1, 2) for p in ("none", "both")]
    finished += [make_row(3, [5.0, 7.0], changes=HOSTILE_ROW), lm]
    return Rows((), finished, [failed], [f"a.json: {HOSTILE}"])


@pytest.fixture(scope="module")
def whole(rows: Rows) -> str:
    return page(sections(rows), rows)


def test_the_page_is_well_formed_and_no_id_is_used_twice(whole: str) -> None:
    document = Document(whole)
    ids = [attributes["id"] for _, attributes in document.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for tag, attributes in document.elements if tag == "a"]
    assert links
    assert all(link.removeprefix("#") in ids for link in links)


def test_the_page_loads_nothing(whole: str) -> None:
    document = Document(whole)
    assert not re.search(r"https?:|//\w|@import|url\((?!#)", re.sub(re.escape(HOSTILE), "", whole))
    for tag, attributes in document.elements:
        assert tag not in {"img", "link", "iframe", "object", "embed", "base", "audio", "video", "source"}
        assert not {"src", "action", "srcset", "data"} & set(attributes), attributes
        assert attributes.get("href", "#").startswith("#")
        assert not [key for key in attributes if key.startswith("on")]
    (policy,) = [a["content"] for tag, a in document.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")


def test_text_from_a_row_stays_text(whole: str) -> None:
    document = Document(whole)
    assert [tag for tag, _ in document.elements].count("script") == 1
    assert not {"b", "img"} & {tag for tag, _ in document.elements}
    assert HOSTILE in "".join(document.text)
    assert HOSTILE in [attributes.get("data-task") for _, attributes in document.elements]
    assert "<script>boom" not in whole


def test_every_row_is_in_the_list_and_failed_and_left_out_ones_are_named(whole: str) -> None:
    document = Document(whole)
    runs = [attributes for tag, attributes in document.elements if attributes.get("class") == "run"]
    assert [run["data-status"] for run in runs].count("finished") == 6
    assert [run["data-status"] for run in runs].count("failed") == 1
    assert not [run for run in runs if run["data-status"] == "still rising"]  # a biLM is trained for fixed epochs
    assert "6 finished runs, 1 failed, 1 left out." in document.text
    assert f"a.json: {HOSTILE}" in document.text


def test_the_page_opens_with_the_chart_of_gains(whole: str) -> None:
    assert whole.index("ELMo against the baseline") < whole.index("<svg") < whole.index("<h2>Scores")


def test_sections_come_in_the_given_order_with_their_tables_and_figures(rows: Rows) -> None:
    pair = Pair("NER", point(0, [50.0]), point(0, [60.0]), 10.0)
    parts = [Section(Grid("Table <1>", ["a"], [["7.25"]])), Section(Grid("Figure 1"), pairs=(pair,))]
    text = page(parts, rows)
    headings = [re.sub("<[^>]+>", "", h) for h in re.findall(r"<h2>(.*?)</h2>", text)]
    assert headings == ["Table &lt;1&gt;", "Figure 1", "Runs"]
    assert "7.25" in Document(text).text
    assert text.index("7.25") < text.index("Figure 1</h2>") < text.index("<svg") < text.index("<h2>Runs")


def test_curves_are_folded_and_panels_and_lines_say_what_they_are_of(whole: str) -> None:
    (curves,) = re.findall(r"<details><summary>\d+ charts</summary>(.*?)</details>", whole, flags=re.DOTALL)
    assert 'data-task="ner"' in curves
    assert re.search(r'<tr data-task="ner" data-data="local" data-scale="cpu" data-placement="both">', whole)


def test_a_run_shows_its_curve_and_its_weights(whole: str) -> None:
    (run,) = re.findall(r"<h3>ner-both-l0.1-u1000-s2</h3>.*?</details></details>", whole, flags=re.DOTALL)
    cells = re.findall(r"<td[^>]*>(.*?)</td>", run)
    weights = ["0.500, 0.250, 0.250", "3.000"] * 2
    assert cells[:2] == ["dev", "22.00"]
    assert cells[2:] == ["1", "10.00", "1.50", *weights, "2", "22.00", "1.50", *weights]
    assert 'points="4.0,56.0 296.0,4.0"' in run  # lowest at the bottom left, highest at the top right
    assert "config" not in cells
    assert "trainer.max_epochs = 10" in run


def open_in_browser(path: Path, fragment: str, folder: Path, *more: str) -> tuple[str, str]:
    """The page's elements after its script ran, and what the browser logged."""
    assert CHROMIUM is not None
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    flags += " --disable-component-update --disable-sync --enable-logging=stderr --dump-dom"
    command = [CHROMIUM, *flags.split(), *more, f"--user-data-dir={folder}", f"{path.as_uri()}{fragment}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_opens_the_page_from_disk_and_filters(whole: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    spy = "<script>document.title = 'injected'</script>"  # the page's policy must not let this run
    path.write_text(whole.replace("</main>", f"{spy}</main>"), "utf-8")
    text, log = open_in_browser(path, "#task=ner&placement=both&text=s2", tmp_path / "profile")
    shown = [r for r in re.findall(r'<details class="run"([^>]*)>', text) if " hidden" not in r]
    assert len(shown) == 1, log
    assert 'data-task="ner"' in shown[0]
    assert 'data-seed="2"' in shown[0]
    assert "1 of 7 runs" in text
    assert "<title>ELMo downstream tasks</title>" in text
    messages = [line for line in log.splitlines() if "CONSOLE" in line]
    assert len(messages) == 1  # the spy was refused, and that was all
    assert "Content Security Policy" in messages[0]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_filters_reach_tables_and_figures_and_a_click_sorts(rows: Rows, whole: str, tmp_path: Path) -> None:
    grid = Grid("T", ["name", "n"], [["b", "10.00"], ["c", "-"], ["a", "9.50"]])
    click = (
        "<script>const th = document.querySelectorAll('main > section > .grid th')[1].firstChild; th.click();</script>"
    )
    path = tmp_path / "sorted.html"
    # the page's own policy refuses other scripts, so that this page goes without it
    text = page([Section(grid)], Rows((), [], [], [])).replace("</body>", f"{click}</body>")
    path.write_text(re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text), "utf-8")
    shown, _ = open_in_browser(path, "", tmp_path / "profile")
    assert re.findall(r"<td>([abc])</td>", shown) == ["a", "b", "c"]  # as numbers, what is none stands last
    assert 'aria-sort="ascending"' in shown

    path = tmp_path / "report.html"
    path.write_text(whole, "utf-8")
    shown, _ = open_in_browser(path, "#task=ner&placement=none", tmp_path / "profile")
    lines = re.findall(r'<tr data-task="([^"]*)"[^>]*data-placement="([^"]*)"([^>]*)>', shown)
    assert len({(task, place) for task, place, _ in lines}) > 2
    assert {(task, place) for task, place, rest in lines if "hidden" not in rest} == {("ner", "none")}
    figures = re.findall(r'<figure class="drawing" data-task="([^"]*)"([^>]*)>', shown)
    assert {task for task, rest in figures if "hidden" not in rest} == {"ner"}
    assert any("hidden" in rest for _, rest in figures)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_filters_reach_the_rows_of_the_chart_of_gains(rows: Rows, tmp_path: Path) -> None:
    arms = point(0, [1.0, 2.0]), point(0, [3.0, 4.0])
    pairs = tuple(Pair(task, *arms, 1.0, tags={"task": task, "data": "local"}) for task in ("ner", "srl"))
    path = tmp_path / "report.html"
    path.write_text(page([Section(Grid("T"), pairs=pairs)], rows), "utf-8")
    shown, _ = open_in_browser(path, "#task=ner&placement=both", tmp_path / "profile")
    parts = re.findall(r'id="t-whole-part-(\d)-[^"]*" data-task="([^"]*)" data-data="local"([^>]*)>', shown)
    assert {(n, task, "hidden" in rest) for n, task, rest in parts} == {("0", "ner", False), ("1", "srl", True)}
    assert len(parts) == 2 * 11  # line, two points with bars and caps, gain, name


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [400, 1280])
def test_a_page_is_no_wider_than_its_window(whole: str, tmp_path: Path, width: int) -> None:
    measure = "<script>document.title = `${document.documentElement.scrollWidth} ${window.innerWidth}`</script>"
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", whole.replace(HOSTILE, "x"))
    frame = tmp_path / "frame.html"  # Chromium's windows are at least 500 pixels wide
    (tmp_path / "page.html").write_text(text.replace("</body>", f"{measure}</body>"), "utf-8")
    frame.write_text(
        f'<iframe src="page.html" style="width:{width}px;height:900px;border:0"></iframe>'
        "<script>onload = () => { document.title = frames[0].document.title }</script>"
    )
    shown, _ = open_in_browser(frame, "", tmp_path / "profile", "--allow-file-access-from-files")
    (title,) = re.findall(r"<title>(.*?)</title>", shown)
    needed, given = map(int, title.split())
    assert needed <= given == width


def test_rows_of_the_project_fit_on_the_page() -> None:
    rows = read_rows([Path(__file__).parents[2] / "experiments" / "rows"])
    document = Document(page([], rows))
    assert [a.get("class") for _, a in document.elements].count("run") == len(rows.finished) > 0
    assert not rows.left_out
