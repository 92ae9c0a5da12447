"""Where a round of LC-LUCB on ten fixed rays goes: the time that is saved when a part of the loop is left out.

Run `python benchmarks/profile_rays.py`. Parts overlap in the processor, so the savings do not add up to the whole.
"""

import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

import stagewise as sw
from stagewise.engine.layout import build_layout_reader, get_known_actions
from stagewise.engine.loop import record_round
from stagewise.engine.model import RoundSpec
from stagewise.engine.round import build_round
from stagewise.engine.workspace import STEP, get_decision_views, get_workspace
from stagewise.engine.world_draws import fill_means, fill_outcome
from stagewise.models.regression import update_root
from stagewise.models.ridge import RIDGE, view_ridge
from stagewise.rules.ray import RAY, choose_ray, finish_ray
from stagewise.simulation.compiled_run import CompiledRun
from stagewise.simulation.oracle import build_oracle
from stagewise.simulation.run import compute_recorded_rounds, empty_trace

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
    bounds_call, pick, act = left_out != "looking", left_out != "choosing", left_out != "the action"
    see_outcome, keep = left_out != "the outcome", left_out != "the record"
    learn, only = left_out not in ("learning", "all but the recursion"), left_out == "all but the recursion"

    form = RoundSpec((RIDGE,), RAY, 1)
    see, learn_at, pinned = build_round(form).compute_bounds, build_round(form).learn_at, build_layout_reader(1, 1)

    @numba.njit(error_model="numpy", _nrt=False)
    def play(
        features: Any, eligible: Any, given: Any, settings: Any, memory: Any, answer: Any, scratch: Any,
        means: Any, values: Any, world: Any, trace: Any, rounds: int,
    ) -> None:  # fmt: skip
        layout = pinned(given)
        area, part = get_workspace(layout, features.shape[0], scratch), view_ridge(layout, memory, 0)
        bounds, rule, per_limit, work, safe = (
            area.bounds,
            area.rule,
            area.per_limit,
            area.work,
            get_known_actions(layout, settings, memory).safe,
        )
        action, size, ray = get_decision_views(layout, answer).action, part.size, 0
        learned, rows = part.learned, part.rows
        image, gain, pulls = work[:size], work[size : 2 * size], work[2 * size : 2 * size + part.width]
        for t in range(1, rounds):
            if only:
                for i in range(size):
                    image[i] = 0.3 * rows[i, t % 10]
                update_root(learned, rows, image, True, gain, pulls)
                continue
            if bounds_call:
                see(features, True, ((part,),), layout, settings, memory, bounds, work)
            if pick:
                ray = choose_ray(layout, settings, bounds, eligible, 0, rule, per_limit, answer)
            if act:
                finish_ray(layout, settings, bounds, rule, ray, features, safe, answer, action)
            fill_means(world.parameters, action, means)
            if see_outcome:
                fill_outcome(world.outcomes, means, world.noise, 0, 0, t, values)
            if keep:
                record_round(trace, t, world.best, means, world.thresholds)
            if learn:
                learn_at(
                    ((part,),), action, ray, max(ray, 0), answer[STEP], True, values, layout, settings, memory, work
                )

    return play


def main() -> None:
    """Print nanoseconds a round."""
    rows = np.random.default_rng(1).normal(size=(12, 10))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    world = sw.LinearWorld(reward=np.abs(rows[0]), cost=np.abs(rows[1]), actions=sw.RaySet(rows[2:]), noise=0.1)
    policy = sw.LCLUCB(safe_action=sw.SafeAction(features=np.zeros(10)), threshold=0.5, noise=0.1, ridge=1.0)
    total = 0.0
    for part in PARTS:
        play, best = loop(part), np.inf
        for rounds in (100, *[ROUNDS] * 5):
            trace = empty_trace(compute_recorded_rounds(ROUNDS, 1000), 1)
            run = CompiledRun(policy, build_oracle(policy, world), trace, 0, 0)
            inputs, (answer, scratch, _), (_, means, values) = run.inputs, run.own, run.few
            options = (inputs.features, inputs.eligible, inputs.layout, inputs.settings, inputs.memory, answer, scratch)
            started = time.thread_time()
            play(*options, means, values, inputs.world, trace, rounds)
            best = min(best, (time.thread_time() - started) / rounds * 1e9) if rounds == ROUNDS else best
        total = total or best
        print(f"without {part:<22} {best:6.0f} ns   saved {total - best:6.0f}")


if __name__ == "__main__":
    main()
