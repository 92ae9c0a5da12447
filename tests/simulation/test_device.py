"""What is made of runs that a GPU played, with a processor in its place: the same results, folders, certificates."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused
from tests.simulation.certified import FIXED, POLICY, certified, without_times

import stagewise as sw
from stagewise.engine.loop import Trace
from stagewise.problem.errors import ErrorCode
from stagewise.simulation.gpu import play_batches as cuda
from stagewise.simulation.run import RunSettings, play_run

FIELDS = ("regret", "reward", "cost", "max_cost", "violations", "optimum", "runs")
LIMITS = {"wear": 0.3, "yield": sw.AtLeast(-0.2)}
TWO = sw.LinearWorld(reward=[0.6, 0.8], cost=[[0.8, 0.6], [0.6, 0.0]], actions=FIXED.actions, noise=0.5)
PAIRS = {
    "one limit": (POLICY, FIXED),
    "a limit from below": (sw.LCLUCB(safe_action=POLICY.safe_action, threshold=LIMITS, noise=0.5), TWO),
}


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Let a processor play what a GPU would, and return which runs were played at once."""
    played: list[list[int]] = []

    def play(policy: Any, judge: Any, rounds: int, points: int, seed: int, runs: Any, audited: bool) -> Trace:
        settings = RunSettings(rounds, points, seed % 2**64, "cpu", audited, judge.limits.size)
        traces = [play_run(policy, judge, settings, run) for run in runs.tolist()]
        played.append(runs.tolist())
        return Trace(traces[0].ends, *(np.stack(column) for column in list(zip(*traces, strict=True))[1:]))

    monkeypatch.setattr(cuda, "play", play)
    return played


@pytest.mark.parametrize("name", PAIRS)
def test_its_runs_are_all_played_at_once_and_make_the_same_result(name: str, launches: list[list[int]]) -> None:
    told: dict[str, Any] = {"rounds": 60, "runs": 5, "record_points": 6, "seed": 2**63 + 1, "audit": True}
    device, host = (sw.simulate(*PAIRS[name], backend=backend, **told) for backend in ("cuda", "cpu"))
    assert launches == [[0, 1, 2, 3, 4]]
    assert device.audit is not None
    assert host.audit is not None
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(device, field), getattr(host, field))
    for field, values in host.audit.items():
        np.testing.assert_array_equal(device.audit[field], values)


def test_what_its_folder_holds_is_not_played_again(launches: list[list[int]], tmp_path: Path) -> None:
    told: dict[str, Any] = {"rounds": 60, "record_points": 6, "out": tmp_path, "executor": "cuda"}
    first = sw.simulate(POLICY, FIXED, runs=3, **told)
    again = sw.simulate(POLICY, FIXED, runs=3, **told)
    np.testing.assert_array_equal(first.regret, again.regret)
    assert not (tmp_path / "parts").exists()
    sw.simulate(POLICY, FIXED, runs=4, **told)
    assert launches == [[0, 1, 2], [0, 1, 2, 3]]


def test_a_family_is_refused(launches: list[list[int]]) -> None:
    with refused(sw.InvalidProblem, ErrorCode.UNSUPPORTED_BACKEND):
        sw.simulate(POLICY, sw.LinearWorldFamily(FIXED), rounds=60, runs=3, backend="cuda")


@pytest.mark.long
def test_a_certificate_says_the_same(launches: list[list[int]], tmp_path: Path) -> None:
    device, host = (certified(runs=50, rounds=30, stop_early=False, backend=backend) for backend in ("cuda", "cpu"))
    assert launches == [[0], list(range(50))]  # one round to compile, whose time is told apart
    for name in ("verdict", "violations", "coverage", "margins", "regret", "first_near_optimal_round"):
        assert without_times(device)[name] == without_times(host)[name]
    device.save(tmp_path)
    assert sw.verify_certificate(tmp_path, replay_fraction=1.0).faults == ()
    assert sw.verify_certificate(tmp_path, replay_fraction=1.0, backend="cpu").faults == ()
