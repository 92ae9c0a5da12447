"""A new policy is one file and its export: files, commands, loops and certificates know it from then on."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.cli.spec import read
from stagewise.policies.lclucb import LCLUCB
from stagewise.simulation.compiled import plays

SETTINGS: dict[str, Any] = {"safe_action": sw.SafeAction(features=np.zeros(2)), "threshold": 0.3, "noise": 0.1}
WORLD = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.Rays(np.eye(2)), noise=0.1)
FILE = """
[simulation]
rounds = 5
[world]
kind = "linear"
reward = [0.6, 0.8]
cost = [0.8, 0.6]
noise = 0.1
actions = { kind = "rays", features = [[1.0, 0.0], [0.0, 1.0]] }
[policy]
kind = "Timid"
threshold = 0.3
noise = 0.1
[policy.safe_action]
features = [0.0, 0.0]
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Timid(LCLUCB):
    """LC-LUCB whose costs are taken twice as uncertain as they are."""

    cost_scale: float = field(init=False, default=2.0)


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put the policy into a file of its own, and into the exports."""
    module = ModuleType("stagewise.policies.timid")
    module.__dict__["Timid"] = Timid
    monkeypatch.setattr(Timid, "__module__", module.__name__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(sw.__dict__["_HOMES"], "Timid", "policies.timid")
    monkeypatch.setattr(sw, "Timid", Timid, raising=False)
    return Timid


def test_an_agent_of_it_is_saved_and_goes_on(exported: Any, tmp_path: Path) -> None:
    agent = sw.Agent(exported(**SETTINGS))
    agent.learn(agent.decide(np.eye(2)), reward=0.1, cost=0.05)
    agent.save(tmp_path / "agent.json")
    other = sw.Agent.load(tmp_path / "agent.json")
    assert type(other.policy) is Timid
    assert np.array_equal(other.decide(np.eye(2)).action, agent.decide(np.eye(2)).action)


def test_a_file_names_it(exported: Any, tmp_path: Path) -> None:
    path = tmp_path / "timid.toml"
    path.write_text(FILE, encoding="utf-8")
    assert type(read(path).policy) is exported


def test_the_one_loop_plays_it_and_it_keeps_its_promises(exported: Any) -> None:
    policy = exported(**SETTINGS)
    assert plays(policy, WORLD)
    hand, compiled = (
        sw.simulate(policy, WORLD, rounds=30, backend=backend, progress=False) for backend in ("python", "cpu")
    )
    assert np.array_equal(hand.regret, compiled.regret)
    bold = sw.simulate(LCLUCB(**SETTINGS), WORLD, rounds=30, progress=False)
    assert hand.regret[0, -1] > bold.regret[0, -1]
    certificate = sw.certify(policy, WORLD, rounds=20, runs=3, backend="python", progress=False)
    assert certificate.content["policy"]["kind"] == "Timid"
    assert "Corollary 7" in str(certificate.content)


def test_without_its_export_nobody_knows_it(tmp_path: Path) -> None:
    path = tmp_path / "timid.toml"
    path.write_text(FILE, encoding="utf-8")
    with pytest.raises(sw.InvalidFile, match="'Timid'; it must be one of 'AlwaysSafe'"):
        read(path)
    with pytest.raises(sw.InvalidProblem, match="Timid cannot be saved"):
        sw.Agent(Timid(**SETTINGS)).save(tmp_path / "agent.json")
