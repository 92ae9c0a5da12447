"""The longest safe step on a ray is closed form and exact: what Clarabel finds, safe to the bit, and no shorter."""

from typing import Any

import clarabel
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_matrix
from tests.engine.textbook import Fit
from tests.policies.reading import BASELINES, Problem, Reading, longest, random_problem, reading_of

from stagewise import LCLUCB, OPLB, RandomKey, SafeLTS, SafePosteriorSampling
from stagewise.engine.compile import Floats
from stagewise.engine.workspace import CENTRE, HALF, STEPS, Workspace, safe_step
from stagewise.policies.policy import PlayedAction
from stagewise.problem.actions import ALL
from stagewise.rules.ray import (
    compute_clipped_width_along,
    compute_width_along,
    find_first_crossing,
    find_last_crossing,
)

SEEDS = range(6)


def workspace_of(problem: Problem, **more: Any) -> Workspace:
    """Return what the kernel writes on all rays of a problem."""
    policy, state = problem.ready(LCLUCB, **more)
    return policy.rounds.play(state.memory, problem.targets, ALL, RandomKey()).workspace


def steps_of(problem: Problem, **more: Any) -> Floats:
    """Return the longest safe step on every ray."""
    return workspace_of(problem, **more).rule[STEPS, :-1]


def root_of(fit: Fit) -> Floats:
    """Return F with FFᵀ = (Σ⊥)⁺."""
    values, vectors = np.linalg.eigh(fit.spread)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def step_by_clarabel(reading: Reading, target: Floats) -> float:
    """Maximise s subject to 0 ≤ s ≤ 1 and <x(s), μ̂_j> + α_c β_j ‖x(s)‖ ≤ τ_j, as a second-order cone program."""
    safe, way = reading.safe, target - reading.safe
    left, right, cones = [[1.0], [-1.0]], [1.0, 0.0], [clarabel.NonnegativeConeT(2)]
    for (fit, beta), threshold in zip(reading.each_cost(), reading.thresholds, strict=True):
        root = reading.scale * beta * root_of(fit).T @ fit.across
        left += [[fit.estimates(way)], *(-root @ way)[:, np.newaxis].tolist()]
        right += [threshold - fit.estimates(safe), *(root @ safe)]
        cones.append(clarabel.SecondOrderConeT(1 + len(root)))
    options = clarabel.DefaultSettings()
    options.verbose = False
    nothing, rows = csc_matrix((1, 1)), csc_matrix(np.array(left, dtype=float))
    solution = clarabel.DefaultSolver(nothing, np.array([-1.0]), rows, np.array(right), cones, options).solve()
    assert solution.status == clarabel.SolverStatus.Solved
    return float(solution.x[0])


@pytest.mark.long
@pytest.mark.parametrize("constraints", [1, 3])
@pytest.mark.parametrize("baseline", BASELINES)
def test_the_step_on_every_ray_is_clarabels(baseline: str, constraints: int) -> None:
    for seed in SEEDS:
        problem = random_problem(seed, baseline, constraints)
        reading, steps = reading_of(problem), steps_of(problem)
        witness = [step_by_clarabel(reading, target) for target in problem.targets]
        np.testing.assert_allclose(steps, witness, rtol=0.0, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("mean_cost_bound", [None, 0.85])
@pytest.mark.parametrize("constraints", [1, 3])
@pytest.mark.parametrize("baseline", BASELINES)
def test_the_step_on_every_ray_is_safe_and_cannot_be_longer(
    baseline: str, constraints: int, mean_cost_bound: float | None
) -> None:
    for seed in SEEDS:
        problem = random_problem(seed, baseline, constraints)
        reading, steps = (
            reading_of(problem, mean_cost_bound=mean_cost_bound),
            steps_of(problem, mean_cost_bound=mean_cost_bound),
        )
        for target, step in zip(problem.targets, steps, strict=True):
            assert step == pytest.approx(longest(reading.is_safe, target), abs=1e-9)
            assert step == 1.0 or not reading.is_safe(target, step + 1e-6)[0]


@pytest.mark.long
@pytest.mark.parametrize("baseline", BASELINES)
def test_the_step_is_a_real_cut_on_many_rays_and_the_whole_ray_on_some(baseline: str) -> None:
    """Without this the tests above could hold for want of anything to cut."""
    steps = np.concatenate([steps_of(random_problem(seed, baseline)) for seed in range(20)])
    assert np.mean(steps < 1.0) > 0.2
    assert np.mean(steps == 1.0) > 0.02


@settings(max_examples=300)
@given(st.floats(-10.0, 10.0), st.floats(1e-9, 10.0))
def test_a_straight_step_keeps_its_slack_and_cannot_be_longer(slope: float, slack: float) -> None:
    step = safe_step(slope, slack)
    assert 0.0 < step <= 1.0
    assert step * slope <= slack * (1.0 + 1e-15)
    assert step == 1.0 or (step + 1e-6) * slope > slack


class Curve:
    """Two actions in a random norm: estimates along the segment between them, plus or minus the width."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.first, self.last = random.normal(size=(2, 3)) * 10.0 ** random.uniform(-3.0, 1.0, size=(2, 1))
        self.low, self.high = random.normal(size=2) * 10.0 ** random.uniform(-2.0, 1.0)
        self.start_width, self.end_width = float(np.linalg.norm(self.first)), float(np.linalg.norm(self.last))
        self.cross = float(self.first @ self.last)

    def bound(self, step: float, sign: float) -> float:
        width = float(np.linalg.norm((1.0 - step) * self.first + step * self.last))
        return float((1.0 - step) * self.low + step * self.high + sign * width)

    def crossing(self, finder: Any, limit: float) -> float:
        return float(finder(self.low, self.high, self.start_width, self.start_width, self.cross, self.end_width, limit))


seeds, shares = st.integers(0, 2**32 - 1), st.floats(0.01, 0.99)


@settings(max_examples=300)
@given(seeds, st.floats(0.0, 1.0))
def test_the_width_along_a_ray_is_the_norm_there(seed: int, step: float) -> None:
    curve = Curve(seed)
    direct = float(np.linalg.norm((1.0 - step) * curve.first + step * curve.last))
    along = compute_width_along(step, curve.start_width, curve.cross, curve.end_width)
    assert along == pytest.approx(direct, rel=1e-6, abs=1e-7 * max(curve.start_width, curve.end_width))


@settings(max_examples=300)
@given(seeds, st.floats(0.0, 1.0), shares)
def test_the_width_between_two_planes_is_the_largest_product_there(seed: int, step: float, share: float) -> None:
    """The largest <x(s), v> over ‖v‖ ≤ 1 and |<x₀, v>| ≤ share ‖x₀‖, by its dual: min ‖x(s) − κx₀‖ + |κ| share ‖x₀‖."""
    curve = Curve(seed)
    start, point = share * curve.start_width, (1.0 - step) * curve.first + step * curve.last
    size = curve.start_width + curve.end_width
    most = size / curve.start_width * 2.0
    kappas = np.append(np.linspace(-most, most, 4001), point @ curve.first / curve.start_width**2)
    duals = np.linalg.norm(point - kappas[:, None] * curve.first, axis=1) + np.abs(kappas) * start
    kept = compute_clipped_width_along(step, start, curve.start_width, curve.cross, curve.end_width)
    assert kept <= duals.min() + 1e-6 * size
    assert kept >= duals.min() - 1e-3 * size
    assert kept <= compute_width_along(step, curve.start_width, curve.cross, curve.end_width) + 1e-9 * size


@settings(max_examples=100)
@given(seeds, shares, shares)
def test_between_two_planes_both_crossings_meet_their_limit(seed: int, share: float, part: float) -> None:
    curve = Curve(seed)
    start, wide, cross, end = share * curve.start_width, curve.start_width, curve.cross, curve.end_width
    for sign, finder in [(1.0, find_first_crossing), (-1.0, find_last_crossing)]:
        first, last = (
            curve.low + sign * start,
            curve.high + sign * compute_clipped_width_along(1.0, start, wide, cross, end),
        )
        if last > first:
            limit = first + part * (last - first)
            step = finder(curve.low, curve.high, start, wide, cross, end, limit)
            value = (
                (1.0 - step) * curve.low
                + step * curve.high
                + sign * compute_clipped_width_along(step, start, wide, cross, end)
            )
            assert value == pytest.approx(limit, abs=1e-9 * (abs(first) + abs(last) + wide + end))


@pytest.mark.long
@settings(max_examples=300)
@given(seeds, shares)
def test_the_pessimistic_bound_meets_its_limit_where_it_first_crosses(seed: int, share: float) -> None:
    curve = Curve(seed)
    start, end = curve.bound(0.0, 1.0), curve.bound(1.0, 1.0)
    assume(end > start)
    limit = start + share * (end - start)
    step = curve.crossing(find_first_crossing, limit)
    size = abs(start) + abs(end) + curve.start_width + curve.end_width
    assert 0.0 <= step <= 1.0
    assert curve.bound(step, 1.0) == pytest.approx(limit, abs=1e-9 * size)


@settings(max_examples=300)
@given(seeds, shares)
def test_the_optimistic_bound_meets_its_limit_where_it_last_crosses(seed: int, share: float) -> None:
    curve = Curve(seed)
    start, end = curve.bound(0.0, -1.0), curve.bound(1.0, -1.0)
    assume(end > start)
    limit = start + share * (end - start)
    step = curve.crossing(find_last_crossing, limit)
    size = abs(start) + abs(end) + curve.start_width + curve.end_width
    assert curve.bound(step, -1.0) == pytest.approx(limit, abs=1e-9 * size)
    assert all(curve.bound(s, -1.0) >= limit - 1e-9 * size for s in np.linspace(step, 1.0, 20))


@pytest.mark.parametrize("baseline", BASELINES)
def test_the_pessimistic_cost_of_the_safe_action_is_its_known_cost_to_the_bit(baseline: str) -> None:
    problem = random_problem(2, baseline, 3)
    bounds, known = workspace_of(problem).bounds, problem.settings["safe_action"].cost
    if known is None:
        assert (bounds[1:, HALF, -1] > 0.0).all()
    else:
        assert bounds[1:, HALF, -1].tolist() == [0.0] * 3
        assert bounds[1:, CENTRE, -1].tolist() == list(known)


class Guarded:
    """Gives arrays that stand inside larger ones, whose ends show whether anybody wrote beside them."""

    def __init__(self) -> None:
        self.given: list[tuple[Floats, Floats]] = []

    def empty(self, size: int) -> Floats:
        total = np.full(size + 2000, 0.123)
        self.given.append((total, total[1000 : 1000 + size]))
        return self.given[-1][1]

    def copy(self, array: Floats) -> Floats:
        inner = self.empty(array.size)
        inner[:] = array
        return inner

    def are_intact(self) -> bool:
        return all(
            (total[:1000] == 0.123).all() and (total[1000 + own.size :] == 0.123).all() for total, own in self.given
        )


@pytest.mark.long
@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("kind", [LCLUCB, SafeLTS, OPLB, SafePosteriorSampling])
@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize("baseline", BASELINES)
def test_kernels_write_only_into_their_own_arrays(
    baseline: str, dimension: int, kind: Any, cached: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In arrays of the sizes that a policy gives them."""
    problem = random_problem(1, baseline, constraints=3, dimension=dimension, rays=129)
    policy, state = problem.ready(kind)
    guarded = Guarded()
    with monkeypatch.context() as patched:
        patched.setattr(np, "empty", guarded.empty)
        if cached:
            state = state._replace(memory=policy.rounds.cache(state.memory, problem.targets))
        state = state._replace(memory=guarded.copy(state.memory))
        policy.rounds.play(state.memory, problem.targets, ALL, RandomKey(1, 2, 3))
        policy.learn_in_place(state, PlayedAction(problem.targets[0], 0, 1.0), np.ones(4))
    assert len(guarded.given) == (6 if cached else 4)
    assert guarded.are_intact()
