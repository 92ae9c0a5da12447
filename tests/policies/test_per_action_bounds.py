"""Sets of their own for LC-LUCB, ROFUL and OPLB: every decision against numpy and HiGHS, and the wait that they end."""

from typing import Any

import numpy as np
import pytest
from tests.policies.caps_witness import Interval, Known, Line, Play, fits_now, intervals, program
from tests.policies.test_caps import BASELINES, CLOSE, Problem, some_problem
from tests.problem.refusal import refused
from tests.sizes import LONG

import stagewise as sw
from stagewise.engine.compile import Floats
from stagewise.engine.workspace import CENTRE, HALF
from stagewise.models.per_candidate import PER_CANDIDATE_RIDGE
from stagewise.models.ridge import RIDGE
from stagewise.policies.policy import PlayedAction
from stagewise.problem.errors import ErrorCode
from stagewise.records.reason import FallbackReason
from stagewise_reproduction.instances import at_zero, shifted

SHARP: dict[str, Any] = {"per_action_bounds": True, "ridge": None}
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "LC-LUCB": (sw.LCLUCB, {}),
    "ROFUL": (sw.ROFUL, {}),
    "OPLB": (sw.OPLB, {}),
    "OPLB, directional": (sw.OPLB, {"optimism": "directional"}),
}


def cut(problem: Problem, found: list[Interval], rays: bool) -> list[Interval]:
    """Return what is known, costs cut at their ceilings, but for those that bend."""
    told, tops = problem.told, problem.told.ceilings
    bent = [rays and told.known[1 + j] is None for j in range(told.costs)]
    costs = [
        one if bent[j] else Interval(one.low, np.where(one.low <= tops[j], np.minimum(one.high, tops[j]), one.high))
        for j, one in enumerate(found[1:])
    ]
    return [found[0], *costs]


def factors_of(problem: Problem, known: Known) -> Floats:
    """Return (1 − r₀)/(τ − c₀) for every cost: what a unit of its whole width adds to a hoped reward."""
    safe = problem.told.known[0]
    shortfall = 1.0 - safe if safe is not None else max(0.0, 1.0 - known.r_low[-1])
    return np.asarray(shortfall / known.slack)


def hoped_on_rays(problem: Problem, known: Known, lines: list[Line], directional: bool) -> Floats:
    """Return what the page hopes for on every ray, and last of the safe action."""
    factors, hoped = 0.0 * known.slack if directional else factors_of(problem, known), []
    for line in lines:
        step = line.longest(safe=not directional)
        widths = [
            float(np.ptp([line.at(1 + j, step).low[0], line.at(1 + j, step).high[0]])) for j in range(len(factors))
        ]
        hoped.append(float(line.at(0, step).high[0]) + float(np.max(factors * widths)))
    home = known.r_high[-1] + float(np.max(factors * (known.c_high[:, -1] - known.c_low[:, -1])))
    return np.array([*hoped, home])


def held_mixture(problem: Problem, decision: Any, known: Known, directional: bool) -> None:
    """Hold a mixture against the page."""
    mixed = decision.probabilities
    np.testing.assert_allclose(problem.signs * decision.pessimistic_cost, known.c_high @ mixed, atol=CLOSE)
    assert np.all(known.c_high @ mixed <= known.limits + 1e-12)
    if directional:
        best = program(known.r_high, known.c_low, known.limits).value
        assert decision.optimistic_reward <= best + CLOSE
        if np.all(known.c_high @ mixed < known.limits - CLOSE):
            assert decision.optimistic_reward == pytest.approx(best, abs=CLOSE)
        return
    hoped = known.r_high + np.max(factors_of(problem, known)[:, np.newaxis] * (known.c_high - known.c_low), axis=0)
    assert decision.optimistic_reward == pytest.approx(program(hoped, known.c_high, known.limits).value, abs=CLOSE)


@pytest.mark.long
@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("m", [pytest.param(1, marks=LONG), 2])
@pytest.mark.parametrize("name", KINDS)
def test_every_decision_is_the_one_of_the_page(name: str, m: int, baseline: str) -> None:
    (kind, more), rays = KINDS[name], not name.startswith("OPLB")
    problem = some_problem(100 * m + len(baseline), baseline, m, kind, **SHARP, **more)
    policy, told, random = problem.policy, problem.told, np.random.default_rng(m)
    state, plays, left = policy.start(), list[Play](), 0
    for _ in range(0 if baseline in ("origin", "known") else 120):
        values = problem.outcome(told.safe, random)
        state = policy.learn_in_place(state, PlayedAction(told.safe), values)
        plays.append(Play(told.safe, None, 1.0, values))
    first = len(plays)
    for t in range(12):
        followed, draw = t < 9, sw.RandomKey(7, 1, t)
        listed = problem.targets if followed else problem.others
        found = cut(problem, intervals(told, plays, listed, first, followed, rays, t <= 9), rays)
        seen = policy.rounds.play(state.memory, listed, np.empty(0, dtype=bool), draw).workspace.bounds
        for signal, interval in enumerate(found):
            np.testing.assert_allclose(seen[signal, CENTRE] - seen[signal, HALF], interval.low, atol=CLOSE)
            np.testing.assert_allclose(seen[signal, CENTRE] + seen[signal, HALF], interval.high, atol=CLOSE)
        known = Known(
            *found[0], np.array([i.low for i in found[1:]]), np.array([i.high for i in found[1:]]), told.limits
        )
        decision, directional = policy.decide(state, listed, draw), policy.optimism == "directional"
        if not known.warm:
            assert decision.reason is FallbackReason.SAFE_ACTION_COST_UNCERTAIN
        elif rays:
            fits = fits_now(told, plays)
            lines = [Line(told, fits, found, target, ray) for ray, target in enumerate(listed)]
            hoped = hoped_on_rays(problem, known, lines, directional)
            assert decision.optimistic_reward == pytest.approx(np.max(hoped), abs=CLOSE)
            if decision.action_index is not None:
                assert decision.step_size == pytest.approx(lines[decision.action_index].longest(safe=True), abs=CLOSE)
        else:
            held_mixture(problem, decision, known, directional)
        values = problem.outcome(decision.action, random)
        ray = None if decision._uncached or not followed else decision._position
        plays.append(Play(np.asarray(decision.action), ray, decision.step_size, values))
        state = policy.learn(state, decision, sw.Outcome(values[0], problem.signs * values[1:]))
        left += decision.message is None
    assert left > 0


def waits(kind: Any, **settings: Any) -> int:
    """Return how many rounds an action of unknown cost is played before it is left, ten dimensions, noise .5."""
    safe = np.eye(10)[0] * 0.9
    policy = kind(safe_action=sw.SafeAction(features=safe), threshold=0.6, noise=0.5, mean_cost_bound=1.0, **settings)
    state, actions = policy.start(), np.eye(10)[1:]
    for t in range(5000):
        decision = policy.decide(state, actions, sw.RandomKey(0, 0, t))
        if decision.reason is not FallbackReason.SAFE_ACTION_COST_UNCERTAIN:
            return t
        state = policy.learn(state, decision, sw.Outcome(0.2, 0.1))
    return 5000


@pytest.mark.parametrize("kind", [sw.LCLUCB, sw.ROFUL, sw.OPLB])
def test_what_the_safe_action_shows_by_itself_ends_the_wait_sooner(kind: Any) -> None:
    ellipsoid, own = waits(kind, ridge=None), waits(kind, **SHARP)
    assert 0 < own < 0.8 * ellipsoid


def test_the_wait_is_as_short_where_rays_are_fresh() -> None:
    """The safe action comes back whatever is listed, so its own set is kept without anything being followed."""
    safe, random = np.eye(10)[0] * 0.9, np.random.default_rng(3)
    policy = sw.LCLUCB(safe_action=sw.SafeAction(features=safe), threshold=0.6, noise=0.5, mean_cost_bound=1.0, **SHARP)
    state, wait = policy.start(), waits(sw.LCLUCB, **SHARP)
    for t in range(wait + 1):
        fresh = random.normal(size=(9, 10))
        decision = policy.decide(state, fresh / np.linalg.norm(fresh, axis=1, keepdims=True), sw.RandomKey(0, 0, t))
        assert (decision.reason is FallbackReason.SAFE_ACTION_COST_UNCERTAIN) == (t < wait)
        state = policy.learn(state, decision, sw.Outcome(0.2, 0.1))


@pytest.mark.parametrize("kind", [sw.LCLUCB, sw.ROFUL, sw.OPLB])
def test_without_the_setting_nothing_is_as_it_is_with_it(kind: Any) -> None:
    told: dict[str, Any] = {"safe_action": at_zero(3), "threshold": 0.3, "noise": 0.1}
    assert kind(**told).rounds.spec.models[0] == RIDGE
    assert kind(**told, per_action_bounds=True).rounds.spec.models[0] == PER_CANDIDATE_RIDGE
    assert (
        kind(**told).start().memory.size == kind(**told, per_action_bounds=True).start().memory.size
    )  # nothing followed yet


def test_what_cannot_be_read_is_refused() -> None:
    told: dict[str, Any] = {"safe_action": at_zero(3), "threshold": 0.3, "noise": 0.1, "per_action_bounds": True}
    with refused(sw.InvalidProblem, ErrorCode.CONFLICTING_SETTINGS):
        sw.LCLUCB(**told, split_delta=False)
    with refused(sw.InvalidProblem, ErrorCode.CONFLICTING_SETTINGS):
        sw.OPLB(**told, method="socp")
    with refused(sw.InvalidActions, ErrorCode.UNSUPPORTED_ACTIONS):
        policy = sw.ROFUL(**told)
        policy.decide(policy.start(), sw.BallSet(1.0))
    with refused(sw.InvalidProblem, ErrorCode.WRONG_TYPE):
        sw.LCLUCB(**{**told, "per_action_bounds": 1})


@pytest.mark.compiled
@pytest.mark.parametrize("name", KINDS)
def test_regret_is_less_and_limits_and_hopes_are_kept(name: str) -> None:
    kind, more = KINDS[name]
    told: dict[str, Any] = {"safe_action": at_zero(5), "threshold": 0.5, "noise": 1.0, "ridge": None, **more}
    results = [
        sw.simulate(
            kind(**told, per_action_bounds=own), shifted(5), rounds=50_000, runs=4, seed=9, audit=True, progress=False
        )
        for own in (False, True)
    ]
    assert results[1].regret[:, -1].mean() < 0.8 * results[0].regret[:, -1].mean()
    assert results[1].audit is not None
    assert not results[1].audit["missed"].any()
    assert not results[1].violations.any()
    if "directional" not in name:
        assert not results[1].audit["optimism_failures"].any()
