"""Whatever is proposed, the pessimistic costs are within the limits, and only what was proposed is played (G1)."""

from typing import Any

import numpy as np
import pytest

import stagewise as sw

NAMES = ["a", "safe", "b", "c", "d"]
MEANS = {"a": 0.02, "safe": 0.005, "b": 0.1, "c": 0.3, "d": 0.001}
LIMITS: dict[str, dict[str, sw.Limit]] = {
    "two": {"x": sw.Limit(0.05, safe_bound=0.01, model="rates"), "y": sw.Limit(0.2, safe_bound=0.02, model="rates")},
    "at least": {
        "x": sw.Limit(0.05, safe_bound=0.01, model="rates"),
        "y": sw.Limit(sw.AtLeast(0.6), safe_bound=0.9, by="group"),
    },
    "unknown safe cost": {"x": sw.Limit(0.2, model="rates"), "y": sw.Limit(0.3, safe_bound=0.02, model="rates")},
    "relative": {"x": sw.Limit(sw.TimesSafe(1.5), safe_bound=0.2, model="rates"), "y": sw.Limit(0.3, by="group")},
    "linear": {"x": sw.Limit(0.3, safe_bound=0.01, model="linear")},
    "logistic": {
        "x": sw.Limit(0.3, safe_bound=0.01, model="logistic"),
        "y": sw.Limit(0.2, safe_bound=0.02, model="rates"),
    },
    "ranges": {"x": sw.Limit(-3.0, low=-10.0, high=40.0, safe_bound=-8.0, model="rates")},
    "little slack": {
        "x": sw.Limit(0.02, safe_bound=0.02 - 1e-9, model="rates"),
        "y": sw.Limit(0.5, safe_bound=0.1, model="rates"),
    },
}


def draw_weights(random: Any, eligible: list[str]) -> dict[str, float]:
    """Return a proposal: mixtures, single actions, tiny and missing weights, sums of 1 up to rounding."""
    weights = random.dirichlet(np.full(len(eligible), 0.4))
    if random.random() < 0.2:
        weights = np.eye(len(eligible))[random.integers(len(eligible))]
    if random.random() < 0.2:
        weights = weights * random.choice([1e-12, 0.5, 1.0 + 4e-16])
    return {name: min(float(weight), 1.0) for name, weight in zip(eligible, weights, strict=True)}


@pytest.mark.parametrize("kind", LIMITS)
def test_the_limits_hold_for_every_proposal(kind: str) -> None:
    problem = sw.Problem(
        action_names=NAMES, safe_name="safe", context={"age": (0, 1)}, reward=sw.Reward("click", model="rates"),
        limits=LIMITS[kind],
    )  # fmt: skip
    random, agent, judged, held = np.random.default_rng(7), sw.Agent(problem, seed=3), 0, 0
    for _ in range(120):
        user = {"age": float(random.random())} | {name: "uv"[random.integers(2)] for name in problem.segment_columns}
        only = None if random.random() < 0.7 else random.choice(NAMES, 3, replace=False).tolist()
        weights = draw_weights(random, only or NAMES)
        given = {"propose": weights} if random.random() < 0.7 else {"scores": weights}
        decision: Any = agent.decide(user, only=only, **given)
        assert sum(decision.probabilities.values()) == pytest.approx(1.0, abs=1e-12)
        assert {name for name, share in decision.probabilities.items() if share > 0.0} <= {*weights, "safe"}
        if decision.reason is None:
            judged += 1
            for name, status in decision.limits.items():
                over = status.pessimistic_cost - status.threshold
                assert (-over if problem.limits[name].at_least else over) <= 0.0
        if "propose" in given:
            for name in {*NAMES} - {"safe"}:
                assert 0.0 <= decision.probabilities[name] <= weights.get(name, 0.0) * (1.0 + 1e-15)
            held += bool(decision.proposal.held_back)
        outcomes = {"click": float(random.random() < 0.3)}
        for name, limit in problem.limits.items():
            event = random.random() < MEANS[decision.action]
            outcomes[name] = limit.high if event != limit.at_least else limit.low
        agent.learn(decision.id, **outcomes)
    assert judged > 20 or kind == "unknown safe cost"
    assert held > 20
