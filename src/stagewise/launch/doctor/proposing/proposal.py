"""A problem that a log suggests: everything that was chosen stands there with its reason."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.checks.leaks import Points, area
from stagewise.launch.doctor.events import events, two_valued
from stagewise.launch.doctor.finding import said
from stagewise.launch.doctor.proposing.drafting import drafted, names_for
from stagewise.launch.doctor.proposing.forms import form_of
from stagewise.launch.doctor.proposing.roles import Roles
from stagewise.launch.doctor.proposing.safe_rates import with_safe
from stagewise.launch.doctor.splitting import Split
from stagewise.launch.log import Log
from stagewise.policies.problem import Problem

FOR_SAFE = 0.2  # of delta, that the safe action's rates are read with


@dataclass(frozen=True, eq=False)
class Proposal:
    """A problem, what its columns are called, and why each value is what it is."""

    problem: Problem
    names: dict[str, str]
    """The columns that have another name in the problem, as `Log.of(..., names=)` takes them."""
    reasons: dict[str, str]
    roles: Roles
    split: Split
    delta: float
    """The chance of failure that was asked for, of which the problem's own is a part."""


def proposed(
    arrays: Mapping[Any, npt.NDArray[Any]], roles: Roles, split: Split, delta: float, alpha: float
) -> Proposal:
    """Return the problem that one part of the rows suggests."""
    reasons = {f"aside.{name}": why for name, why in roles.aside.items()}
    names = {"action": roles.action, **names_for(roles)}
    draft = drafted(roles, names, split, delta, reasons)
    some = {name: array[split.chosen_from] for name, array in {**arrays, **roles.numbers, **roles.outcomes}.items()}
    chart = Chart(Log.of(some, draft, names=names), names)
    known = {name: leak(chart, place, alpha) for place, name in enumerate(draft.context)}
    reasons |= {f"aside.{name}": why for name, why in known.items() if why}
    context: Any = {name: ends for name, ends in draft.ranges if not known[name]}
    chart = Chart(Log.of(some, replace(draft, context=context), names=names), names)
    problem = settled(chart, some, roles, split, delta, reasons)
    told = {name: names[name] for name in ("action", *problem.signals, *problem.context) if names[name] != name}
    return Proposal(problem, told, reasons, roles, split, delta)


def leak(chart: Chart, place: int, alpha: float) -> str:
    """Return why a number is taken to be recorded after the decision; nothing where it is not."""
    points = Points.of(chart.log.numbers[:, place], chart.log.actions)
    share = alpha / (len(chart.names) * chart.log.numbers.shape[1])
    for signal, name in enumerate(chart.names):
        foretold, bar = area(points, events(chart, signal), chart.seen(signal), two_valued(chart, signal), share)
        if foretold > bar:
            return f"it foretells {name!r} with an area under the curve of {said(foretold)} or more: known afterwards?"
    return ""


def settled(
    chart: Chart, some: Mapping[Any, Any], roles: Roles, split: Split, delta: float, reasons: dict[str, str]
) -> Problem:
    """Return the problem with its forms, the safe action's rates, its limits, and what is left of delta."""
    draft = chart.log.problem
    forms = {name: form_of(chart, signal) for signal, name in enumerate(draft.limits, start=1)}
    formed = {
        name: replace(limit, by=forms[name].by, model="linear" if forms[name].linear else None)
        for name, limit in draft.limits.items()
    }
    divided = Chart(Log.of(some, replace(draft, limits=formed), names=chart.called), chart.called)
    share, limits = FOR_SAFE * delta / len(formed), {}
    for signal, (name, limit) in enumerate(formed.items(), start=1):
        reasons[f"form.{name}"] = forms[name].why
        limits[name] = with_safe(divided, signal, limit, roles.limits[chart.called[name]], share, reasons)
    ways = math.prod(form.ways for form in forms.values()) if split.share == 1.0 else 1
    reasons["delta"] = f"of {said(delta)}; {said(FOR_SAFE * delta)} was spent on reading the safe action's rates"
    if ways > 1:
        reasons["delta"] += f", and the rest divided by {ways:,}, the forms chosen among on rows that are learned too"
    return replace(draft, limits=limits, delta=float(f"{(1.0 - FOR_SAFE) * delta / ways:.3g}"))
