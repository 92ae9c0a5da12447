"""Compiled runs: a policy and a world as arrays, and the loop that plays them."""

from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Flags, Floats, Ints, as_python, compile_eagerly
from stagewise.engine.layout import CACHED, CAPACITY, LIMITS
from stagewise.engine.loop import (
    INTERVAL_MISSES,
    OPTIMISM_FAILURES,
    UNKNOWN,
    LoopSpec,
    MovingWorld,
    Trace,
    World,
    build_loop,
    optimum_work_size,
)
from stagewise.engine.model import REWARD, RoundSpec
from stagewise.engine.workspace import answer_size, scratch_size
from stagewise.engine.world_draws import LAG
from stagewise.policies.policy import PolicyState
from stagewise.policies.rounds import allocate_aligned
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.records.random_key import RandomKey
from stagewise.simulation.oracle import Oracle
from stagewise.worlds.world import as_world

ANSWER_SIZE, SCRATCH_SIZE, JUDGING_SIZE = as_python(answer_size), as_python(scratch_size), as_python(optimum_work_size)


def get_form(policy: Any, world: Any) -> RoundSpec | None:
    """Return the loop's specification; None for solvers, subclasses and convex sets, which it cannot play."""
    adapted: Any = as_world(world)
    ours = type(policy).__module__.startswith("stagewise.") and adapted.is_builtin
    if not ours or not adapted.actions.is_list or not hasattr(policy, "get_round_spec"):
        return None
    form: RoundSpec | None = policy.get_round_spec(adapted.actions)
    points = form is not None and form.points
    return None if points and not adapted.has_linear_means else form


def can_play(policy: Any, world: Any) -> bool:
    return get_form(policy, world) is not None


class LoopInputs(NamedTuple):
    """A policy and its world as arrays; all but the world's belong to one run."""

    round_spec: RoundSpec
    loop: LoopSpec
    features: Floats  # (K, d); filled anew every round where fresh
    eligible: Flags  # empty: all are
    layout: Ints
    settings: Floats
    memory: Floats
    world: World | MovingWorld
    answer: int  # lengths of the arrays that a run works with
    scratch: int
    judging: int


def build_inputs(policy: Any, oracle: Oracle, audited: bool, warm_start: PolicyState | None = None) -> LoopInputs:
    """Return a policy and its world as arrays, or raise if the loop cannot play them."""
    world: Any = oracle.world
    form = get_form(policy, world)
    if form is None:
        by = f" with method {policy.method!r}" if hasattr(policy, "method") else ""
        template = (
            "backend='cpu' cannot play {name}{by} in a {type_name} like this; use backend='python', "
            "which plays any policy"
        )
        data = {"name": type(policy).__name__, "by": by, "type_name": world.type_name}
        raise InvalidProblem(ErrorCode.UNSUPPORTED_BACKEND, template, **data)
    fresh, count, d = world.actions.fresh, int(world.actions.count), int(world.actions.dimension or 0)
    features, eligible = np.zeros((count, d)), np.array(world.actions.eligible)
    if not fresh and d:
        features[:] = world.actions.features
    features.flags.writeable, eligible.flags.writeable = fresh, False  # as by hand: kernels are compiled once for both
    layout, settings = policy.arrays(d)
    if form.per_round_safe:
        layout, settings = policy.get_round_arrays(policy.get_round_safe_action(world.actions.draw(RandomKey())))
    memory = (
        policy.build_run_memory(world.actions.draw(RandomKey()), features, fresh, warm_start)
        if form.rule.choose is not None
        else np.zeros(0)
    )
    if form.counts_capacity_in("segments"):
        memory = policy.rounds.reserve(memory, "segments", world.plain_users.segments)
    check_outcomes(policy, world)
    m, limits = world.costs, int(layout[LIMITS])
    size = max(d, int(memory[CAPACITY])) if form.counts_capacity_in("points") else d
    truths = np.zeros((1 + m, count + 1))
    truths[:, count] = oracle.safe_means_in(world.actions)
    if not fresh:
        truths[:, :count] = oracle.truths(world.actions)
    best = 0.0 if fresh else oracle.best(world.actions)
    has_cached = warm_start is not None and warm_start.memory.size > 0 and warm_start.memory[CACHED] > 0.0 and not fresh
    flags: tuple[Any, ...] = (audited, oracle.mixes, form.points, oracle.limits.size > 1)
    flags = (*flags, fresh and world.actions.names_safe, has_cached)
    known = (world.noise.copy(), oracle.signs.copy(), oracle.limits.copy(), world.kind)
    truth: World | MovingWorld = World(
        world.signed_parameters(oracle.signs), truths, *known, best, *world.draw_parameters
    )
    if world.clock is not None:
        pending = np.zeros((int(world.clock[LAG]), d + 1 + m + 2))
        truth = MovingWorld(*truth[:9], world.clock.copy(), world.move_rows.copy(), world.move_values.copy(), pending)
        flags = (*flags, True, world.actions.timed, len(pending) > 0)
    return LoopInputs(
        form,
        LoopSpec(world.draw_kind, *(int(each) for each in flags)),
        features,
        eligible,
        layout,
        settings.copy() if world.actions.names_safe else settings,  # a round's own safe action is written there
        memory,
        truth,
        ANSWER_SIZE(limits, d),
        SCRATCH_SIZE(limits, count, size, not (fresh or form.per_round_safe or form.counts_capacity_in("rows"))),
        JUDGING_SIZE(m, count),
    )


def check_outcomes(policy: Any, world: Any) -> None:
    """Raise if outcomes can leave the range that the policy requires."""
    if getattr(policy, "requires_unit_range", False) and world.outcomes == "gaussian":
        raise InvalidProblem(
            ErrorCode.WORLD_MISMATCH,
            "the world's outcomes are 'gaussian', and {name} assumes outcomes in [0, 1]; give `noise` to the policy",
            name=type(policy).__name__,
        )


def mark_unknown(audit: Ints, round_spec: RoundSpec, limits: int) -> None:
    """Mark the audit counts that a policy does not have: no intervals, or no guarantee of optimism."""
    learns = round_spec.rule.choose is not None
    audit[INTERVAL_MISSES + (1 + limits if learns else 0) :] = UNKNOWN
    if not learns or round_spec.rule.samples == REWARD:
        audit[OPTIMISM_FAILURES] = UNKNOWN


class CompiledRun:
    """A compiled run that can be continued."""

    def __init__(
        self, policy: Any, oracle: Oracle, trace: Trace, seed: int, run: int, warm_start: PolicyState | None = None
    ) -> None:
        inputs = build_inputs(policy, oracle, trace.audit.size > 0, warm_start)
        self.policy, self.inputs, self.trace, self.seed, self.run = policy, inputs, trace, seed, run
        m = oracle.world.costs
        self.own = (np.zeros(inputs.answer), allocate_aligned(inputs.scratch), np.zeros(inputs.judging))
        self.few = (np.zeros(m + 2, dtype=np.int64), np.zeros(1 + m), np.zeros(1 + m))
        if trace.audit.size:
            mark_unknown(trace.audit, inputs.round_spec, int(inputs.layout[LIMITS]))

    @property
    def state(self) -> PolicyState:
        return PolicyState(self.inputs.memory)

    def play(self, first: int, last: int) -> None:
        """Play the rounds from `first` to `last`, counted from 0."""
        if self.inputs.round_spec.counts_capacity_in("rows"):
            memory = self.policy.rounds.reserve(self.inputs.memory, "rows", last - first)
            self.inputs = self.inputs._replace(memory=memory)
        inputs = self.inputs
        arrays = (inputs.features, inputs.eligible, inputs.layout, inputs.settings, inputs.memory)
        position = (self.seed, self.run, first, last)
        compile_eagerly(build_loop(inputs.round_spec, inputs.loop))(
            *arrays, *self.own, *self.few, inputs.world, self.trace, *position
        )
