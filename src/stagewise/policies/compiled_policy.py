"""Base of the policies on compiled kernels, whose settings and memory are arrays.

A policy declares the models of its signals (model blocks) and its rule (`round_spec`).
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from stagewise.engine.batch import build_log_learner
from stagewise.engine.compile import Flags, Floats, Ints, as_python, get_batch_rows
from stagewise.engine.layout import CACHE_DISABLED, CACHED, CAPACITY, ELSEWHERE, get_known_actions, read_block_fields
from stagewise.engine.limits import CONTRADICTED
from stagewise.engine.memory import change_memory, fits_layout, memory_size, start_memory
from stagewise.engine.model import Model, RoundSpec, Rule
from stagewise.engine.workspace import CENTRE, ESTIMATE, Workspace, get_workspace
from stagewise.models.model_block import iter_model_blocks
from stagewise.policies.arrays import (
    RoundResources,
    allocate_aligned,
    get_round_resources,
)
from stagewise.policies.base_policy import BasePolicy
from stagewise.policies.contradictions import build_cause
from stagewise.policies.policy import PlayedAction, State
from stagewise.problem.checks import MANY
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.safe_action import RoundSafeAction
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey

NEW = tuple.__new__  # builds named tuples in half the time of their own constructor
MAX_KEPT_CANDIDATES = 512  # candidates; the bounds of more are not kept with a decision
GET_WORKSPACE, GET_KNOWN_ACTIONS = as_python(get_workspace), as_python(get_known_actions)


class RoundResult(NamedTuple):
    """The result of a round's kernel."""

    code: int  # the candidate played, or minus the reason for the safe action
    answer: Floats
    scratch: Floats
    layout: Ints
    settings: Floats
    features: Floats  # (K, d)
    eligible: Flags
    models: tuple[Model, ...]

    @property
    def workspace(self) -> Workspace:
        """The bounds of the candidates and the scores of the rule."""
        return GET_WORKSPACE(self.layout, len(self.features), self.scratch)

    @property
    def estimates(self) -> Floats:
        """The signed estimates of every signal and candidate (1 + m, K + 1), the safe action last."""
        bounds = self.workspace.bounds
        estimates: Floats = bounds[:, CENTRE].copy()
        for index, model in enumerate(self.models):
            if model.estimates:
                block = read_block_fields(self.layout, index)
                signals = slice(block.first, block.first + block.signals)
                estimates[signals] = bounds[signals, ESTIMATE]
        return estimates


class CompiledPolicy(BasePolicy):
    """A policy whose rounds are kernels."""

    rule: ClassVar[Rule]
    round_spec: Any  # a `RoundSpec`
    layout: Ints
    settings: Floats
    thresholds: Thresholds
    has_parts: ClassVar[bool] = True

    def arrays(self, dimension: int) -> tuple[Ints, Floats]:
        """Return layout and settings for a dimension."""
        return self.layout, self.settings

    def get_round_spec(self, actions: Any) -> RoundSpec | None:
        """Return the spec of compiled loops on these actions; None: they cannot play them."""
        return self.round_spec

    def build_run_memory(self, offered: Any, features: Floats, fresh: bool, learned: State | None = None) -> Floats:
        """Return the initial memory of a compiled run; fixed actions are cached."""
        self.get_round_safe_action(self.check_actions(offered))  # raise the same errors as `decide`
        state = self.start_or_copy(learned)
        if not fresh:
            state = self.cache_candidates(state, features)
            if state.memory.size and state.memory[CACHED] == CACHE_DISABLED and not self.round_spec.per_round_safe:
                raise InvalidProblem(
                    ErrorCode.STATE_MISMATCH, "the state was trained on another action list; use backend='python'"
                )
        return self.get_arrays(state, features.shape[1])[2]

    def start_or_copy(self, learned: State | None) -> State:
        """Return the state before any outcome, or a copy of a learned one."""
        if learned is None:
            return self.start()
        memory = allocate_aligned(learned.memory.size)
        np.copyto(memory, learned.memory)
        return State(memory)

    def check_actions(self, listed: Any) -> Any:
        """Return the action set, or raise InvalidActions where this policy cannot use it."""
        return listed

    @property
    def first_capacity(self) -> int:
        """The capacity of a new memory, in basis points."""
        return 0

    def start(self) -> State:
        return State(self.build_memory(self.layout, self.settings))

    def build_memory(self, layout: Ints, settings: Floats) -> Floats:
        """Return an empty memory."""
        memory = allocate_aligned(memory_size(self.round_spec.models, layout, 0, self.first_capacity))
        start_memory(self.round_spec.models, layout, settings, self.first_capacity, memory)
        if self.round_spec.per_round_safe:
            memory[CACHED] = CACHE_DISABLED
        return memory

    def iter_blocks(self, memory: Floats) -> Iterator[tuple[Model, Any]]:
        """Yield every model with its block of a memory."""
        return iter_model_blocks(self.round_spec.models, self.layout, memory)

    def coordinates(self, dimension: int, memory: Floats) -> int:
        """Return the largest number of coordinates of a model block."""
        return dimension

    def get_arrays(self, state: State, dimension: int) -> tuple[Ints, Floats, Floats]:
        """Return layout, settings and the state's memory."""
        return self.layout, self.settings, state.memory

    def get_round_safe_action(self, listed: Any) -> RoundSafeAction | None:
        """Return the safe action that a set names, with its declared values; None: it is the same in every round."""
        return None

    def get_round_arrays(self, of_round: RoundSafeAction) -> tuple[Ints, Floats]:
        """Return layout and settings of a round that names its safe action."""
        raise NotImplementedError

    def play_round(
        self,
        round_spec: RoundSpec,
        state: State,
        features: Floats,
        eligible: Flags,
        draw: RandomKey,
        of_round: RoundSafeAction | None = None,
    ) -> RoundResult:
        """Run a round on these candidates (K, d), with the round's safe action if it names one."""
        count, d = features.shape
        if self.has_fixed_arrays:
            layout, settings, memory, size = self.layout, self.settings, state.memory, d
        else:
            layout, settings, memory = self.get_arrays(state, d)
            size = self.coordinates(d, memory)
        if of_round is not None:
            layout, settings = self.get_round_arrays(of_round)
        needs = self._resources.get((round_spec.rule.name, d, count, size)) or self.get_resources(
            round_spec, d, count, size
        )
        answer, scratch = np.empty(needs.answer), np.empty(needs.scratch)
        code = needs.decide(features, eligible, layout, settings, memory, answer, scratch, *draw)
        return NEW(RoundResult, (code, answer, scratch, layout, settings, features, eligible, round_spec.models))

    @cached_property
    def has_fixed_arrays(self) -> bool:
        """Whether all rounds share layout, capacity and coordinates, so that they need not be computed."""
        ours = (CompiledPolicy.get_arrays, CompiledPolicy.coordinates, CompiledPolicy.enlarge)
        return (type(self).get_arrays, type(self).coordinates, type(self).enlarge) == ours

    def get_resources(self, round_spec: RoundSpec, dimension: int, count: int, coordinates: int) -> RoundResources:
        """Return the kernels and array sizes of rounds of this size, and cache them."""
        resources = get_round_resources(round_spec, self.thresholds.values.size, dimension, count, coordinates)
        self._resources[round_spec.rule.name, dimension, count, coordinates] = resources
        return resources

    @cached_property
    def _resources(self) -> dict[tuple[str, int, int, int], RoundResources]:
        """Cached resources by size: a policy has one spec for each rule."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy or a pickle, without kernels."""
        return {name: value for name, value in vars(self).items() if name != "_resources"}

    def cache_offered(self, state: State, decision: Decision) -> State:
        """Cache the first candidates that are offered, until others are."""
        if decision._offered is None:
            return state
        return self.cache_candidates(self.check_state(state), self.check_logged_actions(decision._offered))

    def cache_candidates(self, state: State, offered: Any) -> State:
        """Return the state with these candidates cached if they are the first; else with the cache disabled."""
        layout, settings, memory = self.get_arrays(state, offered.shape[1])
        cached = GET_KNOWN_ACTIONS(layout, settings, memory).cached
        if memory[CACHED] == CACHE_DISABLED or np.array_equal(offered, cached):
            return State(memory)
        chosen = offered if len(cached) == 0 else offered[:0]
        return State(self.rebuild_memory(layout, settings, memory, chosen, memory[CAPACITY]))

    def rebuild_memory(
        self, layout: Ints, settings: Floats, memory: Floats, candidates: Floats, capacity: float
    ) -> Floats:
        """Return the same memory with these cached candidates and this capacity."""
        models = self.round_spec.models
        changed = allocate_aligned(memory_size(models, layout, len(candidates), int(capacity)))
        change_memory(models, layout, settings, memory, candidates, int(capacity), changed)
        return changed

    def learn_in_place(self, state: State, played: PlayedAction, values: Floats) -> State:
        """Learn the outcome of an action, in place where there is room."""
        features, index = self.locate(played)
        d, round_spec = features.size, self.round_spec
        if self.has_fixed_arrays:
            layout, settings, memory, size = self.layout, self.settings, state.memory, d
        else:
            layout, settings, memory = self.get_arrays(state, d)
            memory = self.enlarge(layout, settings, memory)
            size = self.coordinates(d, memory)
        if played.safe is not None:
            layout, settings = self.get_round_arrays(played.safe)
        count = int(memory.item(CACHED))
        needs = self._resources.get((round_spec.rule.name, d, count, size)) or self.get_resources(
            round_spec, d, count, size
        )
        needs.learn(features, index, played.step, values, layout, settings, memory, np.empty(needs.work))
        return state if memory is state.memory else State(memory)

    def locate(self, played: PlayedAction) -> tuple[Floats, int]:
        """Return the features and the index of the played action."""
        return played.action, played.ray

    def learn_log(self, state: State, actions: Any, values: Sequence[Floats] | Floats) -> State:
        """Learn a log as one batch in compiled code, bitwise equal to row by row."""
        features, indices = self.locate_rows(actions)
        outcomes, d, done = np.array(values), features.shape[1], 0
        while done < len(outcomes):
            layout, settings, memory = self.get_arrays(state, d)
            memory = self.enlarge(layout, settings, memory)
            learn_rows = build_log_learner(self.round_spec)
            end = min(done + min(self.count_free_rows(layout, memory), get_batch_rows(learn_rows)), len(outcomes))
            needs = self.get_resources(self.round_spec, d, int(memory.item(CACHED)), self.coordinates(d, memory))
            rows = slice(done, end)
            learn_rows(features[rows], indices[rows], outcomes[rows], layout, settings, memory, np.empty(needs.work))
            state, done = State(memory), end
        return state

    def locate_rows(self, actions: Any) -> tuple[Floats, Ints]:
        """Return the features (n, d) of logged actions and their indices, which are unknown."""
        return actions, np.full(len(actions), ELSEWHERE)

    def count_free_rows(self, layout: Ints, memory: Floats) -> int:
        """Return a lower bound on the number of observations that a memory has room for."""
        return MANY

    def enlarge(self, layout: Ints, settings: Floats, memory: Floats) -> Floats:
        """Return the memory, enlarged where the next observation may need it."""
        return memory

    def fits(self, memory: Floats) -> bool:
        return fits_layout(self.round_spec.models, memory, self.layout, 0)

    def attach_cause(
        self, result: RoundResult, state: State, decision: Decision, of_round: RoundSafeAction | None = None
    ) -> Decision:
        """Return the decision, with the contradiction as its cause where the code is one."""
        if of_round is not None:
            decision._safe = of_round
        if len(result.features) <= MAX_KEPT_CANDIDATES:
            decision._round_result = result
        if result.code > -CONTRADICTED:
            return decision
        return decision._replace(
            reason_details=build_cause(
                result.code,
                self.display_thresholds,
                result.models,
                result.layout,
                result.settings,
                state.memory,
                result.workspace.bounds,
            )
        )
