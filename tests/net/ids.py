"""Run ids: of command lines that are not run, and of the rows that there are."""

from __future__ import annotations

from typing import Any

from .checkout import HERE, Call, Checkout, words


def record(checkout: Checkout) -> dict[str, Any]:
    """By command line its id, or the message in its place; and which rows are not named as what they hold says."""
    lines = [line for line in (HERE / "ids.txt").read_text("utf-8").splitlines() if line and not line.startswith("#")]
    calls = [Call(line, "run_id", words(line)) for line in lines]
    found: dict[str, Any] = {}
    for call, answer in checkout.ask([*calls, Call("rows", "row_ids", ["rows"])], alone=False):
        message = answer["err"].strip().rpartition("\n")[2].partition(": ")[2]  # without the exception's class
        found[call.name] = message if answer["status"] else answer["value"]
    names = found.pop("rows")
    found["rows"] = len(names)
    found["rows with another id"] = {name: run_id for name, run_id in names.items() if name != run_id}
    return found
