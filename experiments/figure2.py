"""Figure 2: the weights that each task gives to the biLM's layers, at each place."""

from elmo_tasks.command_line import run_command
from elmo_tasks.tables import Line, Weights, make_command

FIGURE = Weights(
    title="Figure 2: softmax-normalised layer weights, means over seeds",
    lines=(
        Line("SQuAD", ("task=squad",)),
        Line("SNLI", ("task=snli",)),
        Line("SRL", ("task=srl",)),
        Line("Coref", ("task=coref",)),
        Line("NER", ("task=ner",)),
        Line("SST-5", ("task=sst5",)),
    ),
    notes=("layer 0 is the token layer; the paper draws no numbers, and favours layer 1 at the input",),
)

main = make_command("figure2", FIGURE)

if __name__ == "__main__":
    run_command(main)
