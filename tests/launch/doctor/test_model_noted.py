"""What a proposal takes for shown, a check of the same log does not pass over: at least it is noted."""

import numpy as np
import pytest

import stagewise as sw
from stagewise.launch.doctor.findings import FindingCode

SAFE = {"opt_out": sw.Limit(0.03, safe_bound=0.012, model="rates")}
ONE_RATE = sw.Problem(
    action_names=["today", "offer"],
    safe_name="today",
    context={"sends": (0, 60)},
    reward=sw.Reward("click"),
    limits=SAFE,
)


def log(seed, rows=12_000, slope=0.65, timed=True):
    chance = np.random.default_rng([81, seed])
    sent, sends = chance.integers(0, 2, rows), chance.integers(0, 61, rows)
    times = {"at": 1.7e9 + np.sort(chance.uniform(0.0, 3e6, rows))} if timed else {}
    return times | {
        "action": np.array(["today", "offer"], dtype=object)[sent],
        "sends": sends,
        "click": (chance.random(rows) < 0.05) * 1,
        "opt_out": (chance.random(rows) < 0.01 * (1.0 + slope * (sends - 30) / 30)) * 1,
    }


@pytest.mark.long
@pytest.mark.parametrize("timed", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_limit_that_a_proposal_makes_linear_is_not_passed_over_by_a_check(timed):
    verdicts = []
    for seed in range(5):
        frame = log(seed, timed=timed)
        if sw.check_log(frame, limits={"opt_out": 0.03}, safe="today").problem.limits["opt_out"].model == "linear":
            verdicts.append(sw.check_log(frame, ONE_RATE)["model_form"].verdict)
    assert len(verdicts) >= 2
    assert "ok" not in verdicts
    assert "note" in verdicts


def test_where_it_is_certain_it_matters_who_gets_the_action():
    found = sw.check_log(log(1, 60_000, 0.9), ONE_RATE)["model_form"]
    assert found.verdict == "contradicts"
    assert found.code is FindingCode.RATE_DEPENDS_ON_NUMBER
    assert found.details["number"] == "sends"


def test_a_column_of_text_that_a_proposal_divides_by_is_noted():
    chance, rows = np.random.default_rng(2), 12_000
    frame = log(2, rows, 0.0)
    frame["plan"] = np.array(["free", "paid"], dtype=object)[chance.integers(0, 2, rows)]
    rate = np.where(frame["plan"] == "paid", 0.0145, 0.0062)
    frame["opt_out"] = (chance.random(rows) < rate) * 1
    made = sw.check_log(frame, limits={"opt_out": 0.03}, safe="today")
    assert made.problem.limits["opt_out"].by == "plan"
    assert sw.check_log(frame, ONE_RATE)["segments"].verdict == "note"
