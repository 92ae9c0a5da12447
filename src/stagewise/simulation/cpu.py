"""Compiled loops: the kernels that decide by hand, a world's answers, and what is kept of them, round after round.

Every loop plays the rounds from `first` to `last` and leaves memory and trace ready for the next stretch.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from stagewise.kernels import audit, counts, lc_lucb, linear, opb, oplb, safe_lts
from stagewise.kernels.best import best_in_list, best_mixture_of, best_on_rays
from stagewise.kernels.blend import Odds, named_odds
from stagewise.kernels.compile import Flags, Floats, Ints, kernel
from stagewise.kernels.draw import POLICY, uniform
from stagewise.kernels.following import remembered
from stagewise.kernels.promise import WARMING
from stagewise.kernels.ridge import AT_SAFE, ELSEWHERE
from stagewise.kernels.trace import Trace, note
from stagewise.kernels.world import Truth, fill_directions, fill_means, fill_outcome

NOBODY = 2**62


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


@cache
def rays_loop(sampled: bool, fresh: bool, audited: bool = False) -> Callable[..., None]:
    """Return the loop over points on rays, compiled for one kind of policy and of world only.

    `sampled`: Safe-LTS, else LC-LUCB and its kin; `fresh`: every round has its own rays, else they are followed;
    `audited`: the trace has an audit.
    """

    @kernel
    def play_rays(
        player: Player, stage: Stage, room: Room, trace: Trace, mixed: bool, seed: int, run: int, first: int, last: int
    ) -> None:
        mind = linear.named_mind(player.flags, player.numbers, player.memory)
        sight = linear.named_sight(mind.shape, room.sheet, stage.features.shape[0])
        if not fresh:
            sight = remembered(mind, sight, sampled)
        action, values, everyone, best = (
            sight.action,
            room.values[: 1 + mind.shape.constraints],
            room.everyone,
            stage.best,
        )
        for t in range(first, last):
            if fresh:
                fill_directions(stage.features, seed, run, t)
                best = optimum(stage, room, mixed)
            if sampled:
                ray = safe_lts.take(
                    stage.features, not fresh, everyone, mind, sight, room.work, player.inflation, seed, run, t
                )
            else:
                ray = lc_lucb.take(stage.features, not fresh, everyone, mind, sight, room.work)
            fill_means(stage.truth.parameters, action, room.means)
            fill_outcome(stage.truth.kind, room.means, stage.truth.noise, seed, run, t, room.values)
            sign(stage.signs, room.means)
            sign(stage.signs, room.values)
            note(trace, t, best, room.means, stage.thresholds)
            if audited:
                audit.watch(trace.audit, t, best, stage.safe_means[0], room.means, stage.thresholds)
                if ray != -WARMING:
                    audit.weigh_hope(trace.audit, best, sight.verdict[1])
                if fresh:
                    audit.fill_truths(stage.signed, stage.features, room.means, room.truths)
                if sampled:  # which wrote its sample over what it believes
                    linear.see(stage.features, not fresh, mind, sight, room.work)
                rewards = mind.reward.followed.estimates[0] if sampled and not fresh else sight.rewards
                audit.count_misses(trace.audit, rewards, sight, room.truths)
            place = ELSEWHERE if fresh or t == 0 else max(ray, AT_SAFE)  # what is offered first is not followed yet
            linear.study(mind, action, place, sight.verdict[0], not fresh, values, room.work)

    return play_rays


@kernel
def play_safe(stage: Stage, room: Room, trace: Trace, mixed: bool, seed: int, run: int, first: int, last: int) -> None:
    """Play the safe action."""
    best = stage.best
    for t in range(first, last):
        if stage.fresh:
            fill_directions(stage.features, seed, run, t)
            best = optimum(stage, room, mixed)
        note(trace, t, best, stage.safe_means, stage.thresholds)
        if trace.audit.size > 0:
            audit.watch(trace.audit, t, best, stage.safe_means[0], stage.safe_means, stage.thresholds)


@kernel
def sign(signs: Floats, values: Floats) -> None:
    """Turn costs with a threshold from below around; no signs: there are none."""
    for signal in range(signs.size):
        values[signal] *= signs[signal]


@cache
def mixtures_loop(fresh: bool, audited: bool = False) -> Callable[..., None]:
    """Return the loop over actions drawn from OPLB's mixtures, compiled for one kind of world; the mixture counts."""

    @kernel
    def play_mixtures(
        player: Player, stage: Stage, room: Room, trace: Trace, mixed: bool, seed: int, run: int, first: int, last: int
    ) -> None:
        mind = linear.named_mind(player.flags, player.numbers, player.memory)
        count, best = stage.features.shape[0], stage.best
        sight = linear.named_sight(mind.shape, room.sheet, count)
        if not fresh:
            sight = remembered(mind, sight, False)
        odds = named_odds(mind.shape.constraints, count, room.flat, room.support)
        for t in range(first, last):
            if fresh:
                fill_directions(stage.features, seed, run, t)
                best = optimum(stage, room, mixed)
            lottery = uniform(seed, run, t, POLICY, 0)
            code = oplb.take(stage.features, not fresh, room.everyone, mind, sight, odds, room.work, lottery)
            fill_mixture_means(stage, odds, room)
            note(trace, t, best, room.values, stage.thresholds)
            if audited:
                audit.watch(trace.audit, t, best, stage.safe_means[0], room.values, stage.thresholds)
                if code != -WARMING:
                    hoped = audit.hope_of(odds, mind.promise.directional, mind.promise.limits)
                    audit.weigh_hope(trace.audit, best, hoped)
                if fresh:
                    audit.fill_truths(stage.signed, stage.features, room.means, room.truths)
                audit.count_misses(trace.audit, sight.rewards, sight, room.truths)
            fill_means(stage.truth.parameters, sight.action, room.means)
            fill_outcome(stage.truth.kind, room.means, stage.truth.noise, seed, run, t, room.values)
            sign(stage.signs, room.values)
            place = ELSEWHERE if fresh or t == 0 else max(code, AT_SAFE)
            linear.study(mind, sight.action, place, 1.0, not fresh, room.values, room.work)

    return play_mixtures


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
    means: Floats  # (1 + m, K)
    noise: Floats  # (1 + m,)
    outcomes: int  # their kind
    signs: Floats  # (1 + m,)
    thresholds: Floats  # (m,)
    safe: int
    safe_reward: float
    best: float


@cache
def arms_loop(audited: bool = False) -> Callable[..., None]:
    """Return the loop over arms drawn from OPB's mixtures, or over UCB's arms."""

    @kernel
    def play_arms(
        bandit: Bandit, room: Room, trace: Trace, hoped: Floats, seed: int, run: int, first: int, last: int
    ) -> None:
        terms = opb.named_terms(bandit.flags, bandit.numbers)
        m, arms = terms.promise.limits.size, terms.arms
        tally, home = counts.named_tally(terms.radius.kind, m, arms, bandit.memory), opb.named_home(m, room.work)
        odds = named_odds(m, arms, room.flat, room.support)
        values, pulled = room.values[: 1 + m], -1
        for t in range(first, last):
            if bandit.constrained:
                lottery = uniform(seed, run, t, POLICY, 0)
                arm = opb.take(room.everyone, terms, tally, odds, home, lottery, pulled)
                fill_arm_mixture(bandit, odds, room.values)
            else:
                arm = opb.take_unconstrained(room.everyone, terms, tally, hoped)
                fill_arm(bandit, arm, room.values)
            sign(bandit.signs, room.values)
            note(trace, t, bandit.best, room.values, bandit.thresholds)
            if audited:
                audit.watch(trace.audit, t, bandit.best, bandit.safe_reward, room.values, bandit.thresholds)
                if not bandit.constrained:
                    audit.weigh_hope(trace.audit, bandit.best, hoped[max(arm, 0)])
                elif arm != -WARMING:
                    promised = audit.hope_of(odds, terms.promise.directional, terms.promise.limits)
                    audit.weigh_hope(trace.audit, bandit.best, promised)
                audit.count_missed_arms(trace.audit, tally, room.truths)
            arm = arm if arm >= 0 else bandit.safe
            pulled = arm
            fill_arm(bandit, arm, room.means)
            fill_outcome(bandit.outcomes, room.means, bandit.noise, seed, run, t, room.values)
            sign(bandit.signs, room.values)
            counts.count_pull(tally, arm, values, terms.radius)

    return play_arms


@kernel
def fill_arm(bandit: Bandit, arm: int, means: Floats) -> None:
    """Write the true expected reward and costs of an arm."""
    for signal in range(means.size):
        means[signal] = bandit.means[signal, arm]


@kernel
def play_safe_arm(trace: Trace, best: float, means: Floats, thresholds: Floats, first: int, last: int) -> None:
    """Play the safe arm, whose true expected reward and costs are known here."""
    for t in range(first, last):
        note(trace, t, best, means, thresholds)
        if trace.audit.size > 0:
            audit.watch(trace.audit, t, best, means[0], means, thresholds)


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
