import subprocess
import sys

MISSING = ("hydra", "omegaconf", "seqeval", "datasets", "wandb", "rich")
COMMAND = f"import sys; sys.modules.update(dict.fromkeys({MISSING!r})); import elmo_tasks.pretraining.__main__"


def test_a_machine_without_hydra_can_train():
    done = subprocess.run([sys.executable, "-c", COMMAND], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
