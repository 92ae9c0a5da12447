"""Decisions: made with the policy snapshot, written to the log, then answered."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from stagewise.problem.errors import ErrorCode, InvalidActions
from stagewise.problem.formatting import safe_repr
from stagewise.records.reason import Reason, ReasonDetails
from stagewise.server.controls import Controls
from stagewise.server.decision_engine import (
    DecisionBody,
    PolicySnapshot,
    build_safe_body,
    derive_dry_run_key,
    encode_body,
    make_decision,
    make_decisions,
)
from stagewise.server.event_log import (
    CONFLICT,
    DECISION,
    DUPLICATE,
    STALE,
    AppendRequest,
    AppendResult,
    compute_digest,
    encode_canonical,
)
from stagewise.server.experiment import Experiment
from stagewise.server.ids import new_id
from stagewise.server.messages import DecisionRequest, DecisionResponse, ErrorResponse
from stagewise.server.responses import build_decision_response, to_response
from stagewise.server.server_errors import Conflict
from stagewise.server.service_base import ServiceBase
from stagewise.server.store.base import StoreUnavailable

MAX_ATTEMPTS = 8  # attempts of a decision while controls change


class PendingDecision(NamedTuple):
    """A decision that is not in the log yet."""

    server: "DecisionService"
    experiment: Experiment
    reason: str
    """Why the safe action is served, as a code; empty if there is no reason."""
    response: DecisionResponse
    """The answer once the row is written."""
    append_request: AppendRequest


class DecisionService(ServiceBase):
    """Make decisions."""

    async def decide(self, name: str, request: DecisionRequest) -> DecisionResponse:
        """Decide for one user. The response is in the log unless `logged` is false."""
        experiment, id_ = self.experiment(name), request.decision_id or new_id()
        if request.dry_run:
            return build_decision_response(
                id_,
                make_decision(*self.get_basis(experiment), derive_dry_run_key(experiment.key), id_, request),
                logged=False,
            )
        why = "the controls changed again and again while it was made"
        for _ in range(MAX_ATTEMPTS):
            try:
                pending = self.prepare(experiment, request, id_)
            except InvalidActions:
                earlier = await self._find_earlier(experiment, request)
                if earlier is None:
                    raise
                return earlier
            try:
                result = await self.writer.append(pending.append_request)
                if result.status != STALE:
                    return self._build_response(pending, result)
                await asyncio.to_thread(self.refresh)
            except StoreUnavailable as error:
                why = str(error)
                break
        return self.build_unlogged(pending, why)

    def get_basis(self, experiment: Experiment) -> tuple[PolicySnapshot, Controls, Controls]:
        """Return the snapshot and controls that decide now.

        Another thread may read a new version meanwhile and set the snapshot first. The snapshot is therefore read
        last: it is never older than the controls, and if it is newer, the store rejects the row as stale.
        """
        controls, everywhere = experiment.controls, self.everywhere
        return experiment.policy_snapshot, controls, everywhere

    def prepare(self, experiment: Experiment, request: DecisionRequest, id_: str | None = None) -> PendingDecision:
        """Decide with the current snapshot without writing. Raises InvalidActions."""
        id_ = id_ or request.decision_id or new_id()
        body = make_decision(*self.get_basis(experiment), experiment.key, id_, request)
        first, second = body["control"]
        append_request = AppendRequest(
            experiment.name, DECISION, id_, encode_canonical(body), compute_request_digest(request), (first, second)
        )
        return PendingDecision(
            self, experiment, body["reason"] or "", build_decision_response(id_, body), append_request
        )

    def prepare_all(
        self, experiment: Experiment, requests: Sequence[tuple[str, DecisionRequest]]
    ) -> list[PendingDecision | None]:
        """Prepare several decisions at once; None for those that must be prepared alone."""
        rows = make_decisions(*self.get_basis(experiment), experiment.key, requests)
        pairs = zip(requests, rows, strict=True)
        return [
            None if row is None else self._build_pending(experiment, id_, request, row) for (id_, request), row in pairs
        ]

    def _build_pending(
        self, experiment: Experiment, id_: str, request: DecisionRequest, row: DecisionBody
    ) -> PendingDecision:
        response = DecisionResponse(
            id_, row.action, row.probabilities, row.mode, row.problem, row.snapshot, row.limits, row.reason,
            None if row.reason is None else ReasonDetails(Reason(row.reason), row.details).message,
            row.estimated_reward,
        )  # fmt: skip
        append_request = AppendRequest(
            experiment.name, DECISION, id_, encode_body(row), compute_request_digest(request), row.control
        )
        return PendingDecision(self, experiment, row.reason or "", response, append_request)

    async def _find_earlier(self, experiment: Experiment, request: DecisionRequest) -> DecisionResponse | None:
        """Return the earlier response to a request that is now invalid, as after an action was retired."""
        if request.decision_id is None:
            return None
        with suppress(StoreUnavailable):
            append_request = AppendRequest(
                experiment.name, DECISION, request.decision_id, b"", compute_request_digest(request), (0, 0)
            )  # never written: the empty body only looks the id up
            result = await self.writer.append(append_request)
            if result.status == DUPLICATE and result.event is not None:
                return build_decision_response(request.decision_id, msgspec.json.decode(result.event.body))
        return None

    async def decide_many(
        self, name: str, requests: Sequence[DecisionRequest]
    ) -> list[DecisionResponse | ErrorResponse]:
        """Decide for several users; an item that fails is answered with its error."""
        self.experiment(name)
        results = await asyncio.gather(*(self.decide(name, one) for one in requests), return_exceptions=True)
        return [to_response(one, requests[i].decision_id) for i, one in enumerate(results)]

    def _build_response(self, pending: PendingDecision, result: AppendResult) -> DecisionResponse:
        """Return the response to a decision that is in the log, now or since an earlier attempt."""
        if result.status == CONFLICT:
            id_ = pending.response.decision_id
            raise Conflict(
                ErrorCode.CONFLICT,
                "{problem}",
                problem=result.message or f"decision {safe_repr(id_)} was asked before with other content",
            )
        if result.status == DUPLICATE and result.event is not None:
            return build_decision_response(pending.response.decision_id, msgspec.json.decode(result.event.body))
        self.learner.wake()
        return self.confirm(pending)

    def confirm(self, pending: PendingDecision) -> DecisionResponse:
        """Count a decision that was just written and return its response."""
        response = pending.response
        self.counters.decisions[pending.experiment.name, response.action, response.mode, pending.reason] += 1
        return response

    def build_unlogged(self, pending: PendingDecision, error: str) -> DecisionResponse:
        """Return the safe action with `logged` false."""
        response = pending.response
        safe = build_safe_body(
            pending.experiment.policy_snapshot, ReasonDetails.of(Reason.LOG_WRITE_FAILED, error=error)
        )
        body = {**safe, "mode": response.mode, "problem": response.version, "snapshot": response.snapshot}
        self.counters.decisions[pending.experiment.name, body["action"], response.mode, Reason.LOG_WRITE_FAILED] += 1
        return build_decision_response(response.decision_id, body, logged=False)


def compute_request_digest(request: DecisionRequest) -> bytes:
    """Return the digest of a request with a client's id; empty without an id."""
    return (
        compute_digest(encode_canonical([request.context, request.only, request.deferred]))
        if request.decision_id is not None
        else b""
    )
