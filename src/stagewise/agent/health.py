"""Health checks: compare each declared assumption with the data."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stagewise.agent.agent_statistics import DriftTrack, Statistics
from stagewise.agent.health_findings import (
    Check,
    HealthFinding,
    Verdict,
    build_contradicted,
    build_finding,
    identify_alert,
)
from stagewise.agent.health_findings import Health as Health
from stagewise.agent.learned_state import TERMS, acknowledge_alert, iter_signals
from stagewise.agent.mismatch import list_pooled_limits
from stagewise.agent.observed_costs import SAFE, ObservedCosts, to_unit_cost, to_user_units
from stagewise.engine.compile import Floats
from stagewise.engine.model import Model
from stagewise.engine.workspace import ALARM
from stagewise.models.diagnostics import Evidence, build_contradiction, build_noise_cause, build_safe_cost_cause
from stagewise.policies.policy import BasePolicy, PolicyState
from stagewise.policies.settings import FALSE_ALARMS
from stagewise.problem.formatting import join_names
from stagewise.records.reason import Contradiction

OUTCOMES = "outcomes"  # the name of the finding about rejected outcomes


def check_health(policy: Any, state: PolicyState, statistics: Statistics) -> Health:
    """Return the findings about a policy's settings and memory."""
    findings: list[HealthFinding] = []
    if getattr(policy, "has_parts", False) and policy.thresholds.names:
        settings = policy.settings.copy()
        settings[ALARM] = math.log(1.0 / FALSE_ALARMS)  # also with check_assumptions=False: a report stops nothing
        findings += check_declared(policy, settings, state.memory)
        findings += check_limits(policy, settings)
        findings += check_signal_drift(policy, state.memory, statistics)
        findings += check_mismatch(policy, state.memory)
        findings += check_pooling(policy, state.memory)
    by_name = {finding.name: finding for finding in findings}
    for name, cause in (statistics.alerts | statistics.warnings).items():  # until a person acknowledges it
        verdict = Verdict.CONTRADICTED if name in statistics.alerts else Verdict.WARNING
        verdict = Verdict.ACKNOWLEDGED if name in statistics.acknowledged else verdict
        note = statistics.acknowledged.get(name, "")
        by_name[name] = HealthFinding(*identify_alert(name, cause), verdict, cause.details, note)
    return Health([*by_name.values(), *check_contexts(policy, statistics), check_outcome_range(policy, statistics)])


def check_declared(policy: BasePolicy, settings: Floats, memory: Floats) -> Iterator[HealthFinding]:
    """Yield the findings about the declared noise and the declared values of the safe action."""
    for model, block in policy.rounds.iter_blocks(memory):
        for signal in range(block.signals if block.first >= policy.first_reported else 0):
            diagnostics = model.diagnostics
            evidence = diagnostics.get_evidence(block, policy.layout, settings, memory, signal)
            if diagnostics.has_safe_cost_per_user:
                yield check_context_safe_value(policy, evidence, block.first)
            if diagnostics.tests_noise(block):
                yield check_noise(policy, block.first + signal, evidence)
            if diagnostics.checks_safe_value and block.anchored == 1:
                yield check_safe_value(policy, settings, memory, model, block, signal, evidence)


def check_context_safe_value(policy: Any, evidence: Evidence, signal: int) -> HealthFinding:
    """Compare the declared value of the safe action for every user with its mean; decisions test single users."""
    limits, (low, length) = policy.display_thresholds, policy.reward_span
    least = policy.safe_action.reward
    if signal:
        name, check, declared = limits.names[signal - 1], Check.SAFE_COST, float(limits.declared_safe[signal - 1])
    else:
        name, check = policy.reward_name, Check.SAFE_REWARD
        declared = math.nan if least is None or least == 0.0 else low + length * least
    at_most = bool(signal and limits.signs[signal - 1] > 0.0)
    mean = float(policy.to_user_units(signal, evidence.safe_mean)) if evidence.safe_count else math.nan
    rounded = float(f"{mean:.3g}")  # as the message shows it
    is_tested = evidence.safe_count > 0 and not math.isnan(declared)
    return build_finding(
        check, name, Verdict.FINE if is_tested else Verdict.UNKNOWN, declared=declared, at_most=at_most,
        count=evidence.safe_count, mean=mean, exceeds_declared=rounded > declared if at_most else rounded < declared,
    )  # fmt: skip


def check_noise(policy: Any, signal: int, evidence: Evidence) -> HealthFinding:
    """Compare the declared noise of a signal with its residuals; no limit depends on the reward's noise."""
    name, limits = (policy.reward_name, *policy.thresholds.names)[signal], policy.display_thresholds
    if evidence.outcomes and evidence.least > evidence.noise and signal:
        return build_contradicted(Check.NOISE, name, build_noise_cause(limits, signal - 1, evidence))
    verdict = Verdict.FINE if evidence.outcomes else Verdict.UNKNOWN
    if evidence.outcomes and evidence.least > evidence.noise:
        verdict = Verdict.DOUBTFUL
    ends = (1.0, 0.0) if not signal else (limits.to_user_unit(signal - 1, 1.0), limits.to_user_unit(signal - 1, 0.0))
    unit = abs(ends[0] - ends[1])
    declared, needed = unit * evidence.noise, unit * evidence.least
    return build_finding(Check.NOISE, name, verdict, declared=declared, outcomes=evidence.outcomes, needed=needed)


def check_safe_value(
    policy: Any, settings: Floats, memory: Floats, model: Model, block: Any, signal: int, evidence: Evidence
) -> HealthFinding:
    """Compare the declared value of the safe action with its outcomes."""
    j = block.first + signal - 1
    name, check, sign, declared = policy.reward_name, Check.SAFE_REWARD, 1.0, policy.safe_action.reward
    if j >= 0:
        name, check, sign = policy.thresholds.names[j], Check.SAFE_COST, float(policy.thresholds.signs[j])
        declared = policy.thresholds.safe[j]
    declared = 0.0 if declared is None else float(declared)
    is_contradicted = bool(evidence.safe_count) and model.diagnostics.contradicts_safe_value(
        block, policy.layout, settings, memory, signal, evidence, sign * declared
    )
    if is_contradicted and j >= 0:
        cause = build_safe_cost_cause(policy.display_thresholds, j, declared, evidence)
        return build_contradicted(check, name, cause)
    verdict = Verdict.DOUBTFUL if is_contradicted else Verdict.FINE if evidence.safe_count else Verdict.UNKNOWN
    return build_finding(
        check, name, verdict, declared=declared, at_most=None, count=evidence.safe_count,
        mean=sign * evidence.safe_mean, exceeds_declared=False,
    )  # fmt: skip


def check_limits(policy: BasePolicy, settings: Floats) -> Iterator[HealthFinding]:
    """Yield whether mean costs can reach each limit."""
    ceilings, limits = TERMS(policy.layout, settings).ceilings, policy.display_thresholds
    rows = zip(limits.names, limits.signs, limits.values, policy.thresholds.values, ceilings, strict=True)
    for j, (name, sign, value, inner, ceiling) in enumerate(rows):
        bound = math.inf if math.isinf(ceiling) else limits.to_user_unit(j, ceiling)
        if not math.isinf(ceiling) and not sign * inner < ceiling:
            cause = build_contradiction(Contradiction.LIMIT_NEVER_BINDS, limits, j, threshold=value, bound=bound)
            yield build_contradicted(Check.LIMIT, name, cause)
            continue
        verdict = Verdict.UNKNOWN if math.isinf(ceiling) else Verdict.FINE
        yield build_finding(Check.LIMIT, name, verdict, threshold=value, bound=bound, at_most=bool(sign > 0))


def check_signal_drift(policy: BasePolicy, memory: Floats, statistics: Statistics) -> Iterator[HealthFinding]:
    """Yield whether the mean of each signal changed, by the last drift test, which decisions use too."""
    for name, signal, _, (model, block) in sorted(iter_signals(policy, memory), key=lambda one: one[1]):
        if signal and name in getattr(policy, "moduli", ()):
            yield check_change(policy, model, block, memory, name)
            continue
        track = statistics.tracks.get(name, DriftTrack())
        count = model.diagnostics.count(block, policy.settings, memory)
        if count is not None and track.moved is not None:
            verdict = Verdict.CONTRADICTED if signal else Verdict.DOUBTFUL
            yield HealthFinding(Check.DRIFT, name, verdict, track.moved.details)
            continue
        early, late = (0, 0) if count is None or track.compared is None else track.compared
        verdict = Verdict.FINE if late else Verdict.UNKNOWN
        yield build_finding(Check.DRIFT, name, verdict, count=count, early=early, late=late)


def check_change(policy: Any, model: Model, block: Any, memory: Floats, name: str) -> HealthFinding:
    """Return that a limit's means moved as declared; a change that was found is a warning or an alert."""
    pulls, totals = np.zeros((2, policy.actions))
    model.diagnostics.fill_totals(block, policy.settings, memory, pulls, totals)
    modulus = policy.moduli[name] if policy.problem is None else policy.problem.limits[name].modulus
    verdict = Verdict.FINE if pulls.any() else Verdict.UNKNOWN
    return build_finding(Check.CHANGE, name, verdict, declared=str(modulus), count=pulls.sum())


def check_mismatch(policy: Any, memory: Floats) -> Iterator[HealthFinding]:
    """Yield that nothing contradicts what limits promise; what does is an alert or a warning."""
    if policy.problem is None or not policy.context:
        return
    columns = join_names([*policy.problem.context, *(["click score"] if policy.models["reward"] == "linear" else [])])
    for name, signal, _, (model, block) in sorted(iter_signals(policy, memory), key=lambda one: one[1]):
        if signal:
            count = int(model.diagnostics.count(block, policy.settings, memory) or 0)
            verdict, promise = Verdict.FINE if count else Verdict.UNKNOWN, str(policy.promises[name])
            yield build_finding(Check.MISMATCH, name, verdict, count=count, columns=columns, promise=promise)


def check_pooling(policy: Any, memory: Floats) -> Iterator[HealthFinding]:
    """Yield that no means fall from bucket to bucket of a score; what falls is a warning."""
    for name in list_pooled_limits(policy):
        model, block = next(bound for one, _, _, bound in iter_signals(policy, memory) if one == name)
        pulls, totals = np.zeros((2, policy.actions))
        model.diagnostics.fill_totals(block, policy.settings, memory, pulls, totals)
        score = "" if policy.problem is None else policy.problem.get_division(name).name
        verdict = Verdict.FINE if pulls.any() else Verdict.UNKNOWN
        yield build_finding(Check.POOLING, name, verdict, count=pulls.sum(), score=score)


def check_contexts(policy: Any, statistics: Statistics) -> Iterator[HealthFinding]:
    """Yield how many values of contexts were clipped, where a number may be."""
    columns = {} if policy.problem is None else policy.problem.numbers
    if statistics.refused_log_rows or any(column.clip for column in columns.values()):
        details = {"clipped": dict(statistics.clipped), "refused": statistics.refused_log_rows}
        yield build_finding(Check.CONTEXT, None, Verdict.FINE, **details)


def check_outcome_range(policy: Any, statistics: Statistics) -> HealthFinding:
    """Return how many outcomes were rejected: outside the declared range, or not finite."""
    count, rule = int(np.sum(list(statistics.plays.values()))), "finite"
    if getattr(policy, "requires_unit_range", False):
        rule = "unit" if policy.names is None else "declared"
    verdict = Verdict.DOUBTFUL if statistics.refused else Verdict.FINE if count else Verdict.UNKNOWN
    return build_finding(Check.OUTCOMES, None, verdict, range=rule, decisions=count, refused=statistics.refused)


def add_observed_costs(
    policy: Any, findings: Sequence[HealthFinding], reported: Mapping[str, tuple[int, float]]
) -> list[HealthFinding]:
    """Add the reported costs to the findings about the safe action's costs.

    Args:
        policy: The policy.
        findings: The findings of `check_health`.
        reported: By limit, the number of decisions for the safe action and the mean of their reported costs in [0, 1].
    """
    return [
        add_observed_cost(policy, one, policy.thresholds.names.index(one.signal), reported.get(one.signal, (0, 0.0)))
        if one.check is Check.SAFE_COST and one.verdict in (Verdict.FINE, Verdict.UNKNOWN) and one.signal is not None
        else one
        for one in findings
    ]


def add_observed_cost(policy: Any, finding: HealthFinding, j: int, reported: tuple[int, float]) -> HealthFinding:
    """Add the reported costs to a finding about the safe action's cost, if any is reported."""
    limits, (count, mean) = policy.display_thresholds, reported
    if not count or mean == 0.0 or math.isnan(limits.declared_safe[j]):
        return finding
    sign = float(limits.signs[j])
    details = {
        **finding.details,
        "declared": float(limits.declared_safe[j]),
        "at_most": sign > 0.0,
        "reported_count": count,
        "reported_mean": to_user_units(policy, j, mean),
    }
    if finding.verdict is Verdict.UNKNOWN:
        details["exceeds_declared"] = bool(mean > to_unit_cost(policy.thresholds.declared_safe[j], sign))
    return finding._replace(details=details)


def add_observed_health(policy: Any, health: Health, observed: ObservedCosts | None) -> Health:
    """Add the tests of reported costs to an agent's findings."""
    if observed is None:
        return health
    rejected = observed.find_rejected(policy)
    findings = [
        one._replace(verdict=Verdict.CONTRADICTED, details=rejected[one.name].details)
        if one.name in rejected and one.verdict in (Verdict.FINE, Verdict.UNKNOWN)
        else one
        for one in health
    ]
    reported = {name: observed.summarize(SAFE, j) for j, name in enumerate(policy.thresholds.names)}
    return Health(add_observed_costs(policy, findings, reported))


def acknowledge(policy: BasePolicy, state: PolicyState, statistics: Statistics, name: Any, note: Any) -> None:
    """Acknowledge a contradiction, even if no decision was stopped by it yet."""
    findings = {one.name: one for one in check_health(policy, state, statistics) if one.blocks_decisions(policy)}
    cause = findings[name].reason_details if isinstance(name, str) and name in findings else None
    if cause is not None:
        statistics.alerts.setdefault(name, cause)
    acknowledge_alert(policy, state.memory, statistics, name, note)
