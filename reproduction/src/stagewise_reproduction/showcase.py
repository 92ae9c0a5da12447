"""Every policy on the paper's problems, with controls that violate their limits: the cases of `make certificates`."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.models.similarity import LinearKernel
from stagewise.policies.arms import OPB, SafeArmPosteriorSampling
from stagewise.policies.baselines import UCB, AlwaysSafe, LinUCB, SafeLTS
from stagewise.policies.caps import SafePosteriorSampling
from stagewise.policies.lclucb import DOSLB, LCLUCB, ROFUL
from stagewise.policies.oplb import OPLB, KernelOPLB
from stagewise.policies.opnlb import OPNLB
from stagewise.problem.convex import BallSet
from stagewise.problem.safe_action import SafeAction
from stagewise.reports.evidence import REFUTED, SUPPORTED
from stagewise.worlds.finite_worlds import ArmsWorld, FiniteSetWorld
from stagewise.worlds.linear_world import LinearWorld
from stagewise_reproduction.instances import at_zero, shifted

D, ROUNDS = 10, 10_000
LIMIT: dict[str, Any] = {"safe_action": at_zero(D), "threshold": 0.5}
ARMS = ArmsWorld(reward=[0.1, 0.2, 0.4, 0.7], cost=[0.0, 0.4, 0.5, 0.2])
ARM_LIMIT: dict[str, Any] = {"safe_action": SafeAction(arm=0, reward=0.1, cost=0.0), "threshold": 0.3}
ARM: dict[str, Any] = {"arms": 4, **ARM_LIMIT}
# the truth, and every table that exchanges two arms other than the safe one
REWARDS = [[0.1, 0.2, 0.4, 0.7], [0.1, 0.4, 0.2, 0.7], [0.1, 0.7, 0.4, 0.2], [0.1, 0.2, 0.7, 0.4]]
COSTS = [[0.0, 0.4, 0.5, 0.2], [0.0, 0.5, 0.4, 0.2], [0.0, 0.2, 0.5, 0.4], [0.0, 0.4, 0.2, 0.5]]
RAYS = shifted(D)
ENDS = np.vstack([np.zeros(D), RAYS.actions.features])
LOGGED = FiniteSetWorld(features=ENDS, reward=ENDS @ RAYS.parameters[0], cost=ENDS @ RAYS.parameters[1], noise=1.0)
BALL = LinearWorld(reward=RAYS.parameters[0], cost=RAYS.parameters[1], actions=BallSet(1.0), noise=1.0)


@dataclass(frozen=True)
class Case:
    """A policy in a world, and the verdict that a sound test must give."""

    name: str
    policy: Any
    world: Any
    expected: str = SUPPORTED
    most: tuple[int, int] = (ROUNDS, 10**9)  # maximal rounds and runs: interpreted rounds are a thousand times slower

    @property
    def title(self) -> str:
        """The title of its page: the policy and the problem."""
        if isinstance(self.world, ArmsWorld):
            return f"{self.name}, on four arms"
        return f"{self.name}, on the paper's ten rays" if self.world.actions.is_list else self.name


BY_HAND = (50, 1000)
SMALL: dict[str, Any] = {
    **LIMIT,
    "noise": 0.1,
    "norm_bound": 0.1,
    "check_assumptions": False,
}  # the watch would save it
NOISY = shifted(D, noise=10.0)
CASES = (
    Case("LC-LUCB", LCLUCB(**LIMIT, noise=1.0), RAYS),
    Case("ROFUL", ROFUL(**LIMIT, noise=1.0), RAYS),
    Case("Safe-LTS", SafeLTS(**LIMIT, noise=1.0), RAYS),
    Case("CAPS", SafePosteriorSampling(**LIMIT, noise=1.0), RAYS),
    Case("CAPS, mixtures", SafePosteriorSampling(**LIMIT, noise=1.0, mixtures=True), RAYS),
    Case("OPLB", OPLB(**LIMIT, noise=1.0), RAYS),
    Case("OPLB, directional", OPLB(**LIMIT, noise=1.0, optimism="directional"), RAYS),
    Case("OPLB, cone programs", OPLB(**LIMIT, noise=1.0, method="socp"), RAYS, most=BY_HAND),
    Case("ROFUL in the unit ball", ROFUL(**LIMIT, noise=1.0), BALL, most=BY_HAND),
    Case("KernelOPLB", KernelOPLB(**LIMIT, kernel=LinearKernel(), norm_bound=1.0, noise=1.0), LOGGED),
    Case("OPB, hoeffding", OPB(**ARM, interval="hoeffding"), ARMS),
    Case("OPB, kl", OPB(**ARM, interval="kl"), ARMS),
    Case("CAPS, arms", SafeArmPosteriorSampling(**ARM), ARMS),
    Case("OPNLB", OPNLB(**ARM_LIMIT, reward_class=REWARDS, cost_class=COSTS), ARMS, most=BY_HAND),
    Case("OPNLB, rows", OPNLB(**ARM_LIMIT, reward_class=REWARDS, cost_class=COSTS, method="rows"), ARMS, most=BY_HAND),
    Case("OPB, paper", OPB(**ARM, interval="paper", horizon=ROUNDS), ARMS),
    Case("AlwaysSafe", AlwaysSafe(**LIMIT), RAYS),
    Case("LinUCB", LinUCB(**LIMIT, noise=1.0), RAYS, REFUTED),
    Case("UCB", UCB(**ARM, interval="hoeffding"), ARMS, REFUTED),
    Case("DOSLB", DOSLB(**LIMIT, noise=1.0), RAYS, REFUTED),
    Case("LC-LUCB, radius ten times too small", LCLUCB(**SMALL), RAYS, REFUTED),
    Case("CAPS, radius ten times too small", SafePosteriorSampling(**SMALL), RAYS, REFUTED),
    Case("LC-LUCB, world ten times as noisy", LCLUCB(**LIMIT, noise=1.0, check_assumptions=False), NOISY, REFUTED),
)
