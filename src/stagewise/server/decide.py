"""Decide for a batch of requests; one decision is a batch of one.

A decision is a function of problem, policy snapshot, controls, request and id. Its random numbers are derived from the
experiment's secret key and the decision's id: a retry never samples again, and choosing an id does not choose a sample.
"""

import hmac
import logging
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from struct import Struct
from typing import Any, NamedTuple

import msgspec

from stagewise.agent.learned_state import LearnedState
from stagewise.policies.problem import Problem
from stagewise.policies.problem_policy import BatchDecision, choose_batch
from stagewise.problem.context import ContextVector
from stagewise.problem.errors import ErrorCode, InvalidActions
from stagewise.problem.formatting import join_names
from stagewise.problem.proposal import ProposalStatus, summarize_proposal
from stagewise.records.decision import RewardGuarantee, to_json_value
from stagewise.records.random_key import RandomKey
from stagewise.records.reason import FallbackReason, ReasonDetails
from stagewise.server.controls import Controls, is_in_canary
from stagewise.server.event_log import TERM_BITS, Event
from stagewise.server.messages import DecisionRequest, DecisionResponse, LimitStatus, ProposalResult

log = logging.getLogger("stagewise.server")

STOP_REASONS = (FallbackReason.KILLED, FallbackReason.TRIPPED)
UNPACK_DRAW = Struct(">QII16x").unpack


class PolicySnapshot(NamedTuple):
    """A problem and the learned state of its policy after a row of the log."""

    problem: Problem
    learned: LearnedState
    version: int
    """The version of the problem."""
    retired: frozenset[str]
    """Actions of earlier versions that are no longer available."""
    seq: int
    """The last learned row, in the order of the seals; 0 if none."""
    seen: int = 0
    """The highest number of a learned row."""
    read: bool = True
    """False if this process has not read the log yet, so that alerts may be missing."""

    @property
    def policy(self) -> Any:
        return self.learned.policy


class Choice(msgspec.Struct, gc=False):
    """An action with its bounds: what is served, or what the policy would have served instead."""

    action: str
    details: dict[str, Any] = {}
    estimated_reward: float | None = None
    limits: dict[str, LimitStatus] = {}
    probabilities: dict[str, float] = {}
    proposal: ProposalResult | msgspec.UnsetType = msgspec.UNSET
    reason: str | None = None

    @property
    def cause(self) -> ReasonDetails | None:
        """Why the safe action was served; None if there is no reason."""
        return None if self.reason is None else ReasonDetails.from_json((self.reason, self.details))


class DecisionRecord(Choice, gc=False):
    """A decision as its row of the log holds it, in canonical JSON."""

    choice: Choice | msgspec.UnsetType = msgspec.UNSET
    """What the policy would have served, if something else was served."""
    control: tuple[int, int] = (0, 0)
    """The numbers of the last control or version row of the experiment, and of the last row of the global log."""
    decided_at: int | msgspec.UnsetType = msgspec.UNSET
    """The time, in microseconds, if bounds depend on it."""
    index: int = -1
    mode: str = "live"
    optimistic_reward: float | None = None
    problem: int = 0
    """The version of the problem."""
    request: dict[str, Any] = {}
    reward_guarantee: str | msgspec.UnsetType = msgspec.UNSET
    """What is known of `optimistic_reward`, where it is no proven bound."""
    snapshot: int = 0
    """The last learned row."""

    @property
    def time(self) -> int:
        """The time of the decision, in microseconds; 0 if bounds do not depend on it."""
        return 0 if self.decided_at is msgspec.UNSET else self.decided_at

    @property
    def policy_choice(self) -> Choice | None:
        """What the policy would have served, if something else was served."""
        return None if self.choice is msgspec.UNSET else self.choice

    def to_choice(self) -> Choice:
        """Return the action and its bounds alone."""
        return Choice(*[getattr(self, name) for name in Choice.__struct_fields__])

    def to_response(self, id_: str, receipt: str | None = None) -> DecisionResponse:
        """Return the answer to the client."""
        cause = self.cause
        return DecisionResponse(
            id_, self.action, self.probabilities, self.mode, self.problem, self.snapshot, self.limits, self.reason,
            None if cause is None else cause.message, self.estimated_reward, receipt is not None, receipt,
            self.proposal, self.reward_guarantee,
        )  # fmt: skip


decode_decision = msgspec.json.Decoder(DecisionRecord).decode


def decide(
    snapshot: PolicySnapshot,
    controls: Controls,
    everywhere: Controls,
    key: bytes,
    requests: Sequence[tuple[str, DecisionRequest]],
    at: int = 0,
) -> list[DecisionRecord | InvalidActions]:
    """Decide at a time for requests with their ids, each as if it were alone; an invalid one gets its error."""
    key = derive_draws_key(key, everywhere.row)
    records, asked = list[Any]([None] * len(requests)), dict[int, ContextVector]()
    contexts = dict[int, ContextVector | None]()
    for i, (id_, request) in enumerate(requests):
        try:
            context = contexts[i] = encode_context(snapshot, request, at)
        except InvalidActions as error:
            records[i] = error
            continue
        except Exception:  # a bug; the others of the batch are not to suffer from it
            log.exception("reading a request failed; the safe action is served")
            records[i], contexts[i] = build_safe_record(snapshot, ReasonDetails(FallbackReason.DECISION_FAILED)), None
            continue
        cause = get_override_cause(controls, everywhere, id_)
        if cause is None and not snapshot.read:
            cause = ReasonDetails(FallbackReason.SERVER_NOT_READY)
        if cause is not None:
            records[i] = build_safe_record(snapshot, cause)
        if cause is None or cause.reason is FallbackReason.SHADOW:
            asked[i] = context
    try:
        chosen = choose(snapshot, list(asked.values()), [compute_draw(key, requests[i][0]) for i in asked])
    except Exception:  # whatever failed, each client needs a safe action, and others are not to suffer from one
        if len(requests) > 1:
            return [decide(snapshot, controls, everywhere, key, [one], at)[0] for one in requests]
        log.exception("deciding failed; the safe action is served")
        records = [records[0] or build_safe_record(snapshot, ReasonDetails(FallbackReason.DECISION_FAILED))]
    else:
        for i, record in zip(asked, chosen, strict=True):
            if records[i] is None:
                records[i] = record
            else:
                record.proposal = build_proposal_result(snapshot, record, asked[i])
                records[i].choice = record.to_choice()
    for i, used in contexts.items():
        add_inputs(records[i], snapshot, controls, everywhere, requests[i][1], used, at)
    return records


def add_inputs(
    record: DecisionRecord,
    snapshot: PolicySnapshot,
    controls: Controls,
    everywhere: Controls,
    request: DecisionRequest,
    context: ContextVector | None,
    at: int,
) -> None:
    """Write into a record what it was decided from: request, snapshot, controls and, if needed, the time."""
    record.proposal = build_proposal_result(snapshot, record, context)
    record.control, record.problem, record.snapshot = (controls.row, everywhere.row), snapshot.version, snapshot.seq
    if snapshot.policy.needs_times:
        record.decided_at = at
    record.mode = "killed" if record.reason in STOP_REASONS else controls.mode
    given = {name: getattr(request, name) for name in ("context", "only", "propose", "scores")}
    record.request = {name: value for name, value in given.items() if value is not None}
    if request.deferred:
        record.request["deferred"] = True


def encode_context(snapshot: PolicySnapshot, request: DecisionRequest, at: int) -> ContextVector:
    """Validate a request and return its context, at this time in microseconds, with the available actions."""
    only = request.only
    if snapshot.retired:
        allowed = [name for name in snapshot.problem.action_names if name not in snapshot.retired]
        retired = next((name for name in only or () if name in snapshot.retired), None)
        if retired is not None:
            template = "{retired!r} was retired by a later version of the problem; the actions are {allowed}"
            raise InvalidActions(ErrorCode.ACTION_RETIRED, template, retired=retired, allowed=join_names(allowed))
        only = allowed if only is None else only
    context = snapshot.problem.encode_context(request.context, only, request.propose, request.scores)
    return context.at(at / 1e6) if snapshot.policy.needs_times else context


def get_override_cause(controls: Controls, everywhere: Controls, id_: str) -> ReasonDetails | None:
    """Return why the safe action is served regardless of the policy; None if the policy decides."""
    killed = everywhere.killed or controls.killed
    if killed is not None:
        return killed
    if controls.mode == "off":
        return ReasonDetails(FallbackReason.EXPERIMENT_OFF)
    if controls.mode == "shadow":
        return ReasonDetails(FallbackReason.SHADOW)
    if controls.mode == "canary" and not is_in_canary(id_, controls.share):
        return ReasonDetails.of(FallbackReason.OUTSIDE_CANARY, share=controls.share)
    return None


def choose(
    snapshot: PolicySnapshot, contexts: Sequence[ContextVector], draws: Sequence[RandomKey]
) -> list[DecisionRecord]:
    """Return the policy's decisions; the safe action while an alert is open."""
    learned, records = snapshot.learned, list[DecisionRecord]()
    alert, chosen = learned.statistics.alert, choose_batch(learned.policy, learned.state, contexts, draws)
    for one, context, draw in zip(chosen, contexts, draws, strict=True):
        decision = one or BatchDecision.from_decision(learned.decide_aside(context, draw))
        cause = alert or decision.cause
        stops = cause if cause is not None and cause.contradicts else None
        records.append(build_record(snapshot, decision) if stops is None else build_safe_record(snapshot, stops))
    return records


def build_record(snapshot: PolicySnapshot, decision: BatchDecision) -> DecisionRecord:
    limits, actions = snapshot.policy.display_thresholds, snapshot.problem.action_names
    statuses = map(LimitStatus, decision.estimated_cost, decision.pessimistic_cost, limits.values.tolist())
    return DecisionRecord(
        actions[decision.index], estimated_reward=to_json_value(decision.estimated_reward), index=decision.index,
        limits=dict(zip(limits.names, statuses, strict=True)),
        optimistic_reward=to_json_value(decision.optimistic_reward),
        probabilities=dict(zip(actions, decision.odds, strict=True)),
        reason=None if decision.cause is None else decision.cause.reason,
        reward_guarantee=msgspec.UNSET if snapshot.policy.reward_half_life is None else str(RewardGuarantee.FORGETTING),
    )  # fmt: skip


def build_safe_record(snapshot: PolicySnapshot, cause: ReasonDetails) -> DecisionRecord:
    """Return the record of the safe action; nothing is computed, so nothing can fail."""
    problem, limits = snapshot.problem, snapshot.policy.display_thresholds
    costs = (limits.values if limits.safe is None else limits.safe).tolist()
    statuses = map(LimitStatus, [None] * len(costs), costs, limits.values.tolist())
    return DecisionRecord(
        problem.safe_name, details=dict(cause.details), index=problem.get_action_index(problem.safe_name),
        limits=dict(zip(limits.names, statuses, strict=True)),
        probabilities={name: float(name == problem.safe_name) for name in problem.action_names}, reason=cause.reason,
    )  # fmt: skip


def build_proposal_result(
    snapshot: PolicySnapshot, record: DecisionRecord, context: ContextVector | None
) -> ProposalResult | msgspec.UnsetType:
    """Return what became of the proposal of a request, by the probabilities of its record."""
    if context is None or context.proposal is None:
        return msgspec.UNSET
    problem, limits = snapshot.problem, list(record.limits.values())
    status = summarize_proposal(
        dict(zip(problem.action_names, context.proposal.values.tolist(), strict=True)), context.proposal.is_scores,
        record.probabilities, problem.safe_name, snapshot.policy.display_thresholds,
        [math.inf if limit.pessimistic_cost is None else limit.pessimistic_cost for limit in limits],
        problem.spans[1, 1:].tolist(),
    )  # fmt: skip
    return ProposalResult(list(status.binding), dict(status.held_back), status.overlap)


def compute_draw(key: bytes, id_: str) -> RandomKey:
    """Return the seed of a decision's random numbers."""
    seed, run, round_ = UNPACK_DRAW(hmac.new(key, id_.encode(), "sha256").digest())
    return RandomKey(seed >> 1, 1 + run % (2**32 - 1), round_)


def derive_draws_key(key: bytes, control: int) -> bytes:
    """Return the key of draws in the term of a row of the global log.

    A store that was restored from a backup is in another term: an id whose decision was lost is drawn anew.
    """
    term = control >> TERM_BITS
    return hmac.digest(key, f"term {term}".encode(), "sha256") if term else key


def derive_dry_run_key(key: bytes) -> bytes:
    """Derive the key of dry runs. With the real key, a client could preview samples and choose among ids."""
    return hmac.digest(key, b"dry runs", "sha256")


def describe_decision(problem: Problem, event: Event, learned: str = "") -> list[str]:
    """Return a decision as sentences, as logged in its row; `learned` is the time of the last learned row."""
    record = decode_decision(event.body)
    chance, cause, choice = record.probabilities[record.action], record.cause, record.policy_choice
    how = "with probability 1" if chance == 1.0 else f"sampled with probability {chance:.4g}"
    served = f"{record.action!r} was served, {how}, in mode {record.mode}"
    lines = [f"Decision {event.key} (number {event.number}, {format_time(event.at)}): {served}."]
    if cause is not None:
        lines.append(f"The safe action was served ({cause.reason}): {cause.message}.")
    sampled = (record if choice is None else choice).probabilities
    mixture = ", ".join(f"{name!r} {share:.4g}" for name, share in sampled.items() if share > 0.0)
    if choice is not None:
        lines.append(f"The policy would have sampled {choice.action!r} from {mixture}.")
    elif chance < 1.0:
        is_proposal = "propose" in record.request
        kind = "what the limits allow of the proposal" if is_proposal else "the best mixture under every limit"
        lines.append(f"It was sampled from {mixture}, {kind}.")
    if isinstance(record.proposal, ProposalResult):
        text = describe_proposal(record.proposal)
        lines.append(f"{text[0].upper()}{text[1:]}.")
    row = f"the policy had learned up to row {record.snapshot}{learned}" if record.snapshot else None
    lines.append(f"Version {record.problem} of the problem; {row or 'the policy had learned no row'}.")
    if record.estimated_reward is not None:
        lines.append(f"{problem.reward.name}: estimated at {record.estimated_reward:.6g}.")
    for name, limit in record.limits.items():
        word, cost = "at least" if problem.limits[name].at_least else "at most", limit.pessimistic_cost
        bound = "no finite bound" if cost is None else f"{cost:.6g}"
        mean = "no estimate" if limit.estimate is None else f"estimated at {limit.estimate:.6g}"
        lines.append(f"{name}: {mean}, bound {word} {bound}; the limit is {word} {limit.threshold:.6g}.")
    return lines


def describe_proposal(result: ProposalResult) -> str:
    """Return what became of a proposal as text.

    >>> describe_proposal(ProposalResult(["opt_out"], {"offer": 0.6}, 0.4))
    'proposal: 0.4 of it is played; held back: offer 0.6; opt_out binds'
    """
    return str(ProposalStatus({}, {}, result.overlap, result.held_back, tuple(result.binding)))


def format_time(at: int) -> str:
    """Format a time in UTC.

    >>> format_time(1_700_000_000_250_000)
    '2023-11-14 22:13:20.250 UTC'
    """
    moment = datetime.fromtimestamp(at / 1e6, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d} UTC"
