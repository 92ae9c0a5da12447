"""One decision: a function of problem, policy snapshot, controls, request and id.

Random numbers are derived from the experiment's secret key and the decision's id. A retry never samples again, and
choosing an id does not choose a sample.
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

from stagewise.agent.guard import get_unwatched, record_contradictions
from stagewise.agent.statistics import Statistics
from stagewise.engine.compile import Ints
from stagewise.policies.batch_decisions import choose_batch, get_plain_numbers
from stagewise.policies.policy import State
from stagewise.policies.problem import Problem
from stagewise.problem.actions import ALL, build_mask
from stagewise.problem.context import Context, check_segment_name, hash_segment
from stagewise.problem.errors import ErrorCode, InvalidActions
from stagewise.problem.formatting import join_names
from stagewise.problem.thresholds import Thresholds
from stagewise.records.random_key import RandomKey
from stagewise.records.reason import Reason, ReasonDetails
from stagewise.server.controls import Controls, is_in_canary
from stagewise.server.messages import LimitStatus

log = logging.getLogger("stagewise.server")

STOP_REASONS = (Reason.KILLED, Reason.TRIPPED)
BLOCK_SIZE = 64  # block size of SHA-256 in bytes
UNPACK_DRAW = Struct(">QII16x").unpack
DRAW_DTYPE = np.dtype([("seed", ">u8"), ("run", ">u4"), ("round", ">u4"), ("rest", "V16")])  # the same layout for many


class PolicySnapshot(NamedTuple):
    """A problem and the learned state of its policy after a row of the log."""

    problem: Problem
    policy: Any
    version: int
    """The version of the problem."""
    retired: frozenset[str]
    """Actions of earlier versions that are no longer available."""
    seq: int
    """The last learned row; 0 if none."""
    state: State
    statistics: Statistics
    """Alerts and their acknowledgements."""
    read: bool = True
    """False if this process has not read the log yet, so that alerts may be missing."""


class DecisionBody(msgspec.Struct):
    """The body of an ordinary decision row; fields are sorted by name, as canonical JSON writes them."""

    action: str
    control: tuple[int, int]
    details: dict[str, Any]
    estimated_reward: float
    index: int
    limits: dict[str, LimitStatus]
    mode: str
    optimistic_reward: float
    probabilities: dict[str, float]
    problem: int
    reason: str | None
    request: dict[str, Any]
    snapshot: int


encode_body = msgspec.json.Encoder(order="deterministic").encode
"""Encode a `DecisionBody` to the same bytes as `encode_canonical`."""


@lru_cache(256)
def build_hmac_pads(key: bytes) -> tuple[Any, Any]:
    """Return the inner and outer hash states of a key's HMAC.

    `hmac.digest` releases the GIL at each call, and `hmac.new` takes twice as long.
    """
    padded = (hashlib.sha256(key).digest() if len(key) > BLOCK_SIZE else key).ljust(BLOCK_SIZE, b"\0")
    return tuple(hashlib.sha256(bytes(byte ^ pad for byte in padded)) for pad in (0x36, 0x5C))  # type: ignore[return-value]


def compute_draw(key: bytes, id_: str) -> RandomKey:
    """Return the seed of a decision's random numbers."""
    seed, run, round_ = UNPACK_DRAW(compute_hmacs(key, [id_]))
    return RandomKey(seed >> 1, 1 + run % (2**32 - 1), round_)


def compute_draws(key: bytes, ids: Sequence[str]) -> Ints:
    """Return the seeds of many decisions (n, 3)."""
    parts, draws = np.frombuffer(compute_hmacs(key, ids), DRAW_DTYPE), np.empty((len(ids), 3), dtype=np.int64)
    draws[:, 0], draws[:, 1], draws[:, 2] = parts["seed"] >> 1, 1 + parts["run"] % (2**32 - 1), parts["round"]
    return draws


def compute_hmacs(key: bytes, ids: Sequence[str]) -> bytes:
    """Return the concatenated HMACs of ids."""
    (inner, outer), digests = build_hmac_pads(key), list[bytes]()
    for id_ in ids:
        within, without = inner.copy(), outer.copy()
        within.update(id_.encode())
        without.update(within.digest())
        digests.append(without.digest())
    return b"".join(digests)


def derive_dry_run_key(key: bytes) -> bytes:
    """Derive the key of dry runs. With the real key, a client could preview samples and choose among ids."""
    return hmac.digest(key, b"dry runs", "sha256")


def build_context(snapshot: PolicySnapshot, context: Mapping[str, Any], only: list[str] | None) -> Context:
    """Validate a context and return it with the available actions."""
    problem = snapshot.problem
    if snapshot.retired:
        allowed = [name for name in problem.actions if name not in snapshot.retired]
        retired = next((name for name in only or () if name in snapshot.retired), None)
        if retired is not None:
            raise InvalidActions(
                ErrorCode.ACTION_RETIRED,
                "{retired!r} was retired by a later version of the problem; the actions are {allowed}",
                retired=retired,
                allowed=join_names(allowed),
            )
        only = allowed if only is None else only
    return problem.encode_context(context, only)


def get_override_cause(controls: Controls, everywhere: Controls, id_: str) -> ReasonDetails | None:
    """Return why the safe action is served regardless of the policy; None if the policy decides."""
    killed = everywhere.killed or controls.killed
    if killed is not None:
        return killed
    if controls.mode == "off":
        return ReasonDetails(Reason.EXPERIMENT_OFF)
    if controls.mode == "shadow":
        return ReasonDetails(Reason.SHADOW)
    if controls.mode == "canary" and not is_in_canary(id_, controls.share):
        return ReasonDetails.of(Reason.OUTSIDE_CANARY, share=controls.share)
    return None


def build_limits(
    thresholds: Thresholds, pessimistic_cost: Any, estimates: Mapping[str, float] | None
) -> dict[str, dict[str, float | None]]:
    """Return the limits of a decision by name; estimates are None if nothing was computed."""
    means = estimates or {}
    rows = zip(thresholds.names, pessimistic_cost, thresholds.values.tolist(), strict=True)
    return {
        name: {"pessimistic_cost": float(cost), "estimate": means.get(name), "threshold": threshold}
        for name, cost, threshold in rows
    }


def encode_cause(cause: ReasonDetails | None) -> dict[str, Any]:
    """Encode a reason and its details for a row of the log."""
    return {"reason": None, "details": {}} if cause is None else {"reason": cause.reason, "details": cause.details}


def decode_cause(body: Mapping[str, Any]) -> ReasonDetails | None:
    """Decode what `encode_cause` wrote."""
    return None if body["reason"] is None else ReasonDetails.from_json((body["reason"], body["details"]))


def build_safe_body(snapshot: PolicySnapshot, cause: ReasonDetails) -> dict[str, Any]:
    """Return the body of a decision for the safe action; nothing is computed, so nothing can fail."""
    problem, limits = snapshot.problem, snapshot.policy.display_thresholds
    costs = limits.values if limits.safe is None else limits.safe
    return {
        "action": problem.safe,
        "index": problem.get_action_index(problem.safe),
        "probabilities": {name: float(name == problem.safe) for name in problem.actions},
        "limits": build_limits(limits, costs.tolist(), None),
        "optimistic_reward": None,
        "estimated_reward": None,
        **encode_cause(cause),
    }


def make_decision(
    snapshot: PolicySnapshot, controls: Controls, everywhere: Controls, key: bytes, id_: str, request: Any
) -> dict[str, Any]:
    """Return the body of a decision row. Raises InvalidActions for an invalid request."""
    context = build_context(snapshot, request.context, request.only)
    cause = get_override_cause(controls, everywhere, id_) or (
        None if snapshot.read else ReasonDetails(Reason.SERVER_NOT_READY)
    )
    asks_policy = cause is None or cause.reason is Reason.SHADOW
    try:
        result = apply_policy(snapshot, context, compute_draw(key, id_)) if asks_policy else None
    except Exception:  # whatever failed, the client needs a safe action
        log.exception("deciding failed; the safe action is served")
        result, cause = None, cause or ReasonDetails(Reason.DECISION_FAILED)
    body = (
        result
        if result is not None and cause is None
        else build_safe_body(snapshot, cause or ReasonDetails(Reason.DECISION_FAILED))
    )
    if cause is not None and result is not None:
        copied = ("action", "probabilities", "limits", "estimated_reward", "reason", "details")
        body["choice"] = {name: result[name] for name in copied}
    return {**body, **build_provenance(snapshot, controls, everywhere, body["reason"], request)}


def build_provenance(
    snapshot: PolicySnapshot, controls: Controls, everywhere: Controls, reason: Reason | None, request: Any
) -> dict[str, Any]:
    """Return the request, and the versions of all that the decision depends on."""
    return {
        "request": encode_request(request),
        "mode": "killed" if reason in STOP_REASONS else controls.mode,
        "problem": snapshot.version,
        "snapshot": snapshot.seq,
        "control": [controls.row, everywhere.row],
    }


def encode_request(request: Any) -> dict[str, Any]:
    """Encode a request for the log."""
    content = {"context": request.context}
    if request.only is not None:
        content["only"] = request.only
    if request.deferred:
        content["deferred"] = True
    return content


def make_decisions(
    snapshot: PolicySnapshot, controls: Controls, everywhere: Controls, key: bytes, requests: Sequence[tuple[str, Any]]
) -> list[DecisionBody | None]:
    """Return the bodies of many decisions, equal to those of `make_decision`; None: use `make_decision`."""
    problem, bodies = snapshot.problem, list[DecisionBody | None]([None] * len(requests))
    is_ordinary = controls.mode == "live" and controls.killed is None and everywhere.killed is None and snapshot.read
    if not is_ordinary or snapshot.statistics.open_alerts:
        return bodies
    numbers = [get_plain_numbers(problem, one.context) if one.only is None else None for _, one in requests]
    segments = [
        None if values is None else parse_segments(problem, request.context)
        for values, (_, request) in zip(numbers, requests, strict=True)
    ]
    users = [i for i, values in enumerate(segments) if values is not None]
    if not users:
        return bodies
    actions, limits = problem.actions, snapshot.policy.display_thresholds
    allowed = [index for index, name in enumerate(actions) if name not in snapshot.retired]
    eligible = build_mask(allowed, len(actions)) if snapshot.retired else ALL
    draws = compute_draws(key, [requests[i][0] for i in users])
    choices = choose_batch(
        snapshot.policy, snapshot.state, [numbers[i] for i in users], [segments[i] for i in users], eligible, draws
    )
    control, thresholds = (controls.row, everywhere.row), limits.values.tolist()
    for i, choice in zip(users, choices, strict=True):
        if choice is not None:
            index, probabilities, optimistic_reward, pessimistic_cost, cause, reward, costs = choice
            limit_statuses = dict(zip(limits.names, map(LimitStatus, costs, pessimistic_cost, thresholds), strict=True))
            bodies[i] = DecisionBody(
                actions[index], control, {}, reward, index, limit_statuses, controls.mode, optimistic_reward,
                dict(zip(actions, probabilities, strict=True)), snapshot.version,
                None if cause is None else cause.reason, encode_request(requests[i][1]), snapshot.seq,
            )  # fmt: skip
    return bodies


def parse_segments(problem: Problem, context: Mapping[str, Any]) -> list[int] | None:
    """Return the hashed segments of a context; None if one is invalid."""
    try:
        return [hash_segment(check_segment_name(context[name], name)) for name in problem.divisions]
    except InvalidActions:
        return None


def apply_policy(snapshot: PolicySnapshot, context: Context, draw: RandomKey) -> dict[str, Any]:
    """Return the policy's decision, or the safe action if there is an open alert."""
    policy, statistics = snapshot.policy, snapshot.statistics
    decision = policy.choose(snapshot.state, context, draw)
    if decision.reason is Reason.ASSUMPTION_CONTRADICTED:
        statistics = statistics.clone()
        record_contradictions(policy, snapshot.state, statistics, decision)
        if not statistics.open_alerts:
            decision = get_unwatched(policy).choose(snapshot.state, context, draw)
    alerts = statistics.open_alerts
    if alerts:
        return build_safe_body(snapshot, next(iter(alerts.values())))
    return {
        "action": decision.name,
        "index": int(decision.action_index),
        "probabilities": decision.probabilities,
        "limits": build_limits(policy.display_thresholds, decision.pessimistic_cost.tolist(), decision.estimated_cost),
        "optimistic_reward": float(decision.optimistic_reward),
        "estimated_reward": decision.estimated_reward,
        **encode_cause(decision.reason_details),
    }
