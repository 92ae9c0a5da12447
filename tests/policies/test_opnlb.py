"""OPNLB: what it refuses, how its methods compare, and what holds wherever the truth is plausible."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.policies.witness import best_mixture
from tests.problem.refusal import refused

from stagewise import (
    OPNLB,
    Agent,
    Arms,
    ArmsWorld,
    AtLeast,
    Decision,
    Finite,
    FunctionClass,
    InvalidActions,
    InvalidFile,
    InvalidOutcome,
    InvalidProblem,
    Rays,
    SafeAction,
    State,
    TableWorld,
    simulate,
)
from stagewise.cli.spec import read
from stagewise.kernels.compile import Floats

SEED, INSTANCES, ROUNDING = 20260903, 60, 1e-9
REWARDS = [[0.1, 0.5, 0.9], [0.1, 0.9, 0.5], [0.1, 0.3, 0.3]]
COSTS = [[0.0, 0.2, 0.6], [0.0, 0.6, 0.2]]
SAFE = SafeAction(arm=0, reward=0.1, cost=0.0)
BASE: dict[str, Any] = {"reward_class": REWARDS, "cost_class": COSTS, "safe_action": SAFE, "threshold": 0.3}


class Instance:
    """Random classes of which function 0 is the truth, and sets of plausible functions that hold it.

    The theorems ask no more of the sets. Rewards are often known exactly, and the truth is often the cheapest
    plausible cost: that is where optimism has to be bought by the costs' width.
    """

    def __init__(self, random: np.random.Generator, constraints: int, known: tuple[bool, bool] = (True, True)) -> None:
        arms, m = int(random.integers(2, 7)), constraints
        self.tables = [random.random((int(random.integers(2, 7)), arms)) for _ in range(1 + m)]
        self.tables[0][0, 1:] = np.maximum(self.tables[0][0, 1:], random.choice([0.0, 0.95]))
        for signal, table in enumerate(self.tables):
            spread = 0.0 if known[signal > 0] else 0.05 * random.random(len(table))
            table[:, 0] = 0.3 * table[0, 0] + spread
            if signal and random.random() < 0.7:
                table[1:, 1:] = np.maximum(table[1:, 1:], table[0, 1:])
        self.tables = [FunctionClass(table).functions for table in self.tables]  # each function once
        self.truth = np.array([table[0] for table in self.tables])
        self.thresholds = self.truth[1:, 0] + random.uniform(0.15, 0.4, size=m)
        self.flags = [
            np.append(True, random.random(len(table) - 1) < random.choice([0.0, 0.9])) for table in self.tables
        ]
        self.known, self.arms = known, arms
        self.best = best_mixture(
            self.truth[0, 1:],
            np.ascontiguousarray(self.truth[1:, 1:]),
            float(self.truth[0, 0]),
            self.truth[1:, 0],
            self.thresholds,
        )

    def policy(self, **settings: Any) -> OPNLB:
        safe = SafeAction(
            arm=0,
            reward=float(self.truth[0, 0]) if self.known[0] else None,
            cost=self.truth[1:, 0] if self.known[1] else None,
        )
        costs = self.tables[1:] if len(self.tables) > 2 else self.tables[1]
        return OPNLB(
            reward_class=self.tables[0], cost_class=costs, safe_action=safe, threshold=self.thresholds, **settings
        )

    def decided(self, **settings: Any) -> Decision:
        policy = self.policy(**settings)
        state = policy.start()
        kept = [flags[rows] for flags, rows in zip(self.flags, policy.functions.kept, strict=True)]
        policy.model.named(state.memory).plausible[:] = np.concatenate(kept)
        return policy.decide(state, Arms(self.arms))

    def plausible(self, signal: int) -> Floats:
        return self.tables[signal][self.flags[signal]]


def instances(constraints: int, known: tuple[bool, bool] = (True, True)) -> list[Instance]:
    random = np.random.default_rng([SEED, constraints, *known])
    return [Instance(random, constraints, known) for _ in range(INSTANCES)]


KNOWN = [(True, True), (False, True), (True, False), (False, False)]


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("constraints", [1, 2])
@pytest.mark.parametrize("method", ["pointwise", "rows", "exact"])
def test_where_the_truth_is_plausible_decisions_are_safe_and_optimistic(
    method: str, constraints: int, known: tuple[bool, bool]
) -> None:
    excesses, bare, dared = [], [], 0
    for instance in instances(constraints, known):
        decision = instance.decided(method=method)
        costs = instance.truth[1:] @ decision.probabilities[:-1]
        assert np.all(costs <= instance.thresholds + 1e-15)
        assert np.all(decision.dearest <= instance.thresholds)
        dared += decision.fallback is None
        if decision.fallback is None or known[1]:
            excesses.append(decision.hoped + decision.gap - instance.best)
            bare.append(instance.decided(method=method, reward_scale=0.0).hoped - instance.best)
    assert dared >= INSTANCES // 3
    assert min(excesses) >= -ROUNDING
    assert sum(excess < -1e-3 for excess in bare) >= 5, "without the costs' width hope would not be enough"


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("constraints", [1, 2])
def test_directional_mixtures_lose_no_more_than_their_theorem_says(constraints: int, known: tuple[bool, bool]) -> None:
    """r(π*) − r(π) ≤ E_π [w_r + max_j (r(π*) − r₀)/g_j w_j], with the slack g_j that is certain."""
    losses = []
    for instance in instances(constraints, known):
        decision = instance.decided(optimism="directional")
        if decision.fallback is not None and not known[1]:
            continue
        costs = [instance.plausible(1 + j) for j in range(constraints)]
        slack = np.array([limit - cost[:, 0].max() for cost, limit in zip(costs, instance.thresholds, strict=True)])
        widths = np.array([np.ptp(cost, axis=0) for cost in costs]) / slack[:, None]
        gain = instance.best - instance.truth[0, 0]
        bound = np.ptp(instance.plausible(0), axis=0) + gain * widths.max(axis=0)
        shares = decision.probabilities[:-1]
        losses.append(instance.best - instance.truth[0] @ shares)
        assert losses[-1] <= bound @ shares + ROUNDING
        assert np.all(decision.dearest <= instance.thresholds)
    assert max(losses) > 0.1


@pytest.mark.parametrize("constraints", [1, 2])
def test_rows_allow_every_pointwise_mixture_and_exact_hopes_for_less(constraints: int) -> None:
    more = less = 0
    for instance in instances(constraints):
        pointwise, rows, exact = (instance.decided(method=method) for method in ("pointwise", "rows", "exact"))
        for j in range(constraints):
            table = instance.plausible(1 + j)
            assert np.max(table @ pointwise.probabilities[:-1]) <= pointwise.dearest[j] + 1e-12
            assert rows.dearest[j] == pytest.approx(np.max(table @ rows.probabilities[:-1]), abs=1e-14)
        assert rows.hoped >= pointwise.hoped - ROUNDING
        assert exact.hoped <= rows.hoped + ROUNDING
        more, less = more + (rows.hoped > pointwise.hoped + 1e-3), less + (exact.hoped < rows.hoped - 1e-3)
        assert pointwise.gap == 0.0
        assert 0.0 <= rows.gap < ROUNDING
        assert 0.0 <= exact.gap < ROUNDING
    assert min(more, less) >= 5


def test_pointwise_bounds_are_the_extremes_of_the_plausible_functions() -> None:
    policy = OPNLB(**BASE)
    table = policy.decide(policy.start(), Arms(3)).table()
    rows = {row.label: row for row in table.rows}
    lift = 0.9 / policy.thresholds.limits[0]
    assert rows["arm 1"].dearest == (0.6,)
    assert rows["arm 1"].hoped == pytest.approx(0.9 + lift * 0.4)
    assert rows["safe action"].dearest == (0.0,)
    assert rows["safe action"].hoped == 0.1


def test_functions_that_contradict_the_safe_action_are_left_out() -> None:
    policy = OPNLB(**{**BASE, "reward_class": [*REWARDS, [0.2, 1.0, 1.0]], "cost_class": [*COSTS, [0.05, 0.0, 0.0]]})
    assert policy.model.sizes == (3, 2)
    unknown = OPNLB(**{**BASE, "safe_action": SafeAction(arm=0), "cost_class": [*COSTS, [0.3, 0.0, 0.0], [0.1] * 3]})
    assert unknown.model.sizes == (3, 3), "a function at its limit would leave the safe action unsafe"


def test_an_unknown_safe_cost_is_learned_first() -> None:
    costs = [[0.0, 0.5, 0.1], [0.25, 0.5, 0.1]]
    agent = Agent(OPNLB(**{**BASE, "cost_class": costs, "safe_action": SafeAction(arm=0), "noise": 0.1}))
    first = agent.decide(Arms(3))
    assert "not certain enough" in first.fallback
    for _ in range(5):
        agent.learn(agent.decide(Arms(3)), reward=0.1, cost=0.0)
    assert agent.decide(Arms(3)).fallback is None


def test_a_class_that_lacks_the_truth_is_noticed_and_the_safe_action_played() -> None:
    agent = Agent(OPNLB(**{**BASE, "noise": 0.1}))
    agent.learn_log([1] * 60, [0.3] * 60, [0.2] * 20 + [0.6] * 40)
    decision = agent.decide(Arms(3))
    assert decision.fallback is not None
    assert "no function of a class explains" in decision.fallback
    assert (decision.action, decision.probabilities[0], decision.dearest[0]) == (0, 1.0, 0.0)
    assert "no table" in decision.explanation()


def square(x: Any) -> float:
    return 0.1 + 0.8 * float(x[0]) ** 2


def root(x: Any) -> float:
    return 0.1 + 0.8 * math.sqrt(float(x[0]))


def line(x: Any) -> float:
    return float(x[0])


def half(x: Any) -> float:
    return 0.5 * float(x[0])


GRID = [[0.0], [0.25], [0.5], [0.75], [1.0]]
FEATURED: dict[str, Any] = {
    "reward_class": [square, root],
    "cost_class": [line, half],
    "safe_action": SafeAction(features=[0.0], reward=0.1, cost=0.0),
    "threshold": 0.4,
    "noise": 0.1,
}


def test_a_table_over_listed_features_decides_as_its_callables_do() -> None:
    tables = {name: FunctionClass(FEATURED[name], features=GRID) for name in ("reward_class", "cost_class")}
    asked, listed = OPNLB(**FEATURED), OPNLB(**{**FEATURED, **tables})
    for actions in (Finite(GRID), GRID[1:], Rays(GRID[2:]), Finite(GRID).only([1, 3])):
        one, other = (policy.decide(policy.start(), actions) for policy in (asked, listed))
        assert np.array_equal(one.probabilities, other.probabilities)
        assert one.hoped == other.hoped
        assert np.array_equal(one.action, other.action)


@pytest.mark.parametrize("method", ["pointwise", "rows", "exact"])
def test_callables_are_simulated_and_find_the_best_mixture(method: str) -> None:
    points = np.array(GRID)
    means = {"reward": [root(x) for x in points], "cost": [half(x) for x in points]}
    world = TableWorld(features=GRID, **means, noise=0.1)
    result = simulate(OPNLB(**FEATURED, method=method), world, rounds=200, runs=2)
    assert result.violations.sum() == 0
    late = result.regret[:, -1] - result.regret[:, result.rounds.searchsorted(150)]
    assert np.all(late < 1e-9), "soon one function of each class is left, and the mixture is the best"
    assert result.manifest["policy"]["kind"] == "OPNLB"


@pytest.mark.parametrize("method", ["pointwise", "rows", "exact"])
def test_arms_are_simulated(method: str) -> None:
    world = ArmsWorld(reward=REWARDS[1], cost=COSTS[0])
    result = simulate(OPNLB(**BASE, method=method), world, rounds=300, runs=2, backend="python")
    assert result.violations.sum() == 0
    assert np.all(result.regret[:, -1] < 0.3 * result.optimum[:, -1] * 300)


@pytest.mark.parametrize("method", ["pointwise", "rows", "exact"])
def test_where_only_the_safe_arm_is_eligible_it_is_played(method: str) -> None:
    policy = OPNLB(**BASE, method=method)
    decision = policy.decide(policy.start(), Arms(3).only([0]))
    assert decision.probabilities.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert (decision.action, decision.hoped, decision.gap) == (0, 0.1, 0.0)
    assert "promises more" in decision.fallback


def test_callables_cannot_be_saved_and_their_table_can(tmp_path: Path) -> None:
    with refused(InvalidProblem, "callables", "FunctionClass(callables, features=...)"):
        Agent(OPNLB(**FEATURED)).save(tmp_path / "agent.json")
    assert not list(tmp_path.iterdir())
    tables = {name: FunctionClass(FEATURED[name], features=GRID) for name in ("reward_class", "cost_class")}
    agent = Agent(OPNLB(**{**FEATURED, **tables}))
    agent.learn(agent.decide(GRID), reward=0.5, cost=0.1)
    agent.save(tmp_path / "agent.json")
    loaded = Agent.load(tmp_path / "agent.json")
    assert np.array_equal(loaded.policy.reward_class.functions, tables["reward_class"].functions)
    assert loaded.state.memory.tobytes() == agent.state.memory.tobytes()
    # A memory goes over to the callables as well: the functions are the same, in the same order.
    state = State(agent.state.memory)
    assert OPNLB(**FEATURED).decide(state, GRID).hoped == agent.policy.decide(state, GRID).hoped


def test_a_log_is_learned_from() -> None:
    agent, by_hand = Agent(OPNLB(**BASE)), OPNLB(**BASE)
    agent.learn_log([1, 2, 1], [0.4, 0.8, 0.6], [0.1, 0.5, 0.3])
    losses = by_hand.model.named(agent.state.memory).losses
    table = np.array([*REWARDS, *COSTS])[:, [1, 2, 1]]
    seen = np.array([[0.4, 0.8, 0.6]] * 3 + [[0.1, 0.5, 0.3]] * 2)
    assert losses == pytest.approx(np.sum((table - seen) ** 2, axis=1))
    with refused(InvalidActions, "0 to 2"):
        agent.learn_log([3], [0.5], [0.1])
    featured = Agent(OPNLB(**FEATURED))
    with refused(InvalidActions, "2 features"):
        featured.learn_log([[0.5, 0.5]], [0.5], [0.1])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reward_class": None}, "must be a FunctionClass"),
        ({"reward_class": [[0.1, np.nan, 0.3]]}, "nan"),
        ({"reward_class": [[0.2, 0.5, 0.9]]}, "'reward' is 0.1 at the safe action"),
        ({"cost_class": [[0.1, 0.2, 0.6]]}, "does not contain the truth there"),
        ({"cost_class": [[0.3, 0.2, 0.6]], "safe_action": SafeAction(arm=0)}, "keeps the safe action"),
        ({"cost_class": [[0.0, 0.2]]}, "the same arms"),
        ({"cost_class": {"spend": COSTS}}, "['spend']"),
        ({"cost_class": [COSTS, COSTS]}, "2 classes"),
        ({"cost_class": [line]}, "all of features"),
        ({"safe_action": SafeAction(features=[1.0], cost=0.0)}, "functions of 3 arms"),
        ({"safe_action": SafeAction(arm=3, cost=0.0)}, "functions of 3 arms"),
        ({"safe_action": 0}, "SafeAction"),
        ({"threshold": 0.0}, "no slack"),
        ({"threshold": np.nan}, "finite"),
        ({"noise": 0.0}, "noise"),
        ({"noise": [0.1, 0.1, 0.1]}, "3 entries"),
        ({"delta": 1.0}, "delta"),
        ({"sets": "ellipsoid"}, "'likelihood', 'paper'"),
        ({"method": "magic"}, "'pointwise', 'rows', 'exact'"),
        ({"optimism": "none"}, "'inflated', 'directional'"),
        ({"optimism": "directional", "method": "rows"}, "only the method 'pointwise'"),
        ({"sets": "paper", "noise": 0.1}, "leave noise out"),
        ({"sets": "paper", "reward_class": [[0.1, 1.5, 0.0]]}, "[0, 1]"),
        ({"reward_scale": -0.1}, "at least 0"),
        ({"reward_scale": np.inf}, "finite"),
        ({"search": 0}, "at least 1"),
        ({"search": True}, "at least 1"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(changes: dict[str, Any], words: str) -> None:
    with refused(InvalidProblem, words):
        OPNLB(**{**BASE, **changes})


def test_a_safe_action_without_features_is_refused_where_they_are_needed() -> None:
    with refused(InvalidProblem, "give its features"):
        OPNLB(**{**FEATURED, "safe_action": SAFE})


@pytest.mark.parametrize(
    ("settings", "actions", "words"),
    [
        (BASE, Arms(4), "3 arms"),
        (BASE, GRID, "Arms(3)"),
        (FEATURED, Arms(3), "no features"),
        (FEATURED, [[0.1, 0.2]], "2 features"),
        (FEATURED, [[np.nan]], "nan"),
        (FEATURED, [], "shape"),
        (FEATURED, [[-1.0]], "function 1"),
        ({**FEATURED, "noise": None, "sets": "paper"}, [[2.0]], "[0, 1]"),
    ],
)
def test_bad_actions_are_refused_in_one_sentence(settings: dict[str, Any], actions: Any, words: str) -> None:
    policy = OPNLB(**settings)
    with refused(InvalidActions, words):
        policy.decide(policy.start(), actions)


@pytest.mark.parametrize(("reward", "cost"), [(1.5, 0.1), (0.5, -0.1), (np.nan, 0.1), (0.5, None), (0.5, [0.1, 0.2])])
def test_bad_outcomes_are_refused_and_change_nothing(reward: Any, cost: Any) -> None:
    agent = Agent(OPNLB(**BASE))
    decision, before = agent.decide(Arms(3)), agent.state.memory.tobytes()
    with refused(InvalidOutcome):
        agent.learn(decision, reward=reward, cost=cost)
    assert agent.state.memory.tobytes() == before


def test_a_limit_from_below_turns_its_class_around() -> None:
    up = OPNLB(
        **{
            **BASE,
            "threshold": AtLeast(0.7),
            "cost_class": 1.0 - np.array(COSTS),
            "safe_action": SafeAction(arm=0, reward=0.1, cost=1.0),
        }
    )
    one, other = (policy.decide(policy.start(), Arms(3)) for policy in (up, OPNLB(**BASE)))
    assert one.probabilities == pytest.approx(other.probabilities, abs=1e-12)
    assert one.dearest == pytest.approx(1.0 - other.dearest, abs=1e-12)
    assert one.dearest[0] >= 0.7


SPEC = """
[simulation]
rounds = 50
[world]
kind = "table"
features = [[0.0], [0.5], [1.0]]
reward = [0.1, 0.5, 0.9]
cost = [0.0, 0.2, 0.6]
noise = 0.1
[policies.classes]
kind = "OPNLB"
reward_class = {classes}
cost_class = {{ functions = [[0.0, 0.2, 0.6], [0.0, 0.6, 0.2]], features = [[0.0], [0.5], [1.0]] }}
safe_action = {{ features = [0.0], reward = 0.1, cost = 0.0 }}
threshold = 0.3
noise = 0.1
"""


def test_a_file_can_ask_for_it_in_a_world_of_listed_actions(tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    listed = "{ functions = [[0.1, 0.5, 0.9], [0.1, 0.9, 0.5]], features = [[0.0], [0.5], [1.0]] }"
    path.write_text(SPEC.format(classes=listed), encoding="utf-8")
    spec = read(path)
    assert isinstance(spec.world, TableWorld)
    result = simulate(spec.policies["classes"], spec.world, rounds=spec.simulation.rounds)
    assert result.violations[0] == 0
    assert result.manifest["policy"]["settings"]["method"] == "pointwise"


def test_a_file_with_a_bad_class_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_text(SPEC.format(classes="[[0.1, 0.5, 0.9]]"), encoding="utf-8")
    with refused(InvalidFile, "all of features"):
        read(path)
    path.write_text(SPEC.format(classes="[[0.1]]").replace('kind = "table"', 'kind = "tables"'), encoding="utf-8")
    with refused(InvalidFile, "'tables'"):
        read(path)
