"""The compiled loop over points on rays: LC-LUCB and its kin, and Safe-LTS."""

from collections.abc import Callable
from functools import cache

from stagewise.kernels import audit, lc_lucb, linear, safe_lts
from stagewise.kernels.compile import kernel
from stagewise.kernels.following import remembered
from stagewise.kernels.promise import WARMING
from stagewise.kernels.ridge import AT_SAFE, ELSEWHERE
from stagewise.kernels.sight import named_sight
from stagewise.kernels.trace import Trace, note
from stagewise.kernels.world import fill_directions, fill_means, fill_outcome
from stagewise.simulation.stage import Player, Room, Stage, optimum, sign


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
        sight = named_sight(mind.shape, room.sheet, stage.features.shape[0])
        if not fresh:
            sight = remembered(mind, sight, sampled)
        action, values, best = sight.action, room.values[: 1 + mind.shape.constraints], stage.best
        for t in range(first, last):
            if fresh:
                fill_directions(stage.features, seed, run, t)
                best = optimum(stage, room, mixed)
            if sampled:
                ray = safe_lts.take(
                    stage.features, not fresh, room.eligible, mind, sight, room.work, player.inflation, seed, run, t
                )
            else:
                ray = lc_lucb.take(stage.features, not fresh, room.eligible, mind, sight, room.work)
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
