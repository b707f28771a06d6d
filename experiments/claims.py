"""The paper's claims, and whether the rows bear them out."""

from elmo_tasks.command_line import run_command
from elmo_tasks.tables import BestEpoch, Claim, Claims, Difference, Part, PassingEpoch, Score, make_command

NAMES = {"squad": "SQuAD", "snli": "SNLI", "srl": "SRL", "coref": "Coref", "ner": "NER", "sst5": "SST-5"}


def score(task: str, *overrides: str, split: str = "dev") -> Score:
    """A task with some overrides."""
    return Score((f"task={task}", *overrides), split)


def better(task: str, one: str, other: str, text: str) -> Part:
    """One override is better than another on the development set of a task."""
    return Part(f"{NAMES[task]}: {text}", score(task, one), score(task, other))


def gain(task: str, fraction: float) -> Difference:
    """What ELMo adds with a share of the training set."""
    share = f"data.fraction={fraction:g}"
    return Difference(score(task, share), score(task, share, "elmo.placement=none"))


def helps(task: str) -> Claim:
    """ELMo beats the baseline on the test set (SQuAD: dev)."""
    split = "dev" if task == "squad" else "test"
    part = Part(NAMES[task], score(task, split=split), score(task, "elmo.placement=none", split=split))
    return Claim(f"ELMo improves {NAMES[task]} ({split})", (part,))


def layer_above(task: str, one: int, other: int, text: str) -> Part:
    """One layer alone is better than another on the test set of a probe."""
    high, low = (score(task, f"elmo.mix=layer_{layer}", split="test") for layer in (one, other))
    return Part(text, high, low)


NONE, INPUT, OUTPUT, BOTH = (f"elmo.placement={place}" for place in ("none", "input", "output", "both"))
LAST, SMALL, LARGE = "elmo.mix=last", "elmo.lambda=0.001", "elmo.lambda=1"
TABLE_2 = ("squad", "snli", "srl")

CLAIMS = Claims(
    title="The paper's claims",
    claims=(
        *(helps(task) for task in NAMES),
        Claim(
            "The last layer alone improves on the baseline, and all layers improve on the last",
            tuple(better(task, LAST, NONE, "last layer above baseline") for task in TABLE_2)
            + tuple(better(task, SMALL, LAST, "all layers above last") for task in TABLE_2),
        ),
        Claim(
            "Layer weights that are free to differ (lambda 0.001) are better than nearly equal ones (lambda 1), "
            "except with a small training set such as NER's, where lambda hardly matters",
            tuple(better(task, SMALL, LARGE, "lambda 0.001 above 1") for task in TABLE_2),
            not_judged=(better("ner", SMALL, LARGE, "lambda 0.001 above 1 (the exception)"),),
        ),
        Claim(
            "Models with attention after the biRNN (SQuAD, SNLI) are best with ELMo at input and output, SRL and "
            "coreference with ELMo at the input alone",
            (
                *(better(task, BOTH, INPUT, "both above input") for task in ("squad", "snli")),
                *(better(task, BOTH, OUTPUT, "both above output") for task in ("squad", "snli")),
                better("srl", INPUT, BOTH, "input above both"),
                better("srl", INPUT, OUTPUT, "input above output"),
                better("coref", INPUT, BOTH, "input above both"),
            ),
        ),
        Claim(
            "The upper layer knows more of word senses, the lower one more of parts of speech",
            (
                layer_above("wsd", 2, 1, "word senses: layer 2 above 1 (nothing is trained: one run, not tested)"),
                layer_above("pos", 1, 2, "parts of speech: layer 1 above 2"),
            ),
        ),
        Claim(
            "The fewer the training items, the more ELMo adds (1 % of them against all)",
            tuple(Part(NAMES[task], gain(task, 0.01), gain(task, 1)) for task in ("snli", "srl")),
        ),
        Claim(
            "With ELMo fewer epochs are needed to pass the baseline's best development score (SRL)",
            (Part("SRL", BestEpoch(score("srl", NONE)), PassingEpoch(score("srl"), score("srl", NONE))),),
        ),
    ),
    notes=(
        "an SRL or coreference corpus other than OntoNotes, or a part of a training set, tests a claim on that data",
    ),
)

main = make_command("claims", CLAIMS)

if __name__ == "__main__":
    run_command(main)
