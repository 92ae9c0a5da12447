"""Tables: decided as one by one, whatever the partition, the order and the number of tries; outcomes learned by id."""

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from arro3.core import RecordBatch, Table
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.agent import decision_table, table_agent
from stagewise.agent.table_file import decide_file, learn_file
from stagewise.files import tables as record_batches
from stagewise.files.tables import read_batches, write_batches
from stagewise.problem.errors import ErrorCode

ACTIONS = ["plain", "photo", "offer"]
PROBLEM = sw.Problem(
    action_names=ACTIONS,
    safe_name="plain",
    context={"age": (18, 99), "opens": (0, 7)},
    reward=sw.Reward("click", high=2),
    limits={
        "opt_out": sw.Limit(0.1, safe_bound=0.05, by="country"),
        "spend": sw.Limit(3.0, low=0, high=9, safe_bound=2.0, model="rates"),
    },
)
WINDOWS = sw.Problem(
    action_names=ACTIONS, safe_name="plain", context={"age": (18, 99)}, reward=sw.Reward("click", window="1d"),
    limits={"opt_out": sw.Limit(0.1, safe_bound=0.05, window="2d", model="rates")},
)  # fmt: skip
MOVING = sw.Problem(
    action_names=ACTIONS, safe_name="plain", reward=sw.Reward("click"),
    context={"age": sw.Number(18, 60, clip=True, missing=30), "country": sw.Category(["NZ", "AU"], other=True)},
    limits={"opt_out": sw.Limit(0.1, safe_bound=0.05, model="rates", drift="0.005/30d")},
)  # fmt: skip
NIGHT, SIZE = "2026-11-19", 40


def build_agent(problem: sw.Problem = PROBLEM, rows: int = 150, **settings: Any) -> sw.Agent:
    """Return an agent that has learned a log, so that it plays mixtures."""
    agent, random = sw.Agent(problem, seed=7, **settings), np.random.default_rng(3)
    log = build_users(rows, random) | {"action": [ACTIONS[i] for i in random.integers(0, 3, rows)]}
    log |= {"click": random.random(rows), "opt_out": random.random(rows) < 0.03, "spend": 3 * random.random(rows)}
    if rows:
        agent.learn_log_frame(log)
    return agent


def build_users(count: int, random: Any = None) -> dict[str, Any]:
    random = np.random.default_rng(5) if random is None else random
    return {
        "user_id": [f"u{index}" for index in range(count)],
        "age": random.integers(18, 99, count).astype(float),
        "opens": random.integers(0, 8, count),
        "country": [["NZ", "AU", "DE"][i] for i in random.integers(0, 3, count)],
    }


def take(users: dict[str, Any], rows: Any) -> dict[str, Any]:
    return {name: [column[row] for row in rows] for name, column in users.items()}


def to_rows(table: Any) -> list[dict[str, Any]]:
    """Return a table as rows; NaN for what is missing."""
    columns = {name: np.asarray(column).tolist() for name, column in table.items()}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def read_saved(agent: sw.Agent, folder: Path) -> Any:
    """Return the content of an agent's file, without what tells one save from another."""
    path = folder / "compared.json"
    agent.save(path, overwrite=True)
    return {name: value for name, value in json.loads(path.read_text()).items() if name not in ("writer", "digest")}


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_batches, "BATCH_ROWS", 16)


@pytest.mark.parametrize("problem", [PROBLEM, WINDOWS, MOVING], ids=["plain", "windows", "categories and drift"])
def test_a_table_is_decided_as_one_by_one_to_the_bit(tmp_path: Path, problem: sw.Problem) -> None:
    now, learned = 1_000_000.5 if problem is not PROBLEM else None, 0 if problem is MOVING else 150
    agent, alone, users = (*(build_agent(problem, learned) for _ in range(2)), build_users(SIZE))
    rows = to_rows(agent.decide_frame(users, run=NIGHT, now=now))
    drawn = set()
    for row, user in zip(rows, to_rows(users), strict=True):
        context = {name: user[name] for name in problem.context_names}
        one = alone.decide(context, id=f"{NIGHT}:{user['user_id']}", now=now)
        drawn.add((one.action, row["propensity"] < 1.0))
        assert one.id == row["decision_id"]
        assert one.action == row["action"]
        assert one.probabilities == {name: row[f"probability.{name}"] for name in ACTIONS}
        assert one.probabilities[one.action] == row["propensity"]
        assert one.estimated_reward == row["estimated_reward"]
        for name, status in one.limits.items():
            assert status.pessimistic_cost == row[f"limit.{name}.pessimistic_cost"]
            assert status.estimate == row[f"limit.{name}.estimate"]
        assert one.reason == row["reason"]
        assert row["error"] is None
    assert len(drawn) > (2 if learned else 0)
    assert read_saved(agent, tmp_path)["queue"] == read_saved(alone, tmp_path)["queue"]
    assert agent.report().to_dict() == alone.report().to_dict()


@pytest.mark.parametrize("parts", [1, 7])
def test_partitions_order_and_retries_change_nothing(parts: int) -> None:
    snapshot, users = build_agent().replica_snapshot(), build_users(SIZE)
    whole = {row["user_id"]: row for row in to_rows(sw.decide_frame(snapshot, users, run=NIGHT))}
    order = np.random.default_rng(parts).permutation(SIZE)
    for rows in np.array_split(order, parts):
        for _ in range(2):  # a task is tried again, in a process that has only the bytes of the snapshot
            again = sw.Snapshot.from_bytes(bytes(snapshot))
            for row in to_rows(sw.decide_frame(again, take(users, rows), run=NIGHT)):
                assert row == whole[row["user_id"]]


def test_a_later_run_draws_again() -> None:
    agent, users = build_agent(), build_users(SIZE)
    first, second = (agent.decide_frame(users, run=run) for run in ("monday", "tuesday"))
    assert (first["propensity"] != second["propensity"]).any()
    assert not set(first["decision_id"]) & set(second["decision_id"])


def test_rows_that_cannot_be_decided_have_a_code_and_the_safe_action() -> None:
    users, agent, alone = build_users(SIZE), build_agent(), build_agent()
    users["age"][3], users["age"][4], users["country"][5] = np.nan, 400.0, ""
    users["user_id"][6], users["user_id"][7], users["user_id"][30] = None, "x" * 300, users["user_id"][8]
    codes = {3: "missing_context_field", 4: "context_out_of_range", 5: "missing_context_field", 6: "missing_value",
             7: "invalid_name", 30: "duplicate_name"}  # fmt: skip
    rows = to_rows(agent.decide_frame(users, run=NIGHT))
    for index, row in enumerate(rows):
        assert row["error"] == codes.get(index)
        if index in codes:
            assert (row["action"], row["propensity"], row["decision_id"]) == ("plain", 1.0, None)
            assert (row["limit.opt_out.pessimistic_cost"], row["reason"]) == (0.05, None)
        else:
            user = {name: users[name][index] for name in PROBLEM.context_names}
            assert alone.decide(user, id=f"{NIGHT}:{users['user_id'][index]}").action == row["action"]
    assert agent.pending_count == SIZE - len(codes)
    texts = agent.decide_frame(take(users, [0, 1]) | {"age": ["34", "35"]}, run="texts")
    assert texts["error"].tolist() == ["wrong_type"] * 2
    rows = to_rows(agent.decide_frame({name: [values[3]] for name, values in users.items()}))
    assert [row["error"] for row in rows] == ["missing_context_field"]


def test_a_table_with_a_missing_or_wrong_column_changes_nothing() -> None:
    agent, users = build_agent(), build_users(3)
    with refused(sw.InvalidActions, ErrorCode.COLUMN_MISSING):
        agent.decide_frame({name: column for name, column in users.items() if name != "opens"})
    with refused(sw.InvalidActions, ErrorCode.COLUMN_MISSING):
        agent.decide_frame(users, id="user")
    with refused(sw.InvalidActions, ErrorCode.COLUMN_WRONG_TYPE):
        agent.decide_frame(users | {"user_id": [0.5, 1.5, 2.5]})
    with refused(sw.InvalidActions, ErrorCode.INVALID_NAME):
        agent.decide_frame(users, id="age")
    for run in ("", "a:b", 3, "x" * 300):
        with refused(sw.InvalidOutcome, ErrorCode.INVALID_NAME):
            agent.decide_frame(users, run=run)  # type: ignore[arg-type]
    with refused(sw.InvalidProblem, ErrorCode.UNSUPPORTED):
        sw.Agent(sw.OPB(arms=2, safe_action=sw.SafeAction(arm=0, cost=0.0), threshold=0.5)).decide_frame(users)
    assert (agent.round, agent.pending_count) == (0, 0)


def test_an_empty_table_is_decided() -> None:
    users = {name: np.asarray(column)[:0] for name, column in build_users(1).items()}
    assert not len(build_agent().decide_frame(users)["action"])


def test_a_table_decided_again_counts_once(tmp_path: Path) -> None:
    agent, users = build_agent(), build_users(SIZE)
    first = to_rows(agent.decide_frame(users, run=NIGHT))
    saved = read_saved(agent, tmp_path)
    assert to_rows(agent.decide_frame(users, run=NIGHT)) == first
    assert {**read_saved(agent, tmp_path), "generation": 1} == {**saved, "generation": 1}
    users["age"] = 117.0 - users["age"]  # the same ids with other numbers: another decision
    assert {row["error"] for row in to_rows(agent.decide_frame(users, run=NIGHT))} == {"conflict"}
    users["age"] = 117.0 - users["age"]
    agent.learn_outcomes({"decision_id": [row["decision_id"] for row in first], "click": [1.0] * SIZE})
    assert {row["error"] for row in to_rows(agent.decide_frame(users, run=NIGHT))} == {"conflict"}
    assert agent.round == SIZE
    with refused(sw.InvalidActions, ErrorCode.CONFLICT):
        agent.decide({"age": 30.0, "opens": 1, "country": "NZ"}, id=f"{NIGHT}:u0")


def test_values_beyond_their_range_count_once_for_each_decision() -> None:
    agent, users, others = sw.Agent(MOVING, seed=7), build_users(SIZE), build_users(SIZE)
    users["age"] = np.where(np.arange(SIZE) % 2, 99.0, 30.0)
    others["user_id"], others["age"] = [f"v{index}" for index in range(SIZE)], users["age"]
    both = {name: [*users[name], *others[name]] for name in users}
    decisions = sw.decide_frame(agent.replica_snapshot(), both, run=NIGHT, now=1e6)
    first = {name: column[: SIZE // 2] for name, column in decisions.items()}
    for part, count in ((first, SIZE // 4), (decisions, SIZE), (decisions, SIZE)):
        agent.register_frame(part)
        assert agent.report().clipped == {"age": count}
    alone = sw.Agent(MOVING, seed=7)
    for part, count in ((users, SIZE // 2), (both, SIZE), (both, SIZE)):
        alone.decide_frame(part, run=NIGHT, now=1e6)
        assert alone.report().clipped == {"age": count}


def test_users_that_join_a_run_are_the_only_ones_that_count_again() -> None:
    fresh = sw.Problem(
        action_names=ACTIONS,
        safe_name="plain",
        reward=sw.Reward("click"),
        limits={"opt_out": sw.Limit(0.1, safe_bound=0.05)},
    )
    twice, once, names = sw.Agent(fresh, seed=7), sw.Agent(fresh, seed=7), [f"u{index}" for index in range(30)]
    twice.decide_frame({"user_id": names[:20]}, run=NIGHT)
    twice.decide_frame({"user_id": names}, run=NIGHT)
    once.decide_frame({"user_id": names}, run=NIGHT)
    assert twice.report().to_dict() == once.report().to_dict()
    assert once.report().safe_only_rounds == once.report().recent_rounds == 30


def test_where_means_move_a_table_decided_again_needs_its_time() -> None:
    agent, users = sw.Agent(MOVING, seed=7), build_users(SIZE)
    first = to_rows(agent.decide_frame(users, run=NIGHT, now=1e6))
    assert {row["error"] for row in to_rows(agent.decide_frame(users, run=NIGHT, now=1e6 + 1.0))} == {"conflict"}
    assert to_rows(agent.decide_frame(users, run=NIGHT, now=1e6)) == first
    assert agent.round == SIZE


def test_the_default_run_is_the_number_of_decisions() -> None:
    agent, users = build_agent(), build_users(3)
    runs = [agent.decide_frame(users)["decision_id"][0].split(":")[1] for _ in range(2)]
    assert runs == ["0", "3"]


def test_decisions_of_other_processes_are_registered(tmp_path: Path) -> None:
    agent, other, users = build_agent(), build_agent(), build_users(SIZE)
    users["age"][3], snapshot = np.nan, agent.replica_snapshot()
    parts = [sw.decide_frame(snapshot, take(users, rows), run=NIGHT) for rows in np.array_split(range(SIZE), 3)]
    for part in parts:
        expected = ["invalid" if error else "accepted" for error in part["error"]]
        assert agent.register_frame(part)["status"].tolist() == expected
    good = [id_ is not None for id_ in parts[0]["decision_id"]]
    assert agent.register_frame(parts[0])["status"].tolist() == ["duplicate" if is_ok else "invalid" for is_ok in good]
    other.decide_frame(users, run=NIGHT)
    one, two = read_saved(agent, tmp_path), read_saved(other, tmp_path)
    one["registered"]["ids"]["runs"] = two["registered"]["ids"]["runs"]  # the state that decided is not known
    assert one == two
    strange = {**parts[1], "decision_id": ["x:y:z"] * len(parts[1]["action"])}
    assert set(agent.register_frame(strange)["status"]) == {"unknown"}
    wrong = {**parts[1], "action": ["nothing"] * len(parts[1]["action"])}
    assert set(agent.register_frame(wrong)["status"]) == {"invalid"}


OUTCOME = st.fixed_dictionaries({
    "row": st.integers(0, 13),
    "click": st.sampled_from([None, 0.0, 1.0, 2.0, 5.0]),
    "opt_out": st.sampled_from([None, False, False, True]),
    "spend": st.sampled_from([None, 0.0, 3.0]),
    "later": st.integers(0, 1),
})  # fmt: skip


@settings(max_examples=25)
@given(
    outcomes=st.lists(OUTCOME, min_size=1, max_size=60), windows=st.booleans(),
    order=st.sampled_from(["decision", "arrival"]), few=st.sampled_from([0, 10**9]),
)  # fmt: skip
def test_outcomes_are_learned_as_one_by_one(
    tmp_path_factory: Any, outcomes: list[dict[str, Any]], windows: bool, order: Any, few: int
) -> None:
    problem = WINDOWS if windows else PROBLEM
    settings = {} if windows else {"learning_order": order}
    bulk, alone = (build_agent(problem, rows=0, **settings) for _ in range(2))
    names, now = list(problem.signals), 1_000_000.0 if windows else None
    ids = bulk.decide_frame(build_users(12), run=NIGHT, now=now)["decision_id"].tolist()
    assert ids == alone.decide_frame(build_users(12), run=NIGHT, now=now)["decision_id"].tolist()
    ids += ["somebody:night:u1", ""]
    for later in (0, 1):  # the second table arrives after the window of clicks
        table, at = [one for one in outcomes if one["later"] == later], None if now is None else now + later * 100_000.0
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("stagewise.agent.base_agent.FEW_DUE", few)
            columns = {name: [one[name] for one in table] for name in names} | {
                "decision_id": [ids[one["row"]] for one in table]
            }
            found = bulk.learn_outcomes(columns, now=at)["status"].tolist() if table else []
        if table and windows:
            alone.expire_pending(at)
        expected = [learn_alone(alone, ids[one["row"]], {name: one[name] for name in names}, at) for one in table]
        assert found == expected
    folder = tmp_path_factory.mktemp("agents")
    saved = read_saved(bulk, folder), read_saved(alone, folder)
    for one in saved:  # learning all signals of a decision at once is one update alone
        del one["learned"], one["statistics"]["updates_until_check"]
    assert saved[0] == saved[1]


def learn_alone(agent: sw.Agent, id_: str, values: dict[str, Any], now: float | None) -> str:
    """Learn one outcome; return the status that its row of a table has."""
    given = {name: value for name, value in values.items() if value is not None}
    codes = {
        ErrorCode.UNKNOWN_DECISION: "unknown", ErrorCode.OUTCOME_ALREADY_KNOWN: "duplicate",
        ErrorCode.OUTCOME_TOO_LATE: "late", ErrorCode.OUTCOME_OUT_OF_RANGE: "invalid",
        ErrorCode.OUTCOME_MISSING: "invalid",
    }  # fmt: skip
    try:
        agent.learn(id_, **given, now=now)
    except sw.InvalidOutcome as error:
        return codes[error.code]
    return "accepted"


def test_outcomes_of_any_decision_are_learned_by_id() -> None:
    agent = build_agent()
    users = to_rows(build_users(4))
    contexts = [{name: user[name] for name in PROBLEM.context_names} for user in users]
    replica = sw.Replica(agent.replica_snapshot(), name="pod")
    ids = [agent.decide(contexts[0]).id, agent.decide(contexts[1], id=f"{NIGHT}:a").id, replica.decide(contexts[2]).id]
    agent.register_decision(sw.Replica(agent.replica_snapshot(), name="pod").decide(contexts[2]))
    outcomes = {"decision_id": [*ids, "nobody-000000000000", None], "click": [1.0] * 5}
    assert agent.learn_outcomes(outcomes)["status"].tolist() == ["accepted"] * 3 + ["unknown"] * 2
    agent.cancel(agent.decide(contexts[3], id=f"{NIGHT}:b").id)
    with refused(sw.InvalidActions, ErrorCode.COLUMN_MISSING):
        agent.learn_outcomes({"id": ids[:1], "click": [1.0]})
    with refused(sw.InvalidOutcome, ErrorCode.COLUMN_MISSING):
        agent.learn_outcomes({"decision_id": ids[:1]})
    with refused(sw.InvalidOutcome, ErrorCode.COLUMN_WRONG_TYPE):
        agent.learn_outcomes({"decision_id": ids[:1], "click": ["yes"]})


def test_ids_are_kept_until_their_run_is_over(tmp_path: Path) -> None:
    agent, users = build_agent(rows=0), build_users(1_100)
    for night in range(4):
        ids = agent.decide_frame(users, run=f"night {night}")["decision_id"].tolist()
        outcomes = {"decision_id": ids, **{name: [0.0] * len(ids) for name in PROBLEM.signals}}
        assert set(agent.learn_outcomes(outcomes)["status"]) == {"accepted"}
        assert set(agent.learn_outcomes(outcomes)["status"]) == {"duplicate"}
        agent.save(tmp_path / "agent.json")
        agent = sw.Agent.load(tmp_path / "agent.json")
    first = f"{ids[0].split(':')[0]}:night 0:u0"
    assert agent.learn_outcomes({"decision_id": [first], "click": [1.0]})["status"].tolist() == ["unknown"]
    with refused(sw.InvalidOutcome, ErrorCode.UNKNOWN_DECISION):
        agent.learn(first, click=1.0)
    with refused(sw.InvalidOutcome, ErrorCode.CONFLICT):
        agent.decide_frame(users, run="night 0")
    assert len(json.loads((tmp_path / "agent.json").read_text())["registered"]["ids"]["runs"]) < 4


def test_a_table_with_a_run_that_is_over_registers_nothing() -> None:
    """Else its first decisions are duplicates when the rest is registered again, and nobody acts on them."""
    agent, users, snapshot = build_agent(rows=0), build_users(1_100), build_agent(rows=0).replica_snapshot()
    for night in range(5):
        ids = agent.decide_frame(users, run=f"night {night}")["decision_id"].tolist()
        agent.learn_outcomes({"decision_id": ids, **{name: [0.0] * len(ids) for name in PROBLEM.signals}})
    new, old = (to_rows(sw.decide_frame(snapshot, build_users(20), run=run)) for run in (NIGHT, "night 0"))
    table = {name: [row[name] for row in [*new, *old]] for name in (*PROBLEM.context_names, "decision_id", "action")}
    before = agent.round
    with refused(sw.InvalidOutcome, ErrorCode.CONFLICT):
        agent.register_frame(table)
    assert agent.round == before
    assert set(agent.register_frame(take(table, range(20)))["status"]) == {"accepted"}


def test_while_an_alert_is_open_a_table_is_safe() -> None:
    agent, users = build_agent(rows=0), build_users(6)
    bad = to_rows(build_users(400))
    log = {name: [row[name] for row in bad] for name in PROBLEM.context_names} | {"action": ["plain"] * 400}
    agent.learn_log_frame(log | {"click": [0.0] * 400, "opt_out": [1.0, 0.0] * 200, "spend": [0.0] * 400})
    snapshot = agent.replica_snapshot()
    for table in (agent.decide_frame(users, run="a"), agent.decide_frame(users, run="b")):  # finds it, knows it
        assert set(table["action"]) == {"plain"}
        assert set(table["reason"]) == {"assumption_contradicted"}
        assert set(table["error"]) == {None}
    assert [finding.verdict.value for finding in agent.health() if finding.signal == "opt_out"].count("contradicted")
    other = build_agent(rows=0)
    other.learn_log_frame(log | {"click": [0.0] * 400, "opt_out": [1.0, 0.0] * 200, "spend": [0.0] * 400})
    other.register_frame(sw.decide_frame(snapshot, users, run="a"))
    assert other.decide({"age": 30.0, "opens": 1, "country": "NZ"}).reason is sw.FallbackReason.ASSUMPTION_CONTRADICTED
    for name in [finding.name for finding in agent.health() if finding.verdict.value == "contradicted"]:
        agent.acknowledge_alert(name, "a broken feed")
    alone = sw.Agent.__new__(sw.Agent)
    alone.__setstate__(agent.__getstate__())
    table, rows = agent.decide_frame(users, run="c"), to_rows(users)
    for row, action, share in zip(rows, table["action"], table["probability.offer"], strict=True):
        one = alone.decide({name: row[name] for name in PROBLEM.context_names}, id=f"c:{row['user_id']}")
        assert (one.action, one.probabilities["offer"]) == (action, share)


def test_the_kind_of_frame_that_came_is_returned() -> None:
    agent, users = build_agent(), build_users(5)
    expected = agent.decide_frame(users, run=NIGHT)["action"].tolist()
    batch = next(read_batches(users).batches)
    table = Table.from_batches([batch])
    assert isinstance(agent.decide_frame(batch, run=NIGHT), Table)
    assert agent.decide_frame(table, run=NIGHT).column("action").to_pylist() == expected
    relation = agent.decide_frame(duckdb.from_arrow(table), run=NIGHT)
    assert [row[0] for row in relation.select("action").fetchall()] == expected
    numbered = users | {"user_id": np.arange(5)}
    assert agent.decide_frame(numbered, run="n")["decision_id"][4].endswith(":n:4")


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_file_decided_again_has_the_same_bytes(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    users, out, saved = tmp_path / f"users{suffix}", tmp_path / f"decisions{suffix}", tmp_path / "agent.json"
    write_batches(users, read_batches(build_users(SIZE)).batches)
    build_agent().save(saved)
    build = decision_table.TableDecider.build_batch

    def die(self: Any, batch: Any, decided: Any) -> Any:
        """Write the first batch, and fail at the second."""
        assert decided.ids[0].endswith(":u0"), "it dies in the middle"
        return build(self, batch, decided)

    monkeypatch.setattr(decision_table.TableDecider, "build_batch", die)
    with pytest.raises(AssertionError, match="in the middle"):
        decide_file(sw.Agent.load(saved), users, out)
    monkeypatch.setattr(decision_table.TableDecider, "build_batch", build)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["agent.json", out.name.replace("decisions", "users")]
    agent = sw.Agent.load(saved)
    assert str(decide_file(agent, users, out)) == "run '0': 40 of 40 users decided"
    content = out.read_bytes()
    again = sw.Agent.load(saved)  # it died before the agent was saved
    assert not decide_file(again, users, out).is_repeat
    assert out.read_bytes() == content
    again.save(saved)
    assert decide_file(sw.Agent.load(saved), users, out, run="0").is_repeat
    with refused(sw.InvalidFile, ErrorCode.FILE_EXISTS):
        decide_file(sw.Agent.load(saved), users, out)
    assert out.read_bytes() == content
    ids = [id_ for batch in read_batches(out).batches for id_ in batch.column("decision_id").to_pylist()]
    reports = tmp_path / f"outcomes{suffix}"
    write_batches(reports, read_batches({"decision_id": [*ids, "x:y:z"], "click": [1.0] * (SIZE + 1)}).batches)
    counts = learn_file(again, reports, out=tmp_path / f"status{suffix}").counts
    assert counts == {"accepted": SIZE, "unknown": 1}
    assert learn_file(again, reports).counts == {"duplicate": SIZE, "unknown": 1}


def test_ids_of_a_csv_are_texts(tmp_path: Path) -> None:
    users, out = tmp_path / "users.csv", tmp_path / "decisions.csv"
    users.write_text("user_id,age,opens,country\n007,30,1,NZ\n7,40,2,AU\n,50,3,DE\n")
    agent, other = build_agent(), build_agent()
    table = agent.decide_frame(str(users), run=NIGHT)
    assert table.column("user_id").to_pylist() == ["007", "7", None]
    assert table.column("error").to_pylist() == [None, None, "missing_value"]
    ids = table.column("decision_id").to_pylist()
    assert [id_.rpartition(":")[2] for id_ in ids[:2]] == ["007", "7"]
    snapshot = sw.decide_frame(agent.replica_snapshot(), str(users), run=NIGHT)
    assert snapshot.column("decision_id").to_pylist() == ids
    assert str(decide_file(other, users, out, run=NIGHT)) == (
        f"run {NIGHT!r}: 2 of 3 users decided; 1 rows could not be decided, see the column error"
    )
    assert [line.split(",")[:2] for line in out.read_text().splitlines()[1:]] == [
        ["007", ids[0]], ["7", ids[1]], ["", ""],
    ]  # fmt: skip


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("first", [0, 12])
def test_a_file_with_other_decisions_is_not_overwritten(tmp_path: Path, suffix: str, first: int) -> None:
    users, out = tmp_path / "users.parquet", tmp_path / f"decisions{suffix}"
    write_batches(users, read_batches(build_users(2)).batches)
    write_batches(out, read_batches({"decision_id": [first, 13]}).batches)
    content = out.read_bytes()
    with refused(sw.InvalidFile, ErrorCode.FILE_EXISTS):
        decide_file(build_agent(), users, out)
    assert out.read_bytes() == content


def test_users_that_join_a_run_after_learning_are_decided_again_as_before(tmp_path: Path) -> None:
    agent, early, late = build_agent(), build_users(4), build_users(6)
    agent.decide_frame(early, run=NIGHT)
    agent.learn_log_frame({**build_users(1), "action": ["plain"], "click": [1.0], "opt_out": [False], "spend": [1.0]})
    joined = {name: column[4:] for name, column in late.items()}
    first = agent.decide_frame(joined, run=NIGHT)
    agent.save(tmp_path / "agent.json")
    agent = sw.Agent.load(tmp_path / "agent.json")
    again = agent.decide_frame(joined, run=NIGHT)
    assert again["error"].tolist() == [None] * 2
    assert again["decision_id"].tolist() == first["decision_id"].tolist()
    assert agent.pending_count == 6
    assert agent.decide_frame(early, run=NIGHT)["error"].tolist() == ["conflict"] * 4


def test_ids_of_single_decisions_are_forgotten_with_their_run() -> None:
    agent, context = build_agent(rows=0), {"age": 30.0, "opens": 1, "country": "NZ"}
    for index in range(3_000):
        decision = agent.decide(context, id=f"{index}:u")
        agent.learn(decision, click=0.0, opt_out=False, spend=0.0)
    ids = agent._identity.ids
    assert len(ids.runs) < 2_500
    assert len(ids.recent) + sum(rounds.size for _, rounds in ids.levels) == len(ids.runs)
    with refused(sw.InvalidOutcome, ErrorCode.CONFLICT):
        agent.decide(context, id="0:v")


def test_files_that_are_no_tables_are_named(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing more")
    (tmp_path / "tiny.parquet").write_bytes(b"x")
    for name, code in (("none.parquet", ErrorCode.FILE_NOT_FOUND), ("broken.parquet", ErrorCode.FILE_INVALID),
                       ("tiny.parquet", ErrorCode.FILE_INVALID), ("a.json", ErrorCode.FILE_WRONG_KIND)):  # fmt: skip
        with refused(sw.InvalidFile, code):
            read_batches(tmp_path / name)
    with refused(sw.InvalidFile, ErrorCode.FILE_WRONG_KIND):
        write_batches(tmp_path / "a.json", [])
    batch = RecordBatch.from_arrays(list(next(read_batches(build_users(2)).batches).columns)[:2], names=["a", "a"])
    with refused(sw.InvalidOutcome, ErrorCode.DUPLICATE_NAME):
        read_batches(batch)
    assert tuple(sw.RowStatus) == table_agent.STATUSES
