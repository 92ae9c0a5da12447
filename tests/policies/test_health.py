"""Health checks: verdicts, the safe action until a person acknowledges an alert, and drift."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.agent import learned_state as monitor
from stagewise.agent.health_findings import Check, Verdict
from stagewise.problem.errors import ErrorCode

ARMS = sw.ArmSet(3)
SAFE = sw.SafeAction(arm=0, reward=0.0, cost=0.001)
RARE: dict[str, Any] = {"arms": 3, "safe_action": SAFE, "threshold": {"opt_out": 0.02}, "interval": "kl"}
NAME = "safe cost of opt_out"


def told(agent: sw.Agent) -> dict[str, str]:
    return {finding.name: finding.verdict for finding in agent.health()}


def found(decision: sw.Decision) -> tuple[str, str]:
    """Return the contradiction that a decision was stopped by, and its limit."""
    assert decision.reason is sw.FallbackReason.ASSUMPTION_CONTRADICTED
    assert decision.reason_details is not None
    return decision.reason_details.details["found"], decision.reason_details.details["limit"]


def certain(ones: int, count: int) -> bool:
    """Say whether coins of mean .001 are refuted at level 10⁻⁶, by the mixture of all coins, reckoned by itself."""
    if not count or ones / count <= 0.001:
        return False
    mixture = math.lgamma(ones + 0.5) + math.lgamma(count - ones + 0.5) - math.lgamma(count + 1) - math.log(math.pi)
    return mixture - ones * math.log(0.001) - (count - ones) * math.log(0.999) > math.log(1e6)


@pytest.mark.parametrize("seed", range(3))
def test_a_contradiction_stops_exploration_in_the_first_decision_after_it_is_certain(seed: int) -> None:
    """Declared .001, and the data say .05."""
    agent, chance, ones, count, before, after = sw.Agent(sw.OPB(**RARE), seed), np.random.default_rng(seed), 0, 0, 0, 0
    stopped = False
    for _ in range(600):
        decision = agent.decide(ARMS)
        stopped = stopped or certain(ones, count)
        if stopped:
            assert decision.action == 0
            assert decision.probabilities is not None
            assert decision.probabilities[0] == 1.0
            assert decision.reason_details is not None
            assert decision.reason is sw.FallbackReason.ASSUMPTION_CONTRADICTED
            assert decision.reason_details.details["limit"] == "opt_out"
            assert decision.reason_details.details["declared"] == 0.001
            after += 1
        else:
            assert decision.message is None
            before += 1
        cost = float(chance.random() < 0.05)
        ones, count = (ones + int(cost), count + 1) if decision.action == 0 else (ones, count)
        agent.learn(decision, reward=0.0, cost=cost)
    assert before > 0
    assert after > 100
    assert told(agent)[NAME] == "contradicted"
    assert not agent.health().ok


def contradicted(**more: Any) -> sw.Agent:
    agent = sw.Agent(sw.OPB(**{**RARE, **more}))
    agent.learn_log([0] * 40, [0.0] * 40, [1.0] * 8 + [0.0] * 32)
    return agent


def test_it_stays_stopped_when_the_data_look_better_again() -> None:
    agent = contradicted()
    assert agent.decide(ARMS).message is not None
    agent.learn_log([0] * 4000, [0.0] * 4000, [0.0] * 4000)
    unnoticed = contradicted()
    unnoticed.learn_log([0] * 4000, [0.0] * 4000, [0.0] * 4000)
    assert unnoticed.decide(ARMS).message is None  # the memory alone no longer says so
    decision = agent.decide(ARMS)
    assert decision.action == 0
    assert found(decision) == ("safe_cost", "opt_out")
    assert str(decision.message) in decision.explain()
    assert told(agent)[NAME] == "contradicted"


def test_a_person_lets_it_go_on_by_its_name_only(tmp_path: Path) -> None:
    agent = contradicted()
    agent.decide(ARMS)
    with refused(sw.InvalidProblem, ErrorCode.NO_OPEN_ALERT, NAME):
        agent.acknowledge_alert("noise of opt_out")
    with refused(sw.InvalidProblem, ErrorCode.WRONG_TYPE):
        agent.acknowledge_alert(NAME, note=3)  # type: ignore[arg-type]
    agent.save(tmp_path / "agent.json")
    agent = sw.Agent.load(tmp_path / "agent.json")
    assert agent.decide(ARMS).message is not None
    agent.acknowledge_alert(NAME, "Ana: the campaign of May")
    decision = agent.decide(ARMS)
    assert decision.message is None
    assert decision.probabilities is not None
    assert decision.probabilities[0] < 1.0
    agent.save(tmp_path / "agent.json")
    loaded = sw.Agent.load(tmp_path / "agent.json")
    assert loaded.decide(ARMS).message is None
    assert told(loaded)[NAME] == "acknowledged"
    assert loaded.health()[NAME].note == "Ana: the campaign of May"
    with refused(sw.InvalidProblem, ErrorCode.NO_OPEN_ALERT):
        loaded.acknowledge_alert(NAME)


def test_what_no_decision_has_met_yet_can_be_acknowledged() -> None:
    agent = contradicted()
    agent.acknowledge_alert(NAME)
    assert agent.decide(ARMS).message is None


def test_what_comes_to_light_behind_something_acknowledged_stops_again() -> None:
    """A kernel stops at the first contradiction; behind it stands another."""
    safe = sw.SafeAction(arm=0, reward=0.0, cost={"a": 0.001, "b": 0.001})
    agent = sw.Agent(sw.OPB(arms=2, safe_action=safe, threshold={"a": 0.02, "b": 0.02}, interval="kl"))
    agent.learn_log([0] * 40, [0.0] * 40, {"a": [1.0] * 8 + [0.0] * 32, "b": [0.0] * 40})
    assert found(agent.decide(sw.ArmSet(2))) == ("safe_cost", "a")
    agent.acknowledge_alert("safe cost of a")
    assert agent.decide(sw.ArmSet(2)).message is None
    agent.learn_log([0] * 40, [0.0] * 40, {"a": [0.0] * 40, "b": [1.0] * 8 + [0.0] * 32})
    assert found(agent.decide(sw.ArmSet(2))) == ("safe_cost", "b")


def test_without_the_watch_health_still_tells() -> None:
    agent = contradicted(check_assumptions=False)
    assert agent.decide(ARMS).message is None
    assert told(agent)[NAME] == "contradicted"


def test_rays_and_kernels_tell_of_noise_and_of_the_safe_action() -> None:
    safe = sw.SafeAction(features=[0.6, 0.0], reward=0.1, cost=0.1)
    rays = sw.Agent(sw.LCLUCB(safe_action=safe, threshold=0.2, noise=0.01))
    rays.learn_log(np.tile([0.6, 0.3], (40, 1)), [0.5, 0.0] * 20, [0.6, 0.0] * 20)
    assert {name: verdict for name, verdict in told(rays).items() if name.startswith("noise")} == {
        "noise of reward": "doubtful",
        "noise of cost": "contradicted",
    }
    rays.learn_log(np.tile(safe.features, (40, 1)), [0.1] * 40, [0.3] * 40)
    assert told(rays)["safe cost of cost"] == "contradicted"
    assert told(rays)["safe reward"] == "fine"
    assert rays.decide(np.eye(2)).message is not None
    kernel = sw.KernelOPLB(kernel=sw.RBF(lengthscale=0.5), safe_action=safe, threshold=0.2, noise=0.1, norm_bound=1.0)
    agent = sw.Agent(kernel)
    agent.learn_log(np.tile(safe.features, (40, 1)), [0.1] * 40, [0.5] * 40)
    assert told(agent)["safe cost of cost"] == "contradicted"
    assert told(agent)["drift of cost"] == "unknown"


def test_refused_outcomes_are_counted_and_change_nothing() -> None:
    agent = sw.Agent(sw.OPB(**RARE))
    decision = agent.decide(ARMS)
    before = agent.state.memory.tobytes()
    for cost in (5.0, math.nan):
        with pytest.raises(sw.InvalidOutcome):
            agent.learn(decision, reward=0.0, cost=cost)
    assert agent.state.memory.tobytes() == before
    finding = agent.health()["outcomes"]
    assert (finding.check, finding.signal, finding.verdict) == (Check.OUTCOMES, None, Verdict.DOUBTFUL)
    assert finding.details == {"range": "unit", "decisions": 1, "refused": 2}
    agent.learn(decision, reward=0.0, cost=0.0)
    assert agent.decide(ARMS).message is None


def test_a_limit_without_a_bound_on_costs_is_not_known_to_bind() -> None:
    safe = sw.SafeAction(features=[0.0, 0.0])
    agent = sw.Agent(sw.LCLUCB(safe_action=safe, threshold=0.2, noise=0.1, mean_cost_bound=None))
    assert told(agent)["limit of cost"] == "unknown"
    assert told(sw.Agent(sw.OPB(**RARE)))["limit of opt_out"] == "fine"


def test_findings_print_and_are_plain() -> None:
    health = contradicted().health()
    for finding, written in zip(health, json.loads(json.dumps(health.to_dict())), strict=True):
        assert (written["check"], written["signal"], written["verdict"]) == finding[:3]
        assert written["details"] == finding.details
    assert json.loads(json.dumps(health.to_dict()))[0].keys() == {
        "name",
        "check",
        "signal",
        "verdict",
        "message",
        "details",
        "note",
    }
    lines = str(health).splitlines()
    assert len(lines) == len(health)
    assert all(len(finding.message) < 400 for finding in health)
    with pytest.raises(KeyError, match="none of"):
        health["nothing of the sort"]


OFF = sw.SafeAction(features=[0.6, 0.0], reward=0.1, cost=0.1)
KINDS = [sw.LCLUCB, sw.ROFUL, sw.SafeLTS, sw.OPLB, sw.SafePosteriorSampling]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_policy_stops_and_goes_on(kind: Any) -> None:
    agent = sw.Agent(kind(safe_action=OFF, threshold=0.2, noise=0.1))
    agent.learn_log(np.tile(OFF.features, (40, 1)), np.full(40, 0.1), np.full(40, 0.3))
    decision = agent.decide(0.8 * np.eye(2))
    assert found(decision)[1] == "cost"
    assert decision.reason_details is not None
    assert decision.reason_details.details["declared"] == 0.1
    assert np.array_equal(decision.action, OFF.features)
    for finding in agent.health():
        if finding.verdict == "contradicted":
            agent.acknowledge_alert(finding.name)
    decision = agent.decide(0.8 * np.eye(2))
    assert decision.reason is not sw.FallbackReason.ASSUMPTION_CONTRADICTED
    agent.learn(decision, 0.1, 0.1)


def test_a_class_of_functions_stops_and_goes_on() -> None:
    table, safe = [[0.1, 0.6], [0.1, 0.2]], sw.SafeAction(arm=0, reward=0.1, cost=0.1)
    agent = sw.Agent(sw.OPNLB(reward_class=table, cost_class=table, safe_action=safe, threshold=0.4))
    agent.learn_log(np.zeros(2000, dtype=int), np.full(2000, 0.1), np.full(2000, 0.5))
    assert found(agent.decide(sw.ArmSet(2)))[1] == "cost"
    finding = agent.health()["declared value of cost"]
    assert (finding.check, finding.signal, finding.verdict) == (Check.DECLARED_VALUE, "cost", Verdict.CONTRADICTED)
    agent.acknowledge_alert("declared value of cost")
    assert agent.decide(sw.ArmSet(2)).reason is not sw.FallbackReason.ASSUMPTION_CONTRADICTED


# Means that move


def moving(
    agent: sw.Agent, actions: Any, cost: Any, rounds: int, chance: np.random.Generator
) -> sw.ReasonDetails | None:
    """Play, and return the first cause of a safe action."""
    for _ in range(rounds):
        decision = agent.decide(actions)
        if decision.reason_details is not None:
            return decision.reason_details
        agent.learn(decision, reward=0.5, cost=cost(decision.action, chance))
    return None


def test_a_cost_that_rises_stops_an_agent_until_a_person_looks() -> None:
    safe = sw.SafeAction(arm=0, reward=0.0, cost=0.0)
    agent, chance = sw.Agent(sw.OPB(arms=2, safe_action=safe, threshold=0.5, interval="kl")), np.random.default_rng(1)
    agent.learn_log([1] * 400, [0.5] * 400, [0.0] * 360 + [1.0] * 40)

    def early(arm: int, random: Any) -> float:
        return float(arm == 1 and random.random() < 0.1)

    def late(arm: int, random: Any) -> float:
        return float(arm == 1 and random.random() < 0.45)

    assert moving(agent, sw.ArmSet(2), early, 300, chance) is None
    assert told(agent)["drift of cost"] == "fine"
    cause = moving(agent, sw.ArmSet(2), late, 1500, chance)
    assert cause is not None
    drift = cause.details
    assert (drift["found"], drift["limit"], drift["action"]) == ("drift", "cost", "arm 1")
    assert (drift["early"], drift["unit"], round(drift["early_mean"], 4)) == (656, "pull", 0.0915)
    assert told(agent)["drift of cost"] == "contradicted"
    agent.acknowledge_alert("drift of cost", "a new season")
    assert moving(agent, sw.ArmSet(2), late, 700, chance) is None  # what came before no longer counts against it
    assert told(agent)["drift of cost"] == "unknown"
    agent.learn_log([1] * 400, [0.5] * 400, [0.0] * 220 + [1.0] * 180)
    assert agent.decide(sw.ArmSet(2)).message is None  # the next mark
    agent.learn_log([1] * 400, [0.5] * 400, [1.0] * 180 + [0.0] * 220)
    assert told(agent)["drift of cost"] == "fine"
    agent.learn_log([1] * 2000, [0.5] * 2000, [0.0] * 2000)
    assert found(agent.decide(sw.ArmSet(2))) == ("drift", "cost")  # and another season


def test_a_linear_cost_that_turns_is_found() -> None:
    safe, chance = sw.SafeAction(features=[0.0, 0.0]), np.random.default_rng(2)
    agent = sw.Agent(sw.LCLUCB(safe_action=safe, threshold=0.5, noise=0.1))
    log, rest = chance.uniform(-0.5, 0.5, (800, 2)), chance.normal(size=800) * 0.1
    agent.learn_log(log[:400], np.zeros(400), log[:400] @ [0.6, 0.2] + rest[:400])
    agent.learn(agent.decide(np.eye(2)), 0.0, 0.0)
    agent.learn_log(log[400:], np.zeros(400), log[400:] @ [0.6, 0.2] + rest[400:])
    assert agent.decide(np.eye(2)).message is None
    agent.learn_log(log[400:], np.zeros(400), log[400:] @ [-0.6, 0.5] + rest[400:])
    assert found(agent.decide(np.eye(2))) == ("drift", "cost")


@pytest.mark.long
def test_means_that_stay_are_seldom_said_to_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """At level .1 instead of 10⁻⁶: of 30 agents on one coin, looked at nine times each, at most the quantile."""
    monkeypatch.setattr(monitor, "FALSE_ALARMS", 0.1)
    alarms = sum(drifted(seed, 0.3, 0.3) for seed in range(30))
    assert alarms <= 9  # binomial(30, .1), 99.9 %
    assert sum(drifted(seed, 0.2, 0.4, rows=300) for seed in range(5)) == 5


def drifted(seed: int, early: float, late: float, rows: int = 100) -> bool:
    """Say whether an agent stops that saw coins in ten logs, from the fifth on of another mean."""
    safe, chance = sw.SafeAction(arm=0, cost=0.0), np.random.default_rng(seed)
    agent, stopped = sw.Agent(sw.OPB(arms=2, safe_action=safe, threshold=0.9, noise=0.5)), False
    for part in range(10):
        coins = chance.random(rows) < (early if part < 4 else late)
        agent.learn_log([1] * rows, np.zeros(rows), coins)
        decision = agent.decide(sw.ArmSet(2))
        stopped = stopped or (
            decision.reason_details is not None and decision.reason_details.details.get("found") == "drift"
        )
        agent.drop_pending(agent.round)
    return stopped
