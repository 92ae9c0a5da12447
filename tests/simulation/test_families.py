"""Run i is played in world i of a family, wherever a world may stand: alone, among others, kept and continued."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused
from tests.simulation.certified import FAMILIES, FIXED, POLICY, SAFE, TARGETS, drawn

import stagewise as sw
from stagewise.problem.errors import ErrorCode
from stagewise.simulation import simulate as jobs

FIELDS = ("regret", "reward", "cost", "max_cost", "violations", "optimum")
DRAWN = {name: pair for name, pair in FAMILIES.items() if name != "fixed"}


def played(name: str, **settings: Any) -> sw.Result:
    given = {"rounds": 100, "runs": 4, "record_points": 10, "seed": 3, "progress": False}
    return sw.simulate(*DRAWN[name], **(given | settings))


def assert_same(one: sw.Result, other: sw.Result) -> None:
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field))


@pytest.mark.parametrize("name", DRAWN)
def test_every_run_is_the_run_of_its_own_world(name: str) -> None:
    result, (policy, family) = played(name), DRAWN[name]
    for run in range(4):
        found = family(run)
        own = found if isinstance(found, tuple) else (policy, found)
        alone = sw.simulate(*own, rounds=100, runs=[run], record_points=10, seed=3)
        for field in FIELDS:
            np.testing.assert_array_equal(getattr(result, field)[run], getattr(alone, field)[0])
    assert not np.array_equal(result.optimum[0], result.optimum[1])


@pytest.mark.long
@pytest.mark.parametrize("name", DRAWN)
def test_a_family_does_not_depend_on_the_workers(name: str) -> None:
    assert_same(played(name), played(name, executor="processes:2"))


def test_a_family_is_told_in_the_manifest() -> None:
    assert played("sphere").manifest["world"]["family"] == "random-sphere"
    assert played("function").manifest["world"]["name"].endswith("drawn")


def test_limits_that_each_run_has_of_its_own_are_told() -> None:
    def of_its_own(run: int) -> tuple[Any, Any]:
        return sw.LCLUCB(safe_action=SAFE, threshold=0.3 + 0.1 * run, noise=0.5), FIXED

    result = sw.simulate(None, of_its_own, rounds=50, runs=3, audit=True)
    limits = [one["cost"] for one in result.manifest["thresholds_of_runs"]]
    assert limits == pytest.approx([0.3, 0.4, 0.5])
    assert result.audit is not None
    np.testing.assert_allclose(result.audit["margin"][:, 0], np.array(limits) - result.max_cost[:, 0], atol=1e-15)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the numbers of the runs that are played from now on."""
    calls: list[int] = []
    play = jobs.play

    def counting(*task: Any) -> Any:
        calls.extend(task[2])
        return play(*task)

    monkeypatch.setattr(jobs, "play", counting)
    return calls


def test_a_family_that_describes_itself_is_played_on_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played("sphere", runs=2, out=tmp_path)
    calls = counted(monkeypatch)
    assert_same(played("sphere", out=tmp_path), played("sphere"))
    assert calls == [2, 3, 0, 1, 2, 3]
    other = sw.LinearWorldFamily(FIXED, seed=5)
    with refused(sw.InvalidFile, ErrorCode.FILE_EXISTS):
        sw.simulate(POLICY, other, rounds=100, runs=4, record_points=10, seed=3, out=tmp_path)


def test_nothing_is_taken_from_a_folder_for_worlds_that_no_file_can_tell_apart(tmp_path: Path) -> None:
    """Both functions have the same name, and draw other worlds."""
    for world in (FIXED, sw.LinearWorld(reward=[0.0, 1.0], cost=[1.0, 0.0], actions=sw.RaySet(TARGETS), noise=0.5)):
        result = sw.simulate(POLICY, lambda run, world=world: world, rounds=50, runs=2, out=tmp_path)
        assert_same(result, sw.simulate(POLICY, world, rounds=50, runs=2))
        assert_same(sw.Result.load(tmp_path), result)
    assert not (tmp_path / "parts").exists()


@pytest.mark.parametrize(
    ("policy", "world", "part"),
    [
        (None, FIXED, ErrorCode.MISSING_VALUE),
        (POLICY, lambda run: 1 / run, ErrorCode.CALLBACK_FAILED),
        (POLICY, lambda run: None, ErrorCode.WRONG_TYPE),
        (POLICY, sw.LinearWorld, ErrorCode.WRONG_TYPE),
        (None, lambda run: (POLICY, FIXED, 3), ErrorCode.MISSING_VALUE),
    ],
)
def test_what_is_no_family_is_refused(policy: Any, world: Any, part: str) -> None:
    with refused(sw.InvalidProblem, part):
        sw.simulate(policy, world, rounds=10)


def test_one_folder_for_a_result_that_was_audited(tmp_path: Path) -> None:
    result = sw.simulate(None, drawn, rounds=50, runs=3, audit=True, out=tmp_path)
    loaded = sw.Result.load(tmp_path)
    assert result.audit is not None
    assert loaded.audit is not None
    assert set(loaded.audit) == set(result.audit)
    for name, values in result.audit.items():
        np.testing.assert_array_equal(loaded.audit[name], values)
