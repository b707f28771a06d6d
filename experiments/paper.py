"""All of the paper at once, on one page with ``--html paper.html``."""

from elmo_tasks.command_line import run_command
from elmo_tasks.tables import make_command

from . import ablations, claims, ensembles, figure1, figure2, table1, table2, table3, table5, table6, table7

DECLARED = (
    table1.TABLE,
    claims.CLAIMS,
    *(module.TABLE for module in (table2, table3, table5, table6, table7, ensembles)),
    figure1.SHARE,
    figure1.EPOCHS,
    figure2.FIGURE,
    *(ablations.GAMMA, ablations.NORM, ablations.DROPOUT, ablations.LAMBDA),
)

main = make_command("paper", *DECLARED)

if __name__ == "__main__":
    run_command(main)
