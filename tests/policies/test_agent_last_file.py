"""Files of the last version are read: what waits and what is held, in the form that had whole outcomes only."""

from pathlib import Path

import numpy as np
import pytest
from tests.policies.agents import remembered
from tests.problem.refusal import refused

from stagewise import LCLUCB, Agent, InvalidOutcome, SafeAction

GOLDEN = Path(__file__).parents[1] / "golden" / "agent_held_0_1_0.json"


def again(rounds: int = 5) -> Agent:
    """Do what wrote the file (version 3): five decisions, then the outcomes of rounds 0, 2 and 4, and save."""
    policy = LCLUCB(safe_action=SafeAction(features=[0.0, 0.0]), threshold={"a": 0.5, "b": 0.4}, noise=0.1, ridge=1.0)
    agent = Agent(policy, seed=9)
    for _ in range(rounds):
        agent.decide(np.eye(2))
    for round_ in (0, 2, 4):
        agent.learn(round_, reward=0.1 * round_, cost=[0.05, 0.02 * round_])
    return agent


def test_a_file_of_the_last_version_goes_on(tmp_path: Path) -> None:
    agent, witness = Agent.load(GOLDEN), again()
    assert (agent.waiting, agent.held, agent.name) == (2, 2, "")
    assert agent.pending().plain() == witness.pending().plain()
    with refused(InvalidOutcome, "round 2", "given already"):
        agent.learn(2, reward=0.2, cost=[0.05, 0.04])
    agent.save(tmp_path / "agent.json")  # in today's version
    for one in (agent, witness, Agent.load(tmp_path / "agent.json")):
        one.learn(1, a=0.1)
        one.learn(3, reward=0.3, cost=[0.1, 0.1])
        one.learn(1, reward=0.2, b=0.2)
        assert (one.waiting, one.held) == (0, 0)
    assert agent.state.memory == pytest.approx(witness.state.memory, abs=1e-12)  # written on another machine, perhaps
    assert remembered(agent)[1:] == remembered(witness)[1:]
    assert agent.decide(np.eye(2)).id == witness.decide(np.eye(2)).id
