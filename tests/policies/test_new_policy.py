"""A new policy is one file and its export: files, commands, loops and certificates know it from then on."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import called
from tests.exporting import exported

import stagewise as sw


@dataclass(frozen=True, kw_only=True, eq=False)
class Timid(sw.LCLUCB):
    """LC-LUCB whose costs are taken twice as uncertain as they are."""

    cost_confidence_scale: float = field(init=False, default=2.0)


FILE = """
[simulation]
rounds = 30
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


def test_files_commands_loops_and_certificates_know_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    world = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.RaySet(np.eye(2)), noise=0.1)
    safe = sw.SafeAction(features=np.zeros(2))
    with exported(Timid, "policies.timid"):
        timid, bold = (kind(safe_action=safe, threshold=0.3, noise=0.1) for kind in (Timid, sw.LCLUCB))
        hand, loop, other = (
            sw.simulate(policy, world, rounds=30, backend=backend, progress=False)
            for policy, backend in ((timid, "python"), (timid, "cpu"), (bold, "cpu"))
        )
        assert hand.regret.tolist() == loop.regret.tolist()
        assert hand.regret[0, -1] > other.regret[0, -1]
        agent = sw.Agent(timid)
        agent.learn(agent.decide(np.eye(2)), reward=0.1, cost=0.05)
        agent.save("agent.json")
        loaded = sw.Agent.load("agent.json")
        assert type(loaded.policy) is Timid
        assert loaded.decide(np.eye(2)).action.tolist() == agent.decide(np.eye(2)).action.tolist()
        Path("timid.toml").write_text(FILE, encoding="utf-8")
        assert called("simulate", "timid.toml", "--out", "kept", "--quiet")[0] == 0
        assert sw.Result.load("kept").regret.tolist() == hand.regret.tolist()
        certificate = sw.certify(timid, world, rounds=20, runs=3, out="certificate", progress=False)
        assert (certificate.content["policy"]["kind"], certificate.content["regret"]["theorem"]) == ("Timid", "rays")
        assert sw.verify_certificate("certificate", seed=0, replay_fraction=1.0).stands
