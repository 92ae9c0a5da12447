"""Compiled loops: the kernels that decide by hand, a world's answers, and what is kept of them, round after round.

Every loop plays the rounds from `first` to `last` and leaves memory and trace ready for the next stretch.
"""

from typing import NamedTuple

from stagewise.kernels import counts, lc_lucb, linear, opb, oplb, safe_lts
from stagewise.kernels.best import best_in_list, best_mixture_of, best_on_rays
from stagewise.kernels.blend import Odds, named_odds
from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.draw import POLICY, uniform
from stagewise.kernels.trace import Trace, note
from stagewise.kernels.world import Truth, fill_directions, fill_means, fill_outcome

NOBODY = 2**62
SAFE, RAYS, SAMPLED = 0, 1, 2  # which decision on rays: always the safe action, LC-LUCB and its kin, Safe-LTS


class Player(NamedTuple):
    """A linear policy as its kernels see it."""

    kind: int  # SAFE, RAYS or SAMPLED
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
    signs: Floats  # (1 + m,) −1 for a cost whose threshold is from below
    signed: Floats  # (1 + m, d) the parameters, signed so that less cost is better
    safe_means: Floats  # (1 + m,) signed
    thresholds: Floats  # (m,) signed; none: nothing limits the optimum


class Room(NamedTuple):
    """Work space of a linear run."""

    sheet: Floats
    work: Floats
    flat: Floats
    support: Ints
    true_flat: Floats
    true_support: Ints
    means: Floats  # (1 + m,)
    values: Floats  # (1 + m,)
    everyone: Flags  # empty: all are eligible


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
def renewed(stage: Stage, room: Room, mixed: bool, best: float, seed: int, run: int, t: int, first: int) -> float:
    """Draw this round's actions where they are fresh, and return what they allow; `best` is what the last ones did."""
    if stage.fresh:
        fill_directions(stage.features, seed, run, t)
    elif t > first:
        return best
    return optimum_in_list(stage, room) if mixed else optimum_on_rays(stage, room)


@kernel
def play_rays(
    player: Player, stage: Stage, room: Room, trace: Trace, mixed: bool, seed: int, run: int, first: int, last: int
) -> None:
    """Play points on rays, or the ends of a finite set; `mixed`: the optimum may be a mixture."""
    d, m = stage.features.shape[1], player.flags[1]
    action = room.sheet[room.sheet.size - d :]
    best = 0.0
    for t in range(first, last):
        best = renewed(stage, room, mixed, best, seed, run, t, first)
        if player.kind == RAYS:
            lc_lucb.decide(
                stage.features, room.everyone, player.flags, player.numbers, player.memory, room.sheet, room.work
            )
        elif player.kind == SAMPLED:
            safe_lts.decide(
                stage.features,
                room.everyone,
                player.flags,
                player.numbers,
                player.memory,
                room.sheet,
                room.work,
                player.inflation,
                seed,
                run,
                t,
            )
        else:
            action[:] = stage.safe
        fill_means(stage.truth.parameters, action, room.means)
        fill_outcome(stage.truth.kind, room.means, stage.truth.noise, seed, run, t, room.values)
        sign(stage.signs, room.means)
        sign(stage.signs, room.values)
        note(trace, t, best, room.means, stage.thresholds)
        if player.kind != SAFE:
            values = room.values[: 1 + m]
            linear.learn_from(action, values, player.flags, player.numbers, player.memory, room.work)


@kernel
def sign(signs: Floats, values: Floats) -> None:
    """Turn costs with a threshold from below around."""
    for signal in range(values.size):
        values[signal] *= signs[signal]


@kernel
def play_mixtures(
    player: Player, stage: Stage, room: Room, trace: Trace, seed: int, run: int, first: int, last: int
) -> None:
    """Play actions drawn from OPLB's mixtures; what counts is the mixture."""
    d, m, count = stage.features.shape[1], player.flags[1], stage.features.shape[0]
    action = room.sheet[room.sheet.size - d :]
    odds = named_odds(m, count, room.flat, room.support)
    best = 0.0
    for t in range(first, last):
        best = renewed(stage, room, True, best, seed, run, t, first)
        oplb.decide(
            stage.features,
            room.everyone,
            player.flags,
            player.numbers,
            player.memory,
            room.sheet,
            room.work,
            room.flat,
            room.support,
            uniform(seed, run, t, POLICY, 0),
        )
        fill_mixture_means(stage, odds, room)
        note(trace, t, best, room.values, stage.thresholds)
        fill_means(stage.truth.parameters, action, room.means)
        fill_outcome(stage.truth.kind, room.means, stage.truth.noise, seed, run, t, room.values)
        sign(stage.signs, room.values)
        linear.learn_from(action, room.values, player.flags, player.numbers, player.memory, room.work)


@kernel
def next_mixed(odds: Odds, home: int, after: int) -> int:
    """Return the lowest index in the mixture beyond `after`, or a very large one; the safe action counts as `home`."""
    lowest = NOBODY
    for place in range(odds.support.size):
        index = odds.support[place] if odds.support[place] >= 0 else home
        if odds.shares[place] > 0.0 and after < index < lowest:
            lowest = index
    return lowest


@kernel
def share_of(odds: Odds, home: int, index: int) -> float:
    """Return the probability of one action in the mixture."""
    share = 0.0
    for place in range(odds.support.size):
        if index == (odds.support[place] if odds.support[place] >= 0 else home):
            share += odds.shares[place]
    return share


@kernel
def fill_mixture_means(stage: Stage, odds: Odds, room: Room) -> None:
    """Write the true expected reward and costs of the mixture into `values`, adding up in the order of the list."""
    home = stage.features.shape[0]
    room.values[:] = 0.0
    index = next_mixed(odds, home, -1)
    while index != NOBODY:
        share = share_of(odds, home, index)
        if index != home:
            fill_means(stage.signed, stage.features[index], room.means)
        for signal in range(room.values.size):
            room.values[signal] += share * (stage.safe_means[signal] if index == home else room.means[signal])
        index = next_mixed(odds, home, index)


class Bandit(NamedTuple):
    """A policy over arms, and the arms as they really are."""

    constrained: bool  # OPB; else UCB
    flags: Ints
    numbers: Floats
    memory: Floats
    kind: int  # of the radius
    confidence: float
    means: Floats  # (1 + m, K)
    noise: Floats  # (1 + m,)
    outcomes: int  # their kind
    signs: Floats  # (1 + m,)
    thresholds: Floats  # (m,)
    safe: int
    best: float


@kernel
def play_arms(
    bandit: Bandit, room: Room, trace: Trace, hoped: Floats, seed: int, run: int, first: int, last: int
) -> None:
    """Play arms drawn from OPB's mixtures, or UCB's arms."""
    m, arms = bandit.flags[1], bandit.flags[0]
    odds = named_odds(m, arms, room.flat, room.support)
    for t in range(first, last):
        if bandit.constrained:
            arm = opb.decide(
                room.everyone,
                bandit.flags,
                bandit.numbers,
                bandit.memory,
                room.work,
                room.flat,
                room.support,
                uniform(seed, run, t, POLICY, 0),
            )
            fill_arm_mixture(bandit, odds, room.values)
        else:
            arm = opb.decide_unconstrained(room.everyone, bandit.flags, bandit.numbers, bandit.memory, hoped)
            room.values[:] = bandit.means[:, arm]
        sign(bandit.signs, room.values)
        note(trace, t, bandit.best, room.values, bandit.thresholds)
        arm = arm if arm >= 0 else bandit.safe
        room.means[:] = bandit.means[:, arm]
        fill_outcome(bandit.outcomes, room.means, bandit.noise, seed, run, t, room.values)
        sign(bandit.signs, room.values)
        counts.absorb(arm, room.values[: 1 + m], bandit.kind, bandit.confidence, arms, bandit.memory)


@kernel
def fill_arm_mixture(bandit: Bandit, odds: Odds, values: Floats) -> None:
    """Write the true expected reward and costs of the mixture, adding up in the order of the arms."""
    values[:] = 0.0
    arm = next_mixed(odds, bandit.safe, -1)
    while arm != NOBODY:
        share = share_of(odds, bandit.safe, arm)
        for signal in range(values.size):
            values[signal] += share * bandit.means[signal, arm]
        arm = next_mixed(odds, bandit.safe, arm)
