"""``allennlp train`` with a PyTorch of today: ``PYTHON allennlp_train.py CONFIG OUT``.

AllenNLP 2.10.1 asks for torch<1.13. With a newer PyTorch (pip install --no-deps allennlp==2.10.1
allennlp-models==2.10.1, after their other requirements) its text models work if the packages that they never call have
a stand-in, and if spaCy's tokenizer is taken without its models, which would be downloaded.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from typing import ClassVar


class StandIn(types.ModuleType):
    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda self, *args, **kwargs: None})


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    packages = ("fairscale", "torchvision", "checklist")  # distributed training, images, behavioural tests

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> object:
        if fullname.split(".")[0] in self.packages:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> StandIn:
        return StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def main(config: str, out: str) -> None:
    sys.meta_path.append(StandIns())  # last: a package that is installed wins
    import nltk
    import spacy

    nltk.download = lambda *args, **kwargs: False
    spacy.load = lambda *args, **kwargs: spacy.blank("en")
    from allennlp.__main__ import run

    sys.argv = ["allennlp", "train", config, "-s", out, "-f"]
    run()


if __name__ == "__main__":
    main(*sys.argv[1:])
