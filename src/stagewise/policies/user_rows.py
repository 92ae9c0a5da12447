"""Actions in a context: a row for every action and user, and a memory with room for the segments of users."""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.layout import CAPACITY, FOLLOWED, HOME, NEVER
from stagewise.kernels.loop.memory import grow, memory_kernels_for
from stagewise.kernels.loop.round import Form
from stagewise.kernels.signals.cells import before_full, in_order, meet, most_met
from stagewise.policies.arrays import MEMORY_SIZE, aligned, fitting_memory, starting
from stagewise.policies.compiled import CompiledPolicy
from stagewise.policies.policy import State
from stagewise.policies.rows_of_users import ACTION, FIRST_NUMBER, ONE
from stagewise.problem.action_set import ALL, Flags
from stagewise.problem.actions import Finite
from stagewise.problem.checks import MOST, array, shown
from stagewise.problem.context import LARGEST_SEGMENT, Context
from stagewise.problem.errors import InvalidActions
from stagewise.problem.words import several
from stagewise.records.decision import Decision

GROW, IN_ORDER = named(grow), named(in_order)
FIRST_CAPACITY = 8  # segments that a new memory has room for


class UserRows(CompiledPolicy):
    """A policy whose actions are told apart by a row each: the action's number, 1, the context, the segments."""

    actions: int
    context: int
    segments: int
    log_hint: ClassVar[str] = ""  # another way to give a log

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return self.first_segment + self.segments

    @property
    def first_segment(self) -> int:
        """Where the segments begin in a row."""
        return FIRST_NUMBER + self.context

    @cached_property
    def _template(self) -> Floats:
        """The rows of all actions, without a context."""
        rows = np.zeros((self.actions, self.width))
        rows[:, ACTION], rows[:, ONE] = np.arange(self.actions), 1.0
        return rows

    def rows_for(self, context: Context) -> Floats:
        """Return the rows (K, D) of all actions for one user."""
        if context.features.size != self.context or context.segments.size != self.segments:
            raise InvalidActions(
                f"the context is {context!r}; this policy needs {several(self.context, 'number')} and "
                f"{several(self.segments, 'segment')}"
            )
        if not context.inside and not (np.abs(context.features) <= 1.0).all():
            beyond = context.features[np.abs(context.features) > 1.0][0]
            raise InvalidActions(f"the context holds {beyond:.15g}; every number must lie in [-1, 1], so rescale it")
        rows = self._template.copy()
        rows[:, FIRST_NUMBER : self.first_segment] = context.features
        if self.segments:
            rows[:, self.first_segment :] = context.segments
        return rows

    def context_in(self, row: Floats) -> Context:
        """Return the user of a row."""
        segments = [int(key) for key in row[self.first_segment :]]
        return Context.trusted(row[FIRST_NUMBER : self.first_segment], segments, None)

    def offer_of(self, actions: Any) -> tuple[Floats, Flags]:
        """Return the rows of all actions for this user, and which of them are on offer."""
        if isinstance(actions, Context):
            return self.rows_for(actions), actions.eligible_of(self.actions)
        if actions is None:
            return self.rows_for(Context()), ALL
        if not isinstance(actions, Finite):
            raise InvalidActions(f"the actions are {shown(actions)}; this policy is given a Context")
        if actions.safe_of_round is not None and actions.safe_of_round.place != int(self.layout[HOME]):
            raise InvalidActions(
                f"the rows name {shown(actions.safe_of_round.place)} as safe; here it is {self.layout[HOME]}"
            )
        rows = self.logged(actions.features)
        if len(rows) != self.actions or not np.array_equal(rows[:, ACTION], self._template[:, ACTION]):
            raise InvalidActions(f"the rows are {shown(actions)}; there must be one for each of {self.actions} actions")
        if not np.array_equal(rows[:, ONE:], np.broadcast_to(rows[0, ONE:], rows[:, ONE:].shape)):
            raise InvalidActions("the rows tell of several users; a round is for one of them")
        return rows, actions.eligible

    def logged(self, actions: Any) -> Floats:
        """Return rows (n, 2 + context + segments): the action, 1, the context, the segments."""
        rows = array(actions, "the logged actions", InvalidActions)
        d = self.first_segment
        if rows.ndim != 2 or rows.shape[1] != d + self.segments:
            raise InvalidActions(
                f"the logged actions have shape {rows.shape}; each row is the action's number, 1, "
                f"{several(self.context, 'number')} and {several(self.segments, 'segment')}{self.log_hint}"
            )
        numbered, segments = rows[:, ACTION], rows[:, d:]
        good = (numbered >= 0) & (numbered < self.actions) & (numbered == np.floor(numbered)) & (rows[:, ONE] == 1.0)
        good &= (np.abs(rows[:, FIRST_NUMBER:d]) <= 1.0).all(axis=1)
        good &= ((segments >= 0) & (segments < LARGEST_SEGMENT) & (segments == np.floor(segments))).all(axis=1)
        if not good.all():
            first = int(np.argmin(good))
            raise InvalidActions(
                f"row {first} of the logged actions is {shown(rows[first].tolist())}; it must hold an action from 0 to "
                f"{self.actions - 1}, 1, numbers in [-1, 1], and segments from 0"
            )
        return rows

    def safe_in(self, decision: Decision) -> tuple[Any, int, float]:
        """Return what is done today for a decision's user."""
        home = int(self.layout[HOME])
        row = np.array(decision.action)
        row[ACTION] = float(home)
        return row, home, 1.0

    def form_for(self, actions: Any) -> Form | None:
        """Return how compiled loops play it: where every round has a user, in plain features."""
        return self.form if getattr(actions, "crossed", None) is False else None

    def played_from(self, offered: Any, features: Floats, fresh: bool, learned: State | None = None) -> Floats:
        """Return the memory that a compiled run begins with: nothing is followed."""
        self.logged(offered.features)  # refuse here what play by hand refuses
        return self.begins(learned).memory

    @property
    def first_capacity(self) -> int:
        """Segments that a new memory has room for."""
        return FIRST_CAPACITY if self.segments else 0

    def start(self) -> State:
        """Return the memory of a policy that has seen nothing; it never follows candidates."""
        memory = self.begun(self.layout, self.settings)
        memory[FOLLOWED] = NEVER
        return State(memory)

    def fits(self, memory: Floats) -> bool:
        if not fitting_memory(memory, self.layout, MOST) or memory[FOLLOWED] != NEVER:
            return False
        return bool(memory[CAPACITY] >= self.first_capacity) and IN_ORDER(self.layout, memory)

    def enlarged(self, layout: Ints, settings: Floats, memory: Floats) -> Floats:
        """Return the memory, with twice the capacity where more than half is taken: slots are then found at once."""
        capacity = int(memory.item(CAPACITY))
        if capacity == 0 or 2 * most_met(layout, memory) < capacity:
            return memory
        return self.with_capacity(memory, capacity)

    def with_capacity(self, memory: Floats, segments: int) -> Floats:
        """Return the memory with room for so many segments, and as many more, so that slots are found at once."""
        if 2 * segments <= memory.item(CAPACITY):
            return memory
        changed = aligned(MEMORY_SIZE(self.layout, int(NEVER), 2 * segments))
        memory_kernels_for(*self.form.models).widen(self.layout, memory, 2 * segments, changed)
        return changed

    def with_capacity_for(self, memory: Floats, segments: int) -> Floats:
        """Return the memory with room for so many segments beside those that were met."""
        return self.with_capacity(memory, segments + most_met(self.layout, memory)) if segments else memory

    def learn_rows(self, state: State, rows: Floats, values: Floats) -> State:
        """Take in rows (n, D) and values (n, 1 + m), NaN for what is not in: as one by one, to the bit."""
        done = 0
        while done < len(rows):
            memory = self.enlarged(self.layout, self.settings, state.memory)
            few = before_full(self.layout, memory, rows[done:], values[done:]) if memory.item(CAPACITY) else len(rows)
            end = min(done + few, len(rows))
            state = super().learn_log(State(memory), rows[done:end], values[done:end])
            done = end
        return state

    def learn_log(self, state: State, actions: Any, values: Any) -> State:
        """Take in a log as one batch; its segments count in the order of their numbers, as rows stand in any order."""
        memory, first = state.memory, self.first_segment
        met = [np.unique(actions[:, first + division]) for division in range(self.segments)]
        memory = self.with_capacity(memory, most_met(self.layout, memory) + max((keys.size for keys in met), default=0))
        for division, keys in enumerate(met):
            meet(self.layout, memory, first + division, keys)
        return super().learn_log(State(memory), actions, values)

    def grown(self, fewer: "UserRows", state: State) -> State:
        """Return what was learned with fewer actions, the same first, as this policy's own."""
        capacity = int(fewer.own(state).memory[CAPACITY])
        memory = aligned(MEMORY_SIZE(self.layout, 0, capacity))
        starting(self.form)(self.layout, self.settings, capacity, memory, np.empty(0))
        memory[FOLLOWED] = NEVER
        GROW(fewer.layout, state.memory, self.layout, memory)
        return State(memory)
