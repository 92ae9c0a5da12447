"""The decision server: decides with the policy snapshot, appends to the log, then answers.

It does not learn; the learner does, from the log. A server has no other state, so any number of servers can share a
store.
"""

import asyncio
import hmac
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from stagewise.agent.health import OUTCOMES, Health, add_observed_costs, check_health
from stagewise.policies.problem import Problem
from stagewise.problem.errors import ErrorCode, InvalidOutcome, StagewiseError
from stagewise.problem.formatting import safe_repr
from stagewise.records.reason import FallbackReason, ReasonDetails
from stagewise.server.controls import Controls, ProblemVersion
from stagewise.server.decide import (
    DecisionRecord,
    PolicySnapshot,
    build_safe_record,
    decide,
    decode_decision,
    derive_dry_run_key,
    describe_decision,
)
from stagewise.server.event_log import (
    CONFLICT,
    DECISION,
    DUPLICATE,
    NEW,
    OUTCOME,
    STALE,
    UNKNOWN,
    AppendRequest,
    AppendResult,
    Event,
    compute_digest,
    encode_canonical,
)
from stagewise.server.experiments import Experiment, Experiments
from stagewise.server.figures import build_figures, compute_safe_costs, summarize_recent_proposals
from stagewise.server.ids import new_id
from stagewise.server.log_statistics import StatisticsUpdater
from stagewise.server.messages import (
    Conflict,
    DecisionRequest,
    DecisionResponse,
    ErrorResponse,
    OutcomeResponse,
    OutcomeUpdate,
    UnknownDecision,
)
from stagewise.server.offline_log import (
    LogReader,
    OfflineLog,
    OfflineLogRequest,
    OfflineLogResponse,
    build_append_requests,
    check_rows,
    describe_log_conflict,
)
from stagewise.server.outcomes import validate_outcome
from stagewise.server.snapshots import build_initial_snapshot
from stagewise.server.state_fold import StateFold
from stagewise.server.store.base import Store, StoreUnavailable
from stagewise.server.user_keys import UserKey, UserKeys, build_cipher, open_rows, seal_request
from stagewise.server.webhooks.endpoints import Endpoint
from stagewise.server.writer import SPACING

MAX_ATTEMPTS = 8  # attempts of a decision while controls change
MAX_BATCH_SIZE = 1000  # requests decided together
POLL_INTERVAL = 0.01  # seconds between two checks whether an offline log is learned


class WaitingRequest(NamedTuple):
    """A request that waits to be decided, and its answer."""

    id_: str
    request: DecisionRequest
    answer: "asyncio.Future[DecisionResponse]"


class DecisionServer(Experiments):
    """All operations of a server: decisions, outcomes, offline logs, controls, figures and explanations."""

    def __init__(
        self,
        store: Store,
        *,
        learn: bool = True,
        alone: bool = True,
        max_age: float = 60.0,
        feedback_timeout: float | None = None,
        read_log: LogReader | None = None,
        webhooks: Sequence[Endpoint] = (),
        retention: float | None = None,
    ) -> None:
        super().__init__(
            store, learn=learn, alone=alone, feedback_timeout=feedback_timeout, webhooks=webhooks, retention=retention
        )
        self.max_age, self.read_log, self.statistics_updater = max_age, read_log, StatisticsUpdater(store)
        self.user_keys = UserKeys(store)

    async def stop(self) -> None:
        """Finish pending requests, save a snapshot and close the store."""
        await asyncio.to_thread(self.statistics_updater.stop)
        await super().stop()

    async def decide(self, name: str, request: DecisionRequest) -> DecisionResponse:
        """Decide for one user. The response is in the log unless `logged` is false."""
        return await self._ask(self.experiment(name), request)

    async def decide_many(
        self, name: str, requests: Sequence[DecisionRequest]
    ) -> list[DecisionResponse | ErrorResponse]:
        """Decide for several users; an item that fails is answered with its error."""
        experiment = self.experiment(name)
        answers = await asyncio.gather(*[self._ask(experiment, one) for one in requests], return_exceptions=True)
        return [to_response(answer, one.decision_id) for answer, one in zip(answers, requests, strict=True)]

    def _ask(self, experiment: Experiment, request: DecisionRequest) -> "asyncio.Future[DecisionResponse]":
        """Have a request decided with the others that arrive before the next transaction begins."""
        if request.user is not None:
            build_cipher(bytes(32))  # raises if there is none
        waiting = WaitingRequest(request.decision_id or new_id(), request, asyncio.get_running_loop().create_future())
        if request.dry_run:
            (record,) = self._decide(experiment, derive_dry_run_key(experiment.key), [waiting])
            is_decided = isinstance(record, DecisionRecord)
            set_answer(waiting, record.to_response(waiting.id_) if is_decided else record)
            return waiting.answer
        experiment.pending_requests.append(waiting)
        self._start_deciding(experiment)
        return waiting.answer

    def _start_deciding(self, experiment: Experiment) -> None:
        """Decide for all that wait, beside other batches in flight a little later, so that more share a batch."""
        active, now = experiment.deciding, time.monotonic()
        if len(active) >= self.store.max_transactions or not experiment.pending_requests or experiment.is_scheduled:
            return
        early = experiment.last_decided + SPACING - now
        if active and early > 0.0:
            experiment.is_scheduled = True
            asyncio.get_running_loop().call_later(early, self._start_scheduled, experiment)
            return
        experiment.last_decided = now
        active.add(asyncio.create_task(self._decide_waiting(experiment)))

    def _start_scheduled(self, experiment: Experiment) -> None:
        experiment.is_scheduled = False
        self._start_deciding(experiment)

    async def _decide_waiting(self, experiment: Experiment) -> None:
        """Decide for all that wait, write, answer; then for those that arrived meanwhile."""
        while batch := experiment.pending_requests[:MAX_BATCH_SIZE]:
            del experiment.pending_requests[: len(batch)]
            experiment.last_decided = time.monotonic()
            try:
                await self._decide_batch(experiment, batch)
            except Exception as error:  # a bug: nobody may wait for ever
                for one in batch:
                    set_answer(one, error)
        experiment.deciding.discard(asyncio.current_task())

    async def _decide_batch(self, experiment: Experiment, batch: Sequence[WaitingRequest]) -> None:
        """Decide, write and answer; requests whose controls changed meanwhile are decided again."""
        left, why = list(batch), "the controls changed again and again while it was made"
        for _ in range(MAX_ATTEMPTS):
            pairs = list(zip(left, self._decide(experiment, experiment.key, left), strict=True))
            for one, record in pairs:
                if isinstance(record, Exception) and one.request.decision_id is None:
                    set_answer(one, record)  # with a client's id, it may be a retry of a request that was valid
            pairs = [pair for pair in pairs if not pair[0].answer.done()]
            if not pairs:
                return
            try:
                seen = self._get_seen(experiment)
                users = {one.request.user for one, _ in pairs if one.request.user is not None}
                control = self.everywhere.row  # never older than that of the records
                keys = await asyncio.to_thread(self.user_keys.get_keys, users, control) if users else {}
                requests = [
                    build_append_request(experiment.name, one, record, seen, keys.get(one.request.user or ""))
                    for one, record in pairs
                ]
                results = await self.writer.append_all(requests)
            except StoreUnavailable as error:
                left, why = [one for one, _ in pairs], str(error)
                break
            self.learner.wake()
            left = []
            for (one, record), result in zip(pairs, results, strict=True):
                if result.status == STALE and isinstance(record, DecisionRecord):
                    left.append(one)
                else:
                    set_answer(one, self._build_answer(experiment, one, record, result))
            if not left:
                return
            await asyncio.to_thread(self.refresh)
        for one, record in zip(left, self._decide(experiment, experiment.key, left), strict=True):
            set_answer(one, self._build_unlogged(experiment, one, record, why))

    def _decide(self, experiment: Experiment, key: bytes, batch: Sequence[WaitingRequest]) -> list[Any]:
        """Return a record or an error for each request.

        Another thread may read a new version meanwhile and set the snapshot first. The snapshot is therefore read
        last: it is never older than the controls, and if it is newer, the store rejects the row as stale.
        """
        controls, everywhere = experiment.controls, self.everywhere
        requests = [(one.id_, one.request) for one in batch]
        return list(decide(experiment.policy_snapshot, controls, everywhere, key, requests, self.store.now()))

    def _get_seen(self, experiment: Experiment) -> int:
        """Return the highest number of a row that a decision may depend on."""
        return max(self.store.seen, experiment.policy_snapshot.seen, experiment.controls.row, self.everywhere.row)

    def _build_answer(
        self, experiment: Experiment, one: WaitingRequest, record: DecisionRecord | Exception, result: AppendResult
    ) -> DecisionResponse | Exception:
        """Return the answer to a request: its new row, the earlier row of a retry, or an error."""
        if result.status == DUPLICATE and result.event is not None:
            return decode_decision(result.event.body).to_response(one.id_, result.event.receipt)
        if isinstance(record, Exception):
            return record
        if result.status == CONFLICT:
            problem = result.message or f"decision {safe_repr(one.id_)} was asked before with other content"
            return Conflict(ErrorCode.CONFLICT, "{problem}", problem=problem)
        self.counters.decisions[experiment.name, record.action, record.mode, record.reason or ""] += 1
        return record.to_response(one.id_, None if result.event is None else result.event.receipt)

    def _build_unlogged(
        self, experiment: Experiment, one: WaitingRequest, record: DecisionRecord | Exception, error: str
    ) -> DecisionResponse | Exception:
        """Return the safe action with `logged` false."""
        if isinstance(record, Exception):
            return record
        safe = build_safe_record(
            experiment.policy_snapshot, ReasonDetails.of(FallbackReason.LOG_WRITE_FAILED, error=error)
        )
        safe.mode, safe.problem, safe.snapshot = record.mode, record.problem, record.snapshot
        self.counters.decisions[experiment.name, safe.action, safe.mode, FallbackReason.LOG_WRITE_FAILED] += 1
        return safe.to_response(one.id_)

    async def learn(self, name: str, outcome: OutcomeUpdate) -> OutcomeResponse:
        """Accept signals of a decision, each once; durable before it is acknowledged."""
        (answer,) = await self._learn(self.experiment(name), [outcome])
        if isinstance(answer, StagewiseError):
            raise answer
        return answer

    async def learn_many(self, name: str, outcomes: Sequence[OutcomeUpdate]) -> list[OutcomeResponse | ErrorResponse]:
        """Accept several outcomes; an item that fails is answered with its error."""
        answers = await self._learn(self.experiment(name), outcomes)
        return [to_response(answer, one.decision_id) for answer, one in zip(answers, outcomes, strict=True)]

    async def _learn(
        self, experiment: Experiment, outcomes: Sequence[OutcomeUpdate]
    ) -> list[OutcomeResponse | StagewiseError]:
        answers, requests = list[Any](outcomes), dict[int, AppendRequest]()
        for i, outcome in enumerate(outcomes):
            try:
                requests[i] = build_outcome_request(experiment, outcome)
            except InvalidOutcome as error:
                answers[i] = error
        results = await self.writer.append_all(list(requests.values())) if requests else []
        for i, result in zip(requests, results, strict=True):
            kind, answers[i] = build_outcome_answer(experiment.problem, outcomes[i], result)
            self.counters.outcomes[experiment.name, kind] += 1
        self.learner.wake()
        return answers

    async def learn_columns(self, name: str, request: OfflineLogRequest, actor: str) -> OfflineLogResponse:
        """Check the columns of an offline log against the problem and learn them."""
        problem, read = self.experiment(name).problem, self.read_log
        if read is None:
            raise InvalidOutcome(
                ErrorCode.UNSUPPORTED, "this server cannot check a log; start it with `stagewise serve`"
            )
        log = await asyncio.to_thread(read, problem, request.columns, request.names, request.accept, request.now)
        return await self.learn_log(name, log, actor, request.reason)

    async def learn_log(self, name: str, log: OfflineLog, actor: str, reason: str) -> OfflineLogResponse:
        """Append a checked log, once and before the first decision; the learner learns it soon."""
        await asyncio.to_thread(check_rows, self.experiment(name).problem, log)
        digest, requests = await asyncio.to_thread(build_append_requests, name, log, actor, reason)
        results = await self.writer.append_all(requests)
        first, last = results[0], results[-1]
        if first.status == CONFLICT or last.event is None:
            existing = None if first.event is None else first.event.body
            problem = describe_log_conflict(name, len(log.actions), existing)
            raise Conflict(ErrorCode.CONFLICT, "{problem}", problem=problem)
        self.learner.wake()
        notes = [str(note) for note in log.notes]  # msgspec encodes no subclass of str
        return OfflineLogResponse(len(log.actions), digest.hex(), last.event.number, first.status == NEW, notes)

    async def learned(self, name: str, number: int) -> None:
        """Wait until the policy snapshot of this process includes a change of an experiment, by its number."""
        while self.experiment(name).policy_snapshot.seen < number:
            failed = self.learner.failures.get(name) or self.learner.down
            if failed:
                template = "the log of {name} is stored and could not be learned: {failed}"
                raise StagewiseError(ErrorCode.LEARNING_FAILED, template, name=safe_repr(name), failed=failed)
            await asyncio.sleep(POLL_INTERVAL)

    def figures(self, name: str) -> dict[str, Any]:
        """Return the figures of an experiment, counted from its log, with its current controls."""
        experiment, everywhere = self.experiment(name), self.everywhere.killed
        snapshot, killed = experiment.policy_snapshot, everywhere or experiment.killed
        statistics = self.statistics_updater.get_statistics(name)
        findings = check_health(snapshot.policy, snapshot.learned.state, snapshot.learned.statistics)
        # invalid outcomes are rejected before they reach the log
        health = [one for one in findings if one.name != OUTCOMES]
        return build_figures(
            statistics,
            self.store.now(),
            mode=experiment.mode,
            share=experiment.share,
            killed=None if killed is None else killed.message,
            killed_everywhere=everywhere is not None,
            version=experiment.version,
            snapshot_age_s=self.age(experiment, snapshot),
            max_age_s=self.max_age,
            failed=self.learner.failures.get(name),
            alerts=[
                {"name": alert, "reason": cause.reason, "details": cause.details, "message": cause.message}
                for alert, cause in experiment.alerts.items()
            ],
            proposals=summarize_recent_proposals(snapshot, statistics),
            drifting=experiment.summarize_drifting(self.store.now() / 1e6),
            warnings=list(experiment.warnings),
            health=Health(add_observed_costs(snapshot.policy, health, compute_safe_costs(statistics))).to_dict(),
        )

    def age(self, experiment: Experiment, policy_snapshot: PolicySnapshot) -> float:
        """Return for how many seconds the policy snapshot has lacked a row of the log."""
        at = self.store.first_time_after(experiment.name, policy_snapshot.seq)
        if at is None:
            return 0.0
        return min(time.monotonic() - experiment.snapshot_time, max(self.store.now() - at, 0) / 1e6)

    def explain(self, name: str, id_: str) -> dict[str, Any]:
        """Return a decision with its request, bounds, outcomes and a description."""
        experiment = self.experiment(name)
        event = self.store.find(name, DECISION, id_)
        if event is None:
            raise UnknownDecision(
                ErrorCode.UNKNOWN_DECISION, "{id} is no decision of {name}", id=safe_repr(id_), name=safe_repr(name)
            )
        (event,) = open_rows(self.store, [event])
        body, cause = msgspec.json.decode(event.body), decode_decision(event.body).cause
        return {
            "decision_id": id_,
            "at": event.at / 1e6,
            "row": self.store.find_place(name, event.number),
            "number": event.number,
            "receipt": event.receipt,
            **body,
            "message": None if cause is None else cause.message,
            "outcome": self.store.answers(event.number),
            "description": describe_decision(experiment.problem, event),
        }


def set_answer(one: WaitingRequest, answer: DecisionResponse | Exception) -> None:
    """Answer a request, unless its client hung up."""
    if one.answer.done():
        return
    if isinstance(answer, Exception):
        one.answer.set_exception(answer)
    else:
        one.answer.set_result(answer)


def build_append_request(
    name: str, one: WaitingRequest, record: DecisionRecord | Exception, seen: int, key: UserKey | None = None
) -> AppendRequest:
    """Return the row of a decision. An invalid request only looks its id up: it may be a retry of a valid one."""
    request = one.request
    asked: list[Any] = [request.context, request.only, request.deferred]
    if request.propose is not None or request.scores is not None:
        asked += [request.propose, request.scores]
    digest = b""
    if request.decision_id is not None:
        content = encode_canonical(asked)
        digest = compute_digest(content) if key is None else hmac.digest(key.content, content, "sha256")
    if isinstance(record, DecisionRecord):
        if key is not None:
            record.request = seal_request(record.request, key, one.id_)
        return AppendRequest(name, DECISION, one.id_, encode_canonical(record), digest, record.control, seen=seen)
    return AppendRequest(name, DECISION, one.id_, b"", digest, (0, 0))  # always stale, so never written


def build_outcome_request(experiment: Experiment, outcome: OutcomeUpdate) -> AppendRequest:
    """Return the row of an outcome. Raises InvalidOutcome."""
    values = validate_outcome(experiment.problem, outcome.values)
    body = encode_canonical({"decision_id": outcome.decision_id, "values": values})
    digest = compute_digest(encode_canonical([outcome.decision_id, values])) if outcome.outcome_id is not None else b""
    return AppendRequest(
        experiment.name, OUTCOME, outcome.outcome_id or "", body, digest,
        decision_id=outcome.decision_id, values=values,
    )  # fmt: skip


def build_outcome_answer(
    problem: Problem, outcome: OutcomeUpdate, result: AppendResult
) -> tuple[str, OutcomeResponse | StagewiseError]:
    """Return what became of an outcome, and its answer."""
    if result.status == UNKNOWN:
        return "unknown", UnknownDecision(ErrorCode.UNKNOWN_DECISION, "{problem}", problem=result.message)
    if result.status == CONFLICT:
        return "conflict", Conflict(ErrorCode.CONFLICT, "{problem}", problem=result.message)
    age = 0.0 if result.event is None else (result.event.at - result.decided_at) / 1e6
    late = [name for name in result.accepted if name in problem.windows and age >= problem.windows[name].seconds]
    receipt = None if result.event is None else result.event.receipt
    answer = OutcomeResponse(outcome.decision_id, list(result.accepted), list(result.duplicate), late, receipt)
    return "duplicate" if result.status == DUPLICATE else "late" if late else "accepted", answer


def to_response(result: Any, id_: str | None = None) -> Any:
    """Return a result, or an ErrorResponse for an expected error; other errors and StoreUnavailable are raised."""
    if isinstance(result, StagewiseError) and not isinstance(result, StoreUnavailable):
        return ErrorResponse(result.code, str(result), id_)
    if isinstance(result, BaseException):
        raise result
    return result


def warm_up(version: ProblemVersion) -> None:
    """Compile the kernels before the first request: decide and learn once, in memory."""
    problem = version.problem
    context: dict[str, Any] = {name: column.example for name, column in problem.declared_columns.items()}
    propose = problem.safe_name if problem.needs_proposal else None
    request = DecisionRequest({**dict.fromkeys(problem.segment_columns, "warm-up"), **context}, propose=propose)
    live = Controls(mode="live")
    snapshot = build_initial_snapshot(problem, version.number, version.retired)
    (record,) = decide(snapshot, live, live, bytes(32), [("warm-up", request)])
    values = {name: signal.low for name, signal in problem.reported.items()}
    StateFold(problem, version.number, version.retired).take(
        [
            Event(1, 0, DECISION, "warm-up", -1, encode_canonical(record), seq=1),
            Event(2, 0, OUTCOME, "1", 1, encode_canonical({"decision_id": "warm-up", "values": values}), seq=2),
        ]
    )
