"""The rounds of a policy in compiled code: kernels of its models and its rule, its settings and memory as arrays."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.batch import build_log_learner
from stagewise.engine.compile import Flags, Floats, Ints, as_python, get_batch_rows
from stagewise.engine.layout import CACHE_DISABLED, CACHED, CAPACITY, LIMITS, get_known_actions, read_block_fields
from stagewise.engine.model import Model, RoundSpec, Rule
from stagewise.engine.round import build_round, change_memory, fits_layout, memory_size, start_memory, widen_memory
from stagewise.engine.workspace import (
    CENTRE,
    ESTIMATE,
    Workspace,
    answer_size,
    get_decision_views,
    get_workspace,
    scratch_size,
    work_size,
)
from stagewise.files.paths import GIB, get_total_memory
from stagewise.models.model_block import ModelBlockSpec, iter_model_blocks
from stagewise.problem.checks import MANY
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.records.random_key import RandomKey

NEW = tuple.__new__  # builds named tuples in half the time of their own constructor
LARGE = 2**24  # numbers; fewer fit into the memory of any machine
NOTHING: Floats = np.empty(0)
NO_ROWS: Floats = np.empty((0, 0))
ANSWER_SIZE, SCRATCH_SIZE, WORK_SIZE = as_python(answer_size), as_python(scratch_size), as_python(work_size)
GET_WORKSPACE, GET_KNOWN_ACTIONS = as_python(get_workspace), as_python(get_known_actions)
GET_DECISION_VIEWS = as_python(get_decision_views)


def allocate_aligned(size: int) -> Floats:
    """Return zeros aligned to 64 bytes: rounds on unaligned rows take a third longer."""
    if size > LARGE and 8 * size > get_total_memory():
        template = (
            "the state for this many features or actions needs about {size:,.0f} GiB, and this machine has "
            "{total:,.0f}; use fewer features, since a regression of d features keeps d² numbers"
        )
        data = {"size": 8 * size / GIB, "total": get_total_memory() / GIB}
        raise InvalidProblem(ErrorCode.TOO_LARGE, template, **data)
    buffer = np.empty(size + 8)
    buffer[:] = 0.0
    first = -buffer.ctypes.data % 64 // 8
    return buffer[first : first + size]


def assemble_arrays(
    head: Sequence[int],
    constraints: Floats,
    safe: Floats,
    blocks: Sequence[ModelBlockSpec],
    declared: Floats = NOTHING,
    last: Sequence[float] = (),
) -> tuple[Ints, Floats]:
    """Return the layout and the settings of a policy; `head` is switches, sampling, safe index (`engine.layout`).

    `declared` are r₀ and c₀ where every round names its safe action; `last` are the last numbers of the settings.
    """
    switches, sampling, safe_index = head
    limits, offset = (constraints.size - 3) // 3, constraints.size + safe.size + declared.size
    integers, numbers = [limits, len(blocks), switches, safe.size, sampling, safe_index], [constraints, safe, declared]
    for block in blocks:
        integers += [*block.integers, offset]
        numbers.append(block.floats)
        offset += block.floats.size
    return np.array(integers, dtype=np.int64), np.concatenate([*numbers, np.array(last, dtype=np.float64)])


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


class RoundResources(NamedTuple):
    """The kernels of rounds and the sizes of their arrays."""

    decide: Callable[..., int]
    learn: Callable[..., None]
    answer: int
    scratch: int
    work: int


@cache
def get_round_resources(spec: RoundSpec, limits: int, dimension: int, count: int, coordinates: int) -> RoundResources:
    """Return the kernels and array sizes of rounds with this spec and these sizes."""
    played, sizes = build_round(spec), (limits, count, coordinates)
    answer, scratch, work = ANSWER_SIZE(limits, dimension), SCRATCH_SIZE(*sizes, False), WORK_SIZE(*sizes, True)
    return RoundResources(played.decide, played.learn, answer, scratch, work)


class Growth(NamedTuple):
    """How a memory grows."""

    first: int  # the capacity of a new memory
    most: int  # the largest capacity
    rate: float = 1.0  # by which part of itself a capacity grows, at least by the first


class Rounds:
    """The rounds of a policy: which models and rule, and its layout and settings (`engine.layout`).

    A memory is one array. `growth` is None where its size is fixed; `caches` says that candidates that recur are
    cached in it.
    """

    def __init__(
        self, spec: RoundSpec, layout: Ints, settings: Floats, growth: Growth | None = None, caches: bool = True
    ) -> None:
        self.spec, self.layout, self.settings = spec, layout, settings
        self.growth, self.caches = growth, caches
        self.first_capacity = growth.first if growth else 0
        self.growing = tuple((index, model) for index, model in enumerate(spec.models) if model.free_rows is not None)
        self._arrays = layout, settings
        self._counts_points = spec.counts_capacity_in("points")
        self._resources: dict[tuple[int, int, int], RoundResources] = {}

    def with_rule(self, rule: Rule) -> "Rounds":
        """Return rounds of the same models, settings and memory with another rule."""
        return Rounds(self.spec._replace(rule=rule), self.layout, self.settings, self.growth, self.caches)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy or a pickle, without kernels."""
        return {**vars(self), "_resources": {}}

    def iter_blocks(self, memory: Floats) -> Iterator[tuple[Model, Any]]:
        return iter_model_blocks(self.spec.models, self.layout, memory)

    def start(self) -> Floats:
        """Return the memory before any outcome."""
        memory = allocate_aligned(memory_size(self.spec.models, self.layout, 0, self.first_capacity))
        start_memory(self.spec.models, self.layout, self.settings, self.first_capacity, memory)
        if not self.caches:
            memory[CACHED] = CACHE_DISABLED
        return memory

    def fits(self, memory: Floats) -> bool:
        """Return whether a memory can belong to these rounds, by its header."""
        if not fits_layout(self.spec.models, memory, self.layout, self.growth.most if self.growth else 0):
            return False
        blocks = (one for one in self.iter_blocks(memory) if one[0].is_valid is not None)
        has_room = bool(memory[CAPACITY] >= min(self.first_capacity, 1))
        return has_room and all(model.is_valid(block, memory) for model, block in blocks)

    def play(
        self,
        memory: Floats,
        features: Floats,
        eligible: Flags,
        draw: RandomKey,
        arrays: tuple[Ints, Floats] | None = None,
    ) -> RoundResult:
        """Run a round on these candidates (K, d); `arrays` are the layout and settings of a round of its own."""
        (layout, settings), (count, dimension) = arrays or self._arrays, features.shape
        decide, _, answer_size, scratch_size, _ = self.get_resources(memory, dimension, count)
        answer, scratch = np.empty(answer_size), np.empty(scratch_size)
        code = decide(features, eligible, layout, settings, memory, answer, scratch, *draw)
        return NEW(RoundResult, (code, answer, scratch, layout, settings, features, eligible, self.spec.models))

    def learn(
        self,
        memory: Floats,
        features: Floats,
        index: int,
        step: float,
        values: Floats,
        arrays: tuple[Ints, Floats] | None = None,
    ) -> Floats:
        """Learn the outcome of an action, in place where there is room, and return the memory."""
        memory, (layout, settings) = memory if self.growth is None else self.enlarge(memory), arrays or self._arrays
        _, learn, _, _, work_size = self.get_resources(memory, features.size, int(memory.item(CACHED)))
        learn(features, index, step, values, layout, settings, memory, np.empty(work_size))
        return memory

    def learn_rows(self, memory: Floats, features: Floats, indices: Ints, outcomes: Floats) -> Floats:
        """Learn rows as one batch, bitwise equal to row by row, and return the memory."""
        learn_rows, done = build_log_learner(self.spec), 0
        while done < len(outcomes):
            memory = self.enlarge(memory)
            free = self.count_free_rows(memory, features[done:], outcomes[done:])
            end = min(done + min(free, get_batch_rows(learn_rows)), len(outcomes))
            needs, rows = self.get_resources(memory, features.shape[1], int(memory.item(CACHED))), slice(done, end)
            arrays = self.layout, self.settings, memory, np.empty(needs.work)
            learn_rows(features[rows], indices[rows], outcomes[rows], *arrays)
            done = end
        return memory

    def learn_log(self, memory: Floats, features: Floats, indices: Ints, outcomes: Floats) -> Floats:
        """Learn the rows of a log, which may be in any order, and return the memory."""
        rest = np.array(outcomes, dtype=np.float64)
        for index, model in enumerate(self.spec.models):
            if model.learns_logs:
                rest[:, read_block_fields(self.layout, index).first] = math.nan  # every signal has a block of its own
        memory = self.learn_rows(memory, features, indices, rest)
        for model, block in self.iter_blocks(memory):
            if model.finish_log is not None:
                model.finish_log(block, self.settings, memory, features, outcomes)
        return memory

    def get_resources(self, memory: Floats, dimension: int, count: int) -> RoundResources:
        """Return the kernels and array sizes of rounds of this size."""
        size = int(memory.item(CAPACITY)) if self._counts_points else dimension
        try:
            return self._resources[dimension, count, size]
        except KeyError:
            found = get_round_resources(self.spec, self.layout.item(LIMITS), dimension, count, size)
            return self._resources.setdefault((dimension, count, size), found)

    def enlarge(self, memory: Floats) -> Floats:
        """Return the memory, enlarged where the next observation may need it."""
        if self.growth is None or self.count_free_rows(memory, NO_ROWS, NO_ROWS) > 0:
            return memory
        first, most, rate = self.growth
        capacity = int(memory.item(CAPACITY))
        return self.widen(memory, min(capacity + max(int(rate * capacity), first), most))

    def count_free_rows(self, memory: Floats, rows: Floats, values: Floats) -> int:
        """Return how many of these rows there is room for; without rows: how many, whatever they are."""
        if self.growth is None or memory.item(CAPACITY) == self.growth.most:
            return MANY
        return min((model.free_rows(self.layout, memory, i, rows, values) for i, model in self.growing), default=MANY)

    def reserve(self, memory: Floats, unit: str, count: int) -> Floats:
        """Return the memory with room for this many more of what capacities count in this unit."""
        growing = (one for one in self.growing if one[1].capacity == unit)
        needed = (model.reserve(self.layout, memory, index, count) for index, model in growing)
        return self.widen(memory, max(needed, default=0))

    def widen(self, memory: Floats, capacity: int) -> Floats:
        if capacity <= memory.item(CAPACITY):
            return memory
        models = self.spec.models
        changed = allocate_aligned(memory_size(models, self.layout, int(memory.item(CACHED)), capacity))
        widen_memory(models, self.layout, memory, capacity, changed)
        return changed

    def cache(self, memory: Floats, offered: Floats) -> Floats:
        """Return the memory with these candidates cached if they are the first; else with the cache disabled."""
        cached = GET_KNOWN_ACTIONS(self.layout, self.settings, memory).cached
        if memory[CACHED] == CACHE_DISABLED or np.array_equal(offered, cached):
            return memory
        return self.rebuild(memory, offered if len(cached) == 0 else offered[:0], int(memory[CAPACITY]))

    def rebuild(self, memory: Floats, candidates: Floats, capacity: int) -> Floats:
        """Return the same memory with these cached candidates and this capacity."""
        models = self.spec.models
        changed = allocate_aligned(memory_size(models, self.layout, len(candidates), capacity))
        change_memory(models, self.layout, self.settings, memory, candidates, capacity, changed)
        return changed

    def start_run(self, learned: Floats | None, features: Floats, fresh: bool) -> Floats:
        """Return the memory that a compiled run begins with; candidates that are the same in every round are cached."""
        if learned is None:
            memory = self.start()
        else:
            memory = allocate_aligned(learned.size)
            np.copyto(memory, learned)
        if fresh or not self.caches:
            return memory
        memory = self.cache(memory, features)
        if memory[CACHED] == CACHE_DISABLED:
            raise InvalidProblem(
                ErrorCode.STATE_MISMATCH, "the state was trained on another action list; use backend='python'"
            )
        return memory
