"""The decision server: decides with the policy snapshot, appends to the log, then answers.

It does not learn; the learner does, from the log. A server has no other state, so any number of servers can share a
store.
"""

import time
from typing import Any

import msgspec

from stagewise.agent.health import OUTCOMES, Health, check_health
from stagewise.agent.observed_costs import add_observed_costs
from stagewise.problem.errors import ErrorCode
from stagewise.problem.formatting import safe_repr
from stagewise.server.admin_service import AdminService
from stagewise.server.decision_engine import PolicySnapshot, decode_cause
from stagewise.server.decision_service import DecisionService
from stagewise.server.event_log import DECISION
from stagewise.server.experiment import Experiment
from stagewise.server.figures import build_figures
from stagewise.server.offline_service import OfflineLogService
from stagewise.server.outcome_service import OutcomeService
from stagewise.server.pending_costs import compute_safe_costs
from stagewise.server.responses import describe_decision
from stagewise.server.server_errors import UnknownDecision


class DecisionServer(DecisionService, OutcomeService, AdminService, OfflineLogService):
    """All operations of a server: decisions, outcomes, offline logs, controls, figures and explanations."""

    def figures(self, name: str) -> dict[str, Any]:
        """Return the figures of an experiment, counted from its log, with its current controls."""
        experiment, snapshot, everywhere = (
            self.experiment(name),
            self.experiment(name).policy_snapshot,
            self.everywhere.killed,
        )
        killed = everywhere or experiment.killed
        statistics = self.statistics_updater.get_statistics(name)
        findings = check_health(snapshot.policy, snapshot.state, snapshot.statistics)
        health = [
            one for one in findings if one.name != OUTCOMES
        ]  # invalid outcomes are rejected before they reach the log
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
            health=Health(add_observed_costs(snapshot.policy, health, compute_safe_costs(statistics))).to_dict(),
        )

    def age(self, experiment: Experiment, policy_snapshot: PolicySnapshot) -> float:
        """Return for how many seconds the policy snapshot has lacked a row of the log."""
        missing = self.store.events(experiment.name, policy_snapshot.seq, 1)
        if not missing:
            return 0.0
        return min(time.monotonic() - experiment.snapshot_time, max(self.store.now() - missing[0].at, 0) / 1e6)

    def explain(self, name: str, id_: str) -> dict[str, Any]:
        """Return a decision with its request, bounds, outcomes and a description."""
        experiment = self.experiment(name)
        event = self.store.find(name, DECISION, id_)
        if event is None:
            raise UnknownDecision(
                ErrorCode.UNKNOWN_DECISION, "{id} is no decision of {name}", id=safe_repr(id_), name=safe_repr(name)
            )
        body = msgspec.json.decode(event.body)
        cause = decode_cause(body)
        return {
            "decision_id": id_,
            "at": event.at / 1e6,
            "row": event.seq,
            "index": event.decision_index,
            "chain": event.chain.hex(),
            **body,
            "message": None if cause is None else cause.message,
            "outcome": self.store.answers(name, event.decision_index),
            "description": describe_decision(experiment.problem, event, body),
        }
