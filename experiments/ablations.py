"""Ablations of the mix: gamma, layer normalisation, dropout on the ELMo vector, and a curve over lambda."""

from elmo_tasks.command_line import run_command
from elmo_tasks.tables import Column, Gain, Line, Table, make_command

LAMBDAS = (0, 0.0001, 0.001, 0.01, 0.1, 1, 10)
TASKS = (("SQuAD", "squad"), ("SNLI", "snli"), ("SRL", "srl"))
LINES = tuple(Line(name, (f"task={task}",), task) for name, task in TASKS)

GAMMA = Table(
    title="Gamma learned or kept at 1 (development set)",
    lines=LINES,
    columns=(
        Column("baseline", ("elmo.placement=none",)),
        Column("all layers", ()),
        Column("all layers, gamma 1", ("elmo.gamma=one",)),
        Column("last only", ("elmo.mix=last",)),
        Column("last only, gamma 1", ("elmo.mix=last", "elmo.gamma=one")),
    ),
    compare=(("last only", "last only, gamma 1"), ("last only, gamma 1", "baseline")),
    notes=("the paper: without gamma, last only fell below the baseline on SNLI and did not train on SRL",),
)
NORM = Table(
    title="Layer normalisation before mixing (development set)",
    lines=LINES,
    columns=(
        Column("off", ("elmo.layer_norm=false",)),
        Column("on", ("elmo.layer_norm=true",)),
        Gain("increase", "on", "off"),
    ),
)
DROPOUT = Table(
    title="Dropout on the ELMo vector (development set)",
    lines=LINES,
    columns=tuple(Column(f"{rate:g}", (f"elmo.dropout={rate:g}",)) for rate in (0, 0.1, 0.25, 0.5)),
    compare=(("0.5", "0"),),
)
LAMBDA = Table(
    axis="lambda",
    title="Penalty on the layer scalars (development set)",
    lines=tuple(
        Line(f"{name}, lambda {value:g}", (f"task={task}", f"elmo.lambda={value:g}"), x=value, curve=name)
        for name, task in (*TASKS, ("NER", "ner"))
        for value in LAMBDAS
    ),
    columns=(Column("all layers"),),
)

main = make_command("ablations", GAMMA, NORM, DROPOUT, LAMBDA)

if __name__ == "__main__":
    run_command(main)
