"""Random families of worlds for the statistics, and of policies in them."""

from typing import Any, NamedTuple

import numpy as np
from tests.statistics.counting import DELTA, SEED, Family

import stagewise as sw
from stagewise import OPB, SafeAction
from stagewise.engine.compile import Floats


class LinearWorld(NamedTuple):
    """A truth of norm 1 in every signal, and what is listed."""

    safe: Floats  # (d,)
    truth: Floats  # (1 + m, d)
    features: Any  # (M, d), or a set of actions
    thresholds: Floats  # (m,)
    noise: Floats  # (1 + m,)


class ArmWorld(NamedTuple):
    """Bernoulli arms."""

    safe: int
    truth: Floats  # (1 + m, K)
    thresholds: Floats  # (m,)


def directions(random: np.random.Generator, count: int, d: int) -> Floats:
    vectors = random.normal(size=(count, d))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def linear_world(run: int, known: bool) -> LinearWorld:
    """Draw a world in which what is good tends to cost; every other known safe action is the zero vector."""
    random = np.random.default_rng([SEED, run, known])
    d, m = int(random.integers(3, 6)), int(random.integers(1, 3))
    safe = np.zeros(d) if known and run % 2 else directions(random, 1, d)[0] * random.uniform(0.4, 1.0)
    reward = directions(random, 1, d)
    reward *= -1.0 if reward[0] @ safe < 0.0 else 1.0
    costs = reward + directions(random, m, d)
    truth = np.vstack([reward, costs / np.linalg.norm(costs, axis=1, keepdims=True)])
    features = directions(random, 6, d)
    features[0] = reward[0]
    slack = random.uniform(0.05 if known else 0.2, 0.5, size=m)
    noise = random.uniform(0.05, 1.0 if known else 0.2, size=1 + m)
    return LinearWorld(safe, truth, features, truth[1:] @ safe + slack, noise)


def tight_world(run: int, known: bool) -> LinearWorld:
    """Return a world whose only action costs too much: a run violates exactly when that cost's interval fails."""
    return LinearWorld(np.zeros(1), np.full((2, 1), 0.9), np.ones((1, 1)), np.full(1, 0.6), np.ones(2))


def tight_arms(run: int, known: bool) -> ArmWorld:
    """Return the same with arms: a fair coin has the largest variance of all outcomes in [0, 1]."""
    return ArmWorld(0, np.array([[0.0, 0.9], [0.0, 0.5]]), np.array([0.3]))


def arm_world(run: int, known: bool) -> ArmWorld:
    """Draw six arms, of which the safe one is cheap."""
    random = np.random.default_rng([SEED, run, known, 1])
    m, safe = int(random.integers(1, 3)), int(random.integers(6))
    truth = random.uniform(size=(1 + m, 6))
    truth[1:, safe] *= 0.3
    return ArmWorld(safe, truth, truth[1:, safe] + random.uniform(0.05 if known else 0.3, 0.6, size=m))


def linear_policy(kind: Any, world: LinearWorld, known: bool, **settings: Any) -> Any:
    safe = known_safe(world.safe, world.truth @ world.safe, known)
    bound = np.maximum(1.0, 1.05 * world.thresholds)  # some limits are above what anything costs
    options = {"noise": world.noise, "delta": DELTA, "safe_action": safe, "threshold": world.thresholds}
    return kind(**{**options, "mean_cost_bound": bound, **settings})


def arm_policy(world: ArmWorld, known: bool, kind: Any = OPB, **settings: Any) -> OPB:
    safe = known_safe(world.safe, world.truth[:, world.safe], known)
    policy: OPB = kind(arms=world.truth.shape[1], safe_action=safe, threshold=world.thresholds, delta=DELTA, **settings)
    return policy


def among(draw: Any, kind: Any, known: bool = True, declared: float = 1.0, **settings: Any) -> Family:
    """Return the runs of a linear policy; `declared` is the noise it is told as a share of the true one."""

    def build(run: int) -> tuple[Any, sw.LinearWorld]:
        drawn = draw(run, known)
        # With a wrong noise, the assumption tests would stop the run.
        options = {"noise": declared * drawn.noise, "check_assumptions": declared == 1.0, **settings}
        policy = linear_policy(kind, drawn, known, **options)
        actions = drawn.features
        if isinstance(actions, np.ndarray):
            actions = (sw.FiniteSet if policy.mixes else sw.RaySet)(actions)
        return policy, sw.LinearWorld(reward=drawn.truth[0], cost=drawn.truth[1:], actions=actions, noise=drawn.noise)

    return build


def among_arms(draw: Any, known: bool = True, **settings: Any) -> Family:
    """Return the runs of a policy over arms."""

    def build(run: int) -> tuple[Any, sw.ArmsWorld]:
        drawn = draw(run, known)
        return arm_policy(drawn, known, **settings), sw.ArmsWorld(reward=drawn.truth[0], cost=drawn.truth[1:])

    return build


def known_safe(index: Any, values: Floats, known: bool) -> SafeAction:
    """Return the safe action, with or without what it is worth and costs."""
    options = {"reward": float(values[0]), "cost": values[1:]} if known else {}
    return SafeAction(arm=index, **options) if isinstance(index, int) else SafeAction(features=index, **options)
