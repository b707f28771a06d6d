import pytest
import torch

from elmo_tasks.nn import gather
from elmo_tasks.nn.gather import distinct_rows


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (7, 1), (300, 2), (200, 50)])
def test_distinct_rows_are_those_of_a_set(shape):
    rows = torch.randint(3, shape)
    rows = rows[torch.randint(max(1, len(rows)), (len(rows),))]  # some more than once, some not at all
    distinct, where = distinct_rows(rows)
    assert torch.equal(distinct[where], rows)
    found = [tuple(row) for row in distinct.tolist()]
    assert sorted(found) == sorted({tuple(row) for row in rows.tolist()})


def test_different_rows_with_the_same_number_stay_different(monkeypatch):
    monkeypatch.setattr(gather.torch, "randint", lambda *_, **__: torch.ones(2, dtype=torch.long))
    rows = torch.tensor([[1, 2], [2, 1], [3, 0], [2, 1]])
    distinct, where = distinct_rows(rows)
    assert torch.equal(distinct[where], rows)
    assert len(distinct) == 3
