"""Random linear problems with the data least favourable to optimism, and the beliefs these data lead to."""

from typing import Any, NamedTuple

import numpy as np
from tests.policies.witness import Belief, Signal, believed, best_mixture, best_on_rays, unlucky

from stagewise import Agent, SafeAction
from stagewise.engine.compile import Floats
from stagewise.records.decision import Decision


class Case(NamedTuple):
    """What an instance is to be like."""

    origin: bool = False  # the safe action is the zero vector
    constraints: int = 1
    noise: tuple[float, float] = (0.02, 0.02)  # of the reward and of every cost
    cost_confidence_scale: float = 1.0
    reward_known: bool = True
    cost_known: bool = True
    radius: str = "joint"


KNOWN = {
    "zero safe action": Case(origin=True),
    "safe action elsewhere": Case(),
    "three constraints from zero": Case(origin=True, constraints=3),
    "three constraints": Case(constraints=3),
    "noisier costs": Case(noise=(0.01, 0.2), constraints=3),
    "noisier reward": Case(noise=(0.2, 0.01), origin=True),
    "scaled costs": Case(cost_confidence_scale=2.0),
    "scaled noisier costs": Case(cost_confidence_scale=1.5, origin=True, constraints=3, noise=(0.01, 0.1)),
    "log-det radius": Case(radius="logdet"),
    "unknown reward": Case(reward_known=False, constraints=3),
}
UNKNOWN = {
    "unknown cost": Case(cost_known=False),
    "unknown costs": Case(cost_known=False, constraints=3),
    "unknown noisier costs": Case(cost_known=False, noise=(0.01, 0.05)),
    "unknown scaled costs": Case(cost_known=False, cost_confidence_scale=2.0),
    "unknown reward and cost": Case(reward_known=False, cost_known=False),
    "unknown reward and costs": Case(reward_known=False, cost_known=False, constraints=3, noise=(0.05, 0.02)),
}
DELTA = 0.2


class Instance(NamedTuple):
    """A problem, its truth and its data."""

    settings: dict[str, Any]  # of a linear policy
    signals: list[Signal]  # the reward, then every cost
    targets: Floats  # (M, d)
    thresholds: Floats  # (m,)
    actions: Floats  # (n, d) as they were played,
    observed: Floats  # (1 + m, n) and what was seen
    beliefs: list[Belief]

    @property
    def safe(self) -> Floats:
        return self.signals[0].safe

    @property
    def costs(self) -> Floats:
        """The costs' parameters (m, d)."""
        return np.array([signal.truth for signal in self.signals[1:]])

    def on_event(self) -> bool:
        """Whether every confidence set contains its truth."""
        return all(belief.holds() for belief in self.beliefs)

    def best_point(self) -> float:
        """Return the true optimum on the rays."""
        return best_on_rays(self.safe, self.targets, self.signals[0].truth, self.costs, self.thresholds)[0]

    def best_mixture(self) -> float:
        """Return the true optimum over mixtures of the targets and the safe action."""
        reward = self.signals[0]
        values, safe_value = reward.value(self.targets), float(reward.value(self.safe))
        return best_mixture(values, self.costs @ self.targets.T, safe_value, self.costs @ self.safe, self.thresholds)

    def decided(self, kind: Any, actions: Any, **settings: Any) -> Decision:
        """Return what a policy of this kind decides after the data."""
        agent = Agent(kind(**{**self.settings, **settings}))
        agent.learn_log(self.actions, self.observed[0], self.observed[1:].T)
        return agent.decide(actions(self.targets))


def direction(random: np.random.Generator, d: int) -> Floats:
    vector = random.normal(size=d)
    return vector / np.linalg.norm(vector)


def random_truths(random: np.random.Generator, d: int, constraints: int, safe: Floats) -> list[Floats]:
    """Return parameters of norm at most 1: the safe action's reward is not negative, and what is good tends to cost."""
    reward = direction(random, d) * random.uniform(0.6, 1.0)
    reward = -reward if reward @ safe < 0.0 else reward
    tied = [reward + 0.7 * direction(random, d) for _ in range(constraints)]
    return [reward, *(vector / np.linalg.norm(vector) * random.uniform(0.6, 1.0) for vector in tied)]


def random_instance(random: np.random.Generator, case: Case) -> Instance:
    """Draw a problem, then outcomes that put the truth close to the boundary of every confidence set."""
    d, m = int(random.integers(2, 5)), case.constraints
    safe = np.zeros(d) if case.origin else direction(random, d) * random.uniform(0.3, 1.0)
    truths = random_truths(random, d, m, safe)
    noise, ridge = [case.noise[0], *[case.noise[1]] * m], float(random.choice([1.0, 0.1, 0.01, 0.01]))
    known = [case.reward_known, *[case.cost_known] * m]
    signals = [Signal(truths[k], safe, known[k], noise[k], DELTA / (1 + m), ridge) for k in range(1 + m)]
    costs = np.array(truths[1:])
    targets = np.array([direction(random, d) * random.uniform(0.5, 1.0) for _ in range(4)])
    thresholds = costs @ safe + random.uniform(0.05, 0.4, size=m)
    _, ray = best_on_rays(safe, targets, truths[0], costs, thresholds)
    towards = targets[max(ray, 0)]

    steps = random.uniform(0.0, 1.0, size=int(random.integers(4, 40)))
    rays = targets[random.integers(0, 4, size=steps.size)]
    explored = safe + steps[:, np.newaxis] * (rays - safe)
    spanning = 0.3 * np.eye(d)
    returns = int(random.integers(1, 40) if case.cost_known else random.integers(40, 200))
    actions = np.vstack([np.tile(safe, (returns, 1)), spanning, explored])
    share = float(random.choice([0.5, 0.9, 0.9999]))
    observed = np.array(
        [unlucky(s, actions, towards, -1.0 if k == 0 else 1.0, share, case.radius) for k, s in enumerate(signals)]
    )
    beliefs = [believed(s, actions, y, case.radius) for s, y in zip(signals, observed, strict=True)]
    settings = {
        "safe_action": SafeAction(
            features=safe,
            reward=float(safe @ truths[0]) if case.reward_known else None,
            cost=costs @ safe if case.cost_known else None,
        ),
        "threshold": thresholds,
        "noise": noise,
        "delta": DELTA,
        "ridge": ridge,
        "radius": case.radius,
        "cost_confidence_scale": case.cost_confidence_scale,
        "mean_cost_bound": max(1.0, 1.1 * float(thresholds.max())),
        "check_assumptions": False,  # the data are made up to be as unfavourable as the confidence sets allow
    }
    return Instance(settings, signals, targets, thresholds, actions, observed, beliefs)
