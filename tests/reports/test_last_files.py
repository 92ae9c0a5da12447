"""Results, certificates and agents that an earlier stagewise wrote: read, or refused with what to do about it.

All were written by (`simulate` and `certify` of the same days):

    policy = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
    world = sw.ArmsWorld(reward=[0.1, 0.7], cost=[0.0, 0.5])
    sw.simulate(policy, world, rounds=20, runs=2, out="result", audit=True, backend="python")
    sw.certify(policy, world, rounds=10, runs=4, out="certificate", backend="python")
    agent = sw.Agent(policy, seed=1); three rounds of reward 0.5 and cost 0.1; agent.save("agent.json")
"""

import shutil
from pathlib import Path

import numpy as np
from tests.problem.refusal import refused

import stagewise as sw
from stagewise import InvalidFile

GOLDEN = Path(__file__).parents[1] / "golden"
POLICY = sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.0), threshold=0.2)
WORLD = sw.ArmsWorld(reward=[0.1, 0.7], cost=[0.0, 0.5])


def test_a_result_is_read_and_says_what_is_played_today() -> None:
    result = sw.Result.load(GOLDEN / "result_0_1_0")
    today = sw.simulate(POLICY, WORLD, rounds=20, runs=2, audit=True, progress=False, backend="python")
    assert np.array_equal(result.violations, today.violations)
    assert np.allclose(result.regret, today.regret, rtol=1e-12)
    assert result.audit is not None
    assert set(result.audit) == set(today.audit or {})


def test_a_result_from_before_bounds_is_refused_with_what_to_do() -> None:
    with refused(InvalidFile, "result_unbounded_0_1_0", "'bound'", "play its runs again"):
        sw.Result.load(GOLDEN / "result_unbounded_0_1_0")


def test_a_certificate_is_read_and_its_runs_are_played_again(tmp_path: Path) -> None:
    shutil.copyfile(GOLDEN / "certificate_0_1_0.json", tmp_path / "certificate.json")
    found = sw.verify(tmp_path, seed=0, part=1.0)
    assert found.stands
    assert found.runs == 4


def test_a_certificate_that_lacks_what_is_asked_today_is_refused_with_what_to_do(tmp_path: Path) -> None:
    shutil.copyfile(GOLDEN / "certificate_first_0_1_0.json", tmp_path / "certificate.json")
    with refused(InvalidFile, "mixes", "certify again"):
        sw.Certificate.load(tmp_path)
    (tmp_path / "certificate.json").write_text('{"format": "stagewise-certificate", "version": 0}', encoding="utf-8")
    with refused(InvalidFile, "stagewise-certificate 1", "certify again"):
        sw.Certificate.load(tmp_path)


def test_an_agent_from_before_is_refused_with_what_to_do() -> None:
    with refused(InvalidFile, "version 1", "reads versions 3 and 4", "learn_log"):
        sw.Agent.load(GOLDEN / "agent_first_0_1_0.json")
