from .environments import is_started


def test_a_run_starts_where_all_its_processes_do_and_nothing_else_around_it_matters() -> None:
    found = [is_started(seed) for seed in range(300)]
    assert 100 < sum(found) < 250
