"""Learning from a data frame: the same as from a log, by the columns' names, or nothing at all."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from arro3.core import Array, DataType, Table
from tests.problem.refusal import refused

import stagewise as sw
from stagewise.problem.errors import ErrorCode

NAMES = ["nothing", "digest", "offer"]
LIMITS = {"opt_out": 0.5, "clicks": sw.AtLeast(0.05)}
ARMS = sw.OPB(arms=3, safe_action=sw.SafeAction(arm=0, reward=0.1, cost=[0.1, 0.2]), threshold=LIMITS)
RAYS = sw.LCLUCB(
    safe_action=sw.SafeAction(features=[0.3, 0.4], reward=0.1, cost=[0.1, 0.2]), threshold=LIMITS, noise=0.1
)
CAPS = sw.CAPS(safe_action=sw.SafeAction(features=[0.3, 0.4], reward=0.1, cost=[0.1, 0.2]), threshold=LIMITS, noise=0.1)
SPACE = sw.KernelOPLB(
    kernel=sw.RBF(lengthscale=0.3),
    safe_action=sw.SafeAction(features=[0.3, 0.4]),
    threshold=LIMITS,
    noise=0.1,
    norm_bound=1.0,
    max_points=20,
)
CLASSES = sw.OPNLB(
    reward_class=[[0.1, 0.6, 0.3]],
    cost_class={"opt_out": [[0.1, 0.2, 0.3]], "clicks": [[0.2, 0.5, 0.6]]},
    safe_action=sw.SafeAction(arm=0, reward=0.1, cost=[0.1, 0.2]),
    threshold=LIMITS,
)

RANDOM = np.random.default_rng(5)
LOG = {
    "age": RANDOM.uniform(-0.5, 0.5, 40),
    "tenure": RANDOM.uniform(-0.5, 0.5, 40),
    "template": RANDOM.integers(0, 3, 40),
    "named": np.array(NAMES, dtype=object)[RANDOM.integers(0, 3, 40)],
    "paid": RANDOM.uniform(size=40),
    "left": RANDOM.random(40) < 0.5,
    "clicked": RANDOM.random(40) < 0.5,
}
COSTS = {"opt_out": "left", "clicks": "clicked"}
FEATURES = np.column_stack([LOG["age"], LOG["tenure"]])
OF_ARMS: dict[str, Any] = {"action": "template", "reward": "paid", "costs": COSTS}
BY_NAME: dict[str, Any] = {**OF_ARMS, "action": "named", "names": NAMES}
OF_FEATURES: dict[str, Any] = {"context": ["age", "tenure"], "reward": "paid", "costs": COSTS}
KINDS = {
    "arms": (ARMS, LOG["template"], OF_ARMS),
    "rays": (RAYS, FEATURES, OF_FEATURES),
    "candidates with sets of their own": (CAPS, FEATURES, OF_FEATURES),
    "a kernel, whose memory grows": (SPACE, FEATURES, OF_FEATURES),
    "classes": (CLASSES, LOG["template"], OF_ARMS),
}
ROW_BY_ROW = [name for name, (policy, *_) in KINDS.items() if policy not in (CAPS, CLASSES)]  # those judge a whole log


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


def pandas(columns: dict[str, Any]) -> Any:
    module = pytest.importorskip("pandas", reason="pandas is not installed here; it is no dependency")
    return module.DataFrame(columns, index=range(70, 70 + len(next(iter(columns.values())))))


def polars(columns: dict[str, Any]) -> Any:
    module = pytest.importorskip("polars", reason="polars is not installed here; it is no dependency")
    return module.DataFrame({name: list(map(plain, values)) for name, values in columns.items()}, strict=False)


def pyarrow(columns: dict[str, Any]) -> Any:
    module = pytest.importorskip("pyarrow", reason="pyarrow is not installed here; it is no dependency")
    return module.table({name: list(map(plain, values)) for name, values in columns.items()})


FRAMES: list[Callable[[dict[str, Any]], Any]] = [dict, arrow, Stream, pandas, polars, pyarrow]
frames = pytest.mark.parametrize("frame", FRAMES, ids=lambda make: make.__name__)


def after(policy: Any, frame: Any, told: dict[str, Any]) -> bytes:
    agent = sw.Agent(policy)
    agent.learn_frame(frame, **told)
    return agent.state.memory.tobytes()


def logged(policy: Any, actions: Any) -> bytes:
    agent = sw.Agent(policy)
    agent.learn_log(actions, LOG["paid"], {limit: LOG[column] for limit, column in COSTS.items()})
    return agent.state.memory.tobytes()


@frames
@pytest.mark.parametrize(("policy", "actions", "told"), KINDS.values(), ids=KINDS)
def test_a_frame_is_a_log(policy: Any, actions: Any, told: Any, frame: Any) -> None:
    assert after(policy, frame(LOG), told) == logged(policy, actions)


@pytest.mark.parametrize("name", ROW_BY_ROW)
def test_a_frame_is_its_rows_one_by_one(name: str) -> None:
    policy, actions, told = KINDS[name]
    state = policy.start()
    for row, action in enumerate(actions):
        decision = sw.Decision(action, 0, 1.0, None, 0.0, np.empty(0), np.empty(0), None, 0)
        cost = {limit: LOG[column][row] for limit, column in COSTS.items()}
        state = policy.learn(state, decision, sw.Outcome(float(LOG["paid"][row]), cost))
    assert after(policy, LOG, told) == state.memory.tobytes()


@frames
def test_arms_may_have_names(frame: Any) -> None:
    assert after(ARMS, frame(LOG), BY_NAME) == logged(ARMS, [NAMES.index(name) for name in LOG["named"]])


@frames
def test_the_order_of_columns_and_of_names_does_not_matter(frame: Any) -> None:
    turned = dict(reversed(list(LOG.items())))
    known = after(ARMS, frame(LOG), OF_ARMS)
    assert after(ARMS, frame(turned), OF_ARMS) == known
    assert after(ARMS, frame(LOG), {**OF_ARMS, "costs": dict(reversed(list(COSTS.items())))}) == known
    renamed = {{"left": "opt_out", "clicked": "clicks"}.get(name, name): values for name, values in turned.items()}
    assert after(ARMS, frame(renamed), {**OF_ARMS, "costs": None}) == known
    assert after(ARMS, frame(renamed), {**OF_ARMS, "costs": ["clicks", "opt_out"]}) == known
    swapped = {**LOG, "left": LOG["clicked"], "clicked": LOG["left"]}
    assert after(ARMS, frame(swapped), OF_ARMS) != known


def test_one_limit_may_be_named_alone_and_no_limit_not_at_all() -> None:
    one = sw.OPB(arms=3, safe_action=sw.SafeAction(arm=0, cost=0.1), threshold=0.5)
    known = after(one, LOG, {"action": "template", "reward": "paid", "costs": "left"})
    assert after(one, LOG, {"action": "template", "reward": "paid", "costs": {"cost": "left"}}) == known
    agent = sw.Agent(sw.UCB(arms=3))
    agent.learn_frame(LOG, action="template", reward="paid")
    with refused(sw.InvalidProblem, ErrorCode.UNUSED_SETTING):
        agent.learn_frame(LOG, action="template", reward="paid", costs="left")


def test_a_frame_without_rows_teaches_nothing() -> None:
    empty = {name: [] for name in LOG}
    assert after(ARMS, empty, OF_ARMS) == ARMS.start().memory.tobytes()
    assert after(RAYS, empty, OF_FEATURES) == RAYS.start().memory.tobytes()


def with_value(column: str, row: int, value: Any) -> dict[str, Any]:
    values = list(LOG[column])
    values[row] = value
    return {**LOG, column: values}


@contextmanager
def said(*parts: str) -> Iterator[None]:
    """Assert that actions or outcomes are refused in one sentence that contains all the parts."""
    with pytest.raises((sw.InvalidActions, sw.InvalidOutcome)) as caught:
        yield
    with refused(type(caught.value), *parts):
        raise caught.value


BAD: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "a column misspelt": (LOG, {"reward": "payd"}, [ErrorCode.COLUMN_MISSING]),
    "an action misspelt": (LOG, {"action": "templat"}, [ErrorCode.COLUMN_MISSING]),
    "a cost misspelt": (
        LOG,
        {"costs": {**COSTS, "clicks": "cliked"}},
        [ErrorCode.COLUMN_MISSING],
    ),
    "costs left out": (LOG, {"costs": None}, [ErrorCode.COLUMN_MISSING]),
    "costs of other limits": (
        LOG,
        {"costs": {"opt_out": "left"}},
        [ErrorCode.UNKNOWN_SIGNAL],
    ),
    "costs by position": (LOG, {"costs": ["left", "clicked"]}, [ErrorCode.WRONG_TYPE]),
    "one missing": (
        with_value("paid", 7, None),
        {},
        [ErrorCode.MISSING_VALUE],
    ),
    "a truth missing": (
        with_value("left", 39, None),
        {},
        [ErrorCode.MISSING_VALUE],
    ),
    "outside the range": (with_value("paid", 11, 1.5), {}, [ErrorCode.INVALID_ROW]),
    "below the range": (with_value("paid", 12, -0.5), {}, [ErrorCode.INVALID_ROW]),
    "infinite": (with_value("paid", 13, np.inf), {}, [ErrorCode.NOT_FINITE]),
    "no such arm": (with_value("template", 5, 3), {}, [ErrorCode.INVALID_ROW]),
    "text for numbers": (LOG, {"reward": "named"}, [ErrorCode.COLUMN_WRONG_TYPE]),
    "numbers for arms": (LOG, {"action": "paid"}, [ErrorCode.COLUMN_WRONG_TYPE]),
    "names and no list of them": (LOG, {"action": "named"}, [ErrorCode.COLUMN_WRONG_TYPE]),
    "too few names": (LOG, {"action": "named", "names": NAMES[:2]}, [ErrorCode.WRONG_TYPE]),
    "an unknown name": (
        with_value("named", 3, "ofer"),
        {"action": "named", "names": NAMES},
        [ErrorCode.UNKNOWN_ACTION],
    ),
    "a name missing": (
        with_value("named", 4, None),
        {"action": "named", "names": NAMES},
        [ErrorCode.MISSING_VALUE],
    ),
    "a context of arms": (LOG, {"context": ["age"]}, [ErrorCode.CONFLICTING_SETTINGS]),
    "no action": (LOG, {"action": None}, [ErrorCode.CONFLICTING_SETTINGS]),
}


@frames
@pytest.mark.parametrize(("columns", "changes", "parts"), BAD.values(), ids=BAD)
def test_a_bad_frame_changes_nothing(columns: Any, changes: Any, parts: list[str], frame: Any) -> None:
    agent = sw.Agent(ARMS)
    before = agent.state.memory.tobytes()
    with said(*parts):
        agent.learn_frame(frame(columns), **{**OF_ARMS, **changes})
    assert agent.state.memory.tobytes() == before


BAD_FEATURES: dict[str, tuple[Any, dict[str, Any], list[str]]] = {
    "no context": (LOG, {"context": None}, [ErrorCode.CONFLICTING_SETTINGS]),
    "a number": (LOG, {"context": 3}, [ErrorCode.WRONG_TYPE]),
    "twice": (LOG, {"context": ["age", "age"]}, [ErrorCode.WRONG_TYPE]),
    "one too few": (LOG, {"context": ["age"]}, [ErrorCode.DIMENSION_MISMATCH]),
    "misspelt": (LOG, {"context": ["age", "tenur"]}, [ErrorCode.COLUMN_MISSING]),
    "an action": (LOG, {"action": "template"}, [ErrorCode.CONFLICTING_SETTINGS]),
    "missing": (with_value("age", 8, None), {}, [ErrorCode.MISSING_VALUE]),
    "lengths": ({**LOG, "paid": LOG["paid"][:9]}, {}, [ErrorCode.WRONG_SHAPE]),
    "a table for a column": ({**LOG, "paid": np.ones((40, 2))}, {}, [ErrorCode.WRONG_SHAPE]),
    "a number for a column": ({**LOG, "paid": 0.5}, {}, [ErrorCode.WRONG_SHAPE]),
    "masked": ({**LOG, "paid": np.ma.masked_array(LOG["paid"])}, {}, [ErrorCode.MISSING_VALUE]),
    "no frame": (FEATURES, {}, [ErrorCode.WRONG_TYPE]),
    "nothing": (None, {}, [ErrorCode.WRONG_TYPE]),
}


@pytest.mark.parametrize(("frame", "changes", "parts"), BAD_FEATURES.values(), ids=BAD_FEATURES)
def test_bad_features_change_nothing(frame: Any, changes: Any, parts: list[str]) -> None:
    agent = sw.Agent(RAYS)
    before = agent.state.memory.tobytes()
    with said(*parts):
        agent.learn_frame(frame, **{**OF_FEATURES, **changes})
    assert agent.state.memory.tobytes() == before


@pytest.mark.compiled
@pytest.mark.parametrize("name", ROW_BY_ROW)
def test_compiled_rows_are_the_rows_one_by_one_to_the_bit(name: str) -> None:
    test_a_frame_is_its_rows_one_by_one(name)


def test_a_policy_of_three_verbs_has_no_frames() -> None:
    class Three:
        start = decide = learn = lambda *_: None

    with refused(sw.InvalidProblem, ErrorCode.UNSUPPORTED):
        sw.Agent(Three()).learn_frame(LOG, reward="paid")
