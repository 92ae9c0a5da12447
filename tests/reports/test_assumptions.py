"""What a certificate lists of a declared range: kept where every outcome lies in it."""

from typing import Any

import pytest

import stagewise as sw
from stagewise.reports.guarantee import check_assumptions

RANGE = "every outcome lies in [0, 1]"


def caps(**more: Any) -> sw.SafePosteriorSampling:
    """Return CAPS from the zero vector, for one feature."""
    return sw.SafePosteriorSampling(safe_action=sw.SafeAction(features=[0.0]), threshold=0.02, noise=0.5, **more)


@pytest.mark.parametrize(
    ("outcomes", "kept"), [("bernoulli", True), ("gaussian", False), ("uniform", False), ("rademacher", False)]
)
def test_unit_outcomes_are_held_against_the_world(outcomes: Any, kept: bool) -> None:
    noise = None if outcomes == "bernoulli" else 0.5
    world = sw.LinearWorld(reward=[0.5], cost=[0.01], actions=sw.RaySet([[1.0]]), noise=noise, outcomes=outcomes)
    told = {row["assumption"]: row["kept"] for row in check_assumptions(caps(bounded_outcomes=True), world)}
    assert told[RANGE] is kept
    assert len(told) == len(check_assumptions(caps(), world)) + 1  # beside the noise, which the ellipsoid rests on
    assert RANGE not in {row["assumption"] for row in check_assumptions(caps(), world)}


@pytest.mark.parametrize(("outcomes", "kept"), [("bernoulli", True), ("clipped-gaussian", True), ("gaussian", False)])
def test_arms_without_noise_are_held_against_the_world(outcomes: Any, kept: bool) -> None:
    world = sw.ArmsWorld(reward=[0.1, 0.5], cost=[0.0, 0.1], outcomes=outcomes)
    told: dict[str, Any] = {"arms": 2, "safe_action": sw.SafeAction(arm=0, reward=0.1, cost=0.0), "threshold": 0.2}
    for kind in (sw.OPB, sw.SafeArmPosteriorSampling):
        assert {row["assumption"]: row["kept"] for row in check_assumptions(kind(**told), world)}[RANGE] is kept
        assert RANGE not in {row["assumption"] for row in check_assumptions(kind(**told, noise=1.0), world)}
