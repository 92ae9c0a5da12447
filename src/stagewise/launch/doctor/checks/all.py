"""All checks, in the order in which they are told, and which of them can raise a false alarm."""

from collections.abc import Callable
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
TESTS = sum(check.tests for check in CHECKS)


def examined(chart: Chart, alpha: float) -> list[Finding]:
    """Return what every check finds; those that test share alpha alike."""
    return [check.look(chart, alpha / TESTS) for check in CHECKS]
