"""From a policy and a world to the arrays that the one loop plays with, and a run of it."""

from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.answer import answer_size
from stagewise.kernels.audit import HOPELESS, MISSED, UNKNOWN
from stagewise.kernels.compile import Flags, Floats, Ints, compiled_at_once, named
from stagewise.kernels.layout import CAPACITY, FOLLOWED, LIMITS, PARTS
from stagewise.kernels.loop.play import LoopForm, World, judging_size, play_for
from stagewise.kernels.loop.round import REWARD, STAY, Form, scratch_size
from stagewise.kernels.trace import Trace
from stagewise.policies.arrays import aligned, sized
from stagewise.policies.policy import State
from stagewise.problem.errors import InvalidProblem
from stagewise.records.draw import Draw
from stagewise.simulation.judge import Judge
from stagewise.worlds.own import answering

ANSWER_SIZE, SCRATCH_SIZE, JUDGING_SIZE = named(answer_size), named(scratch_size), named(judging_size)


def form_of(policy: Any, world: Any) -> Form | None:
    """Return how the loop plays a policy in a world, if it does: no solver, no subclass, no convex set."""
    place: Any = answering(world)
    ours = type(policy).__module__.startswith("stagewise.") and place.known
    if not ours or not place.actions.is_list or not hasattr(policy, "form_for"):
        return None
    form: Form | None = policy.form_for(place.actions)
    points = form is not None and form.points
    return None if points and not place.knows_points else form


def plays(policy: Any, world: Any) -> bool:
    """Say whether the compiled loop knows this policy in this world."""
    return form_of(policy, world) is not None


class LoopInputs(NamedTuple):
    """A policy and its world, as the loop reads them; all arrays but the truth's are a run's own."""

    form: Form
    loop: LoopForm
    features: Floats  # (K, d); filled anew every round where fresh
    eligible: Flags  # empty: all are
    layout: Ints
    settings: Floats
    memory: Floats
    world: World
    answer: int  # lengths of the arrays that a run works with
    scratch: int
    judging: int


def inputs_for(policy: Any, judge: Judge, audited: bool, learned: State | None = None) -> LoopInputs:
    """Return a policy and its world as arrays, or say why the loop cannot play them; `learned`: before."""
    told: Any = judge.world
    form = form_of(policy, told)
    if form is None:
        by = f" with method {policy.method!r}" if hasattr(policy, "method") else ""
        raise InvalidProblem(
            f"backend='cpu' cannot play {type(policy).__name__}{by} in a {told.called} like this; "
            "backend='python' plays anything with start, decide and learn"
        )
    fresh, count, d = told.actions.fresh, int(told.actions.count), int(told.actions.dimension or 0)
    features, eligible = np.zeros((count, d)), np.array(told.actions.eligible)
    if not fresh and d:
        features[:] = told.actions.features
    features.flags.writeable, eligible.flags.writeable = fresh, False  # as by hand: kernels are compiled once for both
    layout, settings = policy.arrays(d)
    if form.roving:
        layout, settings = policy.at_safe(policy.safe_named_by(told.actions.draw(Draw())))
    memory = (
        policy.played_from(told.actions.draw(Draw()), features, fresh, learned) if form.rule != STAY else np.zeros(0)
    )
    if form.cells:
        memory = policy.with_capacity_for(memory, told.plain_users.segments)
    check_outcomes(policy, told)
    m, limits, size = told.costs, int(layout[LIMITS]), max(d, int(memory[CAPACITY]) if form.space else 0)
    truths = np.zeros((1 + m, count + 1))
    truths[:, count] = judge.safe_means_in(told.actions)
    if not fresh:
        truths[:, :count] = judge.truths(told.actions)
    best = 0.0 if fresh else judge.best(told.actions)
    begun = learned is not None and learned.memory.size > 0 and learned.memory[FOLLOWED] > 0.0 and not fresh
    judged = (audited, judge.mixes, form.points, judge.limits.size > 1, fresh and told.actions.names_safe, begun)
    known = (told.noise.copy(), judge.signs.copy(), judge.limits.copy(), told.kind)
    truth = World(told.signed_parameters(judge.signs), truths, *known, best, *told.drawn)
    return LoopInputs(
        sized(form, limits, int(layout[PARTS])),
        LoopForm(told.draws, *(int(each) for each in judged)),
        features,
        eligible,
        layout,
        settings.copy() if told.actions.names_safe else settings,  # a round's own safe action is written there
        memory,
        truth,
        ANSWER_SIZE(limits, d),
        SCRATCH_SIZE(limits, count, size, not (fresh or form.roving)),
        JUDGING_SIZE(m, count),
    )


def check_outcomes(policy: Any, world: Any) -> None:
    """Refuse a world whose outcomes leave the range that a policy was promised."""
    if getattr(policy, "bounded", False) and world.outcomes == "gaussian":
        raise InvalidProblem(
            f"the world's outcomes are 'gaussian' and {type(policy).__name__} takes them to lie in [0, 1]; give `noise`"
        )


def prepare(audit: Ints, form: Form, limits: int) -> None:
    """Mark what a policy says nothing of: no interval, or no promise to hope for enough in every round."""
    learns = form.rule != STAY
    audit[MISSED + (1 + limits if learns else 0) :] = UNKNOWN
    if not learns or form.sampled == REWARD:
        audit[HOPELESS] = UNKNOWN


class Compiled:
    """A compiled run that can be continued."""

    def __init__(
        self, policy: Any, judge: Judge, trace: Trace, seed: int, run: int, learned: State | None = None
    ) -> None:
        inputs = inputs_for(policy, judge, trace.audit.size > 0, learned)
        self.inputs, self.trace, self.seed, self.run = inputs, trace, seed, run
        m = judge.world.costs
        self.own = (np.zeros(inputs.answer), aligned(inputs.scratch), np.zeros(inputs.judging))
        self.few = (np.zeros(m + 2, dtype=np.int64), np.zeros(1 + m), np.zeros(1 + m))
        if trace.audit.size:
            prepare(trace.audit, inputs.form, int(inputs.layout[LIMITS]))

    @property
    def state(self) -> State:
        """What was learned so far."""
        return State(self.inputs.memory)

    def play(self, first: int, last: int) -> None:
        """Play the rounds from `first` to `last`, counted from 0."""
        inputs = self.inputs
        told = (inputs.features, inputs.eligible, inputs.layout, inputs.settings, inputs.memory)
        where = (self.seed, self.run, first, last)
        compiled_at_once(play_for(inputs.form, inputs.loop))(
            *told, *self.own, *self.few, inputs.world, self.trace, *where
        )
