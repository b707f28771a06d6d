"""Reports on Weights & Biases: everything rendered as one artifact, and a dashboard of the runs that were logged there.

The artifact can be logged offline (``WANDB_MODE=offline``, then ``wandb sync``); a dashboard lives on the server.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from elmo_tasks.errors import UserError
from elmo_tasks.rows.schema import Row

SETTING = "setting"
"""The key under which a run's logger adds :func:`elmo_tasks.config.identity.setting_key` to its configuration."""

GROUPED_BY = ("data.fraction", "elmo.placement", "elmo.mix", "elmo.lambda", SETTING)
"""What the runs of a dashboard are grouped by: what a reader looks for, and whatever else can change a score."""


def log_files(files: dict[str, bytes], project: str, *, name: str, n_runs: int) -> str:
    """Log files as one artifact of type ``report``.

    Args:
        files: contents by name.
        project: W&B project; the entity and the rest come from W&B's environment variables.
        name: of the artifact, and of the W&B run that logs it.
        n_runs: how many runs the files report.

    Returns:
        where it is now, in a sentence.

    Raises:
        UserError: if W&B is not installed, or if the server refuses.
    """
    try:
        import wandb
    except ImportError as error:
        raise UserError("W&B is not installed: pip install wandb") from error
    os.environ.setdefault("WANDB_SILENT", "true")
    try:
        with wandb.init(project=project, job_type="report", name=name) as run:
            artifact = wandb.Artifact(name, type="report", metadata={"runs": n_runs})
            for path, content in files.items():
                with artifact.new_file(path, mode="wb") as file:
                    file.write(content)
            run.log_artifact(artifact)
            if run.disabled:
                return "nothing was logged: WANDB_MODE=disabled"
            if run.offline:
                return f"logged offline; upload it with: wandb sync {os.path.dirname(run.dir)}"
            return f"logged to {run.url}"
    except wandb.errors.Error as error:
        raise UserError(f"W&B: {_first_line(error)} Or set WANDB_MODE=offline.") from error


def dashboards(rows: Sequence[Row], place: str) -> list[Any]:
    """W&B workspaces, one for each group of runs (task, data, scale): placement, lambda, and the layer weights.

    Runs that differ in any setting that can change a score are kept apart, so that means are over seeds.
    Nothing is sent; ``save_as_new_view`` of a workspace does that.

    Args:
        rows: the runs, whose tasks, metrics, places and layers are shown.
        place: ``ENTITY/PROJECT`` of the runs.

    Raises:
        UserError: if wandb-workspaces is not installed or ``place`` has another form.
    """
    entity, _, project = place.partition("/")
    if not entity or not project or "/" in project:
        raise UserError(f"--dashboard must be ENTITY/PROJECT, found {place!r}")
    try:
        import wandb_workspaces.workspaces as ws
    except ImportError as error:
        raise UserError("--dashboard needs the extra `dashboard`: pip install -e '.[dashboard]'") from error
    by_group: dict[str, list[Row]] = {}
    for row in rows:
        if row.elmo is not None:
            by_group.setdefault(f"{row.task}-{row.data.name}-{row.scale}", []).append(row)
    return [
        ws.Workspace(
            entity=entity,
            project=project,
            name=f"Ablations: {group}",
            sections=_sections(members),
            runset_settings=ws.RunsetSettings(
                filters=[ws.Metric("Group") == group],  # as the runs' logger names it
                groupby=[ws.Config(key) for key in GROUPED_BY],
            ),
        )
        for group, members in sorted(by_group.items())
    ]


def save_dashboard(rows: Sequence[Row], place: str) -> str:
    """Save the dashboards on the server.

    Returns:
        their addresses, one a line.

    Raises:
        UserError: see :func:`dashboards`; and without a server, a key or the right to write there.
    """
    made = dashboards(rows, place)
    if os.environ.get("WANDB_MODE") in ("offline", "disabled", "dryrun"):
        raise UserError(f"a dashboard is kept on the W&B server, but WANDB_MODE={os.environ['WANDB_MODE']}")
    os.environ.setdefault("WANDB_SILENT", "true")  # the client would print each address too
    try:
        return "\n".join(str(workspace.save_as_new_view().url) for workspace in made)
    except Exception as error:  # the client has no base class for what can go wrong on the way
        raise UserError(f"the dashboard cannot be saved on the W&B server: {_first_line(error)}") from error


def _sections(rows: list[Row]) -> list[Any]:
    import wandb_workspaces.reports.v2 as wr
    import wandb_workspaces.workspaces as ws

    metric, best = f"dev/{rows[0].metric.name}", f"best/dev/{rows[0].metric.name}"
    over_seeds = {"groupby_aggfunc": "mean", "groupby_rangefunc": "stddev"}
    mixes = [
        f"elmo/{place}/{name}"
        for place, n_layers in _places(rows).items()
        for name in [*(f"s_{layer}" for layer in range(n_layers)), "gamma"]
    ]
    curves = [wr.LinePlot(title=name, x="epoch", y=[name], **over_seeds) for name in (metric, *mixes)]
    bars = wr.BarPlot(title=best, metrics=[best], **over_seeds)
    points = wr.ScatterPlot(title=best, x=wr.Config("elmo.lambda"), y=wr.SummaryMetric(best))
    parts = {"Placement": [curves[0], bars], "Lambda": [points], "Layer weights": curves[1:]}
    return [ws.Section(name=name, panels=panels, is_open=True) for name, panels in parts.items() if panels]


def _places(rows: list[Row]) -> dict[str, int]:
    """The largest number of layer weights that any row has at each place."""
    places: dict[str, int] = {}
    for row in rows:
        for place, mix in row.elmo.weights.items() if row.elmo is not None else ():
            places[place] = max(places.get(place, 0), len(mix.s))
    return dict(sorted(places.items()))


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
