"""OPLB's linear and its cone program: what each is worth, what it may miss, and that none is over a threshold."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import clarabel
import numpy as np
import pytest
from scipy.optimize import minimize
from tests.engine.highs import Program, best_value, quiet_solver
from tests.policies.linear_instances import KNOWN, UNKNOWN, Case, Instance, random_instance
from tests.problem.refusal import refused
from tests.sizes import sized

import stagewise as sw
from stagewise.engine.compile import Floats
from stagewise.engine.workspace import COSTS, OPTIMISTIC_REWARDS
from stagewise.problem.errors import ErrorCode
from stagewise.rules import cone_program

CASES = {**KNOWN, **UNKNOWN}
ROUNDING = 1e-9


def instances(name: str, count: int) -> list[Instance]:
    random = np.random.default_rng([3, *map(ord, name)])
    return [random_instance(random, CASES[name]) for _ in range(count)]


class Believed:
    """What the data say of the listed actions and the safe one, by the textbook."""

    def __init__(self, instance: Instance, case: Case) -> None:
        self.instance, self.scale, self.thresholds = instance, case.cost_confidence_scale, instance.thresholds
        self.rows, self.ceiling = np.vstack([instance.targets, instance.safe]), instance.settings["mean_cost_bound"]
        reward, *costs = instance.beliefs
        self.rewards, self.costs = reward.estimates(self.rows), np.array([cost.estimates(self.rows) for cost in costs])
        self.wide = [belief.widths(self.rows) for belief in instance.beliefs]

    def width(self, signal: int, shares: Floats) -> float:
        """Return β ‖x_π‖."""
        return float(self.instance.beliefs[signal].widths((shares @ self.rows)[np.newaxis])[0])

    def of_the_mean(self, shares: Floats) -> Floats:
        """Return the pessimistic costs of the mean action."""
        widths = np.array([self.width(1 + j, shares) for j in range(len(self.costs))])
        return self.costs @ shares + self.scale * widths

    def of_each(self, shares: Floats) -> Floats:
        """Return the mean of the pessimistic costs of every action, at most their ceilings."""
        return np.minimum(self.costs + self.scale * np.array(self.wide[1:]), self.ceiling) @ shares


def checked_costs(instance: Instance, case: Case, decision: sw.Decision) -> bool:
    """Assert that a mixture's costs are between the true ones and what the textbook allows; say whether it dared."""
    belief = Believed(instance, case)
    if decision.message is None:
        assert np.all(decision.pessimistic_cost <= belief.of_each(decision.probabilities) + 1e-9)
        if case.constraints == 1 and decision.thresholds[0] < 1.0:
            assert np.all(decision.pessimistic_cost <= belief.of_the_mean(decision.probabilities) + 1e-9)
        assert np.all(instance.costs @ (decision.probabilities @ belief.rows) <= decision.pessimistic_cost + 1e-9)
    return decision.message is None


@pytest.mark.long
@sized((5, 2), (25, 10))
@pytest.mark.parametrize("name", CASES)
def test_the_grades_are_ordered_safe_and_optimistic_on_the_data_least_favourable_to_it(
    name: str, size: tuple[int, int]
) -> None:
    case, dared = CASES[name], 0
    for instance in instances(name, size[0]):
        assert instance.on_event()
        lp, socp = (instance.decided(sw.OPLB, sw.FiniteSet, method=method) for method in ("lp", "socp"))
        best = instance.best_mixture()
        for decision in (lp, socp):
            assert np.all(decision.pessimistic_cost <= decision.thresholds) or decision.message is not None
            if decision.message is None or case.cost_known:
                assert decision.optimistic_reward + decision.solver_gap >= best - ROUNDING
        dared += checked_costs(instance, case, socp)
        assert lp.solver_gap == 0.0
        assert 0.0 <= socp.solver_gap <= 3e-6 * max(1.0, socp.optimistic_reward)
        assert socp.optimistic_reward >= lp.optimistic_reward - ROUNDING
    assert dared >= size[1]


def missed_without_the_lift(kind: type[sw.OPLB], count: int, **settings: Any) -> int:
    """Return how often the data least favourable to optimism defeat it where widths of costs add nothing."""
    missed = 0
    for instance in instances("three constraints", count):
        decision = instance.decided(kind, sw.FiniteSet, reward_confidence_scale=1.0, **settings)
        missed += decision.optimistic_reward + decision.solver_gap < instance.best_mixture() - 1e-3
    return missed


@sized((60, 1), (150, 3))
def test_without_the_lift_the_same_data_defeat_optimism(size: tuple[int, int]) -> None:
    assert missed_without_the_lift(sw.OPLB, size[0], method="socp") >= size[1]


def searched(value: Any, slack: Any, count: int, random: np.random.Generator) -> float:
    """Return the best value that SLSQP finds from several mixtures."""
    best = -np.inf
    sums = {"type": "eq", "fun": lambda p: p.sum() - 1.0}
    for _ in range(6):
        start = random.dirichlet(np.ones(count))
        with np.errstate(all="ignore"):
            found = minimize(
                lambda p: -value(np.maximum(p, 0.0)),
                start,
                method="SLSQP",
                bounds=[(0.0, 1.0)] * count,
                constraints=[sums, {"type": "ineq", "fun": slack}],
                options={"ftol": 1e-13, "maxiter": 300},
            )
        point = np.maximum(found.x, 0.0)
        point /= point.sum()
        if np.all(slack(point) >= -1e-9):
            best = max(best, float(value(point)))
    return best


class Textbook(NamedTuple):
    """A round's problem without ceilings, as functions of a mixture."""

    single: Floats  # (N,) the hoped reward of every action by itself
    paper: Callable[[Floats], float]  # the hoped reward of the mean action
    slack: Callable[[Floats], Floats]


def textbook(instance: Instance, case: Case) -> Textbook:
    """The problem solved with reward_confidence_scale=1.5 and no mean_cost_bound, from the textbook's beliefs."""
    belief = Believed(instance, case)
    lift = max(0.5 * cost.radius for cost in instance.beliefs[1:]) / instance.beliefs[1].radius

    def slack(p: Floats) -> Floats:
        widths = np.array([belief.width(1 + j, p) for j in range(len(belief.costs))])
        return belief.thresholds - belief.costs @ p - case.cost_confidence_scale * widths

    def paper(p: Floats) -> float:
        return float(belief.rewards @ p + belief.width(0, p) + lift * belief.width(1, p))

    return Textbook(belief.rewards + belief.wide[0] + lift * belief.wide[1], paper, slack)


SEARCHED = ["safe action elsewhere", "three constraints", "unknown cost", "unknown reward"]


@pytest.mark.long
@sized((3, 1), (12, 4))
@pytest.mark.parametrize("name", SEARCHED)
def test_the_cone_program_is_worth_what_a_search_over_mixtures_finds(name: str, size: tuple[int, int]) -> None:
    """Without ceilings, so that the problem is just the paper's; from the textbook's beliefs."""
    random, compared = np.random.default_rng(11), 0
    for instance in instances(name, size[0]):
        told = textbook(instance, CASES[name])
        decided = instance.decided(
            sw.OPLB, sw.FiniteSet, method="socp", mean_cost_bound=None, reward_confidence_scale=1.5
        )
        if decided.message is None:
            found = searched(lambda p, told=told: told.single @ p, told.slack, told.single.size, random)
            assert decided.optimistic_reward == pytest.approx(found, abs=2e-6)
            compared += 1
    assert compared >= size[1]


def trained(
    rounds: int = 40, d: int = 3, m: int = 1, kind: type[sw.OPLB] = sw.OPLB, **settings: Any
) -> tuple[sw.OPLB, sw.PolicyState, Floats]:
    """Return a policy, its memory after some rounds, and a table of actions."""
    random = np.random.default_rng([d, m, rounds])
    truth = random.normal(size=(1 + m, d)) / np.sqrt(d)
    table = random.normal(size=(8, d)) / np.sqrt(d)
    safe = sw.SafeAction(features=np.zeros(d))
    policy = kind(
        **{"safe_action": safe, "threshold": [0.2] * m, "noise": 0.1, "ridge": 0.1, "mean_cost_bound": 1.0, **settings}
    )
    state = policy.start()
    for _ in range(rounds):
        action = table[random.integers(8)]
        decision = sw.Decision(action, -1, 1.0, None, 0.0, np.zeros(m), np.zeros(m), None, 0)._with(None, None, True)
        seen = truth @ action + 0.1 * random.normal(size=1 + m)
        state = policy.learn(state, decision, sw.Outcome(float(seen[0]), seen[1:].tolist()))
    return policy, state, table


def hurried(refined: bool) -> Any:
    """Return settings of a solver that stops early."""
    chosen = clarabel.DefaultSettings()
    chosen.verbose = chosen.presolve_enable = chosen.equilibrate_enable = False
    chosen.tol_gap_abs = chosen.tol_gap_rel = chosen.tol_feas = 1e-2
    return chosen


def worse_in_a_hurry(m: int, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> int:
    """Return how often a hurried solver costs hope; it never costs safety, and the gap says what it costs."""
    worse = 0
    for rounds in range(0, 60, 4):
        policy, state, table = trained(rounds, m=m, **settings)
        careful = policy.decide(state, table)
        with monkeypatch.context() as patch:
            patch.setattr(cone_program, "settings", hurried)
            cone_program._POOL.clear()
            careless = policy.decide(state, table)
            cone_program._POOL.clear()
        assert np.all(careless.pessimistic_cost <= careless.thresholds)
        assert careless.optimistic_reward + careless.solver_gap >= careful.optimistic_reward - ROUNDING
        worse += careless.optimistic_reward < careful.optimistic_reward - 1e-6
    return worse


@pytest.mark.parametrize("m", [1, 3])
def test_a_solver_in_a_hurry_breaks_no_limit(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert worse_in_a_hurry(m, monkeypatch, method="socp") > 0


def broken(asked: cone_program.ConicProblem) -> cone_program.PrimalDual:
    return cone_program.PrimalDual(np.full(asked.objective.size, np.nan), np.full(asked.right.size, np.nan), False)


def assert_stays_linear(policy: sw.OPLB, state: sw.PolicyState, table: Floats) -> None:
    """Assert that with a broken solver the linear program's mixture is played, and the gap is honest."""
    plain = trained(2, method="lp")[0].decide(state, table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stagewise.rules.cone_program.solve_conic", broken)
        decision = policy.decide(state, table)
    assert np.array_equal(decision.probabilities, plain.probabilities)
    assert np.array_equal(decision.pessimistic_cost, plain.pessimistic_cost)
    assert decision.solver_gap > 0.0
    assert decision.optimistic_reward + decision.solver_gap >= policy.decide(state, table).optimistic_reward


def test_a_solver_that_fails_leaves_the_linear_programs_mixture() -> None:
    assert_stays_linear(*trained(2, method="socp"))


def test_what_cancels_is_let_in() -> None:
    """Opposite actions mixed evenly cost nothing for certain; the linear program cannot see that, the cone can."""
    table = [[0.9, 0.0], [-0.9, 0.0]]
    settings = {"safe_action": sw.SafeAction(features=[0.0, 0.0]), "threshold": 0.1, "noise": 0.1}
    lp, socp = (sw.Agent(sw.OPLB(**settings, method=method)).decide(table) for method in ("lp", "socp"))
    assert lp.probabilities[-1] > 0.8
    assert socp.probabilities == pytest.approx([0.5, 0.5, 0.0], abs=0.06)
    assert socp.optimistic_reward > 5.0 * lp.optimistic_reward


def test_where_everything_is_safe_nothing_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stagewise.rules.cone_program.solve_conic", None)
    policy, state, table = trained(method="socp", threshold=15.0, mean_cost_bound=16.0)
    decision = policy.decide(state, table)
    assert (
        decision.optimistic_reward
        == trained(threshold=15.0, mean_cost_bound=16.0)[0].decide(state, table).optimistic_reward
    )
    assert decision.solver_gap == pytest.approx(0.0, abs=1e-8)
    assert np.all(decision.pessimistic_cost <= 15.0)


def assert_small_problems_are_no_trouble(kind: type[sw.OPLB], **settings: Any) -> None:
    """One unknown direction or none, duplicates, zero vectors, one action."""
    for features, actions in [([0.5], [[0.9], [-0.4]]), ([0.5, 0.0], [[0.9, 0.1], [0.1, -0.8]])]:
        for told in ({"reward": 0.1, "cost": 0.1}, {"cost": 0.1}):
            safe = sw.SafeAction(features=features, **told)
            decision = sw.Agent(kind(safe_action=safe, threshold=0.3, noise=0.1, **settings)).decide(actions)
            assert np.all(decision.pessimistic_cost <= decision.thresholds)
            assert decision.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    policy = kind(safe_action=sw.SafeAction(features=[0.0, 0.0]), threshold=0.2, noise=0.1, **settings)
    for table in [[[0.5, 0.5]], [[0.5, 0.5]] * 4, [[0.0, 0.0], [0.5, 0.1]], [[0.0, 0.0]]]:
        agent = sw.Agent(policy)
        for _ in range(5):
            decision = agent.decide(table)
            assert np.all(decision.pessimistic_cost <= decision.thresholds)
            agent.learn(decision, reward=0.1, cost=0.1)


def test_small_problems_are_no_trouble() -> None:
    assert_small_problems_are_no_trouble(sw.OPLB, method="socp")


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"method": "simplex"}, ErrorCode.INVALID_CHOICE),
        ({"method": None}, ErrorCode.INVALID_CHOICE),
        ({"method": "exact"}, ErrorCode.UNSUPPORTED),
        ({"method": "socp", "optimism": "directional"}, ErrorCode.CONFLICTING_SETTINGS),
    ],
)
def test_nonsense_is_refused(settings: dict[str, Any], part: str) -> None:
    with refused(sw.InvalidProblem, part):
        sw.OPLB(safe_action=sw.SafeAction(features=[0.0]), threshold=0.3, noise=0.1, **settings)


WORLD = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.RaySet([[1.0, 0.0], [0.0, 1.0]]), noise=0.1)


def assert_played_in_python(policy: sw.OPLB) -> None:
    """Assert that simulations play a policy by hand, the same on every worker, and the compiled loop refuses it."""
    result = sw.simulate(policy, WORLD, rounds=20, runs=2, seed=1)
    assert result.violations.sum() == 0
    with ThreadPoolExecutor(2) as executor:
        again = sw.simulate(policy, WORLD, rounds=20, runs=2, seed=1, executor=executor)
    assert np.array_equal(result.regret, again.regret)
    with refused(sw.InvalidProblem, ErrorCode.UNSUPPORTED_BACKEND):
        sw.simulate(policy, WORLD, rounds=10, backend="cpu")


def test_simulations_play_the_cone_program_in_python_and_the_compiled_loop_refuses_it() -> None:
    told: dict[str, Any] = {"safe_action": sw.SafeAction(features=[0.0, 0.0]), "threshold": 0.3, "noise": 0.1}
    assert_played_in_python(sw.OPLB(**told, method="socp"))
    sw.simulate(sw.OPLB(**told), WORLD, rounds=10, backend="cpu")


def test_the_linear_program_is_what_it_was() -> None:
    policy, state, table = trained(method="lp")
    decision = policy.decide(state, table)
    assert decision.solver_gap == 0.0
    assert np.count_nonzero(decision.probabilities) <= 2
    belief = trained(method="socp")[0].decide(state, table)
    assert belief.optimistic_reward >= decision.optimistic_reward
    rule = decision._table.result.workspace.rule
    costs = rule[COSTS : COSTS + 1, :-1].copy()
    program = Program(rule[OPTIMISTIC_REWARDS, :-1], costs, 0.0, np.zeros(1), np.array([0.2]))
    assert decision.optimistic_reward == pytest.approx(best_value(quiet_solver(), program), rel=1e-9)
