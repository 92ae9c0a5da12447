"""Safety as a statistic where every round has a user and a safe action of its own, under two limits.

A run violates when the true expected cost of any of its rounds is above its threshold. In the tight worlds what is
offered costs too much, so that a run violates as often as the interval of that cost fails.
"""

from typing import Any

import numpy as np
import pytest
from tests.chance import allowed
from tests.sizes import LONG, sized

import stagewise as sw

pytestmark = pytest.mark.compiled

DELTA, SEED = 0.05, 20261116
RAYS: dict[str, Any] = {
    "LC-LUCB": sw.LCLUCB,
    "ROFUL": sw.ROFUL,
    "Safe-LTS": sw.SafeLTS,
    "CAPS": sw.SafePosteriorSampling,
}
MIXTURES: dict[str, tuple[Any, dict[str, Any]]] = {
    "OPLB": (sw.OPLB, {}),
    "OPLB, directional": (sw.OPLB, {"optimism": "directional"}),
    "CAPS, mixtures": (sw.SafePosteriorSampling, {"mixtures": True}),
}


class Users:
    """For every run its own actions, of which the first is cheap for every user, and a policy that knows how cheap."""

    def __init__(self, kind: Any, settings: dict[str, Any]) -> None:
        self.kind, self.settings = kind, settings

    def __call__(self, run: int) -> tuple[Any, sw.ContextWorld]:
        rng = np.random.default_rng([SEED, run])
        count, d = int(rng.integers(2, 4)), int(rng.integers(2, 4))
        theta = rng.uniform(0.0, 0.6, size=(3, count, d)) / d
        theta[0, 0] *= 0.2
        theta[1:, 0] *= rng.uniform(0.0, 0.5)
        most = theta[1:, 0].sum(axis=1)
        limits = most + rng.uniform(0.03, 0.2, size=2)
        noise = rng.uniform(0.02, 0.2, size=3)
        world = sw.ContextWorld(reward=theta[0], cost=theta[1:], outcomes="gaussian", noise=noise)
        return self.kind(
            safe_action=sw.SafeAction(cost=most), threshold=limits, noise=noise, norm_bound=world.norms, delta=DELTA,
            dimension=count * d, mean_cost_bound=None, **self.settings,
        ), world  # fmt: skip


def safest_of(safe_action: Any, threshold: Any, **_: Any) -> sw.AlwaysSafe:
    """Return who dares nothing, whatever else is told."""
    return sw.AlwaysSafe(safe_action=safe_action, threshold=threshold)


class Points:
    """For every run its own parameters of length 1, fresh rays, and a fresh point that they begin at."""

    def __init__(self, kind: Any, settings: dict[str, Any]) -> None:
        self.kind, self.settings = kind, settings

    def __call__(self, run: int) -> tuple[Any, sw.LinearWorld]:
        rng = np.random.default_rng([SEED, run, 1])
        d, length = int(rng.integers(2, 5)), float(rng.uniform(0.05, 0.4))
        reward = rng.normal(size=d)
        costs = reward / np.linalg.norm(reward) + rng.normal(size=(2, d))
        reward, costs = reward / np.linalg.norm(reward), costs / np.linalg.norm(costs, axis=1, keepdims=True)
        noise = rng.uniform(0.02, 0.2, size=3)
        limits = length + rng.uniform(0.05, 0.4, size=2)
        actions = sw.RandomRaySet(count=4, dimension=d, safe=length)
        safe = sw.SafeAction(cost=[length, length], reward=-length)
        options = {
            "safe_action": safe,
            "threshold": limits,
            "noise": noise,
            "delta": DELTA,
            "dimension": d,
            **self.settings,
        }
        return self.kind(**options), sw.LinearWorld(reward=reward, cost=costs, actions=actions, noise=noise)


def tight(kind: Any, share: float, **settings: Any) -> tuple[Any, sw.ContextWorld]:
    """Return a world whose only other action costs too much, and a policy told this share of the noise."""
    world = sw.ContextWorld(
        reward=[[0.0], [0.9]], cost=[[[0.0], [0.7]], [[0.0], [0.1]]], outcomes="gaussian", noise=1.0
    )
    options = {"safe_action": sw.SafeAction(cost=[0.0, 0.0]), "threshold": [0.6, 0.6], "noise": share, "dimension": 2}
    return kind(
        **{**options, "mean_cost_bound": None, "check_assumptions": False, "split_delta": False, **settings}
    ), world


def broken(policy: Any, world: Any, size: tuple[int, int]) -> Any:
    runs, rounds = size
    return sw.simulate(policy, world, rounds=rounds, runs=runs, record_points=1, seed=SEED, audit=True, progress=False)


def check(result: sw.Result, runs: int) -> None:
    """Refuse more violations, or runs in which hope fell short or an interval missed, than δ allows."""
    assert result.audit is not None
    assert np.count_nonzero(result.violations) <= allowed(runs, DELTA)
    assert np.count_nonzero(result.audit["optimism_failures"] > 0) <= allowed(runs, DELTA)
    assert np.all(np.count_nonzero(result.audit["missed"] > 0, axis=0) <= allowed(runs, DELTA))


@sized((200, 60), (2000, 600))
@pytest.mark.parametrize("name", MIXTURES)
def test_every_users_limits_hold(name: str, size: tuple[int, int]) -> None:
    kind, settings = MIXTURES[name]
    result = broken(None, Users(kind, settings), size)
    check(result, size[0])
    assert np.count_nonzero(result.regret[:, -1] < 0.98 * size[1] * result.optimum[:, -1]) > size[0] // 4


@sized((200, 60), (2000, 600))
@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG * (name == "Safe-LTS")) for name in RAYS])
def test_limits_hold_on_rays_from_every_rounds_own_point(name: str, size: tuple[int, int]) -> None:
    result = broken(None, Points(RAYS[name], {}), size)
    check(result, size[0])
    safest = broken(None, Points(safest_of, {}), size)
    assert np.all(result.reward[:, -1] != safest.reward[:, -1]), "something is dared"


@sized((200, 100), (2000, 1000))
def test_an_unsafe_policy_fails(size: tuple[int, int]) -> None:
    result = broken(None, Users(sw.DOSLB, {}), size)
    assert np.count_nonzero(result.violations) > size[0] // 2


@sized(1000, 2000)
@pytest.mark.parametrize("kind", [sw.OPLB])
def test_a_tight_world_refutes_too_little_noise_and_not_the_truth(kind: Any, size: int) -> None:
    honest, told_less = (broken(*tight(kind, share), (size, 300)) for share in (1.0, 0.4))
    assert np.count_nonzero(honest.violations) <= allowed(size, DELTA)
    assert np.count_nonzero(told_less.violations) > allowed(size, DELTA)


def mistold(watch: bool) -> tuple[Any, sw.ContextWorld]:
    """Return a policy that takes the safe action to cost .02 at most, and a world where it costs .25 or more.

    The second cost is small and as declared: with two limits the loop is the one of the other tests.
    """
    costs, small = [[0.25, 0.05], [0.45, 0.05]], [[0.01, 0.0], [0.01, 0.0]]
    world = sw.ContextWorld(reward=[[0.1, 0.0], [0.7, 0.1]], cost=[costs, small], outcomes="gaussian", noise=0.1)
    safe = sw.SafeAction(cost=[0.02, 0.02])
    options = {"safe_action": safe, "threshold": [0.35, 0.35], "noise": 0.1, "norm_bound": world.norms}
    return sw.OPLB(**options, dimension=4, mean_cost_bound=None, check_assumptions=watch), world


def test_a_declared_cost_below_the_truth_stops_the_exploration_and_unseen_it_breaks_limits() -> None:
    plan: dict[str, Any] = {
        "rounds": 2000,
        "runs": 200,
        "record_points": 20,
        "seed": SEED,
        "audit": True,
        "progress": False,
    }
    watched, blind = (sw.simulate(*mistold(watch), **plan) for watch in (True, False))
    assert np.allclose(watched.reward[:, -1], 0.1, atol=1e-12), "all rounds of the end play the safe action"
    assert np.count_nonzero(blind.violations) > 100
    assert 1.3 * watched.violations.sum() < blind.violations.sum(), "unwatched, only the data's own ends hold it back"


@pytest.mark.parametrize("name", ["OPLB", "CAPS, mixtures"])
def test_users_are_certified(name: str) -> None:
    kind, settings = MIXTURES[name]
    policy, world = Users(kind, settings)(0)
    certificate = sw.certify(policy, world, rounds=60, runs=400, confidence=0.99, progress=False)
    assert certificate.holds
    rows = {row["assumption"]: row["kept"] for row in certificate.content["assumptions"]}
    assert rows["every round's safe action is worth at least this"]
    assert all(rows.values())


def test_users_of_a_policy_that_dares_are_refuted() -> None:
    certificate = sw.certify(None, Users(sw.DOSLB, {}), rounds=100, runs=2000, delta=DELTA, progress=False)
    assert certificate.verdict == "refuted"
