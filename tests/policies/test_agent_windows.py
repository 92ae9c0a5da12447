"""Windows: after a fixed age what is missing counts as declared, whatever the clock does."""

import copy
import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.policies.agents import NAMED, NAN, ORIGIN, remembered
from tests.policies.refusals import refused_with
from tests.policies.test_agent import ThreeVerbs
from tests.problem.refusal import refused

from stagewise import LCLUCB, OPB, OPLB, Agent, ArmSet, InvalidOutcome, InvalidProblem, OutcomeWindow, SafeAction
from stagewise.problem.errors import ErrorCode

DAY = 86400.0
TOGETHER = OPLB(safe_action=ORIGIN, threshold=NAMED, noise=0.1)
APART = LCLUCB(safe_action=ORIGIN, threshold=NAMED, noise=0.1, separate_models=True)
CLICKS = OPB(arms=2, safe_action=SafeAction(arm=0, reward=0.0, cost=0.0), threshold={"opt_out": 0.1}, interval="kl")
both = pytest.mark.parametrize("policy", [TOGETHER, APART], ids=["together", "apart"])
WEEK = {"wait": OutcomeWindow("7d", missing=0.25)}


def nobody_asks() -> float:
    raise AssertionError("the clock was asked")


def made(policy: Any, *times: float, windows: Any = None, **settings: Any) -> tuple[Agent, list[Any]]:
    agent = Agent(policy, seed=3, windows=WEEK if windows is None else windows, clock=nobody_asks, **settings)
    return agent, [agent.decide(np.eye(2), now=now) for now in times]


@both
def test_after_its_window_what_is_missing_counts_as_declared(policy: Any) -> None:
    agent, decisions = made(policy, 0.0, DAY)
    for decision in decisions:
        agent.learn(decision, reward=0.4, spend=0.1, now=DAY)
    assert (agent.expire_pending(7 * DAY - 1.0), agent.pending_count) == (0, 2)
    assert (agent.expire_pending(7 * DAY), agent.pending_count) == (1, 1)
    assert (agent.expire_pending(7 * DAY), agent.pending_count) == (0, 1)
    agent.learn(decisions[1], wait=0.5, now=8 * DAY - 1.0)
    assert (agent.pending_count, agent.buffered_count) == (0, 0)
    # with both decided before anything was learned
    other = Agent(policy, seed=3)
    same = [other.decide(np.eye(2)) for _ in decisions]
    for decision, wait in zip(same, (0.25, 0.5), strict=True):
        other.learn(decision, reward=0.4, cost=[0.1, wait])
    assert agent.state.memory.tobytes() == other.state.memory.tobytes()


@both
def test_what_comes_after_its_window_is_refused_and_counted(policy: Any) -> None:
    agent, (first, second) = made(policy, 0.0, DAY)
    agent.learn(first, reward=0.4, spend=0.1, now=DAY)
    for count, outcome in enumerate(({"wait": 0.9}, {"wait": 0.9}), start=1):
        with refused(InvalidOutcome, ErrorCode.OUTCOME_TOO_LATE):
            agent.learn(first, **outcome, now=7 * DAY)
        assert agent.pending_summary()["wait"].late == count
    assert (agent.pending_count, agent.buffered_count) == (1, 0)
    agent.learn(second.id, wait=0.1, now=7 * DAY)
    with refused(InvalidOutcome, ErrorCode.OUTCOME_TOO_LATE):
        agent.learn(first, reward=0.4, wait=0.9, now=7 * DAY)
    with refused(InvalidOutcome, ErrorCode.OUTCOME_ALREADY_KNOWN):
        agent.learn(first, reward=0.4, now=7 * DAY)


@both
def test_a_decision_and_an_outcome_let_time_pass_too(policy: Any) -> None:
    for passing in ("decide", "learn"):
        agent, (first, second) = made(policy, 0.0, 6 * DAY)
        agent.learn(first, reward=0.4, spend=0.1, now=6 * DAY)
        if passing == "decide":
            agent.decide(np.eye(2), now=7 * DAY)
        else:
            agent.learn(second, reward=0.4, now=7 * DAY)
        assert agent.pending_count == (2 if passing == "decide" else 1)


@both
def test_what_is_decided_at_a_moment_knows_what_was_closed_by_then(policy: Any) -> None:
    agent, (first,) = made(policy, 0.0)
    agent.learn(first, reward=0.4, spend=0.1, now=1.0)
    late = agent.decide(np.eye(2), now=7 * DAY)
    other = Agent(policy, seed=3)
    other.learn(other.decide(np.eye(2)), reward=0.4, cost=[0.1, 0.25])
    assert other.decide(np.eye(2)).to_dict() == late.to_dict()


def test_a_row_without_an_outcome_can_be_left_out() -> None:
    """Together all of it is; apart the other signals of the row are learned."""
    for policy in (TOGETHER, APART):
        agent, decisions = made(policy, 0.0, 1.0, windows={"wait": OutcomeWindow("1h", missing="drop")})
        for decision in decisions:
            agent.learn(decision, reward=0.4, spend=0.1, now=2.0)
        agent.learn(decisions[1], wait=0.3, now=3.0)
        assert agent.expire_pending(3600.0) == 1
        assert (agent.pending_count, agent.buffered_count) == (0, 0)
        other = Agent(policy, seed=3)
        same = [other.decide(np.eye(2)) for _ in decisions]
        if policy is TOGETHER:
            other.drop_pending(1)
        else:
            other.learn(same[0], reward=0.4, spend=0.1)
            other.drop_pending(1)
        other.learn(same[1], reward=0.4, cost=[0.1, 0.3])
        assert agent.state.memory.tobytes() == other.state.memory.tobytes()
        with refused(InvalidOutcome, ErrorCode.OUTCOME_TOO_LATE):
            agent.learn(decisions[0], wait=0.1, now=3600.0)


def test_only_what_happens_is_told_and_the_rest_counts_as_none() -> None:
    """The everyday case: a click is an event; that there was none is told by nobody."""
    windows = {"reward": OutcomeWindow("1h", missing=0.0), "opt_out": OutcomeWindow("7d", missing=0.0)}
    agent = Agent(CLICKS, seed=1, windows=windows, clock=nobody_asks)
    decisions = [agent.decide(ArmSet(2), now=float(i)) for i in range(50)]
    agent.learn(decisions[3], reward=True, now=60.0)
    agent.learn(decisions[4], opt_out=True, now=DAY)
    agent.expire_pending(8 * DAY)
    other = Agent(CLICKS, seed=1)
    for decision in [other.decide(ArmSet(2)) for _ in range(50)]:
        other.learn(decision, reward=float(decision.round == 3), cost=float(decision.round == 4))
    assert remembered(agent) == remembered(other)


# Clocks.


def test_a_clock_that_is_set_back_closes_nothing_early_and_opens_nothing() -> None:
    agent, (first,) = made(APART, 100.0 * DAY)
    agent.expire_pending(106.9 * DAY)
    assert agent.expire_pending(50.0 * DAY) == 0
    behind = agent.decide(np.eye(2), now=50.1 * DAY)  # the clock stands before its own past: no date yet
    assert agent.expire_pending(58.0 * DAY) == 0, "a week on the clock, but nobody knows how long it was"
    agent.learn(first, reward=0.1, spend=0.1, wait=0.3, now=58.0 * DAY)
    assert agent.expire_pending(107.0 * DAY) == 0, "dated now, so its week begins now"
    assert agent.pending_summary()["wait"].oldest == behind.id
    assert agent.expire_pending(113.9 * DAY) == 0
    agent.learn(behind, reward=0.1, spend=0.1, now=113.9 * DAY)
    assert agent.expire_pending(114.0 * DAY) == 1
    with refused(InvalidOutcome, ErrorCode.OUTCOME_TOO_LATE):
        agent.learn(behind, wait=0.1, now=20.0 * DAY)


@pytest.mark.parametrize("seed", range(8))
def test_however_the_clock_is_set_back_no_window_closes_before_its_age(seed: int) -> None:
    """Against a witness that knows the true time, behind which the clock lags.

    It is set back now and then; some of that is repaired before it has caught up with its latest moment.
    """
    chance = np.random.default_rng(seed)
    agent = Agent(APART, seed=3, windows={"wait": OutcomeWindow(10.0, missing=0.0)}, clock=nobody_asks)
    true, lag, settled, latest, dates, closed = 0.0, 0.0, 0.0, 0.0, [], 0
    for _ in range(300):
        true += chance.exponential(1.0)
        if chance.random() < 0.1:
            lag += chance.exponential(8.0)
        elif true - lag < latest and chance.random() < 0.3:
            lag = settled
        if true - lag >= latest:
            latest, settled = true - lag, lag
        if chance.random() < 0.5:
            agent.decide(np.eye(2), now=true - lag)
            dates.append(true)
        else:
            agent.expire_pending(true - lag)
        now_closed = len(dates) - agent.pending_summary()["wait"].missing  # nothing is reported
        assert now_closed >= closed
        closed = now_closed
        assert all(true - dates[round_] >= 10.0 - 1e-9 for round_ in range(closed))
    assert closed > 50
    agent.expire_pending(true + 100.0)
    agent.expire_pending(true + 110.0)
    assert agent.pending_summary()["wait"].missing == 0


def test_without_a_moment_the_clock_is_asked() -> None:
    times = iter([0.0, DAY, 7 * DAY + 1.0, 8 * DAY + 1.0])
    agent = Agent(APART, windows=WEEK, clock=lambda: next(times))
    decision = agent.decide(np.eye(2))
    agent.learn(decision, reward=0.1, spend=0.1)
    with refused(InvalidOutcome, ErrorCode.OUTCOME_TOO_LATE):
        agent.learn(decision, wait=0.1)
    agent.expire_pending()
    assert list(times) == []


def test_without_windows_no_clock_is_asked() -> None:
    agent = Agent(APART, clock=nobody_asks)
    decision = agent.decide(np.eye(2))
    agent.learn(decision, reward=0.1)
    agent.learn(decision, spend=0.1, wait=0.1)
    assert agent.pending_count == 0


def test_moments_may_be_datetimes() -> None:
    start = datetime(2026, 11, 16, tzinfo=UTC)
    agent = Agent(APART, windows=WEEK, clock=nobody_asks)
    agent.decide(np.eye(2), now=start)
    agent.expire_pending(start + timedelta(days=7) - timedelta(seconds=1))
    assert agent.pending_summary()["wait"].missing == 1
    agent.expire_pending((start + timedelta(days=7)).timestamp())
    assert agent.pending_summary()["wait"].missing == 0


@pytest.mark.parametrize("now", [NAN, float("inf"), "today", True, datetime(2026, 11, 16), [1.0]], ids=repr)
def test_a_moment_that_is_none_is_refused(now: Any) -> None:
    agent, (decision,) = made(APART, 0.0)
    before = remembered(agent)
    for call in (
        lambda: agent.decide(np.eye(2), now=now),
        lambda: agent.learn(decision, wait=0.1, now=now),
        lambda: agent.expire_pending(now),
        lambda: Agent(TOGETHER).decide(np.eye(2), now=now),
    ):
        codes = ErrorCode.INVALID_TIME, ErrorCode.NOT_FINITE, ErrorCode.OUT_OF_RANGE, ErrorCode.WRONG_TYPE
        with refused_with(InvalidOutcome, *codes):
            call()
    assert remembered(agent) == before


# What a window is.


@pytest.mark.parametrize(
    ("length", "seconds"),
    [("90s", 90.0), ("1.5h", 5400.0), ("15 m", 900.0), ("2w", 14 * DAY), (30, 30.0), (timedelta(hours=1), 3600.0)],
    ids=str,
)
def test_lengths_may_be_told_in_many_ways(length: Any, seconds: float) -> None:
    assert OutcomeWindow(length, missing=0.0).seconds == seconds


@pytest.mark.parametrize("length", ["7", "d", "7 days", "-1d", "0s", "", 0, -1, NAN, None, True, ["7d"]], ids=repr)
def test_a_length_that_is_none_is_refused(length: Any) -> None:
    codes = ErrorCode.INVALID_TIME, ErrorCode.NOT_FINITE, ErrorCode.OUT_OF_RANGE, ErrorCode.WRONG_TYPE
    with refused_with(InvalidProblem, *codes):
        OutcomeWindow(length, missing=0.0)


@pytest.mark.parametrize("missing", ["zero", None, NAN, [0.0], "Drop"], ids=repr)
def test_what_a_missing_outcome_counts_as_is_checked(missing: Any) -> None:
    with refused_with(InvalidProblem, ErrorCode.NOT_FINITE, ErrorCode.OUT_OF_RANGE, ErrorCode.WRONG_TYPE):
        OutcomeWindow("7d", missing=missing)


@pytest.mark.parametrize(
    ("windows", "parts"),
    [
        ({"wiat": OutcomeWindow("7d", missing=0.0)}, [ErrorCode.UNKNOWN_SIGNAL]),
        ({"wait": "7d"}, [ErrorCode.WRONG_TYPE]),
        ([OutcomeWindow("7d", missing=0.0)], [ErrorCode.WRONG_TYPE]),
        ({"opt_out": OutcomeWindow("7d", missing=2.0)}, [ErrorCode.OUTCOME_OUT_OF_RANGE]),
    ],
    ids=["unknown", "no window", "no mapping", "what cannot be learned"],
)
def test_windows_that_do_not_fit_are_refused(windows: Any, parts: list[str]) -> None:
    with refused(InvalidProblem, *parts):
        Agent(CLICKS if "opt_out" in windows else APART, windows=windows)


def test_a_policy_of_three_verbs_has_no_windows() -> None:
    with refused(InvalidProblem, ErrorCode.UNSUPPORTED):
        Agent(ThreeVerbs(), windows={"outcome": OutcomeWindow("7d", missing=0.0)})


# Copies and files.


@pytest.mark.parametrize("again", ["file", "pickle", "copy"])
@both
def test_windows_survive_a_restart(policy: Any, again: str, tmp_path: Path) -> None:
    agent = Agent(policy, seed=3, windows=WEEK | {"reward": OutcomeWindow(timedelta(hours=1), missing="drop")})
    for day in range(5):
        agent.decide(np.eye(2), now=day * DAY)
    agent.decide(np.eye(2), now=DAY)  # the clock was set back
    agent.learn(1, spend=0.1, now=4 * DAY)
    with refused(InvalidOutcome, ErrorCode.OUTCOME_TOO_LATE):
        agent.learn(1, reward=0.1, now=4 * DAY)
    if again == "file":
        agent.save(tmp_path / "agent.json")
        other = Agent.load(tmp_path / "agent.json")
    else:
        other = pickle.loads(pickle.dumps(agent)) if again == "pickle" else copy.deepcopy(agent)
    assert other.pending_summary().to_dict() == agent.pending_summary().to_dict()
    assert agent.pending_summary()["reward"].late == 1
    for one in (agent, other):
        one.learn(5, wait=0.7, now=4.5 * DAY)
        one.expire_pending(7 * DAY)
        with refused(InvalidOutcome, ErrorCode.OUTCOME_TOO_LATE):
            one.learn(0, wait=0.2, now=7 * DAY)
        for round_ in range(6):
            if round_ != 1:
                one.learn(round_, spend=0.1, now=7 * DAY)
        one.expire_pending(30 * DAY)
        assert (one.pending_count, one.buffered_count) == (0, 0)
    assert remembered(other) == remembered(agent)
