"""A logistic limit is judged as a logistic one: the right form passes, another is found."""

import numpy as np
import pytest
from tests.chance import allowed

import stagewise as sw
from stagewise.launch.decision_log import Log
from stagewise.launch.doctor.doctor import ALPHA, CHECKS, TEST_COUNT
from stagewise.launch.doctor.findings import Finding, FindingCode, select_most_severe
from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.launch.statistics import fit_logistic

PROBLEM = sw.Problem(
    action_names=["today", "offer"],
    safe_name="today",
    context={"sends": (0, 20), "age": (18, 98)},
    reward=sw.Reward("click"),
    limits={"opt_out": sw.Limit(0.05, safe_bound=0.02, model="logistic")},
)


def log(seed: int, rows: int, bent: float = 0.0, slope: float = 0.9) -> dict[str, np.ndarray]:
    """Return a log whose opt-outs have log-odds that are linear in two numbers, or bent in one."""
    chance = np.random.default_rng([7, seed])
    sends, age, offer = chance.uniform(0, 20, rows), chance.uniform(18, 98, rows), chance.random(rows) < 0.5
    u, v = sends / 10 - 1, (age - 58) / 40
    means = 1.0 / (1.0 + np.exp(4.2 - slope * u + 0.4 * v - 0.6 * offer - bent * u * u))
    return {
        "action": np.where(offer, "offer", "today"), "sends": sends, "age": age,
        "click": (chance.random(rows) < 0.1) * 1.0, "opt_out": (chance.random(rows) < means) * 1.0,
    }  # fmt: skip


def judge(frame: dict[str, np.ndarray], problem: sw.Problem = PROBLEM) -> Finding:
    """Return the finding of the one check that is meant: the others take most of a doctor's time."""
    return select_most_severe(CHECKS["model_form"].run(LogProfile(Log.of(frame, problem)), ALPHA / TEST_COUNT))


@pytest.mark.parametrize("rows", [1_500, 12_000])
def test_the_right_form_is_not_contradicted(rows: int) -> None:
    found = [judge(log(seed, rows)).verdict for seed in range(20)]
    assert found.count("contradicts") <= allowed(20, 0.01)
    assert found.count("ok") >= 18


def test_another_form_is() -> None:
    found = judge(log(1, 40_000, bent=2.0))
    assert found.code is FindingCode.NOT_LINEAR
    assert (found.details["name"], found.details["form"]) == ("opt_out", "logistic")
    assert found.details["numbers"] == ["sends", "sends"] or found.details["decile"] is not None


def test_what_a_linear_form_cannot_have_a_logistic_one_may() -> None:
    linear = sw.Problem(
        action_names=PROBLEM.action_names, safe_name="today", context=dict(PROBLEM.ranges), reward=PROBLEM.reward,
        limits={"opt_out": sw.Limit(0.05, safe_bound=0.02, model="linear")},
    )  # fmt: skip
    frame = log(3, 40_000, slope=2.2)
    assert judge(frame, linear).code is FindingCode.NOT_LINEAR
    assert judge(frame).verdict == "ok"


def test_a_fit_exists_where_no_outcome_is_an_event() -> None:
    design = np.column_stack([np.ones(50), np.linspace(-1.0, 1.0, 50)])
    assert np.isfinite(fit_logistic(design, np.zeros(50))).all()
    means = 1.0 / (1.0 + np.exp(-design @ [-1.0, 0.5]))
    assert fit_logistic(np.tile(design, (400, 1)), np.tile(means, 400)) == pytest.approx([-1.0, 0.5], abs=1e-3)
