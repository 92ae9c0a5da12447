"""Base of the contextual policies: a row for every action and user, and a memory that grows with the segments."""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python
from stagewise.engine.layout import CACHE_DISABLED, CACHED, CAPACITY, SAFE_INDEX
from stagewise.engine.memory import fits_layout, memory_size, start_memory, widen_memory
from stagewise.engine.model import RoundSpec
from stagewise.models.per_action_ridge import widen_per_action_ridge
from stagewise.models.segment_rates import (
    SEGMENT_RATES,
    add_segments,
    are_slots_valid,
    copy_to_more_actions,
    count_rows_before_full,
    get_most_segments,
)
from stagewise.policies.arrays import allocate_aligned
from stagewise.policies.compiled_policy import CompiledPolicy
from stagewise.policies.context_rows import ACTION, FIRST_NUMBER, ONE
from stagewise.policies.policy import State
from stagewise.problem.actions import ALL, FiniteSet, Flags
from stagewise.problem.checks import MOST, check_array
from stagewise.problem.context import LARGEST_SEGMENT, Context
from stagewise.problem.errors import ErrorCode, InvalidActions
from stagewise.problem.formatting import format_count, safe_repr
from stagewise.records.decision import Decision

WIDEN, IN_ORDER = as_python(widen_per_action_ridge), as_python(are_slots_valid)
FIRST_CAPACITY = 8  # segments


class ContextPolicy(CompiledPolicy):
    """A policy whose actions are rows: the action's index, 1, the context, the segments."""

    actions: int
    context: int
    segments: int
    log_hint: ClassVar[str] = ""  # added to the error about a log's shape

    @property
    def width(self) -> int:
        """The number of columns of a row."""
        return self.first_segment + self.segments

    @property
    def first_segment(self) -> int:
        """The column of the first segment."""
        return FIRST_NUMBER + self.context

    @cached_property
    def rate_blocks(self) -> Ints:
        """The indices of the blocks with rates by segment."""
        return np.array([i for i, model in enumerate(self.round_spec.models) if model is SEGMENT_RATES], dtype=np.int64)

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
                ErrorCode.WRONG_SHAPE,
                "the context is {context!r}; this policy needs {context_2} and {segments}",
                context=context,
                context_2=format_count(self.context, "number"),
                segments=format_count(self.segments, "segment"),
            )
        if not context.inside and not (np.abs(context.features) <= 1.0).all():
            beyond = context.features[np.abs(context.features) > 1.0][0]
            raise InvalidActions(
                ErrorCode.CONTEXT_OUT_OF_RANGE,
                "the context holds {beyond:.15g}; every number must lie in [-1, 1], so rescale it",
                beyond=beyond,
            )
        rows = self._template.copy()
        rows[:, FIRST_NUMBER : self.first_segment] = context.features
        if self.segments:
            rows[:, self.first_segment :] = context.segments
        return rows

    def context_in(self, row: Floats) -> Context:
        """Return the user of a row."""
        segments = [int(key) for key in row[self.first_segment :]]
        return Context.from_checked(row[FIRST_NUMBER : self.first_segment], segments, None)

    def parse_offer(self, actions: Any) -> tuple[Floats, Flags]:
        """Return the rows of all actions for this user, and which of them are eligible."""
        if isinstance(actions, Context):
            return self.rows_for(actions), actions.get_eligible(self.actions)
        if actions is None:
            return self.rows_for(Context()), ALL
        if not isinstance(actions, FiniteSet):
            raise InvalidActions(
                ErrorCode.WRONG_TYPE,
                "the actions are {actions}; this policy needs a Context",
                actions=safe_repr(actions),
            )
        if actions.round_safe_action is not None and actions.round_safe_action.safe_index != int(
            self.layout[SAFE_INDEX]
        ):
            raise InvalidActions(
                ErrorCode.SAFE_ACTION_INVALID,
                "the rows name {safe_index} as the safe action; it must be {layout}",
                safe_index=safe_repr(actions.round_safe_action.safe_index),
                layout=self.layout[SAFE_INDEX],
            )
        rows = self.check_logged_actions(actions.features)
        if len(rows) != self.actions or not np.array_equal(rows[:, ACTION], self._template[:, ACTION]):
            raise InvalidActions(
                ErrorCode.WRONG_SHAPE,
                "the rows are {actions}; there must be one for each of {actions_2} actions",
                actions=safe_repr(actions),
                actions_2=self.actions,
            )
        if not np.array_equal(rows[:, ONE:], np.broadcast_to(rows[0, ONE:], rows[:, ONE:].shape)):
            raise InvalidActions(ErrorCode.WRONG_SHAPE, "the rows describe several users; a round is for one user")
        return rows, actions.eligible

    def check_logged_actions(self, actions: Any) -> Floats:
        """Return rows (n, 2 + context + segments): the action, 1, the context, the segments."""
        rows = check_array(actions, "the logged actions", InvalidActions)
        d = self.first_segment
        if rows.ndim != 2 or rows.shape[1] != d + self.segments:
            raise InvalidActions(
                ErrorCode.WRONG_SHAPE,
                "the logged actions have shape {shape}; each row must hold the action's index, 1, "
                "{context} and {segments}{log_hint}",
                shape=rows.shape,
                context=format_count(self.context, "number"),
                segments=format_count(self.segments, "segment"),
                log_hint=self.log_hint,
            )
        numbered, segments = rows[:, ACTION], rows[:, d:]
        good = (numbered >= 0) & (numbered < self.actions) & (numbered == np.floor(numbered)) & (rows[:, ONE] == 1.0)
        good &= (np.abs(rows[:, FIRST_NUMBER:d]) <= 1.0).all(axis=1)
        good &= ((segments >= 0) & (segments < LARGEST_SEGMENT) & (segments == np.floor(segments))).all(axis=1)
        if not good.all():
            first = int(np.argmin(good))
            raise InvalidActions(
                ErrorCode.INVALID_ROW,
                "row {first} of the logged actions is {rows}; it must hold an action from 0 to "
                "{actions}, 1, numbers in [-1, 1], and segments from 0",
                first=first,
                rows=safe_repr(rows[first].tolist()),
                actions=self.actions - 1,
            )
        return rows

    def get_safe_action(self, decision: Decision) -> tuple[Any, int, float]:
        """Return the safe action for a decision's user."""
        safe_index = int(self.layout[SAFE_INDEX])
        row = np.array(decision.action)
        row[ACTION] = float(safe_index)
        return row, safe_index, 1.0

    def get_round_spec(self, actions: Any) -> RoundSpec | None:
        """Return the spec of compiled loops, for worlds with plain features."""
        return self.round_spec if getattr(actions, "crossed", None) is False else None

    def build_run_memory(self, offered: Any, features: Floats, fresh: bool, learned: State | None = None) -> Floats:
        """Return the initial memory of a compiled run, without a cache."""
        self.check_logged_actions(offered.features)  # raise the same errors as `decide`
        return self.start_or_copy(learned).memory

    @property
    def first_capacity(self) -> int:
        """The capacity of a new memory, in segments."""
        return FIRST_CAPACITY if self.segments else 0

    def start(self) -> State:
        """Return the state before any outcome; candidates are never cached."""
        memory = self.build_memory(self.layout, self.settings)
        memory[CACHED] = CACHE_DISABLED
        return State(memory)

    def fits(self, memory: Floats) -> bool:
        if not fits_layout(self.round_spec.models, memory, self.layout, MOST) or memory[CACHED] != CACHE_DISABLED:
            return False
        return bool(memory[CAPACITY] >= self.first_capacity) and IN_ORDER(self.layout, memory, self.rate_blocks)

    def enlarge(self, layout: Ints, settings: Floats, memory: Floats) -> Floats:
        """Return the memory with twice the capacity where more than half is used, so that lookups stay fast."""
        capacity = int(memory.item(CAPACITY))
        if capacity == 0 or 2 * get_most_segments(layout, memory, self.rate_blocks) < capacity:
            return memory
        return self.with_capacity(memory, capacity)

    def with_capacity(self, memory: Floats, segments: int) -> Floats:
        """Return the memory with capacity for twice this number of segments, so that lookups stay fast."""
        if 2 * segments <= memory.item(CAPACITY):
            return memory
        changed = allocate_aligned(memory_size(self.round_spec.models, self.layout, int(CACHE_DISABLED), 2 * segments))
        widen_memory(self.round_spec.models, self.layout, memory, 2 * segments, changed)
        return changed

    def with_capacity_for(self, memory: Floats, segments: int) -> Floats:
        """Return the memory with capacity for this number of additional segments."""
        return (
            self.with_capacity(memory, segments + get_most_segments(self.layout, memory, self.rate_blocks))
            if segments
            else memory
        )

    def learn_rows(self, state: State, rows: Floats, values: Floats) -> State:
        """Learn rows (n, D) and values (n, 1 + m), NaN for missing signals; bitwise equal to one by one."""
        done = 0
        while done < len(rows):
            memory = self.enlarge(self.layout, self.settings, state.memory)
            count = (
                count_rows_before_full(self.layout, memory, self.rate_blocks, rows[done:], values[done:])
                if memory.item(CAPACITY)
                else len(rows)
            )
            end = min(done + count, len(rows))
            state = super().learn_log(State(memory), rows[done:end], values[done:end])
            done = end
        return state

    def learn_log(self, state: State, actions: Any, values: Any) -> State:
        """Learn a log as one batch; its segments are added in the order of their keys, so row order does not matter."""
        memory, first = state.memory, self.first_segment
        keys_by_division = [np.unique(actions[:, first + division]) for division in range(self.segments)]
        memory = self.with_capacity(
            memory,
            get_most_segments(self.layout, memory, self.rate_blocks)
            + max((keys.size for keys in keys_by_division), default=0),
        )
        for division, keys in enumerate(keys_by_division):
            add_segments(self.layout, memory, self.rate_blocks, first + division, keys)
        return super().learn_log(State(memory), actions, values)

    def grow_state(self, fewer: "ContextPolicy", state: State) -> State:
        """Return the state of a policy with fewer actions (the first of this policy's) as a state of this policy."""
        capacity = int(fewer.check_state(state).memory[CAPACITY])
        memory = allocate_aligned(memory_size(self.round_spec.models, self.layout, 0, capacity))
        start_memory(self.round_spec.models, self.layout, self.settings, capacity, memory)
        memory[CACHED] = CACHE_DISABLED
        for (model, old), (_, new) in zip(fewer.iter_blocks(state.memory), self.iter_blocks(memory), strict=True):
            if model is SEGMENT_RATES:
                copy_to_more_actions(old, new, state.memory, memory)
            else:
                WIDEN(self.layout, old, new, state.memory, memory)
        return State(memory)
