"""Logs in which nothing is wrong raise no alarm, also those that a check could take for faulty; and what is noted."""

import numpy as np
import pytest
from tests.chance import allowed
from tests.launch.doctor.honest import HONEST, drawn, events_only, of_our_own, problem, told_less, whole_days

import stagewise as sw
from stagewise.launch.decision_log import Log
from stagewise.launch.doctor.doctor import ALPHA
from stagewise.launch.doctor.findings import FindingCode
from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.launch.statistics import compute_excess_p_values, freedman_bound


def alarms(frame, asked):
    return [str(finding) for finding in sw.check_log(frame, asked).findings if finding.verdict == "contradicts"]


@pytest.mark.parametrize("make", HONEST, ids=lambda make: make.__name__)
@pytest.mark.parametrize(
    ("logs", "rows"), [pytest.param(4, 4_000, id="few"), pytest.param(100, 10_000, id="many", marks=pytest.mark.slow)]
)
def test_an_honest_log_raises_no_alarm(make, logs, rows):
    found = [alarms(*make(np.random.default_rng([41, run]), rows)) for run in range(logs)]
    wrong = [each for each in found if each]
    print(f"{make.__name__}: {len(wrong)} of {logs} logs raise an alarm, {allowed(logs, ALPHA)} may")  # pytest -rP
    assert len(wrong) <= allowed(logs, ALPHA), wrong


@pytest.mark.long
@pytest.mark.parametrize(
    ("logs", "rows"), [pytest.param(2, 500, id="few"), pytest.param(20, 1_500, id="many", marks=pytest.mark.slow)]
)
def test_the_log_of_an_agent_raises_no_alarm(logs, rows):
    """With the chances of all actions, with `propensity` only, and with none."""
    wrong = []
    for run in range(logs):
        told, asked = of_our_own(np.random.default_rng([42, run]), rows)
        assert len(set(told["action"].tolist())) > 1
        wrong += [each for frame in told_less(told) if (each := alarms(frame, asked))]
    print(f"{len(wrong)} of {3 * logs} logs of agents raise an alarm, {allowed(3 * logs, ALPHA)} may")  # pytest -rP
    assert len(wrong) <= allowed(3 * logs, ALPHA), wrong


def test_a_number_that_foretells_well_is_noted_and_stays_in_a_proposal():
    """Past purchases, with a mean that is nearly linear until it is full: better than a linear mean could be."""
    chance = np.random.default_rng(1)
    bought = np.minimum(chance.poisson(chance.gamma(0.15, 4.0, 6_000)), 30)
    frame = drawn(chance, 6_000, bought=bought)
    frame["click"] = (chance.random(6_000) < np.minimum(0.01 + 0.12 * bought, 0.8)) * 1.0
    found = sw.check_log(frame, problem({"bought": (0, 30)}))["leakage"]
    assert found.verdict == "note"
    assert found.code is FindingCode.PREDICTS_WELL
    assert "bought" in sw.check_log(frame, limits={"opt_out": 0.03}).problem.context


def test_copies_are_found_where_times_are_coarse_too():
    told, asked = whole_days(np.random.default_rng(2), 20_000)
    told["age"] = np.random.default_rng(3).uniform(18.0, 68.0, 20_000).round(3)
    assert sw.check_log(told, asked)["duplicates"].verdict != "contradicts"
    twice = {name: np.concatenate([column, column[:800]]) for name, column in told.items()}
    assert sw.check_log(twice, asked)["duplicates"].verdict == "contradicts"
    several = told | {"session_id": np.arange(len(told["click"])) // 3}  # several rows of one session are no copies
    assert sw.check_log(several, asked)["duplicates"].verdict == "ok"


def test_an_action_that_came_too_often_is_found_and_one_that_came_too_seldom_only_where_all_chances_are_told():
    chance = np.random.default_rng(4)
    frame, sent = drawn(chance, 8_000), 1.0 / 3.0
    asked = problem({})
    uneven = np.where(np.arange(8_000) % 2 == 0, 0.9, 1.1)  # so that no action has one chance only
    for factor, verdict in ((1.0, "ok"), (0.5, "contradicts"), (2.0, "ok")):
        found = sw.check_log({**frame, "propensity": np.minimum(factor * sent * uneven, 1.0)}, asked)
        assert found["propensities"].verdict == verdict, factor
    shares = {"today": 0.5, "offer": 0.3, "digest": 0.2}
    told = {f"probability.{name}": np.full(8_000, share) for name, share in shares.items()}
    assert sw.check_log({**frame, **told}, asked)["propensities"].verdict == "contradicts"


def test_chances_of_draws_that_follow_what_came_before_hold():
    """A coin that is fairer the more often it fell: both bounds, at a level that can be counted."""
    chance, found = np.random.default_rng(6), np.zeros(2)
    for _ in range(400):
        chances, did, heads = np.empty(200), np.empty(200), 1.0
        for row in range(200):
            chances[row] = 0.02 + 0.5 * heads / (row + 2.0)
            did[row] = chance.random() < chances[row]
            heads += did[row]
        spread = float((chances * (1.0 - chances)).sum())
        found += [
            compute_excess_p_values((did / chances)[:, None])[0] <= 0.05,
            float(freedman_bound(float((did - chances).sum()), spread, 1.0, 200)) <= 0.05,
        ]
    assert (found <= allowed(400, 0.05)).all(), found


def test_an_outcome_that_did_not_come_counts_as_the_window_says():
    told, asked = events_only(np.random.default_rng(7), 8_000)
    profile = LogProfile(Log.of(told, asked))
    late = told["at"] + 7 * 86_400.0 > told["at"].max()
    assert profile.values[late, 1].tolist().count(0.0) == 0
    assert np.isnan(profile.values[late, 1]).all()
    assert set(profile.values[~late, 1].tolist()) == {0.0, 1.0}
    rates = [profile.signals[1].rate(profile.log.actions == action, 0.5).mean for action in range(3)]
    assert rates == pytest.approx([0.01, 0.015, 0.02], abs=0.008)
    details = sw.check_log(told, asked)["missing_values"].details
    assert details["open_rows"] > 0
    assert details["window"] == "1d"
    cheap = sw.Problem(action_names=asked.action_names, safe_name="today", context=asked.context, reward=asked.reward,
                       limits={"opt_out": sw.Limit(0.03, safe_bound=0.0005, window="7d", model="rates")})  # fmt: skip
    assert sw.check_log(told, cheap)["declared_safe"].verdict == "contradicts"


def test_a_window_that_is_longer_than_the_log_is_said():
    told, asked = events_only(np.random.default_rng(8), 2_000)
    told["at"] = 1.7e9 + (told["at"] - 1.7e9) / 100.0
    assert sw.check_log(told, asked)["missing_values"].code is FindingCode.ALL_WINDOWS_OPEN
    whole = {**told, **{name: np.nan_to_num(told[name]) for name in ("click", "opt_out")}}
    assert sw.check_log(whole, asked)["missing_values"].verdict == "ok"  # all is there, so it was cut later
    del told["at"]
    found = sw.check_log(told, asked)["missing_values"]
    assert found.code is FindingCode.MISSING_COUNTS_AS_DEFAULT
    assert not found.details["has_times"]


@pytest.mark.long
def test_a_proposal_is_held_against_all_rows_and_its_safe_rate_against_those_it_has_not_seen():
    """All rates are four times as high in the later half."""
    chance, rows = np.random.default_rng(9), 40_000
    late = np.arange(rows) >= rows // 2
    frame = drawn(chance, rows, at=1.7e9 + 60.0 * np.arange(rows), age=chance.uniform(18.0, 90.0, rows))
    assert not sw.check_log(frame, limits={"opt_out": 0.05}).contradicted
    frame["opt_out"] = (chance.random(rows) < np.where(late, 0.04, 0.01)) * 1.0
    found = sw.check_log(frame, limits={"opt_out": 0.05})
    assert found["drift"].verdict == "contradicts"
    assert found["declared_safe"].verdict == "contradicts"
    assert found["declared_safe"].in_holdout
    assert found.log.rows == rows
    assert sw.check_log(frame, limits={"opt_out": 0.05}, proposal_fraction=None)["drift"].verdict == "contradicts"
