"""Outcomes: each signal once, durable before it is acknowledged."""

import asyncio
from collections.abc import Sequence

from stagewise.problem.errors import ErrorCode
from stagewise.server.event_log import (
    CONFLICT,
    DUPLICATE,
    OUTCOME,
    UNKNOWN,
    AppendRequest,
    AppendResult,
    compute_digest,
    encode_canonical,
)
from stagewise.server.experiment import Experiment
from stagewise.server.messages import ErrorResponse, OutcomeResponse, OutcomeUpdate
from stagewise.server.outcome_validation import get_late_signals, validate_outcome
from stagewise.server.responses import to_response
from stagewise.server.server_errors import Conflict, UnknownDecision
from stagewise.server.service_base import ServiceBase


class OutcomeService(ServiceBase):
    """Accept outcomes."""

    async def learn(self, name: str, outcome: OutcomeUpdate) -> OutcomeResponse:
        """Accept signals of a decision."""
        experiment = self.experiment(name)
        responses = self.build_response(
            experiment, outcome, await self.writer.append(self.build_append_request(experiment, outcome))
        )
        self.learner.wake()
        return responses

    def build_append_request(self, experiment: Experiment, outcome: OutcomeUpdate) -> AppendRequest:
        """Return the append request of an outcome. Raises InvalidOutcome."""
        values = validate_outcome(experiment.problem, outcome.values)
        body = encode_canonical({"decision_id": outcome.decision_id, "values": values})
        digest = (
            compute_digest(encode_canonical([outcome.decision_id, values])) if outcome.outcome_id is not None else b""
        )
        return AppendRequest(
            experiment.name, OUTCOME, outcome.outcome_id or "", body, digest,
            decision_id=outcome.decision_id, values=values,
        )  # fmt: skip

    def build_response(self, experiment: Experiment, outcome: OutcomeUpdate, result: AppendResult) -> OutcomeResponse:
        """Return the response to an outcome. Raises UnknownDecision and Conflict."""
        if result.status == UNKNOWN:
            self.counters.outcomes[experiment.name, "unknown"] += 1
            raise UnknownDecision(ErrorCode.UNKNOWN_DECISION, "{problem}", problem=result.message)
        if result.status == CONFLICT:
            self.counters.outcomes[experiment.name, "conflict"] += 1
            raise Conflict(ErrorCode.CONFLICT, "{problem}", problem=result.message)
        late = get_late_signals(experiment.problem, result)
        kind = "duplicate" if result.status == DUPLICATE else "late" if late else "accepted"
        self.counters.outcomes[experiment.name, kind] += 1
        return OutcomeResponse(outcome.decision_id, list(result.accepted), list(result.duplicate), late)

    async def learn_many(self, name: str, outcomes: Sequence[OutcomeUpdate]) -> list[OutcomeResponse | ErrorResponse]:
        """Accept several outcomes; an item that fails is answered with its error."""
        self.experiment(name)
        responses = await asyncio.gather(*(self.learn(name, one) for one in outcomes), return_exceptions=True)
        return [to_response(one, outcomes[i].decision_id) for i, one in enumerate(responses)]
