"""All checks in the order of the report, and which of them are statistical tests."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from stagewise.launch.doctor.checks import (
    action_names,
    binding_limits,
    duplicates,
    features,
    gaps,
    leaks,
    mean_drift,
    missing,
    model_form,
    parameter_norms,
    propensities,
    safe_action_rates,
    sample_size,
    segments,
    units,
    value_ranges,
)
from stagewise.launch.doctor.finding import CheckName, Finding, FindingVerdict
from stagewise.launch.doctor.log_profile import LogProfile


class Check(NamedTuple):
    """A check: its name, its function, and whether it is a test, which chance can make contradict."""

    name: CheckName
    run: Callable[[LogProfile, float], Finding]
    is_test: bool


CHECKS = (
    Check(CheckName.ACTIONS, action_names.check, False),
    Check(CheckName.RANGES, value_ranges.check, False),
    Check(CheckName.UNITS, units.check, False),
    Check(CheckName.DUPLICATES, duplicates.check, True),
    Check(CheckName.PROPENSITIES, propensities.check, True),
    Check(CheckName.MISSING_VALUES, missing.check, True),
    Check(CheckName.OUTCOME_GAPS, gaps.check, True),
    Check(CheckName.SAMPLE_SIZE, sample_size.check, False),
    Check(CheckName.SAFE_ACTION, safe_action_rates.check, True),
    Check(CheckName.DECLARED_SAFE, safe_action_rates.check_declared, True),
    Check(CheckName.LOOSE_LIMITS, binding_limits.check, True),
    Check(CheckName.LEAKAGE, leaks.check, True),
    Check(CheckName.MODEL_FORM, model_form.check, True),
    Check(CheckName.NORM_BOUND, parameter_norms.check, True),
    Check(CheckName.SEGMENTS, segments.check, True),
    Check(CheckName.FEATURES, features.check, False),
    Check(CheckName.DRIFT, mean_drift.check, True),
)
CHECK_NAMES = tuple(str(check.name) for check in CHECKS)
HOLDOUT_CHECKS = (CheckName.SAFE_ACTION, CheckName.DECLARED_SAFE)
TEST_COUNT = sum(check.is_test for check in CHECKS)


def run_checks(profile: LogProfile, alpha: float, holdout: LogProfile | None = None) -> list[Finding]:
    """Return the finding of every check; the tests share alpha equally.

    If a problem is chosen from some of the rows, the checks that agree with the choice by construction run on the
    holdout rows too, each at half of its share.
    """
    findings = []
    for check in CHECKS:
        if holdout is not None and check.name in HOLDOUT_CHECKS:
            on_holdout, on_all = (check.run(rows, 0.5 * alpha / TEST_COUNT) for rows in (holdout, profile))
            if on_holdout.verdict is FindingVerdict.CONTRADICTS:
                findings.append(replace(on_holdout, in_holdout=True))
            else:
                findings.append(on_all)
        else:
            findings.append(check.run(profile, alpha / TEST_COUNT))
    return findings
