"""The compiled loop over arms: OPB draws them from its mixtures, UCB takes the most hopeful."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from stagewise.kernels import audit, counts, opb
from stagewise.kernels.blend import named_odds
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.draw import POLICY, uniform
from stagewise.kernels.promise import WARMING
from stagewise.kernels.trace import Trace, note
from stagewise.kernels.world import fill_outcome
from stagewise.simulation.mixed import fill_mixed
from stagewise.simulation.stage import Room, sign


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
                arm = opb.take(room.eligible, terms, tally, odds, home, lottery, pulled)
                fill_mixed(bandit.means, bandit.safe, odds, room.values)
            else:
                arm = opb.take_unconstrained(room.eligible, terms, tally, hoped)
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
