"""The figures of a small log, reckoned by hand; and of a long one, against counting anew."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from tests.server.rows import Log, bound, feared

import stagewise as sw
from stagewise.models.intervals import LOG_WEIGHTS, LOWER_ETAS, UPPER_ETAS
from stagewise.records.reason import ReasonDetails, TripReason
from stagewise.server.confidence_intervals import RecentMean, RunningMean, compute_limit_interval
from stagewise.server.figures import build_figures
from stagewise.server.log_statistics import MAX_BUCKETS, LogStatistics, TimeSeries
from stagewise.server.web.page.verdict import build_verdict

PROBLEM = sw.Problem(
    action_names=["nothing", "offer"],
    safe_name="nothing",
    reward=sw.Reward("click", window="10s"),
    limits={"opt_out": sw.Limit(0.02, safe_bound=0.0, window="20s", model="rates")},
)


def tallied(log: Log) -> LogStatistics:
    tally = LogStatistics("notes")
    for event in log.events:
        tally.take(event)
    return tally


def small_log() -> Log:
    log = Log(PROBLEM)
    log.decision(1.0, "d0", "nothing", limits=feared(opt_out=0.0))
    log.decision(2.0, "d1", "offer", probabilities={"nothing": 0.6, "offer": 0.4}, limits=feared(opt_out=0.018))
    log.decision(3.0, "d2", "offer", probabilities={"nothing": 0.3, "offer": 0.7}, limits=feared(opt_out=0.015))
    log.decision(3.5, "d3", "nothing", reason="no_better_action", limits=feared(opt_out=0.0))
    log.outcome(4.0, "d2", click=1.0)
    log.outcome(5.0, "d1", click=0.0)
    return log


def test_an_outcome_counts_when_all_before_it_are_settled() -> None:
    told = build_figures(tallied(small_log()), 5_000_000)
    assert (told["decisions"], told["pending_count"], told["buffered_count"]) == (4, 4, 2)
    assert told["reward"]["now"]["mean"] is None
    assert told["limits"]["opt_out"]["observed_mean"] is None
    assert told["lag_s"] == {"click": 2.0}  # the middle of one second and three


def test_windows_close_by_the_clock_and_what_is_missing_counts() -> None:
    log = small_log()
    log.tick(12.0)  # d0's window for clicks closed at 11, so that d1 and d2 count; d2's closes at 13
    log.outcome(13.2, "d1", opt_out=1.0)
    log.outcome(14.0, "d0", click=1.0)  # late
    tally = tallied(log)
    told = build_figures(tally, 14_000_000)
    assert told["reward"]["now"]["count"] == 4  # d3's closed at 13.5
    assert told["reward"]["now"]["mean"] == pytest.approx(1 / 4)
    assert told["reward"]["safe"]["count"] == 2
    assert told["reward"]["safe"]["mean"] == 0.0
    assert told["reward"]["gain"]["mean"] == pytest.approx(1 / 4)
    assert [one["late"] for one in told["pending"]] == [1, 0]
    assert told["buffered_count"] == 1
    log.tick(23.0)
    tally.take(log.events[-1])
    told = build_figures(tally, 23_000_000)  # opt-outs of d0, d1 and d2, whose window is over at 23
    limit = told["limits"]["opt_out"]
    assert (limit["observed_mean"], limit["count"], limit["threshold"]) == (pytest.approx(1 / 3), 3, 0.02)
    assert limit["low"] <= 1 / 3 <= limit["high"]
    assert told["pending"][1]["pending_count"] == 1
    over_time = [one["limits"]["opt_out"] for one in told["series"]]
    assert [one["so_far"] for one in over_time] == [0.0, 0.5, pytest.approx(1 / 3)]
    assert (limit["low"], limit["high"]) == (over_time[-1]["low"], over_time[-1]["high"])


def test_what_recent_decisions_are_feared_to_cost_and_who_explored() -> None:
    told = build_figures(tallied(small_log()), 5_000_000)
    assert told["limits"]["opt_out"]["pessimistic_cost"] == 0.018
    assert told["reasons"] == {"no_better_action": 1}
    first, second, third = told["series"]
    assert first["at"] == 1.0
    assert first["actions"] == {"nothing": 1.0}
    assert second["exploring"] == 1.0
    assert second["limits"]["opt_out"]["pessimistic_cost"] == 0.018
    assert third["actions"] == {"offer": 0.5, "nothing": 0.5}
    assert third["exploring"] == 0.0  # the likeliest of its draw
    assert third["with_reason"] == 0.5
    offer = told["actions"][1]
    assert (offer["decisions"], offer["share"], offer["recent"]) == (2, 0.5, 0.5)
    assert [one["decision_id"] for one in told["last"]] == ["d3", "d2", "d1", "d0"]


def test_a_bound_that_is_not_finite_is_no_figure() -> None:
    log = small_log()
    log.decision(3.8, "d4", "nothing", limits={"opt_out": bound(None, 0.02)})
    assert build_figures(tallied(log), 5_000_000)["limits"]["opt_out"]["pessimistic_cost"] == 0.018


UNDECLARED = dataclasses.replace(
    PROBLEM,
    limits={"opt_out": sw.Limit(0.02, model="rates"), "complaint": sw.Limit(0.01, safe_bound=0.0, model="rates")},
)


def test_a_safe_cost_that_is_being_learned_is_no_fear_of_the_policys() -> None:
    log = Log(UNDECLARED)
    log.decision(1.0, "d0", "nothing", limits=feared(opt_out=1.0, complaint=0.0))
    log.decision(2.0, "d1", "nothing", limits={"opt_out": bound(None, 0.02)})
    limits = build_figures(tallied(log), 5_000_000)["limits"]
    assert [(one["pessimistic_cost"], one["safe_cost_unknown"]) for one in limits.values()] == [
        (None, True),
        (0.0, False),
    ]
    log.decision(3.0, "d2", "nothing", limits=feared(opt_out=0.015, complaint=0.0))
    log.decision(4.0, "d3", "offer", probabilities={"nothing": 0.9, "offer": 0.1}, limits=feared(opt_out=0.019))
    told = build_figures(tallied(log), 5_000_000)
    assert (told["limits"]["opt_out"]["pessimistic_cost"], told["limits"]["opt_out"]["safe_cost_unknown"]) == (
        0.019,
        True,
    )
    assert [one["limits"]["opt_out"]["pessimistic_cost"] for one in told["series"]] == [None, None, 0.015, 0.019]


@pytest.mark.parametrize(
    ("problem", "probabilities", "over"),
    [
        (PROBLEM, {"nothing": 1.0}, "opt_out"),
        (UNDECLARED, {"nothing": 0.9, "offer": 0.1}, "opt_out"),
        (UNDECLARED, {"nothing": 1.0}, "complaint"),
    ],
)
def test_what_was_declared_or_mixed_may_not_be_over_its_bound(
    problem: sw.Problem, probabilities: dict[str, float], over: str
) -> None:
    log = Log(problem)
    log.decision(1.0, "d0", "nothing", probabilities=probabilities, limits=feared(**{over: 0.5}))
    limit = build_figures(tallied(log), 5_000_000)["limits"][over]
    assert (limit["pessimistic_cost"], limit["safe_cost_unknown"]) == (0.5, False)


def shadow(action: str, pessimistic_cost: float, **chances: float) -> dict[str, Any]:
    choice = {
        "action": action,
        "probabilities": chances,
        "limits": feared(opt_out=pessimistic_cost),
        "reason": None,
        "details": {},
    }
    return {"mode": "shadow", "reason": "shadow", "details": {}, "limits": feared(opt_out=0.0), "choice": choice}


def test_what_the_policy_would_have_served_in_shadow_is_counted() -> None:
    log = Log(PROBLEM)
    for i in range(30):  # more than are shown
        log.decision(1.0, f"d{i}", "nothing", **shadow("offer", 0.012, offer=1.0))
    log.decision(2.0, "d30", "nothing", **shadow("nothing", 0.017, nothing=0.6, offer=0.4))
    log.decision(400.0, "d31", "nothing", **shadow("offer", 0.011, offer=1.0))
    told = build_figures(tallied(log), 5_000_000)
    assert told["shadow"] == {"offer": 31, "nothing": 1}
    assert {one["name"]: one["shadow"] for one in told["actions"]} == {"nothing": 1 / 32, "offer": 31 / 32}
    assert (told["limits"]["opt_out"]["shadow"], told["limits"]["opt_out"]["pessimistic_cost"]) == (0.017, 0.0)
    first, last = told["series"]  # a bucket took in its neighbour
    assert (first["shadow"], last["shadow"]) == ({"offer": 30 / 31, "nothing": 1 / 31}, {"offer": 1.0})
    assert [one["limits"]["opt_out"]["shadow"] for one in told["series"]] == [0.017, 0.011]
    assert [one["actions"] for one in told["series"]] == [{"nothing": 1.0}] * 2


def test_what_was_not_shown_is_left_out() -> None:
    log = small_log()
    log.outcome(6.0, "d0", shown=0.0)
    told = build_figures(tallied(log), 6_000_000)
    assert told["reward"]["now"]["count"] == 2  # d1 and d2
    assert told["reward"]["now"]["mean"] == 0.5


def test_what_was_deferred_counts_once_it_was_shown() -> None:
    log, deferred = Log(PROBLEM), {"request": {"context": {}, "deferred": True}}
    for key in ("d0", "d1", "d2"):
        log.decision(1.0, key, "offer", **deferred)
    log.outcome(2.0, "d0", shown=1.0, click=1.0)
    log.outcome(2.0, "d1", click=1.0)
    assert build_figures(tallied(log), 2_000_000)["reward"]["now"]["count"] == 1
    log.tick(60.0)
    told = build_figures(tallied(log), 60_000_000)
    assert told["reward"]["now"]["count"] == told["limits"]["opt_out"]["count"] == 1


def test_who_changed_what_and_why() -> None:
    log = small_log()
    log.control(6.0, "mode", "ada", "looks fine", mode="canary", share=0.1)
    why = ReasonDetails.of(
        TripReason.OBSERVED_COST_ABOVE_LIMIT, limit="opt_out", at_most=True, count=400, mean=0.5, level=0.05
    )
    log.row("control", 7.0, {"what": "trip", "actor": "server", "trip": why.reason, "details": why.details})
    told = build_figures(tallied(log), 8_000_000, mode="canary", killed="tripped")
    assert [one["what"] for one in told["controls"]] == ["trip", "mode", "version 1 of the problem"]
    assert [(one["actor"], one["trip"], one["reason"]) for one in told["stops"]] == [
        ("server", why.reason, why.message)
    ]
    assert told["mode"] == "canary"


def test_another_version_keeps_what_was_counted() -> None:
    log = small_log()
    limits = {"opt_out": dataclasses.replace(PROBLEM.limits["opt_out"], value=0.03)}
    other = dataclasses.replace(PROBLEM, action_names=["nothing", "offer", "digest"], limits=limits)
    log.row("problem", 5.5, {"version": 2, "problem": other.to_dict(), "actor": "ada", "reason": "a digest too"})
    log.decision(6.0, "d4", "digest")
    log.outcome(7.0, "d4", opt_out=1.0)
    log.tick(40.0)
    told = build_figures(tallied(log), 40_000_000)
    assert told["version"] == 2
    assert told["reward"]["now"]["count"] == 5
    assert told["actions"][1]["observed_mean"]["opt_out"]["count"] == 2
    assert told["actions"][2]["observed_mean"]["opt_out"]["mean"] == 1.0


def under(limit: float) -> sw.Problem:
    return dataclasses.replace(
        PROBLEM, limits={"opt_out": sw.Limit(limit, safe_bound=0.0, window="20s", model="rates")}
    )


def decided(log: Log, first: int, count: int, limit: float, every: int) -> None:
    """Add decisions as dear as a limit allows, of which one in so many is opted out of at once."""
    kept = {"limits": {"opt_out": {"estimate": None, "pessimistic_cost": 0.98 * limit, "threshold": limit}}}
    for i in range(first, first + count):
        log.decision(float(i), f"d{i}", "offer", **kept)
        log.outcome(float(i), f"d{i}", opt_out=float(i % every == 0))


@pytest.mark.parametrize("now", [0.2, 0.6])
def test_decisions_are_held_against_limits_they_were_made_under(now: float) -> None:
    log = Log(under(0.5))
    decided(log, 0, 600, 0.5, every=3)
    other = {"actor": "ada", "reason": "another limit"}
    log.row("problem", 600.0, {"version": 2, "problem": under(now).to_dict(), **other})
    tally = tallied(log)
    told = build_figures(tally, 600_000_000)["limits"]["opt_out"]
    assert (told["threshold"], told["pessimistic_cost"], told["observed_mean"], told["count"]) == (now, None, None, 0)
    decided(log, 600, 40, now, every=20)
    for event in log.events[-80:]:
        tally.take(event)
    figures = build_figures(tally, 640_000_000)
    told = figures["limits"]["opt_out"]
    assert (told["threshold"], told["pessimistic_cost"], told["observed_mean"]) == (now, 0.98 * now, 0.05)
    assert build_verdict(figures).answers[0].word == "Within limits"
    plain = {
        "version": 3,
        "problem": dataclasses.replace(under(now), action_names=["nothing", "offer", "digest"]).to_dict(),
    }
    log.row("problem", 640.0, {**plain, **other})
    tally.take(log.events[-1])
    assert build_figures(tally, 640_000_000)["limits"]["opt_out"] == told  # the limit is the same


def test_what_was_decided_before_a_limit_moved_counts_for_nothing_when_it_comes_after() -> None:
    log = Log(under(0.5))
    log.decision(1.0, "d0", "offer")
    log.row("problem", 2.0, {"version": 2, "problem": under(0.2).to_dict(), "actor": "ada", "reason": "less"})
    log.decision(3.0, "d1", "offer")
    log.outcome(4.0, "d0", opt_out=1.0)
    log.outcome(4.0, "d1", opt_out=0.0)
    told = build_figures(tallied(log), 4_000_000)["limits"]["opt_out"]
    assert (told["observed_mean"], told["count"]) == (0.0, 1)


def test_a_waiting_signal_without_a_window_holds_what_comes_after() -> None:
    problem = sw.Problem(
        action_names=["nothing", "offer"], safe_name="nothing", reward=sw.Reward("click"), limits=PROBLEM.limits
    )
    log = Log(problem)
    log.decision(1.0, "a", "offer")
    log.decision(2.0, "b", "offer")
    log.outcome(3.0, "b", click=1.0)
    told = build_figures(tallied(log), 10**12)
    assert told["reward"]["now"]["count"] == 0
    assert told["pending"][0] == {
        "signal": "click", "pending_count": 1, "buffered_count": 1, "late": 0,
        "oldest_s": 10**6 - 1.0, "window_s": None,
        "missing": None,
    }  # fmt: skip


def test_nothing_yet() -> None:
    told = build_figures(tallied(Log(PROBLEM)), 1_000_000)
    assert told["decisions"] == 0
    assert told["series"] == []
    assert told["limits"]["opt_out"] == {
        "threshold": 0.02, "at_most": True, "pessimistic_cost": None, "observed_mean": None, "low": 0.0,
        "high": 1.0, "count": 0,
        "open": 0, "promise": PROBLEM.promises["opt_out"],
        "least": 0.0, "most": 1.0, "shadow": None, "safe_cost_unknown": False,
    }  # fmt: skip
    assert build_figures(LogStatistics("none"), 1)["reward"] is None


def test_an_at_least_limit_in_units_of_its_own() -> None:
    problem = sw.Problem(
        action_names=["today", "new"], safe_name="today", reward=sw.Reward("margin", low=-10.0, high=30.0),
        limits={"stars": sw.Limit(sw.AtLeast(4.0), low=1.0, high=5.0, safe_bound=4.5, model="rates")},
    )  # fmt: skip
    log = Log(problem)
    for i in range(40):
        log.decision(
            i,
            f"d{i}",
            "new",
            limits={"stars": bound(4.1 + 0.01 * i, 4.0)},
        )
        log.outcome(i + 0.5, f"d{i}", margin=10.0, stars=5.0 if i % 2 else 4.0)
    told = build_figures(tallied(log), 50_000_000)
    limit = told["limits"]["stars"]
    assert (limit["at_most"], limit["threshold"], limit["observed_mean"]) == (False, 4.0, 4.5)
    assert limit["pessimistic_cost"] == pytest.approx(4.1)
    assert 1.0 < limit["low"] < 4.5 < limit["high"] < 5.0
    assert -10.0 < told["reward"]["now"]["low"] < 10.0 < told["reward"]["now"]["high"] < 30.0


def test_a_band_ends_where_the_evidence_against_an_average_is_two_over_delta() -> None:
    signal = sw.Reward("click")
    seen = RunningMean(50, 10.0)
    band = seen.interval(signal, 0.05)
    for end, etas in ((band.low, np.array(LOWER_ETAS)), (band.high, -np.array(UPPER_ETAS))):
        terms = np.array(LOG_WEIGHTS) + 10.0 * etas - 50.0 * np.log1p(np.expm1(etas) * end)
        assert np.logaddexp.reduce(terms) == pytest.approx(math.log(2.0 / 0.05), abs=1e-6)


def test_lately_is_the_newer_half() -> None:
    lately = RecentMean()
    for value in [0.0] * 1000 + [1.0] * 1000:
        lately.add(value)
    band = lately.interval(sw.Reward("click"), 0.05)
    assert 1000 <= band.outcomes <= 1500
    assert band.mean is not None
    assert band.mean > 0.65


def test_buckets_are_never_more_than_can_be_drawn() -> None:
    buckets, moments = TimeSeries(), [0, 10, 250, 900, 901, 90_000, 2_000_000]
    for moment in moments:
        bucket = buckets.at(moment * 1_000_000)
        bucket.count += 1
        bucket.actions["offer"] = bucket.actions.get("offer", 0) + 1
    rows = [one for one in buckets.buckets.values() if one.count]
    assert sum(one.count for one in rows) == len(moments)
    assert len(rows) <= MAX_BUCKETS
    assert buckets.width * MAX_BUCKETS > 2_000_000 * 1_000_000 >= buckets.width * MAX_BUCKETS // 2


def test_a_long_log_is_counted_as_it_would_be_anew() -> None:
    rng, log, due = np.random.default_rng(1), Log(PROBLEM), list[tuple[float, str, dict[str, float]]]()
    chosen, expected = [], []
    for i in range(3000):
        at = 1.0 + 0.05 * i
        due.sort()
        while due and due[0][0] <= at:
            when, key, values = due.pop(0)
            log.outcome(when, key, **values)
        action = "offer" if rng.random() < 0.5 else "nothing"
        log.decision(at, f"d{i:04}", action)
        chosen.append(action)
        clicked, late = float(rng.random() < 0.3), rng.random() < 0.1
        if rng.random() < 0.8:
            due.append((at + (11.0 if late else 8.0 * rng.random()), f"d{i:04}", {"click": clicked}))
            expected.append(0.0 if late else clicked)
        else:
            expected.append(0.0)
    for when, key, values in sorted(due):
        log.outcome(max(when, at), key, **values)
    log.tick(1000.0)
    tally, looks = LogStatistics("notes"), list[dict[str, Any]]()
    for i, event in enumerate(log.events):
        tally.take(event)
        if i % 1000 == 0:
            looks.append(build_figures(tally, event.at))  # looking changes nothing
    told = build_figures(tally, 10**9)
    by_action = {row["name"]: row["observed_mean"]["click"] for row in told["actions"]}
    for action in ("nothing", "offer"):
        values = [value for value, name in zip(expected, chosen, strict=True) if name == action]
        assert (by_action[action]["count"], by_action[action]["mean"]) == (len(values), pytest.approx(np.mean(values)))
    assert told["buffered_count"] == told["pending_count"] == 0
    assert tally.queue.dates.size < 3000  # what is counted is let go


def campaign(told: sw.Problem, signal: str, value: float) -> dict[str, Any]:
    """Return the figures of 200 decisions of which one in four is told of, and nothing else, while windows are open."""
    log = Log(told)
    for i in range(200):
        log.decision(1.0 + i, f"d{i}", "offer" if i % 2 else "nothing", limits=feared(**{signal: 0.01}))
        if i % 4 == 0:
            log.outcome(1.0 + i, f"d{i}", **{signal: value})
    return build_figures(tallied(log), 202_000_000)


def test_costs_that_are_told_count_at_once() -> None:
    limit = sw.Limit(0.02, safe_bound=0.0, window="7d", model="rates")
    told = campaign(dataclasses.replace(PROBLEM, limits={"opt_out": limit}), "opt_out", 1.0)
    seen = told["limits"]["opt_out"]
    assert (seen["observed_mean"], seen["count"], seen["open"]) == (0.25, 200, 199)
    assert 0.02 < 0.1 < seen["low"] < 0.25 < seen["high"] == 1.0
    assert [one["observed_mean"]["opt_out"]["mean"] for one in told["actions"]] == [
        0.5,
        None,
    ]  # of the other nothing was told
    assert told["series"][-1]["limits"]["opt_out"]["so_far"] == 0.25
    assert told["series"][0]["limits"]["opt_out"]["observed_mean"] == 1.0
    answer = build_verdict({**told, "mode": "live"}).answers[0]
    assert (answer.level, answer.word) == ("bad", "opt_out is over its limit")


def test_costs_from_below_that_are_told_count_at_once() -> None:
    limit = sw.Limit(sw.AtLeast(4.5), low=1.0, high=5.0, safe_bound=5.0, window="7d", model="rates")
    seen = campaign(dataclasses.replace(PROBLEM, limits={"stars": limit}), "stars", 1.0)["limits"]["stars"]
    assert (seen["observed_mean"], seen["open"]) == (4.0, 199)  # what is not told counts as 5
    assert seen["low"] == 1.0 < 4.0 < seen["high"] < 4.5


def test_what_is_settled_and_what_is_told_are_seen_together() -> None:
    """What is open dilutes nothing: what is settled is seen until what is told says more."""
    limit = sw.Limit(0.02, safe_bound=0.0, model="rates")
    settled, band = RunningMean(100, 10.0), RunningMean(100, 10.0).interval(limit, 0.05)
    assert compute_limit_interval(settled, RunningMean(), limit, 0.05) == band
    assert compute_limit_interval(settled, RunningMean(50, 0.0), limit, 0.05) == band
    little = compute_limit_interval(settled, RunningMean(900, 1.0), limit, 0.05)
    assert little == band
    much = compute_limit_interval(settled, RunningMean(100, 40.0), limit, 0.05)
    assert (much.mean, much.outcomes) == (0.25, 200)
    assert band.low < much.low == RunningMean(200, 50.0).interval(limit, 0.05).low < much.mean <= much.high
