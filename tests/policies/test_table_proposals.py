"""Proposals and scores in tables: every row as `decide(row, propose=...)` decides it, to the bit, or with its code."""

import copy
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.policies.test_tables import read_saved, take, to_rows
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.agent.table_file import decide_file
from stagewise.files import tables as record_batches
from stagewise.files.tables import read_batches, write_batches
from stagewise.problem.errors import ErrorCode

ACTIONS = ["plain", "photo", "offer"]
LIMITS = {
    "opt_out": sw.Limit(0.1, safe_bound=0.05, by="country"),
    "spend": sw.Limit(3.0, low=0, high=9, safe_bound=2.0, model="rates"),
}
CONTEXT: dict[str, Any] = {"age": (18, 99)}
LEARNED = sw.Problem(
    action_names=ACTIONS, safe_name="plain", context=CONTEXT, reward=sw.Reward("click", high=2), limits=LIMITS
)
GUARD = sw.Problem(action_names=ACTIONS, safe_name="plain", context=CONTEXT, limits=LIMITS)
EUROS = sw.Problem(
    action_names=ACTIONS, safe_name="plain", context=CONTEXT, limits={"opt_out": LIMITS["opt_out"]},
    reward=sw.Reward("euros", low=-10, high=50, model="given"),
)  # fmt: skip
PROBLEMS = {"learned": LEARNED, "guard": GUARD, "euros": EUROS}
RUN = "night"


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_batches, "BATCH_ROWS", 8)


def build_agent(problem: sw.Problem, rows: int = 300) -> sw.Agent:
    """Return an agent that has learned a log, so that some of a proposal is held back."""
    return copy.deepcopy(learn_log(problem, rows))


@cache
def learn_log(problem: sw.Problem, rows: int) -> sw.Agent:
    agent, random = sw.Agent(problem, seed=7), np.random.default_rng(3)
    log: dict[str, Any] = {"age": random.integers(18, 99, rows).astype(float)}
    log |= {"country": [["NZ", "AU"][i] for i in random.integers(0, 2, rows)]}
    log |= {"action": [ACTIONS[i] for i in random.integers(0, 3, rows)], "click": random.random(rows)}
    log |= {"opt_out": random.random(rows) < 0.03, "spend": 3 * random.random(rows)}
    agent.learn_log_frame(log)
    return agent


def build_users(count: int) -> dict[str, Any]:
    random = np.random.default_rng(5)
    return {
        "user_id": [f"u{index}" for index in range(count)],
        "age": random.integers(18, 99, count).astype(float),
        "country": [["NZ", "AU", "DE"][i] for i in random.integers(0, 3, count)],
    }


def check_rows(problem: sw.Problem, users: dict[str, Any], columns: dict[str, Any], calls: list[dict[str, Any]]) -> Any:
    """Compare a table's decisions with those that are made one by one; return the rows."""
    agent, alone = build_agent(problem), build_agent(problem)
    rows, held = to_rows(agent.decide_frame(users, run=RUN, **columns)), 0
    for row, user, call in zip(rows, to_rows(users), calls, strict=True):
        context, id_ = {name: user[name] for name in ("age", "country")}, f"{RUN}:{user['user_id']}"
        if row["error"]:
            with refused(sw.InvalidActions, ErrorCode(row["error"])):
                alone.decide(context, id=id_, **call)
            assert (row["action"], row["propensity"], row["decision_id"], row["reason"]) == ("plain", 1.0, None, None)
            assert row["proposal.binding"] is None
            continue
        one: Any = alone.decide(context, id=id_, **call)
        assert (row["error"], one.id, one.action) == (None, row["decision_id"], row["action"])
        assert one.probabilities == {name: row[f"probability.{name}"] for name in ACTIONS}
        assert one.reason == row["reason"]
        assert math.isnan(row["estimated_reward"]) == (one.estimated_reward is None)
        assert one.estimated_reward in (None, row["estimated_reward"])
        for name, status in one.limits.items():
            assert status.pessimistic_cost == row[f"limit.{name}.pessimistic_cost"]
            assert status.estimate == row[f"limit.{name}.estimate"]
        status = one.proposal
        assert row["proposal.binding"] == ", ".join(status.binding)
        if "propose" in call:
            assert row["proposal.overlap"] == status.overlap
            assert {name: row[f"proposed.{name}"] for name in ACTIONS if row[f"proposed.{name}"]} == status.weights
            held += bool(status.held_back)
        else:
            assert {name: row[f"scores.{name}"] for name in ACTIONS} == status.scores
    assert agent.report().to_dict() == alone.report().to_dict()
    assert agent.pending_count == alone.pending_count
    return rows, held


NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
WEIGHT = st.one_of(st.floats(0, 0.6), st.sampled_from([0.0, 0.5, 1.0, -0.1, math.nan, math.inf, 1.0000000001, 2.0]))
SCORE = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, -20.0, 49.5, math.nan, -math.inf]))


@pytest.mark.parametrize("name", PROBLEMS)
@settings(max_examples=12, phases=NO_SHRINKING)
@given(rows=st.lists(st.tuples(WEIGHT, WEIGHT, SCORE, SCORE), min_size=1, max_size=20))
def test_every_row_is_decided_as_alone(name: str, rows: list[tuple[float, ...]]) -> None:
    problem, users, columns = PROBLEMS[name], build_users(len(rows)), list(zip(*rows, strict=True))
    users |= dict(zip(("p_photo", "p_offer", "s_photo", "s_offer"), map(list, columns), strict=True))
    weights, scores = {"photo": "p_photo", "offer": "p_offer"}, {"photo": "s_photo", "offer": "s_offer"}
    calls: list[dict[str, Any]] = [{"propose": {"photo": row[0], "offer": row[1]}} for row in rows]
    check_rows(problem, users, {"propose": weights}, calls)
    calls = [{"scores": {"photo": row[2], "offer": row[3]}} for row in rows]
    check_rows(problem, users, {"scores": scores}, calls)


def test_a_column_of_names_is_a_proposal() -> None:
    users = build_users(40)
    users["wanted"] = [[*ACTIONS, "ofer"][i % 4] for i in range(40)]
    rows, held = check_rows(GUARD, users, {"propose": "wanted"}, [{"propose": name} for name in users["wanted"]])
    assert held > 5
    assert [row["error"] for row in rows].count("unknown_action") == 10
    users["wanted"][3] = None
    rows = to_rows(build_agent(LEARNED).decide_frame(users, propose="wanted"))
    assert [row["error"] for row in rows[:4]] == [None, None, None, "missing_value"]
    users["wanted"] = list(range(40))
    assert {row["error"] for row in to_rows(build_agent(GUARD).decide_frame(users, propose="wanted"))} == {"wrong_type"}


def test_bad_rows_stop_no_other_row() -> None:
    users, count = build_users(12), 12
    users |= {"photo": [0.5] * count, "offer": [0.25] * count}
    users["photo"][2], users["offer"][3], users["photo"][4], users["age"][5] = 0.9, math.nan, -0.5, math.nan
    rows = to_rows(build_agent(GUARD).decide_frame(users, propose=["photo", "offer"]))
    codes = {2: "invalid_probability", 3: "invalid_probability", 4: "invalid_probability", 5: "missing_context_field"}
    assert {i: row["error"] for i, row in enumerate(rows) if row["error"]} == codes
    assert all((row["action"], row["propensity"]) == ("plain", 1.0) for i, row in enumerate(rows) if i in codes)
    assert all(math.isnan(row["proposed.photo"]) for i, row in enumerate(rows) if i in codes)
    assert sum(row["probability.photo"] > 0.0 for row in rows) == count - len(codes)
    users["offer"] = ["a"] * count  # a column of texts is no column of probabilities
    found = to_rows(build_agent(GUARD).decide_frame(users, propose=["photo", "offer"]))
    assert [row["error"] for row in found[:3]] == ["wrong_type"] * 3


WRONG: list[tuple[dict[str, Any], ErrorCode]] = [
    ({}, ErrorCode.MISSING_VALUE),
    ({"propose": "wanted"}, ErrorCode.COLUMN_MISSING),
    ({"propose": {"photo": "p"}}, ErrorCode.COLUMN_MISSING),
    ({"propose": {"foto": "photo"}}, ErrorCode.UNKNOWN_ACTION),
    ({"propose": ["age"]}, ErrorCode.UNKNOWN_ACTION),
    ({"propose": ["photo", "photo"]}, ErrorCode.WRONG_TYPE),
    ({"propose": {}}, ErrorCode.WRONG_TYPE),
    ({"propose": 3}, ErrorCode.WRONG_TYPE),
    ({"propose": {"photo": 3}}, ErrorCode.COLUMN_MISSING),
    ({"scores": "photo"}, ErrorCode.WRONG_TYPE),
    ({"scores": ["photo"]}, ErrorCode.MISSING_VALUE),
    ({"scores": ["photo", "offer"], "propose": "photo"}, ErrorCode.CONFLICT),
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_wrong_columns_change_nothing(wrong: tuple[dict[str, Any], ErrorCode]) -> None:
    agent, users = build_agent(GUARD, 50), build_users(3) | {"photo": [0.5] * 3, "offer": [0.2] * 3}
    code = ErrorCode.CONFLICTING_SETTINGS if wrong[1] is ErrorCode.CONFLICT else wrong[1]
    with refused(sw.InvalidActions, code):
        agent.decide_frame(users, **wrong[0])
    with refused(sw.InvalidActions, code):
        sw.decide_frame(agent.replica_snapshot(), users, run=RUN, **wrong[0])
    assert (agent.round, agent.pending_count) == (0, 0)


def test_a_table_decided_again_counts_once_and_another_proposal_is_a_conflict(tmp_path: Path) -> None:
    agent, users = build_agent(GUARD), build_users(20) | {"photo": [0.5] * 20, "offer": [0.25] * 20}
    columns: dict[str, Any] = {"run": RUN, "propose": ["photo", "offer"]}
    first = agent.decide_frame(users, **columns)
    for _ in range(2):
        again = agent.decide_frame(users, **columns)
        for name, column in again.items():
            assert np.array_equal(column, first[name], equal_nan=column.dtype.kind == "f")
        agent.save(tmp_path / "agent.json", overwrite=True)
        agent = sw.Agent.load(tmp_path / "agent.json")
    assert agent.round == 20
    for other in ({"propose": {"photo": "offer"}}, {"scores": ["photo", "offer"]}):
        assert set(agent.decide_frame(users, run=RUN, **other)["error"]) == {"conflict"}
    assert agent.round == 20
    late = {name: [*column, *column[:1]] for name, column in users.items()}
    late["user_id"][-1] = "u20"
    assert agent.decide_frame(late, **columns)["error"].tolist() == [None] * 21


def test_what_was_decided_on_a_proposal_is_not_decided_again_without() -> None:
    for decide in (
        lambda agent, users: agent.decide_frame(users, run=RUN, propose="wanted"),
        lambda agent, users: [
            agent.decide(
                {"age": user["age"], "country": user["country"]}, id=f"{RUN}:{user['user_id']}", propose="plain"
            )
            for user in to_rows(users)
        ],
    ):
        agent, users = build_agent(LEARNED), build_users(4) | {"wanted": ["plain"] * 4}
        decide(agent, users)
        assert set(agent.decide_frame(users, run=RUN)["error"]) == {"conflict"}
        assert set(agent.decide_frame(users, run=RUN, propose="wanted")["error"]) == {None}
        assert agent.round == 4


def test_registered_tables_count_in_the_report() -> None:
    users = build_users(30) | {"photo": [0.5] * 30, "offer": [0.25] * 29 + [9.0]}
    agent, other, columns = build_agent(GUARD), build_agent(GUARD), {"run": RUN, "propose": ["photo", "offer"]}
    agent.decide_frame(users, **columns)
    for rows in np.array_split(range(30), 4):
        part = sw.decide_frame(other.replica_snapshot(), take(users, rows), **columns)
        expected = ["invalid" if error else "accepted" for error in part["error"]]
        assert other.register_frame(part)["status"].tolist() == expected
    one, two = agent.report(), other.report()
    assert [summary.action for summary in one.proposals] == ["photo", "offer"]
    assert one.proposals == two.proposals
    assert 0.0 < one.proposals[1].overlap < 1.0
    assert [line for line in str(two).splitlines() if line.startswith("proposed")]
    assert (one.rounds, one.safe_only_rounds) == (two.rounds, two.safe_only_rounds)
    mixed = sw.decide_frame(other.replica_snapshot(), take(users, [0, 1]), run="scores", scores=["photo", "offer"])
    assert set(other.register_frame(mixed)["status"]) == {"accepted"}
    slower = other.report().proposals[0].decisions_until_whole
    assert slower is None or slower > (two.proposals[0].decisions_until_whole or 0)


def test_while_an_alert_is_open_or_acknowledged_tables_are_as_single_decisions(tmp_path: Path) -> None:
    bad = {"age": [40.0] * 8_000, "country": ["NZ"] * 8_000, "action": ["plain"] * 8_000}
    bad |= {"opt_out": ([1.0] * 4 + [0.0] * 46) * 160, "spend": [0.0] * 8_000}
    users = build_users(10) | {"wanted": ["photo", "offer"] * 5, "country": ["NZ"] * 10}
    agent, alone = sw.Agent(GUARD, seed=7), sw.Agent(GUARD, seed=7)
    for one in (agent, alone):
        one.learn_log_frame(bad)
    for turn in range(2):
        rows = to_rows(agent.decide_frame(users, run=f"r{turn}", propose="wanted"))
        for row, user in zip(rows, to_rows(users), strict=True):
            context = {name: user[name] for name in ("age", "country")}
            decision: Any = alone.decide(context, id=f"r{turn}:{user['user_id']}", propose=user["wanted"])
            assert (decision.action, decision.reason) == (row["action"], row["reason"])
            assert decision.probabilities == {name: row[f"probability.{name}"] for name in ACTIONS}
            assert decision.proposal.overlap == row["proposal.overlap"]
            if turn:
                assert ", ".join(decision.proposal.binding) == row["proposal.binding"]
        for one in (agent, alone):
            for finding in [finding.name for finding in one.health() if finding.verdict.value == "contradicted"]:
                if finding not in one._learned.statistics.acknowledged:
                    one.acknowledge_alert(finding, "a broken feed")
    assert any(row["probability.photo"] > 0.0 for row in rows)
    assert read_saved(agent, tmp_path)["queue"] == read_saved(alone, tmp_path)["queue"]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_file_is_decided_with_proposals(tmp_path: Path, suffix: str) -> None:
    users, out = tmp_path / f"users{suffix}", tmp_path / f"decisions{suffix}"
    table = build_users(20) | {"wanted": ["photo", "offer"] * 10}
    write_batches(users, read_batches(table).batches)
    expected = build_agent(GUARD).decide_frame(table, run=RUN, propose="wanted")
    agent = build_agent(GUARD)
    assert decide_file(agent, users, out, run=RUN, propose="wanted").errors == 0
    written = [row for batch in read_batches(out).batches for row in batch.column("action").to_pylist()]
    assert written == expected["action"].tolist()
    outcomes = {"decision_id": expected["decision_id"].tolist(), "opt_out": [0.0] * 20, "spend": [1.0] * 20}
    assert set(agent.learn_outcomes(outcomes)["status"]) == {"accepted"}
    assert agent.pending_count == 0
    assert json.loads(json.dumps(agent.report().to_dict()))["proposals"]
