"""The settings that made the published curves; they are not ours to offer as policies."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.radius import MIXTURE, Belief
from stagewise.kernels.ridge import Anchor, Followed, Regression, Ridge, follow, tally_size
from stagewise.problem.errors import InvalidProblem
from stagewise.reports.result import Result
from stagewise.simulation.judge import judge
from stagewise.simulation.recording import empty_trace, recorded
from stagewise.worlds.arms import ArmsWorld
from stagewise.worlds.fresh import Fresh
from stagewise.worlds.linear import LinearWorld
from stagewise_reproduction.cell import RECORD, SEED, Play
from stagewise_reproduction.published_loops import RIDGE, play_arms, play_linear


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
            means, noise = self.world.table.copy(), self.world.noise.copy()
            room, kind = np.zeros(5 * means.shape[1] + 6), self.world.kind
            play_arms(means, noise, kind, threshold, self.best, trace, room, SEED, run, self.rounds)
        else:
            features = np.array(listed(self.world))
            means = np.ascontiguousarray(self.world.parameters @ features.T)
            model = regression(features)
            room = np.zeros(2 * len(features) + features.shape[1] + 4 + 3 * features.shape[1] + len(features) + 2)
            sampled = self.kind == "Safe-LTS"
            noise = self.world.noise.copy()
            play_linear(model, means, noise, threshold, sampled, self.best, trace, room, SEED, run, self.rounds)
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


def published(kind: str, made: Callable[[int], tuple[Any, Any]], rounds: int) -> Play:
    """Return how a run is played with the published settings where each run has its own world and threshold."""

    def play(run: int) -> Result:
        policy, world = made(run)
        threshold, best = float(policy.thresholds.values[0]), judge(policy, world).best(world.actions)
        return Published(kind, threshold, world, best, rounds)(run)

    return play


def listed(world: LinearWorld) -> Floats:
    """Return the rays of a world that has the same ones in every round."""
    actions = world.actions
    if isinstance(actions, Fresh):
        raise InvalidProblem("the published settings are for rays that stay the same")
    features: Floats = actions.features
    return features


def regression(features: Floats) -> Regression:
    """Return a regression of reward and cost that has seen nothing and follows the rays."""
    count, d = features.shape
    nothing = np.empty(0)
    model = Regression(
        Ridge(np.eye(d) / math.sqrt(RIDGE), np.zeros((2, d)), np.zeros(tally_size(2))),
        Followed(np.zeros((d, count)), np.zeros((2, count)), np.zeros(count)),
        Anchor(nothing, 0.0, np.zeros(2), nothing),
        Belief(MIXTURE, RIDGE, 1.0, np.ones(2), np.ones(2), np.ones(2)),
    )
    follow(features, model, np.empty(d))
    return model
