import itertools
import math
import statistics
from dataclasses import replace

import numpy as np
import pytest

from elmo_tasks.tables.compare import Comparison, compare, corrected
from elmo_tasks.tables.texts import comparison_notes

# Student's (1908) hours of sleep gained by ten patients with two drugs; the tests' figures stand in many textbooks.
FIRST = dict(enumerate([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]))
SECOND = dict(enumerate([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]))


def two_sided_p(t: float, df: float) -> float:
    """By the trapezoidal rule on Student's density."""
    x = np.linspace(-abs(t), abs(t), 200_001)
    density = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    return 1 - float(np.trapezoid(density * (1 + x**2 / df) ** (-(df + 1) / 2), x))


def test_shared_seeds_are_compared_in_pairs() -> None:
    found = compare(FIRST, SECOND)
    assert (found.test, found.n) == ("paired t-test", (10, 10))
    assert found.difference == pytest.approx(-1.58)
    assert found.t == pytest.approx(-4.0621, abs=1e-4)
    assert found.p == pytest.approx(0.002833, abs=1e-6)
    assert found.p == pytest.approx(two_sided_p(found.t, 9), abs=1e-6)


def test_other_seeds_are_compared_by_welch() -> None:
    found = compare(FIRST, {seed + 100: value for seed, value in SECOND.items()})
    assert (found.test, found.n) == ("Welch's t-test", (10, 10))
    assert found.t == pytest.approx(-1.8608, abs=1e-4)
    assert found.p == pytest.approx(0.07939, abs=1e-5)
    assert found.p == pytest.approx(two_sided_p(found.t, 17.776), abs=1e-5)


def test_pairs_are_those_of_one_seed_whatever_the_order() -> None:
    assert compare(dict(reversed(FIRST.items())), SECOND) == compare(FIRST, SECOND)


def test_only_the_shared_seeds_count() -> None:
    found = compare(FIRST, {seed: SECOND[seed] for seed in (1, 5, 8)} | {77: 1000.0})
    pairs = compare({seed: FIRST[seed] for seed in (1, 5, 8)}, {seed: SECOND[seed] for seed in (1, 5, 8)})
    assert found == replace(pairs, partial=True)
    assert found.n == (3, 3)
    assert str(pairs).startswith(f"{pairs.difference:+.2f}, 95 % CI -7.17 to +1.84 (paired t-test")
    assert str(found).startswith(
        f"{pairs.difference:+.2f}, 95 % CI -7.17 to +1.84 on the 3 shared seeds (paired t-test"
    )
    assert found.base == pytest.approx((SECOND[1] + SECOND[5] + SECOND[8]) / 3)


def test_a_difference_of_all_seeds_names_none() -> None:
    assert compare(FIRST, SECOND).seeds == ""
    assert compare(FIRST, {100: 1.0, 101: 2.0, 102: 4.0}).seeds == ""  # nothing is shared
    same = compare({1: 5.0, 2: 6.0, 3: 7.0, 4: 0.0}, {1: 2.0, 2: 3.0, 3: 4.0})
    assert str(same) == "+3.00 on the 3 shared seeds (no spread over seeds to test against)"


def test_where_no_test_is_possible_the_difference_is_that_of_the_shared_seeds() -> None:
    found = compare({1: 38.0}, {1: 25.0, 2: 10.0, 3: 6.0})
    assert (found.difference, found.base, found.n) == (13.0, 25.0, (1, 1))
    assert str(found) == "+13.00 on the 1 shared seed (too few seeds for a test: 1 and 3)"
    assert compare({4: 38.0}, {1: 25.0, 2: 10.0, 3: 7.0}).difference == 24.0  # nothing is shared
    both = compare({1: 3.0, 7: 4.0, 8: 8.0}, {1: 1.0, 2: 0.0, 3: 2.0})  # enough on either side for Welch's test
    assert (both.difference, both.n, both.partial) == (4.0, (3, 3), False)


def test_the_paired_test_agrees_with_all_sign_flips() -> None:
    rng = np.random.default_rng(0)
    differences = rng.normal(0.5, 1, 12)
    found = compare(dict(enumerate(differences)), dict.fromkeys(range(12), 0.0))
    flips = np.array(list(itertools.product([-1, 1], repeat=12))) * differences
    exact = np.mean(np.abs(flips.mean(axis=1)) >= abs(differences.mean()) - 1e-12)
    assert found.p == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 2), (2, 5), (5, 2)])
def test_fewer_than_three_seeds_are_too_few(n: int, m: int) -> None:
    found = compare({seed: FIRST[seed] for seed in range(n)}, {seed: SECOND[seed] for seed in range(m)})
    assert found.p is None
    assert "too few seeds" in str(found)


@pytest.mark.parametrize("paired", [True, False])
def test_the_interval_holds_the_differences_that_the_test_does_not_reject(paired: bool) -> None:
    other = SECOND if paired else {seed + 100: value for seed, value in SECOND.items()}
    found = compare(FIRST, other)
    assert found.interval is not None
    low, high = found.interval
    assert low < found.difference < high
    for edge in (low, high):  # at its ends p is 5 %
        moved = {seed: value - edge for seed, value in FIRST.items()}
        assert compare(moved, other).p == pytest.approx(0.05, abs=1e-9)


def slow_holm(ps: list[float]) -> list[float]:
    """The level at which Holm's procedure would just refuse each hypothesis, by bisection."""

    def refused(level: float) -> set[int]:
        order, found = sorted(range(len(ps)), key=lambda i: ps[i]), set()
        for rank, i in enumerate(order):
            if ps[i] > level / (len(ps) - rank):
                break
            found.add(i)
        return found

    adjusted = []
    for i in range(len(ps)):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if i in refused(middle) else (middle, high)
        adjusted.append(high)
    return adjusted


def test_p_values_are_corrected_by_holm_for_all_comparisons_of_a_table() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 7):
        ps = [float(p) for p in rng.uniform(0, 0.3, n) ** 2]
        comparisons = [Comparison(1.0, p=p) for p in ps]
        comparisons.insert(1, Comparison(None, why="missing"))  # counts as if it were refused last
        found = corrected(comparisons)
        assert found[1].adjusted is None
        assert [one.adjusted for one in found if one.p is not None] == pytest.approx(
            slow_holm([*ps, 1.0])[:-1], abs=1e-9
        )
    assert [one.adjusted for one in corrected([Comparison(1.0, p=0.04)])] == [0.04]


@pytest.mark.parametrize("later", [1e-6, 0.003, 0.5, 1.0])
def test_what_is_significant_remains_so_when_more_of_the_table_has_been_run(later: float) -> None:
    ps = [0.001, 0.02, 0.012]
    now = corrected([*(Comparison(1.0, p=p) for p in ps), Comparison(None, why="missing")])
    then = corrected([Comparison(1.0, p=p) for p in [*ps, later]])
    for before, after in zip(now[:3], then[:3], strict=True):
        assert before.adjusted is not None
        assert after.adjusted is not None
        assert after.adjusted <= before.adjusted


def test_the_notes_of_a_table_count_the_comparisons_that_are_missing_but_do_not_list_them() -> None:
    missing = Comparison(None, why="missing")
    listed, note = comparison_notes({"SST-5": compare(FIRST, SECOND), "NER": missing, "SNLI": missing})
    assert listed.startswith("SST-5: ")
    assert "p = 0.00283, Holm 0.0085," in listed  # three times as much
    assert note == "Holm: p corrected for the number of comparisons in this table (3), run or not yet"
    assert comparison_notes({"SST-5": compare({1: 2.0}, {1: 1.0}), "NER": missing}) == [
        "SST-5: +1.00 (too few seeds for a test: 1 and 1)"
    ]


def test_without_spread_or_rows_nothing_is_tested() -> None:
    same = compare({1: 5.0, 2: 6.0, 3: 7.0}, {1: 2.0, 2: 3.0, 3: 4.0})
    assert (same.difference, same.p) == (pytest.approx(3.0), None)
    assert "no spread" in str(same)
    assert compare({}, FIRST).difference is None
    assert compare(FIRST, {}).difference is None


@pytest.mark.filterwarnings("ignore:Precision loss")
def test_a_side_without_spread_is_tested_against_one_that_has_some() -> None:
    found = compare({1: 4.0, 2: 5.0, 3: 9.0}, dict.fromkeys((101, 102, 103), 2.0))
    assert found.t == pytest.approx(4 / (statistics.stdev([4, 5, 9]) / math.sqrt(3)))  # the other adds no variance
    assert found.p == pytest.approx(two_sided_p(found.t, 2), abs=1e-4)
