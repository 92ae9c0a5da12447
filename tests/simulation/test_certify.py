"""Certificates: what they support, what they refute, and what they refuse."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused
from tests.simulation.certified import FAMILIES, FIXED, POLICY, ROUNDS, SAFE, TARGETS, certified, drawn, without_times

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.simulation.certify import compute_batch_size


@pytest.mark.compiled
def test_an_honest_policy_is_supported_before_all_runs_are_played() -> None:
    certificate = certified(runs=20_000)
    found = certificate.content["violations"]
    assert certificate.holds
    assert found["runs"] < 20_000
    assert found["anytime"][1] <= 0.05
    assert found["exact"] is None
    assert len(certificate.content["coverage"]) == 2
    assert certificate.content["optimism"] is not None


ALONE: dict[str, Any] = {
    "mean_cost_bound": None,
    "check_assumptions": False,
}  # the paper's algorithm, which nothing saves


def test_the_runs_are_those_that_simulate_plays() -> None:
    certificate = certified(runs=60, stop_early=False)
    result = sw.simulate(POLICY, FIXED, rounds=ROUNDS, runs=60, record_points=20, audit=True)
    assert result.audit is not None
    found = certificate.content
    assert found["violations"]["occurrences"] == (result.violations > 0).sum()
    assert [one["occurrences"] for one in found["coverage"]] == (result.audit["missed"] > 0).sum(axis=0).tolist()
    assert found["regret"]["quantiles"]["0.5"] == np.median(result.regret, axis=0).tolist()
    assert found["margins"]["cost"]["quantiles"]["0"] == pytest.approx(float((0.3 - result.max_cost).min()), abs=1e-15)
    assert found["violations"]["exact"] is not None


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("policy", "world"),
    [
        (sw.LCLUCB(safe_action=SAFE, threshold=0.3, noise=0.05, norm_bound=0.1, **ALONE), FIXED),
        (
            sw.LCLUCB(safe_action=SAFE, threshold=0.3, noise=0.5, **ALONE),
            sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.RaySet(TARGETS), noise=10.0),
        ),
        (sw.LinUCB(safe_action=SAFE, threshold=0.3, noise=0.5), FIXED),
        (sw.DOSLB(safe_action=SAFE, threshold=0.3, noise=0.5), FIXED),
    ],
    ids=["radius ten times too small", "noisier world", "LinUCB", "DOSLB"],
)
def test_what_must_fail_is_refuted(policy: Any, world: Any) -> None:
    certificate = certified(policy, world)
    assert certificate.verdict == "refuted"
    assert not certificate.holds
    assert certificate.content["violations"]["anytime"][0] > 0.05


@pytest.mark.compiled
def test_broken_grounds_are_told_even_where_no_limit_breaks() -> None:
    policy = sw.LCLUCB(safe_action=SAFE, threshold=0.3, noise=[0.01, 0.5], norm_bound=[0.1, 1.0])
    certificate = certified(policy, stop_early=False, runs=400)
    assert certificate.verdict == "supported"
    assert certificate.content["coverage_verdict"] == "refuted"
    assert not certificate.holds
    broken = [one["assumption"] for one in certificate.content["assumptions"] if not one["kept"]]
    assert any("noise" in words for words in broken)
    assert any("long" in words for words in broken)


def test_too_few_runs_leave_it_undecided_and_say_how_many_would_do() -> None:
    certificate = certified(runs=30)
    assert certificate.verdict == "undecided"
    assert certificate.content["violations"]["runs_needed"] > 30


@pytest.mark.long
@pytest.mark.parametrize("name", FAMILIES)
def test_a_certificate_does_not_depend_on_the_workers(name: str) -> None:
    alone = certified(*FAMILIES[name], runs=40, rounds=5)
    shared = certified(*FAMILIES[name], runs=40, rounds=5, executor="processes:2")
    assert without_times(alone) == without_times(shared)


def test_drawn_policies_and_worlds_are_as_good_as_drawn_worlds() -> None:
    function, pairs = certified(POLICY, lambda run: drawn(run)[1], runs=60), certified(None, drawn, runs=60)
    assert function.content["batches"] == pairs.content["batches"]


def test_by_hand_nothing_is_said_of_intervals() -> None:
    certificate = certified(runs=20, rounds=30, backend="python")
    assert certificate.content["coverage"] == []


def test_a_family_of_worlds_is_a_function_of_seed_and_run() -> None:
    family = sw.LinearWorldFamily(FIXED, seed=4)
    assert np.array_equal(family(7).parameters, sw.LinearWorldFamily(FIXED, seed=4)(7).parameters)
    assert not np.array_equal(family(7).parameters, family(8).parameters)
    assert not np.array_equal(family(7).parameters, sw.LinearWorldFamily(FIXED, seed=5)(7).parameters)


def test_batches_are_neither_too_many_nor_too_long() -> None:
    assert compute_batch_size(10_000, 100_000, "cpu") == 1000
    assert compute_batch_size(1_000_000, 100_000, "cpu") == 20
    assert compute_batch_size(10, 3, "cpu") == 1


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"rounds": 0}, ErrorCode.OUT_OF_RANGE),
        ({"runs": -1}, ErrorCode.OUT_OF_RANGE),
        ({"confidence": 1.0}, ErrorCode.OUT_OF_RANGE),
        ({"delta": float("nan")}, ErrorCode.NOT_FINITE),
        ({"policy": None}, ErrorCode.MISSING_VALUE),
        ({"policy": sw.LinUCB(noise=0.1)}, ErrorCode.MISSING_VALUE),
        ({"executor": "cuda"}, ErrorCode.BACKEND_UNAVAILABLE),
        ({"seed": -1}, ErrorCode.OUT_OF_RANGE),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any], part: str) -> None:
    with refused(sw.InvalidProblem, part):
        certified(**settings)


def test_a_family_has_one_number_of_thresholds() -> None:
    def uneven(run: int) -> tuple[Any, Any]:
        if run < 3:
            return POLICY, FIXED
        world = sw.LinearWorld(reward=[0.6, 0.8], cost=np.eye(2), actions=sw.RaySet(TARGETS), noise=0.5)
        return sw.LCLUCB(safe_action=SAFE, threshold=[0.3, 0.4], noise=0.5), world

    for runs in (10, 200):  # within a batch, and between two
        with refused(sw.InvalidProblem, ErrorCode.WORLD_MISMATCH):
            certified(None, uneven, runs=runs)


def test_limits_from_below_have_margins_too() -> None:
    world = sw.LinearWorld(reward=[0.6, 0.8], cost=[[0.8, 0.6], [0.6, 0.0]], actions=sw.RaySet(TARGETS), noise=0.5)
    limits = {"wear": 0.3, "yield": sw.AtLeast(-0.2)}
    policy = sw.LCLUCB(safe_action=SAFE, threshold=limits, noise=0.5)
    certificate = certified(policy, world, runs=50)
    result = sw.simulate(policy, world, rounds=ROUNDS, runs=50)
    least = certificate.content["margins"]["yield"]["quantiles"]["0"]
    assert least == pytest.approx(float((result.max_cost[:, 1] + 0.2).min()))
    assert [one["side"] for one in certificate.content["thresholds"]] == ["at most", "at least"]


def test_a_place_that_cannot_hold_it_is_refused_before_anything_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    monkeypatch.setattr("stagewise.simulation.certify.play_until_clear", lambda *_: pytest.fail("it was played"))
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with refused(sw.InvalidFile, ErrorCode.FILE_NOT_WRITABLE):
            certified(out=place)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"
