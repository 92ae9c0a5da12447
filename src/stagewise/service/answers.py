"""From rows of the log to what clients are answered, and to sentences."""

from typing import Any

from stagewise.policies.problem import Problem
from stagewise.problem.errors import StagewiseError
from stagewise.service.messages import Decided, Kept, Refusal
from stagewise.service.store.store import StoreDown


def in_words(problem: Problem, body: dict[str, Any]) -> list[str]:
    """Return a decision as sentences."""
    sure = max(body["probabilities"].values())
    drawn = "for certain" if sure == 1.0 else f"with probability {body['probabilities'][body['action']]:.4g}"
    told = [
        f"{body['action']!r} was served {drawn}, in mode {body['mode']}, by version {body['problem']} of the problem "
        f"and what was learned up to row {body['state']}."
    ]
    if body["fallback"] is not None:
        told.append(f"The safe action was served because: {body['fallback']}.")
    for name, kept in body["limits"].items():
        bound = "at least" if problem.limits[name].at_least else "at most"
        dearest = "nothing finite" if kept["dearest"] is None else f"{kept['dearest']:.4g}"
        told.append(f"{name}: expected {bound} {dearest} by what was known; the limit is {kept['threshold']:.4g}.")
    return told


def answer(id_: str, body: dict[str, Any], logged: bool = True) -> Decided:
    """Return a decision's row as it is answered."""
    limits = {name: Kept(kept["dearest"], kept["threshold"]) for name, kept in body["limits"].items()}
    return Decided(
        id_, body["action"], body["probabilities"], body["mode"], body["problem"], body["state"], limits,
        body["fallback"], logged,
    )  # fmt: skip


def told_of(result: Any, id_: str | None = None) -> Any:
    """Return an answer, or a refusal in its place; what nobody foresaw goes on, and so does a store that is away."""
    if isinstance(result, StagewiseError) and not isinstance(result, StoreDown):
        return Refusal(str(result), id_)
    if isinstance(result, BaseException):
        raise result
    return result
