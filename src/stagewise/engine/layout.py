"""Layout of the flat arrays that describe a policy to compiled code: offsets in settings and memory.

A policy is passed to kernels as three arrays (docs/decisions/0004-one-array-crosses-into-a-kernel.md):

    layout    limits m, blocks B, switches, d, sampling, safe index | the integers of every model block
    settings  α_r, α_c, log 1/a | thresholds | limits | ceilings | x₀ | r₀, c₀ if PER_ROUND_SAFE | the floats of every
              block | at the end, if CERTIFIED: ν, C, the largest mean reward; if a reward may be sampled: 2LS
    memory    cached candidates, capacity, offset of each block | every block's own memory | cached features

A block is a model of the signals `first` to `first + count`; signals that can share a matrix share a block.

Compiled rounds read a layout as a tuple with known constants, since LLVM re-reads an array after every store and cannot
unroll loops over limits or signals. With one limit and one model of both signals these loops disappear: a round of
LC-LUCB on ten rays does a seventh less work.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from stagewise.engine.compile import Floats, Ints, factory, kernel

DIRECTIONAL, INFLATED, OFFERS_SAFE, ENFORCES_LIMITS, CERTIFIED = 1, 2, 4, 8, 16  # switches
PER_ROUND_SAFE, SAFE_COST_DECLARED = 32, 64  # switches about the safe action
LIMITS, MODEL_BLOCKS, SWITCHES, FEATURES, SAMPLING, SAFE_INDEX = 0, 1, 2, 3, 4, 5  # in the layout
FIRST_MODEL_BLOCK, MODEL_BLOCK_FIELDS = 6, 9
FIRST_THRESHOLD = 3  # in the settings, after α_r, α_c and log 1/a
CACHED, CAPACITY, FIRST_OFFSET = 0, 1, 2  # in the memory
SUB_GAUSSIAN, UNIT_RANGE = 1, 2  # kinds of per-candidate sets: for known noise, for outcomes in [0, 1]
CACHE_DISABLED = -1.0  # in CACHED: candidates have changed, so none are cached from now on
VECTOR_WIDTH = 8  # blocks and rows begin at multiples of this, so that vector instructions are aligned


class ModelBlock(NamedTuple):
    """A block: the integers of a layout about a model of some signals, and the offset of its memory."""

    first: int  # its first signal: 0 is the reward, 1 the first cost
    signals: int  # k, the number of signals
    size: int  # n: learned coordinates, arms, actions, or features of a block of features
    radius: int  # kind of radius or interval
    anchored: int  # 1: the values at the safe action are known
    reflected: int  # 1: and x₀ is not the zero vector, so that one direction less is learned
    detail: int  # what its model needs besides: actions, blocks of features, a column, a kind
    per_candidate: int  # kind of per-candidate sets (see `models.per_candidate`): SUB_GAUSSIAN, UNIT_RANGE; or 0
    settings: int  # offset of its settings
    memory: int  # offset of its memory


@kernel
def pad_to_vector(count: int) -> int:
    """Return a count rounded up to a multiple of VECTOR_WIDTH."""
    return (count + VECTOR_WIDTH - 1) // VECTOR_WIDTH * VECTOR_WIDTH


@kernel
def get_model_block(layout: Ints, memory: Floats, index: int) -> ModelBlock:
    at = FIRST_MODEL_BLOCK + MODEL_BLOCK_FIELDS * index
    return ModelBlock(
        layout[at], layout[at + 1], layout[at + 2], layout[at + 3], layout[at + 4], layout[at + 5], layout[at + 6],
        layout[at + 7], layout[at + 8], int(memory[FIRST_OFFSET + index]),
    )  # fmt: skip


def read_block_fields(layout: Ints, index: int) -> ModelBlock:
    """Return what a layout says of a block, without a memory."""
    at = FIRST_MODEL_BLOCK + MODEL_BLOCK_FIELDS * index
    fields: list[int] = layout[at : at + MODEL_BLOCK_FIELDS].tolist()
    return ModelBlock._make([*fields, 0])


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
def get_max_regret_ratio(settings: Floats) -> float:
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
    at = FIRST_MODEL_BLOCK + MODEL_BLOCK_FIELDS * (block_count - 1)
    both = int(single > 0 and is_last > 0 and block_count == 1)

    @kernel
    def head(layout: Ints) -> tuple[int, ...]:
        return 1 if single else layout[0], layout[1], layout[2], layout[3], layout[4], layout[5]

    @kernel
    def last(layout: Ints) -> tuple[int, ...]:
        first, signals = (0, 2) if both else (layout[at], layout[at + 1])
        return (
            first, signals, layout[at + 2], layout[at + 3], layout[at + 4], layout[at + 5], layout[at + 6],
            layout[at + 7], layout[at + 8],
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
