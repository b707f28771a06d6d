import subprocess
import sys

MISSING = ("hydra", "omegaconf", "seqeval", "datasets", "wandb", "rich")
COMMAND = f"import sys; sys.modules.update(dict.fromkeys({MISSING!r})); import elmo_tasks.pretraining.__main__"


def test_a_bilm_can_be_trained_without_hydra():
    done = subprocess.run([sys.executable, "-c", COMMAND], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
