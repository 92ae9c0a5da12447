"""A problem that a log suggests: everything that was chosen stands there with its reason."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.checks.leaks import Points, area, leak
from stagewise.launch.doctor.events import events, two_valued
from stagewise.launch.doctor.finding import Finding, gravest, said
from stagewise.launch.doctor.proposing.alike import bar_of
from stagewise.launch.doctor.proposing.divisions import Divisions, divisions_of
from stagewise.launch.doctor.proposing.drafting import drafted, names_for
from stagewise.launch.doctor.proposing.forms import form_of
from stagewise.launch.doctor.proposing.norms import norm_bound_of
from stagewise.launch.doctor.proposing.roles import Roles
from stagewise.launch.doctor.proposing.safe_rates import with_safe
from stagewise.launch.doctor.splitting import Split
from stagewise.launch.log import Log
from stagewise.policies.problem import Problem
from stagewise.problem.declared import Limit
from stagewise.problem.naming import listing

FOR_READING = 0.2  # of delta: what is read from the rows and then relied on, as the safe action's rates


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
    averaged: dict[str, tuple[str, ...]]
    """By limit, the columns of text that it holds on average over, where alike rates were not shown."""

    def noted(self, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Return the findings, with what a proposal leaves open: limits on average, ranges that were only seen."""
        seen = [
            Finding(
                "ranges",
                "note",
                f"the range of {name!r} is what was seen in these rows, rounded outward",
                "declare the low and the high that no outcome can be outside of: the guarantee rests on them",
            )
            for name in self.seen
        ]
        open_ones = {"ranges": gravest("ranges", seen, ""), "segments": gravest("segments", self.averages(), "")}
        return tuple(
            open_ones[one.name] if one.verdict == "ok" and open_ones.get(one.name, one).verdict == "note" else one
            for one in findings
        )

    @property
    def seen(self) -> list[str]:
        """The outcomes whose range nobody said, and that are neither 0 and 1 nor shares."""
        return [name for name, signal in self.problem.signals.items() if (signal.low, signal.high) != (0.0, 1.0)]

    def averages(self) -> list[Finding]:
        """Return a finding for every limit that holds on average over segments, and not in each."""
        return [
            Finding(
                "segments",
                "note",
                f"{name!r} keeps its limit on average over {listing(over)}, where rates are not shown to be alike",
                "a column that joins it with the one that users are divided by would let it hold in each",
            )
            for name, over in self.averaged.items()
        ]


def proposed(
    arrays: Mapping[Any, npt.NDArray[Any]], roles: Roles, split: Split, delta: float, alpha: float
) -> Proposal:
    """Return the problem that one part of the rows suggests."""
    reasons = {f"aside.{name}": why for name, why in roles.aside.items()}
    names = {"action": roles.action, **names_for(roles)}
    draft = drafted(roles, names, split, delta, reasons)
    some = {name: array[split.chosen_from] for name, array in {**arrays, **roles.numbers, **roles.outcomes}.items()}
    chart = charted(some, draft, names)
    known = {name: foretold(chart, place, alpha) for place, name in enumerate(draft.context)}
    reasons |= {f"aside.{name}": why for name, why in known.items() if why}
    context: Any = {name: ends for name, ends in draft.ranges if not known[name]}
    chart = charted(some, replace(draft, context=context), names)
    divisions = divisions_of(chart, roles.texts, arrays, alpha, reasons)
    problem, averaged = settled(chart, some, roles, split, delta, divisions, reasons)
    told = {name: names[name] for name in ("action", *problem.signals, *problem.context) if names[name] != name}
    return Proposal(problem, told, reasons, roles, split, delta, averaged)


def charted(some: Mapping[Any, Any], problem: Problem, names: Mapping[str, str]) -> Chart:
    """Return the rows as a problem reads them."""
    called = {name: names[name] for name in ("action", *problem.signals, *problem.context)}
    return Chart(Log.of(some, problem, names=called), called)


def foretold(chart: Chart, place: int, alpha: float) -> str:
    """Return why a number is taken to be recorded after the decision; nothing where it is not."""
    points = Points.of(chart.log.numbers[:, place], chart.log.actions)
    share = alpha / (len(chart.names) * chart.log.numbers.shape[1])
    return leak(chart, lambda k: area(points, events(chart, k), chart.seen(k), two_valued(chart, k), share))


def settled(
    chart: Chart,
    some: Mapping[Any, Any],
    roles: Roles,
    split: Split,
    delta: float,
    divisions: Divisions,
    reasons: dict[str, str],
) -> tuple[Problem, dict[str, tuple[str, ...]]]:
    """Return the problem with its forms, the safe action's rates, its limits, and what is left of delta.

    And by limit what it holds on average over. Where there are columns of text, half of what is set aside for reading
    is for the statement that rates are alike; whether there are any does not depend on outcomes.
    """
    draft, columns = chart.log.problem, divisions.columns
    share = FOR_READING * delta / len(draft.limits) / (2 if columns else 1)
    forms, formed, limits = {}, {}, {}
    for signal, (name, limit) in enumerate(draft.limits.items(), start=1):
        bar = bar_of(chart, signal, limit, roles.limits[chart.called[name]])
        forms[name] = form = form_of(chart, signal, divisions, bar, share / max(len(columns), 1))
        formed[name] = replace(limit, by=form.by, model="linear" if form.linear else None)
    divided = charted(some, replace(draft, limits=formed), chart.called)
    for signal, (name, limit) in enumerate(formed.items(), start=1):
        reasons[f"form.{name}"] = forms[name].why
        limits[name] = with_safe(divided, signal, limit, roles.limits[chart.called[name]], share, reasons)
    averaged = {name: form.averaged for name, form in forms.items() if form.averaged}
    reasons |= {f"average.{name}": f"it holds on average over {listing(over)}" for name, over in averaged.items()}
    ways = math.prod(form.ways for form in forms.values()) if split.share == 1.0 else 1
    reasons["delta"] = spending(delta, limits, columns)
    if ways > 1:
        reasons["delta"] += f", and the rest divided by {ways:,}, the forms chosen among on rows that are learned too"
    left = float(f"{(1.0 - FOR_READING) * delta / ways:.3g}")
    length, why = norm_bound_of(divided, share)
    reasons |= {"norm_bound": why} if why else {}
    settings = {"norm_bound": length} if why else {}
    return replace(draft, limits=limits, delta=left, settings=settings), averaged


def spending(delta: float, limits: Mapping[str, Limit], columns: Mapping[str, Any]) -> str:
    """Return what a part of delta pays for; it is set aside before it is known what can be stated."""
    read = "the safe action's rates" + (", and whether rates are alike in groups" if columns else "")
    words = f"of {said(delta)}; {said(FOR_READING * delta)} pays for reading {read}"
    if all(limit.safe is None for limit in limits.values()):
        words += "; `safe` is left out for what was read, so that this is paid all the same"
    return words
