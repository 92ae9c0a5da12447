"""Where a linear policy plays: its arrays, the truth, and the best that a round allows."""

from typing import NamedTuple

from stagewise.kernels.best import best_in_list, best_mixture_of, best_on_rays
from stagewise.kernels.blend import named_odds
from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.world import Truth, fill_means


class Player(NamedTuple):
    """A linear policy as its kernels see it."""

    sampled: bool  # Safe-LTS
    flags: Ints
    numbers: Floats
    memory: Floats
    inflation: int  # of Safe-LTS


class Stage(NamedTuple):
    """Where a linear policy plays: the actions, the truth, and what the safe action is really worth."""

    features: Floats  # (M, d); filled anew every round where fresh
    fresh: bool
    truth: Truth
    safe: Floats  # (d,) x₀
    signs: Floats  # (1 + m,) −1 for a cost whose threshold is from below; empty where there is none
    signed: Floats  # (1 + m, d) the parameters, signed so that less cost is better
    safe_means: Floats  # (1 + m,) signed
    thresholds: Floats  # (m,) signed; none: nothing limits the optimum
    best: float  # the optimum, where the actions are always the same


class Room(NamedTuple):
    """Work space of a run."""

    sheet: Floats
    work: Floats
    flat: Floats
    support: Ints
    true_flat: Floats
    true_support: Ints
    means: Floats  # (1 + m,)
    values: Floats  # (1 + m,)
    eligible: Flags  # empty: all are eligible
    truths: Floats  # (1 + m, M) signed true means of the candidates; only audits read them


@kernel
def optimum_on_rays(stage: Stage, room: Room) -> float:
    """Return the best mean reward on this round's rays."""
    return best_on_rays(stage.features, stage.signed, stage.safe_means, stage.thresholds, room.means)


@kernel
def optimum_in_list(stage: Stage, room: Room) -> float:
    """Return the best mean reward of this round's listed actions, mixed where there are thresholds."""
    m, count = stage.thresholds.size, stage.features.shape[0]
    if m == 0:
        return best_in_list(stage.features, stage.signed, room.means)
    odds = named_odds(m, count, room.true_flat, room.true_support)
    for action in range(count):
        fill_means(stage.signed, stage.features[action], room.means)
        odds.hoped[action] = room.means[0]
        for j in range(m):
            odds.dearest[j, action] = room.means[1 + j]
    odds.safe_hoped[0] = stage.safe_means[0]
    for j in range(m):
        odds.safe_dearest[j] = stage.safe_means[1 + j]
    return best_mixture_of(odds, stage.thresholds)


@kernel
def optimum(stage: Stage, room: Room, mixed: bool) -> float:
    """Return the best mean reward that this round's actions allow; `mixed`: mixtures of them count too."""
    return optimum_in_list(stage, room) if mixed else optimum_on_rays(stage, room)


@kernel
def sign(signs: Floats, values: Floats) -> None:
    """Turn costs with a threshold from below around; no signs: there are none."""
    for signal in range(signs.size):
        values[signal] *= signs[signal]
