"""The same problem in two units: everything that people read is one in the other's units, to the last sentence."""

import re
from typing import Any

import numpy as np
import pytest

import stagewise as sw
from stagewise.records.reason import Contradiction

COUNT = 400
CHANCE = np.random.default_rng(5)
LOG: dict[str, Any] = {
    "action": CHANCE.choice(["nothing", "digest", "offer"], COUNT),
    "age": CHANCE.uniform(0.0, 1.0, COUNT),
    "gain": CHANCE.uniform(0.2, 0.9, COUNT),
    "price": CHANCE.uniform(0.05, 0.15, COUNT),
    "stay": CHANCE.uniform(0.7, 0.9, COUNT),
}
SCALES = {"gain": (-10.0, 40.0), "price": (100.0, 200.0), "stay": (0.0, 60.0)}  # lows and lengths


def in_units(name: str, value: Any, own: bool) -> Any:
    low, length = SCALES[name] if own else (0.0, 1.0)
    return low + length * value


def problem(own: bool, **settings: Any) -> sw.Problem:
    """Return the problem in units of its own, or in [0, 1]."""

    def told(name: str) -> dict[str, float]:
        return {"low": in_units(name, 0.0, own), "high": in_units(name, 1.0, own)}

    return sw.Problem(
        action_names=["nothing", "digest", "offer"],
        safe_name="nothing",
        context={"age": (0.0, 1.0)},
        reward=sw.Reward("gain", safe_bound=in_units("gain", 0.25, own), **told("gain")),
        limits={
            "price": sw.Limit(
                in_units("price", 0.5, own), safe_bound=in_units("price", 0.25, own), model="rates", **told("price")
            ),
            "stay": sw.Limit(
                sw.AtLeast(in_units("stay", 0.25, own)),
                safe_bound=in_units("stay", 0.5, own),
                model="rates",
                **told("stay"),
            ),
        },
        settings=settings,
    )


def learned(own: bool, log: dict[str, Any], rounds: int = 20) -> sw.Agent:
    agent = sw.Agent(problem(own), seed=2)
    agent.learn_log_frame({name: in_units(name, c, own) if name in SCALES else c for name, c in log.items()})
    for round_ in range(rounds):
        decision = agent.decide({"age": 0.3})
        agent.learn(
            decision.id,
            gain=in_units("gain", 0.4 + 0.01 * round_, own),
            price=in_units("price", 0.1, own),
            stay=in_units("stay", 0.8, own),
        )
    return agent


def spans(report: Any) -> list[Any]:
    return [report.reward, report.safe_reward, *(action.reward for action in report.actions)]


def test_decisions_hope_and_fear_in_the_users_units() -> None:
    mine, unit = (learned(own, LOG).decide({"age": 0.3}) for own in (True, False))
    assert mine.action == unit.action
    assert mine.optimistic_reward == pytest.approx(in_units("gain", unit.optimistic_reward, True))
    assert unit.optimistic_reward < 1.0
    assert mine.pessimistic_cost == pytest.approx(
        [in_units(name, unit.pessimistic_cost[j], True) for j, name in enumerate(("price", "stay"))]
    )
    one, other = (made._table() for made in (mine, unit))  # type: ignore[misc]
    for row, twin in zip(one.rows, other.rows, strict=True):
        assert row.optimistic_reward == pytest.approx(in_units("gain", twin.optimistic_reward, True))


def test_a_report_is_in_the_users_units() -> None:
    mine, unit = (learned(own, LOG).report() for own in (True, False))
    assert mine.reward_name == "gain"
    for one, other in zip(spans(mine), spans(unit), strict=True):
        assert one == pytest.approx([in_units("gain", value, True) for value in other])
    assert mine.reward_gain == pytest.approx([SCALES["gain"][1] * value for value in unit.reward_gain])  # type: ignore[union-attr]
    for limit, twin in zip(mine.limits, unit.limits, strict=True):
        for part in ("threshold", "estimated_cost", "worst_pessimistic_cost"):
            assert getattr(limit, part) == pytest.approx(in_units(limit.name, getattr(twin, part), True))
        assert limit.margin == pytest.approx(SCALES[limit.name][1] * twin.margin)
    assert "gain now" in str(mine)


def test_health_is_in_the_users_units() -> None:
    health = learned(True, LOG).health()
    for name, declared, low, high in (
        ("safe gain", (False, 0.0), 2.0, 26.0),
        ("safe cost of price", (True, 150.0), 110.0, 130.0),
        ("safe cost of stay", (False, 30.0), 42.0, 54.0),
    ):
        details = health[name].details
        assert (details["at_most"], details["declared"]) == declared
        assert low < details["mean"] < high
        assert low < float(re.findall(r"average ([\d.]+)", health[name].message)[0]) < high
    assert health["limit of price"].details == {"threshold": 200.0, "bound": 300.0, "at_most": True}
    assert health["limit of stay"].details == {"threshold": 15.0, "bound": 0.0, "at_most": False}
    assert health["outcomes"].details["range"] == "declared"
    assert "[0, 1]" not in str(health)


def test_a_contradiction_and_a_fallback_are_in_the_users_units() -> None:
    agent = learned(True, LOG | {"price": np.full(COUNT, 0.9)}, 0)
    decision = agent.decide({"age": 0.3})
    assert decision.limits["price"].threshold == pytest.approx(200.0)  # type: ignore[attr-defined]
    assert decision.reason_details is not None
    told = decision.reason_details.details
    assert [told[name] for name in ("limit", "at_most", "declared")] == ["price", True, pytest.approx(150.0)]
    assert told["mean"] == pytest.approx(280.0)
    assert agent.health()["safe cost of price"].details == decision.reason_details.details
    assert "nothing (safe)" in agent.decide({"age": 0.3}).explain()


def test_a_drift_is_told_by_the_actions_name_and_in_the_users_units() -> None:
    agent = learned(True, LOG, 0)
    agent.decide({"age": 0.3})
    moved = {"price": np.full(COUNT, 0.95), "action": np.full(COUNT, "offer")}
    agent.learn_log_frame({name: in_units(name, c, True) if name in SCALES else c for name, c in (LOG | moved).items()})
    decision = agent.decide({"age": 0.3})
    told = decision.reason_details.details
    assert decision.optimistic_reward == pytest.approx(0.0)  # what was declared of the safe action
    assert decision.limits["price"].pessimistic_cost == pytest.approx(150.0)  # type: ignore[attr-defined]
    assert [told[name] for name in ("found", "limit", "action")] == [Contradiction.DRIFT, "price", "'offer'"]
    assert 100.0 <= told["early_mean"] < 200.0
    assert (told["late_mean"], told["late"]) == (pytest.approx(290.0), 400)
    stayed = {"stay": np.full(COUNT, 0.05), "action": np.full(COUNT, "offer")}
    other = learned(True, LOG, 0)
    other.decide({"age": 0.3})
    other.learn_log_frame(
        {name: in_units(name, c, True) if name in SCALES else c for name, c in (LOG | stayed).items()}
    )
    told = other.decide({"age": 0.3}).reason_details.details
    assert (told["late_mean"], told["late"]) == (pytest.approx(3.0), 400)


def test_what_was_declared_of_one_cost_is_told_where_another_is_unknown() -> None:
    told = sw.Limit(200.0, 100.0, 300.0, safe_bound=150.0, model="rates")
    agent = sw.Agent(
        sw.Problem(
            action_names=["a", "b"],
            safe_name="a",
            reward=sw.Reward("gain"),
            limits={"price": told, "leave": sw.Limit(0.5, model="rates")},
        )
    )
    agent.learn_log_frame({"action": ["a"] * 400, "gain": [0.5] * 400, "price": [280.0] * 400, "leave": [0.0] * 400})
    cause = agent.decide().reason_details
    assert cause is not None
    assert (cause.details["limit"], cause.details["declared"]) == ("price", pytest.approx(150.0))
    finding = agent.health()["safe cost of leave"]
    assert (finding.verdict, finding.details["declared"]) == ("unknown", None)
    assert (finding.details["count"], finding.details["mean"]) == (400, 0.0)
