"""Ridge regression of several signals on the same features, one observation at a time.

A part's memory is two tables and its sums:

    rows  (n + k + 1, F) of the candidates that come back: Tz, their estimates, zᵀV⁻¹z = ‖Tz‖²; the safe action last
    own   (n + k, n)     T, lower triangular with V⁻¹ = TᵀT, V = λI + Σ zzᵀ; then the fits V⁻¹ Σ y z, a row a signal
    tally (3 + 2k,)      log det V/λⁿ, the observations, those at x₀ | Σ e²/(1 + z'V⁻¹z) | Σ (y − known) at x₀

What is followed moves with every observation, by the same recursion that moves T: a look at M followed candidates takes
O(M) instead of O(Mn²).

Anchored: the values at x₀ are known, and only the n = d−1 directions orthogonal to it are learned (n = d at x₀ = 0). A
Householder reflection H turns x₀ onto the last axis: z is Hx without its last entry, which is ±<x, e₀>. Free: nothing
is known at x₀, and z = x.

    settings: λ, L, unit | reflector (d,), where reflected | R | S | log 1/δ | known at x₀, all (k,)
"""

import math
from typing import NamedTuple

from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.layout import Part, tally_size

LOG_DET, TAKEN, SAFE_TAKEN, SQUARES = 0, 1, 2, 3  # in the tally
AT_SAFE, ELSEWHERE = -1, -2  # in the place of the followed candidate on whose ray an observed action lies


class Stated(NamedTuple):
    """What was declared of k signals."""

    noise: Floats  # R
    bound: Floats  # S, of the part that is learned
    confidence: Floats  # log 1/δ
    known: Floats  # at x₀; 0 where free


class Frame(NamedTuple):
    """How actions become coordinates, and what they are held against."""

    ridge: float  # λ
    action_bound: float  # L
    unit: float  # what turns the last entry of Hx into <x, x₀>/‖x₀‖²
    reflector: Floats  # (d,), where reflected


class Tables(NamedTuple):
    """What is remembered; the tables lie flat, row after row, since to shape them anew in every round takes time."""

    tally: Floats  # (3 + 2k,)
    own: Floats  # (n + k, n)
    rows: Floats  # (n + k + 1, F)


@kernel
def stated(part: Part, settings: Floats) -> Stated:
    """Name what was declared."""
    at, k = part.settings + 3 + part.reflected * (part.size + 1), part.signals
    return Stated(
        settings[at : at + k], settings[at + k : at + 2 * k], settings[at + 2 * k : at + 3 * k],
        settings[at + 3 * k : at + 4 * k],
    )  # fmt: skip


@kernel
def frame_of(part: Part, settings: Floats) -> Frame:
    """Name how actions become coordinates."""
    at = part.settings
    end = at + 3 + part.reflected * (part.size + 1)
    return Frame(settings[at], settings[at + 1], settings[at + 2], settings[at + 3 : end])


@kernel
def tables_of(part: Part, memory: Floats) -> Tables:
    """Name what is remembered."""
    n, k = part.size, part.signals
    own = part.memory + (n + k + 1) * part.width
    tally = own + (n + k) * n
    return Tables(memory[tally : tally + tally_size(k)], memory[own:tally], memory[part.memory : own])


@kernel
def place(part: Part, settings: Floats, features: Floats, coordinates: Floats) -> float:
    """Write z for one action x, and return the share <x, x₀>/‖x₀‖² of what is known that it carries."""
    n = part.size
    if part.reflected == 0:
        for i in range(n):
            coordinates[i] = features[i]
        return 0.0
    reflector, along = settings[part.settings + 3 : part.settings + 4 + n], 0.0
    for i in range(n + 1):
        along += reflector[i] * features[i]
    for i in range(n):
        coordinates[i] = features[i] - 2.0 * along * reflector[i]
    return (features[n] - 2.0 * along * reflector[n]) * settings[part.settings + 2]


@kernel
def start_ridge(part: Part, settings: Floats, memory: Floats) -> None:
    """Write V = λI into an empty memory."""
    own = tables_of(part, memory).own
    for i in range(part.size):
        own[i * part.size + i] = 1.0 / math.sqrt(settings[part.settings])


@kernel
def fill_image(own: Floats, coordinates: Floats, image: Floats) -> None:
    """Write f = Tz."""
    for i in range(coordinates.size):
        row, total = own[i], 0.0
        for j in range(i + 1):
            total += row[j] * coordinates[j]
        image[i] = total


@kernel
def add_multiple(factor: float, vector: Floats, sum_: Floats) -> None:
    for i in range(sum_.size):
        sum_[i] += vector[i] * factor


@kernel
def move(size: int, own: Floats, rows: Floats, image: Floats, lean: bool, gain: Floats, pulls: Floats) -> float:
    """Take zz' into T and into the columns Tx of what is followed, given f = Tz; return 1 + z'V⁻¹z, for the V before.

        Tᵢ ← (αᵢ₋₁ Tᵢ − fᵢ bᵢ₋₁)/√(αᵢ₋₁αᵢ),    bᵢ = bᵢ₋₁ + fᵢ Tᵢ,    αᵢ = 1 + f₁² + … + fᵢ²        (Carlson 1973)

    Row by row, b ends as `gain` = V⁻¹z and, over the columns, `pulls` = x'V⁻¹z. The plain formula V⁻¹ − gg'/(1 + z'g)
    loses the narrow directions when play is uneven (docs/decisions/0005-square-root.md). `lean`: leave T as it is.
    Rows of T are `size` numbers long, those of the columns as long as `pulls`; the last of these gets ‖Tx‖².
    """
    before, spread, width = 1.0, 1.0, pulls.size
    forms = rows[rows.size - width :]
    if not lean:
        for j in range(gain.size):
            gain[j] = 0.0
    for j in range(width):
        pulls[j] = 0.0
        forms[j] = 0.0
    for i in range(image.size):
        length = image[i]
        after = before + length * length
        next_spread = math.sqrt(after)
        scale = 1.0 / (spread * next_spread)
        keep, give = before * scale, length * scale
        if not lean:
            row = own[i * size : (i + 1) * size]
            for j in range(i + 1):
                old = row[j]
                row[j] = old * keep - gain[j] * give
                gain[j] += length * old
        column = rows[i * width : (i + 1) * width]
        for j in range(width):
            old = column[j]
            new = old * keep - pulls[j] * give
            column[j] = new
            pulls[j] += length * old
            forms[j] += new * new
        before, spread = after, next_spread
    return before


@kernel
def settle(
    count: int, size: int, room: int, lean: bool, after: float, surprises: Floats,
    tally: Floats, own: Floats, rows: Floats, gain: Floats, pulls: Floats,
) -> None:  # fmt: skip
    """Move the fits and the followed estimates by what was a surprise, and add to the sums.

    `size` coordinates are used of those that there is room for. The squares e²/(1 + z'V⁻¹z) add up to
    min_θ Σ (y − <z, θ>)² + λ‖θ‖² (docs/theory/watch.md).
    """
    width = pulls.size
    first = rows.size - (1 + count) * width
    for signal in range(count):
        surprise = surprises[signal]
        share = surprise / after
        tally[SQUARES + signal] += surprise * surprise / after
        if not lean:
            at = (room + signal) * room
            add_multiple(share, gain, own[at : at + size])
        at = first + signal * width
        add_multiple(share, pulls, rows[at : at + width])
    tally[LOG_DET] += math.log(after)
    tally[TAKEN] += 1.0


@kernel
def learn_ridge(
    part: Part, features: Floats, index: int, step: float, lean: bool, values: Floats,
    settings: Floats, memory: Floats, work: Floats,
) -> None:  # fmt: skip
    """Take in what was seen (k,) when the action x was played; `work` is (3n + F + k,).

        θ̂ ← θ̂ + V⁻¹z (y − <z, θ̂>)/(1 + z'V⁻¹z),    log det V ← log det V + log(1 + z'V⁻¹z)

    `index`: the followed candidate on whose ray it lies, `step` of the way from x₀; AT_SAFE: it is x₀; ELSEWHERE:
    neither is said. `lean`: T and θ̂ need not be kept, because nothing but the followed candidates will be looked at.
    """
    n, k, width, safe = part.size, part.signals, part.width, part.followed - 1
    known, tables = stated(part, settings).known, tables_of(part, memory)
    own, rows = tables.own, tables.rows
    pulls, rest = work[:width], work[width:]
    image, gain, coordinates, surprises = rest[:n], rest[n : 2 * n], rest[2 * n : 3 * n], rest[3 * n : 3 * n + k]
    if index == ELSEWHERE or safe < 0:
        lean = False
        table = own.reshape(n + k, n)
        share = place(part, settings, features, coordinates)
        fill_image(table, coordinates, image)
        for signal in range(k):
            fit, surprise = table[n + signal], values[signal] - share * known[signal]
            for i in range(n):
                surprise -= fit[i] * coordinates[i]
            surprises[signal] = surprise
    elif part.anchored == 1:
        place_ = max(index, 0)
        step = step if index >= 0 else 0.0
        for i in range(n):
            image[i] = step * rows[i * width + place_]
        for signal in range(k):
            surprises[signal] = values[signal] - (
                (1.0 - step) * known[signal] + step * rows[(n + signal) * width + place_]
            )
    else:
        place_, step = (index, step) if index >= 0 else (safe, 1.0)
        remaining = 1.0 - step
        for i in range(n):
            image[i] = remaining * rows[i * width + safe] + step * rows[i * width + place_]
        for signal in range(k):
            at = (n + signal) * width
            expected = remaining * rows[at + safe] + step * rows[at + place_]
            surprises[signal] = values[signal] - expected
    after = move(n, own, rows, image, lean, gain, pulls)
    settle(k, n, n, lean, after, surprises, tables.tally, own, rows, gain, pulls)


@kernel
def follow_ridge(part: Part, features: Floats, safe: Floats, settings: Floats, memory: Floats, work: Floats) -> None:
    """Write what is kept of M candidates and of the safe action from now on; `work` is (n,)."""
    n, k, known, tables = part.size, part.signals, stated(part, settings).known, tables_of(part, memory)
    own, rows, coordinates = tables.own.reshape(n + k, n), tables.rows.reshape(n + k + 1, part.width), work[:n]
    for candidate in range(features.shape[0] + 1):
        listed = candidate < features.shape[0]
        share, form = place(part, settings, features[candidate] if listed else safe, coordinates), 0.0
        if not listed and part.anchored == 1:
            share = 1.0
            coordinates[:] = 0.0
        for i in range(n):
            total = 0.0
            for j in range(i + 1):
                total += own[i, j] * coordinates[j]
            rows[i, candidate] = total
            form += total * total
        rows[n + k, candidate] = form
        for signal in range(k):
            total = share * known[signal]
            for i in range(n):
                total += own[n + signal, i] * coordinates[i]
            rows[n + signal, candidate] = total
