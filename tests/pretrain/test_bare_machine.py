import subprocess
import sys

FRAMEWORKS = ("hydra", "omegaconf", "pydantic", "pytorch_lightning", "lightning_fabric")
MISSING = (*FRAMEWORKS, "rich", "seqeval", "datasets", "wandb")
COMMAND = f"""
import sys
sys.modules.update(dict.fromkeys({MISSING!r}))
from elmo_tasks.pretrain.__main__ import main
pack, out, text = sys.argv[1:]
main(["pack", "--train", text + "/train-*.txt", "--heldout", text + "/heldout.txt", "--out", pack])
tiny = ["--size", "mini", "--rows", "8", "--window", "5", "--samples", "10", "--min-count", "1", "--epochs", "0.05"]
main(["train", "--pack", pack, "--out", out, *tiny, "--precision", "float32", "--device", "cpu", "--score-every", "0"])
main(["perplexity", "--pack", pack, "--bilm", out + "/bilm", "--device", "cpu"])
"""


def test_a_bilm_can_be_trained_without_hydra_lightning_and_pydantic(text_folder, tmp_path):
    command = [sys.executable, "-c", COMMAND, str(tmp_path / "pack"), str(tmp_path / "out"), str(text_folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "training is complete" in done.stdout
    assert "held-out positions: perplexity" in done.stdout
