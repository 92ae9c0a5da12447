"""The example with two processes runs: all decisions and outcomes reach the learner, once each, and are learned."""

import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EXAMPLES))  # processes that are started find it there
    monkeypatch.delitem(sys.modules, "replicas", raising=False)
    import replicas

    return replicas


def test_two_processes_decide_and_one_learns(example: Any) -> None:
    agent = example.serve(users=120)
    assert (agent.round, agent.pending_count, agent.buffered_count) == (240, 0, 0)
    assert agent.replica_snapshot().version == 480, "each of two signals by itself"
    stretches = [met.pairs for met in agent._identity.seen_rounds.values()]
    assert stretches == [[(0, 120)], [(0, 120)]]
    assert float(agent.decide(example.sw.ArmSet(3)).pessimistic_cost[0]) <= 0.02
