"""A new policy is one file and its export: files, commands, loops and certificates know it from then on."""

import json
from typing import Any

import pytest
from tests.grown import changed, copied, insert, ran

POLICY = '''"""LC-LUCB whose costs are taken twice as uncertain as they are."""

from dataclasses import dataclass, field

from stagewise.policies.lclucb import LCLUCB


@dataclass(frozen=True, kw_only=True, eq=False)
class Timid(LCLUCB):
    """LC-LUCB whose costs are taken twice as uncertain as they are."""

    cost_confidence_scale: float = field(init=False, default=2.0)
'''
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
ASK = """
import json
from pathlib import Path
import numpy as np
import stagewise as sw
from stagewise.cli.main import app
from stagewise.simulation.compiled_run import can_play

told = {"safe_action": sw.SafeAction(features=np.zeros(2)), "threshold": 0.3, "noise": 0.1}
timid, bold = sw.Timid(**told), sw.LCLUCB(**told)
world = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.Rays(np.eye(2)), noise=0.1)
hand, loop = (sw.simulate(timid, world, rounds=30, backend=b, progress=False) for b in ("python", "cpu"))
agent = sw.Agent(timid)
agent.learn(agent.decide(np.eye(2)), reward=0.1, cost=0.05)
agent.save("agent.json")
other = sw.Agent.load("agent.json")
app(["simulate", "timid.toml", "--out", "kept", "--quiet"], standalone_mode=False)
certificate = sw.certify(timid, world, rounds=20, runs=3, out="certificate", progress=False)
print(json.dumps({
    "plays": can_play(timid, world), "hand": hand.regret[0].tolist(), "loop": loop.regret[0].tolist(),
    "bold": sw.simulate(bold, world, rounds=30, progress=False).regret[0].tolist(),
    "loaded": type(other.policy).__name__,
    "goes on": [each.decide(np.eye(2)).action.tolist() for each in (agent, other)],
    "command": sw.Result.load("kept").regret[0].tolist(),
    "certified": certificate.content["policy"]["kind"], "theorem": certificate.content["regret"]["theorem"] == "rays",
    "stands": sw.verify_certificate("certificate", seed=0, replay_fraction=1.0).stands,
}))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what a copy of the package with one more policy makes of it."""
    folder = tmp_path_factory.mktemp("policy")
    package = copied(folder)
    (package / "policies/timid.py").write_text(POLICY, encoding="utf-8")
    export = "from stagewise.policies.timid import Timid as Timid\n"
    insert(package / "__init__.pyi", "from stagewise.policies.unconstrained import UCB", before=export)
    assert changed(package) == {"policies/timid.py", "__init__.pyi"}
    (folder / "timid.toml").write_text(FILE, encoding="utf-8")
    return json.loads(ran(package, "-c", ASK, folder=folder, NUMBA_DISABLE_JIT="1").splitlines()[-1])


def test_an_agent_of_it_is_saved_and_goes_on(told: Any) -> None:
    assert told["loaded"] == "Timid"
    assert told["goes on"][0] == told["goes on"][1]


def test_the_one_loop_plays_it_and_a_command_with_its_file_does(told: Any) -> None:
    assert told["plays"]
    assert told["hand"] == told["loop"] == told["command"]
    assert told["hand"][-1] > told["bold"][-1]


def test_a_certificate_names_it_with_its_theorem_and_is_verified(told: Any) -> None:
    assert told["certified"] == "Timid"
    assert told["theorem"]
    assert told["stands"]
