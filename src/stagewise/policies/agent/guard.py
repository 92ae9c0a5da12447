"""From doubt to decision: what contradicts safety is the cause of every decision until a person acknowledges it."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from stagewise.kernels.bounds import CENTRE, HALF
from stagewise.kernels.compile import Floats, named
from stagewise.kernels.layout import DECLARED as BOUNDED
from stagewise.kernels.layout import HOME, ROVING, roving_action
from stagewise.kernels.promise import (
    BASELINE,
    CEILING,
    DISPUTED,
    MODEL,
    NOISE,
    UNSAFE,
    disputed,
    has,
    terms_of,
)
from stagewise.models.answers import answers_of
from stagewise.models.part import parts_in
from stagewise.policies.agent.drift import look, sums_of
from stagewise.policies.agent.notes import Notes, Track
from stagewise.policies.compiled import Chosen, CompiledPolicy
from stagewise.policies.contradictions import cause_of, subject
from stagewise.policies.learning import Learning
from stagewise.policies.policy import State
from stagewise.policies.tables import SafeAlone
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.words import shown
from stagewise.records.decision import Decision
from stagewise.records.reason import Cause, Contradiction, Reason

TERMS, HAS, ROVING_ACTION = named(terms_of), named(has), named(roving_action)
TESTS = {CEILING: "cost bound", BASELINE: "safe cost", NOISE: "noise", UNSAFE: "safe action", MODEL: "model"}
DRIFT, DECLARED = "drift", "declared value"


def name_of(code: int, policy: Learning) -> str:
    """Return what a kernel's code disputes, as a person acknowledges it."""
    what, constraint = subject(code)
    return f"{TESTS[what]} of {policy.thresholds.names[constraint]}"


def disputes(policy: CompiledPolicy, seen: Chosen, memory: Floats) -> list[int]:
    """Return the code of everything that the data contradict; a kernel stops at the first."""
    layout, settings, codes = seen.layout, seen.settings, []
    for part in parts_in(layout, memory):
        for signal in range(part.signals):
            j = part.first + signal - 1
            if j < 0:
                continue
            arrays, answers = (part, layout, settings, memory, signal), answers_of(part)
            told = answers.evidence(*arrays)
            if answers.tests_noise(part) and told.least > told.noise:
                codes.append(-disputed(NOISE, j))
            safe = policy.thresholds.signed_safe
            if safe is None or not answers.anchors or part.anchored != 1:
                continue
            if answers.strays(*arrays, told, float(safe[j])):
                codes.append(-disputed(BASELINE, j))
    bounds, terms = seen.workspace.bounds, TERMS(layout, settings)
    codes += declared_disputes(policy, seen, memory)
    for j, (threshold, ceiling) in enumerate(zip(terms.thresholds, terms.ceilings, strict=True)):
        lows, half = bounds[1 + j, CENTRE] - bounds[1 + j, HALF], bounds[1 + j, HALF, -1]
        if (lows > ceiling).any():
            codes.append(-disputed(CEILING, j))
        if half != 0.0 and lows[-1] > threshold:
            codes.append(-disputed(UNSAFE, j))
    return codes


def declared_disputes(policy: CompiledPolicy, seen: Chosen, memory: Floats) -> list[int]:
    """Return the codes of bounds declared of this round's safe action, and of models, that the data contradict."""
    layout, settings, codes = seen.layout, seen.settings, list[int]()
    home = int(layout[HOME])
    for part in parts_in(layout, memory):
        codes += answers_of(part).mistold(part, layout, settings, memory)
    told_costs = declared_costs_of(policy, seen)
    place = home if home >= 0 else -1
    for j, told_cost in enumerate(told_costs):
        if seen.workspace.bounds[1 + j, CENTRE, place] - seen.workspace.bounds[1 + j, HALF, place] > told_cost:
            codes.append(-disputed(BASELINE, j))
    return codes


def declared_costs_of(policy: CompiledPolicy, seen: Chosen) -> list[float]:
    """Return what was declared of the safe action's signed costs in this round, where bounds are declared."""
    if HAS(seen.layout, ROVING):
        return [float(cost) for cost in ROVING_ACTION(seen.layout, seen.settings).costs]
    if HAS(seen.layout, BOUNDED):
        return list(getattr(policy, "declared_costs", ()))
    return []


def look_for_drift(policy: Any, memory: Floats, notes: Notes, at_once: bool = False) -> None:
    """Hold means against earlier ones where they are due, and note the costs that moved: decisions and health ask that.

    `at_once`: after a log, which is one batch, all are.
    """
    for name in look(policy, memory, notes, at_once):
        if name in policy.thresholds.names and getattr(policy, "watch", False):
            moved = notes.track_of(name).moved
            if moved is not None:
                notes.doubts.setdefault(f"{DRIFT} of {name}", moved)


def guarded(
    policy: Learning, state: State, notes: Notes, decision: Decision, actions: Any, again: Callable[[Any], Decision]
) -> Decision:
    """Return the decision, or the safe action where something contradicts safety that nobody has acknowledged.

    `again` decides with another policy in the same round.
    """
    contradicted = decision.reason is Reason.CONTRADICTION
    if contradicted:
        note_contradictions(policy, state, notes, decision)
    open_doubts = notes.open_doubts
    if open_doubts:
        cause = next(iter(open_doubts.values()))
        return decision if decision.cause == cause else stayed(policy, decision, actions, cause)
    told = decision._seen is not None or not policy.has_parts  # all that is contradicted is known
    return again(unwatched(policy)) if contradicted and told else decision


def note_contradictions(policy: Any, state: State, notes: Notes, decision: Decision) -> None:
    """Note all that a decision's memory contradicts; once noted it stays, as a test that was lost is not won back."""
    seen = decision._seen
    if seen is None or not policy.has_parts:
        if decision.cause is not None:
            notes.doubts[f"{DECLARED} of {decision.cause.details['limit']}"] = decision.cause
        return
    first = [seen.code] if seen.code <= -DISPUTED else []
    for code in [*first, *disputes(policy, seen, state.memory)]:
        told = seen.layout, seen.settings, state.memory, seen.workspace.bounds
        notes.doubts[name_of(code, policy)] = cause_of(code, policy.presented, *told)


@lru_cache(maxsize=16)
def unwatched(policy: Any) -> Any:
    """Return the same policy without the watch."""
    return policy.unwatched()


def stayed(policy: Any, decision: Decision, actions: Any, cause: Cause) -> Decision:
    """Return the safe action instead of what was decided."""
    safe, limits, (low, length) = policy.safe_action, policy.presented, policy.reward_span
    action, home, step = policy.safe_in(decision)
    probabilities: Any = decision[3]
    if probabilities is not None:
        probabilities = np.zeros(probabilities.size)
        probabilities[home] = 1.0
    hoped = low + length * (1.0 if safe.reward is None else safe.reward)
    label = "safe action" if policy.names is None else f"{policy.names[home]} (safe)"
    changed = decision._replace(
        action=action, index=home, step=step, probabilities=probabilities, hoped=hoped, dearest=limits.at_safe,
        cause=cause, gap=0.0,
    )  # fmt: skip
    return changed._with(SafeAlone(limits, label, hoped, cause.sentence), decision._offered, decision._unfollowed)


def acknowledged(policy: Any, memory: Floats, notes: Notes, name: Any, note: Any) -> None:
    """Let go on what contradicts safety, on a person's word; where means moved, only what comes from now on counts."""
    if not isinstance(note, str):
        raise InvalidProblem(f"note is {shown(note)}; it must be text: who says so, and why")
    open_doubts = notes.open_doubts
    if not isinstance(name, str) or name not in open_doubts:
        what = f"in doubt are {shown(list(open_doubts))}" if open_doubts else "nothing is"
        raise InvalidProblem(f"{shown(name)} is not in doubt; {what}")
    details = open_doubts[name].details
    if details["found"] != Contradiction.DRIFT or not policy.has_parts:
        notes.accepted[name] = note
        return
    del notes.doubts[name]
    moved_on = details["limit"]  # the others are held against all that was seen, as before
    notes.tracks[moved_on] = Track(sums_of(policy, memory, moved_on), notes.track_of(moved_on).marked)
    notes.rest = 1
