"""A declared drift beside a log: whether its limit can be learned at that traffic, with the least bound as a number."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.launch.doctor.honest import NAMES, drawn

import stagewise as sw
from stagewise.launch.doctor.findings import Finding, FindingCode
from stagewise.problem.timing import DAY, parse_drift

ROWS = 6_000


def build(drift: str | None, value: float = 0.05) -> sw.Problem:
    limits = {"opt_out": sw.Limit(value, safe_bound=0.01, drift=drift, window="2d")}
    return sw.Problem(action_names=NAMES, safe_name="today", reward=sw.Reward("click"), limits=limits)


def check(drift: str | None, rise: float = 1.0) -> Finding:
    rng = np.random.default_rng(5)
    log = drawn(rng, ROWS, at=1.7e9 + np.arange(ROWS) * DAY / 200)
    late = np.where(np.arange(ROWS) > ROWS // 2, rise, 1.0)
    log["opt_out"] = (rng.random(ROWS) < 0.01 * late) * 1.0
    return sw.check_log(log, build(drift))["drift"]


@pytest.mark.parametrize(
    ("drift", "code"), [("0.003/30d", FindingCode.DRIFT_LEARNABLE), ("0.5/30d", FindingCode.DRIFT_TOO_FAST)]
)
def test_the_least_bound_that_can_be_had_is_compared_with_the_limit(drift: str, code: FindingCode) -> None:
    finding = check(drift)
    assert finding.code == code
    assert finding.details["limit"] == pytest.approx(0.05)
    assert (finding.details["least"] <= 0.05) == (code == FindingCode.DRIFT_LEARNABLE)
    assert finding.message


def test_a_mean_that_may_move_is_no_finding() -> None:
    assert check(None, rise=4.0).code == FindingCode.MEAN_DRIFTED
    assert check("0.003/30d", rise=4.0).code == FindingCode.DRIFT_LEARNABLE


def test_the_least_bound_is_that_of_the_theory() -> None:
    """The formula's examples: 700 plays a day, outcomes after 7 days, a rate of .008."""
    expected = {0.0001: 0.0135, 0.0002: 0.0154, 0.0005: 0.0198}
    for slope, least in expected.items():
        modulus = parse_drift(f"{slope}/1d", "a limit")
        assert modulus is not None
        assert modulus.compute_least_bound(0.008, 700 / DAY, 7 * DAY, 14.0) == pytest.approx(least, abs=3e-4)


def draw_months(rise: float, rows: int = 180_000) -> dict[str, Any]:
    """Return a log of six months in which the opt-outs of "offer" rise from 0.8 % by so much."""
    rng = np.random.default_rng(1)
    log = drawn(rng, rows, at=1.7e9 + np.arange(rows) * 180 * DAY / rows)
    moved = 0.008 + rise * np.arange(rows) / rows
    log["opt_out"] = (rng.random(rows) < np.where(log["action"] == "offer", moved, 0.008)) * 1.0
    return log


def test_a_drift_is_proposed_from_months_with_its_least_bound_and_its_reason() -> None:
    report = sw.check_log(draw_months(0.012), build(None, value=0.03))
    proposal, rates = report.drift_proposals["opt_out"], report.monthly_rates["opt_out"]
    offers = [one for one in rates if one.action == "offer"]
    truth = [0.008 + 0.012 * (month + 0.5) / 6 for month in range(6)]
    assert len(offers) == 6
    assert all(one.low <= mean <= one.high for one, mean in zip(offers, truth, strict=True))
    modulus = parse_drift(proposal.drift, "a limit")
    assert modulus is not None
    assert modulus.slope >= 0.012 / (180 * DAY)  # no less than the true slope
    assert (proposal.is_shown, proposal.is_learnable, proposal.least_bound <= 0.03) == (True, True, True)
    assert proposal.drift in str(report)
    assert report["drift"].details["proposed"] == proposal.drift
    assert report.to_dict()["drift_proposals"]["opt_out"]["drift"] == proposal.drift
    panel = next(axes for axes in report.plot().axes if axes.get_title() == "opt_out by month")
    drawn_means = {line.get_label(): line.get_ydata() for line in panel.lines if line.get_label() in NAMES}
    assert {name: list(means) for name, means in drawn_means.items()} == {
        name: [one.mean for one in rates if one.action == name] for name in NAMES
    }
    for name, band in zip(NAMES, panel.collections, strict=True):  # only that of the action that moved fastest is wide
        ends = ("low", "high") if name == proposal.movement.action else ("mean",)
        drawn_ends = {getattr(one, end) for one in rates if one.action == name for end in ends}
        assert drawn_ends == set(band.get_paths()[0].vertices[:, 1])
    assert (
        sw.check_log(draw_months(0.012), build(proposal.drift, value=0.03))["drift"].code == FindingCode.DRIFT_LEARNABLE
    )


def test_a_proposed_problem_declares_a_drift_where_the_log_shows_one(tmp_path: Path) -> None:
    for rise, is_declared in ((0.0, False), (0.03, True)):
        report = sw.check_log(
            draw_months(rise), limits={"opt_out": 0.05}, action="action", reward="click", safe="today"
        )
        (tmp_path / "problem.toml").write_text(report.to_toml())
        assert sw.Problem.load(tmp_path / "problem.toml").to_dict() == report.problem.to_dict()
        assert (report.problem.limits["opt_out"].drift is not None) == is_declared
        assert "/30d" in report.to_toml()  # the drift, or the comment that names it
    paid = sw.check_log(draw_months(0.03), limits={"opt_out": 0.05}, safe="today", proposal_fraction=None)
    assert paid.problem.limits["opt_out"].drift is None  # it would be chosen from rows that are learned


def test_a_drift_that_no_limit_allows_is_said_with_its_least_bound() -> None:
    proposal = sw.check_log(draw_months(0.012, 20_000), build(None, value=0.02)).drift_proposals["opt_out"]
    assert (proposal.is_learnable, proposal.least_bound > 0.02) == (False, True)
    log = draw_months(0.012, 20_000)
    del log["at"]
    assert sw.check_log(log, build(None, value=0.02)).drift_proposals == {}
