"""A decision held against what was offered, before a round is judged by it: one's own policy may say anything."""

from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.problem.checks import number, shown, whole
from stagewise.problem.errors import InvalidProblem
from stagewise.records.decision import Decision
from stagewise.simulation.judge import Judge

SLIGHT = 1e-9  # relative; differences below it are arithmetic


def expected(decision: Any, actions: Any, judge: Judge, round_: int) -> Floats:
    """Return the true expected reward and costs of a decision: of the action, or of the mixture it was drawn from.

    Refused is one that could not have been made: chances that are none, an action that is not the one its index, its
    step and its chances speak of, or that was not offered.
    """
    try:
        if not isinstance(decision, Decision):
            raise InvalidProblem(f"it is {shown(decision)}; it must be a Decision")
        if decision.probabilities is None:
            check_played(decision, actions, judge)
        else:
            check_drawn(decision, chances_of(decision.probabilities, actions, judge), actions, judge)
    except (ValueError, TypeError) as error:  # a StagewiseError is a ValueError, and so is a ragged array
        raise InvalidProblem(f"the policy's decision in round {round_} cannot be judged: {error}") from None
    if decision.probabilities is None:
        return judge.world.means_played(decision.index, decision.action, actions)
    total, chances = np.zeros(judge.signs.size), np.asarray(decision.probabilities)
    for index in np.flatnonzero(chances):
        total += chances[index] * judge.means_at(int(index), actions)
    return total


def place_of(index: int, actions: Any, judge: Judge) -> Any:
    """Return what is listed under an index; the safe action under −1 and at the end of the list.

    Refused is what was not eligible. The safe action always is.
    """
    safe, eligible = judge.safe_in(actions), actions.eligible
    place = safe if index in (-1, actions.count) else actions.at(index)
    if place is None:
        raise InvalidProblem("it speaks of a safe action beside the list, and there is none")
    if 0 <= index < eligible.size and not eligible[index] and not equal(place, safe):
        raise InvalidProblem(f"it gives action {index} a chance, which is not eligible in this round")
    return place


def chances_of(probabilities: Any, actions: Any, judge: Judge) -> Floats:
    """Return a mixture of the listed actions and the safe one beside them, or refuse what is none."""
    chances: Floats = np.asarray(probabilities)
    count = actions.count
    if chances.dtype.kind not in "fiu" or chances.shape != (count + 1,):
        raise InvalidProblem(
            f"it has probabilities of shape {chances.shape} and type {chances.dtype}; they must be {count + 1} "
            f"numbers, of the {count} listed actions and then of the safe action beside them"
        )
    if not (np.all(chances >= -SLIGHT) and abs(float(chances.sum()) - 1.0) <= SLIGHT):  # false for NaN too
        raise InvalidProblem(
            f"it has the probabilities {shown(chances.tolist())}; none may be negative and their sum must be 1, since "
            "the round is judged by the mixture's expectation"
        )
    for index in np.flatnonzero(chances):
        place_of(int(index), actions, judge)
    return chances


def check_drawn(decision: Decision, chances: Floats, actions: Any, judge: Judge) -> None:
    """Refuse an action that cannot have been drawn from the mixture."""
    index = index_of(decision, actions)
    if not chances[index] > 0.0:
        raise InvalidProblem(
            f"it has index {index}, whose probability is {chances[index]:g}; what is played must be "
            "drawn from the mixture"
        )
    check_equal(decision.action, place_of(index, actions, judge), index)


def check_played(decision: Decision, actions: Any, judge: Judge) -> None:
    """Refuse an action that is not the one of its index and step, or lies outside the convex set that was offered."""
    if not actions.is_list:
        if not equal(decision.action, judge.safe) and not actions.contains(decision.action):
            raise InvalidProblem(f"it plays {told(decision.action)}, which lies outside the {type(actions).__name__}")
        return
    index = index_of(decision, actions)
    place = place_of(index, actions, judge)
    if actions.between and index >= 0:
        step = number(decision.step, "its step")
        if not 0.0 <= step <= 1.0:
            raise InvalidProblem(f"its step is {step}; along a ray it lies between 0 and 1")
        safe = judge.safe_in(actions)
        start = np.zeros_like(place) if safe is None else safe
        place = start + step * (place - start)
    check_equal(decision.action, place, index)


def index_of(decision: Decision, actions: Any) -> int:
    """Return the index of what is played among the listed actions; −1: the safe action beside them."""
    last = actions.count - 1
    return whole(decision.index, "its index", f"from -1 to {last}", -1, last)


def check_equal(action: Any, place: Any, index: int) -> None:
    """Refuse an action that is another than its index, and its step, say."""
    if not equal(action, place):
        raise InvalidProblem(
            f"it plays {told(action)}, and its index {index} and its step stand for {told(place)}; they must agree, "
            "since one is played and the other judged"
        )


def told(action: Any) -> str:
    """Return an action in one line."""
    return shown(action.tolist() if isinstance(action, np.ndarray) else action)


def equal(one: Any, other: Any) -> bool:
    """Say whether two actions are the same but for rounding; NaN is like nothing."""
    first, second = np.asarray(one), np.asarray(other)
    if first.dtype.kind not in "fiu" or second.dtype.kind not in "fiu" or first.shape != second.shape:
        return False
    near = SLIGHT * np.maximum(1.0, np.abs(second)) if first.ndim else 0.0
    return bool(np.all(np.abs(first - second) <= near))
