"""The compiled loop of the kernel policy in a world of listed actions, which come back in every round."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from stagewise.kernels import audit, kernel_mind, kernel_oplb
from stagewise.kernels.blend import named_odds
from stagewise.kernels.compile import Floats, Ints, kernel
from stagewise.kernels.draw import POLICY, uniform
from stagewise.kernels.promise import WARMING
from stagewise.kernels.sight import named_sight
from stagewise.kernels.trace import Trace, note
from stagewise.kernels.world import fill_outcome
from stagewise.simulation.mixed import fill_mixed
from stagewise.simulation.stage import Room, sign


class Listing(NamedTuple):
    """A kernel policy, and the listed actions as they really are."""

    flags: Ints
    numbers: Floats
    memory: Floats  # with room for every action, following them all
    features: Floats  # (K, d)
    means: Floats  # (1 + m, K + 1) of the listed actions, then of the safe one
    noise: Floats  # (1 + m,)
    outcomes: int  # their kind
    signs: Floats  # (1 + m,)
    thresholds: Floats  # (m,)
    best: float


@cache
def listed_loop(audited: bool = False) -> Callable[..., None]:
    """Return the loop over actions drawn from the policy's mixtures; the mixture counts."""

    @kernel
    def play_listed(listing: Listing, room: Room, trace: Trace, seed: int, run: int, first: int, last: int) -> None:
        mind = kernel_mind.named_mind(listing.flags, listing.numbers, listing.memory)
        count = listing.features.shape[0]
        sight = named_sight(mind.shape, room.sheet, count)
        odds = named_odds(mind.shape.constraints, count, room.flat, room.support)
        for t in range(first, last):
            lottery = uniform(seed, run, t, POLICY, 0)
            code = kernel_oplb.take(listing.features, True, room.eligible, mind, sight, odds, room.work, lottery)
            fill_mixed(listing.means, count, odds, room.values)
            sign(listing.signs, room.values)
            note(trace, t, listing.best, room.values, listing.thresholds)
            if audited:
                safe_reward = listing.means[0, count]
                audit.watch(trace.audit, t, listing.best, safe_reward, room.values, listing.thresholds)
                if code != -WARMING:
                    hoped = audit.hope_of(odds, mind.promise.directional, mind.promise.limits)
                    audit.weigh_hope(trace.audit, listing.best, hoped)
                audit.count_misses(trace.audit, sight.rewards, sight, room.truths)
            for signal in range(room.means.size):
                room.means[signal] = listing.means[signal, code if code >= 0 else count]
            fill_outcome(listing.outcomes, room.means, listing.noise, seed, run, t, room.values)
            sign(listing.signs, room.values)
            kernel_oplb.study_all(mind, sight.action, True, room.values, room.work)

    return play_listed
