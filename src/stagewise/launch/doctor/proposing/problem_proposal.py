"""Propose a problem from a log, with a reason for every choice."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from stagewise.launch.decision_log import Log
from stagewise.launch.doctor.binary_outcomes import find_events, is_binary
from stagewise.launch.doctor.checks.leaks import SortedColumn, describe_leak, estimate_auc
from stagewise.launch.doctor.finding import Finding, FindingVerdict, select_most_severe
from stagewise.launch.doctor.finding_messages import FindingCode, format_number
from stagewise.launch.doctor.holdout_split import Split
from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.launch.doctor.proposing.divisions import Divisions, find_divisions
from stagewise.launch.doctor.proposing.equivalence import get_equivalence_bounds
from stagewise.launch.doctor.proposing.limit_models import choose_limit_model
from stagewise.launch.doctor.proposing.norm_bound import estimate_norm_bound
from stagewise.launch.doctor.proposing.problem_draft import choose_names, draft_problem
from stagewise.launch.doctor.proposing.roles import Roles
from stagewise.launch.doctor.proposing.safe_rates import set_safe_rate
from stagewise.policies.problem import Problem
from stagewise.problem.formatting import join_names
from stagewise.problem.signals import Limit

READING_SHARE = 0.2  # share of delta for what is estimated from the rows and relied on, such as the safe action's rates


@dataclass(frozen=True, eq=False)
class Proposal:
    """A proposed problem, its column mapping, and the reason for each value."""

    problem: Problem
    columns: dict[str, str]
    """The column mapping, as `Log.of(..., columns=)` takes it."""
    reasons: dict[str, str]
    roles: Roles
    split: Split
    delta: float
    """The requested probability of failure, of which the problem's own delta is a part."""
    averaged: dict[str, tuple[str, ...]]
    """By limit, the columns of text that it holds on average over, where equal rates are not shown."""

    def add_notes(self, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Return the findings with notes on what the proposal leaves open, where a check found nothing."""
        ranges = [Finding.of(FindingCode.RANGE_FROM_LOG, name=name) for name in self.observed]
        averages = [
            Finding.of(FindingCode.LIMIT_ON_AVERAGE_ONLY, name=name, columns=list(columns))
            for name, columns in self.averaged.items()
        ]
        notes = {group[0].check: select_most_severe(group, group[0]) for group in (ranges, averages) if group}
        return tuple(
            notes.get(finding.check, finding) if finding.verdict is FindingVerdict.OK else finding
            for finding in findings
        )

    @property
    def observed(self) -> list[str]:
        """The outcomes whose range is only what the log contains, not 0 to 1."""
        return [name for name, signal in self.problem.signals.items() if (signal.low, signal.high) != (0.0, 1.0)]


def propose_problem(
    arrays: Mapping[Any, npt.NDArray[Any]], roles: Roles, split: Split, delta: float, alpha: float
) -> Proposal:
    """Return the problem that the selection rows suggest."""
    reasons = {f"ignored.{name}": why for name, why in roles.ignored.items()}
    names = {"action": roles.action, **choose_names(roles)}
    draft = draft_problem(roles, names, split, delta, reasons)
    selected = {name: array[split.selection] for name, array in {**arrays, **roles.numbers, **roles.outcomes}.items()}
    profile = build_profile(selected, draft, names)
    leaks = {name: describe_number_leak(profile, index, alpha) for index, name in enumerate(draft.context)}
    reasons |= {f"ignored.{name}": why for name, why in leaks.items() if why}
    context: Any = {name: ends for name, ends in draft.ranges if not leaks[name]}
    profile = build_profile(selected, replace(draft, context=context), names)
    divisions = find_divisions(profile, roles.texts, arrays, alpha, reasons)
    problem, averaged = complete_problem(profile, selected, roles, split, delta, divisions, reasons)
    mapping = {name: names[name] for name in ("action", *problem.signals, *problem.context) if names[name] != name}
    return Proposal(problem, mapping, reasons, roles, split, delta, averaged)


def build_profile(arrays: Mapping[Any, Any], problem: Problem, names: Mapping[str, str]) -> LogProfile:
    """Return the profile of rows for a problem."""
    mapping = {name: names[name] for name in ("action", *problem.signals, *problem.context)}
    return LogProfile(Log.of(arrays, problem, columns=mapping), mapping)


def describe_number_leak(profile: LogProfile, index: int, alpha: float) -> str:
    """Return why a number counts as recorded after the decision; empty if it does not."""
    column = SortedColumn.of(profile.log.numbers[:, index], profile.log.actions)
    share = alpha / (len(profile.names) * profile.log.numbers.shape[1])
    return describe_leak(
        profile,
        lambda k: estimate_auc(column, find_events(profile, k), profile.observed(k), is_binary(profile, k), share),
    )


def complete_problem(
    profile: LogProfile,
    selected: Mapping[Any, Any],
    roles: Roles,
    split: Split,
    delta: float,
    divisions: Divisions,
    reasons: dict[str, str],
) -> tuple[Problem, dict[str, tuple[str, ...]]]:
    """Return the problem with models, safe rates, limits and the remaining delta, and the averaged columns by limit.

    If there are columns of text, half of the reading share of delta is for the statement that rates are equal; whether
    there are any does not depend on outcomes.
    """
    draft, columns = profile.log.problem, divisions.columns
    share = READING_SHARE * delta / len(draft.limits) / (2 if columns else 1)
    models, modelled, limits = {}, {}, {}
    for signal, (name, limit) in enumerate(draft.limits.items(), start=1):
        bounds = get_equivalence_bounds(profile, signal, limit, roles.limits[profile.columns[name]])
        models[name] = model = choose_limit_model(profile, signal, divisions, bounds, share / max(len(columns), 1))
        modelled[name] = replace(limit, by=model.by, model="linear" if model.linear else None)
    divided = build_profile(selected, replace(draft, limits=modelled), profile.columns)
    for signal, (name, limit) in enumerate(modelled.items(), start=1):
        reasons[f"model.{name}"] = models[name].why
        limits[name] = set_safe_rate(divided, signal, limit, roles.limits[profile.columns[name]], share, reasons)
    averaged = {name: model.averaged for name, model in models.items() if model.averaged}
    reasons |= {f"average.{name}": f"it holds on average over {join_names(over)}" for name, over in averaged.items()}
    ways = math.prod(model.ways for model in models.values()) if split.fraction == 1.0 else 1
    reasons["delta"] = describe_delta(delta, limits, columns)
    if ways > 1:
        reasons["delta"] += (
            f", and the rest divided by {ways:,}, the number of model choices made on rows that are also learned"
        )
    remaining = float(f"{(1.0 - READING_SHARE) * delta / ways:.3g}")
    norm_bound, why = estimate_norm_bound(divided, share)
    reasons |= {"norm_bound": why} if why else {}
    settings = {"norm_bound": norm_bound} if why else {}
    return replace(draft, limits=limits, delta=remaining, settings=settings), averaged


def describe_delta(delta: float, limits: Mapping[str, Limit], columns: Mapping[str, Any]) -> str:
    """Return what the reading share of delta is for; it is reserved before the results are known."""
    read = "the safe action's rates" + (", and whether rates are equal in groups" if columns else "")
    text = f"of {format_number(delta)}; {format_number(READING_SHARE * delta)} pays for estimating {read}"
    if all(limit.safe is None for limit in limits.values()):
        text += "; `safe` is left out because of these estimates, so they are paid for in any case"
    return text
