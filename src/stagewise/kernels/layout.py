"""Where everything stands: the whole numbers of a policy, and with them every place in its settings and its memory.

A policy crosses into compiled code as three arrays (docs/decisions/0004-one-array-crosses-into-a-kernel.md):

    layout    limits m, parts P, switches, d, sampling, home | the whole numbers of every part
    settings  α_r, α_c, log 1/a | thresholds | limits | ceilings | x₀ | r₀, c₀ if ROVING | the numbers of every part |
              at the end, where CERTIFIED: ν, C, the largest mean reward; where a reward may be sampled: 2LS
    memory    candidates followed, capacity, where each part begins | every part's own | the features that are followed

A part is a model of the signals `first` to `first + count`; signals that can share a matrix share a part.
"""

from typing import NamedTuple

from stagewise.kernels.compile import Floats, Ints, kernel

RIDGE, ARMS, SPACE = 0, 1, 2  # kinds of parts: linear, arm by arm, and in a reproducing-kernel space;
APIECE, CELLS = 3, 4  # linear in the context with a regression for each action, rates by action and segment
EVENTS = 5  # linear with rare outcomes
DIRECTIONAL, INFLATED, OFFERS_SAFE, RETURNS, CERTIFIED = 1, 2, 4, 8, 16  # switches (see `promise`)
ROVING, DECLARED = 32, 64  # of the safe action
LIMITS, PARTS, SWITCHES, FEATURES, SAMPLING, HOME = 0, 1, 2, 3, 4, 5  # in the layout, and then the parts:
FIRST_PART, FIELDS = 6, 10
FIRST_TERM = 3  # in the settings, behind α_r, α_c and log 1/a
FOLLOWED, CAPACITY, FIRST_PLACE = 0, 1, 2  # in the memory
SLOT, CELL = 2, 4  # numbers of a segment, and of each of its cells (see `signals.cells`)
NOISY, RARE = 1, 2  # sets of their own: for noise of a known size, for outcomes in [0, 1]
EVENT_SUMS = 8  # sums that are kept of a block of features
NEVER = -1.0  # followed: none, and none will be, since candidates changed once
WIDE = 8  # parts and rows begin at multiples of so many numbers: full vectors, aligned where the array is, no rests


class Part(NamedTuple):
    """A model of some signals, and where it stands."""

    kind: int  # RIDGE, ARMS, SPACE, APIECE, CELLS or EVENTS
    first: int  # its first signal: 0 is the reward, 1 the first cost
    signals: int  # k, how many it has
    size: int  # n: learned coordinates, arms, room for basis points, or features of a block of EVENTS
    radius: int  # which (see `signals.radius`, `signals.arms`); of EVENTS `table_capacity`
    anchored: int  # 1: the values at the safe action are known
    reflected: int  # 1: and it is not the zero vector, so that one direction less is learned
    detail: int  # of each kind its own: `similarity_of`, `regressions_of`, `segment_column`, `blocks_of`
    sharp: int  # candidates that come back have sets of their own (see `signals.own`): NOISY, RARE; or 0
    settings: int  # where its settings begin,
    memory: int  # and its memory
    followed: int  # how many candidates it follows, the safe action last; 0: none
    width: int  # F, the same, padded
    tally: Floats  # what a regression remembers (see `signals.ridge`): (3 + 2k,),
    learned: Floats  # (n + k, n),
    rows: Floats  # (n + k + 1, F); empty for arms
    sets: Floats  # of candidates that come back, row after row (see `signals.own`)


@kernel
def similarity_of(part: Part) -> int:
    """Return which reproducing kernel a SPACE has (see `signals.similarity`)."""
    return part.detail


@kernel
def regressions_of(part: Part) -> int:
    """Return how many regressions are APIECE: one for every action."""
    return part.detail


@kernel
def segment_column(part: Part) -> int:
    """Return in which feature of a row the segment of CELLS stands; −1: in none, there are no segments."""
    return part.detail


@kernel
def blocks_of(part: Part) -> int:
    """Return how many blocks of features EVENTS have."""
    return part.detail


@kernel
def table_capacity(part: Part) -> int:
    """Return how many EVENTS the table has room for."""
    return part.radius


@kernel
def padded(count: int) -> int:
    """Return a count rounded up to whole vectors."""
    return (count + WIDE - 1) // WIDE * WIDE


@kernel
def with_safe(kind: int, candidates: int) -> int:
    """Return how many candidates a part follows, the safe action included: alone it is followed in a SPACE only."""
    if candidates > 0:
        return candidates + 1
    return 1 if kind == SPACE else 0


@kernel
def part_of(layout: Ints, memory: Floats, which: int) -> Part:
    """Return a part as it stands in this memory."""
    at, kind = FIRST_PART + FIELDS * which, layout[FIRST_PART + FIELDS * which]
    followed, place, signals = with_safe(kind, int(memory[FOLLOWED])), int(memory[FIRST_PLACE + which]), layout[at + 2]
    size = int(memory[CAPACITY]) if kind == SPACE else layout[at + 3]
    n, k, width = (size, signals, padded(followed)) if kind in (RIDGE, SPACE) else (0, 0, 0)
    sets, learned = place + (n + k + 1) * width, place + kept_rows(n, k, layout[at + 8]) * width
    tally = learned + (n + k) * n
    return Part(
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
        place,
        followed,
        padded(followed),
        memory[tally : tally + tally_size(k)],
        memory[learned:tally].reshape(n + k, n),
        memory[place:sets].reshape(n + k + 1, width),
        memory[sets:learned],
    )


@kernel
def tally_size(count: int) -> int:
    """Return how many sums a regression of k signals keeps (see `signals.ridge`)."""
    return 3 + 2 * count


@kernel
def piece_size(size: int) -> int:
    """Return how many numbers the regression of one signal for one action takes (see `signals.apiece`)."""
    return (size + 1) * size + tally_size(1)


@kernel
def slot_size(actions: int) -> int:
    """Return how many numbers a segment takes."""
    return SLOT + CELL * actions


@kernel
def kept_rows(size: int, count: int, sharp: int) -> int:
    """Return how many numbers a regression keeps of every followed candidate."""
    own = (1 + 3 * count if sharp > 0 else 0) + (2 + count if sharp == RARE else 0)
    return size + count + 1 + own


@kernel
def block_size(size: int) -> int:
    """Return how many numbers are kept of a block of features (see `signals.events`)."""
    return EVENT_SUMS + 4 * size + 2 * size * size


@kernel
def events_size(size: int, blocks: int, capacity: int) -> int:
    """Return how many numbers stand for blocks of features and a table of events."""
    return 1 + size * size + 2 * size + blocks * block_size(size) + capacity * (size + 2)


@kernel
def part_size(layout: Ints, which: int, candidates: int, capacity: int) -> int:
    """Return how many numbers of memory a part takes."""
    at = FIRST_PART + FIELDS * which
    kind, k, n = layout[at], layout[at + 2], layout[at + 3]
    if kind == ARMS:
        return padded((1 + 4 * k) * n + 1 + k)
    if kind == APIECE:
        return padded(layout[at + 7] * piece_size(n))
    if kind == CELLS:
        return padded(1 + slot_size(n) * (capacity if layout[at + 7] >= 0 else 1))
    if kind == EVENTS:
        return padded(events_size(n, layout[at + 7], layout[at + 4]))
    width = padded(with_safe(kind, candidates))
    if kind == RIDGE:
        return padded(tally_size(k) + (n + k) * n + kept_rows(n, k, layout[at + 8]) * width)
    basis = (capacity + 1) * width + 2 + capacity * (layout[FEATURES] + 1 + capacity)
    return padded(tally_size(k) + (capacity + k) * capacity + (capacity + k + 1) * width + basis)


@kernel
def memory_size(layout: Ints, candidates: int, capacity: int) -> int:
    """Return the length of a memory that follows so many candidates, with room for so many basis points."""
    total = padded(FIRST_PLACE + layout[PARTS]) + max(candidates, 0) * layout[FEATURES]
    for which in range(layout[PARTS]):
        total += part_size(layout, which, candidates, capacity)
    return total


@kernel
def set_out(layout: Ints, memory: Floats, candidates: int, capacity: int) -> None:
    """Write an empty memory: what it follows, its capacity, and where each part begins."""
    memory[:] = 0.0
    memory[FOLLOWED], memory[CAPACITY] = float(candidates), float(capacity)
    place = padded(FIRST_PLACE + layout[PARTS])
    for which in range(layout[PARTS]):
        memory[FIRST_PLACE + which] = float(place)
        place += part_size(layout, which, candidates, capacity)


class Safe(NamedTuple):
    """The safe action, in a tuple: a kernel cannot return a part of an array alone."""

    features: Floats  # (d,) x₀


@kernel
def safe_action(layout: Ints, settings: Floats) -> Safe:
    """Return the safe action, as a view of the settings."""
    at = FIRST_TERM + 3 * layout[LIMITS]
    return Safe(settings[at : at + layout[FEATURES]])


class Roving(NamedTuple):
    """The safe action of a round, and what is declared of it."""

    features: Floats  # (d,) x₀; NaN: none is known
    reward: Floats  # (1,) r₀, what it is worth at least
    costs: Floats  # (m,) c₀, what it costs at most


@kernel
def roving_action(layout: Ints, settings: Floats) -> Roving:
    """Return the safe action of a round: a policy that is ROVING has its settings for each."""
    at = FIRST_TERM + 3 * layout[LIMITS]
    end = at + layout[FEATURES]
    return Roving(settings[at:end], settings[end : end + 1], settings[end + 1 : end + 1 + layout[LIMITS]])


@kernel
def set_safe_of_round(layout: Ints, settings: Floats, features: Floats, reward: float, costs: Floats) -> None:
    """Write the safe action of a round, and what is declared of it."""
    at = FIRST_TERM + 3 * layout[LIMITS]
    end = at + features.size
    settings[at:end] = features
    settings[end] = reward
    settings[end + 1 : end + 1 + costs.size] = costs


@kernel
def spread_of(settings: Floats) -> float:
    """Return ν, how many posterior deviations the draws of a CERTIFIED choice spread."""
    return settings[settings.size - 3]


@kernel
def patience_of(settings: Floats) -> float:
    """Return C, how much regret a CERTIFIED proposal may cost, in units of what is unknown of it."""
    return settings[settings.size - 2]


@kernel
def largest_reward(settings: Floats) -> float:
    """Return the largest mean reward there is, where a choice is CERTIFIED."""
    return settings[settings.size - 1]


@kernel
def length_of(settings: Floats) -> float:
    """Return 2LS, the length of what linear rewards lie in, where a reward may be sampled."""
    return settings[settings.size - 1]


@kernel
def is_set_out(layout: Ints, memory: Floats) -> bool:
    """Say whether every part of a memory begins where it would be written."""
    place = padded(FIRST_PLACE + layout[PARTS])
    for which in range(layout[PARTS]):
        if memory[FIRST_PLACE + which] != place:
            return False
        place += part_size(layout, which, int(memory[FOLLOWED]), int(memory[CAPACITY]))
    return True


class Known(NamedTuple):
    """Actions that a policy knows before it is offered any."""

    safe: Floats  # (d,) x₀
    followed: Floats  # (K, d) the candidates that are followed


@kernel
def known_actions(layout: Ints, settings: Floats, memory: Floats) -> Known:
    """Return the safe action and what is followed."""
    at, count, d = FIRST_TERM + 3 * layout[LIMITS], max(int(memory[FOLLOWED]), 0), layout[FEATURES]
    return Known(settings[at : at + d], memory[memory.size - count * d :].reshape(count, d))
