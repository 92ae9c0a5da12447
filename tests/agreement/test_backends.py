"""One arithmetic: played by hand and played in the loop, every run is the same to the bit.

Loops are interpreted here; a few are compiled, one for each rule. That each kernel does the same interpreted and
compiled is held call by call in `test_interpreted`; the slow lane compiles every loop.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.sizes import in_lanes

import stagewise as sw

pytestmark = pytest.mark.long

D = 4
RNG = np.random.default_rng(5)
THETA, *MUS = (row / np.linalg.norm(row) for row in np.abs(RNG.normal(size=(4, D))))
TARGETS = RNG.normal(size=(6, D)) / 2.0
SAFE = np.array([0.3, -0.2, 0.1, 0.2])
ROUNDS = 100
FIELDS = ("regret", "reward", "cost", "max_cost", "violations", "optimum")
SHOWN = ("first_violation", "first_near_optimal_round")  # of an audit, by hand too


def worlds(m: int) -> dict[str, sw.LinearWorld]:
    sets = {
        "rays, gaussian": sw.RaySet(TARGETS),
        "fresh rays, uniform": sw.RandomRaySet(count=5, dimension=D),
        "finite, gaussian": sw.FiniteSet(TARGETS),
        "fresh finite, rademacher": sw.RandomFiniteSet(count=5, dimension=D),
    }
    return {
        name: sw.LinearWorld(reward=THETA, cost=MUS[:m], actions=actions, noise=0.1, outcomes=name.split(", ")[1])
        for name, actions in sets.items()
    }


def baselines(m: int) -> dict[str, sw.SafeAction]:
    reward, costs = float(THETA @ SAFE), [float(mu @ SAFE) for mu in MUS[:m]]
    return {
        "at zero": sw.SafeAction(features=np.zeros(D)),
        "known": sw.SafeAction(features=SAFE, reward=reward, cost=costs),
        "reward unknown": sw.SafeAction(features=SAFE, cost=costs),
        "cost unknown": sw.SafeAction(features=SAFE, reward=reward),
        "unknown": sw.SafeAction(features=SAFE),
    }


# Those in one line are compiled to one loop: settings that differ are numbers.
RAYS = ("LC-LUCB", "LC-LUCB, paper", "ROFUL", "DOSLB")
SAMPLED = ("Safe-LTS", "Safe-LTS, authors")
MIXTURES = ("OPLB", "OPLB, directional")
CERTIFIED = ("CAPS, mixtures",)
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "LC-LUCB": (sw.LCLUCB, {}),
    "LC-LUCB, paper": (
        sw.LCLUCB,
        {"radius": "paper", "mean_cost_bound": None, "split_delta": False, "action_bound": 2.0},
    ),
    "ROFUL": (sw.ROFUL, {"radius": "logdet"}),
    "Safe-LTS": (sw.SafeLTS, {}),
    "Safe-LTS, authors": (sw.SafeLTS, {"inflation": "authors"}),
    "OPLB": (sw.OPLB, {}),
    "OPLB, directional": (sw.OPLB, {"optimism": "directional"}),
    "LC-LUCB, per-action bounds": (sw.LCLUCB, {"per_action_bounds": True}),
    "ROFUL, per-action bounds": (sw.ROFUL, {"per_action_bounds": True, "ridge": None}),
    "OPLB, per-action bounds": (sw.OPLB, {"per_action_bounds": True}),
    "DOSLB": (sw.DOSLB, {}),
    "CAPS": (sw.SafePosteriorSampling, {}),
    "CAPS, impatient": (sw.SafePosteriorSampling, {"posterior_scale": 2.0, "max_regret_ratio": 1.0}),
    "CAPS, mixtures": (sw.SafePosteriorSampling, {"mixtures": True}),
}


def policies(safe: sw.SafeAction, m: int, names: tuple[str, ...] = ()) -> list[Any]:
    """Return the policies of these names; of none: all, and those that are not safe."""
    options: dict[str, Any] = {"safe_action": safe, "threshold": 0.7 if m == 1 else [0.7, 0.6, sw.AtLeast(-0.8)]}
    built = [KINDS[name] for name in names or KINDS]
    safe_ones = [kind(**options, **{"noise": 0.1, "mean_cost_bound": 1.0, **settings}) for kind, settings in built]
    return safe_ones if names else [*safe_ones, sw.LinUCB(noise=0.1, **options), sw.AlwaysSafe(**options)]


def on_points(policy: Any) -> bool:
    return not policy.mixes and isinstance(policy, sw.LCLUCB | sw.ROFUL | sw.SafeLTS | sw.SafePosteriorSampling)


def same(one: sw.Result, other: sw.Result) -> bool:
    if not all(np.array_equal(getattr(one, field), getattr(other, field)) for field in FIELDS):
        return False
    ours, theirs = one.audit or {}, other.audit or {}
    return all(np.array_equal(ours[name], theirs[name]) for name in SHOWN if one.audit)


def alike(policy: Any, world: Any, audit: bool = False) -> bool:
    """Say whether both backends play the same."""
    return same(*play_both(policy, world, audit=audit))


def play_both(policy: Any, world: Any, **plan: Any) -> list[sw.Result]:
    """Play in the loop and by hand; Python warns of infinities that machine code passes on."""
    given: dict[str, Any] = {"rounds": ROUNDS, "runs": [3], "seed": 11, **plan}
    with np.errstate(all="ignore"):
        return [sw.simulate(policy, world, **given, backend=backend) for backend in ("cpu", "python")]


# Every policy is played on rays, and every other kind of loop with each rule; several limits and two parts together, on
# fresh rays. The slow lane plays all of them everywhere.
QUICK: dict[tuple[int, str], dict[str, tuple[str, ...]]] = {
    (1, "rays, gaussian"): dict.fromkeys(("at zero", "known", "unknown"), ()),
    (1, "fresh rays, uniform"): dict.fromkeys(("at zero", "unknown"), (*RAYS, *MIXTURES)),
    (1, "finite, gaussian"): {"known": ()},
    (1, "fresh finite, rademacher"): {"at zero": (*MIXTURES, "DOSLB")},
    (3, "rays, gaussian"): {
        **dict.fromkeys(("at zero", "known", "unknown"), (*RAYS, *SAMPLED, "LC-LUCB, per-action bounds", "CAPS")),
        **dict.fromkeys(("reward unknown", "cost unknown"), CERTIFIED),
    },
    (3, "fresh rays, uniform"): dict.fromkeys(("reward unknown", "cost unknown"), (*RAYS, *MIXTURES)),
}
ALL = [(m, where, baseline, ()) for m in (1, 3) for where in worlds(1) for baseline in baselines(1)]
SOME = [(*case, baseline, names) for case, few in QUICK.items() for baseline, names in few.items()]
COMPILED: list[tuple[int, str, str, tuple[str, ...]]] = [
    (1, "rays, gaussian", "unknown", ("CAPS",)),
    (3, "fresh rays, uniform", "reward unknown", ("LC-LUCB",)),
    (1, "fresh finite, rademacher", "at zero", ("OPLB",)),
]


@pytest.mark.parametrize(
    ("m", "where", "baseline", "names"),
    in_lanes(SOME, COMPILED, ALL),
    ids=lambda value: "all" if value == () else f"{len(value)} of them" if isinstance(value, tuple) else None,
)
def test_by_hand_is_the_loop_on_linear_worlds(m: int, where: str, baseline: str, names: tuple[str, ...]) -> None:
    world, differing = worlds(m)[where], []
    for policy in policies(baselines(m)[baseline], m, names):
        if not world.offers_rays and on_points(policy):
            continue
        if not alike(policy, world):
            differing.append(policy)
    assert differing == []


ARMS = list(product(("bernoulli", "clipped-gaussian", "gaussian"), (1, 3), (True, False)))
SOME_ARMS = [("bernoulli", 1, True), ("bernoulli", 3, False), ("clipped-gaussian", 1, False), ("gaussian", 3, True)]


@pytest.mark.parametrize(("outcomes", "m", "known"), in_lanes(SOME_ARMS, [("bernoulli", 1, False)], ARMS))
def test_by_hand_is_the_loop_on_arms(outcomes: str, m: int, known: bool) -> None:
    rewards, costs = [0.1, 0.2, 0.4, 0.7], [[0.0, 0.4, 0.5, 0.2], [0.1, 0.1, 0.6, 0.3], [0.9, 0.6, 0.5, 0.7]][:m]
    world = sw.ArmsWorld(reward=rewards, cost=costs, outcomes=outcomes)
    settings = {"reward": 0.1, "cost": [row[0] for row in costs]} if known else {}
    safe = sw.SafeAction(arm=0, **settings)
    threshold = 0.3 if m == 1 else [0.3, 0.4, sw.AtLeast(0.5)]
    noise = 0.5 if outcomes == "gaussian" else None
    ranged = [] if outcomes == "gaussian" else ["kl", "rates"]
    for policy in [
        *(sw.OPB(arms=4, safe_action=safe, threshold=threshold, interval=interval) for interval in ranged),
        *(sw.UCB(arms=4, safe_action=safe, threshold=threshold, interval=interval) for interval in ranged),
        *(sw.SafeArmPosteriorSampling(arms=4, safe_action=safe, threshold=threshold) for _ in ranged[:1]),
        sw.SafeArmPosteriorSampling(arms=4, safe_action=safe, threshold=threshold, noise=noise, interval="hoeffding"),
        sw.OPB(arms=4, safe_action=safe, threshold=threshold, noise=noise),
        sw.OPB(arms=4, safe_action=safe, threshold=threshold, noise=noise, optimism="directional"),
        sw.OPB(arms=4, safe_action=safe, threshold=threshold, interval="paper", horizon=ROUNDS),
        sw.UCB(arms=4, noise=noise, safe_action=safe, threshold=threshold),
        sw.AlwaysSafe(safe_action=safe, threshold=threshold),
    ]:
        assert alike(policy, world), policy


@pytest.mark.parametrize("names", [(*RAYS, *MIXTURES), CERTIFIED], ids=["bounds", "sampled"])
def test_audited_a_run_is_the_same(names: tuple[str, ...]) -> None:
    world = worlds(1)["rays, gaussian"]
    for policy in policies(baselines(1)["known"], 1, names):
        assert alike(policy, world, audit=True), policy


def test_an_agent_by_hand_plays_the_run() -> None:
    world = worlds(1)["rays, gaussian"]
    policy = sw.ROFUL(safe_action=sw.SafeAction(features=np.zeros(D)), threshold=0.5, noise=0.1, mean_cost_bound=1.0)
    agent, rewards = sw.Agent(policy, seed=11), []
    for t in range(ROUNDS):
        decision = agent.decide(world.actions)
        rewards.append(world.means(decision.action)[0])
        outcome = world.outcome(decision.action, sw.RandomKey(11, 0, t))
        agent.learn(decision, reward=outcome.reward, cost=outcome.cost)
    result = sw.simulate(policy, world, rounds=ROUNDS, runs=1, seed=11, record_points=ROUNDS)
    assert np.array_equal(result.reward[0], rewards)


MISTOLD = {
    "LC-LUCB, noise": (sw.LCLUCB, {"noise": 0.02}),
    "OPLB, noise": (sw.OPLB, {"noise": 0.02}),
    "Safe-LTS, ceiling": (
        sw.SafeLTS,
        {"noise": 0.1, "mean_cost_bound": 0.25, "threshold": sw.AtLeast(-0.2), "ridge": 0.1},
    ),
}


@pytest.mark.parametrize(("kind", "settings"), MISTOLD.values(), ids=MISTOLD)
def test_contradictions_come_in_the_same_round_by_hand_and_in_the_loop(kind: Any, settings: dict[str, Any]) -> None:
    world, options = worlds(1)["rays, gaussian"], {"threshold": 0.5, "mean_cost_bound": 1.0, **settings}
    watched, blind = (
        kind(safe_action=sw.SafeAction(features=np.zeros(D)), **options, check_assumptions=w) for w in (True, False)
    )
    one, other = play_both(watched, world)
    assert same(one, other)
    assert not same(one, play_both(blind, world)[0]), "something must have been contradicted"
