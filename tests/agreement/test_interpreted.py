"""Every kernel that decides or learns, called twice with the same arguments: as Python, and as machine code."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.contracts import test_kernel_policies, test_policies, test_rare_costs
from tests.contracts.policy import Case

import stagewise as sw
from stagewise.engine.compile import as_python
from stagewise.policies import rounds

pytestmark = pytest.mark.compiled

ROUNDS = 120


class Both:
    """A kernel that is called in both forms; it counts the calls whose arrays or results end in other bits."""

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self.compiled, self.interpreted = kernel, as_python(kernel)
        self.calls, self.differing = 0, 0

    def __call__(self, *arguments: Any) -> Any:
        """Call it interpreted on copies, then compiled in place."""
        copies = [given.copy() if isinstance(given, np.ndarray) else given for given in arguments]
        with np.errstate(all="ignore"):
            other = self.interpreted(*copies)
        result = self.compiled(*arguments)
        same = all(one.tobytes() == two.tobytes() for one, two in zip(arrays(arguments), arrays(copies), strict=True))
        self.calls, self.differing = self.calls + 1, self.differing + (not same or result != other)
        return result


def arrays(arguments: Any) -> list[Any]:
    """Return the arrays among arguments."""
    return [given for given in arguments if isinstance(given, np.ndarray)]


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Both]]:
    """Have every policy decide and learn in both forms; return what is called."""
    found: dict[str, list[Both]] = {"decide": [], "learn": []}
    needed, build_log_learner = rounds.get_round_resources, rounds.build_log_learner

    @cache
    def both(*sizes: Any) -> Any:
        needs = needed(*sizes)
        pair = {"decide": Both(needs.decide), "learn": Both(needs.learn)}
        for name, one in pair.items():
            found[name].append(one)
        return needs._replace(**pair)

    @cache
    def rows(*spec: Any) -> Any:
        found["learn"].append(Both(build_log_learner(*spec)))
        return found["learn"][-1]

    monkeypatch.setattr(rounds, "get_round_resources", both)
    monkeypatch.setattr(rounds, "build_log_learner", rows)
    return found


def check(kernels: dict[str, list[Both]], least: int) -> None:
    """Hold that both verbs were called, and that no call differed."""
    for verb, both in kernels.items():
        assert sum(one.calls for one in both) >= least, verb
        assert sum(one.differing for one in both) == 0, verb


def case_of(contract: Any, position: int) -> Any:
    """Return the first or the last of the cases that a contract is parametrised with."""
    (mark,) = [mark for mark in contract.pytestmark if mark.name == "parametrize"]
    value = mark.args[1][position]
    case = getattr(value, "values", (value,))[0]
    return pytest.param(case, id=f"{contract.__name__[4:]}: {case.name}")


# Other cases of these classes run no branch of a kernel that these do not.
CASES = [
    case_of(test_policies.TestLCLUCB, -1),
    case_of(test_policies.TestLCLUCBWithOwnSets, 0),
    case_of(test_policies.TestSafeLTS, -1),
    case_of(test_policies.TestCAPS, 0),
    case_of(test_policies.TestCAPS, -1),
    case_of(test_policies.TestCAPSOnMixtures, 0),
    case_of(test_policies.TestCAPSOnMixtures, -1),
    case_of(test_policies.TestOPLB, -1),
    case_of(test_policies.TestOPB, 0),
    case_of(test_policies.TestOPBWithKL, -1),
    case_of(test_policies.TestArmsCAPS, -1),
    case_of(test_rare_costs.TestCAPSWithRareCosts, 0),
    case_of(test_kernel_policies.TestKernelOPLB, 0),
    case_of(test_kernel_policies.TestKernelOPLB, -1),
]


@pytest.mark.parametrize("case", CASES)
def test_a_policy_decides_and_learns_the_same_interpreted_and_compiled(case: Case, kernels: Any) -> None:
    assert len(replace(case, length=ROUNDS).rounds) == ROUNDS
    check(kernels, least=ROUNDS // 4)


@pytest.mark.parametrize(
    "limits",
    [
        {
            "opt_out": sw.Limit(0.3, safe_bound=0.01, by="country"),
            "delay": sw.Limit(0.6, safe_bound=0.1, model="linear"),
        },
        {
            "opt_out": sw.Limit(0.2, safe_bound=0.01, model="linear"),
            "bounce": sw.Limit(0.2, safe_bound=0.01, model="logistic"),
        },
        {
            "opt_out": sw.Limit(0.3, safe_bound=0.01, score=sw.RiskScore("opens", buckets=4, low=0, high=7)),
            "delay": sw.Limit(0.6, safe_bound=0.1, model="rates"),
        },
    ],
    ids=["by segment and linear", "of every user", "by a score and rates"],
)
def test_a_problem_decides_and_learns_the_same_interpreted_and_compiled(limits: Any, kernels: Any) -> None:
    problem = sw.Problem(
        action_names=["nothing", "digest", "offer"],
        safe_name="nothing",
        context={"age": (18, 99), "opens": (0, 7)},
        reward=sw.Reward("click"),
        limits=limits,
        delta=0.2,
    )
    agent, random = sw.Agent(problem, seed=1), np.random.default_rng(0)
    for _ in range(4 * ROUNDS):
        context: dict[str, Any] = {"age": random.uniform(18, 99), "opens": random.uniform(0, 7)}
        decision = agent.decide(context | ({"country": str(random.integers(2))} if limits["opt_out"].by else {}))
        pays = decision.action != "nothing"
        costs = {name: float(random.random() < 0.1 * pays) for name in limits}
        agent.learn(decision.id, click=float(random.random() < 0.1 + 0.3 * pays), **costs)
    check(kernels, least=ROUNDS)
