"""Actions in a context: each signal's own model, the safe action of the round, and what is declared of it."""

import math
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refuses

import stagewise as sw
from stagewise.engine.layout import CAPACITY
from stagewise.engine.workspace import CENTRE, HALF
from stagewise.models.arms import split_delta
from stagewise.models.context import compute_action_shares, compute_upper_shares
from stagewise.models.intervals import LOG_WEIGHTS, LOWER_ETAS, UPPER_ETAS
from stagewise.policies.context_caps import SafeContextPosteriorSampling
from stagewise.policies.policy import PlayedAction, PolicyState
from stagewise.problem.errors import ErrorCode

SAFE = sw.SafeAction(arm=0, reward=0.05, cost={"opt_out": 0.01, "spend": 0.1})
LIMITS = {"opt_out": 0.02, "spend": 0.4}
UPPER, OTHER = (0.05 * share for share in split_delta(2))  # of δ, for each cost's upper ends, and every other end
UPPERS = 0.9 * np.array([0.05, 0.475, 0.475])  # of UPPER: the declared safe action's upper end has little


def policy(**settings: Any) -> SafeContextPosteriorSampling:
    return SafeContextPosteriorSampling(
        **{"actions": 3, "context": 2, "safe_action": SAFE, "threshold": LIMITS} | settings
    )


def bounds_of(made: SafeContextPosteriorSampling, state: PolicyState, context: sw.ContextVector) -> np.ndarray:
    """Return the lowest and the highest plausible means (2, 1 + m, K + 1)."""
    rows = made.rows_for(context)
    seen = made.rounds.play(state.memory, rows, context.get_eligible(made.actions), sw.RandomKey())
    table = seen.workspace.bounds
    return np.array([table[:, CENTRE] - table[:, HALF], table[:, CENTRE] + table[:, HALF]])


def interval(pulls: int, mean: float, lower: float, upper: float) -> tuple[float, float]:
    """Return the bounds of the average mean, found by bisection."""
    total, ends = pulls * mean, []
    for outer, etas, share in ((0.0, np.array(LOWER_ETAS), lower), (1.0, -np.array(UPPER_ETAS), upper)):
        within, beyond = mean, outer
        for _ in range(100):
            middle = 0.5 * (within + beyond)
            terms = np.array(LOG_WEIGHTS) + etas * total - pulls * np.log1p(np.expm1(etas) * middle)
            inside = np.logaddexp.reduce(terms) <= math.log(1.0 / share)
            within, beyond = (middle, beyond) if inside else (within, middle)
        ends.append(within)
    return ends[0], ends[1]


def played(made: SafeContextPosteriorSampling, action: int, context: sw.ContextVector) -> PlayedAction:
    return PlayedAction(made.rows_for(context)[action].copy(), action)


def test_a_linear_signal_is_a_ridge_regression_of_every_action_by_itself() -> None:
    made, chance = policy(ridge=0.7, norm_bound=0.8), np.random.default_rng(0)
    users, actions = chance.uniform(-1.0, 1.0, (80, 2)), chance.integers(0, 3, 80)
    rewards, state = chance.random(80), made.start()
    for user, action, reward in zip(users, actions, rewards, strict=True):
        state = made.learn_in_place(state, played(made, action, sw.ContextVector(user)), np.array([reward, 0.0, 0.0]))
    here = np.array([0.2, -0.6])
    low, high = bounds_of(made, state, sw.ContextVector(here))
    for action in range(3):
        z = np.column_stack([np.ones(80), users])[actions == action]
        matrix, u = 0.7 * np.eye(3) + z.T @ z, np.array([1.0, *here])
        fit = np.linalg.solve(matrix, z.T @ rewards[actions == action]) @ u
        log_det = np.linalg.slogdet(matrix / 0.7)[1]
        confidence = math.log(1.0 / (2.0 * OTHER * compute_action_shares(3, 3)[action]))
        beta = math.sqrt(0.25 * (log_det + 2.0 * confidence) + 0.7 * 0.8**2)
        width = beta * math.sqrt(u @ np.linalg.solve(matrix, u))
        assert low[0, action] == pytest.approx(max(fit - width, 0.0), abs=1e-12)
        assert high[0, action] == pytest.approx(min(fit + width, 1.0), abs=1e-12)


def test_a_rate_is_the_interval_of_its_own_plays() -> None:
    made, chance, state = policy(), np.random.default_rng(1), policy().start()
    seen = chance.random((120, 2)) < [0.05, 0.3]
    for i, costs in enumerate(seen):
        state = made.learn_in_place(state, played(made, i % 3, sw.ContextVector([0.1, 0.2])), np.array([0.0, *costs]))
    low, high = bounds_of(made, state, sw.ContextVector([-0.5, 0.9]))
    for signal in (0, 1):
        for action in range(3):
            ends = interval(40, float(seen[action::3, signal].mean()), 0.3 * OTHER, UPPERS[action] * UPPER)
            assert (low[1 + signal, action], high[1 + signal, action]) == pytest.approx(ends, abs=1e-9)


def test_segments_have_rates_of_their_own_and_the_later_ones_less_of_delta() -> None:
    made = policy(segments=2, by={"reward": 0, "opt_out": 1}, reward_model="rates")
    state = made.start()
    for segment in (7, 2**52 - 1):
        context = sw.ContextVector([0.0, 0.0], segments=[3, segment])
        for _ in range(50):
            state = made.learn_in_place(state, played(made, 1, context), np.zeros(3))
    highs = [bounds_of(made, state, sw.ContextVector([0.0, 0.0], segments=[9, s]))[1, 1, 1] for s in (7, 2**52 - 1, 8)]
    expected = [interval(50, 0.0, 1.0, UPPERS[1] * UPPER / (i * (i + 1)))[1] for i in (1, 2)]
    assert highs == pytest.approx([*expected, 1.0], abs=1e-9)
    assert (
        bounds_of(made, state, sw.ContextVector([0.0, 0.0], segments=[9, 8]))[1, 2, 1] < 0.2
    )  # spend is by action alone


def test_room_for_segments_grows_and_nothing_is_lost() -> None:
    made, chance = policy(context=0, segments=1, by={"opt_out": 0}), np.random.default_rng(2)
    state, seen = made.start(), {}
    for segment in chance.integers(0, 2**52, 100).tolist():
        count = int(chance.integers(1, 5))
        seen[segment] = count
        for _ in range(count):
            state = made.learn_in_place(state, played(made, 2, sw.ContextVector(segments=[segment])), np.zeros(3))
    assert state.memory[CAPACITY] >= 200
    assert made.fits(state.memory)
    for order, (segment, count) in enumerate(seen.items(), start=1):
        high = bounds_of(made, state, sw.ContextVector(segments=[segment]))[1, 1, 2]
        share = UPPERS[2] * UPPER / (order * (order + 1))
        assert high == pytest.approx(interval(count, 0.0, 1.0, share)[1], abs=1e-9)


def test_a_signal_that_is_not_known_yet_is_not_learned_from() -> None:
    made, context = policy(), sw.ContextVector([0.3, 0.3])
    state = made.learn_in_place(made.start(), played(made, 1, context), np.array([0.4, np.nan, 1.0]))
    later = made.learn_in_place(state, played(made, 1, context), np.array([np.nan, 0.0, np.nan]))
    at_once = made.learn_in_place(made.start(), played(made, 1, context), np.array([0.4, 0.0, 1.0]))
    assert np.array_equal(later.memory, at_once.memory)
    assert np.isfinite(later.memory).all()


def test_the_safe_action_is_never_judged_worse_than_declared_and_better_where_the_data_say_so() -> None:
    made, state, context = policy(), policy().start(), sw.ContextVector([0.3, 0.3])
    assert bounds_of(made, state, context)[1, 1:, -1] == pytest.approx([0.01, 0.1])
    assert bounds_of(made, state, context)[0, 0, -1] == pytest.approx(0.05)
    for _ in range(3000):
        state = made.learn_in_place(state, played(made, 0, context), np.array([0.3, 0.0, 0.0]))
    low, high = bounds_of(made, state, context)
    assert np.all(high[1:, -1] < [0.005, 0.005])
    assert low[0, -1] > 0.2


@pytest.mark.parametrize("model", ["rates", "linear"])
def test_a_declared_cost_that_the_data_contradict_stops_exploration_and_is_named(model: Any) -> None:
    made = policy(cost_model=model, safe_action=sw.SafeAction(arm=0, cost={"opt_out": 0.001, "spend": 0.1}))
    agent, context, chance = sw.Agent(made, seed=1), sw.ContextVector([0.0, 0.0]), np.random.default_rng(3)
    for _ in range(2000):
        state = agent.state
        low = bounds_of(made, state, context)[0, 1, 0]
        decision = agent.decide(context)
        if low > 0.001:
            break
        agent.learn(decision, reward=0.5, cost=[chance.random() < 0.3, 0.0])
    assert low > 0.001
    assert decision.action_index == 0
    assert decision.reason_details is not None
    assert (decision.reason_details.details["limit"], decision.reason_details.details["declared"]) == ("opt_out", 0.001)


def test_without_a_declared_cost_the_safe_action_is_learned_first() -> None:
    made = policy(safe_action=sw.SafeAction(arm=0), threshold={"opt_out": 0.2, "spend": 0.4})
    agent = sw.Agent(made, seed=1)
    first = made.decide(made.start(), sw.ContextVector([0.0, 0.0]))
    assert first.reason is sw.FallbackReason.SAFE_ACTION_COST_UNCERTAIN
    for _ in range(400):
        decision = agent.decide(sw.ContextVector([0.0, 0.0]))
        agent.learn(decision, reward=0.1 + 0.4 * (decision.action_index > 0), cost=[0.0, 0.0])
    assert decision.message is None


def test_actions_that_come_later_leave_the_others_as_they_are() -> None:
    before, after = policy(), policy(actions=4, initial_actions=3)
    context, states = sw.ContextVector([0.2, 0.1]), [before.start(), after.start()]
    for action in (0, 1, 2, 1):
        states = [
            made.learn_in_place(state, played(made, action, context), np.array([0.3, 0.0, 1.0]))
            for made, state in zip((before, after), states, strict=True)
        ]
    one, other = (bounds_of(m, s, context) for m, s in zip((before, after), states, strict=True))
    assert np.array_equal(one[:, :, :3], other[:, :, :3])


def test_delta_is_shared_out_and_no_more_than_that() -> None:
    for launched, actions in ((3, 3), (2, 50), (1, 1)):
        shares = compute_action_shares(actions, launched)
        assert shares.sum() <= 1.0 + 1e-12
        assert compute_upper_shares(shares, launched, 0).sum() <= 1.0 + 1e-12


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"by": {"opt_out": 0}}, [ErrorCode.OUT_OF_RANGE, "segments"]),
        ({"by": {"reward": 0}, "segments": 1}, [ErrorCode.UNSUPPORTED]),
        ({"by": {"clicks": 0}, "segments": 1}, [ErrorCode.UNKNOWN_NAME]),
        ({"cost_model": "cubic"}, [ErrorCode.INVALID_CHOICE, "cubic", "linear"]),
        ({"cost_model": {"clicks": "rates"}}, [ErrorCode.UNKNOWN_NAME]),
        ({"initial_actions": 4}, [ErrorCode.OUT_OF_RANGE, "initial_actions", "3"]),
        ({"safe_action": sw.SafeAction(arm=3, cost=[0.0, 0.0])}, [ErrorCode.SAFE_ACTION_INVALID, "3"]),
        ({"safe_action": sw.SafeAction(arm=0, cost=[0.02, 0.0])}, [ErrorCode.SAFE_ACTION_OVER_LIMIT, "opt_out"]),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings: dict[str, Any], words: list[str]) -> None:
    refuses(lambda: policy(**settings), sw.InvalidProblem, *words)


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (sw.ContextVector([0.1]), [ErrorCode.WRONG_SHAPE]),
        (sw.ContextVector([0.1, 0.2], segments=[1]), [ErrorCode.WRONG_SHAPE]),
        (sw.ContextVector([0.1, 34.0]), [ErrorCode.CONTEXT_OUT_OF_RANGE]),
        (sw.ArmSet(3), [ErrorCode.WRONG_TYPE]),
    ],
)
def test_contexts_of_another_shape_are_refused(context: Any, words: list[str]) -> None:
    made = policy()
    refuses(lambda: made.decide(made.start(), context), sw.InvalidActions, *words)
