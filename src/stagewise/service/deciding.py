"""One decision of a desk: a function of the problem, what is known, the controls, what was asked, and the id.

The random numbers follow from the experiment's secret key and the decision's id, so a retry never draws again, and
nobody who can choose ids can choose draws.
"""

import hashlib
import hmac
import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple

import msgspec
import numpy as np

from stagewise.kernels.compile import Ints
from stagewise.policies.agent.guard import note_contradictions, unwatched
from stagewise.policies.agent.notes import Notes
from stagewise.policies.policy import State
from stagewise.policies.problem import Problem
from stagewise.policies.users import choose_all, numbers_of
from stagewise.problem.action_set import ALL
from stagewise.problem.actions import mask_of
from stagewise.problem.context import Context
from stagewise.problem.errors import InvalidActions
from stagewise.problem.naming import listing, number_of, segment_name
from stagewise.problem.thresholds import Thresholds
from stagewise.records.draw import Draw
from stagewise.records.reason import Cause, Reason
from stagewise.service.controls import Controls, chosen_for_canary
from stagewise.service.messages import Kept

log = logging.getLogger("stagewise.desk")

STOPPED = (Reason.KILLED, Reason.TRIPPED)
BLOCK = 64  # bytes of SHA-256
DRAWS = Struct(">QII16x").unpack
DRAWN = np.dtype([("seed", ">u8"), ("run", ">u4"), ("round", ">u4"), ("rest", "V16")])  # the same, of many


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


class Row(msgspec.Struct):
    """The body of a decision's row where nothing is out of the ordinary; its names stand sorted, as it is written."""

    action: str
    asked: dict[str, Any]
    control: tuple[int, int]
    details: dict[str, Any]
    estimated_reward: float
    hoped: float
    index: int
    limits: dict[str, Kept]
    mode: str
    probabilities: dict[str, float]
    problem: int
    reason: str | None
    state: int


encoded = msgspec.json.Encoder(order="deterministic").encode
"""A `Row` as JSON: what `canonical` makes of the same names and values."""


@lru_cache(256)
def keyed(key: bytes) -> tuple[Any, Any]:
    """Return the beginnings of a key's HMAC, within and without.

    `hmac.digest` gives way to every other thread at each call, and `hmac.new` takes twice as long.
    """
    padded = (hashlib.sha256(key).digest() if len(key) > BLOCK else key).ljust(BLOCK, b"\0")
    return tuple(hashlib.sha256(bytes(byte ^ pad for byte in padded)) for pad in (0x36, 0x5C))  # type: ignore[return-value]


def draw_of(key: bytes, id_: str) -> Draw:
    """Return where the random numbers of a decision come from."""
    seed, run, round_ = DRAWS(signed(key, [id_]))
    return Draw(seed >> 1, 1 + run % (2**32 - 1), round_)


def draws_of(key: bytes, ids: Sequence[str]) -> Ints:
    """Return the same for many decisions (n, 3)."""
    told, draws = np.frombuffer(signed(key, ids), DRAWN), np.empty((len(ids), 3), dtype=np.int64)
    draws[:, 0], draws[:, 1], draws[:, 2] = told["seed"] >> 1, 1 + told["run"] % (2**32 - 1), told["round"]
    return draws


def signed(key: bytes, ids: Sequence[str]) -> bytes:
    """Return the HMACs of ids, one behind the other."""
    (inner, outer), made = keyed(key), list[bytes]()
    for id_ in ids:
        within, without = inner.copy(), outer.copy()
        within.update(id_.encode())
        without.update(within.digest())
        made.append(without.digest())
    return b"".join(made)


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


def why_safe(controls: Controls, everywhere: Controls, id_: str) -> Cause | None:
    """Return why the safe action is served whatever the policy says; None: the policy decides."""
    killed = everywhere.killed or controls.killed
    if killed is not None:
        return killed
    if controls.mode == "off":
        return Cause(Reason.OFF)
    if controls.mode == "shadow":
        return Cause(Reason.SHADOW)
    if controls.mode == "canary" and not chosen_for_canary(id_, controls.share):
        return Cause.of(Reason.CANARY, share=controls.share)
    return None


def limits_in(
    thresholds: Thresholds, dearest: Any, estimates: Mapping[str, float] | None
) -> dict[str, dict[str, float | None]]:
    """Return the limits of a decision by name; without estimates, where nothing was computed."""
    known = estimates or {}
    rows = zip(thresholds.names, dearest, thresholds.values.tolist(), strict=True)
    return {
        name: {"dearest": float(told), "estimate": known.get(name), "threshold": value} for name, told, value in rows
    }


def in_row(cause: Cause | None) -> dict[str, Any]:
    """Return a reason and its data as a row of the log holds them."""
    return {"reason": None, "details": {}} if cause is None else {"reason": cause.reason, "details": cause.details}


def cause_in(said: Mapping[str, Any]) -> Cause | None:
    """Return what `in_row` wrote."""
    return None if said["reason"] is None else Cause.read((said["reason"], said["details"]))


def safely(known: Known, cause: Cause) -> dict[str, Any]:
    """Return the body of a decision for the safe action: nothing is computed, so nothing can fail."""
    problem, limits = known.problem, known.policy.presented
    costs = limits.values if limits.safe is None else limits.safe
    return {
        "action": problem.safe,
        "index": problem.place_of(problem.safe),
        "probabilities": {name: float(name == problem.safe) for name in problem.actions},
        "limits": limits_in(limits, costs.tolist(), None),
        "hoped": None,
        "estimated_reward": None,
        **in_row(cause),
    }


def decided(known: Known, controls: Controls, everywhere: Controls, key: bytes, id_: str, asked: Any) -> dict[str, Any]:
    """Return the body of a decision's row; raise InvalidActions where what was asked makes no sense."""
    offered = offered_of(known, asked.context, asked.only)
    why = why_safe(controls, everywhere, id_) or (None if known.read else Cause(Reason.NOT_READ))
    asks = why is None or why.reason is Reason.SHADOW
    try:
        made = by_policy(known, offered, draw_of(key, id_)) if asks else None
    except Exception:  # whatever it is, a user waits for an action that is safe
        log.exception("deciding failed; the safe action is served")
        made, why = None, why or Cause(Reason.FAILED)
    body = made if made is not None and why is None else safely(known, why or Cause(Reason.FAILED))
    if why is not None and made is not None:
        chosen = ("action", "probabilities", "limits", "estimated_reward", "reason", "details")
        body["choice"] = {name: made[name] for name in chosen}
    return {**body, **circumstances(known, controls, everywhere, body["reason"], asked)}


def circumstances(
    known: Known, controls: Controls, everywhere: Controls, reason: Reason | None, asked: Any
) -> dict[str, Any]:
    """Return what was asked, and by what it is decided."""
    return {
        "asked": asked_for(asked),
        "mode": "killed" if reason in STOPPED else controls.mode,
        "problem": known.version,
        "state": known.seq,
        "control": [controls.row, everywhere.row],
    }


def asked_for(asked: Any) -> dict[str, Any]:
    """Return what was asked, as it is written."""
    told = {"context": asked.context}
    if asked.only is not None:
        told["only"] = asked.only
    if asked.deferred:
        told["deferred"] = True
    return told


def decided_all(
    known: Known, controls: Controls, everywhere: Controls, key: bytes, asked: Sequence[tuple[str, Any]]
) -> list[Row | None]:
    """Return the bodies of many decisions, each as `decided` makes it, to the bit; None: that is to be asked."""
    problem, made = known.problem, list[Row | None]([None] * len(asked))
    plain = controls.mode == "live" and controls.killed is None and everywhere.killed is None and known.read
    if not plain or known.notes.open_doubts:
        return made
    numbers = [numbers_of(problem, one.context) if one.only is None else None for _, one in asked]
    segments = [
        None if told is None else segments_of(problem, one[1].context) for told, one in zip(numbers, asked, strict=True)
    ]
    users = [i for i, told in enumerate(segments) if told is not None]
    if not users:
        return made
    actions, limits = problem.actions, known.policy.presented
    allowed = [place for place, name in enumerate(actions) if name not in known.retired]
    eligible = mask_of(allowed, len(actions)) if known.retired else ALL
    draws = draws_of(key, [asked[i][0] for i in users])
    told = choose_all(
        known.policy, known.state, [numbers[i] for i in users], [segments[i] for i in users], eligible, draws
    )
    control, thresholds = (controls.row, everywhere.row), limits.values.tolist()
    for i, played in zip(users, told, strict=True):
        if played is not None:
            place, odds, hoped, dearest, cause, mean, costs = played
            kept = dict(zip(limits.names, map(Kept, dearest, costs, thresholds), strict=True))
            made[i] = Row(
                actions[place], asked_for(asked[i][1]), control, {}, mean, hoped, place, kept, controls.mode,
                dict(zip(actions, odds, strict=True)), known.version, None if cause is None else cause.reason,
                known.seq,
            )  # fmt: skip
    return made


def segments_of(problem: Problem, context: Mapping[str, Any]) -> list[int] | None:
    """Return the segments of a user by their numbers; None: one is no segment, and asked alone he is refused."""
    try:
        return [number_of(segment_name(context[name], name)) for name in problem.divisions]
    except InvalidActions:
        return None


def by_policy(known: Known, offered: Context, draw: Draw) -> dict[str, Any]:
    """Return what the policy decides, or the safe action where something contradicts safety."""
    policy, notes = known.policy, known.notes
    decision = policy.choose(known.state, offered, draw)
    if decision.reason is Reason.CONTRADICTION:
        told = notes.copied()
        note_contradictions(policy, known.state, told, decision)
        if not told.open_doubts:
            decision = unwatched(policy).choose(known.state, offered, draw)
        notes = told
    doubts = notes.open_doubts
    if doubts:
        return safely(known, next(iter(doubts.values())))
    return {
        "action": decision.name,
        "index": int(decision.index),
        "probabilities": decision.probabilities,
        "limits": limits_in(policy.presented, decision.dearest.tolist(), decision.estimated_cost),
        "hoped": float(decision.hoped),
        "estimated_reward": decision.estimated_reward,
        **in_row(decision.cause),
    }
