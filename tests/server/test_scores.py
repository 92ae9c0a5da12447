"""Limits by a risk score on the server: requests, the log, the learned state and its bounds."""

from typing import Any

import numpy as np
import pytest
from tests.server.logs import DAY, Log, month, problem

import stagewise as sw
from stagewise.cli.server_startup import build_offline_log
from stagewise.problem.errors import ErrorCode
from stagewise.server.controls import Controls, ProblemVersion, build_first_version, build_next_version
from stagewise.server.decide import DecisionRequest, decide
from stagewise.server.snapshots import build_initial_snapshot
from stagewise.server.state_fold import StateFold

LIVE = Controls(mode="live")


def scored(**settings: Any) -> sw.Problem:
    """Return the problem whose opt-outs are limited in every quarter of ages."""
    score = sw.RiskScore("age", **{"low": 0.0, "high": 100.0, "buckets": 4, **settings})
    limits = {
        "opt_out": sw.Limit(0.05, safe_bound=0.001, window="7d", score=score),
        "complaint": problem().limits["complaint"],
    }
    return problem(limits=limits)


def test_a_request_has_the_score_as_a_number_of_its_context() -> None:
    made = problem(limits={"opt_out": sw.Limit(0.05, safe_bound=0.001, score="risk")})
    snapshot = build_initial_snapshot(made, 1, frozenset())
    context = {"age": 40.0, "tenure": 0.25, "risk": 0.31}
    (record,) = decide(snapshot, LIVE, LIVE, bytes(32), [("one", DecisionRequest(context))])
    assert not isinstance(record, BaseException)
    assert record.request["context"] == context
    wrong = [
        ("two", DecisionRequest({**context, "risk": 31.0})),
        ("three", DecisionRequest({"age": 40.0, "tenure": 0.0})),
    ]
    codes = [getattr(one, "code", None) for one in decide(snapshot, LIVE, LIVE, bytes(32), wrong)]
    assert codes == [ErrorCode.CONTEXT_OUT_OF_RANGE, ErrorCode.MISSING_CONTEXT_FIELD]


def test_a_log_is_learned_the_same_in_any_batches() -> None:
    log, states = month(60).events, []
    for step in (1, 7, len(log)):
        fold = StateFold(scored(), 1)
        for first in range(0, len(log), step):
            fold.take(log[first : first + step])
        states.append(fold.learned.state.memory)
    assert np.array_equal(states[0], states[1])
    assert np.array_equal(states[0], states[2])


def test_an_offline_log_keeps_the_score_as_a_number() -> None:
    made = problem(limits={"opt_out": sw.Limit(0.05, safe_bound=0.001, score="risk")})
    rows = {
        "action": ["digest", "offer"], "age": [40.0, 50.0], "tenure": [0.0, 0.5], "risk": [0.25, 0.75],
        "click": [1.0, 0.0], "opt_out": [0.0, 1.0],
    }  # fmt: skip
    assert build_offline_log(made, rows, {}).context["risk"] == [0.25, 0.75]


@pytest.mark.parametrize("changed", [{"buckets": 5}, {"monotone": False}])
def test_a_score_cannot_change(changed: dict[str, Any]) -> None:
    with pytest.raises(sw.InvalidProblem) as refusal:
        build_next_version(build_first_version(scored()), scored(**changed))
    assert (refusal.value.code, refusal.value.details["field"]) == (ErrorCode.CHANGE_NOT_ALLOWED, "score")


def build_two_versions() -> tuple[ProblemVersion, ProblemVersion, Log]:
    """Return two versions of a score, and a log in which each of them decided on 40 users."""
    first = build_first_version(scored())
    second = build_next_version(first, scored(cuts=[20.0, 60.0], buckets=None, version=2))
    return first, second, build_log(first, second)


def build_log(first: ProblemVersion, second: ProblemVersion) -> Log:
    """Return a log in which each of two versions decided on 40 users."""
    log = Log()
    for version in (first, second):
        log.add("problem", {"problem": version.problem.to_dict()}, log.decisions)
        for user in range(40):
            place = log.decide("offer", log.decisions + 1, age=float(user % 100), version=version.number)
            log.tell(place, log.decisions + 1, click=0.0, opt_out=float(user % 2), complaint=0.0)
    log.add("tick", {}, 9 * DAY)
    return log


def test_a_new_version_of_a_score_starts_with_new_cells() -> None:
    first, second, log = build_two_versions()
    counts = []
    for version in (first, second):
        fold = StateFold(version.problem, version.number)
        fold.take(log.events)
        totals = fold.policy.compute_totals(fold.learned.state)
        counts.append((totals.pulls[1, 2], totals.pulls[0, 2], totals.sums[1, 2]))
    assert counts == [(40.0, 80.0, 20.0)] * 2  # of each version its own users; clicks of all
    with pytest.raises(sw.InvalidProblem):
        build_next_version(second, scored())  # back to the first version


@pytest.mark.parametrize("rows", [1, 30, 81, 82, 100])
def test_a_restored_fold_knows_which_users_had_the_old_score(rows: int) -> None:
    """An instance of the old version may log a decision after the new version, so the fold keeps the versions."""
    _, second, log = build_two_versions()
    log.tell(log.decide("offer", 9 * DAY + 1, version=1), 9 * DAY + 2, click=0.0, opt_out=0.0, complaint=0.0)
    whole, half, again = (StateFold(second.problem, 2) for _ in range(3))
    whole.take(log.events)
    half.take(log.events[:rows])
    again.restore(half.encode())
    again.take(log.events[rows:])
    assert again.encode() == whole.encode()


@pytest.mark.parametrize("apart", [False, True], ids=["a score of one limit", "a score that two limits had"])
@pytest.mark.parametrize("rows", [1, 30, 81])
def test_a_checkpoint_of_an_old_score_says_nothing_of_the_users_of_a_new_one(rows: int, apart: bool) -> None:
    """Rows that were removed had the old score, so the new version of the problem goes on from their state."""
    first = second = build_first_version(scored())
    if apart:  # the new problem has one division more
        limits = dict(first.problem.limits)
        limits["complaint"] = sw.Limit(0.02, safe_bound=0.0, window="7d", score=limits["opt_out"].score)
        first = build_first_version(problem(limits=limits))
        newer = sw.RiskScore("both", weights={"age": 1.0, "tenure": 1.0}, cuts=[20.0, 60.0, 80.0], version=2)
        limits["opt_out"] = sw.Limit(0.05, safe_bound=0.001, window="7d", score=newer)
        second = build_next_version(first, problem(limits=limits))
        assert len(second.problem.divisions) == 2
    else:
        second = build_next_version(first, scored(cuts=[20.0, 60.0, 80.0], buckets=None, version=2))
    log = build_log(first, second)
    whole, checkpoint, fold = (StateFold(one.problem, one.number) for one in (second, first, first))
    whole.take(log.events)
    checkpoint.take(log.events[:rows])
    fold.restore(checkpoint.encode(), is_checkpoint=True)
    fold.change_version(second.problem, 2, second.retired)
    fold.take(log.events[rows:])
    pulls = fold.policy.compute_totals(fold.learned.state).pulls
    assert pulls[:, 2].tolist() == [80.0, 40.0, 80.0]
    assert np.array_equal(fold.learned.state.memory, whole.learned.state.memory)
    assert np.array_equal(fold.queue.kept_rows, whole.queue.kept_rows)
    again = StateFold(second.problem, 2)
    again.restore(fold.encode())
    assert again.encode() == fold.encode()


@pytest.mark.parametrize("ends", [{"high": 0.6}, {"high": 2.0}, {"low": 0.1}])
def test_a_new_version_of_a_score_keeps_the_range_of_its_column(ends: dict[str, float]) -> None:
    """The log has contexts of the old range, which are read again under the new version."""

    def build(**settings: Any) -> sw.Problem:
        return problem(limits={"opt_out": sw.Limit(0.05, safe_bound=0.001, score=sw.RiskScore("risk", **settings))})

    first = build_first_version(build(cuts=[0.5]))
    with pytest.raises(sw.InvalidProblem) as refusal:
        build_next_version(first, build(cuts=[0.3], version=2, **ends))
    assert (refusal.value.code, refusal.value.details["field"]) == (ErrorCode.CHANGE_NOT_ALLOWED, "range")
    assert "\n" not in str(refusal.value)
    assert build_next_version(first, build(cuts=[0.3, 0.4], version=2)).number == 2
