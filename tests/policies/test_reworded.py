"""Sentences are for people: worded otherwise, agents and replicas decide, stop, go on and save the same, to the bit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.rewording import draw_word, reword

import stagewise as sw

SAFE = sw.SafeAction(arm=0, reward=0.0, cost=[0.02, 0.02])
OFF = sw.SafeAction(features=[0.6, 0.0], reward=0.1, cost=0.1)
TABLE = [[0.1, 0.6], [0.1, 0.2]]


def arms() -> sw.Agent:
    return sw.Agent(sw.OPB(arms=3, safe_action=SAFE, threshold={"a": 0.2, "b": 0.3}, interval="kl"), seed=1)


def segments() -> sw.Agent:
    limits = {"a": sw.Limit(0.2, safe_bound=0.02, by="country"), "b": sw.Limit(0.3, safe_bound=0.02, model="rates")}
    return sw.Agent(
        sw.Problem(action_names=["none", "x", "y"], safe_name="none", reward=sw.Reward("click"), limits=limits), seed=1
    )


def drifting(agent: sw.Agent, offer: Any, rounds: int = 900) -> list[Any]:
    """Play until means moved, acknowledge all, and go on; return everything that was decided."""
    chance, made = np.random.default_rng(2), []
    for t in range(rounds):
        decision = agent.decide(offer)
        made.append(bits(decision))
        rate = 0.02 if t < 400 else 0.5
        costs = {"a": float(chance.random() < rate), "b": float(chance.random() < 0.02)}
        reward = float(chance.random() < 0.5)
        if isinstance(agent.policy, sw.OPB | sw.SafeArmPosteriorSampling):
            agent.learn(decision, reward=reward, cost=costs)
        else:
            agent.learn(decision, click=reward, **costs)
        if t % 150 == 149:
            for finding in agent.health():
                if finding.verdict == "contradicted":
                    agent.acknowledge_alert(finding.name, "a test")
    return made


def linear(kind: Any) -> list[Any]:
    agent = sw.Agent(kind(safe_action=OFF, threshold=0.2, noise=0.1), seed=1)
    agent.learn_log(np.tile(OFF.features, (40, 1)), np.full(40, 0.1), np.full(40, 0.3))
    return [*told(agent, 0.8 * np.eye(2)), saved(agent)]


def functions() -> list[Any]:
    safe = sw.SafeAction(arm=0, reward=0.1, cost=0.1)
    agent = sw.Agent(sw.OPNLB(reward_class=TABLE, cost_class=TABLE, safe_action=safe, threshold=0.4), seed=1)
    agent.learn_log(np.zeros(2000, dtype=int), np.full(2000, 0.1), np.full(2000, 0.5))
    return [*told(agent, sw.ArmSet(2)), saved(agent)]


def functions_that_wait() -> list[Any]:
    """Learn the safe action's own cost first, then dare something: a reason that is no contradiction stops nobody."""
    costs, table = [[0.0, 0.5, 0.1], [0.25, 0.5, 0.1]], [[0.1, 0.5, 0.9], [0.1, 0.9, 0.5]]
    classes = {"reward_class": table, "cost_class": costs}
    agent = sw.Agent(sw.OPNLB(**classes, safe_action=sw.SafeAction(arm=0), threshold=0.3, noise=0.1), seed=1)
    made = []
    for _ in range(30):
        decision = agent.decide(sw.ArmSet(3))
        made.append(bits(decision))
        agent.learn(decision, 0.5 if decision.action_index else 0.1, costs[0][decision.action_index])
    return [*made, saved(agent)]


def told(agent: sw.Agent, offer: Any) -> list[Any]:
    """Decide in doubt, here and by a replica, and after a person has acknowledged everything."""
    made = [bits(agent.decide(offer)), bits(sw.Replica(agent.replica_snapshot(), name="one").decide(offer))]
    made.append([(one.name, one.verdict) for one in agent.health()])
    for finding in agent.health():
        if finding.verdict == "contradicted":
            agent.acknowledge_alert(finding.name, "a test")
    return [*made, bits(agent.decide(offer)), bits(sw.Replica(agent.replica_snapshot(), name="two").decide(offer))]


def bits(decision: sw.Decision) -> Any:
    """Return all of a decision but its sentence, to the bit."""
    content = decision.to_dict()
    content.pop("message")
    return json.dumps(content)


def saved(agent: sw.Agent) -> bytes:
    return bytes(agent.replica_snapshot())


def arms_that_move() -> list[Any]:
    agent = arms()
    return [*drifting(agent, sw.ArmSet(3)), saved(agent)]


def segments_that_move() -> list[Any]:
    agent = segments()
    return [*drifting(agent, {"country": "NZ"}), saved(agent)]


CASES: dict[str, Callable[[], list[Any]]] = {
    "arms": arms_that_move,
    "segments": segments_that_move,
    "LCLUCB": lambda: linear(sw.LCLUCB),
    "CAPS": lambda: linear(sw.SafePosteriorSampling),
    "OPLB": lambda: linear(sw.OPLB),
    "functions": functions,
    "functions that wait": functions_that_wait,
}


@pytest.mark.parametrize("case", CASES)
def test_worded_otherwise_the_same_is_played(case: str) -> None:
    plain = CASES[case]()
    met = "safe_action_cost_uncertain" if case == "functions that wait" else "assumption_contradicted"
    assert any(f'"reason": "{met}"' in str(one) for one in plain)
    with pytest.MonkeyPatch.context() as patched:
        reword(patched, draw_word(5))
        assert CASES[case]() == plain


def test_an_agent_that_was_stopped_goes_on_from_its_file_whatever_things_are_called(tmp_path: Path) -> None:
    agent = arms()
    agent.learn_log([0] * 400, [0.0] * 400, {"a": [1.0] * 400, "b": [0.0] * 400})
    decision = agent.decide(sw.ArmSet(3))
    assert decision.reason is sw.FallbackReason.ASSUMPTION_CONTRADICTED
    agent.save(tmp_path / "agent.json")
    with pytest.MonkeyPatch.context() as patched:
        reword(patched, word := draw_word(6))
        loaded = sw.Agent.load(tmp_path / "agent.json")
        assert bits(loaded.decide(sw.ArmSet(3))) == bits(agent.decide(sw.ArmSet(3)))
        assert loaded.decide(sw.ArmSet(3)).message.startswith(word)  # type: ignore[union-attr]
        loaded.acknowledge_alert("safe cost of a", "a test")
        agent.acknowledge_alert("safe cost of a", "a test")
        agent.decide(sw.ArmSet(3))
        assert bits(loaded.decide(sw.ArmSet(3))) == bits(agent.decide(sw.ArmSet(3)))
