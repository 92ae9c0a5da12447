"""What all policies on compiled kernels share: the verbs on settings and memory that are arrays.

A policy says which models its signals have (`parts`) and which rule chooses (`form`); the rest follows.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from stagewise.kernels.bounds import Workspace, fill_estimates, workspace_in
from stagewise.kernels.compile import Flags, Floats, Ints, named, rows_at_once
from stagewise.kernels.layout import CAPACITY, FOLLOWED, NEVER, PARTS, known_actions
from stagewise.kernels.loop.log import log_for
from stagewise.kernels.loop.memory import memory_kernels_for
from stagewise.kernels.loop.round import Form
from stagewise.kernels.promise import DISPUTED
from stagewise.kernels.signals.ridge import ELSEWHERE
from stagewise.policies.arrays import MEMORY_SIZE, Needs, aligned, fitting_memory, needed, sized, starting
from stagewise.policies.contradictions import cause_of
from stagewise.policies.learning import Learning
from stagewise.policies.policy import Played, State
from stagewise.problem.checks import MANY
from stagewise.problem.errors import InvalidProblem
from stagewise.problem.round_safe import SafeOfRound
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw

NEW = tuple.__new__  # of named tuples: their own takes twice as long, and every round makes some
STRAYED = (
    "what was learned before was learned with other actions than this world's, which a compiled run cannot follow; "
    "backend='python' plays it"
)
FEW = 512  # candidates: what is believed of more is not kept beside a decision
WORKSPACE_IN, KNOWN_IN, FILL_ESTIMATES = named(workspace_in), named(known_actions), named(fill_estimates)


class Chosen(NamedTuple):
    """What a kernel made of a round."""

    code: int  # the candidate played, or minus the reason for the safe action
    answer: Floats
    scratch: Floats
    layout: Ints
    settings: Floats
    features: Floats  # (K, d)
    eligible: Flags

    @property
    def workspace(self) -> Workspace:
        """What was believed of the candidates, and what the rule made of it."""
        return WORKSPACE_IN(self.layout, len(self.features), self.scratch)

    @property
    def estimates(self) -> Floats:
        """What every signal is estimated at for every candidate (1 + m, K + 1), the safe action last; signed."""
        bounds = self.workspace.bounds
        found = np.empty((bounds.shape[0], bounds.shape[2]))
        FILL_ESTIMATES(self.layout, bounds, found)
        return found


class CompiledPolicy(Learning):
    """A policy whose rounds are kernels."""

    form: ClassVar[Form]
    layout: Ints
    settings: Floats
    thresholds: Thresholds
    has_parts: ClassVar[bool] = True

    def arrays(self, dimension: int) -> tuple[Ints, Floats]:
        """Return layout and settings; a policy that knows no dimension beforehand has them for each."""
        return self.layout, self.settings

    def form_for(self, actions: Any) -> Form | None:
        """Return how compiled loops play this policy on listed actions; None: they do not."""
        return self.form

    def played_from(self, offered: Any, features: Floats, fresh: bool, learned: State | None = None) -> Floats:
        """Return the memory that a compiled run begins with: it follows actions that are always the same."""
        self.safe_named_by(self.fitting(offered))  # refuse here what play by hand refuses
        state = self.begins(learned)
        if not fresh:
            state = self.following(state, features)
            if state.memory.size and state.memory[FOLLOWED] == NEVER and not self.form.roving:
                raise InvalidProblem(STRAYED)
        return self.remembered(state, features.shape[1])[2]

    def begins(self, learned: State | None) -> State:
        """Return an empty memory, or a copy of one that has learned."""
        if learned is None:
            return self.start()
        memory = aligned(learned.memory.size)
        np.copyto(memory, learned.memory)
        return State(memory)

    def fitting(self, listed: Any) -> Any:
        """Return the action set if this policy can choose from it."""
        return listed

    @property
    def first_capacity(self) -> int:
        """Basis points that a new memory has room for."""
        return 0

    def start(self) -> State:
        return State(self.begun(self.layout, self.settings))

    def begun(self, layout: Ints, settings: Floats) -> Floats:
        """Return an empty memory."""
        memory = aligned(MEMORY_SIZE(layout, 0, self.first_capacity))
        starting(self.form)(layout, settings, self.first_capacity, memory, np.empty(0))
        if self.form.roving:
            memory[FOLLOWED] = NEVER
        return memory

    @cached_property
    def counted(self) -> tuple[int, int]:
        """How many limits and models there are."""
        return self.thresholds.values.size, int(self.arrays(2)[0][PARTS])

    def coordinates(self, dimension: int, memory: Floats) -> int:
        """Return how many coordinates a part learns at most."""
        return dimension

    def remembered(self, state: State, dimension: int) -> tuple[Ints, Floats, Floats]:
        """Return layout, settings and the state's memory."""
        return self.layout, self.settings, state.memory

    def safe_named_by(self, listed: Any) -> SafeOfRound | None:
        """Return the safe action that a set names, with what is declared of it; None: it is always the same."""
        return None

    def at_safe(self, of_round: SafeOfRound) -> tuple[Ints, Floats]:
        """Return layout and settings of a round with a safe action of its own."""
        raise NotImplementedError

    def chosen(
        self,
        form: Form,
        state: State,
        features: Floats,
        eligible: Flags,
        draw: Draw,
        of_round: SafeOfRound | None = None,
    ) -> Chosen:
        """Play a round on these candidates (K, d), from a safe action of its own if it has one."""
        count, d = features.shape
        if self.steady:
            layout, settings, memory, size = self.layout, self.settings, state.memory, d
        else:
            layout, settings, memory = self.remembered(state, d)
            size = self.coordinates(d, memory)
        if of_round is not None:
            layout, settings = self.at_safe(of_round)
        needs = self._needs.get((form.rule, d, count, size)) or self.needs(form, d, count, size)
        answer, scratch = np.empty(needs.answer), np.empty(needs.scratch)
        code = needs.decide(features, eligible, layout, settings, memory, answer, scratch, *draw)
        return NEW(Chosen, (code, answer, scratch, layout, settings, features, eligible))

    @cached_property
    def steady(self) -> bool:
        """Whether a round has no layout, capacity or coordinates of its own, so that nobody is asked for them."""
        ours = (CompiledPolicy.remembered, CompiledPolicy.coordinates, CompiledPolicy.enlarged)
        return (type(self).remembered, type(self).coordinates, type(self).enlarged) == ours

    def needs(self, form: Form, dimension: int, count: int, coordinates: int) -> Needs:
        """Return what rounds of this size need, and keep it."""
        found = needed(form, *self.counted, dimension, count, coordinates)
        self._needs[form.rule, dimension, count, coordinates] = found
        return found

    @cached_property
    def _needs(self) -> dict[tuple[int, ...], Needs]:
        """What was needed before, by size: a policy has one form for each rule."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or a pickle holds: no kernels."""
        return {name: value for name, value in vars(self).items() if name != "_needs"}

    def follow(self, state: State, decision: Decision) -> State:
        """Follow the first candidates that are ever offered, until others are."""
        if decision._offered is None:
            return state
        return self.following(self.own(state), self.logged(decision._offered))

    def following(self, state: State, offered: Any) -> State:
        """Return the memory after candidates were offered: following them if they are the first, else none any more."""
        layout, settings, memory = self.remembered(state, offered.shape[1])
        known = KNOWN_IN(layout, settings, memory).followed
        if memory[FOLLOWED] == NEVER or np.array_equal(offered, known):
            return State(memory)
        chosen = offered if len(known) == 0 else offered[:0]
        return State(self.changed(layout, settings, memory, chosen, memory[CAPACITY]))

    def changed(self, layout: Ints, settings: Floats, memory: Floats, chosen: Floats, capacity: float) -> Floats:
        """Return the same memory following these candidates, with this capacity."""
        changed = aligned(MEMORY_SIZE(layout, len(chosen), int(capacity)))
        work = np.empty(2 * max(chosen.shape[1], int(capacity), 1) + len(chosen) + 8)
        memory_kernels_for(*self.form.models).change(chosen, layout, settings, memory, int(capacity), changed, work)
        return changed

    def learn_in_place(self, state: State, played: Played, values: Floats) -> State:
        """Take in what was seen with an action, in place where there is room."""
        features, index = self.located(played)
        d, form = features.size, self.form
        if self.steady:
            layout, settings, memory, size = self.layout, self.settings, state.memory, d
        else:
            layout, settings, memory = self.remembered(state, d)
            memory = self.enlarged(layout, settings, memory)
            size = self.coordinates(d, memory)
        if played.safe is not None:
            layout, settings = self.at_safe(played.safe)
        count = int(memory.item(FOLLOWED))
        needs = self._needs.get((form.rule, d, count, size)) or self.needs(form, d, count, size)
        needs.learn(features, index, played.step, values, layout, settings, memory, np.empty(needs.work))
        return state if memory is state.memory else State(memory)

    def located(self, played: Played) -> tuple[Floats, int]:
        """Return the features of what was played, and its index."""
        return played.action, played.ray

    def learn_log(self, state: State, actions: Any, values: Sequence[Floats] | Floats) -> State:
        """Take in a log as one batch: the same as row by row, to the bit, in compiled code."""
        features, indices = self.located_rows(actions)
        seen, d, done = np.array(values), features.shape[1], 0
        while done < len(seen):
            layout, settings, memory = self.remembered(state, d)
            memory = self.enlarged(layout, settings, memory)
            learn_rows = log_for(sized(self.form, *self.counted))
            end = min(done + min(self.spare(layout, memory), rows_at_once(learn_rows)), len(seen))
            needs = self.needs(self.form, d, int(memory.item(FOLLOWED)), self.coordinates(d, memory))
            rows = slice(done, end)
            learn_rows(features[rows], indices[rows], seen[rows], layout, settings, memory, np.empty(needs.work))
            state, done = State(memory), end
        return state

    def located_rows(self, actions: Any) -> tuple[Floats, Ints]:
        """Return the features (n, d) of logged actions, and for each where it lies: nobody has said."""
        return actions, np.full(len(actions), ELSEWHERE)

    def spare(self, layout: Ints, memory: Floats) -> int:
        """Return how many observations a memory surely has room for."""
        return MANY

    def enlarged(self, layout: Ints, settings: Floats, memory: Floats) -> Floats:
        """Return the memory, with more room where the next observation may need it."""
        return memory

    def fits(self, memory: Floats) -> bool:
        return fitting_memory(memory, self.layout, 0)

    def explained(
        self, seen: Chosen, state: State, decision: Decision, of_round: SafeOfRound | None = None
    ) -> Decision:
        """Return the decision; where its code disputes what was declared, with that as the cause."""
        if of_round is not None:
            decision._safe = of_round
        if len(seen.features) <= FEW:
            decision._seen = seen
        if seen.code > -DISPUTED:
            return decision
        return decision._replace(
            cause=cause_of(seen.code, self.presented, seen.layout, seen.settings, state.memory, seen.workspace.bounds)
        )
