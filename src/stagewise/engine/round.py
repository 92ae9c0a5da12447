"""One round, composed of models and a rule: start or grow its memory, compute bounds, choose, learn.

Every fold is a kernel for the last group of models that calls the fold of the groups before it. A group is equal models
beside each other, and a loop: their code is compiled once. Kernels are captured one by one, never in a tuple, because
machine code is cached by what a closure captures (`cache.get_captured_values`).
"""

import math
from collections.abc import Callable
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple, cast

import numpy as np

from stagewise.engine.compile import Flags, Floats, Ints, as_python, factory, kernel
from stagewise.engine.layout import (
    AT_SAFE,
    CACHE_DISABLED,
    CACHED,
    CAPACITY,
    ELSEWHERE,
    FEATURES,
    FIRST_OFFSET,
    LIMITS,
    build_layout_reader,
    get_known_actions,
    pad_to_vector,
)
from stagewise.engine.model import EVERY, Kernel, Model, RoundSpec
from stagewise.engine.workspace import ALARM, UNCACHED, check_ceilings, get_workspace, is_same_action

Models = tuple[Model, ...]


def list_offsets(models: Models, layout: Ints, candidates: int, capacity: int) -> list[int]:
    """Return where each block begins in a memory, and where the cached features begin."""
    offsets = [int(pad_to_vector(FIRST_OFFSET + len(models)))]
    for index, model in enumerate(models):
        offsets.append(offsets[-1] + int(model.size(layout, index, candidates, capacity)))
    return offsets


def memory_size(models: Models, layout: Ints, candidates: int, capacity: int) -> int:
    """Return the length of a memory with these numbers of cached candidates and capacity."""
    return list_offsets(models, layout, candidates, capacity)[-1] + max(candidates, 0) * int(layout[FEATURES])


def write_header(models: Models, layout: Ints, memory: Floats, candidates: int, capacity: int) -> None:
    """Write an empty memory: cached candidates, capacity, and the offset of each block."""
    offsets = list_offsets(models, layout, candidates, capacity)[:-1]
    memory[:] = 0.0
    memory[CACHED], memory[CAPACITY] = float(candidates), float(capacity)
    memory[FIRST_OFFSET : FIRST_OFFSET + len(offsets)] = offsets


def fits_layout(models: Models, memory: Floats, layout: Ints, most_capacity: int) -> bool:
    """Return whether a memory can belong to a policy with this layout, by its header."""
    if memory.ndim != 1 or memory.size < FIRST_OFFSET + len(models):
        return False
    cached, capacity = memory[CACHED], memory[CAPACITY]
    if not (CACHE_DISABLED <= cached <= memory.size and 0 <= capacity <= most_capacity):  # false for NaN too
        return False
    if cached != int(cached) or capacity != int(capacity):
        return False
    offsets = list_offsets(models, layout, int(cached), int(capacity))
    if memory.size != offsets[-1] + max(int(cached), 0) * int(layout[FEATURES]):
        return False
    return bool(np.array_equal(memory[FIRST_OFFSET : FIRST_OFFSET + len(models)], offsets[:-1]))


@factory
def build_change(model: Model) -> Callable[..., None]:
    """Return the kernel that copies one block of a model to a memory that caches other candidates (K, d), or none."""
    view, change_block = model.view, cast(Kernel, model.change)

    @kernel
    def change(
        index: int, features: Floats, layout: Ints, settings: Floats, memory: Floats, changed: Floats, work: Floats
    ) -> None:
        old, new = view(layout, memory, index), view(layout, changed, index)
        change_block(layout, old, new, features, settings, memory, changed, work)

    return change


@factory
def build_widen(model: Model) -> Callable[..., None]:
    """Return the kernel that copies one block of a model to a memory with the same candidates and more capacity."""
    view, widen_block = model.view, cast(Kernel, model.widen)

    @kernel
    def widen(index: int, layout: Ints, memory: Floats, changed: Floats) -> None:
        widen_block(layout, view(layout, memory, index), view(layout, changed, index), memory, changed)

    return widen


def copy_block(model: Model, layout: Ints, index: int, memory: Floats, changed: Floats) -> None:
    """Copy a whole block, whose size stays."""
    length = model.size(layout, index, int(memory[CACHED]), int(memory[CAPACITY]))
    first, at = int(memory[FIRST_OFFSET + index]), int(changed[FIRST_OFFSET + index])
    changed[at : at + length] = memory[first : first + length]


def start_memory(models: Models, layout: Ints, settings: Floats, capacity: int, memory: Floats) -> None:
    """Write the memory of a policy without data and without cached candidates; it runs once, so it is not compiled."""
    write_header(models, layout, memory, 0, capacity)
    for index, model in enumerate(models):
        block = as_python(model.view)(layout, memory, index)
        as_python(model.start)(layout, block, settings, memory, np.empty(0))


def change_memory(
    models: Models, layout: Ints, settings: Floats, memory: Floats, candidates: Floats, capacity: int, changed: Floats
) -> None:
    """Write the same memory with these candidates (K, d) cached and this capacity; with none, disable caching."""
    count = len(candidates)
    write_header(models, layout, changed, count if count else int(CACHE_DISABLED), capacity)
    if count:
        changed[changed.size - candidates.size :] = candidates.ravel()
    work = np.empty(2 * max(candidates.shape[1], capacity, 1) + count + 8)
    for index, model in enumerate(models):
        if model.change is None:
            copy_block(model, layout, index, memory, changed)
        else:
            build_change(model)(index, candidates, layout, settings, memory, changed, work)


def widen_memory(models: Models, layout: Ints, memory: Floats, capacity: int, changed: Floats) -> None:
    """Write the same memory, with the same cached candidates, with capacity for more basis points or segments."""
    cached = int(memory[CACHED])
    write_header(models, layout, changed, cached, capacity)
    features = max(cached, 0) * int(layout[FEATURES])
    changed[changed.size - features :] = memory[memory.size - features :]
    for index, model in enumerate(models):
        if model.widen is None:
            copy_block(model, layout, index, memory, changed)
        else:
            build_widen(model)(index, layout, memory, changed)


class Group(NamedTuple):
    """Equal models beside each other."""

    model: Model
    first: int
    length: int


class Round(NamedTuple):
    """The compiled kernels of a round."""

    decide: Callable[..., int]
    learn: Callable[..., None]
    compute_bounds: Callable[..., int]
    choose: Callable[..., int]
    learn_at: Callable[..., None]
    read_blocks: Callable[..., Any]
    read_layout: Callable[..., Any]


def group_models(models: tuple[Model, ...]) -> tuple[Group, ...]:
    groups: list[Group] = []
    for model, equal in groupby(models):
        groups.append(Group(model, sum(group.length for group in groups), len(list(equal))))
    return tuple(groups)


@cache
def build_group_reader(view: Kernel, first: int, count: int) -> Kernel:
    more, last = int(count > 1), first + count - 1
    before: Any = build_group_reader(view, first, count - 1) if more else None

    @kernel
    def read_group(layout: Ints, memory: Floats) -> Any:
        if more:
            return before(layout, memory) + (view(layout, memory, last),)
        return (view(layout, memory, last),)

    return read_group


@cache
def build_block_reader(groups: tuple[Group, ...]) -> Kernel:
    """Return a kernel that reads all blocks of a memory, a tuple for each group, once for all rounds."""
    more, last = int(len(groups) > 1), groups[-1]
    before: Any = build_block_reader(groups[:-1]) if more else None
    read_group = build_group_reader(last.model.view, last.first, last.length)

    @kernel
    def read_blocks(layout: Ints, memory: Floats) -> Any:
        if more:
            return before(layout, memory) + (read_group(layout, memory),)
        return (read_group(layout, memory),)

    return read_blocks


@cache
def build_model_bounds(groups: tuple[Group, ...]) -> Kernel:
    """Return a kernel that writes the bounds of all models, and returns the first contradiction."""
    last, model = len(groups) - 1, groups[-1].model
    before: Any
    before, write, check = build_model_bounds(groups[:-1]) if last else None, model.bounds, model.check

    @kernel
    def fill_bounds(
        features: Floats, known: bool, blocks: Any, layout: Ints, settings: Floats, memory: Floats, bounds: Floats,
        work: Floats,
    ) -> int:  # fmt: skip
        contradiction = 0
        if last:
            contradiction = before(features, known, blocks, layout, settings, memory, bounds, work)
        for block in blocks[last]:
            write(layout, block, features, known, settings, memory, bounds, work)
            found = check(layout, block, settings, memory, bounds)
            contradiction = found if contradiction == 0 else contradiction
        return contradiction

    return fill_bounds


@cache
def build_bounds(spec: RoundSpec) -> Kernel:
    """Return a kernel that writes the bounds of every signal; it returns the code of a contradiction, or 0."""
    fill_bounds, mixes, samples = build_model_bounds(group_models(spec.models)), spec.rule.mixes, spec.rule.samples
    found: Any = tuple(dict.fromkeys(model.adjust for model in spec.models if model.adjust))
    if len(found) > 1:  # each adjusts the bounds of all signals
        raise ValueError(f"two models of one round adjust all bounds: {', '.join(model.name for model in spec.models)}")
    adjust: Any
    adjust, adjusts = (*found, None)[0], len(found)

    @kernel
    def compute_bounds(
        features: Floats, known: bool, blocks: Any, layout: Ints, settings: Floats, memory: Floats, bounds: Floats,
        work: Floats,
    ) -> int:  # fmt: skip
        contradiction = fill_bounds(features, known, blocks, layout, settings, memory, bounds, work)
        if contradiction == 0 and settings[ALARM] < math.inf:
            contradiction = check_ceilings(layout, settings, bounds)
        if adjusts:
            found = adjust(layout, settings, bounds, mixes, samples)
            if contradiction == 0 and settings[ALARM] < math.inf:
                contradiction = found
        return contradiction

    return compute_bounds


@cache
def build_sampling(groups: tuple[Group, ...], samples: int) -> Kernel:
    """Return a kernel that samples every signal, or the reward alone."""
    last, model = len(groups) - 1, groups[-1].model
    before: Any = build_sampling(groups[:-1], samples) if last else None
    write: Any = model.sample if samples == EVERY else model.sample_reward

    @kernel
    def sample(
        features: Floats, known: bool, blocks: Any, layout: Ints, settings: Floats, memory: Floats, bounds: Floats,
        seed: int, run: int, round_: int, work: Floats,
    ) -> None:  # fmt: skip
        if last:
            before(features, known, blocks, layout, settings, memory, bounds, seed, run, round_, work)
        for block in blocks[last]:
            write(layout, block, features, known, settings, memory, bounds, seed, run, round_, work)

    return sample


@cache
def build_choice(spec: RoundSpec) -> Kernel:
    """Return a kernel that chooses by the bounds: the candidate, or minus the reason code of the safe action."""
    rule, several = spec.rule, int(spec.rule.mixes and spec.limits > 1)
    choose_by_rule: Any
    prepare: Any
    choose_by_rule, samples, prepare, prepares = rule.choose, rule.samples, rule.prepare, int(rule.prepare is not None)
    sample: Any = build_sampling(group_models(spec.models), samples) if samples else None

    @kernel
    def choose(
        features: Floats, known: bool, eligible: Flags, contradiction: int, blocks: Any, layout: Ints, settings: Floats,
        memory: Floats, bounds: Floats, rule: Floats, per_limit: Floats, work: Floats, answer: Floats, seed: int,
        run: int, round_: int,
    ) -> int:  # fmt: skip
        if prepares:
            prepare(bounds, rule)
        if samples:
            sample(features, known, blocks, layout, settings, memory, bounds, seed, run, round_, work)
        factors, basis = per_limit[: layout[LIMITS]], per_limit[layout[LIMITS] :] if several else None
        return choose_by_rule(
            features, eligible, contradiction, layout, settings, bounds, rule, factors, basis, answer, seed, run, round_
        )

    return choose


@cache
def build_learning(groups: tuple[Group, ...]) -> Kernel:
    """Return a kernel that learns the outcome of a candidate; `cached_index`: its index in the cache.

    A NaN signal has not arrived yet, and its block is unchanged.
    """
    last, model = len(groups) - 1, groups[-1].model
    before: Any
    before, learn = build_learning(groups[:-1]) if last else None, model.learn

    @kernel
    def learn_at(
        blocks: Any, action: Floats, index: int, cached_index: int, step: float, cached_only: bool, values: Floats,
        layout: Ints, settings: Floats, memory: Floats, work: Floats,
    ) -> None:  # fmt: skip
        if last:
            before(blocks, action, index, cached_index, step, cached_only, values, layout, settings, memory, work)
        for block in blocks[last]:
            observed = values[block.first : block.first + block.signals]
            if not math.isnan(observed[0]):
                learn(layout, block, action, index, cached_index, step, cached_only, observed, settings, memory, work)

    return learn_at


@kernel
def are_cached(features: Floats, known: Floats) -> bool:
    """Return whether these are the cached candidates."""
    if known.shape[0] != features.shape[0]:
        return False
    for candidate in range(known.shape[0]):
        for i in range(known.shape[1]):
            if known[candidate, i] != features[candidate, i]:
                return False
    return True


@kernel
def is_on_ray(action: Floats, safe: Floats, features: Floats, index: int, step: float) -> bool:
    """Return whether an action is, to the bit, this step on this ray."""
    equal = True
    for i in range(action.size):
        equal &= action[i] == (1.0 - step) * safe[i] + step * features[index, i]
    return equal


@factory
def build_round(spec: RoundSpec) -> Round:
    """Return a round of these models under this rule, compiled when it is first played."""
    groups = group_models(spec.models)
    compute_bounds, choose, learn_at = build_bounds(spec), build_choice(spec), build_learning(groups)
    read_blocks, read_layout = build_block_reader(groups), build_layout_reader(len(spec.models), int(spec.limits == 1))
    caches = int(any(model.caches for model in spec.models))

    @kernel
    def decide(
        features: Floats, eligible: Flags, layout: Ints, settings: Floats, memory: Floats, answer: Floats,
        scratch: Floats, seed: int, run: int, round_: int,
    ) -> int:  # fmt: skip
        """Return the candidate that is played, or minus the reason code of the safe action; write the answer."""
        fixed = read_layout(layout)
        workspace = get_workspace(fixed, features.shape[0], scratch)
        known = are_cached(features, get_known_actions(fixed, settings, memory).cached)
        answer[UNCACHED] = 0.0 if known or memory[CACHED] == CACHE_DISABLED else 1.0
        blocks = read_blocks(fixed, memory)
        contradiction = compute_bounds(
            features, known, blocks, fixed, settings, memory, workspace.bounds, workspace.work
        )
        return choose(
            features, known, eligible, contradiction, blocks, fixed, settings, memory, workspace.bounds, workspace.rule,
            workspace.per_limit, workspace.work, answer, seed, run, round_,
        )  # fmt: skip

    @kernel
    def learn(
        action: Floats, index: int, step: float, values: Floats, layout: Ints, settings: Floats, memory: Floats,
        work: Floats,
    ) -> None:  # fmt: skip
        """Learn the reward and the costs (1 + m,) of an action; its index is used only after it is checked."""
        cached_index, fixed = index, read_layout(layout)
        if caches:
            known = get_known_actions(fixed, settings, memory)
            count = known.cached.shape[0]
            if (
                count == 0
                or index >= count
                or (index >= 0 and not is_on_ray(action, known.safe, known.cached, index, step))
                or (index == AT_SAFE and not is_same_action(action, known.safe))
            ):
                cached_index = ELSEWHERE
        learn_at(
            read_blocks(fixed, memory), action, index, cached_index, step, False, values, fixed, settings, memory, work
        )

    return Round(decide, learn, compute_bounds, choose, learn_at, read_blocks, read_layout)
