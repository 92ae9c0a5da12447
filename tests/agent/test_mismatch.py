"""It matters who gets an action, or it does not: what an agent and a server find, say and do."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.problem.refusal import refuses

import stagewise as sw
from stagewise.agent.agent_statistics import Statistics
from stagewise.agent.health_findings import Check, Verdict
from stagewise.agent.mismatch import LOGGED, MOST_CELLS, Difference, MismatchTest, build_mismatch_cause
from stagewise.problem.division import NO_BUCKET
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.records.reason import Contradiction

NAME = "mismatch of opt_out"


def build_problem(**limit: Any) -> sw.Problem:
    """Return two actions for users of two ages; the safe action costs nothing."""
    settings = {"safe_bound": 0.0, "model": "rates", **limit}
    return sw.Problem(
        action_names=["plain", "offer"], safe_name="plain", context={"age": (20, 60), "visits": (0, 10)},
        reward=sw.Reward("click"), limits={"opt_out": sw.Limit(0.3, **settings)},
    )  # fmt: skip


def draw_log(seed: int, count: int, old: float, young: float) -> dict[str, Any]:
    """Return a log of offers; users above 40 opt out at another rate."""
    chance = np.random.default_rng(seed)
    age, visits = chance.uniform(20.0, 60.0, count), chance.uniform(0.0, 10.0, count)
    opt_out = chance.random(count) < np.where(age > 40.0, old, young)
    click = chance.random(count) < 0.1
    return {"action": ["offer"] * count, "age": age, "visits": visits, "click": click * 1.0, "opt_out": opt_out * 1.0}


def learn_alone(agent: sw.Agent, log: dict[str, Any], start: int, stop: int) -> None:
    """Register and learn the rows of a log one by one, as decisions of another process."""
    for i in range(start, stop):
        decision = agent.decide({"age": float(log["age"][i]), "visits": float(log["visits"][i])})
        agent.learn(decision, click=float(log["click"][i]), opt_out=float(log["opt_out"][i]))


def test_a_difference_of_halves_is_a_warning_with_its_column_and_cut() -> None:
    agent = sw.Agent(build_problem(), seed=1)
    agent.learn_log_frame(draw_log(1, 1_000, old=0.3, young=0.08))
    finding = agent.health()[NAME]
    assert (finding.check, finding.verdict, finding.signal) == (Check.MISMATCH, Verdict.WARNING, "opt_out")
    details = finding.details
    assert (details["found"], details["column"], details["promise"]) == (Contradiction.MISMATCH, "age", "average_user")
    assert (details["action"], details["segment"]) == ("offer", None)
    assert details["cut"] == pytest.approx(40.0, abs=2.0)
    assert details["low_mean"] < 0.12 < 0.25 < details["high_mean"]
    assert agent.health().ok  # it stops nothing
    assert agent.decide({"age": 30.0, "visits": 1.0}).reason is not sw.FallbackReason.ASSUMPTION_CONTRADICTED


def test_users_who_are_alike_give_no_warning_and_too_few_outcomes_say_so() -> None:
    agent = sw.Agent(build_problem(), seed=1)
    assert agent.health()[NAME].verdict is Verdict.UNKNOWN
    agent.learn_log_frame(draw_log(1, 1_000, old=0.15, young=0.15))
    finding = agent.health()[NAME]
    assert (finding.verdict, finding.details["count"]) == (Verdict.FINE, 1_000)


def test_a_warning_is_acknowledged_with_a_note() -> None:
    agent = sw.Agent(build_problem(), seed=1)
    agent.learn_log_frame(draw_log(1, 1_000, old=0.3, young=0.08))
    agent.acknowledge_alert(NAME, "Ana: known")
    assert (agent.health()[NAME].verdict, agent.health()[NAME].note) == (Verdict.ACKNOWLEDGED, "Ana: known")
    refuses(lambda: agent.acknowledge_alert(NAME, "again"), InvalidProblem, ErrorCode.NO_OPEN_ALERT)


def test_stop_plays_the_safe_action_until_somebody_acknowledges_it() -> None:
    agent = sw.Agent(build_problem(on_mismatch="stop"), seed=1)
    agent.learn_log_frame(draw_log(1, 2_000, old=0.3, young=0.08))
    user = {"age": 30.0, "visits": 1.0}
    decision = agent.decide(user)
    assert (decision.reason, decision.action) == (sw.FallbackReason.ASSUMPTION_CONTRADICTED, "plain")
    assert decision.reason_details.details["found"] == Contradiction.MISMATCH
    assert not agent.health().ok
    replica = sw.Replica(agent.replica_snapshot(), name="pod")
    assert replica.decide(user).reason is sw.FallbackReason.ASSUMPTION_CONTRADICTED
    agent.acknowledge_alert(NAME, "Ana: known")
    assert agent.decide(user).reason is not sw.FallbackReason.ASSUMPTION_CONTRADICTED


def test_on_mismatch_is_one_of_two_words() -> None:
    refuses(lambda: sw.Limit(0.1, on_mismatch="ignore"), InvalidProblem, "on_mismatch", "ignore")
    told = build_problem(on_mismatch="stop").to_dict()
    assert sw.Problem.from_dict(told).limits["opt_out"].on_mismatch == "stop"


def test_groups_that_explain_the_difference_leave_none() -> None:
    """The rate differs by country, and so does the age of users; within a country it does not depend on the age."""
    chance, count = np.random.default_rng(1), 3_000
    is_old = chance.random(count) < 0.5
    age = np.where(is_old, chance.uniform(38.0, 60.0, count), chance.uniform(20.0, 42.0, count))
    opt_out = (chance.random(count) < np.where(is_old, 0.3, 0.08)) * 1.0
    log = {"action": ["offer"] * count, "age": age, "visits": chance.uniform(0, 10, count), "click": opt_out * 0.0}
    log |= {"opt_out": opt_out, "country": np.where(is_old, "IT", "NZ")}
    verdicts = {}
    for name, limit in {"all": {"model": "rates"}, "country": {"model": None, "by": "country"}}.items():
        agent = sw.Agent(build_problem(**limit), seed=1)
        agent.learn_log_frame(log if name == "country" else {k: v for k, v in log.items() if k != "country"})
        verdicts[name] = agent.health()[NAME].verdict
    assert verdicts == {"all": Verdict.WARNING, "country": Verdict.FINE}


def test_one_cell_of_many_is_found_and_named() -> None:
    chance, count = np.random.default_rng(5), 6_000
    age, country = chance.uniform(20.0, 60.0, count), chance.choice(["AU", "IT", "NZ"], count)
    rate = np.where((country == "IT") & (age > 40.0), 0.5, np.where(country == "IT", 0.02, 0.1))
    log = {"action": ["offer"] * count, "age": age, "visits": chance.uniform(0, 10, count), "click": np.zeros(count)}
    log |= {"opt_out": (chance.random(count) < rate) * 1.0, "country": country}
    agent = sw.Agent(build_problem(model=None, by="country"), seed=1)
    agent.learn_log_frame(log)
    details = agent.health()[NAME].details
    assert details["column"] in ("age", "risk_score")
    assert details["promise"] == "every_group"
    test: Any = agent._learned.mismatch
    only = [one for one in test.limits[0].find_unlike([8.0] * 4) if one.cell >= 0 or one.column == 0]
    assert only


def test_buckets_of_a_score_are_cells() -> None:
    """The score says nothing of age, and users of each bucket differ by it."""
    log = draw_log(1, 2_000, old=0.3, young=0.05) | {"risk": np.random.default_rng(2).uniform(0.0, 1.0, 2_000)}
    agent = sw.Agent(build_problem(model=None, score=sw.RiskScore("risk", buckets=4)), seed=1)
    agent.learn_log_frame(log)
    test: Any = agent._learned.mismatch
    assert len(test.limits[0].cells) == 4
    details = agent.health()[NAME].details
    assert (details["promise"], details["column"], details["segment"]) == ("every_bucket", "age", None)
    assert agent.health()[NAME].verdict is Verdict.WARNING
    difference = Difference(2, 0, 1.0)
    assert build_mismatch_cause(agent.policy, test.limits[0], difference).details["segment"] in (
        "0 to 0.25", "0.25 to 0.5", "0.5 to 0.75", "0.75 to 1",
    )  # fmt: skip


@pytest.mark.parametrize("is_batch", [True, False])
def test_users_of_an_older_score_are_in_no_cell(is_batch: bool) -> None:
    """They differ by age, and are in no bucket of which a warning could tell the name."""
    policy, statistics = build_problem(model=None, score=sw.RiskScore("risk", version=2)).policy(), Statistics()
    test, chance, count = MismatchTest(policy), np.random.default_rng(1), 2_000
    rows = np.zeros((count, policy.width))
    rows[:, :2], rows[:, 2], rows[:, policy.first_segment] = 1.0, chance.uniform(-1.0, 1.0, count), NO_BUCKET
    opt_outs = chance.random(count) < np.where(rows[:, 2] > 0.0, 0.5, 0.1)
    values = np.column_stack([np.zeros(count), opt_outs * 1.0])
    if is_batch:
        test.learn_rows(rows, values, np.arange(count))
    else:
        for index in range(count):
            test.learn_row(rows[index], values[index], index)
    test.check(policy, policy.start().memory, statistics, at_once=True)
    assert (test.limits[0].cells, test.limits[0].count) == ({}, count)
    assert not statistics.warnings
    rows[:, policy.first_segment] = 3.0
    test.learn_rows(rows, values, np.arange(count))
    test.check(policy, policy.start().memory, statistics, at_once=True)
    assert statistics.warnings[NAME].details["segment"] in ("0.3 to 0.4", None)


def test_rows_at_once_are_rows_one_by_one_to_the_bit() -> None:
    policy, chance = build_problem(model=None, by="country").policy(), np.random.default_rng(1)
    segments = chance.choice([3.0, 1.0, 2.0], 80)
    rows = np.column_stack([chance.integers(0, 2, 80), np.ones(80), chance.uniform(-1, 1, (80, 2)), segments])
    values = (chance.random((80, 2)) < 0.3) * 1.0
    values[::7, 0], values[::5, 1] = np.nan, np.nan
    at_once, alone, in_parts = (MismatchTest(policy) for _ in range(3))
    for test in (at_once, alone, in_parts):
        test.scores = test.scores._replace(newer=np.ones((2, 2)), older=-np.ones((2, 2)), since=30)
    at_once.learn_rows(rows, values, np.arange(80))
    for i in range(80):
        alone.learn_row(rows[i], values[i], i)
    for start in range(0, 80, 11):
        part = slice(start, start + 11)
        in_parts.learn_rows(rows[part], values[part], np.arange(80)[part])
    assert at_once.to_dict() == alone.to_dict() == in_parts.to_dict()
    assert (1.0, 3.0) in at_once.limits[0].cells
    assert (0.0, 3.0) not in at_once.limits[0].cells  # the safe action's cost is declared


def test_a_saved_agent_goes_on_to_the_bit(tmp_path: Path) -> None:
    log = draw_log(3, 400, old=0.3, young=0.1)
    whole, half = (sw.Agent(build_problem(), seed=2) for _ in range(2))
    for agent in (whole, half):
        agent.learn_log_frame({name: column[:300] for name, column in log.items()})
        learn_alone(agent, log, 300, 350)
    half.save(tmp_path / "agent.json")
    again = sw.Agent.load(tmp_path / "agent.json", build_problem())
    for agent in (whole, again):
        learn_alone(agent, log, 350, 400)
    tests: list[Any] = [whole._learned.mismatch, again._learned.mismatch]
    assert tests[0].to_dict() == tests[1].to_dict()
    assert tests[0].limits[0].count > 300
    assert whole._learned.statistics.to_dict() == again._learned.statistics.to_dict()


def test_a_copy_counts_alone() -> None:
    agent = sw.Agent(build_problem(), seed=1)
    agent.learn_log_frame(draw_log(1, 50, old=0.3, young=0.1))
    test: Any = agent._learned.mismatch
    before, other = test.to_dict(), test.clone()
    other.learn_rows(np.ones((9, 4)), np.ones((9, 2)))
    assert test.to_dict() == before != other.to_dict()


def test_a_click_score_never_knows_the_reward_of_its_own_user() -> None:
    """Rewards arrive at once, costs late: the slopes that score a decision are older than its reward."""
    agent, chance = sw.Agent(build_problem(), seed=1), np.random.default_rng(1)
    agent.learn_log_frame(draw_log(1, 300, old=0.1, young=0.1))
    test: Any = agent._learned.mismatch
    assert test.scores.newer.shape == (2, 2)
    assert test.scores.since == 0  # a log's rows are nobody's decisions
    waiting, scored = [], 0
    for _ in range(700):
        decision = agent.decide({"age": float(chance.uniform(20, 60)), "visits": float(chance.uniform(0, 10))})
        agent.learn(decision, click=float(chance.random() < 0.1))
        waiting.append(decision)
        test.to_dict()  # counts the decisions that wait
        assert test.scores.since <= test.last_reward + 1 == decision.round + 1
        if len(waiting) > 60:
            late = waiting.pop(0)
            scored += late.round >= test.scores.since
            agent.learn(late, opt_out=float(chance.random() < 0.1))
    assert test.scores.since > 0
    assert scored > 300


def test_a_new_action_is_a_new_cell() -> None:
    agent = sw.Agent(build_problem(), seed=1)
    agent.learn_log_frame(draw_log(1, 300, old=0.1, young=0.1))
    agent.add_action("sale")
    agent.learn_log_frame(draw_log(2, 1_500, old=0.35, young=0.05) | {"action": ["sale"] * 1_500})
    test: Any = agent._learned.mismatch
    assert list(test.limits[0].cells) == [(1.0, 0.0), (2.0, 0.0)]
    assert test.scores.newer.shape == (3, 2)
    assert agent.health()[NAME].verdict is Verdict.WARNING


def test_only_the_first_cells_are_kept() -> None:
    limit = MismatchTest(build_problem(model=None, by="country").policy()).limits[0]
    found = [limit.find_cell(1.0, float(segment)) for segment in range(MOST_CELLS + 5)]
    assert found == [*range(MOST_CELLS), *[-1] * 5]
    assert len(limit.table) == MOST_CELLS
    context = [f"n{i}" for i in range(500)]
    limits = {"c": sw.Limit(0.3, safe_bound=0.0, by="country")}
    wide = sw.Problem(action_names=["a", "b"], safe_name="a", context=context, reward=sw.Reward("r"), limits=limits)
    assert MismatchTest(wide.policy()).limits[0].most_cells < 40


def test_problems_without_numbers_and_other_policies_are_not_tested() -> None:
    bare = sw.Problem(
        action_names=["a", "b"], safe_name="a", reward=sw.Reward("r"), limits={"c": sw.Limit(0.1, safe_bound=0.0)}
    )
    policies = [bare, sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=0.5)]
    for policy in policies:
        agent = sw.Agent(policy)
        assert agent._learned.mismatch is None
        assert not [one for one in agent.health() if one.check is Check.MISMATCH]


def test_rows_of_logs_have_no_index() -> None:
    assert LOGGED > 10**15
