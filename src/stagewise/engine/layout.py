"""Layout of the flat arrays that describe a policy to compiled code: offsets in settings and memory.

A policy is passed to kernels as three arrays (docs/decisions/0004-one-array-crosses-into-a-kernel.md):

    layout    limits m, blocks B, switches, d, sampling, safe index | the integers of every model block
    settings  α_r, α_c, log 1/a | thresholds | limits | ceilings | x₀ | r₀, c₀ if PER_ROUND_SAFE | the floats of every
              block | at the end, if CERTIFIED: ν, C, the largest mean reward; if a reward may be sampled: 2LS
    memory    cached candidates, capacity, offset of each block | every block's own memory | cached features

A block is a model of the signals `first` to `first + count`; signals that can share a matrix share a block.

A layout as a tuple with known constants, for the compiled round.

LLVM re-reads an array after every store and cannot unroll loops over limits or signals. With one limit and one model of
both signals these loops disappear: a round of LC-LUCB on ten rays does a seventh less work.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from stagewise.engine.compile import Floats, Ints, factory, kernel

RIDGE, ARMS, KERNEL_RIDGE = 0, 1, 2  # kinds of blocks: linear, per arm, kernel ridge
PER_ACTION_RIDGE, SEGMENT_RATES = 3, 4  # a regression for each action on the context; rates by action and segment
RARE_EVENTS = 5  # linear with rare outcomes
DIRECTIONAL, INFLATED, OFFERS_SAFE, ENFORCES_LIMITS, CERTIFIED = 1, 2, 4, 8, 16  # switches (see `constraints`)
PER_ROUND_SAFE, SAFE_COST_DECLARED = 32, 64  # switches about the safe action
LIMITS, MODEL_BLOCKS, SWITCHES, FEATURES, SAMPLING, SAFE_INDEX = 0, 1, 2, 3, 4, 5  # in the layout
FIRST_MODEL_BLOCK, MODEL_BLOCK_FIELDS = 6, 10
FIRST_THRESHOLD = 3  # in the settings, after α_r, α_c and log 1/a
CACHED, CAPACITY, FIRST_OFFSET = 0, 1, 2  # in the memory
SLOT_HEADER_SIZE, CELL_SIZE = 2, 4  # sizes of a segment's header and of a cell (see `models.segment_rates`)
SUB_GAUSSIAN, UNIT_RANGE = 1, 2  # kinds of per-candidate sets: for known noise, for outcomes in [0, 1]
EVENT_SUMS = 8  # sums that are kept of a block of features
CACHE_DISABLED = -1.0  # in CACHED: candidates have changed, so none are cached from now on
VECTOR_WIDTH = 8  # blocks and rows begin at multiples of this, so that vector instructions are aligned


class ModelBlock(NamedTuple):
    """A model of some signals, with its offsets and views of the memory."""

    kind: int  # RIDGE, ARMS, KERNEL_RIDGE, PER_ACTION_RIDGE, SEGMENT_RATES or RARE_EVENTS
    first: int  # its first signal: 0 is the reward, 1 the first cost
    signals: int  # k, the number of signals
    size: int  # n: learned coordinates, arms, capacity for basis points, or features of a block of RARE_EVENTS
    radius: int  # kind of radius (see `models.radius`, `models.arm_means`); of RARE_EVENTS `get_table_capacity`
    anchored: int  # 1: the values at the safe action are known
    reflected: int  # 1: and x₀ is not the zero vector, so that one direction less is learned
    detail: int  # by kind: `get_similarity_kind`, `count_regressions`, `get_segment_column` or `count_feature_blocks`
    per_candidate: int  # kind of per-candidate sets (see `models.per_candidate`): SUB_GAUSSIAN, UNIT_RANGE; or 0
    settings: int  # offset of its settings
    memory: int  # offset of its memory
    cached: int  # number of cached candidates, the safe action last; 0: none
    width: int  # F, the same, padded
    tally: Floats  # (3 + 2k,) sums of a regression (see `models.ridge`)
    learned: Floats  # (n + k, n)
    rows: Floats  # (n + k + 1, F); empty for arms
    sets: Floats  # per-candidate sets, row after row (see `models.per_candidate`)


@kernel
def get_similarity_kind(block: ModelBlock) -> int:
    """Return the reproducing kernel of a KERNEL_RIDGE block (see `models.similarity`)."""
    return block.detail


@kernel
def count_regressions(block: ModelBlock) -> int:
    """Return the number of regressions of a PER_ACTION_RIDGE block: one for every action."""
    return block.detail


@kernel
def get_segment_column(block: ModelBlock) -> int:
    """Return the feature column that holds the segment of SEGMENT_RATES; −1: no segments."""
    return block.detail


@kernel
def count_feature_blocks(block: ModelBlock) -> int:
    """Return the number of feature blocks of RARE_EVENTS."""
    return block.detail


@kernel
def get_table_capacity(block: ModelBlock) -> int:
    """Return the capacity of the event table of RARE_EVENTS."""
    return block.radius


@kernel
def pad_to_vector(count: int) -> int:
    """Return a count rounded up to a multiple of VECTOR_WIDTH."""
    return (count + VECTOR_WIDTH - 1) // VECTOR_WIDTH * VECTOR_WIDTH


@kernel
def count_with_safe(kind: int, candidates: int) -> int:
    """Return the number of cached candidates including the safe action, which KERNEL_RIDGE caches even alone."""
    if candidates > 0:
        return candidates + 1
    return 1 if kind == KERNEL_RIDGE else 0


@kernel
def get_model_block(layout: Ints, memory: Floats, index: int) -> ModelBlock:
    """Return a block with its views of this memory."""
    at, kind = FIRST_MODEL_BLOCK + MODEL_BLOCK_FIELDS * index, layout[FIRST_MODEL_BLOCK + MODEL_BLOCK_FIELDS * index]
    cached, offset, signals = (
        count_with_safe(kind, int(memory[CACHED])),
        int(memory[FIRST_OFFSET + index]),
        layout[at + 2],
    )
    size = int(memory[CAPACITY]) if kind == KERNEL_RIDGE else layout[at + 3]
    n, k, width = (size, signals, pad_to_vector(cached)) if kind in (RIDGE, KERNEL_RIDGE) else (0, 0, 0)
    sets, learned = offset + (n + k + 1) * width, offset + count_cached_rows(n, k, layout[at + 8]) * width
    tally = learned + (n + k) * n
    return ModelBlock(
        kind,
        layout[at + 1],
        signals,
        size,
        layout[at + 4],
        layout[at + 5],
        layout[at + 6],
        layout[at + 7],
        layout[at + 8],
        layout[at + 9],
        offset,
        cached,
        pad_to_vector(cached),
        memory[tally : tally + tally_size(k)],
        memory[learned:tally].reshape(n + k, n),
        memory[offset:sets].reshape(n + k + 1, width),
        memory[sets:learned],
    )


@kernel
def tally_size(count: int) -> int:
    """Return the number of sums that a regression of k signals keeps (see `models.ridge`)."""
    return 3 + 2 * count


@kernel
def regression_size(size: int) -> int:
    """Return the length of the regression of one signal for one action (see `models.per_action_ridge`)."""
    return (size + 1) * size + tally_size(1)


@kernel
def slot_size(actions: int) -> int:
    """Return the length of a segment's slot."""
    return SLOT_HEADER_SIZE + CELL_SIZE * actions


@kernel
def count_cached_rows(size: int, count: int, per_candidate: int) -> int:
    """Return the number of values that a regression keeps of every cached candidate."""
    own = (1 + 3 * count if per_candidate > 0 else 0) + (2 + count if per_candidate == UNIT_RANGE else 0)
    return size + count + 1 + own


@kernel
def feature_block_size(size: int) -> int:
    """Return the length of a block of features (see `models.rare_events`)."""
    return EVENT_SUMS + 4 * size + 2 * size * size


@kernel
def rare_events_size(size: int, blocks: int, capacity: int) -> int:
    """Return the length of the memory of blocks of features and a table of events."""
    return 1 + size * size + 2 * size + blocks * feature_block_size(size) + capacity * (size + 2)


@kernel
def model_block_size(layout: Ints, index: int, candidates: int, capacity: int) -> int:
    """Return the length of a block's memory."""
    at = FIRST_MODEL_BLOCK + MODEL_BLOCK_FIELDS * index
    kind, k, n = layout[at], layout[at + 2], layout[at + 3]
    if kind == ARMS:
        return pad_to_vector((1 + 4 * k) * n + 1 + k)
    if kind == PER_ACTION_RIDGE:
        return pad_to_vector(layout[at + 7] * regression_size(n))
    if kind == SEGMENT_RATES:
        return pad_to_vector(1 + slot_size(n) * (capacity if layout[at + 7] >= 0 else 1))
    if kind == RARE_EVENTS:
        return pad_to_vector(rare_events_size(n, layout[at + 7], layout[at + 4]))
    width = pad_to_vector(count_with_safe(kind, candidates))
    if kind == RIDGE:
        return pad_to_vector(tally_size(k) + (n + k) * n + count_cached_rows(n, k, layout[at + 8]) * width)
    basis = (capacity + 1) * width + 2 + capacity * (layout[FEATURES] + 1 + capacity)
    return pad_to_vector(tally_size(k) + (capacity + k) * capacity + (capacity + k + 1) * width + basis)


@kernel
def memory_size(layout: Ints, candidates: int, capacity: int) -> int:
    """Return the length of a memory with these numbers of cached candidates and basis points."""
    total = pad_to_vector(FIRST_OFFSET + layout[MODEL_BLOCKS]) + max(candidates, 0) * layout[FEATURES]
    for index in range(layout[MODEL_BLOCKS]):
        total += model_block_size(layout, index, candidates, capacity)
    return total


@kernel
def write_memory_header(layout: Ints, memory: Floats, candidates: int, capacity: int) -> None:
    """Write an empty memory: cached candidates, capacity, and the offset of each block."""
    memory[:] = 0.0
    memory[CACHED], memory[CAPACITY] = float(candidates), float(capacity)
    offset = pad_to_vector(FIRST_OFFSET + layout[MODEL_BLOCKS])
    for index in range(layout[MODEL_BLOCKS]):
        memory[FIRST_OFFSET + index] = float(offset)
        offset += model_block_size(layout, index, candidates, capacity)


class SafeFeatures(NamedTuple):
    """The safe action in a tuple, because a kernel cannot return a slice alone."""

    features: Floats  # (d,) x₀


@kernel
def get_safe_action(layout: Ints, settings: Floats) -> SafeFeatures:
    """Return the safe action, as a view of the settings."""
    at = FIRST_THRESHOLD + 3 * layout[LIMITS]
    return SafeFeatures(settings[at : at + layout[FEATURES]])


class RoundSafeAction(NamedTuple):
    """The safe action of a round, and what is declared of it."""

    features: Floats  # (d,) x₀; NaN: unknown
    reward: Floats  # (1,) r₀, a lower bound on its reward
    costs: Floats  # (m,) c₀, upper bounds on its costs


@kernel
def get_round_safe_action(layout: Ints, settings: Floats) -> RoundSafeAction:
    """Return the safe action of a round; a PER_ROUND_SAFE policy has settings for each round."""
    at = FIRST_THRESHOLD + 3 * layout[LIMITS]
    end = at + layout[FEATURES]
    return RoundSafeAction(settings[at:end], settings[end : end + 1], settings[end + 1 : end + 1 + layout[LIMITS]])


@kernel
def set_round_safe_action(layout: Ints, settings: Floats, features: Floats, reward: float, costs: Floats) -> None:
    """Write the safe action of a round, and what is declared of it."""
    at = FIRST_THRESHOLD + 3 * layout[LIMITS]
    end = at + features.size
    settings[at:end] = features
    settings[end] = reward
    settings[end + 1 : end + 1 + costs.size] = costs


@kernel
def get_posterior_scale(settings: Floats) -> float:
    """Return ν, the scale of posterior draws of a CERTIFIED rule, in posterior deviations."""
    return settings[settings.size - 3]


@kernel
def get_certificate_factor(settings: Floats) -> float:
    """Return C: a CERTIFIED proposal may have a regret of at most C times its uncertainty."""
    return settings[settings.size - 2]


@kernel
def get_largest_reward(settings: Floats) -> float:
    """Return the largest mean reward that is possible, if CERTIFIED."""
    return settings[settings.size - 1]


@kernel
def get_reward_range(settings: Floats) -> float:
    """Return 2LS, the length of the range of linear rewards, if a reward may be sampled."""
    return settings[settings.size - 1]


@kernel
def is_memory_header_valid(layout: Ints, memory: Floats) -> bool:
    """Return whether every block of a memory has the offset that the layout implies."""
    offset = pad_to_vector(FIRST_OFFSET + layout[MODEL_BLOCKS])
    for index in range(layout[MODEL_BLOCKS]):
        if memory[FIRST_OFFSET + index] != offset:
            return False
        offset += model_block_size(layout, index, int(memory[CACHED]), int(memory[CAPACITY]))
    return True


class KnownActions(NamedTuple):
    """Actions that are part of settings and memory."""

    safe: Floats  # (d,) x₀
    cached: Floats  # (K, d) the cached candidates


@kernel
def get_known_actions(layout: Ints, settings: Floats, memory: Floats) -> KnownActions:
    """Return the safe action and the cached candidates."""
    at, count, d = FIRST_THRESHOLD + 3 * layout[LIMITS], max(int(memory[CACHED]), 0), layout[FEATURES]
    return KnownActions(settings[at : at + d], memory[memory.size - count * d :].reshape(count, d))


AT_SAFE, ELSEWHERE = -1, -2  # in place of the index of the cached candidate whose ray contains an observed action


@factory
def build_layout_reader(block_count: int, single: int, is_last: int = 1) -> Callable[..., Any]:
    """Return a kernel that makes a tuple of a layout with this many blocks; `single`: there is one limit.

    `is_last`: no more blocks follow.
    """
    at, both = (
        FIRST_MODEL_BLOCK + MODEL_BLOCK_FIELDS * (block_count - 1),
        int(single > 0 and is_last > 0 and block_count == 1),
    )

    @kernel
    def head(layout: Ints) -> tuple[int, ...]:
        return 1 if single else layout[0], layout[1], layout[2], layout[3], layout[4], layout[5]

    @kernel
    def last(layout: Ints) -> tuple[int, ...]:
        first, signals = (0, 2) if both else (layout[at + 1], layout[at + 2])
        return (
            layout[at], first, signals, layout[at + 3], layout[at + 4], layout[at + 5], layout[at + 6], layout[at + 7],
            layout[at + 8], layout[at + 9],
        )  # fmt: skip

    before = build_layout_reader(block_count - 1, single, 0) if block_count > 1 else head

    @kernel
    def read_layout(layout: Ints) -> tuple[int, ...]:
        return before(layout) + last(layout)

    return head if block_count == 0 else read_layout


@kernel
def copy_values(source: Floats, source_start: int, target: Floats, target_start: int, count: int) -> None:
    """Copy this many numbers."""
    for i in range(count):
        target[target_start + i] = source[source_start + i]
