from pathlib import Path

import pytest

from elmo_tasks.rows.collection import read_rows
from elmo_tasks.tables.wanted import compose_wanted
from experiments import arms, grids

TASKS = {"sst5", "ner", "snli", "srl", "squad", "coref"}
ELMO, NONE = (), ("elmo.placement=none",)


def key(*overrides):
    return compose_wanted(("data=local", *overrides)).key


def test_both_arms_search_the_same_settings_with_one_seed_on_dev():
    for table in (grids.GRID, grids.ELMO_DROPOUT):
        assert (table.seeds, table.split) == (1, "dev")
    assert [column.overrides for column in grids.GRID.scores()] == [NONE, ELMO]
    cells = [key(*line.overrides, *arm) for line in grids.GRID.lines for arm in (NONE, ELMO)]
    assert len(set(cells)) == len(cells), "no two cells are one setting"


@pytest.mark.parametrize("task", grids.GRIDS)
def test_a_task_has_at_most_six_configurations_and_its_own_is_the_first(task):
    lines = [line for line in grids.GRID.lines if line.overrides[0] == f"task={task}"]
    assert 2 <= len(lines) <= 6
    assert lines[0].overrides == (f"task={task}",)
    assert all(line.overrides[1:] for line in lines[1:])


@pytest.mark.parametrize("task", arms.BEST)
def test_each_arm_at_its_best_is_a_configuration_of_the_search(task):
    searched = list(grids.GRIDS[task].values())
    dropouts = [column.overrides for column in grids.ELMO_DROPOUT.scores()]
    best_baseline, best_elmo = arms.BEST[task]
    assert best_baseline in searched
    assert best_elmo in searched + dropouts
    table = arms.arms(task)
    baseline, same, *best = (column.overrides for column in table.scores())
    assert table.seeds == 5
    assert (baseline, same) == ((*NONE, *best_baseline), best_baseline)
    assert best == ([best_elmo] if best_elmo != best_baseline else [])


@pytest.mark.parametrize("task", arms.BEST)
def test_the_best_have_the_highest_dev_score_of_the_committed_rows(task):
    rows = read_rows([Path(arms.__file__).parent / "rows"]).by_key

    def score(overrides):
        (row,) = [row for row in rows[key(f"task={task}", *overrides)] if row.seed == 1]
        return row.scores["dev"][row.metric.name]

    configurations = list(grids.GRIDS[task].values())
    dropouts = [column.overrides for column in grids.ELMO_DROPOUT.scores()]
    best_baseline = max(configurations, key=lambda overrides: score((*NONE, *overrides)))
    best_elmo = max([*configurations, *dropouts], key=score)
    of_baseline, of_elmo = arms.BEST[task]
    assert of_baseline == best_baseline
    assert key(f"task={task}", *of_elmo) == key(f"task={task}", *best_elmo)


def test_the_search_covers_the_tasks_of_table_1():
    assert set(grids.GRIDS) == set(grids.NAMES) == set(arms.BEST) == TASKS
