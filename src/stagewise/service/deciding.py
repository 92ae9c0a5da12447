"""One decision of a desk: a function of the problem, what is known, the controls, what was asked, and the id.

The random numbers follow from the experiment's secret key and the decision's id, so a retry never draws again, and
nobody who can choose ids can choose draws.
"""

import hmac
import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from stagewise.policies.agent.guard import KNOWN, note_contradictions, unwatched
from stagewise.policies.agent.notes import Notes
from stagewise.policies.policy import State
from stagewise.policies.problem import Problem
from stagewise.problem.context import Context
from stagewise.problem.errors import InvalidActions
from stagewise.problem.naming import listing
from stagewise.problem.thresholds import Thresholds
from stagewise.records.draw import Draw
from stagewise.service.controls import Controls, chosen_for_canary

log = logging.getLogger("stagewise.desk")

# Kinds of fallback, for counting.
KILLED, OFF, SHADOW, CANARY, DOUBT, POLICY, FAILED, UNLOGGED, UNREAD = (
    "killed", "off", "shadow", "canary", "contradiction", "policy", "failed", "store", "unread",
)  # fmt: skip
NOT_READ = "what was learned and what is in doubt is not read yet; the safe action is served until it is"


class Known(NamedTuple):
    """What a decider knows: a problem, and what was learned of it up to a row of the log."""

    problem: Problem
    policy: Any
    version: int
    """Of the problem."""
    retired: frozenset[str]
    """Actions of earlier versions that are not offered any more."""
    seq: int
    """The last row that was learned from; 0: none."""
    state: State
    notes: Notes
    """Doubts, and what a person has said to them."""
    read: bool = True
    """Whether it is what the log says; False: this process has not read that yet, so something may be in doubt."""


@lru_cache(256)
def keyed(key: bytes) -> hmac.HMAC:
    """Return the beginning of a digest by a key; `hmac.digest` gives way to every other thread at each call."""
    return hmac.new(key, digestmod="sha256")


def draw_of(key: bytes, id_: str) -> Draw:
    """Return where the random numbers of a decision come from."""
    begun = keyed(key).copy()
    begun.update(id_.encode())
    told = begun.digest()
    return Draw(
        int.from_bytes(told[:8]) >> 1, 1 + int.from_bytes(told[8:12]) % (2**32 - 1), int.from_bytes(told[12:16])
    )


def dry_key(key: bytes) -> bytes:
    """Return the key of dry runs: whoever could see an id's draw before he asks in earnest could choose his draws."""
    return hmac.digest(key, b"dry runs", "sha256")


def offered_of(known: Known, context: Mapping[str, Any], only: list[str] | None) -> Context:
    """Return what is on offer to a user, checked: what was said only, and nothing that was retired."""
    problem = known.problem
    if known.retired:
        allowed = [name for name in problem.actions if name not in known.retired]
        gone = next((name for name in only or () if name in known.retired), None)
        if gone is not None:
            raise InvalidActions(
                f"{gone!r} was retired by a later version of the problem; there are {listing(allowed)}"
            )
        only = allowed if only is None else only
    return problem.offered(context, only)


def why_safe(controls: Controls, everywhere: Controls, id_: str) -> tuple[str, str] | None:
    """Return why the safe action is served whatever the policy says, with its kind; None: the policy decides."""
    killed = everywhere.killed or controls.killed
    if killed is not None:
        return KILLED, killed
    if controls.mode == "off":
        return OFF, "the experiment is off"
    if controls.mode == "shadow":
        return SHADOW, "shadow: the safe action is served and the choice is logged"
    if controls.mode == "canary" and not chosen_for_canary(id_, controls.share):
        return CANARY, f"canary: not among the {controls.share:.4g} of decisions that are the policy's"
    return None


def limits_in(thresholds: Thresholds, dearest: Any) -> dict[str, dict[str, float]]:
    """Return the limits of a decision by name."""
    rows = zip(thresholds.names, dearest, thresholds.values.tolist(), strict=True)
    return {name: {"dearest": float(told), "threshold": value} for name, told, value in rows}


def safely(known: Known, kind: str, why: str) -> dict[str, Any]:
    """Return the body of a decision for the safe action: nothing is computed, so nothing can fail."""
    problem, limits = known.problem, known.policy.presented
    costs = limits.values if limits.safe is None else limits.safe
    return {
        "action": problem.safe,
        "index": problem.place_of(problem.safe),
        "probabilities": {name: float(name == problem.safe) for name in problem.actions},
        "limits": limits_in(limits, costs.tolist()),
        "hoped": None,
        "fallback": why,
        "kind": kind,
    }


def decided(known: Known, controls: Controls, everywhere: Controls, key: bytes, id_: str, asked: Any) -> dict[str, Any]:
    """Return the body of a decision's row; raise InvalidActions where what was asked makes no sense."""
    offered = offered_of(known, asked.context, asked.only)
    why = why_safe(controls, everywhere, id_) or (None if known.read else (UNREAD, NOT_READ))
    try:
        made = by_policy(known, offered, draw_of(key, id_)) if why is None or why[0] == SHADOW else None
    except Exception:  # whatever it is, a user waits for an action that is safe
        log.exception("deciding failed; the safe action is served")
        made, why = None, why or (FAILED, "deciding failed inside the desk, see its log; the safe action is served")
    body = made if made is not None and why is None else safely(known, *(why or (FAILED, "")))
    if why is not None and made is not None:
        body["choice"] = {name: made[name] for name in ("action", "probabilities", "limits", "fallback")}
    asked_for = {"context": asked.context, **({} if asked.only is None else {"only": asked.only})}
    if asked.deferred:
        asked_for["deferred"] = True
    mode = "killed" if body["kind"] == KILLED else controls.mode
    return {
        **body,
        "asked": asked_for,
        "mode": mode,
        "problem": known.version,
        "state": known.seq,
        "control": [controls.row, everywhere.row],
    }


def by_policy(known: Known, offered: Context, draw: Draw) -> dict[str, Any]:
    """Return what the policy decides, or the safe action where something contradicts safety."""
    policy, notes = known.policy, known.notes
    decision = policy.choose(known.state, offered, draw)
    if decision.fallback is not None and decision.fallback not in KNOWN:
        told = notes.copied()
        note_contradictions(policy, known.state, told, decision)
        if not told.open_doubts:
            decision = unwatched(policy).choose(known.state, offered, draw)
        notes = told
    doubts = notes.open_doubts
    if doubts:
        return safely(known, DOUBT, next(iter(doubts.values())))
    fallback = decision.fallback
    return {
        "action": decision.name,
        "index": int(decision.index),
        "probabilities": decision.probabilities,
        "limits": limits_in(policy.presented, decision.dearest.tolist()),
        "hoped": float(decision.hoped),
        "fallback": fallback,
        "kind": "" if fallback is None else POLICY,
    }
