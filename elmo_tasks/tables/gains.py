"""The gain of ELMo on each task: the setting closest to the task's defaults, compared with its baseline."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from elmo_tasks.render.grid import Grid
from elmo_tasks.render.sections import Section
from elmo_tasks.render.series import Pair, point
from elmo_tasks.rows import describe
from elmo_tasks.rows.collection import Rows
from elmo_tasks.rows.fields import Split
from elmo_tasks.rows.settings import Setting, mean_text
from elmo_tasks.tables.collect import RISING
from elmo_tasks.tables.compare import Comparison, compare, corrected
from elmo_tasks.tables.panels import comparable_key, keys_text, trained_settings
from elmo_tasks.tables.wanted import distance, other_keys

HEADER = ["task", "data", "scale", "training items", "split", "seeds", "metric"]
HEADER += ["setting", "baseline", "ELMo", "gain", "95 % CI", "p (Holm)", "training"]


@dataclass(frozen=True)
class Arms:
    """A task's runs without and with ELMo, and the split on which both were scored (test if both were)."""

    baseline: Setting
    elmo: Setting
    split: Split
    others_left_out: bool = False
    """Whether there are runs of these settings with other data files, vectors or weights."""

    @property
    def comparison(self) -> Comparison:
        return compare(self.elmo.scores(self.split), self.baseline.scores(self.split))

    @property
    def rising(self) -> bool:
        return self.baseline.rising or self.elmo.rising


def evaluate_gains(rows: Rows, data: str | None = None) -> Section:
    """Table and chart of the gains; ``data`` chooses one data set, such as ``local``."""
    found = [one for one in find_arms(rows) if data in (None, one.elmo.first.data.name)]
    comparisons = corrected([one.comparison for one in found])
    lines = [_line(one, comparison) for one, comparison in zip(found, comparisons, strict=True)]
    notes = [
        f"{one.elmo.first.task}: the gain is{comparison.seeds}; the means are those of all seeds"
        for one, comparison in zip(found, comparisons, strict=True)
        if comparison.seeds
    ]
    notes += [
        f"{one.elmo.first.task}, data={one.elmo.first.data.name}: not as configured, but with {keys_text(keys)}"
        for one in found
        if (keys := other_keys(one.elmo))
    ]
    notes += [
        f"{one.elmo.first.task}: rows of other data files, vectors or weights are left out"
        for one in found
        if one.others_left_out
    ]
    if any(one.rising for one in found):
        notes += [f"{RISING}: runs that had not converged; the gain may shrink as the baseline is trained to its end"]
    tags = [describe.shared_tags(one.elmo.first) for one in found]
    grid = Grid("ELMo against the baseline: mean ± standard deviation over seeds", HEADER, lines, notes, tags)
    return Section(grid, pairs=tuple(_pairs(found, comparisons)))


def find_arms(rows: Rows) -> list[Arms]:
    """One for each task, data and scale that was run with and without ELMo on the whole training set."""
    comparable: dict[str, list[Setting]] = defaultdict(list)
    for setting in trained_settings(rows):
        if setting.keys.get("data.fraction", 1) == 1:
            comparable[comparable_key(setting)].append(setting)
    found: dict[tuple[str, ...], list[Arms]] = defaultdict(list)
    for members in comparable.values():
        baseline = next((setting for setting in members if setting.placement == "none"), None)
        with_elmo = sorted((setting for setting in members if setting.placement != "none"), key=_nearest_and_newest)
        if baseline is not None and with_elmo:
            elmo, row = with_elmo[0], baseline.first
            others = any(setting.keys == elmo.keys for setting in with_elmo[1:])
            arms = Arms(baseline, elmo, _shared_split(baseline, elmo), others)
            found[row.task, row.data.name, row.scale].append(arms)
    return [_nearest_arms(found[key]) for key in sorted(found)]


def _nearest_arms(candidates: list[Arms]) -> Arms:
    """Of those of one task, data set and scale; the newest where only the data files differ."""
    first, *rest = sorted(candidates, key=lambda one: min(map(_nearest_and_newest, (one.baseline, one.elmo))))
    others = any(one.elmo.keys == first.elmo.keys for one in rest)
    return replace(first, others_left_out=first.others_left_out or others)


def _nearest_and_newest(setting: Setting) -> tuple[int, bool, float]:
    """To sort by: distance from the task's defaults, whether ELMo has weights of one's own, age of the newest run."""
    return distance(setting), describe.has_own_weights(setting.first), -setting.newest.timestamp()


def _shared_split(baseline: Setting, elmo: Setting) -> Split:
    """``test`` if all runs were scored on the same test set."""
    all_scored = baseline.scores("test") and elmo.scores("test")
    same_data = baseline.first.data_digests("test") == elmo.first.data_digests("test")
    return "test" if all_scored and same_data else "dev"


def _line(arms: Arms, comparison: Comparison) -> list[str]:
    row = arms.elmo.first
    n_baseline, n_elmo = len(arms.baseline.rows), len(arms.elmo.rows)
    seeds = str(n_elmo) if n_baseline == n_elmo else f"{n_baseline} and {n_elmo}"
    shown = [row.task, row.data.name, row.scale, describe.items(row), arms.split, seeds]
    sides = [mean_text(setting.scores(arms.split).values()) for setting in (arms.baseline, arms.elmo)]
    interval, p = comparison.interval, comparison.adjusted
    effect = f"{comparison.difference:+.2f}" if comparison.difference is not None else "-"
    sure = "-" if interval is None else f"{interval[0]:+.2f} to {interval[1]:+.2f}"
    training = RISING if arms.rising else "converged"
    return [
        *shown,
        row.metric.name,
        describe.elmo(row),
        *sides,
        effect,
        sure,
        "-" if p is None else f"{p:.2g}",
        training,
    ]


def _pairs(found: list[Arms], comparisons: list[Comparison]) -> list[Pair]:
    """Named by the task, and by data and scale where there are several."""
    names = [(one.elmo.first.task, one.elmo.first.data.name, one.elmo.first.scale) for one in found]
    shown = [k for k in range(3) if k == 0 or len({name[k] for name in names}) > 1]
    return [
        Pair(
            ", ".join(name[k] for k in shown),
            point(0, one.baseline.scores(one.split).values()),
            point(0, one.elmo.scores(one.split).values()),
            comparison.difference,
            one.rising,
            describe.shared_tags(one.elmo.first),
        )
        for name, one, comparison in zip(names, found, comparisons, strict=True)
        if comparison.difference is not None
    ]
