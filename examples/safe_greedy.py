"""A custom policy with three methods (docs/how-to/extend.md)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import stagewise as sw

Floats = npt.NDArray[np.float64]
FIRST = sw.RandomKey()


def chance(draw: sw.RandomKey, stream: int) -> np.random.Generator:
    """Return a generator that is determined by the seed, the run, the round and the stream."""
    return np.random.default_rng([draw.seed % 2**64, draw.run, draw.round, stream])


class Memory(NamedTuple):
    pulls: Floats  # (K,)
    sums: Floats  # (2, K) of rewards and of costs


@dataclass(frozen=True, kw_only=True)
class SafeGreedy:
    """Mix the best arm so far, or sometimes a random one, with the safe arm, so that the mixture keeps the limit."""

    arms: int
    safe_arm: int
    safe_cost: float  # its mean, which is known
    threshold: float
    delta: float = 0.05
    curiosity: float = 0.1

    @property
    def safe_action(self) -> sw.SafeAction:
        return sw.SafeAction(arm=self.safe_arm, cost=self.safe_cost)

    def start(self) -> Memory:
        return Memory(np.zeros(self.arms), np.zeros((2, self.arms)))

    def decide(self, state: Memory, actions: sw.ArmSet, draw: sw.RandomKey = FIRST) -> sw.Decision:
        rng, n = chance(draw, 0), np.maximum(state.pulls, 1.0)
        reward, cost = state.sums / n
        width = np.sqrt(np.log(self.arms * n * (n + 1) / self.delta) / (2 * n))  # Hoeffding, for all n at once
        pessimistic = np.where(state.pulls > 0, np.minimum(cost + width, 1.0), 1.0)
        arm = int(rng.integers(self.arms)) if rng.random() < self.curiosity else int(np.argmax(reward))
        safe, safe_cost = self.safe_arm, self.safe_cost
        share = min(1.0, (self.threshold - safe_cost) / max(pessimistic[arm] - safe_cost, 1e-9))
        mixture = np.zeros(self.arms + 1)  # of each arm; the last entry, for a safe action outside the list, is 0
        mixture[safe] += 1.0 - share
        mixture[arm] += share if arm != safe else 1.0 - mixture[safe]
        played = arm if rng.random() < share else safe
        bound = mixture[:-1] @ np.where(np.arange(self.arms) == safe, safe_cost, pessimistic)
        return sw.Decision(
            action=played,
            action_index=played,
            step_size=1.0,
            probabilities=mixture,
            optimistic_reward=float(reward[arm]),
            pessimistic_cost=np.array([bound]),
            thresholds=np.array([self.threshold]),
            reason_details=None,
            round=draw.round,
        )

    def learn(self, state: Memory, decision: sw.Decision, outcome: sw.Outcome) -> Memory:
        pulls, sums = state.pulls.copy(), state.sums.copy()
        cost: Any = outcome.cost  # a number, or a list of one
        pulls[decision.action] += 1.0
        sums[:, decision.action] += outcome.reward, float(np.ravel(cost)[0])
        return Memory(pulls, sums)


if __name__ == "__main__":
    policy = SafeGreedy(arms=3, safe_arm=0, safe_cost=0.0, threshold=0.2)
    agent = sw.Agent(policy, seed=1)
    decision = agent.decide(sw.ArmSet(3))
    agent.learn(decision, reward=0.5, cost=0.1)
    print(decision.action, sw.simulate(policy, sw.ArmsWorld(reward=[0.1, 0.5, 0.9], cost=[0.0, 0.1, 0.6]), rounds=100))
