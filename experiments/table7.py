"""Table 7 of the supplement: the biLM fine-tuned for one epoch on a task's text, labels ignored (development set)."""

from elmo_tasks.command_line import run_command
from elmo_tasks.tables import FineTuning, Line, make_command

TABLE = FineTuning(
    title="Table 7: the biLM before and after fine-tuning on a task's text (development set)",
    paper="table_7_bilm_perplexity_dev",
    start="mini",
    lines=(
        Line("SNLI", ("task=snli",), "snli"),
        Line("NER", ("task=ner",), "ner"),
        Line("SQuAD", ("task=squad",), "squad"),
        Line("SST-5", ("task=sst5",), "sst5"),
    ),
    notes=(
        "the paper: fine-tuning adds 0.6 on SNLI's development set and makes no difference on SST-5",
        "perplexities compare within one vocabulary only",
    ),
)

main = make_command("table7", TABLE)

if __name__ == "__main__":
    run_command(main)
