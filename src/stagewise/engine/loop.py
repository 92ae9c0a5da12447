"""The simulation loop: any model with any rule in any world, round after round, and the record of a run.

Record of a run: sums over intervals, and quantities that need every round.

Audit of a run against the truth: interval misses, violations and optimism failures.

An audit is an integer array (4 + m,): the first round with a cost above its threshold (counted from 1; 0: none), the
number of rounds whose optimistic reward was below the optimum, the first near-optimal round (0: none), and for the
reward and every cost the number of rounds in which an interval missed the true mean. −1: not applicable.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from stagewise.engine.compile import Flags, Floats, Ints, factory, kernel
from stagewise.engine.layout import (
    DIRECTIONAL,
    ELSEWHERE,
    FIRST_THRESHOLD,
    LIMITS,
    SAFE_INDEX,
    build_layout_reader,
    get_safe_action,
)
from stagewise.engine.mixture_program import (
    compute_mixture_mean,
    compute_optimal_mixture_value,
    compute_optimal_value_on_rays,
    fill_mixture_means,
    solve_mixture,
)
from stagewise.engine.model import RoundSpec
from stagewise.engine.round import build_round
from stagewise.engine.workspace import (
    CENTRE,
    COSTS,
    HALF,
    OPTIMISTIC_REWARD,
    OPTIMISTIC_REWARDS,
    SAFE_ACTION_COST_UNCERTAIN,
    STEP,
    get_decision_views,
    get_workspace,
    has_switch,
    per_limit_size,
)
from stagewise.engine.world_draws import (
    compute_time,
    fill_crossed_features,
    fill_directions,
    fill_logged_features,
    fill_logged_means,
    fill_means,
    fill_plain_features,
    fill_round_safe_action,
    fill_signed_outcome,
    fill_user_means,
    move_means,
)

INTERVAL, REGRET, VIOLATIONS = 0, 1, 2  # in `running`: progress so far,
BEST_SUM, REWARD_SUM, COST_SUMS = 3, 4, 5  # and sums over the current interval: optimum, reward, every cost


class Trace(NamedTuple):
    """The record of one run. The rounds 1 to T are divided into R intervals, each ending at a recorded round."""

    ends: Ints  # (R,) the recorded rounds
    regret: Floats  # (R,) up to and including the recorded round
    reward: Floats  # (R,) mean of the true expected rewards of the interval
    cost: Floats  # (R, m)
    best: Floats  # (R,) mean of the optimum
    largest: Floats  # (m,) largest true expected cost of all rounds
    running: Floats  # (running_size,) state while the run goes on, from INTERVAL to COST_SUMS
    audit: Ints  # (4 + m,) see `audit.py`; empty: no audit


def running_size(m: int) -> int:
    """Return the length of `Trace.running` for m costs."""
    return COST_SUMS + m


@kernel
def record_round(trace: Trace, round_: int, best: float, means: Floats, thresholds: Floats) -> None:
    """Record one round (counted from 0): the optimum, and the true expected reward and costs (1 + m,)."""
    running, m = trace.running, trace.largest.size
    running[REGRET] += best - means[0]
    running[BEST_SUM] += best
    running[REWARD_SUM] += means[0]
    violated = 0.0
    for j in range(m):
        running[COST_SUMS + j] += means[1 + j]
        trace.largest[j] = max(trace.largest[j], means[1 + j])
        if j < thresholds.size and not means[1 + j] <= thresholds[j]:  # NaN keeps no limit
            violated = 1.0
    running[VIOLATIONS] += violated
    interval = int(running[INTERVAL])
    if round_ + 1 == trace.ends[interval]:
        first = trace.ends[interval - 1] if interval > 0 else 0
        length = float(round_ + 1 - first)
        trace.regret[interval] = running[REGRET]
        trace.best[interval] = running[BEST_SUM] / length
        trace.reward[interval] = running[REWARD_SUM] / length
        for j in range(m):
            trace.cost[interval, j] = running[COST_SUMS + j] / length
        running[BEST_SUM:] = 0.0
        running[INTERVAL] += 1.0


FIRST_VIOLATION, OPTIMISM_FAILURES, FIRST_NEAR_OPTIMAL_ROUND, INTERVAL_MISSES = 0, 1, 2, 3
UNKNOWN = -1
NEAR_OPTIMAL_SHARE = 0.9  # share of the optimum's gain over the safe action
ROUNDING = 1e-9  # relative; differences below it are arithmetic


def audit_size(m: int) -> int:
    return 4 + m


@kernel
def audit_round(audit: Ints, round_: int, best: float, safe: float, means: Floats, thresholds: Floats) -> None:
    """Record one round (counted from 0) with its true expected reward and costs (1 + m,).

    A round is near-optimal when  reward − r₀ ≥ 0.9 (optimum − r₀),  if the optimum is better than the safe action.
    """
    if audit[FIRST_VIOLATION] == 0:
        for j in range(thresholds.size):
            if not means[1 + j] <= thresholds[j]:  # NaN keeps no limit
                audit[FIRST_VIOLATION] = round_ + 1
    if audit[FIRST_NEAR_OPTIMAL_ROUND] == 0 and best > safe and means[0] - safe >= NEAR_OPTIMAL_SHARE * (best - safe):
        audit[FIRST_NEAR_OPTIMAL_ROUND] = round_ + 1


@kernel
def count_optimism_failure(audit: Ints, best: float, optimistic_reward: float) -> None:
    """Count a round whose optimistic reward was below the optimum."""
    if audit[OPTIMISM_FAILURES] != UNKNOWN and not optimistic_reward >= best - ROUNDING * max(1.0, abs(best)):
        audit[OPTIMISM_FAILURES] += 1


@kernel
def count_interval_misses(audit: Ints, bounds: Floats, truths: Floats, pulls: Floats) -> None:
    """Count, for every signal of the policy, the rounds in which an interval missed the true mean of a candidate.

    For arms, only arms with pulls count: an unpulled arm has its a-priori interval. An empty `pulls` counts all.
    """
    for signal in range(bounds.shape[0]):
        centre, half, true, found = bounds[signal, CENTRE], bounds[signal, HALF], truths[signal], False
        for candidate in range(true.size - 1):
            allowed = half[candidate] + ROUNDING * max(1.0, abs(true[candidate]))
            missed = not abs(centre[candidate] - true[candidate]) <= allowed
            found |= missed and (pulls.size == 0 or pulls[candidate] > 0.0)
        if found:
            audit[INTERVAL_MISSES + signal] += 1


DIRECTIONS, CROSSED, PLAIN, LOGGED = 1, 2, 3, 4  # what every round draws: actions, or a user in one of three forms


class World(NamedTuple):
    """The true parameters of a run, known only to the loop; costs are signed so that less is better."""

    parameters: Floats  # (1 + m, d) of linear signals; (1 + m, n K) the means for logged users; else empty
    truths: Floats  # (1 + m, K + 1) the mean of every candidate and, last, of the safe action
    noise: Floats  # (1 + m,) scale of each signal's noise
    signs: Floats  # (1 + m,) −1 for a cost whose threshold is from below
    thresholds: Floats  # (m,); none: nothing limits the optimum
    outcomes: int  # how outcomes are drawn (see `world_draws`)
    best: float  # the optimum, where the actions are always the same
    safe: int  # index of the safe action where every round has its own; −1: a separate point
    drawn: Floats  # distance of that point from 0, or (G,) cumulative shares of segments, or logged users (n w,)


class MovingWorld(NamedTuple):
    """The true parameters of a run whose means move (see `engine.world_draws`): those of a `World`, and more."""

    parameters: Floats
    truths: Floats
    noise: Floats
    signs: Floats
    thresholds: Floats
    outcomes: int
    best: float
    safe: int
    drawn: Floats
    clock: Floats
    moves: Floats  # (n, 8)
    values: Floats
    pending: Floats  # (lag, d + 1 + m + 2) outcomes that are not learned yet: action, values, code, step


class LoopSpec(NamedTuple):
    """What a loop is compiled for, besides the round."""

    fresh: int  # every round has its own actions: DIRECTIONS, CROSSED, PLAIN or LOGGED; 0: they are cached
    audited: int  # 1: the trace has an audit
    blended: int  # 1: regret is measured against the best mixture
    points: int  # 1: points between the candidates are played, so their means are computed from features
    limited: int  # 1: more than one threshold limits the optimum
    moving: int = 0  # 1: every round has its own safe action
    begun: int = 0  # 1: the initial memory has already been offered these actions
    drifting: int = 0  # 1: the world is a MovingWorld
    timed: int = 0  # 1: the last feature is the time
    late: int = 0  # 1: outcomes are learned late


@kernel
def optimum_work_size(m: int, count: int) -> int:
    """Return the length of the scratch array for the optimum of a round."""
    return (3 + 2 * m) * (count + 1) + per_limit_size(m) + 2 * (m + 2)


@factory
def build_loop(spec: RoundSpec, loop_spec: LoopSpec) -> Callable[..., None]:
    """Return the loop for one form of round and one kind of world."""
    mixes, always_safe, several = int(spec.mixes), int(spec.rule.choose is None), int(spec.mixes and spec.limits > 1)
    kernels: Any = (None, None, None, None, build_layout_reader(0, 0)) if always_safe else build_round(spec)[2:]
    compute_bounds, choose, learn_at, read_blocks, read_layout = kernels
    sampled, per_round_safe = spec.rule.samples, int(spec.per_round_safe)
    counts: Any = None if always_safe else spec.models[0].counts
    counted = int(counts is not None)
    fresh, audited, blended, points, limited, moving, begun, drifting, timed, late = loop_spec
    directions, crossed, plain_features = int(fresh == DIRECTIONS), int(fresh == CROSSED), int(fresh == PLAIN)
    logged, uncached_round = int(fresh == LOGGED), -1 if begun else 0  # the round whose actions are not cached yet
    fresh, moving = int(fresh > 0), int(moving > 0 and fresh > 0)
    uncached = int(fresh > 0 or per_round_safe > 0)  # what is offered is not cached
    blended, limited = blended and fresh, limited and blended and fresh  # else the optimum is given

    @kernel
    def optimum(world: Any, optimum_work: Floats, mixture: Ints) -> float:
        """Return the largest expected reward that this round's actions allow."""
        if blended:
            m, row = world.thresholds.size, world.truths.shape[1]
            end, per_limit = (3 + 2 * m) * row, (3 + 2 * m) * row + per_limit_size(m)
            rule, shares = optimum_work[:end].reshape(3 + 2 * m, row), optimum_work[per_limit : per_limit + m + 2]
            if limited:
                return compute_optimal_mixture_value(
                    world.truths, world.thresholds, rule, optimum_work[end + m : per_limit], shares, mixture
                )
            return compute_optimal_mixture_value(world.truths, world.thresholds, rule, None, shares, mixture)
        return compute_optimal_value_on_rays(world.truths, world.thresholds)

    @kernel
    def draw(features: Floats, world: Any, means: Floats, seed: int, run: int, t: int) -> None:
        """Write the actions of a round and the means of all."""
        count, segment = features.shape[0], 0
        if directions:
            fill_directions(features, seed, run, t)
        if crossed:
            segment = fill_crossed_features(features, world.drawn, seed, run, t)
        if plain_features:
            segment = fill_plain_features(features, world.drawn, seed, run, t)
        if logged:
            fill_logged_means(world.parameters, fill_logged_features(features, world.drawn, seed, run, t), world.truths)
        else:
            for candidate in range(count):
                if directions:
                    fill_means(world.parameters, features[candidate], means)
                else:
                    width = world.parameters.shape[1] // count
                    user = features[0, 1:] if plain_features else features[0]
                    fill_user_means(world.parameters, candidate, width, world.drawn.size, user, segment, means)
                for signal in range(means.size):
                    world.truths[signal, candidate] = means[signal]

    @kernel
    def draw_round(features: Floats, safe: Floats, world: Any, means: Floats, seed: int, run: int, t: int) -> None:
        """Write the actions of a round, the safe action if the round has its own, and the means of all."""
        count = features.shape[0]
        if timed:
            draw(features[:, :-1], world, means, seed, run, t)
            for candidate in range(count):
                features[candidate, features.shape[1] - 1] = compute_time(world.clock, t)
        else:
            draw(features, world, means, seed, run, t)
        if drifting:
            move_means(world.moves, world.values, world.signs, compute_time(world.clock, t), world.truths)
        if moving:
            if directions:
                fill_round_safe_action(safe, features.size, world.drawn[0], seed, run, t)
                fill_means(world.parameters, safe, means)
                for signal in range(means.size):
                    world.truths[signal, count] = means[signal]
            else:
                for i in range(safe.size):
                    safe[i] = features[world.safe, i]
                for signal in range(means.size):
                    world.truths[signal, count] = world.truths[signal, world.safe]

    @kernel
    def play(
        features: Floats, eligible: Flags, layout: Ints, settings: Floats, memory: Floats, answer: Floats,
        scratch: Floats, optimum_work: Floats, mixture: Ints, means: Floats, values: Floats, world: Any, trace: Trace,
        seed: int, run: int, first: int, last: int,
    ) -> None:  # fmt: skip
        """Play the rounds from `first` to `last`, counted from 0."""
        fixed = read_layout(layout)
        workspace, count, best = get_workspace(fixed, features.shape[0], scratch), features.shape[0], world.best
        bounds, rule, per_limit, work = workspace.bounds, workspace.rule, workspace.per_limit, workspace.work
        views = get_decision_views(fixed, answer)
        action, shares, indices = views.action, views.shares, views.places
        safe_index = fixed[SAFE_INDEX] if fixed[SAFE_INDEX] >= 0 else count
        safe = get_safe_action(fixed, settings).features
        code = -1
        if not always_safe:
            blocks = read_blocks(fixed, memory)
        for t in range(first, last):
            if fresh:
                draw_round(features, safe, world, means, seed, run, t)
                best = optimum(world, optimum_work, mixture)
            if not always_safe:
                contradiction = compute_bounds(features, not uncached, blocks, fixed, settings, memory, bounds, work)
                code = choose(
                    features, not uncached, eligible, contradiction, blocks, fixed, settings, memory, bounds, rule,
                    per_limit, work, answer, seed, run, t,
                )  # fmt: skip
            index = code if code >= 0 else safe_index
            if points:
                fill_means(world.parameters, action, means)
            else:
                for signal in range(means.size):
                    means[signal] = world.truths[signal, index]
            if mixes:
                fill_mixture_means(world.truths, safe_index, shares, indices, values)
                record_round(trace, t, best, values, world.thresholds)
            else:
                record_round(trace, t, best, means, world.thresholds)
            if audited:
                audit_round(trace.audit, t, best, world.truths[0, count], values if mixes else means, world.thresholds)
                if not always_safe:
                    if code != -SAFE_ACTION_COST_UNCERTAIN:
                        optimistic_reward = answer[OPTIMISTIC_REWARD]
                        if mixes and has_switch(fixed, DIRECTIONAL):  # the optimistic value before mixing back
                            m = fixed[LIMITS]
                            limits = settings[FIRST_THRESHOLD + m : FIRST_THRESHOLD + 2 * m]
                            if several:
                                solve_mixture(rule, COSTS + m, limits, per_limit[m:], shares, indices)
                            else:
                                solve_mixture(rule, COSTS + m, limits, None, shares, indices)
                            optimistic_reward = compute_mixture_mean(rule[OPTIMISTIC_REWARDS], shares, indices)
                        count_optimism_failure(trace.audit, best, optimistic_reward)
                    if sampled:  # sampling has overwritten the bounds
                        compute_bounds(features, not uncached, blocks, fixed, settings, memory, bounds, work)
                    if counted:
                        pulls = counts(blocks[0][0], memory).pulls
                        count_interval_misses(trace.audit, bounds, world.truths, pulls)
                    else:
                        count_interval_misses(trace.audit, bounds, world.truths, per_limit[:0])
            if not always_safe:
                fill_signed_outcome(world.outcomes, means, world.noise, world.signs, seed, run, t, values)
                is_uncached = bool(uncached) or t == uncached_round  # the first offer is not cached yet
                cached_index = ELSEWHERE if is_uncached else max(code, -1)
                if late:
                    width, slot = features.shape[1], t % world.pending.shape[0]
                    if t >= world.pending.shape[0]:
                        row = world.pending[slot]
                        learn_at(
                            blocks, row[:width], int(row[row.size - 2]), ELSEWHERE, row[row.size - 1], not uncached,
                            row[width : row.size - 2], fixed, settings, memory, work,
                        )  # fmt: skip
                    for i in range(width):
                        world.pending[slot, i] = action[i]
                    for i in range(values.size):
                        world.pending[slot, width + i] = values[i]
                    world.pending[slot, width + values.size] = code
                    world.pending[slot, width + values.size + 1] = answer[STEP]
                else:
                    learn_at(
                        blocks, action, code, cached_index, answer[STEP], not uncached, values, fixed, settings, memory,
                        work,
                    )  # fmt: skip

    return play
