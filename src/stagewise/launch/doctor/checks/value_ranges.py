"""Check `ranges`: every number is in its declared range."""

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.launch.doctor.finding import Finding, select_most_severe
from stagewise.launch.doctor.finding_messages import FindingCode
from stagewise.launch.doctor.log_profile import LogProfile


def check(profile: LogProfile, alpha: float) -> Finding:
    """Find numbers about users and outcomes outside their declared ranges; an agent would reject each."""
    log, findings = profile.log, []
    for index, (name, (low, high)) in enumerate(log.problem.ranges):
        swappable = [log.problem.ranges[other][0] for other in profile.find_swappable(index)]
        findings += check_range(log.numbers[:, index], name, low, high, swappable[0] if swappable else None)
    for index, name in enumerate(profile.names):
        findings += check_range(log.values[:, index], name, *profile.ends(index), None, is_outcome=True)
    return select_most_severe(findings, Finding.of(FindingCode.RANGES_KEPT))


def check_range(
    values: Floats, name: str, low: float, high: float, swapped_with: str | None, is_outcome: bool = False
) -> list[Finding]:
    """Return the finding on the values of one column that are out of range."""
    outside = ~np.isnan(values) & ~((values >= low) & (values <= high))
    if not outside.any():
        return []
    extremes = values[outside]
    example = float(extremes[np.argmax(np.abs(extremes - 0.5 * (low + high)))])
    return [
        Finding.of(
            FindingCode.OUT_OF_RANGE,
            name=name,
            count=int(outside.sum()),
            rows=values.size,
            low=low,
            high=high,
            example=example,
            percent=high == 1.0 and low == 0.0 and 1.0 < example <= 100.0,
            swapped_with=swapped_with,
            is_outcome=is_outcome,
        )
    ]
