"""What reduced precision in the frozen biLM does to scores (test set); not in the paper."""

from elmo_tasks.command_line import run_command
from elmo_tasks.tables import Column, Gain, Line, Table, make_command

TABLE = Table(
    title="Precision of the biLM's matrix multiplications (test set)",
    split="test",
    lines=(Line("SST-5", ("task=sst5",)), Line("NER", ("task=ner",))),
    columns=(
        Column("float32", ()),
        Column("bfloat16", ("bilm.precision=bfloat16",)),
        Column("int8", ("bilm.precision=int8",)),
        Gain("bfloat16 - float32", "bfloat16", "float32"),
        Gain("int8 - float32", "int8", "float32"),
    ),
    seeds=3,
    other_bilm=True,  # its digest counts the precision
    notes=("the task model is trained with 32 bits in each column",),
)

main = make_command("precision", TABLE)

if __name__ == "__main__":
    run_command(main)
