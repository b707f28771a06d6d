"""Figure 1: scores against the share of the training set, and epochs until ELMo passes the baseline's best."""

from elmo_tasks.command_line import run_command
from elmo_tasks.tables import Column, EpochsToPass, Gain, Line, Table, make_command

SHARES = (0.1, 1, 2, 5, 10, 20, 50, 100)  # percent; the paper draws from 0.1 to 100
BASELINE, ELMO = Column("baseline", ("elmo.placement=none",)), Column("ELMo")
CORPUS = "the paper's SRL is OntoNotes; another corpus at data.root is not to be compared with its values"

SHARE = Table(
    axis="share",
    title="Figure 1: score against the share of the training set (development set)",
    lines=tuple(
        Line(f"{name} {share:g} %", (f"task={task}", f"data.fraction={share / 100:g}"), x=share, curve=name)
        for name, task in (("SNLI", "snli"), ("SRL", "srl"), ("NER", "ner"))
        for share in SHARES
    ),
    columns=(BASELINE, ELMO, Gain("increase", "ELMo", "baseline")),
    notes=("the paper has SNLI and SRL, and prints no numbers; NER is ours", CORPUS),
)
EPOCHS = EpochsToPass(
    title="Figure 1: epochs until ELMo passes the baseline's best score (development set)",
    paper="figure_1",
    lines=(Line("SRL", ("task=srl",), "srl"), Line("SNLI", ("task=snli",)), Line("NER", ("task=ner",))),
    baseline=BASELINE,
    elmo=ELMO,
    notes=(CORPUS,),
)

main = make_command("figure1", SHARE, EPOCHS)

if __name__ == "__main__":
    run_command(main)
