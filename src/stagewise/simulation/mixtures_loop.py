"""The compiled loop over actions drawn from OPLB's mixtures."""

from collections.abc import Callable
from functools import cache

from stagewise.kernels import audit, linear, oplb
from stagewise.kernels.blend import Odds, named_odds
from stagewise.kernels.compile import kernel
from stagewise.kernels.draw import POLICY, uniform
from stagewise.kernels.following import remembered
from stagewise.kernels.promise import WARMING
from stagewise.kernels.ridge import AT_SAFE, ELSEWHERE
from stagewise.kernels.sight import named_sight
from stagewise.kernels.trace import Trace, note
from stagewise.kernels.world import fill_directions, fill_means, fill_outcome
from stagewise.simulation.mixed import NOBODY, next_mixed, share_of
from stagewise.simulation.stage import Player, Room, Stage, optimum, sign


@cache
def mixtures_loop(fresh: bool, audited: bool = False) -> Callable[..., None]:
    """Return the loop over actions drawn from OPLB's mixtures, compiled for one kind of world; the mixture counts."""

    @kernel
    def play_mixtures(
        player: Player, stage: Stage, room: Room, trace: Trace, mixed: bool, seed: int, run: int, first: int, last: int
    ) -> None:
        mind = linear.named_mind(player.flags, player.numbers, player.memory)
        count, best = stage.features.shape[0], stage.best
        sight = named_sight(mind.shape, room.sheet, count)
        if not fresh:
            sight = remembered(mind, sight, False)
        odds = named_odds(mind.shape.constraints, count, room.flat, room.support)
        for t in range(first, last):
            if fresh:
                fill_directions(stage.features, seed, run, t)
                best = optimum(stage, room, mixed)
            lottery = uniform(seed, run, t, POLICY, 0)
            code = oplb.take(stage.features, not fresh, room.eligible, mind, sight, odds, room.work, lottery)
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
