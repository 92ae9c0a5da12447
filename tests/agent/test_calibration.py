"""Limits for every user: outcomes beside the users' own upper ends, in agents, replicas, servers and saved files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from tests.problem.refusal import refuses
from tests.server.logs import Log, problem
from tests.sizes import sized

import stagewise as sw
from stagewise.agent.agent_statistics import Statistics
from stagewise.agent.calibration import CalibratedLimit, build_excess_cause
from stagewise.agent.health_findings import Verdict
from stagewise.agent.mismatch import MismatchTest
from stagewise.engine.compile import as_python
from stagewise.engine.layout import CACHED, LIMITS
from stagewise.engine.workspace import CENTRE, HALF
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.records.reason import Contradiction, ReasonDetails
from stagewise.server.state_fold import StateFold

NAME, ROWS = "mismatch of opt_out", 400
KINDS = {"linear": 0.2, "ridge": 0.3, "logistic": 0.2}  # models of a cost, and limits under which they are used


def build_problem(kind: str = "linear", value: Any = None, **limit: Any) -> sw.Problem:
    """Return two offers beside nothing, for users of two numbers and a plan."""
    model = "linear" if kind == "ridge" else kind
    settings: dict[str, Any] = {"safe_bound": 0.0, "model": model, **limit}
    return sw.Problem(
        action_names=["nothing", "offer", "digest"], safe_name="nothing", reward=sw.Reward("click"),
        context={"age": (20, 60), "visits": (0, 10), "plan": sw.Category(["free", "pro"])},
        limits={"opt_out": sw.Limit(KINDS[kind] if value is None else value, **settings)},
    )  # fmt: skip


def draw_rows(policy: Any, chance: np.random.Generator, count: int, rate: Any) -> tuple[Any, Any]:
    """Return rows by lot with their outcomes; `rate` is of scaled ages and visits."""
    numbers = chance.uniform(-1.0, 1.0, (count, policy.context))
    rows = np.column_stack([chance.integers(1, policy.actions, count), np.ones(count), numbers])
    opt_outs = chance.random(count) < rate(numbers[:, 0], numbers[:, 1])
    return rows, np.column_stack([chance.random(count) < 0.1, opt_outs]).astype(np.float64)


def by_corner(age: Any, visits: Any) -> Any:
    """No sum of age and visits tells the rate."""
    return np.where(age * visits > 0.0, 0.3, 0.02)


def by_step(age: Any, _: Any) -> Any:
    """A threshold."""
    return np.where(age > 0.4, 0.5, 0.01)


def by_band(age: Any, _: Any) -> Any:
    """The young and the old, not those between them."""
    return np.where(np.abs(age) > 0.5, 0.3, 0.03)


def by_line(age: Any, visits: Any) -> Any:
    return 0.1 + 0.05 * age + 0.04 * visits


def by_logit(age: Any, visits: Any) -> Any:
    return 1.0 / (1.0 + np.exp(2.5 - 0.8 * age - 0.6 * visits))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_at_once_are_rows_one_by_one_and_without_ends_to_the_bit(kind: str) -> None:
    policy = build_problem(kind).policy()
    rows, values = draw_rows(policy, np.random.default_rng(1), 120, by_line)
    values[::7, 0], values[::5, 1] = np.nan, np.nan
    plain = policy.learn_rows(policy.start(), rows, values)
    found = []
    for size in (120, 1, 11):
        test, state = MismatchTest(policy), policy.start()
        test.scores = test.scores._replace(newer=np.ones((3, policy.context)), since=30)
        for start in range(0, 120, size):
            part = slice(start, start + size)
            state = test.learn_state(policy, state, rows[part], values[part], np.arange(120)[part])
        assert state.memory.tobytes() == plain.memory.tobytes()
        found.append(test.to_dict())
    assert found[0] == found[1] == found[2]
    limit: Any = MismatchTest(policy).limits[0]
    limit.restore(found[0]["limits"][0])
    assert limit.to_dict() == found[0]["limits"][0]


@pytest.mark.parametrize("kind", KINDS)
def test_an_end_is_that_of_a_decision_made_before_the_row_was_learned(kind: str) -> None:
    policy = build_problem(kind).policy()
    rows, values = draw_rows(policy, np.random.default_rng(2), 150, by_line)
    rows[::9, 0] = 0.0
    state = policy.learn_rows(policy.start(), rows[:-1], values[:-1])
    index, model, block = next(
        (i, *one) for i, one in enumerate(policy.rounds.iter_blocks(state.memory)) if one[1].first == 1
    )
    assert model.learn_with_ends is not None
    assert index == 1
    offered = np.tile(rows[-1], (3, 1))
    offered[:, 0] = np.arange(3)
    bounds = np.zeros((1 + policy.layout.item(LIMITS), 8, 4))
    work = np.empty(policy.rounds.get_resources(state.memory, rows.shape[1], int(state.memory.item(CACHED))).scratch)
    as_python(model.bounds)(policy.layout, block, offered, True, policy.settings, state.memory, bounds, work)
    action = int(rows[-1, 0])
    ends = np.ones((1, 2))
    policy.learn_rows(state, rows[-1:], values[-1:], ends)
    assert ends[0, 1] == pytest.approx(bounds[1, CENTRE, action] + bounds[1, HALF, action], rel=1e-9)
    whole = np.ones(values.shape)
    policy.learn_rows(policy.start(), rows, values, whole)
    assert (whole[::9, 1] == 1.0).all()  # the safe action's cost is declared
    assert (whole[:, 0] == 1.0).all()


def test_a_corner_of_the_users_is_found_with_its_columns() -> None:
    problem = build_problem()
    test, statistics, policy = MismatchTest(problem.policy()), Statistics(), problem.policy()
    rows, values = draw_rows(policy, np.random.default_rng(1), 3_000, lambda *user: 2.5 * by_corner(*user))
    state = test.learn_state(policy, policy.start(), rows, values, np.arange(3_000))
    test.check(policy, state.memory, statistics, at_once=True)
    details = statistics.warnings[NAME].details
    assert (details["found"], details["promise"], details["form"]) == (Contradiction.MEAN_FORM, "every_user", "linear")
    assert {details["column"], details["second_column"]} == {"age", "visits"}
    cuts = {details["column"]: (details["above"], details["up_to"])}
    cuts[details["second_column"]] = details["second_above"], details["second_up_to"]
    assert (cuts["age"][0] is None) == (cuts["visits"][0] is None)
    assert next(cut for cut in cuts["age"] if cut is not None) == pytest.approx(40.0, abs=4.0)
    assert details["mean"] > details["end"]
    assert "'age' is" in statistics.warnings[NAME].message
    assert ReasonDetails.from_json(statistics.warnings[NAME].to_json()) == statistics.warnings[NAME]


def test_rows_of_a_log_tell_rates_and_nothing_is_bet_on_them() -> None:
    policy = build_problem().policy()
    test, (rows, values) = MismatchTest(policy), draw_rows(policy, np.random.default_rng(1), 3_000, by_corner)
    test.learn_rows(rows, values)
    limit: Any = test.limits[0]
    assert limit.count == 3_000
    assert limit.find_cause(policy, 0.5) is None
    assert (limit.table[:, :, 2] == 0.0).all()


def decide_and_learn(agent: Any, chance: np.random.Generator, users: int) -> None:
    """Play users whose opt-outs no sum of their numbers tells."""
    for _ in range(users):
        age, visits = chance.uniform(20.0, 60.0), chance.uniform(0.0, 10.0)
        decision = agent.decide({"age": age, "visits": visits, "plan": "pro"})
        rate = 0.0 if decision.action == "nothing" else 0.9 if (age > 40.0) == (visits > 5.0) else 0.02
        agent.learn(decision, click=float(decision.action != "nothing"), opt_out=float(chance.random() < rate))


def test_stop_plays_the_safe_action_until_somebody_acknowledges_it(tmp_path: Path) -> None:
    problem, chance = build_problem("ridge", 0.6, on_mismatch="stop"), np.random.default_rng(3)
    agent, user = sw.Agent(problem, seed=1), {"age": 50.0, "visits": 9.0, "plan": "pro"}
    decide_and_learn(agent, chance, 1_500)
    assert agent.health()[NAME].verdict is Verdict.FINE
    agent.save(tmp_path / "agent.json")
    again = sw.Agent.load(tmp_path / "agent.json", problem)
    mine, saved = agent._learned.mismatch, again._learned.mismatch
    assert mine is not None
    assert saved is not None
    assert saved.to_dict() == mine.to_dict()
    limit: Any = mine.limits[0]
    limit.table[0, 0, 2] = 1e3  # as if bets had won
    agent._learned.run_tests(at_once=True)
    decision = agent.decide(user)
    assert (decision.reason, decision.action) == (sw.FallbackReason.ASSUMPTION_CONTRADICTED, "nothing")
    assert decision.reason_details.details["found"] == Contradiction.MEAN_FORM
    assert (
        sw.Replica(agent.replica_snapshot(), name="pod").decide(user).reason
        is sw.FallbackReason.ASSUMPTION_CONTRADICTED
    )
    assert not agent.health().ok
    agent.acknowledge_alert(NAME, "Ana: known")
    assert agent.decide(user).reason is not sw.FallbackReason.ASSUMPTION_CONTRADICTED


@pytest.mark.parametrize("subgroup", range(0, 33))
def test_every_part_of_the_users_has_a_sentence(subgroup: int) -> None:
    policy = build_problem().policy()
    limit = CalibratedLimit(policy, 0)
    rows, values = draw_rows(policy, np.random.default_rng(1), 200, by_line)
    limit.count_rows(rows, values[:, 1], np.full(200, 0.01), np.ones((3, policy.context)))
    assert limit.table.shape[1] == 33
    found = limit.find_difference(1.0)
    assert found is not None
    cause = build_excess_cause(policy, limit, found._replace(cell=subgroup % 3, subgroup=subgroup))
    assert "'opt_out' is not linear" in cause.message
    assert "no finite number" not in cause.message


def test_a_new_action_has_a_cell_and_a_corrupt_file_is_refused() -> None:
    agent = sw.Agent(build_problem(), seed=1)
    agent.add_action("sale")
    policy: Any = agent.policy
    rows, values = draw_rows(policy, np.random.default_rng(1), 50, by_line)
    rows[:, 0] = 3.0
    test = agent._learned.mismatch
    assert test is not None
    test.learn_state(policy, policy.start(), rows, values, np.arange(50))
    limit: Any = test.limits[0]
    assert limit.table.shape[0] == 5
    content = limit.to_dict()
    content["table"][0][0][0] = float("nan")
    refuses(lambda: limit.restore(content), InvalidProblem, ErrorCode.FILE_CORRUPT)
    other = test.clone()
    other.learn_state(policy, policy.start(), rows, values, np.arange(50))
    assert other.to_dict() != test.to_dict()


@pytest.mark.parametrize("model", ["rates", "linear"])
def test_a_server_counts_the_same_however_its_log_is_cut(model: str) -> None:
    log, chance, places = Log(), np.random.default_rng(1), []
    for i in range(350):
        places.append(log.decide("offer", i, age=float(chance.uniform(0, 100))))
        if i >= 30:
            log.tell(
                places[i - 30],
                i,
                click=float(chance.random() < 0.2),
                opt_out=float(chance.random() < 0.2),
                complaint=0.0,
            )
    limits = {"opt_out": sw.Limit(0.25, safe_bound=0.001, window="7d", model=model)}
    limits["complaint"] = sw.Limit(0.04, safe_bound=0.0, window="7d", by="country")
    folds = []
    for size in (10_000, 1, 77):
        fold = StateFold(problem(limits=limits), 1)
        for start in range(0, len(log.events), size):
            fold.take(log.events[start : start + size])
        folds.append(fold)
    assert folds[0].learned.mismatch is not None
    calibrated: Any = folds[0].learned.mismatch.limits[0]
    assert (calibrated.table[0, 0, 0] if model == "linear" else calibrated.count) > 300
    assert folds[0].learned.mismatch.scores.since > 0
    assert folds[0].encode() == folds[1].encode() == folds[2].encode()
    again = StateFold(problem(limits=limits), 1)
    again.restore(folds[0].encode())
    assert again.encode() == folds[0].encode()


def count_found(kind: str, rate: Any, runs: int, rows: int, level: float) -> int:
    """Return in how many worlds an excess is ever found, tested as an agent does."""
    policy, found = build_problem(kind).policy(), 0
    for run in range(runs):
        test, state, chance = MismatchTest(policy), policy.start(), np.random.default_rng(run)
        drawn, values = draw_rows(policy, chance, rows, rate)
        for start in range(0, rows, 250):
            part = slice(start, start + 250)
            state = test.learn_state(policy, state, drawn[part], values[part], np.arange(rows)[part])
            if test.limits[0].find_cause(policy, level) is not None:
                found += 1
                break
    return found


@pytest.mark.compiled
@sized(4, 1)
@pytest.mark.parametrize(
    ("kind", "rate", "runs", "rows"),
    [("linear", by_line, 200, 4_000), ("ridge", by_line, 200, 4_000), ("logistic", by_logit, 20, 3_000)],
)
def test_worlds_of_the_declared_form_are_silent(kind: str, rate: Any, runs: int, rows: int, size: int) -> None:
    runs //= size
    assert count_found(kind, rate, runs, rows, level=0.05) <= binom.ppf(0.99, runs, 0.05)


@pytest.mark.compiled
@sized(4, 1)
@pytest.mark.parametrize(
    ("kind", "rate", "runs", "rows"),
    [
        ("linear", by_corner, 40, 12_000), ("linear", by_step, 40, 60_000),
        ("logistic", by_corner, 10, 12_000), ("logistic", by_band, 10, 12_000),
    ],
)  # fmt: skip
def test_worlds_of_another_form_are_found(kind: str, rate: Any, runs: int, rows: int, size: int) -> None:
    runs //= size
    assert count_found(kind, rate, runs, rows, level=1e-3) >= (0.95 if size == 1 else 0.8) * runs
