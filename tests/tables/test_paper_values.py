"""What the paper prints, by hand: a second list beside ``experiments/paper.yaml`` and the declarations that read it."""

from typing import Any

import pytest

from elmo_tasks.render.charts import HIGH, LOW
from elmo_tasks.tables import Claim, Column, Score, Table
from elmo_tasks.tables.collect import paper_value
from elmo_tasks.tables.paper import value
from experiments import claims, ensembles, figure1, table1, table2, table3, table5, table6, table7

# By table, overrides of the line, and overrides of the column (or its label, where its cells come from no rows).
PRINTED = {
    "table 1": (
        table1.TABLE,
        ("previous best", "elmo.placement=none", "", "increase", "error reduction"),
        {
            "task=squad": (84.4, 81.1, 85.8, 4.7, 24.9),
            "task=snli": (88.6, 88.0, 88.7, 0.7, 5.8),
            "task=srl": (81.7, 81.4, 84.6, 3.2, 17.2),
            "task=coref": (67.2, 67.2, 70.4, 3.2, 9.8),
            "task=ner": (91.93, 90.15, 92.22, 2.06, 21),
            "task=sst5": (53.7, 51.4, 54.7, 3.3, 6.8),
        },
    ),
    "table 2": (
        table2.TABLE,
        ("elmo.placement=none", "elmo.mix=last", "elmo.lambda=1", "elmo.lambda=0.001"),
        {
            "task=squad": (80.8, 84.7, 85.0, 85.2),
            "task=snli": (88.1, 89.1, 89.3, 89.5),
            "task=srl": (81.6, 84.1, 84.6, 84.8),
        },
    ),
    "table 3": (
        table3.TABLE,
        ("elmo.placement=input", "elmo.placement=both", "elmo.placement=output"),
        {"task=squad": (85.1, 85.6, 84.8), "task=snli": (88.9, 89.5, 88.7), "task=srl": (84.7, 84.3, 80.9)},
    ),
    "table 5": (
        table5.TABLE,
        (
            "elmo.placement=none",
            "elmo.mix=layer_0",
            "elmo.mix=layer_1",
            "elmo.mix=layer_2",
            "CoVe layer 1",
            "CoVe layer 2",
        ),
        {"task=wsd": (65.9, None, 67.4, 69.0, 59.4, 64.7)},
    ),
    "table 6": (
        table6.TABLE,
        (
            "elmo.placement=none words=glove",
            "elmo.mix=layer_0",
            "elmo.mix=layer_1",
            "elmo.mix=layer_2",
            "CoVe layer 1",
            "CoVe layer 2",
        ),
        {"task=pos": (None, None, 97.3, 96.8, 93.3, 92.8)},
    ),
    "ensembles": (
        ensembles.TABLE,
        ("", "ensemble", "increase"),
        {"task=snli": (88.7, 89.3, None), "task=squad": (85.8, 87.4, None)},
    ),
}


@pytest.mark.parametrize("name", PRINTED)
def test_each_cell_is_shown_beside_the_paper_s_value(name: str) -> None:
    table, columns, printed = PRINTED[name]
    assert tuple(map(_setting, table.columns)) == columns
    found = {
        " ".join(line.overrides): tuple(_value(table, line, column) for column in table.columns) for line in table.lines
    }
    assert found == printed


def _setting(column: Any) -> str:
    if isinstance(column, Column) and not column.ensemble:
        return " ".join(column.overrides)
    return str(column.label)


def _value(table: Table, line: Any, column: Any) -> float | None:
    found = paper_value(table.paper, line, column.paper)
    return None if found is None else found.v


def test_perplexities_and_figures_stand_beside_the_paper_s() -> None:
    before_and_after = {
        " ".join(line.overrides): [value(f"{table7.TABLE.paper}.{line.paper}.{key}").v for key in ("before", "after")]
        for line in table7.TABLE.lines
    }
    assert before_and_after == {
        "task=snli": [72.1, 16.8],
        "task=ner": [103.2, 46.3],
        "task=squad": [99.1, 43.5],
        "task=sst5": [131.5, 78.6],
    }
    (srl,) = [line for line in figure1.EPOCHS.lines if line.paper]
    keys = ("epoch_of_best_dev_without_elmo", "epoch_at_which_elmo_passes_it", "saving_in_updates_percent")
    assert srl.overrides == ("task=srl",)
    assert [value(f"figure_1.{srl.paper}.{key}").v for key in keys] == [486, 10, 98]
    printed = value("figure_2.hatched_below").v, value("figure_2.speckled_above").v
    assert printed == (0.3333, 0.6667) == (round(LOW, 4), round(HIGH, 4))


# Which setting is above which, in the paper's order.
CLAIMED = [
    "squad dev > squad placement=none dev",
    "snli test > snli placement=none test",
    "srl test > srl placement=none test",
    "coref test > coref placement=none test",
    "ner test > ner placement=none test",
    "sst5 test > sst5 placement=none test",
    "squad mix=last dev > squad placement=none dev",
    "snli mix=last dev > snli placement=none dev",
    "srl mix=last dev > srl placement=none dev",
    "squad lambda=0.001 dev > squad mix=last dev",
    "snli lambda=0.001 dev > snli mix=last dev",
    "srl lambda=0.001 dev > srl mix=last dev",
    "squad lambda=0.001 dev > squad lambda=1 dev",
    "snli lambda=0.001 dev > snli lambda=1 dev",
    "srl lambda=0.001 dev > srl lambda=1 dev",
    "squad placement=both dev > squad placement=input dev",
    "snli placement=both dev > snli placement=input dev",
    "squad placement=both dev > squad placement=output dev",
    "snli placement=both dev > snli placement=output dev",
    "srl placement=input dev > srl placement=both dev",
    "srl placement=input dev > srl placement=output dev",
    "coref placement=input dev > coref placement=both dev",
    "wsd mix=layer_2 test > wsd mix=layer_1 test",
    "pos mix=layer_1 test > pos mix=layer_2 test",
    "(snli data.fraction=0.01 dev - snli data.fraction=0.01 placement=none dev)"
    " > (snli data.fraction=1 dev - snli data.fraction=1 placement=none dev)",
    "(srl data.fraction=0.01 dev - srl data.fraction=0.01 placement=none dev)"
    " > (srl data.fraction=1 dev - srl data.fraction=1 placement=none dev)",
    "BestEpoch(srl placement=none dev) > PassingEpoch(srl dev - srl placement=none dev)",
]


def test_the_sides_of_every_claim_are_the_paper_s() -> None:
    found = [f"{_side(part.high)} > {_side(part.low)}" for claim in claims.CLAIMS.claims for part in claim.parts]
    assert found == CLAIMED
    not_judged: list[Claim] = [claim for claim in claims.CLAIMS.claims if claim.not_judged]
    assert [_side(part.low) for claim in not_judged for part in claim.not_judged] == ["ner lambda=1 dev"]


def _side(quantity: Any) -> str:
    if isinstance(quantity, Score):
        return f"{' '.join(quantity.overrides)} {quantity.split}".replace("task=", "").replace("elmo.", "")
    name = type(quantity).__name__.replace("Difference", "")
    return f"{name}({' - '.join(map(_side, vars(quantity).values()))})"
