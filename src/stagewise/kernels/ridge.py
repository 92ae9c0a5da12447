"""Ridge regression of several signals on the same features, one observation at a time.

Candidates that come back every round can be followed: what is kept of them moves with every observation, by the same
recursion that moves T, and a look at M of them then takes O(M) instead of O(Mn²).
"""

import math
from typing import NamedTuple

from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.radius import Belief


class Ridge(NamedTuple):
    """What is remembered of the observations z₁, z₂, …: enough for every estimate and every width."""

    root: Floats  # (n, n)  T, lower triangular, with V⁻¹ = TᵀT,  V = λI + Σ zzᵀ
    fits: Floats  # (k, n)  V⁻¹ Σ y z, one row a signal
    tally: Floats  # (3 + 2k,)  log det V/λⁿ, the observations, those at x₀ | Σ e²/(1 + z'V⁻¹z) | Σ (y − known) at x₀


@kernel
def tally_size(signals: int) -> int:
    """Return the length of a tally."""
    return 3 + 2 * signals


class Followed(NamedTuple):
    """What is kept of M candidates that come back; empty where none are followed."""

    columns: Floats  # (n, M) Tz
    estimates: Floats  # (k, M) what the fits say of them
    forms: Floats  # (M,) zᵀV⁻¹z = ‖Tz‖²


class Anchor(NamedTuple):
    """Where the safe action stands, and what is known of the signals there.

    Anchored: the values at x₀ are known, and only the n = d−1 directions orthogonal to x₀ are learned (n = d at
    x₀ = 0). A Householder reflection H turns x₀ onto the last axis: z is Hx without its last entry, which is ±<x, e₀>.
    Free: nothing is known at x₀, and z = x.
    """

    reflector: Floats  # (d,) w of H = I − 2wwᵀ; empty: z = x
    unit: float  # last entry of Hx, times `unit`, is <x, x₀>/‖x₀‖²
    known: Floats  # (k,) the signals at x₀; zero where free
    start: Floats  # (n,) x₀ where free; empty where anchored


class Regression(NamedTuple):
    """A model of k signals: what is remembered, and what is assumed."""

    ridge: Ridge
    followed: Followed
    anchor: Anchor
    belief: Belief


AT_SAFE, ELSEWHERE = -1, -2  # in the place of the followed candidate on whose ray an observed action lies


@kernel
def place(features: Floats, anchor: Anchor, coordinates: Floats) -> float:
    """Write z for one action x, and return the share <x, x₀>/‖x₀‖² of what is known that it carries."""
    size = coordinates.size
    if anchor.reflector.size == 0:
        for i in range(size):
            coordinates[i] = features[i]
        return 0.0
    along = 0.0
    for i in range(features.size):
        along += anchor.reflector[i] * features[i]
    for i in range(size):
        coordinates[i] = features[i] - 2.0 * along * anchor.reflector[i]
    return (features[size] - 2.0 * along * anchor.reflector[size]) * anchor.unit


@kernel
def multiply(root: Floats, vector: Floats, image: Floats, product: Floats) -> float:
    """Write Tv and V⁻¹v = TᵀTv, and return vᵀV⁻¹v = ‖Tv‖²."""
    form = 0.0
    for i in range(vector.size):
        total = 0.0
        for j in range(i + 1):
            total += root[i, j] * vector[j]
        image[i] = total
        form += total * total
        product[i] = 0.0
        for j in range(i + 1):
            product[j] += root[i, j] * total
    return form


@kernel
def fill_image(root: Floats, coordinates: Floats, image: Floats) -> None:
    """Write f = Tz."""
    for i in range(coordinates.size):
        row, total = root[i], 0.0
        for j in range(i + 1):
            total += row[j] * coordinates[j]
        image[i] = total


@kernel
def move(root: Floats, followed: Followed, image: Floats, lean: bool, gain: Floats, pulls: Floats) -> float:
    """Take zz' into T and into the columns Tx of what is followed, given f = Tz; return 1 + z'V⁻¹z, for the V before.

        Tᵢ ← (αᵢ₋₁ Tᵢ − fᵢ bᵢ₋₁)/√(αᵢ₋₁αᵢ),    bᵢ = bᵢ₋₁ + fᵢ Tᵢ,    αᵢ = 1 + f₁² + … + fᵢ²        (Carlson 1973)

    Row by row, b ends as `gain` = V⁻¹z and, over the columns, `pulls` = x'V⁻¹z. The plain formula V⁻¹ − gg'/(1 + z'g)
    loses the narrow directions when play is uneven (docs/decisions/0005-square-root.md). `lean`: leave T as it is.
    """
    forms, before, spread = followed.forms, 1.0, 1.0
    for i in range(image.size):
        gain[i] = 0.0
    for j in range(forms.size):
        pulls[j] = 0.0
        forms[j] = 0.0
    for i in range(image.size):
        length = image[i]
        after = before + length * length
        next_spread = math.sqrt(after)
        scale = 1.0 / (spread * next_spread)
        keep, give = before * scale, length * scale
        if not lean:
            row = root[i]
            for j in range(i + 1):
                old = row[j]
                row[j] = old * keep - gain[j] * give
                gain[j] += length * old
        column = followed.columns[i]
        for j in range(forms.size):
            old = column[j]
            new = old * keep - pulls[j] * give
            column[j] = new
            pulls[j] += length * old
            forms[j] += new * new
        before, spread = after, next_spread
    return before


@kernel
def add_multiple(factor: float, vector: Floats, sum_: Floats) -> None:
    for i in range(sum_.size):
        sum_[i] += vector[i] * factor


@kernel
def note_square(ridge: Ridge, signal: int, surprise: float, spread: float) -> None:
    """Add e²/(1 + z'V⁻¹z): the sum is min_θ Σ (y − <z, θ>)² + λ‖θ‖² (docs/theory/watch.md)."""
    ridge.tally[3 + signal] += surprise * surprise / spread


@kernel
def learn(model: Regression, features: Floats, ray: int, step: float, lean: bool, values: Floats, work: Floats) -> None:
    """Take in what was seen (k,) when the action x was played; `work` is (3n + M + k,).

        θ̂ ← θ̂ + V⁻¹z (y − <z, θ̂>)/(1 + z'V⁻¹z),    log det V ← log det V + log(1 + z'V⁻¹z)

    `ray`: the followed candidate on whose ray it lies, `step` of the way from x₀; AT_SAFE: it is x₀; ELSEWHERE: neither
    is said. `lean`: T and θ̂ need not be kept, because nothing but the followed candidates will be looked at.
    """
    ridge, followed, anchor = model.ridge, model.followed, model.anchor
    size, pulled = ridge.root.shape[0], 3 * ridge.root.shape[0]
    coordinates, image, gain = work[:size], work[size : 2 * size], work[2 * size : pulled]
    pulls, surprises = work[pulled : pulled + followed.forms.size], work[pulled + followed.forms.size :]
    if ray == ELSEWHERE or anchor.start.size > 0:
        lean = False
        share = place(features, anchor, coordinates)
        fill_image(ridge.root, coordinates, image)
        for signal in range(values.size):
            fit, surprise = ridge.fits[signal], values[signal] - share * anchor.known[signal]
            for i in range(size):
                surprise -= fit[i] * coordinates[i]
            surprises[signal] = surprise
    elif ray >= 0:
        for i in range(size):
            image[i] = step * followed.columns[i, ray]
        for signal in range(values.size):
            expected = (1.0 - step) * anchor.known[signal] + step * followed.estimates[signal, ray]
            surprises[signal] = values[signal] - expected
    else:
        ridge.tally[1] += 1.0  # what is seen at x₀ says nothing new
        for signal in range(values.size):
            note_square(ridge, signal, values[signal] - anchor.known[signal], 1.0)
        return
    after = move(ridge.root, followed, image, lean, gain, pulls)
    for signal in range(values.size):
        surprise = surprises[signal] / after
        note_square(ridge, signal, surprises[signal], after)
        if not lean:
            add_multiple(surprise, gain, ridge.fits[signal])
        add_multiple(surprise, pulls, followed.estimates[signal])
    ridge.tally[0] += math.log(after)
    ridge.tally[1] += 1.0


@kernel
def follow(features: Floats, model: Regression, coordinates: Floats) -> None:
    """Write what is kept of M candidates from now on."""
    ridge, followed, anchor = model.ridge, model.followed, model.anchor
    for candidate in range(features.shape[0]):
        share, form = place(features[candidate], anchor, coordinates), 0.0
        for i in range(coordinates.size):
            total = 0.0
            for j in range(i + 1):
                total += ridge.root[i, j] * coordinates[j]
            followed.columns[i, candidate] = total
            form += total * total
        followed.forms[candidate] = form
        for signal in range(anchor.known.size):
            total = share * anchor.known[signal]
            for i in range(coordinates.size):
                total += ridge.fits[signal, i] * coordinates[i]
            followed.estimates[signal, candidate] = total
