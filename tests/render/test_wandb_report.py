import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.errors import UserError
from elmo_tasks.render.wandb import dashboards, log_files, save_dashboard
from elmo_tasks.rows.io import write_row
from elmo_tasks.rows.schema import Row

pytest.importorskip("matplotlib")
pytest.importorskip("wandb")
pytest.importorskip("wandb_workspaces")

MakeRow = Callable[..., Row]
REPO = Path(__file__).parents[2]


def records(path: Path) -> list[Any]:
    """The records of an offline run, by the reader of the tests of the runs' logger."""
    spec = importlib.util.spec_from_file_location("read_wandb", REPO / "tests" / "run" / "test_wandb.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.records(path))


@pytest.fixture
def rows(make_row: MakeRow) -> list[Row]:
    finished = [make_row(1, [80.0, 81.0], placement=p, l2=l2) for p in ("none", "both") for l2 in (0.0, 0.1)]
    return [*finished, make_row(1, 70.0, task="snli")]


@pytest.mark.slow
def test_an_offline_report_is_one_artifact_with_every_file(
    rows: list[Row], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_DATA_DIR", str(tmp_path / "data"))
    files = {"tables.md": b"# a", "folder/report.html": b"<p>"}
    sentence = log_files(files, "some-project", name="report", n_runs=len(rows))
    assert sentence.startswith("logged offline; upload it with: wandb sync ")
    (log,) = Path(sentence.rpartition(" ")[2]).glob("run-*.wandb")
    found: dict[str, Any] = {}
    for _ in range(300):  # W&B writes the file from a process of its own
        found = {record.WhichOneof("record_type"): record for record in records(log)}
        if "exit" in found:
            break
        time.sleep(0.1)
    assert found["run"].run.project == "some-project"
    assert found["run"].run.job_type == "report"
    artifact = found["artifact"].artifact
    assert (artifact.type, artifact.name) == ("report", "report")
    contents = {entry.path: Path(entry.local_path).read_bytes() for entry in artifact.manifest.contents}
    assert contents == files


def test_online_without_a_key_ends_in_one_sentence(make_row: MakeRow, tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    row = make_row(1, 80.0)
    write_row(folder / f"{row.run_id}.json", row)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(REPO), "WANDB_DIR": str(tmp_path)}
    for option, value in (("--wandb", "p"), ("--dashboard", "e/p")):
        command = [sys.executable, "-m", "elmo_tasks.report", str(folder), option, value]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 1
        assert done.stdout == ""
        assert "No API key configured. Use `wandb login` to log in." in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


class Server(BaseHTTPRequestHandler):
    """What of a W&B server saving a dashboard needs; views that came in are kept, those of a closed project refused."""

    saved: list[dict[str, Any]]

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(self._graphql(json.loads(asked)) if self.path == "/graphql" else {})

    def _graphql(self, asked: dict[str, Any]) -> dict[str, Any]:
        if "upsertView" not in asked["query"]:
            return {"data": {"viewer": {"id": "1", "entity": "someone", "username": "someone", "flags": "{}"}}}
        view = asked["variables"]
        if view["projectName"] == "closed":
            return {"errors": [{"message": "permission denied"}], "data": None}
        self.saved.append(view)
        return {"data": {"upsertView": {"view": {"id": "1", "name": view["name"]}, "inserted": True}}}

    def _answer(self, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Its address, and the views that it was given."""
    monkeypatch.setattr(Server, "saved", [], raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}", Server.saved
        served.shutdown()


@pytest.mark.slow
def test_a_dashboard_is_saved_on_the_server(make_row: MakeRow, tmp_path: Path, server: Any) -> None:
    address, saved = server
    folder = tmp_path / "rows"
    folder.mkdir()
    row = make_row(1, 80.0)
    write_row(folder / f"{row.run_id}.json", row)
    environment = os.environ | {"WANDB_MODE": "online", "WANDB_BASE_URL": address, "WANDB_API_KEY": 40 * "a"}

    def save(project: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "elmo_tasks.report", str(folder), "--dashboard", f"someone/{project}"]
        return subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True, timeout=120)

    done = save("elmo_tasks")
    (view,) = saved
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{address}/someone/elmo_tasks?nw={view['name'].removeprefix('nw-').removesuffix('-v')}\n"
    assert (view["entityName"], view["displayName"]) == ("someone", "Ablations: ner-local-cpu")
    sections = json.loads(view["spec"])["section"]["panelBankConfig"]["sections"]
    assert {"Placement", "Lambda", "Layer weights"} <= {part["name"] for part in sections}
    refused = save("closed")
    assert (refused.returncode, refused.stdout, len(refused.stderr.splitlines())) == (1, "", 1)
    assert "the dashboard cannot be saved on the W&B server" in refused.stderr
    assert "permission denied" in refused.stderr


def test_a_dashboard_has_panels_by_placement_by_lambda_and_of_each_weight(rows: list[Row]) -> None:
    made = dashboards(rows, "someone/elmo_tasks")
    specs = [json.loads(workspace._to_model().model_dump_json(by_alias=True)) for workspace in made]
    assert [spec["displayName"] for spec in specs] == ["Ablations: ner-local-cpu", "Ablations: snli-local-cpu"]
    ner = specs[0]
    assert (ner["entity"], ner["project"]) == ("someone", "elmo_tasks")
    section = ner["spec"]["section"]
    (runs,) = section["runSets"]
    (condition,) = runs["filters"]["filters"]
    assert condition["key"] == {"section": "run", "name": "group"}
    assert condition["value"] == "ner-local-cpu"
    keys = ["data.value.fraction", "elmo.value.placement", "elmo.value.mix", "elmo.value.lambda", "setting.value"]
    assert runs["grouping"] == [{"section": "config", "name": key} for key in keys]
    panels = {part["name"]: part["panels"] for part in section["panelBankConfig"]["sections"] if part["panels"]}
    assert list(panels) == ["Placement", "Lambda", "Layer weights"]
    curve, bars = panels["Placement"]
    assert (curve["config"]["xAxis"], curve["config"]["metrics"]) == ("epoch", ["dev/f1"])
    assert bars["config"]["metrics"] == ["best/dev/f1"]
    assert {panel["config"]["groupArea"] for panel in panels["Placement"]} == {"stddev"}
    (points,) = panels["Lambda"]
    assert points["config"]["xAxis"] == "config:elmo.value.lambda"
    assert points["config"]["yAxis"] == "summary:best/dev/f1"
    names = [panel["config"]["metrics"] for panel in panels["Layer weights"]]
    wanted = [[f"elmo/{p}/{name}"] for p in ("input", "output") for name in ("s_0", "s_1", "s_2", "gamma")]
    assert names == wanted


@pytest.mark.parametrize("mode", ["offline", "dryrun", "disabled"])
def test_a_dashboard_is_not_kept_offline(rows: list[Row], monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setenv("WANDB_MODE", mode)  # Lightning's logger sets it too
    with pytest.raises(UserError, match=rf"^a dashboard is kept on the W&B server, but WANDB_MODE={mode}$"):
        save_dashboard(rows, "someone/elmo_tasks")


@pytest.mark.parametrize("place", ["", "p", "/p", "e/", "e/p/q"])
def test_a_dashboard_needs_entity_and_project(rows: list[Row], place: str) -> None:
    with pytest.raises(UserError, match="must be ENTITY/PROJECT"):
        save_dashboard(rows, place)


def test_what_is_not_installed_is_named(rows: list[Row], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UserError, match=r"^W&B is not installed: pip install wandb$"):
        log_files({}, "p", name="n", n_runs=1)
    monkeypatch.setitem(sys.modules, "wandb_workspaces.workspaces", None)
    with pytest.raises(UserError, match=r"^--dashboard needs the extra `dashboard`: pip install -e '\.\[dashboard\]'$"):
        dashboards(rows, "e/p")
