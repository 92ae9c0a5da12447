"""Runs, played round by round in Python, compiled, or all at once on a GPU, as one result."""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.engine.loop import (
    FIRST_NEAR_OPTIMAL_ROUND,
    FIRST_VIOLATION,
    INTERVAL_MISSES,
    OPTIMISM_FAILURES,
    UNKNOWN,
    VIOLATIONS,
    Trace,
    audit_round,
    audit_size,
    count_optimism_failure,
    record_round,
    running_size,
)
from stagewise.engine.random import to_signed_seed
from stagewise.engine.world_draws import LAG
from stagewise.policies.policy import PolicyState
from stagewise.problem.checks import check_integer, check_number
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.records.decision import Decision
from stagewise.records.outcome import Outcome
from stagewise.records.random_key import RandomKey
from stagewise.records.reason import FallbackReason
from stagewise.reports.guarantee import compute_bound_values
from stagewise.reports.result import Result, merge_results
from stagewise.simulation.compiled_run import CompiledRun
from stagewise.simulation.oracle import Oracle, PolicyWorlds, build_oracle

TOLERANCE = 1e-9  # relative; differences below it are arithmetic


class PythonRun:
    """A run that can be continued: any object with start, decide and learn."""

    def __init__(
        self, policy: Any, oracle: Oracle, trace: Trace, seed: int, run: int, warm_start: PolicyState | None = None
    ) -> None:
        self.policy, self.oracle, self.trace = policy, oracle, trace
        self.seed, self.run = seed, run
        self.state = policy.start() if warm_start is None else PolicyState(warm_start.memory.copy())
        self.best: float | None = None
        self.lag = 0 if oracle.world.clock is None else int(oracle.world.clock[LAG])
        self.pending = deque[tuple[Decision, Outcome]]()
        if trace.audit.size:
            trace.audit[INTERVAL_MISSES:] = UNKNOWN  # a decision does not show the intervals of every candidate
            if not getattr(policy, "is_optimistic", False):  # one of someone's own says so by `is_optimistic = True`
                trace.audit[OPTIMISM_FAILURES] = UNKNOWN

    def play(self, first: int, last: int) -> None:
        """Play the rounds from `first` to `last`, counted from 0."""
        world, oracle = self.oracle.world, self.oracle
        same = world.has_fixed_actions
        for round_ in range(first, last):
            draw = RandomKey(self.seed, self.run, round_)
            actions = world.actions_in(draw)
            if self.best is None or not same:
                self.best = oracle.best(actions)
            decision = self.policy.decide(self.state, actions, draw)
            means = oracle.signs * compute_expected_means(decision, actions, oracle, round_)
            record_round(self.trace, round_, self.best, means, oracle.limits)
            if self.trace.audit.size:
                safe = float(oracle.safe_means_in(actions)[0])
                audit_round(self.trace.audit, round_, self.best, safe, means, oracle.limits)
                if decision.reason is not FallbackReason.SAFE_ACTION_COST_UNCERTAIN:
                    count_optimism_failure(
                        self.trace.audit, self.best, decision.optimistic_reward + decision.solver_gap
                    )
            outcome = world.outcome_played(decision._position, decision.action, actions, draw)
            self.pending.append((decision, outcome))
            if len(self.pending) > self.lag:
                self.state = self.policy.learn(self.state, *self.pending.popleft())


def compute_expected_means(decision: Any, actions: Any, oracle: Oracle, round_: int) -> Floats:
    """Return the true expected reward and costs of a decision: of the action, or of the mixture it was sampled from.

    Raise if the decision is impossible: invalid probabilities, an action that does not match its index, step or
    probabilities, or one that is not offered.
    """
    try:
        if not isinstance(decision, Decision):
            raise reject("it is {decision}; it must be a Decision", decision=safe_repr(decision))
        if decision.probabilities is None:
            check_played(decision, actions, oracle)
        else:
            check_drawn(decision, check_mixture(decision.probabilities, actions, oracle), actions, oracle)
    except (ValueError, TypeError) as error:  # a StagewiseError is a ValueError, and so is a ragged array
        template = "the policy's decision in round {round} is invalid: {error}"
        raise InvalidProblem(ErrorCode.INVALID_DECISION, template, round=round_, error=error) from None
    if decision.probabilities is None:
        return oracle.world.means_played(decision._position, decision.action, actions)
    total, chances = np.zeros(oracle.signs.size), np.asarray(decision.probabilities)
    for index in np.flatnonzero(chances):
        total += chances[index] * oracle.means_at(int(index), actions)
    return total


def reject(template: str, /, **details: Any) -> InvalidProblem:
    return InvalidProblem(ErrorCode.INVALID_DECISION, template, **details)


def get_listed_action(index: int, actions: Any, oracle: Oracle) -> Any:
    """Return the action with an index; −1 and the end of the list are the safe action, which is always eligible."""
    safe, eligible = oracle.safe_in(actions), actions.eligible
    action = safe if index in (-1, actions.count) else actions.at(index)
    if action is None:
        raise reject("it refers to a safe action outside the list, and there is none")
    if 0 <= index < eligible.size and not eligible[index] and not is_equal(action, safe):
        raise reject(
            "it gives a positive probability to action {index}, which is not eligible in this round", index=index
        )
    return action


def check_mixture(probabilities: Any, actions: Any, oracle: Oracle) -> Floats:
    """Return the probabilities of the listed actions and the safe action, or raise."""
    chances: Floats = np.asarray(probabilities)
    if chances.dtype.kind not in "fiu" or chances.shape != (actions.count + 1,):
        template = (
            "it has probabilities of shape {shape} and type {dtype}; they must be "
            "{count} numbers, for the {listed} listed actions and then for the separate safe action"
        )
        raise reject(template, shape=chances.shape, dtype=chances.dtype, count=actions.count + 1, listed=actions.count)
    if not (np.all(chances >= -TOLERANCE) and abs(float(chances.sum()) - 1.0) <= TOLERANCE):  # false for NaN too
        template = "it has the probabilities {chances}; they must be nonnegative and sum to 1"
        raise reject(template, chances=safe_repr(chances.tolist()))
    for index in np.flatnonzero(chances):
        get_listed_action(int(index), actions, oracle)
    return chances


def check_drawn(decision: Decision, chances: Floats, actions: Any, oracle: Oracle) -> None:
    """Raise if the action cannot have been sampled from the mixture."""
    index = check_index(decision, actions)
    if not chances[index] > 0.0:
        template = "it has index {index}, whose probability is {chances:g}; it must be sampled from the mixture"
        raise reject(template, index=index, chances=chances[index])
    check_equal(decision.action, get_listed_action(index, actions, oracle), index)


def check_played(decision: Decision, actions: Any, oracle: Oracle) -> None:
    """Raise if the action does not match its index and step, or is outside the convex set."""
    if not actions.is_list:
        if not is_equal(decision.action, oracle.safe) and not actions.contains(decision.action):
            template = "it plays {action}, which lies outside the {kind}"
            raise reject(template, action=format_action(decision.action), kind=type(actions).__name__)
        return
    index = check_index(decision, actions)
    expected = get_listed_action(index, actions, oracle)
    if actions.between and index >= 0:
        step = check_number(decision.step_size, "its step")
        if not 0.0 <= step <= 1.0:
            raise reject("its step is {step}; a step along a ray must be between 0 and 1", step=step)
        safe = oracle.safe_in(actions)
        start = np.zeros_like(expected) if safe is None else safe
        expected = start + step * (expected - start)
    check_equal(decision.action, expected, index)


def check_index(decision: Decision, actions: Any) -> int:
    """Return the index of the played action; −1: the safe action beside the list."""
    last = actions.count - 1
    rule = f"from 0 to {last}, or None for the safe action beside the list"
    return -1 if decision.action_index is None else check_integer(decision.action_index, "its index", rule, 0, last)


def check_equal(action: Any, expected: Any, index: int) -> None:
    if not is_equal(action, expected):
        given, due = format_action(action), format_action(expected)
        template = "it plays {given}, and its index {index} and step give {due}; they must agree"
        raise reject(template, given=given, index=index, due=due)


def format_action(action: Any) -> str:
    return safe_repr(action.tolist() if isinstance(action, np.ndarray) else action)


def is_equal(one: Any, other: Any) -> bool:
    """Return whether two actions are equal up to rounding; NaN equals nothing."""
    first, second = np.asarray(one), np.asarray(other)
    if first.dtype.kind not in "fiu" or second.dtype.kind not in "fiu" or first.shape != second.shape:
        return False
    near = TOLERANCE * np.maximum(1.0, np.abs(second)) if first.ndim else 0.0
    return bool(np.all(np.abs(first - second) <= near))


CHUNK_ROUNDS = 200_000  # rounds between two looks at the keyboard
AUDIT_COUNTS = {
    "first_violation": FIRST_VIOLATION,
    "optimism_failures": OPTIMISM_FAILURES,
    "first_near_optimal_round": FIRST_NEAR_OPTIMAL_ROUND,
}


class RunSettings(NamedTuple):
    """How runs are played, for any policy and world."""

    rounds: int
    record_points: int  # points kept of each
    seed: int
    backend: str
    audit: bool
    limits: int  # how many every run has
    bound: Floats | None = None  # what a theorem allows, reckoned once where all runs have the same policy and world
    warm_start: PolicyState | None = None  # what every run has learned before

    @property
    def points(self) -> int:
        """The number of recorded points."""
        return min(self.rounds, self.record_points)


def compute_recorded_rounds(rounds: int, points: int) -> Ints:
    """Return the rounds (counted from 1) that close the intervals: evenly spaced, the last round among them."""
    count = min(rounds, points)
    return np.arange(1, count + 1, dtype=np.int64) * rounds // count


def empty_trace(ends: Ints, costs: int, audited: bool = False, runs: tuple[int, ...] = ()) -> Trace:
    """Return the record of a run that has not begun; with `runs`, of so many, on a first axis more."""
    points = (*runs, ends.size)
    return Trace(
        ends,
        np.zeros(points),
        np.zeros(points),
        np.zeros((*points, costs)),
        np.zeros(points),
        np.full((*runs, costs), -np.inf),
        np.zeros((*runs, running_size(costs))),
        np.zeros((*runs, audit_size(costs) if audited else 0), dtype=np.int64),
    )


def play_run(policy: Any, oracle: Oracle, settings: RunSettings, run: int) -> Trace:
    """Return the trace of one run; it depends only on these arguments."""
    rounds = settings.rounds
    trace = empty_trace(compute_recorded_rounds(rounds, settings.record_points), oracle.world.costs, settings.audit)
    kind = CompiledRun if settings.backend == "cpu" else PythonRun
    player = kind(policy, oracle, trace, to_signed_seed(settings.seed), run, settings.warm_start)
    for first in range(0, rounds, CHUNK_ROUNDS):
        player.play(first, min(first + CHUNK_ROUNDS, rounds))
    return trace


def play(pairs: PolicyWorlds, settings: RunSettings, runs: Sequence[int]) -> Result:
    """Play these runs; the caller completes the manifest."""
    start = time.perf_counter()
    result = play_on_device(pairs, settings, runs) if settings.backend == "cuda" else play_each(pairs, settings, runs)
    own = {} if pairs.policy is not None else {"thresholds_of_runs": result.manifest["thresholds_of_runs"]}
    return replace(result, manifest={**own, "seconds": time.perf_counter() - start})


def compile_loop(pairs: PolicyWorlds, settings: RunSettings, run: int) -> None:
    """Play one round, so that the loop is compiled once, and not in every process."""
    if settings.backend != "python":
        play(pairs, settings._replace(rounds=1, record_points=1, bound=None), [run])


def play_each(pairs: PolicyWorlds, settings: RunSettings, runs: Sequence[int]) -> Result:
    parts: list[Result] = []
    for run in runs:
        if not (parts and pairs.fixed):
            policy, world = pairs(run)
            oracle, bound = build_oracle(policy, world), compute_bound(policy, world, settings)
            m = oracle.limits.size
            if m != settings.limits:
                template = "run {run} has {m} thresholds, and run 0 has {limits}; all runs must have the same number"
                raise InvalidProblem(ErrorCode.WORLD_MISMATCH, template, run=run, m=m, limits=settings.limits)
        trace = play_run(policy, oracle, settings, run)
        row: list[Any] = [values[None] for values in trace[1:]]
        parts.append(build_result(oracle, bound, Trace(trace.ends, *row), np.array([run], dtype=np.int64)))
    return merge_results(parts)


def play_on_device(pairs: PolicyWorlds, settings: RunSettings, runs: Sequence[int]) -> Result:
    """Play all runs on a GPU; they share one policy and one world."""
    from stagewise.simulation.gpu import play_batches as gpu

    if not pairs.fixed:
        text = "backend is 'cuda', which plays all runs in one world, and here each run has its own; use backend='cpu'"
        raise InvalidProblem(ErrorCode.UNSUPPORTED_BACKEND, text)
    policy, world = pairs(0)
    oracle, numbers = build_oracle(policy, world), np.array(runs, dtype=np.int64)
    how = (settings.rounds, settings.record_points, to_signed_seed(settings.seed), numbers, settings.audit)
    return build_result(oracle, compute_bound(policy, world, settings), gpu.play(policy, oracle, *how), numbers)


def compute_bound(policy: Any, world: Any, settings: RunSettings) -> Floats | None:
    """Return the regret bound of a theorem at the recorded rounds; None without an audit."""
    if not settings.audit or settings.bound is not None:
        return settings.bound
    return compute_bound_values(policy, world, compute_recorded_rounds(settings.rounds, settings.record_points))


def build_result(oracle: Oracle, bound: Floats | None, rows: Trace, runs: Ints) -> Result:
    """Return the traces of runs as a result, in the user's direction."""
    signs, limits = oracle.signs[1:], oracle.thresholds
    audit = (
        {
            **{name: rows.audit[:, index].copy() for name, index in AUDIT_COUNTS.items()},
            "missed": rows.audit[:, INTERVAL_MISSES:].copy(),
            "margin": oracle.limits - rows.largest[:, : oracle.limits.size],
            "bound": np.broadcast_to(bound, rows.regret.shape),
        }
        if bound is not None
        else None
    )
    own = dict(zip(limits.names, limits.values.tolist(), strict=True))
    return Result(
        rounds=rows.ends,
        regret=rows.regret,
        reward=rows.reward,
        cost=rows.cost * signs,
        max_cost=rows.largest * signs,
        violations=rows.running[:, VIOLATIONS].astype(np.int64),
        optimum=rows.best,
        runs=runs,
        manifest={"thresholds_of_runs": [own] * len(runs)},
        audit=audit,
        safe=np.tile(oracle.safe_on_average(), (len(runs), 1)),
    )
