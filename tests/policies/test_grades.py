"""OPLB in three grades: what each is worth, what it may miss, and that none is ever over a threshold."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import clarabel
import numpy as np
import pytest
from scipy.optimize import minimize
from tests.cli.commands import called, spec
from tests.kernels.highs import Program, best_value, quiet_solver
from tests.policies.linear_instances import KNOWN, UNKNOWN, Case, Instance, random_instance
from tests.sizes import sized

import stagewise as sw
from stagewise.kernels.bounds import COSTS, HOPED
from stagewise.kernels.compile import Floats
from stagewise.rules import kept_solver

CASES = {**KNOWN, **UNKNOWN}
ROUNDING = 1e-9


def instances(name: str, count: int) -> list[Instance]:
    random = np.random.default_rng([3, *map(ord, name)])
    return [random_instance(random, CASES[name]) for _ in range(count)]


class Believed:
    """What the data say of the listed actions and the safe one, by the textbook."""

    def __init__(self, instance: Instance, case: Case) -> None:
        self.instance, self.scale, self.thresholds = instance, case.cost_scale, instance.thresholds
        self.rows, self.ceiling = np.vstack([instance.targets, instance.safe]), instance.settings["cost_bound"]
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


@sized((5, 2), (25, 10))
@pytest.mark.parametrize("name", CASES)
def test_the_grades_are_ordered_safe_and_optimistic_on_the_data_least_favourable_to_it(
    name: str, size: tuple[int, int]
) -> None:
    case, dared = CASES[name], 0
    for instance in instances(name, size[0]):
        assert instance.on_event()
        lp, socp = (instance.decided(sw.OPLB, sw.Finite, method=method) for method in ("lp", "socp"))
        exact = instance.decided(sw.OPLB, sw.Finite, method="exact", budget=60, tolerance=1e-2)
        best, belief = instance.best_mixture(), Believed(instance, case)
        for decision in (lp, socp, exact):
            assert np.all(decision.dearest <= decision.thresholds) or decision.fallback is not None
            if decision.fallback is None or case.cost_known:
                assert decision.hoped + decision.gap >= best - ROUNDING
        for decision in (socp, exact):
            if decision.fallback is None:
                dared += 1
                assert np.all(decision.dearest <= belief.of_each(decision.probabilities) + 1e-9)
                if case.constraints == 1 and decision.thresholds[0] < 1.0:
                    assert np.all(decision.dearest <= belief.of_the_mean(decision.probabilities) + 1e-9)
                true_costs = instance.costs @ (decision.probabilities @ belief.rows)
                assert np.all(true_costs <= decision.dearest + 1e-9)
        assert lp.gap == 0.0
        assert 0.0 <= socp.gap <= 3e-6 * max(1.0, socp.hoped)
        assert socp.hoped >= lp.hoped - ROUNDING
        assert exact.hoped <= socp.hoped + socp.gap + ROUNDING
    assert dared >= size[1]


@sized((60, 1), (150, 3))
def test_without_the_lift_the_same_data_defeat_optimism(size: tuple[int, int]) -> None:
    missed = {"socp": 0, "exact": 0}
    for instance in instances("three constraints", size[0]):
        for method in missed:
            settings = {"reward_scale": 1.0, "budget": 30, "tolerance": 1e-2}
            decision = instance.decided(sw.OPLB, sw.Finite, method=method, **settings)
            missed[method] += decision.hoped + decision.gap < instance.best_mixture() - 1e-3
    assert min(missed.values()) >= size[1]


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


@sized((3, 1), (12, 4))
@pytest.mark.parametrize("name", ["safe action elsewhere", "three constraints", "unknown cost", "unknown reward"])
def test_the_grades_are_worth_what_a_search_over_mixtures_finds(name: str, size: tuple[int, int]) -> None:
    """Without ceilings, so that the problem is just the paper's; from the textbook's beliefs."""
    random, compared = np.random.default_rng(11), 0
    for instance in instances(name, size[0]):
        belief, case = Believed(instance, CASES[name]), CASES[name]
        decided = {
            method: instance.decided(
                sw.OPLB, sw.Finite, method=method, cost_bound=None, reward_scale=1.5, tolerance=1e-4, budget=3000
            )
            for method in ("socp", "exact")
        }
        if decided["socp"].fallback is not None:
            continue
        lift = max(0.5 * cost.radius for cost in instance.beliefs[1:]) / instance.beliefs[1].radius
        single = belief.rewards + belief.wide[0] + lift * belief.wide[1]

        def slack(p: Floats, belief: Believed = belief, case: Case = case) -> Floats:
            means = belief.costs @ p
            widths = np.array([belief.width(1 + j, p) for j in range(len(belief.costs))])
            return belief.thresholds - means - case.cost_scale * widths

        def paper(p: Floats, belief: Believed = belief, lift: float = lift) -> float:
            return float(belief.rewards @ p + belief.width(0, p) + lift * belief.width(1, p))

        count = len(belief.rows)
        found = searched(lambda p, single=single: single @ p, slack, count, random)
        assert decided["socp"].hoped == pytest.approx(found, abs=2e-6)
        found = searched(paper, slack, count, random)
        assert decided["exact"].hoped == pytest.approx(paper(decided["exact"].probabilities), abs=1e-9)
        assert decided["exact"].gap <= 1e-4
        assert decided["exact"].hoped + decided["exact"].gap >= found - 1e-6
        compared += 1
    assert compared >= size[1]


def trained(rounds: int = 40, d: int = 3, m: int = 1, **settings: Any) -> tuple[sw.OPLB, sw.State, Floats]:
    """Return a policy, its memory after some rounds, and a table of actions."""
    random = np.random.default_rng([d, m, rounds])
    truth = random.normal(size=(1 + m, d)) / np.sqrt(d)
    table = random.normal(size=(8, d)) / np.sqrt(d)
    safe = sw.SafeAction(features=np.zeros(d))
    policy = sw.OPLB(
        **{"safe_action": safe, "threshold": [0.2] * m, "noise": 0.1, "ridge": 0.1, "cost_bound": 1.0, **settings}
    )
    state = policy.start()
    for _ in range(rounds):
        action = table[random.integers(8)]
        decision = sw.Decision(action, -1, 1.0, None, 0.0, np.zeros(m), np.zeros(m), None, 0, news=True)
        seen = truth @ action + 0.1 * random.normal(size=1 + m)
        state = policy.learn(state, decision, sw.Outcome(float(seen[0]), seen[1:].tolist()))
    return policy, state, table


@pytest.mark.parametrize("method", ["socp", "exact"])
@pytest.mark.parametrize("m", [1, 3])
def test_a_solver_in_a_hurry_breaks_no_limit(method: str, m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def hurried(refined: bool) -> Any:
        chosen = clarabel.DefaultSettings()
        chosen.verbose = chosen.presolve_enable = chosen.equilibrate_enable = False
        chosen.tol_gap_abs = chosen.tol_gap_rel = chosen.tol_feas = 1e-2
        return chosen

    worse = 0
    for rounds in range(0, 60, 4):
        policy, state, table = trained(rounds, m=m, method=method, budget=40)
        careful = policy.decide(state, table)
        with monkeypatch.context() as patch:
            patch.setattr(kept_solver, "settings", hurried)
            kept_solver._POOL.clear()
            careless = policy.decide(state, table)
            kept_solver._POOL.clear()
        assert np.all(careless.dearest <= careless.thresholds)
        assert careless.hoped + careless.gap >= careful.hoped - ROUNDING
        worse += careless.hoped < careful.hoped - 1e-6
    assert worse > 0


def broken(asked: kept_solver.Conic) -> kept_solver.Pair:
    return kept_solver.Pair(np.full(asked.objective.size, np.nan), np.full(asked.right.size, np.nan), False)


def test_a_solver_that_fails_leaves_the_linear_programs_mixture(monkeypatch: pytest.MonkeyPatch) -> None:
    for method in ("socp", "exact"):
        policy, state, table = trained(2, method=method)
        plain = trained(2, method="lp")[0].decide(state, table)
        with monkeypatch.context() as patch:
            patch.setattr("stagewise.rules.cone.solved", broken)
            patch.setattr("stagewise.rules.box.solved", broken)
            decision = policy.decide(state, table)
        assert np.array_equal(decision.probabilities, plain.probabilities)
        assert np.array_equal(decision.dearest, plain.dearest)
        assert decision.gap > 0.0
        assert decision.hoped + decision.gap >= policy.decide(state, table).hoped


def test_what_cancels_is_let_in() -> None:
    """Opposite actions mixed evenly cost nothing for certain; the linear program cannot see that, the cone can."""
    table = [[0.9, 0.0], [-0.9, 0.0]]
    settings = {"safe_action": sw.SafeAction(features=[0.0, 0.0]), "threshold": 0.1, "noise": 0.1}
    lp, socp = (sw.Agent(sw.OPLB(**settings, method=method)).decide(table) for method in ("lp", "socp"))
    assert lp.probabilities[-1] > 0.8
    assert socp.probabilities == pytest.approx([0.5, 0.5, 0.0], abs=0.06)
    assert socp.hoped > 5.0 * lp.hoped


def test_an_early_end_of_the_search_is_told() -> None:
    for rounds in (0, 10, 40):
        policies = [trained(rounds, method="exact", budget=budget) for budget in (1, 5, 30, 1000)]
        *short, long = [policy.decide(state, table) for policy, state, table in policies]
        for decision in short:
            assert decision.hoped <= long.hoped + long.gap + ROUNDING
            assert decision.hoped + decision.gap >= long.hoped - ROUNDING
        assert long.gap <= 1e-3


@pytest.mark.parametrize("method", ["socp", "exact"])
def test_where_everything_is_safe_nothing_is_solved(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stagewise.rules.kept_solver.solved", None)
    monkeypatch.setattr("stagewise.rules.cone.solved", None)
    policy, state, table = trained(method=method, threshold=15.0, cost_bound=16.0)
    decision = policy.decide(state, table)
    assert decision.hoped == trained(threshold=15.0, cost_bound=16.0)[0].decide(state, table).hoped
    assert decision.gap == pytest.approx(0.0, abs=1e-8)
    assert np.all(decision.dearest <= 15.0)


@pytest.mark.parametrize("method", ["socp", "exact"])
def test_one_unknown_direction_or_none_is_enough(method: str) -> None:
    for features, actions in [([0.5], [[0.9], [-0.4]]), ([0.5, 0.0], [[0.9, 0.1], [0.1, -0.8]])]:
        for known in (True, False):
            told = {"reward": 0.1, "cost": 0.1} if known else {"cost": 0.1}
            safe = sw.SafeAction(features=features, **told)
            policy = sw.OPLB(safe_action=safe, threshold=0.3, noise=0.1, method=method)
            decision = sw.Agent(policy).decide(actions)
            assert np.all(decision.dearest <= decision.thresholds)
            assert decision.probabilities.sum() == pytest.approx(1.0, abs=1e-12)


def test_duplicates_zero_vectors_and_one_action_are_no_trouble() -> None:
    tables = [[[0.5, 0.5]], [[0.5, 0.5]] * 4, [[0.0, 0.0], [0.5, 0.1]], [[0.0, 0.0]]]
    for method in ("socp", "exact"):
        policy = sw.OPLB(safe_action=sw.SafeAction(features=[0.0, 0.0]), threshold=0.2, noise=0.1, method=method)
        for table in tables:
            agent = sw.Agent(policy)
            for _ in range(5):
                decision = agent.decide(table)
                assert np.all(decision.dearest <= decision.thresholds)
                agent.learn(decision, reward=0.1, cost=0.1)


@pytest.mark.parametrize("method", ["socp", "exact"])
def test_rays_are_taken_by_their_ends(method: str) -> None:
    policy, state, table = trained(method=method)
    listed, rays = policy.decide(state, sw.Finite(table)), policy.decide(state, sw.Rays(table))
    assert np.array_equal(listed.probabilities, rays.probabilities)
    assert listed.step == rays.step == 1.0


@pytest.mark.parametrize("method", ["socp", "exact"])
def test_only_eligible_actions_are_mixed(method: str) -> None:
    policy, state, table = trained(method=method)
    decision = policy.decide(state, sw.Finite(table).only([1, 4]))
    assert set(np.flatnonzero(decision.probabilities)) <= {1, 4, 8}
    alone = policy.decide(state, table[[1, 4]])
    assert decision.hoped == pytest.approx(alone.hoped, abs=1e-6)


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"method": "simplex"}, "method is 'simplex'; it must be one of 'lp', 'socp', 'exact'"),
        ({"method": None}, "method is None"),
        ({"method": "socp", "optimism": "directional"}, "only method 'lp' plays them"),
        ({"method": "exact", "optimism": "directional"}, "leave no convex set"),
        ({"tolerance": 0.0}, "tolerance is 0.0; it must be greater than 0"),
        ({"tolerance": np.nan}, "tolerance is nan"),
        ({"tolerance": np.inf}, "tolerance is inf"),
        ({"tolerance": "small"}, "tolerance is 'small'"),
        ({"budget": 0}, "budget is 0; it must be a whole number of at least 1"),
        ({"budget": -3}, "budget is -3"),
        ({"budget": 2.5}, "budget is 2.5"),
        ({"budget": True}, "budget is True"),
        ({"budget": None}, "budget is None"),
    ],
)
def test_nonsense_is_refused(settings: dict[str, Any], part: str) -> None:
    with pytest.raises(sw.InvalidProblem, match=part):
        sw.OPLB(safe_action=sw.SafeAction(features=[0.0]), threshold=0.3, noise=0.1, **settings)


WORLD = sw.LinearWorld(reward=[0.6, 0.8], cost=[0.8, 0.6], actions=sw.Rays([[1.0, 0.0], [0.0, 1.0]]), noise=0.1)


def graded(method: str, **settings: Any) -> sw.OPLB:
    safe = sw.SafeAction(features=[0.0, 0.0])
    return sw.OPLB(safe_action=safe, threshold=0.3, noise=0.1, method=method, **settings)


def test_simulations_play_the_grades_in_python_and_the_compiled_loop_refuses_them() -> None:
    for method in ("socp", "exact"):
        policy = graded(method, tolerance=0.05)
        result = sw.simulate(policy, WORLD, rounds=20, runs=2, seed=1)
        assert result.violations.sum() == 0
        with ThreadPoolExecutor(2) as executor:
            again = sw.simulate(policy, WORLD, rounds=20, runs=2, seed=1, executor=executor)
        assert np.array_equal(result.regret, again.regret)
        with pytest.raises(sw.InvalidProblem, match=f"cannot play OPLB with method '{method}'"):
            sw.simulate(policy, WORLD, rounds=10, backend="cpu")
    sw.simulate(graded("lp"), WORLD, rounds=10, backend="cpu")


def test_a_file_names_the_method(tmp_path: Path) -> None:
    policy = 'threshold = 0.3\nnoise = 0.1\nsafe_action = { features = [0.0, 0.0] }\nkind = "OPLB"\n'
    grades = "".join(f'[policies.{name}]\nmethod = "{name}"\n{policy}' for name in ("lp", "socp", "exact"))
    text = (
        '[simulation]\nrounds = 30\n[world]\nkind = "linear"\nreward = [0.6, 0.8]\ncost = [0.8, 0.6]\nnoise = 0.1\n'
        'actions = { kind = "finite", features = [[1.0, 0.0], [0.0, 1.0]] }\n' + grades
    )
    code, said = called("compare", spec(tmp_path, text), "--out", tmp_path / "out", "--quiet")
    assert code == 0, said
    for name in ("lp", "socp", "exact"):
        assert name in said


def test_the_linear_program_is_what_it_was() -> None:
    policy, state, table = trained(method="lp")
    decision = policy.decide(state, table)
    assert decision.gap == 0.0
    assert np.count_nonzero(decision.probabilities) <= 2
    belief = trained(method="socp")[0].decide(state, table)
    assert belief.hoped >= decision.hoped
    rule = decision.table.args[0].workspace.rule
    costs = rule[COSTS : COSTS + 1, :-1].copy()
    program = Program(rule[HOPED, :-1], costs, 0.0, np.zeros(1), np.array([0.2]))
    assert decision.hoped == pytest.approx(best_value(quiet_solver(), program), rel=1e-9)
