"""All checks, in the order in which they are told, and which of them can raise a false alarm."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.checks import (
    actions,
    amounts,
    binding,
    bounds,
    drift,
    duplicates,
    features,
    gaps,
    leaks,
    missing,
    model,
    propensities,
    ranges,
    safe_action,
    segments,
    units,
)
from stagewise.launch.doctor.finding import Finding


class Check(NamedTuple):
    """A function from a log to a finding."""

    name: str
    look: Callable[[Chart, float], Finding]
    tests: bool  # whether chance can make it contradict; others tell facts


CHECKS = (
    Check("actions", actions.check, False),
    Check("ranges", ranges.check, False),
    Check("units", units.check, False),
    Check("duplicates", duplicates.check, True),
    Check("propensities", propensities.check, True),
    Check("missing", missing.check, True),
    Check("gaps", gaps.check, True),
    Check("amounts", amounts.check, False),
    Check("safe action", safe_action.check, True),
    Check("declared safe", safe_action.check_declared, True),
    Check("binding", binding.check, True),
    Check("leaks", leaks.check, True),
    Check("model", model.check, True),
    Check("bounds", bounds.check, True),
    Check("segments", segments.check, True),
    Check("features", features.check, False),
    Check("drift", drift.check, True),
)
NAMES = tuple(check.name for check in CHECKS)
CHOSEN = ("safe action", "declared safe")
TESTS = sum(check.tests for check in CHECKS)


def examined(chart: Chart, alpha: float, fresh: Chart | None = None) -> list[Finding]:
    """Return what every check finds; those that test share alpha alike.

    Where a problem is chosen from some of the rows, those checks that what was chosen agrees with by itself look at the
    others too, at half of their share each.
    """
    found = []
    for check in CHECKS:
        if fresh is not None and check.name in CHOSEN:
            both = [check.look(rows, 0.5 * alpha / TESTS) for rows in (fresh, chart)]
            worse = both[0] if both[0].verdict == "contradicts" else both[1]
            found.append(among_others(worse) if worse is both[0] else worse)
        else:
            found.append(check.look(chart, alpha / TESTS))
    return found


def among_others(finding: Finding) -> Finding:
    """Return a finding that says that it is about rows that nothing was chosen from."""
    return replace(finding, sentence=f"in the rows that nothing was chosen from, {finding.sentence}")
