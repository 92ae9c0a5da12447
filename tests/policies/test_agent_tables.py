"""Outcomes as people keep them: truth values, series and data frames, told apart by what they can do."""

from typing import Any

import numpy as np
import pytest
from arro3.core import Array, Table
from tests.policies.agents import NAMED, remembered
from tests.problem.refusal import refused

from stagewise import LCLUCB, OPB, Agent, Arms, InvalidOutcome, SafeAction
from stagewise.problem.errors import ErrorCode

SAFE = SafeAction(arm=0, reward=0.1, cost={"spend": 0.1, "wait": 0.2})
PULLS = OPB(arms=3, safe_action=SAFE, threshold=NAMED)
RAYS = LCLUCB(safe_action=SafeAction(features=[0.0, 0.0]), threshold=NAMED, noise=0.1)

RANDOM = np.random.default_rng(3)
ARMS, REWARDS = RANDOM.integers(0, 3, 12), RANDOM.uniform(size=12)
SPEND, WAIT = RANDOM.uniform(size=12), RANDOM.uniform(size=12)


class Column:
    """A series as pandas and polars have them: an array with labels, and no list."""

    ndim = 1

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, label: Any) -> Any:
        raise KeyError(label)  # labels need not be positions

    def keys(self) -> Any:
        return range(100, 100 + len(self.values))


class Row(Column):
    """A row of a data frame: its labels are the names of the columns."""

    def __init__(self, entries: dict[str, Any]) -> None:
        super().__init__(list(entries.values()))
        self.entries = entries

    def __getitem__(self, label: Any) -> Any:
        return self.entries[label]

    def keys(self) -> Any:
        return iter(self.entries)


class Frame:
    """A data frame: columns by name, in the order of its own."""

    ndim = 2

    def __init__(self, columns: dict[str, Any]) -> None:
        self.columns = list(columns)
        self._held = columns

    def __getitem__(self, name: str) -> Column:
        return Column(self._held[name])

    def __len__(self) -> int:
        return len(next(iter(self._held.values())))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.column_stack(list(self._held.values()))


def arrow(columns: dict[str, Any]) -> Any:
    return Table.from_arrays([Array.from_numpy(np.asarray(values)) for values in columns.values()], names=list(columns))


def pandas(columns: dict[str, Any]) -> Any:
    return pytest.importorskip("pandas").DataFrame(columns, index=range(50, 50 + len(next(iter(columns.values())))))


def polars(columns: dict[str, Any]) -> Any:
    return pytest.importorskip("polars").DataFrame(columns)


def after(policy: Any, actions: Any, rewards: Any, costs: Any) -> bytes:
    agent = Agent(policy)
    agent.learn_log(actions, rewards, costs)
    return agent.state.memory.tobytes()


EXPECTED = {"spend": SPEND.tolist(), "wait": WAIT.tolist()}


@pytest.mark.parametrize("frame", [Frame, arrow, pandas, polars])
def test_a_frame_of_costs_is_taken_by_its_names(frame: Any) -> None:
    known = after(PULLS, ARMS, REWARDS, EXPECTED)
    assert after(PULLS, ARMS, REWARDS, frame({"spend": SPEND, "wait": WAIT})) == known
    assert after(PULLS, ARMS, REWARDS, frame({"wait": WAIT, "spend": SPEND})) == known
    assert after(PULLS, ARMS, REWARDS, frame({"spend": WAIT, "wait": SPEND})) != known


@pytest.mark.parametrize("frame", [Frame, arrow, pandas, polars])
@pytest.mark.parametrize(
    "columns",
    [{"spend": SPEND}, {"spend": SPEND, "wait": WAIT, "more": WAIT}, {"Spend": SPEND, "wait": WAIT}],
    ids=["too few", "too many", "another"],
)
def test_a_frame_with_other_names_is_refused(frame: Any, columns: Any) -> None:
    agent = Agent(PULLS)
    before = remembered(agent)
    with refused(InvalidOutcome, ErrorCode.INVALID_ROW):
        agent.learn_log(ARMS, REWARDS, frame(columns))
    assert remembered(agent) == before


def test_a_frame_of_another_length_is_refused() -> None:
    with refused(InvalidOutcome, ErrorCode.WRONG_SHAPE):
        Agent(PULLS).learn_log(ARMS, REWARDS, Frame({"spend": SPEND[:5], "wait": WAIT[:5]}))


@pytest.mark.parametrize("frame", [Frame, arrow, pandas, polars])
def test_columns_of_a_frame_stand_in_a_mapping(frame: Any) -> None:
    held = frame({"w": WAIT, "s": SPEND, "r": REWARDS})
    known = after(PULLS, ARMS, REWARDS, EXPECTED)
    assert after(PULLS, ARMS, held["r"], {"spend": held["s"], "wait": held["w"]}) == known


def test_a_series_is_one_cost_a_row() -> None:
    policy = OPB(arms=3, safe_action=SafeAction(arm=0, reward=0.1, cost=0.1), threshold=0.5)
    assert after(policy, Column(ARMS), Column(REWARDS), Column(SPEND)) == after(policy, ARMS, REWARDS, SPEND)


def test_a_frame_of_rewards_is_refused() -> None:
    with refused(InvalidOutcome, ErrorCode.WRONG_SHAPE):
        Agent(PULLS).learn_log(ARMS, Frame({"a": SPEND, "b": WAIT}), EXPECTED)


def learned(reward: Any, cost: Any) -> bytes:
    agent = Agent(PULLS)
    agent.learn(agent.decide(Arms(3)), reward=reward, cost=cost)
    return agent.state.memory.tobytes()


def test_a_labelled_row_is_taken_by_its_names() -> None:
    known = learned(0.5, {"spend": 0.1, "wait": 0.3})
    assert learned(0.5, Row({"wait": 0.3, "spend": 0.1})) == known
    assert learned(0.5, Column([0.1, 0.3])) == known
    with refused(InvalidOutcome, ErrorCode.UNKNOWN_NAME):
        learned(0.5, Row({"wait": 0.3}))


TRUTHS = {
    "of Python": (True, {"spend": False, "wait": True}),
    "of NumPy": (np.True_, [np.False_, np.True_]),
    "arrays": (np.array(True), np.array([False, True])),
    "a row": (True, Row({"wait": True, "spend": False})),
}


@pytest.mark.parametrize(("reward", "cost"), TRUTHS.values(), ids=TRUTHS)
def test_truth_values_are_the_outcomes_one_and_zero(reward: Any, cost: Any) -> None:
    assert learned(reward, cost) == learned(1.0, [0.0, 1.0])


CLICKED = np.array([True, False] * 6)
CLICKS = {
    "array": CLICKED,
    "list": CLICKED.tolist(),
    "series": Column(CLICKED),
    "objects": np.array(CLICKED, dtype=object),
    "series of objects": Column(np.array(CLICKED, dtype=object)),
}


@pytest.mark.parametrize("clicks", CLICKS.values(), ids=CLICKS)
def test_truth_values_in_a_log_are_one_and_zero(clicks: Any) -> None:
    known = after(PULLS, ARMS, CLICKED * 1.0, {"spend": CLICKED * 1.0, "wait": WAIT})
    assert after(PULLS, ARMS, clicks, {"spend": clicks, "wait": WAIT}) == known
    assert after(PULLS, ARMS, clicks, Frame({"wait": WAIT, "spend": CLICKED})) == known


def test_what_is_missing_in_a_log_is_refused() -> None:
    holes = np.array(CLICKED, dtype=object)
    holes[3] = None
    for rewards, costs in ((holes, EXPECTED), (REWARDS, {"spend": holes, "wait": WAIT})):
        agent = Agent(PULLS)
        before = remembered(agent)
        with pytest.raises(InvalidOutcome):
            agent.learn_log(ARMS, rewards, costs)
        assert remembered(agent) == before


def test_features_may_come_as_a_frame() -> None:
    features = RANDOM.uniform(-0.5, 0.5, (12, 2))
    frame = Frame({"age": features[:, 0], "visits": features[:, 1]})
    assert after(RAYS, frame, REWARDS, EXPECTED) == after(RAYS, features, REWARDS, EXPECTED)
