"""CAPS decides as docs/theory/caps.md says: against a witness in numpy and HiGHS, and by what its theorems promise."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.policies.caps_witness import Known, Line, Play, Stated, drawn, fits_now, intervals, known_of, program
from tests.problem.refusal import refused
from tests.sizes import LONG, sized

import stagewise as sw
from stagewise.engine.compile import Floats, as_python
from stagewise.engine.layout import CACHE_DISABLED, CACHED
from stagewise.engine.workspace import CENTRE, HALF, SAMPLED
from stagewise.models.per_candidate import get_candidate_sets
from stagewise.models.ridge import view_ridge
from stagewise.policies.policy import PlayedAction
from stagewise.problem.errors import ErrorCode
from stagewise.records.reason import FallbackReason
from stagewise_reproduction.instances import at_zero, shifted

CLOSE = 1e-7
PART_OF, OWN_OF = as_python(view_ridge), as_python(get_candidate_sets)


class Problem(NamedTuple):
    """A policy, what it was told, the truth, and two lists of candidates."""

    policy: Any
    told: Stated
    truths: Floats  # (1 + m, d) costs signed
    signs: Floats  # (m,)
    targets: Floats
    others: Floats

    def outcome(self, action: Any, random: np.random.Generator) -> Floats:
        """Return the reward and the signed costs (1 + m,)."""
        seen: Floats = self.truths @ action + self.told.noise * random.normal(size=len(self.truths))
        return seen


def some_problem(seed: int, baseline: str, m: int, kind: Any = sw.SafePosteriorSampling, **more: Any) -> Problem:
    """Return a problem; `baseline` says what is known of which safe action."""
    random, d = np.random.default_rng(seed), 3
    safe = np.zeros(d) if baseline == "origin" else np.array([0.3, -0.2, 0.1])
    truths = random.normal(size=(1 + m, d))
    truths *= 0.7 / np.linalg.norm(truths, axis=1, keepdims=True)
    truths[0] *= np.sign(truths[0] @ safe) or 1.0
    signs, values = np.where(np.arange(m) % 2 == 1, -1.0, 1.0), truths @ safe
    limits = values[1:] + random.uniform(0.15, 0.4, m)
    reward_known = baseline not in ("unknown", "unknown reward")
    costs_known = baseline not in ("unknown", "unknown costs")
    noise, bound, ceilings = random.uniform(0.02, 0.2, 1 + m), np.full(1 + m, 0.9), np.full(m, 0.85)
    settings: dict[str, Any] = {
        "delta": 0.1,
        **({"mean_reward_bound": 0.8} if kind is sw.SafePosteriorSampling else {}),
        **more,
    }
    policy = kind(
        safe_action=sw.SafeAction(
            features=safe,
            reward=float(values[0]) if reward_known else None,
            cost=(signs * values[1:]).tolist() if costs_known else None,
        ),
        threshold=[sw.AtLeast(-limit) if sign < 0 else limit for sign, limit in zip(signs, limits, strict=True)],
        noise=noise,
        norm_bound=bound,
        mean_cost_bound=0.85,
        **settings,
    )
    known: list[float | None] = [float(values[0]) if reward_known else None]
    known += [float(value) if costs_known else None for value in values[1:]]
    known = [0.0] * (1 + m) if baseline == "origin" else known
    ridge = d * float(np.max((noise / bound) ** 2))
    draws = [getattr(policy, name, math.inf) for name in ("posterior_scale", "max_regret_ratio", "mean_reward_bound")]
    numbers = (settings["delta"], *draws, ridge)
    told = Stated(safe, known, noise, bound, limits, ceilings, *numbers)
    targets = random.normal(size=(6, d))
    targets /= np.maximum(np.linalg.norm(targets, axis=1, keepdims=True), 0.9)
    targets[4], targets[5] = targets[0], safe  # a candidate twice, and the safe action
    return Problem(policy, told, truths, signs, targets, targets[::-1] * 0.9)


def held_ray(problem: Problem, decision: Any, lines: list[Line], known: Known, draws: Floats) -> None:
    """Hold a point on a ray against the page."""
    told, safe = problem.told, len(lines)
    reaches, steps = [line.longest(safe=False) for line in lines], [line.longest(safe=True) for line in lines]
    plausible = np.array([float(line.at(0, o).high[0]) for line, o in zip(lines, reaches, strict=True)])
    home = float(lines[0].found[0].high[-1])
    best = min(float(np.max(plausible)), max(home, told.mean_reward_bound))
    if best <= home + CLOSE:
        return
    assert decision.optimistic_reward == pytest.approx(best, abs=CLOSE)
    prices = (best - known.r_low[-1]) / known.slack
    value = known.longest(draws[1:]) * (draws[0, :-1] - draws[0, -1])
    target = int(np.argmax(value)) if np.max(value) > 0.0 else safe
    line, step = (lines[target], steps[target]) if target < safe else (lines[0], 0.0)
    gap = told.max_regret_ratio * line.unknown(prices, step) - (best - float(line.at(0, step).low[0]))
    ranked, hopes = np.sort(value), np.sort(plausible)
    if min(abs(gap), np.max(value) - ranked[-3], hopes[-1] - hopes[-3]) < CLOSE:
        return  # too close to call; the third, since one candidate stands there twice
    chosen = target if gap > 0.0 else int(np.argmax(plausible))
    twin = {4: 0, 0: 4} if safe == 6 else {1: 5, 5: 1}
    assert decision.action_index in ((None,) if chosen == safe else (chosen, twin.get(chosen, chosen)))
    if chosen < safe:
        assert decision.step_size == pytest.approx(steps[chosen], abs=CLOSE)
        dearest = [float(lines[chosen].pessimistic_cost(1 + j, steps[chosen])[0]) for j in range(told.costs)]
        np.testing.assert_allclose(problem.signs * decision.pessimistic_cost, dearest, atol=CLOSE)


def held_mixture(problem: Problem, decision: Any, known: Known, draws: Floats) -> None:
    """Hold a mixture against the page."""
    told, mixed = problem.told, decision.probabilities
    best = program(known.r_high, known.c_low, known.limits).value
    assert decision.optimistic_reward == pytest.approx(best, abs=CLOSE)
    np.testing.assert_allclose(problem.signs * decision.pessimistic_cost, known.c_high @ mixed, atol=CLOSE)
    if best <= known.r_high[-1] + CLOSE:
        return
    plain = program(draws[0], draws[1:], known.limits)
    gained, slack = plain.value - draws[0, -1], known.limits - draws[1:, -1]
    prices = np.where(plain.prices > CLOSE, 0.25 * plain.prices + 0.75 * gained / slack, 0.0)
    paid = draws[0] + prices @ (known.c_high - draws[1:])
    proposal = program(paid, known.c_high, known.limits)
    unknown = known.unknown(best)
    gap = (known.r_low + told.max_regret_ratio * unknown) @ proposal.shares - best
    if gap > CLOSE:
        assert paid @ mixed == pytest.approx(proposal.value, abs=CLOSE)
    elif gap < -CLOSE:
        assert best - known.r_low @ mixed <= unknown @ mixed + CLOSE
        if np.all(known.c_high @ mixed < known.limits - CLOSE):
            assert known.r_high @ mixed == pytest.approx(best, abs=CLOSE)


BASELINES = ["origin", "known", "unknown", "unknown reward", "unknown costs"]


@pytest.mark.long
@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("m", [1, 2, pytest.param(3, marks=LONG)])
@pytest.mark.parametrize("mixtures", [False, True], ids=["rays", "mixtures"])
def test_every_decision_is_the_one_of_the_page(baseline: str, m: int, mixtures: bool) -> None:
    more = {"posterior_scale": 1.5, "max_regret_ratio": 1.0} if m == 2 else {}
    problem = some_problem(100 * m + len(baseline), baseline, m, mixtures=mixtures, **more)
    policy, told, random = problem.policy, problem.told, np.random.default_rng(m)
    state, plays = policy.start(), list[Play]()
    for _ in range(0 if baseline in ("origin", "known") else 120):  # it was played before, and is certain enough now
        values = problem.outcome(told.safe, random)
        state = policy.learn_in_place(state, PlayedAction(told.safe), values)
        plays.append(Play(told.safe, None, 1.0, values))
    first, left = len(plays), 0
    for t in range(14):
        followed, draw = t < 10, sw.RandomKey(7, 1, t)
        listed = problem.targets if followed else problem.others
        found = intervals(told, plays, listed, first, followed, not mixtures, t <= 10)
        seen = policy.rounds.play(state.memory, listed, np.empty(0, dtype=bool), draw).workspace.bounds
        for signal, interval in enumerate(found):
            np.testing.assert_allclose(seen[signal, CENTRE] - seen[signal, HALF], interval.low, atol=CLOSE)
            np.testing.assert_allclose(seen[signal, CENTRE] + seen[signal, HALF], interval.high, atol=CLOSE)
        known, draws = known_of(told, found), drawn(told, plays, listed, found, draw)
        if known.warm and (mixtures or baseline in ("origin", "known")):  # else the crosses stand there again
            np.testing.assert_allclose(seen[:, SAMPLED], draws, atol=CLOSE)
        decision = policy.decide(state, listed, draw)
        if not known.warm:
            assert decision.reason is FallbackReason.SAFE_ACTION_COST_UNCERTAIN
        elif mixtures:
            held_mixture(problem, decision, known, draws)
        else:
            fits = fits_now(told, plays)
            lines = [Line(told, fits, found, target, ray) for ray, target in enumerate(listed)]
            held_ray(problem, decision, lines, known, draws)
        values = problem.outcome(decision.action, random)
        ray = None if decision._uncached or not followed else decision._position
        plays.append(Play(np.asarray(decision.action), ray, decision.step_size, values))
        state = policy.learn(state, decision, sw.Outcome(values[0], problem.signs * values[1:]))
        left += decision.message is None
    assert left > 0
    assert state.memory[CACHED] == CACHE_DISABLED


@pytest.mark.long
@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("mixtures", [False, True], ids=["rays", "mixtures"])
def test_a_greedy_proposal_that_is_not_certified_gives_way_to_one_that_is(baseline: str, mixtures: bool) -> None:
    """With C = 1 and no spread, decisions differ from the proposal's, and none is without its certificate."""
    seed = 3 if baseline == "origin" else 8
    problem = some_problem(seed, baseline, 2, mixtures=mixtures, posterior_scale=0.0, max_regret_ratio=1.0)
    patient = some_problem(seed, baseline, 2, mixtures=mixtures, posterior_scale=0.0, max_regret_ratio=1e9).policy
    random, state, plays, changed = np.random.default_rng(5), problem.policy.start(), list[Play](), 0
    told, policy = problem.told, problem.policy
    state, listed = policy.cache_offered(state, policy.decide(state, problem.targets)), problem.targets
    for t in range(150):  # well known are the safe action and the first candidate, which pays
        values, ray = problem.outcome(told.safe if t % 2 else listed[0], random), -1 if t % 2 else 0
        values[0] += 0.3 * (ray == 0)
        state = policy.learn_in_place(state, PlayedAction(told.safe if t % 2 else listed[0], ray), values)
        plays.append(Play(told.safe if t % 2 else listed[0], ray, 1.0, values))
    for t in range(8):
        draw = sw.RandomKey(1, 0, t)
        decision, proposal = policy.decide(state, listed, draw), patient.decide(state, listed, draw)
        changed += not np.allclose(
            proposal.probabilities if mixtures else proposal.action,
            decision.probabilities if mixtures else decision.action,
        )
        found = intervals(told, plays, listed, 0, True, not mixtures)
        known = known_of(told, found)
        if decision.message is None:
            prices = (decision.optimistic_reward - known.r_low[-1]) / known.slack
            if mixtures:
                low, unknown = known.r_low @ decision.probabilities, known.unknown(decision.optimistic_reward)
                assert decision.optimistic_reward - low <= unknown @ decision.probabilities + CLOSE
            else:
                index = -1 if decision.action_index is None else decision.action_index
                line = Line(told, fits_now(told, plays), found, listed[index], index)
                low = float(line.at(0, decision.step_size).low[0])
                assert decision.optimistic_reward - low <= line.unknown(prices, decision.step_size) + CLOSE
        values = problem.outcome(decision.action, random)
        plays.append(
            Play(
                np.asarray(decision.action),
                None if decision._uncached else decision._position,
                decision.step_size,
                values,
            )
        )
        state = policy.learn(state, decision, sw.Outcome(values[0], problem.signs * values[1:]))
    assert changed > 0


def kept_ends(agent: sw.Agent) -> Floats:
    policy: Any = agent.policy
    own = OWN_OF(PART_OF(policy.layout, agent.state.memory, 0))
    return np.concatenate([own.lows, own.highs])


def test_a_log_narrows_what_is_kept_only_after_its_last_row() -> None:
    """Sorted by cost, what its first rows say alone would put an upper end far below the truth of .8."""
    random = np.random.default_rng(0)
    features, costs = np.tile([[1.0, 0.0, 0.0]], (200, 1)), 0.8 + random.normal(size=200)
    ends = []
    for order in (np.arange(200), np.argsort(costs), np.argsort(-costs)):
        agent = sw.Agent(
            sw.SafePosteriorSampling(safe_action=sw.SafeAction(features=np.zeros(3)), threshold=0.5, noise=1.0)
        )
        agent.decide(np.eye(3))
        agent.learn_log(features[order], np.zeros(200), costs[order])
        ends.append(kept_ends(agent))
    assert np.isfinite(ends[0]).all()
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-12)
    np.testing.assert_allclose(ends[2], ends[0], atol=1e-12)
    agent.learn_log(np.tile([[1.0, 0.0, 0.0]], (5_000, 1)), np.zeros(5_000), np.full(5_000, 0.8))
    assert (kept_ends(agent)[[0, 16]] != ends[0][[0, 16]]).any()


def test_ends_that_pass_each_other_leave_the_larger_as_the_upper_one() -> None:
    """Declared noise a hundred times too small: what is seen contradicts itself, and the dearer reading stands."""
    policy = sw.SafePosteriorSampling(
        safe_action=sw.SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.01, check_assumptions=False
    )
    agent, random = sw.Agent(policy), np.random.default_rng(1)
    for _ in range(300):
        agent.learn(agent.decide(np.eye(2)), reward=random.normal(), cost=random.normal())
    own = OWN_OF(PART_OF(policy.layout, agent.state.memory, 0))
    lows, highs, decision = own.lows[8:10], own.highs[8:10], agent.decide(np.eye(2))
    assert (lows > highs).any()
    bounds = policy.rounds.play(agent.state.memory, np.eye(2), np.empty(0, dtype=bool), sw.RandomKey()).workspace.bounds
    np.testing.assert_allclose(bounds[1, CENTRE, :2] + bounds[1, HALF, :2], np.maximum(lows, highs))
    assert decision.pessimistic_cost[0] <= 0.5


SETTINGS: dict[str, Any] = {"safe_action": sw.SafeAction(features=np.zeros(2)), "threshold": 0.5, "noise": 0.1}


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"max_regret_ratio": 0.9}, [ErrorCode.OUT_OF_RANGE]),
        ({"max_regret_ratio": float("nan")}, [ErrorCode.NOT_FINITE, "max_regret_ratio", "nan"]),
        ({"max_regret_ratio": float("inf")}, [ErrorCode.NOT_FINITE]),
        ({"posterior_scale": -0.1}, [ErrorCode.OUT_OF_RANGE]),
        ({"posterior_scale": float("inf")}, [ErrorCode.NOT_FINITE]),
        ({"mean_reward_bound": 0.0}, [ErrorCode.OUT_OF_RANGE]),
        ({"mean_reward_bound": -1.0}, [ErrorCode.OUT_OF_RANGE]),
        ({"mixtures": 1}, [ErrorCode.WRONG_TYPE, "mixtures"]),
        ({"ridge": 0.0}, [ErrorCode.OUT_OF_RANGE]),
        ({"noise": 0.0}, [ErrorCode.OUT_OF_RANGE, "noise"]),
        ({"delta": 1.0}, [ErrorCode.OUT_OF_RANGE, "delta"]),
    ],
    ids=repr,
)
def test_bad_settings_are_refused_in_a_sentence(settings: dict[str, Any], parts: list[str]) -> None:
    with refused(sw.InvalidProblem, *parts):
        sw.SafePosteriorSampling(**SETTINGS | settings)


def test_a_safe_action_worth_more_than_anything_can_be_is_refused() -> None:
    safe = sw.SafeAction(features=[0.6, 0.0], reward=0.5, cost=0.1)
    with refused(sw.InvalidProblem, ErrorCode.BOUND_EXCEEDED):
        sw.SafePosteriorSampling(**SETTINGS | {"safe_action": safe, "mean_reward_bound": 0.4})
    with refused(sw.InvalidProblem, ErrorCode.BOUND_EXCEEDED):
        sw.SafeArmPosteriorSampling(
            arms=2, safe_action=sw.SafeAction(arm=0, reward=0.5, cost=0.1), threshold=0.5, mean_reward_bound=0.4
        )


@pytest.mark.parametrize("noise", [1e-30, 1e-9, 1e3])
@pytest.mark.parametrize("delta", [1e-50, 0.999])
@pytest.mark.parametrize("mixtures", [False, True], ids=["rays", "mixtures"])
def test_extreme_declarations_are_played(noise: float, delta: float, mixtures: bool) -> None:
    policy = sw.SafePosteriorSampling(**SETTINGS | {"noise": noise, "delta": delta, "mixtures": mixtures})
    agent = sw.Agent(policy)
    for _ in range(20):
        decision = agent.decide(np.eye(2))
        assert decision.pessimistic_cost[0] <= 0.5
        agent.learn(decision, reward=0.2 * decision.action[0], cost=0.3 * decision.action[1])
    assert decision.message is None


def test_many_limits_have_room_for_their_draws() -> None:
    """130 limits and one look: each signal has its own row of draws."""
    policy = sw.SafePosteriorSampling(
        **SETTINGS | {"threshold": [0.5] * 130, "safe_action": sw.SafeAction(features=np.zeros(9))}
    )
    seen = policy.rounds.play(policy.start().memory, np.eye(9), np.empty(0, dtype=bool), sw.RandomKey())
    assert seen.workspace.work.size >= (131 + 2) * 9


@pytest.mark.parametrize("mixtures", [False, True], ids=["rays", "mixtures"])
def test_nothing_eligible_leaves_the_safe_action(mixtures: bool) -> None:
    policy = sw.SafePosteriorSampling(**SETTINGS, mixtures=mixtures)
    offered = sw.FiniteSet(np.eye(2)) if mixtures else sw.RaySet(np.eye(2))
    decision = policy.decide(policy.start(), offered.only([False, True]))
    assert decision.action_index == 1
    decision = policy.decide(policy.start(), np.zeros((1, 2)))  # all that is offered is the safe action once more
    assert decision.reason is FallbackReason.NO_BETTER_ACTION


def world(baseline: str) -> tuple[sw.SafeAction, sw.LinearWorld]:
    theta, mu = np.array([0.23, 0.79, 0.45, 0.34]), np.array([0.2, 0.6, -0.2, 0.5])
    targets = np.vstack([np.eye(4), [[0.5, 0.5, 0.5, -0.5], [-0.5, 0.5, 0.5, 0.5], [0.1, 0.7, -0.7, 0.1]]])
    features = np.array([0.5, 0.0, 0.0, 0.0])
    known = {"reward": float(features @ theta), "cost": float(features @ mu)}
    safe = sw.SafeAction(features=features, **(known if baseline == "known" else {}))
    return safe, sw.LinearWorld(reward=theta, cost=mu, actions=sw.RaySet(targets), noise=0.1)


@pytest.mark.compiled
@pytest.mark.parametrize("baseline", ["known", "unknown"])
@pytest.mark.parametrize("mixtures", [False, True], ids=["rays", "mixtures"])
def test_what_is_hoped_for_is_possible_and_limits_are_kept(baseline: str, mixtures: bool) -> None:
    safe, truth = world(baseline)
    policy = sw.SafePosteriorSampling(
        safe_action=safe, threshold=0.4, noise=0.1, mean_cost_bound=1.0, mixtures=mixtures
    )
    result = sw.simulate(policy, truth, rounds=20_000, runs=5, seed=2, audit=True, progress=False)
    assert result.audit is not None
    assert not result.audit["optimism_failures"].any()
    assert not result.audit["missed"].any()
    assert not result.audit["first_violation"].any()


@pytest.mark.compiled
def test_the_certificate_bounds_the_regret_of_a_greedy_proposal() -> None:
    """Greedy, it settles on a wrong ray for ever; the less patience, the sooner the certificate says so."""
    regrets = []
    for patience in (1e9, 5.0, 1.0):
        policy = sw.SafePosteriorSampling(
            safe_action=at_zero(5), threshold=0.5, noise=1.0, posterior_scale=0.0, max_regret_ratio=patience
        )
        result = sw.simulate(policy, shifted(5), rounds=100_000, runs=2, seed=3, progress=False)
        regrets.append(float(result.regret[:, -1].mean()))
        assert not (result.violations > 0).any()
    free, five, one = regrets
    assert free > 2.0 * five > 4.0 * one


@pytest.mark.compiled
@sized(100_000, 800_000)
def test_regret_levels_off_on_rays_from_an_action_of_unknown_value(size: int) -> None:
    """Bounds between the ends of a ray would stay as they are, and a round cost as much at last as at first."""
    theta, mu = np.array([0.2, 0.7, 0.4, 0.3]), np.array([0.2, 0.6, -0.2, 0.5])
    theta, mu = theta / np.linalg.norm(theta), mu / np.linalg.norm(mu) / 1.2
    targets = np.vstack([np.eye(4), np.random.default_rng(3).normal(size=(4, 4))])
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    truth = sw.LinearWorld(reward=theta, cost=mu, actions=sw.RaySet(targets), noise=0.1)
    safe = sw.SafeAction(features=[0.5, 0.0, 0.0, 0.0])
    policy = sw.SafePosteriorSampling(safe_action=safe, threshold=0.45, noise=0.1, mean_cost_bound=1.0)
    regret = sw.simulate(policy, truth, rounds=size, runs=2, seed=5, record_points=2, progress=False).regret.mean(
        axis=0
    )
    assert regret[1] - regret[0] < 0.5 * regret[0]
