"""An audit counts what a textbook counts, and is the same on any backend, any worker and any cut."""

import math
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.engine.workspace import CENTRE, HALF
from stagewise.problem.errors import ErrorCode

D, ROUNDS, SEED, RUN = 3, 150, 11, 2
RNG = np.random.default_rng(5)
THETA, MU = (row / np.linalg.norm(row) for row in np.abs(RNG.normal(size=(2, D))))
TARGETS = RNG.normal(size=(5, D)) / 2.0
SAFE = sw.SafeAction(features=np.zeros(D))
STATED, NOISE = 0.02, 1.0  # far too little, so that there is something to count
COUNTED = ("first_violation", "optimism_failures", "first_near_optimal_round", "missed")
ALONE: dict[str, Any] = {"mean_cost_bound": 1.0, "check_assumptions": False}  # and nothing that would stop it


def linear_world(kind: str) -> sw.LinearWorld:
    actions = {
        "rays": sw.RaySet(TARGETS),
        "finite": sw.FiniteSet(TARGETS),
        "fresh rays": sw.RandomRaySet(count=5, dimension=D),
        "fresh finite": sw.RandomFiniteSet(count=5, dimension=D),
    }[kind]
    return sw.LinearWorld(reward=THETA, cost=MU, actions=actions, noise=NOISE)


def missed_by_the_textbook(policy: Any, world: sw.LinearWorld) -> list[int]:
    """Play by hand, with normal equations in place of the memory; the safe action is zero."""
    gram, sums, counts = np.eye(D), np.zeros((2, D)), [0, 0]
    state = policy.start()
    for t in range(ROUNDS):
        draw = sw.RandomKey(SEED, RUN, t)
        actions = world.actions_in(draw)
        inverse = np.linalg.inv(gram)
        widths = np.sqrt(np.einsum("ij,jk,ik->i", actions.features, inverse, actions.features))
        radius = math.sqrt(STATED**2 * (np.linalg.slogdet(gram)[1] + 2 * math.log(2 / policy.delta)) + 0.3**2)
        for signal, truth in enumerate((THETA, MU)):
            gaps = np.abs(actions.features @ (inverse @ sums[signal] - truth))
            counts[signal] += bool(np.any(gaps > radius * widths))
        decision = policy.decide(state, actions, draw)
        outcome = world.outcome(decision.action, draw)
        state = policy.learn(state, decision, outcome)
        gram += np.outer(decision.action, decision.action)
        sums += np.outer([outcome.reward, outcome.cost[0]], decision.action)
    return counts


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        (sw.LCLUCB, "rays"),
        (sw.LCLUCB, "fresh rays"),
        (sw.SafeLTS, "rays"),
        pytest.param(sw.SafeLTS, "fresh rays", marks=pytest.mark.slow),  # each compiles a loop of its own
        (sw.OPLB, "finite"),
        pytest.param(sw.OPLB, "fresh finite", marks=pytest.mark.slow),
    ],
)
def test_intervals_miss_as_often_as_the_textbook_says(kind: Any, where: str) -> None:
    policy, world = (
        kind(safe_action=SAFE, threshold=0.2, noise=STATED, norm_bound=0.3, ridge=1.0, **ALONE),
        linear_world(where),
    )
    audit = sw.simulate(policy, world, rounds=ROUNDS, runs=[RUN], seed=SEED, audit=True).audit
    assert audit is not None
    expected = missed_by_the_textbook(policy, world)
    assert audit["missed"][0].tolist() == expected
    assert max(expected) > 0


@pytest.mark.long
@pytest.mark.parametrize("told", [STATED, NOISE])
def test_a_linear_kernel_misses_as_often_as_a_linear_policy(told: float) -> None:
    features = np.vstack([np.zeros(D), TARGETS])
    settings: dict[str, Any] = {"safe_action": SAFE, "threshold": 0.2, "noise": told, **ALONE}
    linear = sw.LinearWorld(reward=THETA, cost=MU, actions=sw.FiniteSet(features), noise=NOISE)
    listed = sw.FiniteSetWorld(features=features, reward=features @ THETA, cost=features @ MU, noise=NOISE)
    kernel = sw.KernelOPLB(**settings, kernel=sw.LinearKernel(), norm_bound=0.3)
    plan: dict[str, Any] = {"rounds": ROUNDS, "runs": 8, "seed": SEED, "audit": True}
    one = sw.simulate(sw.OPLB(**settings, norm_bound=0.3, ridge=1.0), linear, **plan).audit
    other = sw.simulate(kernel, listed, **plan).audit
    assert one is not None
    assert other is not None
    for column in COUNTED:
        assert np.array_equal(other[column], one[column]), column
    assert (one["missed"].max() > 0) == (told == STATED)


@pytest.mark.parametrize("interval", ["hoeffding", "kl"])
def test_the_intervals_of_pulled_arms_are_looked_at(interval: str) -> None:
    table = {"reward": [0.1, 0.4, 0.7], "cost": [0.0, 0.5, 0.2]}
    world = sw.ArmsWorld(**table, outcomes="clipped-gaussian", noise=0.5)  # clipping moves what is seen off the means
    safe = sw.SafeAction(arm=0, reward=0.1, cost=0.0)
    policy = sw.OPB(arms=3, safe_action=safe, threshold=0.3, interval=interval, delta=0.97)
    audit = sw.simulate(policy, world, rounds=ROUNDS, runs=[RUN], seed=SEED, audit=True).audit
    state, counts, pulls = policy.start(), np.zeros(2, dtype=int), np.zeros(3)
    for t in range(ROUNDS):
        draw = sw.RandomKey(SEED, RUN, t)
        decision = policy.decide(state, world.actions, draw)
        bounds = decision._table.result.workspace.bounds[..., :-1]
        counts += ((np.abs(bounds[:, CENTRE] - world.table) > bounds[:, HALF] + 1e-9) & (pulls > 0)).any(axis=1)
        pulls[decision.action_index] += 1
        state = policy.learn(state, decision, world.outcome(decision.action, draw))
    assert audit is not None
    assert audit["missed"][0].tolist() == counts.tolist()
    assert counts.max() > 0


def test_an_arm_that_was_never_pulled_has_no_interval_to_miss() -> None:
    """A reward of 9 is far beyond the range in which an arm is looked for before its first pull."""
    world = sw.ArmsWorld(reward=[0.1, 9.0], cost=[0.0, 0.9], outcomes="gaussian", noise=0.5)
    safe = sw.SafeAction(arm=0, reward=0.1, cost=0.0)
    policy = sw.OPB(arms=2, safe_action=safe, threshold=0.3, noise=0.5)
    audit = sw.simulate(policy, world, rounds=1, runs=3, seed=SEED, audit=True).audit
    assert audit is not None
    assert audit["missed"].tolist() == [[0, 0]] * 3


def cases() -> dict[str, tuple[Any, Any]]:
    rays, arms = linear_world("rays"), sw.ArmsWorld(reward=[0.1, 0.4, 0.7], cost=[0.0, 0.5, 0.2])
    unknown = sw.SafeAction(features=[0.1] * D)
    at, arm = {"safe_action": SAFE, "threshold": 0.2}, {"safe_action": sw.SafeAction(arm=0), "threshold": 0.3}
    return {
        "LC-LUCB": (sw.LCLUCB(**at, noise=STATED, **ALONE), rays),
        "LC-LUCB, fresh": (sw.LCLUCB(**at, noise=STATED, **ALONE), linear_world("fresh rays")),
        "LC-LUCB, unknown": (sw.LCLUCB(safe_action=unknown, threshold=0.4, noise=0.1, **ALONE), rays),
        "LC-LUCB, watched": (sw.LCLUCB(**at, noise=STATED, mean_cost_bound=1.0), rays),
        "ROFUL": (sw.ROFUL(**at, noise=STATED, **ALONE), rays),
        "Safe-LTS": (sw.SafeLTS(**at, noise=STATED, **ALONE), rays),
        "OPLB": (sw.OPLB(**at, noise=STATED, **ALONE), linear_world("finite")),
        "LinUCB": (sw.LinUCB(**at, noise=0.1), rays),
        "OPB, unknown": (sw.OPB(arms=3, **arm), arms),
        "UCB": (sw.UCB(arms=3, **arm), arms),
        "AlwaysSafe": (sw.AlwaysSafe(**at), rays),
        "AlwaysSafe, arm": (sw.AlwaysSafe(**arm), arms),
    }


def audited(name: str, **settings: Any) -> dict[str, Any]:
    policy, world = cases()[name]
    audit = sw.simulate(policy, world, rounds=ROUNDS, **({"runs": 3, "seed": 1} | settings), audit=True).audit
    assert audit is not None
    return audit


@pytest.mark.long
@pytest.mark.parametrize("name", list(cases()))
def test_by_hand_and_compiled_agree_on_what_a_decision_shows(name: str) -> None:
    compiled, hand = audited(name, backend="cpu"), audited(name, backend="python")
    for part in ("first_violation", "optimism_failures", "first_near_optimal_round"):
        assert compiled[part].tolist() == hand[part].tolist()
    assert (hand["missed"] == -1).all()


def test_what_a_policy_says_nothing_of_is_unknown() -> None:
    assert (audited("Safe-LTS")["optimism_failures"] == -1).all()
    assert (audited("LinUCB")["missed"][:, 1] == -1).all()
    assert (audited("AlwaysSafe")["missed"] == -1).all()


def test_first_violation_and_settled_are_read_off_the_rounds() -> None:
    policy, world = cases()["LinUCB"]
    result = sw.simulate(policy, world, rounds=ROUNDS, runs=4, record_points=ROUNDS, audit=True)
    assert result.audit is not None
    for run in range(4):
        broken = np.flatnonzero(result.cost[run, :, 0] > 0.2)
        near = np.flatnonzero(result.reward[run] >= 0.9 * result.optimum[run])
        assert result.audit["first_violation"][run] == (broken[0] + 1 if broken.size else 0)
        assert result.audit["first_near_optimal_round"][run] == (near[0] + 1 if near.size else 0)
    assert result.audit["first_violation"].max() > 0


def test_a_directional_mixture_is_weighed_before_it_comes_back() -> None:
    world, settings = linear_world("finite"), {"safe_action": SAFE, "threshold": 0.2, "optimism": "directional"}
    honest = sw.simulate(
        sw.OPLB(**settings, noise=NOISE, mean_cost_bound=1.0), world, rounds=ROUNDS, runs=3, audit=True
    )
    assert honest.audit is not None
    assert honest.audit["optimism_failures"].tolist() == [0, 0, 0]


@pytest.mark.long
@pytest.mark.parametrize("name", ["LC-LUCB", "Safe-LTS", "OPLB", "LC-LUCB, fresh", "OPB, unknown"])
def test_an_audit_does_not_depend_on_cut_or_worker(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = audited(name)
    with ProcessPoolExecutor(2) as pool:
        elsewhere = audited(name, executor=pool)
    monkeypatch.setattr("stagewise.simulation.run.CHUNK_ROUNDS", 7)
    pieces = audited(name)
    for part, values in whole.items():
        assert np.array_equal(values, elsewhere[part], equal_nan=True)
        assert np.array_equal(values, pieces[part], equal_nan=True)


def test_an_audit_changes_nothing_else_and_is_kept(tmp_path: Path) -> None:
    policy, world = cases()["OPLB"]
    settings: dict[str, Any] = {"rounds": ROUNDS, "runs": 3, "record_points": 10}
    plain = sw.simulate(policy, world, **settings)
    kept = sw.simulate(policy, world, **settings, audit=True, out=tmp_path)
    loaded = sw.Result.load(tmp_path)
    assert plain.audit is None
    assert kept.audit is not None
    assert loaded.audit is not None
    for field in ("regret", "reward", "cost", "max_cost", "violations", "optimum"):
        assert np.array_equal(getattr(plain, field), getattr(kept, field))
    for part, values in kept.audit.items():
        assert np.array_equal(values, loaded.audit[part])
    with refused(sw.InvalidFile, ErrorCode.FILE_EXISTS):
        sw.simulate(policy, world, **settings, out=tmp_path)


def test_what_no_compiled_loop_plays_is_audited_by_hand() -> None:
    """A decision does not show the intervals of every candidate: an empty count would pass for a clean one."""
    world = sw.ArmsWorld(reward=[0.1, 0.6], cost=[0.0, 0.9])
    safe = sw.SafeAction(arm=0, reward=0.1, cost=0.0)
    policy = sw.OPNLB(reward_class=[[0.1, 0.6]], cost_class=[[0.0, 0.9]], safe_action=safe, threshold=0.3)
    told = {"rounds": 20, "runs": 1, "audit": True}
    result = sw.simulate(policy, world, **told)
    assert result.manifest["backend"] == "python"
    assert result.audit["missed"].tolist() == [[-1, -1]]
    with refused(sw.InvalidProblem, ErrorCode.UNSUPPORTED_BACKEND):
        sw.simulate(policy, world, **told, backend="cpu")
