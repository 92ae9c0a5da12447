"""The settings that made the published curves, as loops of their own: they are not ours to offer as policies.

They differ from the paper's text and are not safe choices: the confidence level follows the number of points that the
authors' program had logged, OPB's optimistic rewards are cut at 1, and the safe arm's reward is estimated.
"""

import math
import time
from dataclasses import dataclass

import numpy as np

from stagewise.experiments.cell import RECORD, SEED
from stagewise.kernels.compile import Floats, kernel
from stagewise.kernels.draw import OUTCOME, POLICY, fill_normal, normal_pair, uniform
from stagewise.kernels.mixture import best_pair
from stagewise.kernels.radius import MIXTURE, Belief
from stagewise.kernels.ray import safe_step
from stagewise.kernels.ridge import Anchor, Followed, Regression, Ridge, add_multiple, follow, learn
from stagewise.kernels.tie import first_best
from stagewise.kernels.trace import Trace, note
from stagewise.problem.errors import InvalidProblem
from stagewise.reports.result import Result
from stagewise.simulation.recording import empty_trace, recorded
from stagewise.worlds.arms import ArmsWorld
from stagewise.worlds.fresh import Fresh
from stagewise.worlds.linear import LinearWorld

RIDGE = 0.1
LOGGED_EVERY = 100


@kernel
def fill_choice(
    model: Regression, threshold: float, sampled: bool, t: int, draws: Floats, hoped: Floats, steps: Floats
) -> None:
    """Write every ray's step τ/U and its worth there, with the published radii; `t` counts from 0, and is positive.

    ρ = 2 √(2 log(√det(Σ/λ)/δ_t)),  δ_t = 1/(1 + n),  n points logged;   cost: ρ + √λ,   reward: ρ/min(1, τ) + √λ
    """
    followed, size = model.followed, model.ridge.root.shape[0]
    logged = 1.0 + (t - 1) // LOGGED_EVERY
    spread = 2.0 * math.sqrt(model.ridge.tally[0] + 2.0 * math.log(1.0 + logged))
    cost_radius = spread + math.sqrt(RIDGE)
    reward_radius = spread / min(1.0, threshold) + math.sqrt(RIDGE)
    for ray in range(hoped.size):
        width = math.sqrt(followed.forms[ray])
        steps[ray] = safe_step(followed.estimates[1, ray] + cost_radius * width, threshold)
        hoped[ray] = followed.estimates[0, ray] + (0.0 if sampled else reward_radius * width)
    if sampled:
        for i in range(size):
            add_multiple(math.sqrt(size) * reward_radius * draws[i], followed.columns[i], hoped)
    for ray in range(hoped.size):
        hoped[ray] *= steps[ray]


@kernel
def play_linear(
    model: Regression,
    means: Floats,
    threshold: Floats,
    sampled: bool,
    best: float,
    trace: Trace,
    room: Floats,
    seed: int,
    run: int,
    rounds: int,
) -> None:
    """Play LC-LUCB, or Safe-LTS, on fixed rays whose true means are (2, M), with noise N(0, 1)."""
    count, size = means.shape[1], model.ridge.root.shape[0]
    hoped, steps, draws = room[:count], room[count : 2 * count], room[2 * count : 2 * count + size]
    values, seen = room[2 * count + size : 2 * count + size + 2], room[2 * count + size + 2 : 2 * count + size + 4]
    work, dearest = room[2 * count + size + 4 :], 0.0
    for ray in range(count):
        dearest = max(dearest, means[1, ray])
    for t in range(rounds):
        if t == 0:
            ray = int(uniform(seed, run, 0, POLICY, 0) * count)
            step = threshold[0] / (2.0 * dearest)
        else:
            if sampled:
                fill_normal(draws, seed, run, t, POLICY)
            fill_choice(model, threshold[0], sampled, t, draws, hoped, steps)
            ray = first_best(hoped)
            step = steps[ray]
        first, second = normal_pair(seed, run, t, OUTCOME, 0)
        values[0], values[1] = step * means[0, ray], step * means[1, ray]
        seen[0], seen[1] = values[0] + first, values[1] + second
        note(trace, t, best, values, threshold)
        learn(model, hoped, ray, step, True, seen, work)


@kernel
def play_arms(
    means: Floats, threshold: Floats, best: float, trace: Trace, room: Floats, seed: int, run: int, rounds: int
) -> None:
    """Play OPB on arms with true means (2, K), seen with noise of sd 0.1 and cut to [0, 1]; arm 0 is free."""
    arms = means.shape[1]
    pulls, rewards, costs = room[:arms], room[arms : 2 * arms], room[2 * arms : 3 * arms]
    hoped, dearest, values = room[3 * arms : 4 * arms], room[4 * arms : 5 * arms], room[5 * arms : 5 * arms + 2]
    scale = 1.0 + 1.0 / threshold[0]
    for t in range(rounds):
        for arm in range(arms):
            width = math.sqrt(4.0 * math.log(rounds) / max(pulls[arm], 1.0))
            hoped[arm] = min(rewards[arm] + scale * width, 1.0)
            dearest[arm] = min(costs[arm] + width, 1.0) if arm > 0 else 0.0
        safe = hoped[0]
        hoped[0] = -math.inf
        pair = best_pair(hoped, dearest, safe, 0.0, threshold[0])
        cheap, dear = max(pair.cheap, 0), max(pair.dear, 0)
        for signal in range(2):
            values[signal] = (1.0 - pair.share) * means[signal, cheap] + pair.share * means[signal, dear]
        note(trace, t, best, values, threshold)
        arm = dear if uniform(seed, run, t, POLICY, 0) < pair.share else cheap
        first, second = normal_pair(seed, run, t, OUTCOME, 0)
        pulls[arm] += 1.0
        rewards[arm] += (min(max(means[0, arm] + 0.1 * first, 0.0), 1.0) - rewards[arm]) / pulls[arm]
        costs[arm] += (min(max(means[1, arm] + 0.1 * second, 0.0), 1.0) - costs[arm]) / pulls[arm]


@dataclass(frozen=True)
class Published:
    """A policy with the published settings, in the world it was played in."""

    kind: str  # "LC-LUCB", "Safe-LTS" or "OPB"
    threshold: float
    world: LinearWorld | ArmsWorld
    best: float
    rounds: int

    def __call__(self, run: int) -> Result:
        """Play one run."""
        begun = time.perf_counter()
        trace, threshold = empty_trace(recorded(self.rounds, RECORD), 1), np.array([self.threshold])
        if isinstance(self.world, ArmsWorld):
            room = np.zeros(5 * self.world.table.shape[1] + 2)
            play_arms(self.world.table.copy(), threshold, self.best, trace, room, SEED, run, self.rounds)
        else:
            features = np.array(listed(self.world))
            means = np.ascontiguousarray(self.world.parameters @ features.T)
            model = regression(features)
            room = np.zeros(2 * len(features) + features.shape[1] + 4 + 3 * features.shape[1] + len(features) + 2)
            sampled = self.kind == "Safe-LTS"
            play_linear(model, means, threshold, sampled, self.best, trace, room, SEED, run, self.rounds)
        return Result(
            rounds=trace.ends,
            regret=trace.regret[None],
            reward=trace.reward[None],
            cost=trace.cost[None],
            max_cost=trace.largest[None],
            violations=np.array([int(trace.running[2])], dtype=np.int64),
            optimum=trace.best[None],
            runs=np.array([run], dtype=np.int64),
            manifest={
                "policy": {"kind": f"{self.kind}, published settings", "settings": {"threshold": self.threshold}},
                "world": self.world.description(),
                "thresholds": {"cost": self.threshold},
                "rounds": self.rounds,
                "seed": SEED,
                "seconds": time.perf_counter() - begun,
            },
        )


def listed(world: LinearWorld) -> Floats:
    """Return the rays of a world that has the same ones in every round."""
    actions = world.actions
    if isinstance(actions, Fresh):
        raise InvalidProblem("the published settings are for rays that stay the same")
    return actions.features


def regression(features: Floats) -> Regression:
    """Return a regression of reward and cost that has seen nothing and follows the rays."""
    count, d = features.shape
    nothing = np.empty(0)
    model = Regression(
        Ridge(np.eye(d) / math.sqrt(RIDGE), np.zeros((2, d)), np.zeros(2)),
        Followed(np.zeros((d, count)), np.zeros((2, count)), np.zeros(count)),
        Anchor(nothing, 0.0, np.zeros(2), nothing),
        Belief(MIXTURE, RIDGE, 1.0, np.ones(2), np.ones(2), np.ones(2)),
    )
    follow(features, model, np.empty(d))
    return model
