"""Where a round of LC-LUCB on ten fixed rays goes: the time that is saved when a part of the loop is left out.

Run `python benchmarks/profile_rays.py`. Parts overlap in the processor, so the savings do not add up to the whole.
"""

import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from stagewise.kernels.following import remembered
from stagewise.kernels.ray import choose, settle
from stagewise.kernels.ridge import move
from stagewise.kernels.sight import named_sight

import stagewise as sw
from stagewise.kernels import linear
from stagewise.kernels.trace import note
from stagewise.kernels.world import fill_means, fill_outcome
from stagewise.simulation.compiled import Compiled
from stagewise.simulation.judge import judge
from stagewise.simulation.recording import empty_trace, recorded

ROUNDS = 1_000_000
PARTS = (
    "nothing",
    "looking",
    "choosing",
    "the action",
    "the outcome",
    "the record",
    "learning",
    "all but the recursion",
)


def loop(left_out: str) -> Callable[..., None]:
    """Return the loop without one of its parts."""
    look, pick, act = left_out != "looking", left_out != "choosing", left_out != "the action"
    see_outcome, keep = left_out != "the outcome", left_out != "the record"
    learn, only = left_out not in ("learning", "all but the recursion"), left_out == "all but the recursion"

    @numba.njit(error_model="numpy", _nrt=False)
    def play(player: Any, stage: Any, room: Any, trace: Any, rounds: int) -> None:
        mind = linear.named_mind(player.flags, player.numbers, player.memory)
        sight = named_sight(mind.shape, room.sheet, stage.features.shape[0])
        sight = remembered(mind, sight, False)
        size, ray = mind.safe.size, 0
        for t in range(1, rounds):
            if only:
                image, gain, pulls = room.work[:size], room.work[size : 2 * size], room.work[2 * size : 3 * size]
                for i in range(size):
                    image[i] = 0.3 * mind.reward.followed.columns[i, t % 10]
                move(mind.reward.ridge.root, mind.reward.followed, image, True, gain, pulls)
                continue
            if look:
                linear.see(stage.features, True, mind, sight, room.work)
            if pick:
                ray = choose(sight, mind.promise, room.eligible)
            if act:
                settle(sight, mind.promise, stage.features, mind.safe, ray)
            fill_means(stage.truth.parameters, sight.action, room.means)
            if see_outcome:
                fill_outcome(stage.truth.kind, room.means, stage.truth.noise, 0, 0, t, room.values)
            if keep:
                note(trace, t, stage.best, room.means, stage.thresholds)
            if learn:
                linear.study(mind, sight.action, max(ray, 0), sight.verdict[0], True, room.values, room.work)

    return play


def main() -> None:
    """Print nanoseconds a round."""
    rows = np.random.default_rng(1).normal(size=(12, 10))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    world = sw.LinearWorld(theta=np.abs(rows[0]), mu=np.abs(rows[1]), actions=sw.Rays(rows[2:]), noise=0.1)
    policy = sw.LCLUCB(safe_action=sw.SafeAction(features=np.zeros(10)), threshold=0.5, noise=0.1)
    whole = 0.0
    for part in PARTS:
        play, best = loop(part), np.inf
        for rounds in (100, ROUNDS, ROUNDS):
            trace = empty_trace(recorded(ROUNDS, 1000), 1)
            run = Compiled(policy, judge(policy, world), trace, 0, 0)
            begun = time.perf_counter()
            play(run.player, run.stage, run.room, trace, rounds)
            best = min(best, (time.perf_counter() - begun) / rounds * 1e9) if rounds == ROUNDS else best
        whole = whole or best
        print(f"without {part:<22} {best:6.0f} ns   saved {whole - best:6.0f}")


if __name__ == "__main__":
    main()
