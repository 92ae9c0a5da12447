"""What an agent learns from: outcomes, logs and frames, in the forms people keep them; bad ones change nothing."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arro3.core import Array, DataType, Table
from tests.policies.agents import INF, NAMED, NAN, ONE, PULLS, SAFE_ARM, TWO, WITH_ONE_COST, WITHOUT_COST, choices
from tests.policies.agents import remembered as remembered_by
from tests.policies.refusals import refused_with
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.problem.errors import ErrorCode

# Outcomes


BAD_NUMBERS = [NAN, INF, -INF, "0.1", b"0.1", 0.1j, np.complex128(0.1 + 1j), object(), [0.1, 0.2], np.array([[0.1]])]
NUMBER_CODES = ErrorCode.NOT_FINITE, ErrorCode.OUT_OF_RANGE, ErrorCode.WRONG_TYPE, ErrorCode.WRONG_SHAPE


@pytest.mark.parametrize("policy", (WITH_ONE_COST | WITHOUT_COST).values(), ids=WITH_ONE_COST | WITHOUT_COST)
def test_a_bad_number_changes_nothing(policy: Any) -> None:
    agent = sw.Agent(policy)
    decision = agent.decide(choices(policy))
    before = remembered_by(agent)
    for bad in BAD_NUMBERS:
        costs = (bad, [bad], {"cost": bad}) if policy in WITH_ONE_COST.values() else ()
        for reward, cost in [(bad, 0.1), (None, 0.1), *((0.5, cost) for cost in costs)]:
            with refused_with(sw.InvalidOutcome, *NUMBER_CODES):
                agent.learn(decision, reward=reward, cost=cost)
    assert remembered_by(agent) == before
    agent.learn(decision, reward=0.5, cost=0.1)
    assert agent.pending_count == 0


BAD_COSTS = {
    "missing": (None, ErrorCode.OUTCOME_MISSING),
    "empty": ((), ErrorCode.WRONG_SHAPE),
    "one number": (0.1, ErrorCode.WRONG_SHAPE),
    "too few": ([0.1], ErrorCode.WRONG_SHAPE),
    "too many": ([0.1, 0.2, 0.3], ErrorCode.WRONG_SHAPE),
    "a table": ([[0.1, 0.2]], ErrorCode.WRONG_SHAPE),
    "ragged": ([[0.1], [0.1, 0.2]], ErrorCode.WRONG_TYPE),
    "nan": ([0.1, NAN], ErrorCode.NOT_FINITE),
    "nothing in it": ([0.1, None], ErrorCode.WRONG_TYPE),
    "a name missing": ({"spend": 0.1}, ErrorCode.UNKNOWN_NAME),
    "a name too many": (dict(NAMED, more=0.1), ErrorCode.UNKNOWN_NAME),
    "another name": ({"spend": 0.1, "Wait": 0.1}, ErrorCode.UNKNOWN_NAME),
    "no names": ({}, ErrorCode.UNKNOWN_NAME),
    "nan by name": ({"spend": 0.1, "wait": NAN}, ErrorCode.NOT_FINITE),
}


@pytest.mark.parametrize(("cost", "code"), BAD_COSTS.values(), ids=BAD_COSTS)
def test_costs_that_do_not_fit_change_nothing(cost: Any, code: ErrorCode) -> None:
    agent = sw.Agent(TWO)
    decision = agent.decide(np.eye(2))
    before = remembered_by(agent)
    with refused(sw.InvalidOutcome, code):
        agent.learn(decision, reward=0.5, cost=cost)
    with refused(sw.InvalidOutcome, code):
        TWO.learn(TWO.start(), decision, sw.Outcome(0.5, cost))
    assert remembered_by(agent) == before


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

    def __init__(self, **entries: Any) -> None:
        super().__init__(list(entries.values()))
        self.entries = entries

    def __getitem__(self, label: Any) -> Any:
        return self.entries[label]

    def keys(self) -> Any:
        return iter(self.entries)


def learned(policy: Any, reward: Any, cost: Any) -> bytes:
    agent = sw.Agent(policy)
    agent.learn(agent.decide(choices(policy)), reward=reward, cost=cost)
    return agent.state.memory.tobytes()


def test_outcomes_may_come_in_many_forms() -> None:
    forms: list[Any] = [
        (0.1, 0.2),
        np.array([0.1, 0.2]),
        {"wait": 0.2, "spend": 0.1},
        [np.float64(0.1), np.float64(0.2)],
    ]
    for cost in [*forms, Row(wait=0.2, spend=0.1), Column([0.1, 0.2])]:
        assert learned(TWO, 0.5, cost) == learned(TWO, 0.5, [0.1, 0.2])
    for reward in (1, np.float32(1.0), np.int8(1), np.array(1.0)):
        assert learned(ONE, reward, np.int64(0)) == learned(ONE, 1.0, 0.0)
    truths: list[Any] = [
        {"spend": False, "wait": True},
        [np.False_, np.True_],
        np.array([False, True]),
        Row(wait=True, spend=False),
    ]
    for truth in (True, np.True_, np.array(True)):
        for cost in truths:
            assert learned(TWO, truth, cost) == learned(TWO, 1.0, [0.0, 1.0])
    with refused(sw.InvalidOutcome, ErrorCode.UNKNOWN_NAME):
        learned(TWO, 0.5, Row(wait=0.3))


@pytest.mark.parametrize(
    "policy", [ONE, sw.OPB(arms=3, safe_action=SAFE_ARM, threshold=0.2, noise=1.0)], ids=["LCLUCB", "OPB"]
)
def test_outcomes_too_large_for_arithmetic_do_not_spoil_the_memory(policy: Any) -> None:
    """They are finite, but their difference is not: either they are refused, or the memory stays finite."""
    agent = sw.Agent(policy)
    with contextlib.suppress(sw.InvalidOutcome):
        for value in (1.7e308, -1.7e308, 1.7e308, -1.7e308):
            agent.learn(agent.decide(choices(policy)), reward=value, cost=-abs(value))
    assert np.isfinite(agent.state.memory).all()


def test_outcomes_outside_the_range_that_a_radius_rests_on_are_refused() -> None:
    clicks = sw.OPB(
        arms=3, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=0.5), threshold={"clicks": sw.AtLeast(0.2)}
    )
    for policy, names in ((PULLS, ("reward", "cost")), (sw.UCB(arms=3), ("reward",)), (clicks, ("reward", "cost"))):
        agent = sw.Agent(policy)
        decision, before = agent.decide(sw.ArmSet(3)), None
        for name in names:
            for value in (-0.001, 1.001, 5):
                before = remembered_by(agent)
                with refused(sw.InvalidOutcome, ErrorCode.OUTCOME_OUT_OF_RANGE):
                    agent.learn(decision, **{"reward": 0.5, "cost": 0.5, name: value})
                assert remembered_by(agent) == before
    for more in ({"noise": 0.5}, {"interval": "paper"}):
        unbounded = sw.Agent(sw.OPB(arms=3, safe_action=SAFE_ARM, threshold=0.2, **more))
        unbounded.learn(unbounded.decide(sw.ArmSet(3)), reward=-5.0, cost=7.0)
        assert unbounded.pending_count == 0


# Logs and frames: the same as their rows by hand


NAMES = ["nothing", "digest", "offer"]
LIMITS = {"opt_out": 0.5, "clicks": sw.AtLeast(0.05)}
SAFE: dict[str, Any] = {
    "safe_action": sw.SafeAction(features=[0.3, 0.4], reward=0.1, cost=[0.1, 0.2]), "threshold": LIMITS, "noise": 0.1,
}  # fmt: skip
ARM: dict[str, Any] = {"safe_action": sw.SafeAction(arm=0, reward=0.1, cost=[0.1, 0.2]), "threshold": LIMITS}
HALF_KNOWN: dict[str, Any] = SAFE | {"safe_action": sw.SafeAction(features=[0.3, 0.4], reward=0.1)}
CLASSES: dict[str, Any] = {
    "reward_class": [[0.1, 0.6, 0.3]], "cost_class": {"opt_out": [[0.1, 0.2, 0.3]], "clicks": [[0.2, 0.5, 0.6]]},
}  # fmt: skip
ARMS, RAYS = sw.OPB(arms=3, **ARM), sw.LCLUCB(**SAFE)
POLICIES: dict[str, Any] = {
    **{kind.__name__: kind(**SAFE) for kind in (sw.LCLUCB, sw.ROFUL, sw.SafeLTS, sw.OPLB, sw.SafePosteriorSampling)},
    "half known": sw.LCLUCB(**HALF_KNOWN),
    "OPB": ARMS,
    "LinUCB": sw.LinUCB(noise=0.1),
    "UCB": sw.UCB(arms=3),
    "a kernel, whose memory grows": sw.KernelOPLB(
        **HALF_KNOWN, kernel=sw.RBF(lengthscale=0.3), norm_bound=1.0, max_points=20
    ),
    "classes": sw.OPNLB(**ARM, **CLASSES),
}
RANDOM = np.random.default_rng(5)
LOG: dict[str, Any] = {
    "age": RANDOM.uniform(-0.5, 0.5, 40),
    "tenure": RANDOM.uniform(-0.5, 0.5, 40),
    "template": RANDOM.integers(0, 3, 40),
    "named": np.array(NAMES, dtype=object)[RANDOM.integers(0, 3, 40)],
    "paid": RANDOM.uniform(size=40),
    "left": RANDOM.random(40) < 0.5,
    "clicked": RANDOM.random(40) < 0.5,
}
COSTS = {"opt_out": "left", "clicks": "clicked"}
FEATURES, REWARDS = np.column_stack([LOG["age"], LOG["tenure"]]), LOG["paid"]
TABLE = np.column_stack([LOG["left"], LOG["clicked"]]).astype(float)
OF_ARMS: dict[str, Any] = {"action": "template", "reward": "paid", "costs": COSTS}
OF_FEATURES: dict[str, Any] = {"context": ["age", "tenure"], "reward": "paid", "costs": COSTS}


def actions_of(policy: Any) -> Any:
    return LOG["template"] if isinstance(policy, sw.OPB | sw.UCB | sw.OPNLB) else FEATURES


def columns_of(policy: Any) -> dict[str, Any]:
    told = OF_ARMS if actions_of(policy) is LOG["template"] else OF_FEATURES
    return told if policy.thresholds.names else {**told, "costs": None}


def by_hand(policy: Any, actions: Any = None) -> bytes:
    """Return the memory after every row was learned as a decision's outcome."""
    state = policy.start()
    for action, reward, cost in zip(actions_of(policy) if actions is None else actions, REWARDS, TABLE, strict=True):
        decision = sw.Decision(action, 0, 1.0, None, 0.0, np.empty(0), np.empty(0), None, 0)
        state = policy.learn(state, decision, sw.Outcome(float(reward), cost))
    memory: bytes = state.memory.tobytes()
    return memory


def by_log(policy: Any, *parts: Any) -> bytes:
    agent = sw.Agent(policy)
    for part in parts:
        agent.learn_log(*part)
    assert (agent.round, agent.pending_count) == (0, 0)
    return agent.state.memory.tobytes()


def by_frame(policy: Any, frame: Any, **told: Any) -> bytes:
    agent = sw.Agent(policy)
    agent.learn_log_frame(frame, **{**columns_of(policy), **told})
    return agent.state.memory.tobytes()


def arrow(columns: dict[str, Any]) -> Any:
    """Return an Arrow table; text as text, and None where there is nothing."""
    held = [Array(list(map(plain, values)), type=kind(values)) for values in columns.values()]
    return Table.from_arrays(held, names=list(columns))


def plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def kind(values: Any) -> DataType:
    known = [plain(value) for value in values if value is not None]
    told = {bool: DataType.bool(), int: DataType.int64(), str: DataType.utf8()}
    return told.get(type(known[0]), DataType.float64())


class Stream:
    """What tells nothing but that it can be read as Arrow."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self.held = arrow(columns)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.held.__arrow_c_stream__(requested_schema)


class Frame:
    """A data frame: columns by name, in an order of its own."""

    ndim = 2

    def __init__(self, columns: dict[str, Any]) -> None:
        self.columns, self._held = list(columns), columns

    def __getitem__(self, name: str) -> Column:
        return Column(self._held[name])

    def __len__(self) -> int:
        return len(next(iter(self._held.values())))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.column_stack(list(self._held.values()))


def pandas(columns: dict[str, Any]) -> Any:
    module = pytest.importorskip("pandas", reason="pandas is not installed here; it is no dependency")
    return module.DataFrame(columns, index=range(70, 70 + len(next(iter(columns.values())))))


def polars(columns: dict[str, Any]) -> Any:
    module = pytest.importorskip("polars", reason="polars is not installed here; it is no dependency")
    return module.DataFrame({name: list(map(plain, values)) for name, values in columns.items()}, strict=False)


def pyarrow(columns: dict[str, Any]) -> Any:
    module = pytest.importorskip("pyarrow", reason="pyarrow is not installed here; it is no dependency")
    return module.table({name: list(map(plain, values)) for name, values in columns.items()})


FRAMES: list[Callable[[dict[str, Any]], Any]] = [arrow, Stream, pandas, polars, pyarrow]
frames = pytest.mark.parametrize("frame", FRAMES, ids=lambda make: make.__name__)


@pytest.mark.parametrize("name", POLICIES)
def test_a_log_and_a_frame_are_their_rows_one_by_one(name: str) -> None:
    policy = POLICIES[name]
    actions, whole = actions_of(policy), by_log(policy, (actions_of(policy), REWARDS, TABLE))
    assert by_frame(policy, LOG) == whole
    if name not in ("CAPS", "classes"):  # those judge a whole log
        assert whole == by_hand(policy)
        listed = actions.tolist(), REWARDS.tolist(), TABLE
        assert by_log(policy, *[[part[:7] for part in listed], [part[7:] for part in listed]]) == whole


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["LCLUCB", "OPB", "a kernel, whose memory grows"])
def test_compiled_rows_are_the_rows_one_by_one_to_the_bit(name: str) -> None:
    test_a_log_and_a_frame_are_their_rows_one_by_one(name)


def test_costs_of_a_log_may_come_in_many_forms() -> None:
    known, left, clicked = by_hand(ARMS), TABLE[:, 0], TABLE[:, 1]
    forms: list[Any] = [
        TABLE.tolist(), {"clicks": clicked, "opt_out": left.tolist()}, {"opt_out": left, "clicks": Column(clicked)},
        [{"opt_out": one, "clicks": other} for one, other in TABLE], np.array(TABLE, dtype=object),
    ]  # fmt: skip
    for made in (Frame, arrow):
        forms += [made({"opt_out": left, "clicks": clicked}), made({"clicks": clicked, "opt_out": left})]
    for costs in forms:
        assert by_log(ARMS, (LOG["template"], REWARDS, costs)) == known
    for made in (Frame, arrow):
        assert by_log(ARMS, (LOG["template"], REWARDS, made({"opt_out": clicked, "clicks": left}))) != known
        columns = made({"w": left, "s": clicked, "r": REWARDS})
        assert by_log(ARMS, (LOG["template"], columns["r"], {"opt_out": columns["w"], "clicks": columns["s"]})) == known
    one = sw.LCLUCB(safe_action=sw.SafeAction(features=[0.0, 0.0]), threshold=0.5, noise=0.1)
    flat = by_log(one, (FEATURES, REWARDS, left))
    for actions, costs in (
        (FEATURES, TABLE[:, :1]),
        (Frame({"age": LOG["age"], "tenure": LOG["tenure"]}), Column(left)),
    ):
        assert by_log(one, (actions, Column(REWARDS), costs)) == flat
    for clicks in (LOG["left"], LOG["left"].tolist(), Column(LOG["left"]), np.array(LOG["left"], dtype=object)):
        assert by_log(one, (FEATURES, clicks, left)) == by_log(one, (FEATURES, left, left))


def test_a_log_does_not_disturb_open_decisions() -> None:
    agent = sw.Agent(RAYS)
    decision = agent.decide(np.eye(2))
    agent.learn_log(FEATURES, REWARDS, TABLE)
    assert (agent.round, agent.pending_count) == (1, 1)
    agent.learn(decision, reward=0.5, cost=[0.1, 0.2])
    assert agent.pending_count == 0


@frames
def test_columns_of_a_frame_are_taken_by_their_names(frame: Any) -> None:
    known, turned = by_frame(ARMS, LOG), dict(reversed(list(LOG.items())))
    assert by_frame(RAYS, frame(LOG)) == by_frame(RAYS, LOG)
    assert (
        by_frame(ARMS, frame(turned)) == by_frame(ARMS, frame(LOG), costs=dict(reversed(list(COSTS.items())))) == known
    )
    renamed = {{"left": "opt_out", "clicked": "clicks"}.get(name, name): values for name, values in turned.items()}
    assert (
        by_frame(ARMS, frame(renamed), costs=None)
        == by_frame(ARMS, frame(renamed), costs=["clicks", "opt_out"])
        == known
    )
    assert by_frame(ARMS, frame({**LOG, "left": LOG["clicked"], "clicked": LOG["left"]})) != known
    arms = [NAMES.index(name) for name in LOG["named"]]
    assert by_frame(ARMS, frame(LOG), action="named", names=NAMES) == by_log(ARMS, (arms, REWARDS, TABLE))


def test_one_limit_may_be_named_alone_and_no_limit_not_at_all() -> None:
    one = sw.OPB(arms=3, safe_action=sw.SafeAction(arm=0, cost=0.1), threshold=0.5)
    assert by_frame(one, LOG, costs="left") == by_frame(one, LOG, costs={"cost": "left"})
    agent = sw.Agent(sw.UCB(arms=3))
    agent.learn_log_frame(LOG, action="template", reward="paid")
    with refused(sw.InvalidProblem, ErrorCode.UNUSED_SETTING):
        agent.learn_log_frame(LOG, action="template", reward="paid", costs="left")
    for policy in (ARMS, RAYS):
        assert by_frame(policy, {name: [] for name in LOG}) == policy.start().memory.tobytes()


# What is refused, and changes nothing


def put(column: str, row: int, value: Any) -> dict[str, Any]:
    values = list(LOG[column])
    values[row] = value
    return {**LOG, column: values}


def with_entry(table: Any, position: Any, value: Any) -> Any:
    changed = np.array(table, dtype=object if not isinstance(value, float) else float)
    changed[position] = value
    return changed


BAD_LOGS: dict[str, tuple[dict[str, Any], ErrorCode]] = {
    "fewer rewards": ({"rewards": REWARDS[:19]}, ErrorCode.WRONG_SHAPE),
    "more rewards": ({"features": FEATURES[:19], "costs": TABLE[:19]}, ErrorCode.WRONG_SHAPE),
    "a column of rewards": ({"rewards": REWARDS[:, np.newaxis]}, ErrorCode.WRONG_SHAPE),
    "a frame of rewards": ({"rewards": Frame({"a": REWARDS, "b": REWARDS})}, ErrorCode.WRONG_SHAPE),
    "one reward": ({"rewards": 0.5}, ErrorCode.WRONG_SHAPE),
    "no rewards": ({"rewards": None}, ErrorCode.WRONG_TYPE),
    "a late nan for a reward": ({"rewards": with_entry(REWARDS, 19, NAN)}, ErrorCode.NOT_FINITE),
    "a reward missing": ({"rewards": with_entry(REWARDS, 3, None)}, ErrorCode.WRONG_TYPE),
    "ragged rewards": ({"rewards": [[0.1], [0.1, 0.2]]}, ErrorCode.WRONG_SHAPE),
    "fewer costs": ({"costs": TABLE[:19]}, ErrorCode.WRONG_SHAPE),
    "no costs": ({"costs": None}, ErrorCode.INVALID_ROW),
    "one cost for all": ({"costs": 0.1}, ErrorCode.WRONG_TYPE),
    "text for costs": ({"costs": "x" * 40}, ErrorCode.WRONG_TYPE),
    "a flat list of costs": ({"costs": TABLE[:, 0]}, ErrorCode.INVALID_ROW),
    "costs too wide": ({"costs": np.ones((40, 3))}, ErrorCode.INVALID_ROW),
    "a late nan for a cost": ({"costs": with_entry(TABLE, (39, 1), NAN)}, ErrorCode.INVALID_ROW),
    "a late text for a cost": ({"costs": with_entry(TABLE, (39, 0), "x")}, ErrorCode.INVALID_ROW),
    "ragged costs": ({"costs": [*TABLE[:39].tolist(), [0.1]]}, ErrorCode.INVALID_ROW),
    "other columns": ({"costs": {"opt_out": TABLE[:, 0], "wait": TABLE[:, 1]}}, ErrorCode.INVALID_ROW),
    "a frame of other names": ({"costs": Frame({"opt_out": TABLE[:, 0], "wait": TABLE[:, 1]})}, ErrorCode.INVALID_ROW),
    "a frame with a name too many": (
        {"costs": arrow(dict.fromkeys(("opt_out", "clicks", "x"), REWARDS))},
        ErrorCode.INVALID_ROW,
    ),
    "a short frame": ({"costs": Frame({"opt_out": TABLE[:9, 0], "clicks": TABLE[:9, 1]})}, ErrorCode.WRONG_SHAPE),
    "a short column": ({"costs": {"opt_out": TABLE[:, 0], "clicks": TABLE[:9, 1]}}, ErrorCode.WRONG_SHAPE),
    "a number for a column": ({"costs": {"opt_out": 0.1, "clicks": TABLE[:, 1]}}, ErrorCode.WRONG_SHAPE),
    "no columns": ({"costs": {}}, ErrorCode.INVALID_ROW),
    "a late nan for a feature": ({"features": with_entry(FEATURES, (39, 1), NAN)}, ErrorCode.NOT_FINITE),
    "too wide": ({"features": np.ones((40, 3))}, ErrorCode.DIMENSION_MISMATCH),
    "flat": ({"features": REWARDS}, ErrorCode.WRONG_SHAPE),
    "text for features": ({"features": [["a", "b"]] * 40}, ErrorCode.WRONG_TYPE),
}


@pytest.mark.parametrize(("changes", "code"), BAD_LOGS.values(), ids=BAD_LOGS)
def test_a_bad_log_changes_nothing(changes: dict[str, Any], code: ErrorCode) -> None:
    agent = sw.Agent(RAYS)
    before = agent.state.memory.tobytes()
    with refused(sw.InvalidActions if "features" in changes and len(changes) == 1 else sw.InvalidOutcome, code):
        agent.learn_log(**{"features": FEATURES, "rewards": REWARDS, "costs": TABLE, **changes})
    assert agent.state.memory.tobytes() == before


def test_a_log_of_bad_arms_changes_nothing() -> None:
    for policy in (ARMS, sw.UCB(arms=3)):
        agent = sw.Agent(policy)
        before = agent.state.memory.tobytes()
        for arms in ([0, 3], [-1, 0], [0.0, 1.0], [True, False], ["0", "1"], [[0], [1]], [[0], [1, 2]], 0, None):
            with refused_with(sw.InvalidActions, ErrorCode.UNKNOWN_ACTION, ErrorCode.WRONG_SHAPE):
                agent.learn_log(arms, [0.1, 0.2], [[0.1, 0.2]] * 2)
        with refused(sw.InvalidOutcome, ErrorCode.INVALID_ROW):
            agent.learn_log(LOG["template"], with_entry(REWARDS, 17, 1.5), TABLE)
        assert agent.state.memory.tobytes() == before
    resting = sw.Agent(sw.AlwaysSafe(safe_action=sw.SafeAction(arm=0, cost=0.0), threshold=0.1))
    for actions in (5, None, [[1], [1, 2]], "ab", [np.nan]):
        with refused(sw.InvalidActions, "the logged actions"):
            resting.learn_log(actions, [0.5], [0.0])
    resting.learn_log([0, 0], [0.5, 0.5], [0.0, 0.0])


def test_logged_features_that_a_policy_cannot_hold_change_nothing() -> None:
    """Squares of large ones are infinite; the paper's radius has a bound; LinUCB has the dimension of its first row."""
    for policy in POLICIES.values():
        if actions_of(policy) is FEATURES:
            agent = sw.Agent(policy)
            with contextlib.suppress(sw.InvalidActions):
                agent.learn_log([[1e200, 1e200]], [0.1], [[0.1, 0.2]])
            assert np.isfinite(agent.state.memory).all()
    free = sw.Agent(sw.LinUCB(noise=0.1))
    free.learn_log(np.eye(3), [0.1, 0.2, 0.3])
    short = sw.LCLUCB(safe_action=sw.SafeAction(features=[0.0, 0.0]), threshold=0.5, noise=0.1, radius="paper")
    for agent, features, code in (
        (free, np.eye(2), None), (sw.Agent(short), [[3.0, 0.0]] * 2, ErrorCode.BOUND_EXCEEDED),
        (sw.Agent(sw.LinUCB(noise=0.1, radius="paper")), [[3.0, 0.0]] * 2, ErrorCode.BOUND_EXCEEDED),
    ):  # fmt: skip
        before = agent.state.memory.tobytes()
        with pytest.raises(sw.StagewiseError) as caught:
            agent.learn_log(features, [0.1, 0.2], [0.1, 0.1])
        assert code in (None, caught.value.code)
        assert agent.state.memory.tobytes() == before


BAD_FRAMES: dict[str, tuple[dict[str, Any], dict[str, Any], ErrorCode]] = {
    "a column misspelt": (LOG, {"reward": "payd"}, ErrorCode.COLUMN_MISSING),
    "an action misspelt": (LOG, {"action": "templat"}, ErrorCode.COLUMN_MISSING),
    "a cost misspelt": (LOG, {"costs": {**COSTS, "clicks": "cliked"}}, ErrorCode.COLUMN_MISSING),
    "costs left out": (LOG, {"costs": None}, ErrorCode.COLUMN_MISSING),
    "costs of other limits": (LOG, {"costs": {"opt_out": "left"}}, ErrorCode.UNKNOWN_SIGNAL),
    "costs by position": (LOG, {"costs": ["left", "clicked"]}, ErrorCode.WRONG_TYPE),
    "one missing": (put("paid", 7, None), {}, ErrorCode.MISSING_VALUE),
    "a truth missing": (put("left", 39, None), {}, ErrorCode.MISSING_VALUE),
    "outside the range": (put("paid", 11, 1.5), {}, ErrorCode.INVALID_ROW),
    "infinite": (put("paid", 13, np.inf), {}, ErrorCode.NOT_FINITE),
    "no such arm": (put("template", 5, 3), {}, ErrorCode.INVALID_ROW),
    "text for numbers": (LOG, {"reward": "named"}, ErrorCode.COLUMN_WRONG_TYPE),
    "numbers for arms": (LOG, {"action": "paid"}, ErrorCode.COLUMN_WRONG_TYPE),
    "names and no list of them": (LOG, {"action": "named"}, ErrorCode.COLUMN_WRONG_TYPE),
    "too few names": (LOG, {"action": "named", "names": NAMES[:2]}, ErrorCode.WRONG_TYPE),
    "an unknown name": (put("named", 3, "ofer"), {"action": "named", "names": NAMES}, ErrorCode.UNKNOWN_ACTION),
    "a name missing": (put("named", 4, None), {"action": "named", "names": NAMES}, ErrorCode.MISSING_VALUE),
    "no column of rewards": (LOG, {"reward": None}, ErrorCode.MISSING_VALUE),
    "a context of arms": (LOG, {"context": ["age"]}, ErrorCode.CONFLICTING_SETTINGS),
    "no action": (LOG, {"action": None}, ErrorCode.CONFLICTING_SETTINGS),
}
BAD_CONTEXTS: dict[str, tuple[Any, dict[str, Any], ErrorCode]] = {
    "no context": (LOG, {"context": None}, ErrorCode.CONFLICTING_SETTINGS),
    "a number": (LOG, {"context": 3}, ErrorCode.WRONG_TYPE),
    "twice": (LOG, {"context": ["age", "age"]}, ErrorCode.WRONG_TYPE),
    "one too few": (LOG, {"context": ["age"]}, ErrorCode.DIMENSION_MISMATCH),
    "misspelt": (LOG, {"context": ["age", "tenur"]}, ErrorCode.COLUMN_MISSING),
    "an action": (LOG, {"action": "template"}, ErrorCode.CONFLICTING_SETTINGS),
    "missing": (put("age", 8, None), {}, ErrorCode.MISSING_VALUE),
    "lengths": ({**LOG, "paid": REWARDS[:9]}, {}, ErrorCode.WRONG_SHAPE),
    "contexts of two lengths": ({**LOG, "age": REWARDS[:9]}, {}, ErrorCode.WRONG_SHAPE),
    "a table for a column": ({**LOG, "paid": np.ones((40, 2))}, {}, ErrorCode.WRONG_SHAPE),
    "a number for a column": ({**LOG, "paid": 0.5}, {}, ErrorCode.WRONG_SHAPE),
    "masked": ({**LOG, "paid": np.ma.masked_array(REWARDS)}, {}, ErrorCode.MISSING_VALUE),
    "no frame": (FEATURES, {}, ErrorCode.WRONG_TYPE),
    "nothing": (None, {}, ErrorCode.WRONG_TYPE),
}
BAD = {name: (ARMS, *one) for name, one in BAD_FRAMES.items()} | {
    name: (RAYS, *one) for name, one in BAD_CONTEXTS.items()
}


@pytest.mark.parametrize(("policy", "columns", "changes", "code"), BAD.values(), ids=BAD)
def test_a_bad_frame_changes_nothing(policy: Any, columns: Any, changes: dict[str, Any], code: ErrorCode) -> None:
    agent = sw.Agent(policy)
    before = agent.state.memory.tobytes()
    for frame in (columns, arrow(columns)) if policy is ARMS else (columns,):
        with pytest.raises((sw.InvalidActions, sw.InvalidOutcome)) as caught:
            agent.learn_log_frame(frame, **{**columns_of(policy), **changes})
        assert caught.value.code is code
    assert agent.state.memory.tobytes() == before


def test_a_policy_of_three_verbs_has_no_frames() -> None:
    class Three:
        start = decide = learn = lambda *_: None

    with refused(sw.InvalidProblem, ErrorCode.UNSUPPORTED):
        sw.Agent(Three()).learn_log_frame(LOG, reward="paid")
