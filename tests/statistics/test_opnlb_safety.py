"""Safety of OPNLB as a statistic: among many seeded runs, those that ever violate are no more than δ allows.

A run violates when the true expected cost of any of its mixtures is above its threshold. In the tight world a run
violates exactly when the truth is excluded.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.chance import allowed
from tests.statistics.counting import DELTA, Family, violating

from stagewise import OPNLB, Agent, ArmSet, ArmsWorld, SafeAction
from stagewise.engine.compile import Floats

pytestmark = pytest.mark.compiled

SEED = 20260904


class World(NamedTuple):
    """Bernoulli arms whose means are functions of finite classes; arm 0 is safe."""

    truth: Floats  # (1 + m, K)
    classes: list[Floats]
    thresholds: Floats


def random_world(run: int) -> World:
    """Draw four arms, and classes around their means."""
    random = np.random.default_rng([SEED, run])
    m = int(random.integers(1, 3))
    truth = random.uniform(size=(1 + m, 4))
    truth[1:, 0] *= 0.3
    classes = []
    for row in truth:
        table = np.clip(row + random.uniform(0.1, 0.4) * random.normal(size=(12, 4)), 0.0, 1.0)
        table[5] = row
        table[:, 0] = row[0]
        classes.append(table)
    return World(truth, classes, truth[1:, 0] + random.uniform(0.05, 0.6, size=m))


def tight_world(run: int) -> World:
    """Return a world whose only action costs too much: a run violates exactly when that is thought impossible."""
    truth = np.array([[0.0, 0.9], [0.0, 0.5]])
    costs = np.column_stack([np.zeros(9), np.linspace(0.1, 0.9, 9)])
    return World(truth, [truth[:1], costs], np.array([0.3]))


def played(draw: Callable[[int], World], kind: type[Any] = OPNLB, **settings: Any) -> Family:
    def build(run: int) -> tuple[Any, ArmsWorld]:
        world = draw(run)
        safe = SafeAction(arm=0, reward=float(world.truth[0, 0]), cost=world.truth[1:, 0])
        classes: dict[str, Any] = {"reward_class": world.classes[0], "cost_class": world.classes[1:]}
        policy = kind(safe_action=safe, delta=DELTA, threshold=world.thresholds, **classes, **settings)
        return policy, ArmsWorld(reward=world.truth[0], cost=world.truth[1:])

    return build


PROMISED = {
    "random": played(random_world),
    "directional": played(random_world, optimism="directional"),
    "rows": played(random_world, method="rows"),
    "tight": played(tight_world),
}
SHORT = {"random": 60, "rows": 40, "tight": 60}
OVERCONFIDENT = {
    "told three tenths of the noise": played(random_world, noise=0.15, check_assumptions=False),
    "told four tenths, tight": played(tight_world, noise=0.2, check_assumptions=False),
}


@pytest.mark.parametrize("name", SHORT)
def test_of_fifty_runs_few_violate(name: str) -> None:
    assert violating(PROMISED[name], 50, SHORT[name]) <= allowed(50, DELTA)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["random", "directional", "tight"])
def test_of_two_thousand_runs_no_more_violate_than_delta_allows(name: str) -> None:
    count = violating(PROMISED[name], 2000, 150)
    print(f"OPNLB, {name}: {count} of 2000 runs violate, {allowed(2000, DELTA)} may")  # pytest -rP shows it
    assert count <= allowed(2000, DELTA)


@pytest.mark.parametrize("name", OVERCONFIDENT)
def test_a_policy_that_is_told_too_little_noise_violates_in_too_many_runs(name: str) -> None:
    assert violating(OVERCONFIDENT[name], 50, 100) > allowed(50, DELTA)


def fooled_by_a_sorted_log(run: int) -> bool:
    """Say whether the limit is broken after a log of sixty rows, the cheap ones first."""
    world = tight_world(run)
    costs = np.sort(np.random.default_rng([SEED, run, 2]).random(60) < world.truth[1, 1]).astype(float)
    safe = SafeAction(arm=0, reward=0.0, cost=0.0)
    options = {"reward_class": world.classes[0], "cost_class": world.classes[1], "threshold": world.thresholds}
    agent = Agent(OPNLB(safe_action=safe, delta=DELTA, **options))
    agent.learn_log([1] * 60, [0.9] * 60, costs)
    return bool(world.truth[1] @ agent.decide(ArmSet(2)).probabilities[:-1] > world.thresholds[0] + 1e-12)


def test_a_log_sorted_by_cost_misleads_no_more_often_than_delta_allows() -> None:
    """Judged after every row, it excluded the truth half way through in 165 of 300."""
    assert sum(fooled_by_a_sorted_log(run) for run in range(100)) <= allowed(100, DELTA)
