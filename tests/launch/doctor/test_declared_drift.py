"""A declared drift beside a log: whether its limit can be learned at that traffic, with the least bound as a number."""

import numpy as np
import pytest
from tests.launch.doctor.honest import NAMES, drawn

import stagewise as sw
from stagewise.launch.doctor.finding import Finding
from stagewise.launch.doctor.finding_messages import FindingCode
from stagewise.problem.drift import DAY, parse_drift

ROWS = 6_000


def build(drift: str | None, value: float = 0.05) -> sw.Problem:
    limits = {"opt_out": sw.Limit(value, safe_bound=0.01, drift=drift, window="2d")}
    return sw.Problem(actions=NAMES, safe="today", reward=sw.Reward("click"), limits=limits)


def check(drift: str | None, rise: float = 1.0) -> Finding:
    rng = np.random.default_rng(5)
    log = drawn(rng, ROWS, at=1.7e9 + np.arange(ROWS) * DAY / 200)
    late = np.where(np.arange(ROWS) > ROWS // 2, rise, 1.0)
    log["opt_out"] = (rng.random(ROWS) < 0.01 * late) * 1.0
    return sw.doctor(log, build(drift))["drift"]


@pytest.mark.parametrize(
    ("drift", "code"), [("0.003/30d", FindingCode.DRIFT_LEARNABLE), ("0.5/30d", FindingCode.DRIFT_TOO_FAST)]
)
def test_the_least_bound_that_can_be_had_is_compared_with_the_limit(drift: str, code: FindingCode) -> None:
    finding = check(drift)
    assert finding.code == code
    assert finding.details["limit"] == pytest.approx(0.05)
    assert (finding.details["least"] <= 0.05) == (code == FindingCode.DRIFT_LEARNABLE)
    assert finding.message


def test_a_mean_that_may_move_is_no_finding() -> None:
    assert check(None, rise=4.0).code == FindingCode.MEAN_DRIFTED
    assert check("0.003/30d", rise=4.0).code == FindingCode.DRIFT_LEARNABLE


def test_the_least_bound_is_that_of_the_theory() -> None:
    """The formula's examples: 700 plays a day, outcomes after 7 days, a rate of .008."""
    expected = {0.0001: 0.0135, 0.0002: 0.0154, 0.0005: 0.0198}
    for slope, least in expected.items():
        modulus = parse_drift(f"{slope}/1d", "a limit")
        assert modulus is not None
        assert modulus.compute_least_bound(0.008, 700 / DAY, 7 * DAY, 14.0) == pytest.approx(least, abs=3e-4)
