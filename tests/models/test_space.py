"""Kernel regression against the textbook: dense matrices, and a known value as an observation without noise."""

from typing import Any

import numpy as np
import pytest
from tests.models.space_textbook import Signal, matrix, textbook
from tests.policies.kernel_reading import read_bounds, read_sums

from stagewise import RBF, Agent, InvalidProblem, KernelOPLB, LinearKernel, Matern, SafeAction
from stagewise.models.similarity import similarity

KERNELS = {
    "rbf": RBF(lengthscale=0.4),
    "matern 1/2": Matern(smoothness=0.5, lengthscale=0.7),
    "matern 3/2": Matern(smoothness=1.5, lengthscale=0.5),
    "matern 5/2": Matern(lengthscale=0.6),
    "linear": LinearKernel(),
}
KNOWN = {
    "known": (True, True),
    "reward unknown": (False, True),
    "cost unknown": (True, False),
    "unknown": (False, False),
}


def policy_and_signals(
    kernel: Any, known: tuple[bool, bool], m: int, **settings: Any
) -> tuple[KernelOPLB, list[Signal]]:
    safe = np.array([0.3, 0.6])
    values = [0.2, 0.1, -0.15, 0.05][: 1 + m]
    noise, bounds, ridge = [0.1, 0.2, 0.3, 0.15][: 1 + m], [1.5, 1.2, 2.0, 1.1][: 1 + m], 0.3
    policy = KernelOPLB(
        kernel=kernel,
        safe_action=SafeAction(
            features=safe, reward=values[0] if known[0] else None, cost=values[1:] if known[1] else None
        ),
        threshold=[0.5] * m,
        noise=noise,
        norm_bound=bounds,
        ridge=ridge,
        mean_cost_bound=None,
        **settings,
    )
    options = [values[0] if known[0] else None, *(v if known[1] else None for v in values[1:])]
    level = policy.delta / (1 + m)
    signals = [Signal(kernel, safe, options[k], noise[k], bounds[k], level, ridge) for k in range(1 + m)]
    return policy, signals


@pytest.mark.parametrize("name", KERNELS)
def test_values_are_the_textbooks(name: str) -> None:
    random = np.random.default_rng(1)
    one, other = random.normal(size=(20, 3)), random.normal(size=(20, 3))
    other[0] = one[0]
    other[1] = one[1] + 1e-3
    expected = np.diag(matrix(KERNELS[name], one, other))
    got = [similarity(KERNELS[name], a, b) for a, b in zip(one, other, strict=True)]
    assert np.allclose(got, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.long
@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("name", KERNELS)
def test_bounds_are_the_textbooks(name: str, known: str, m: int, cached: bool) -> None:
    """Estimates, widths and radii agree with dense matrices; actions come back often, and so does the safe one."""
    random = np.random.default_rng([5, *map(ord, name)])
    policy, signals = policy_and_signals(KERNELS[name], KNOWN[known], m)
    listed = random.uniform(size=(12, 2))
    listed[7], listed[9] = listed[2], policy.safe_action.features
    points = listed if cached else random.uniform(size=(7, 2))
    agent = Agent(policy)
    if cached:
        agent.decide(listed)
    actions = listed[random.integers(12, size=60)]
    outcomes = random.normal(size=(60, 1 + m))
    for count in (0, 1, 5, 60):
        start = 0 if count == 0 else [0, 0, 1, 5][[0, 1, 5, 60].index(count)]
        if count:
            agent.learn_log(actions[start:count], outcomes[start:count, 0], outcomes[start:count, 1:])
        observed = read_bounds(policy, agent.state, points)
        for k, signal in enumerate(signals):
            expected = textbook(signal, actions[:count], outcomes[:count, k], points)
            assert np.allclose(observed.estimates[k], expected.estimates, atol=1e-9)
            assert np.allclose(observed.halves[k], expected.radius * expected.widths, atol=1e-7)
            assert np.allclose(observed.halves[k] ** 2, (expected.radius * expected.widths) ** 2, atol=1e-8)
            at_safe = textbook(signal, actions[:count], outcomes[:count, k], signal.safe[None])
            assert observed.start[k] == pytest.approx(at_safe.estimates[0], abs=1e-9)
            assert observed.start_halves[k] == pytest.approx(at_safe.radius * at_safe.widths[0], abs=1e-7)


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_known_at_the_safe_action_is_exact_there(name: str) -> None:
    policy, _ = policy_and_signals(KERNELS[name], (True, True), 1)
    random, agent = np.random.default_rng(3), Agent(policy)
    agent.learn_log(random.uniform(size=(40, 2)), random.normal(size=40), random.normal(size=40))
    observed = read_bounds(policy, agent.state, policy.safe_action.features[None])
    assert np.array_equal(observed.start, [0.2, 0.1])
    assert np.array_equal(observed.start_halves, [0.0, 0.0])
    assert np.array_equal(observed.estimates[:, 0], [0.2, 0.1])
    assert np.array_equal(observed.halves[:, 0], [0.0, 0.0])


@pytest.mark.parametrize("name", KERNELS)
def test_knowing_a_value_is_observing_it_without_noise(name: str) -> None:
    """A Gaussian process that sees c₀ at x₀ with vanishing noise, and everything else with variance λ."""
    (policy, signals), random = policy_and_signals(KERNELS[name], (True, True), 1), np.random.default_rng(8)
    actions, outcomes, points = random.uniform(size=(15, 2)), random.normal(size=15), random.uniform(size=(6, 2))
    agent = Agent(policy)
    agent.learn_log(actions, np.zeros(15), outcomes)
    observed = read_bounds(policy, agent.state, points)
    rows = np.vstack([actions, policy.safe_action.features])
    noise = np.array([*[policy.ridge] * 15, 1e-11])
    gram = matrix(KERNELS[name], rows, rows) + np.diag(noise)
    cross = matrix(KERNELS[name], rows, points)
    solved = np.linalg.solve(gram, cross)
    squares = np.diag(matrix(KERNELS[name], points, points)) - np.einsum("ij,ij->j", cross, solved)
    assert np.allclose(observed.estimates[1], solved.T @ [*outcomes, signals[1].value], atol=1e-8)
    radius = textbook(signals[1], actions, outcomes, points).radius
    assert np.allclose((observed.halves[1] / radius) ** 2 * policy.ridge, squares, atol=1e-8)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: RBF(lengthscale=0.0), "lengthscale"),
        (lambda: RBF(lengthscale=float("nan")), "lengthscale"),
        (lambda: RBF(lengthscale="long"), "lengthscale"),
        (lambda: RBF(lengthscale=1e-60), "1e-50"),
        (lambda: Matern(lengthscale=-1.0), "lengthscale"),
        (lambda: Matern(lengthscale=1.0, smoothness=2.0), "0.5, 1.5 or 2.5"),
        (lambda: Matern(lengthscale=1.0, smoothness=None), "smoothness"),
    ],
)
def test_kernels_that_are_none_are_refused(make: Any, word: str) -> None:
    with pytest.raises(InvalidProblem, match=word):
        make()


@pytest.mark.compiled
@pytest.mark.parametrize(("lengthscale", "ridge"), [(0.3, 0.1), (1.0, 1e-3)])
def test_a_thousand_different_points_leave_the_recursions_accurate(lengthscale: float, ridge: float) -> None:
    """A hundred points span what a thousand say, but for what the novelty neglects and the radius pays for."""
    random, kernel, safe = np.random.default_rng(0), RBF(lengthscale=lengthscale), np.full(2, 0.5)
    policy = KernelOPLB(
        kernel=kernel,
        safe_action=SafeAction(features=safe, reward=0.2, cost=0.1),
        threshold=0.5,
        noise=0.1,
        norm_bound=2.0,
        mean_cost_bound=None,
        ridge=ridge,
    )
    actions, outcomes = random.uniform(size=(1000, 2)), random.normal(size=1000)
    agent = Agent(policy)
    agent.learn_log(actions, outcomes, outcomes)
    points = np.vstack([random.uniform(size=(30, 2)), actions[:30]])
    observed = read_bounds(policy, agent.state, points)
    expected = textbook(Signal(kernel, safe, 0.1, 0.1, 2.0, 0.025, ridge), actions, outcomes, points)
    used, neglected = read_sums(policy, agent.state)
    assert 30 < used < 160
    assert np.allclose(observed.estimates[1], expected.estimates, atol=1e-5)
    price = np.sqrt(4.0 - 0.01) * np.sqrt(neglected)
    assert 0.0 < price < 1e-3
    assert np.allclose(observed.halves[1], (expected.radius + price) * expected.widths, rtol=2e-6)
