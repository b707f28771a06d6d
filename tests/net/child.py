"""The process that runs the package's code: calls come in as JSON, answers go out as JSON lines.

``python child.py ADAPTER_FOLDER`` reads ``{"alone": bool, "calls": [...]}`` from standard input. Each call has ``call``
(a function of the adapter), ``arguments`` (a list of texts), ``input`` (standard input) and ``seconds`` (of the
processor, at most). With ``alone`` every call is made in a process of its own, forked when all imports are done, so
that none sees what another left behind.
The current folder has the files of ``inputs.py``.
"""

import importlib
import json
import os
import resource
import sys
import tempfile
import traceback
from pathlib import Path

import inputs


def answer(adapter, call):
    """Make a call in this process, with its output caught in files."""
    kept = sys.stdin, sys.stdout, sys.stderr, os.dup(0), os.dup(1), os.dup(2)
    with tempfile.TemporaryDirectory() as folder:
        given, out, err = (Path(folder) / name for name in ("given", "out", "err"))
        given.write_text(call["input"], "utf-8")
        with given.open(encoding="utf-8") as sys.stdin, out.open("w") as sys.stdout, err.open("w") as sys.stderr:
            for number, file in enumerate((sys.stdin, sys.stdout, sys.stderr)):
                os.dup2(file.fileno(), number)
            before = resource.getrusage(resource.RUSAGE_SELF)
            status, value = make(adapter, call)
            after = resource.getrusage(resource.RUSAGE_SELF)
        sys.stdin, sys.stdout, sys.stderr = kept[:3]
        for number in range(3):
            os.dup2(kept[3 + number], number)
            os.close(kept[3 + number])
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        texts = {"out": out.read_text("utf-8"), "err": err.read_text("utf-8")}
    return {"value": value, "status": status, "seconds": seconds, **texts}


def make(adapter, call):
    """The exit status of a call, and what it returns."""
    try:
        return 0, getattr(adapter, call["call"])(call["arguments"])
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None), None
    except BaseException:
        traceback.print_exc()
        return 1, None


def answer_alone(adapter, call):
    """Make a call in a forked process; one that works on and on is ended."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        if (process := os.fork()) == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (call["seconds"], call["seconds"]))
            try:
                json.dump(answer(adapter, call), file)
                file.flush()
            finally:
                os._exit(0)
        os.waitpid(process, 0)
        file.seek(0)
        text = file.read()
        return json.loads(text) if text else {"value": None, "status": -1, "out": "", "err": "killed", "seconds": 0}


def main():
    """Answer all calls."""
    work = json.load(sys.stdin)
    sys.path.insert(0, sys.argv[1])
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    adapter = importlib.import_module("adapter")
    adapter.preload()
    inputs.make(adapter.folders())
    for call in work["calls"]:
        print(json.dumps((answer_alone if work["alone"] else answer)(adapter, call)), file=answers, flush=True)


if __name__ == "__main__":
    main()
