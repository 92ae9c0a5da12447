"""A data frame as the log of a problem."""

from typing import Any

import numpy as np
import pytest
from tests.policies.test_problem import USER, problem
from tests.problem.refusal import refuses

import stagewise as sw
from stagewise.problem.errors import ErrorCode

COUNT = 60
CHANCE = np.random.default_rng(3)
FRAME: dict[str, Any] = {
    "minutes": CHANCE.uniform(0.0, 60.0, COUNT),
    "country": CHANCE.choice(["NZ", "AU", "FJ"], COUNT).tolist(),
    "age": CHANCE.uniform(18.0, 98.0, COUNT),
    "action": CHANCE.choice(["nothing", "digest", "offer"], COUNT).tolist(),
    "opt_out": CHANCE.random(COUNT) < 0.1,
    "tenure": CHANCE.uniform(-1.0, 1.0, COUNT),
    "spend": CHANCE.uniform(-10.0, 30.0, COUNT),
}


def by_hand() -> sw.Agent:
    """Return an agent that learned the rows one by one, its segments met in the order of their numbers."""
    said = problem()
    agent, policy = sw.Agent(said, seed=1), said.policy()
    rows, values = [], []
    for i in range(COUNT):
        user = {name: FRAME[name][i] for name in said.context_names}
        rows.append(policy.rows_for(said.encode_context(user))[said.get_action_index(FRAME["action"][i])])
        values.append(policy.values(FRAME["spend"][i], [float(FRAME["opt_out"][i]), FRAME["minutes"][i]]))
    agent._learned.state = policy.learn_log(policy.start(), np.array(rows), np.array(values))
    return agent


def test_a_frame_is_learned_as_its_rows_are_whatever_the_order_of_its_columns() -> None:
    agent, other = sw.Agent(problem(), seed=1), by_hand()
    agent.learn_log_frame(FRAME)
    assert agent.decide(USER).to_dict() == other.decide(USER).to_dict()
    assert np.array_equal(agent.state.memory, other.state.memory)


def test_a_report_tells_what_the_log_averages() -> None:
    rated = problem(context=(), reward=sw.Reward("spend", low=-10.0, high=30.0, model="rates"))
    agent = sw.Agent(rated, seed=1)
    agent.learn_log_frame({name: column for name, column in FRAME.items() if name not in ("age", "tenure")})
    agent.decide({"country": "NZ"})
    told = {action.name: action.reward.estimate for action in agent.report().actions if action.reward is not None}
    done = np.array(FRAME["action"])
    for name, estimate in told.items():
        assert estimate == pytest.approx(FRAME["spend"][done == name].mean())


def test_columns_of_other_names_are_mapped() -> None:
    renamed = {name.upper(): column for name, column in FRAME.items()}
    agent, other = sw.Agent(problem(), seed=1), sw.Agent(problem(), seed=1)
    agent.learn_log_frame(FRAME)
    said = problem()
    other.learn_log_frame(
        renamed, action="ACTION", reward="SPEND", costs={name: name.upper() for name in said.limits},
        context={name: name.upper() for name in said.context_names},
    )  # fmt: skip
    assert np.array_equal(agent.state.memory, other.state.memory)


def test_the_order_of_a_logs_rows_gives_no_segment_more_of_delta() -> None:
    worst = np.argsort(FRAME["opt_out"])
    sorted_ = {name: [column[i] for i in worst] for name, column in FRAME.items()}
    agents = [sw.Agent(problem(), seed=1) for _ in range(2)]
    for agent, frame in zip(agents, (FRAME, sorted_), strict=True):
        agent.learn_log_frame(frame)
    one, other = (agent.decide(USER).limits["opt_out"].pessimistic_cost for agent in agents)  # type: ignore[attr-defined]
    assert one == pytest.approx(other, rel=1e-9)


OUTCOME, ACTIONS = sw.InvalidOutcome, sw.InvalidActions
BAD: list[tuple[dict[str, Any], dict[str, Any], Any, list[Any]]] = [
    ({"action": [*FRAME["action"][1:], "offr"]}, {}, ACTIONS, [ErrorCode.INVALID_ROW, COUNT - 1]),
    ({"age": [200.0] * COUNT}, {}, ACTIONS, [ErrorCode.INVALID_ROW]),
    ({"tenure": [None] * COUNT}, {}, ACTIONS, [ErrorCode.INVALID_ROW]),
    ({"country": [None] * COUNT}, {}, ACTIONS, [ErrorCode.INVALID_ROW, 0]),
    ({"country": [1.5] * COUNT}, {}, ACTIONS, [ErrorCode.INVALID_ROW]),
    ({"spend": [31.0] * COUNT}, {}, OUTCOME, [ErrorCode.INVALID_ROW]),
    ({"opt_out": [2.0] * COUNT}, {}, OUTCOME, [ErrorCode.INVALID_ROW]),
    ({"opt_out": ["yes"] * COUNT}, {}, OUTCOME, [ErrorCode.COLUMN_WRONG_TYPE]),
    ({"age": [20.0]}, {}, OUTCOME, [ErrorCode.WRONG_SHAPE]),
    ({"opt_out": [0]}, {}, OUTCOME, [ErrorCode.WRONG_SHAPE]),
    ({"action": None}, {}, ACTIONS, [ErrorCode.COLUMN_MISSING]),
    ({"age": None}, {}, ACTIONS, [ErrorCode.COLUMN_MISSING]),
    ({"spend": None}, {}, OUTCOME, [ErrorCode.COLUMN_MISSING]),
    ({"minutes": None}, {}, OUTCOME, [ErrorCode.COLUMN_MISSING]),
    ({}, {"names": ["a"]}, ACTIONS, [ErrorCode.UNUSED_SETTING]),
    ({}, {"costs": ["opt_out"]}, OUTCOME, [ErrorCode.WRONG_TYPE]),
    ({}, {"costs": {"opt": "o"}}, OUTCOME, [ErrorCode.UNKNOWN_NAME]),
    ({}, {"costs": {"opt_out": "minutes"}}, OUTCOME, [ErrorCode.DUPLICATE_NAME]),
]


@pytest.mark.parametrize(("changes", "told", "kind", "words"), BAD)
def test_a_frame_that_cannot_be_meant_changes_nothing(changes: Any, told: Any, kind: Any, words: list[Any]) -> None:
    agent = sw.Agent(problem(), seed=1)
    before = agent.state.memory
    frame = {name: column for name, column in (FRAME | changes).items() if column is not None}
    refuses(lambda: agent.learn_log_frame(frame, **told), kind, *words)
    assert np.array_equal(before, agent.state.memory)


def test_a_file_is_read_as_a_frame(tmp_path: Any) -> None:
    lines = [",".join(FRAME), *(",".join(str(column[i]) for column in FRAME.values()) for i in range(COUNT))]
    (tmp_path / "log.csv").write_text("\n".join(lines), encoding="utf-8")
    agents = [sw.Agent(problem(), seed=1) for _ in range(3)]
    for agent, given in zip(agents, (FRAME, tmp_path / "log.csv", str(tmp_path / "log.csv")), strict=True):
        agent.learn_log_frame(given)
    assert len({agent.state.memory.tobytes() for agent in agents}) == 1
    refuses(lambda: agents[0].learn_log_frame("nowhere.parquet"), sw.InvalidFile, ErrorCode.FILE_NOT_FOUND)
    refuses(lambda: agents[0].learn_log_frame("log.xlsx"), sw.InvalidFile, ErrorCode.FILE_WRONG_KIND)
