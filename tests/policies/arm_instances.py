"""Random arms with the data least favourable to optimism, and the intervals these data lead to."""

import math
from typing import Any, NamedTuple

import numpy as np
from tests.policies.witness import best_mixture

from stagewise import OPB, Agent, ArmSet, SafeAction
from stagewise.engine.compile import Floats, Ints
from stagewise.records.decision import Decision


class Case(NamedTuple):
    """What an instance is to be like."""

    constraints: int = 1
    noise: tuple[float, float] = (0.1, 0.1)  # of the reward and of every cost
    horizon: int | None = None
    cost_confidence_scale: float = 1.0
    reward_known: bool = True
    cost_known: bool = True


KNOWN = {
    "one constraint": Case(),
    "three constraints": Case(constraints=3),
    "noisier costs": Case(noise=(0.05, 0.4)),
    "noisier reward": Case(noise=(0.4, 0.05), constraints=3),
    "horizon": Case(horizon=1000),
    "scaled costs": Case(cost_confidence_scale=2.0, constraints=3),
    "unknown reward": Case(reward_known=False),
}
UNKNOWN = {
    "unknown cost": Case(cost_known=False),
    "unknown costs": Case(cost_known=False, constraints=3),
    "unknown noisier costs": Case(cost_known=False, noise=(0.05, 0.2)),
    "unknown reward and costs": Case(reward_known=False, cost_known=False, constraints=3),
    "unknown scaled costs": Case(cost_known=False, cost_confidence_scale=1.5),
}
DELTA = 0.2


def unit_width(pulls: int, arms: int, signals: int, horizon: int | None, delta: float) -> float:
    """Return the radius of a mean of so many 1-sub-Gaussian numbers, all arms and signals together failing with δ."""
    if horizon is not None:
        return math.sqrt(2.0 * math.log(2.0 * signals * arms * horizon / delta) / pulls)
    return math.sqrt((1.0 + 1.0 / pulls) * (math.log1p(pulls) + 2.0 * math.log(signals * arms / delta)) / pulls)


class Instance(NamedTuple):
    """Arms, their truth and their data."""

    settings: dict[str, Any]  # of OPB
    truth: Floats  # (1 + m, K) mean rewards, then costs
    safe: int
    thresholds: Floats  # (m,)
    pulls: Ints  # (K,)
    means: Floats  # (1 + m, K) of what was seen; 0 where nothing was
    half: Floats  # (1 + m, K) half-widths of the intervals

    def on_event(self) -> bool:
        """Whether every interval of an arm that was pulled contains its truth."""
        return bool(np.all((np.abs(self.means - self.truth) <= self.half)[:, self.pulls > 0]))

    @property
    def others(self) -> Ints:
        return np.array([arm for arm in range(self.pulls.size) if arm != self.safe])

    def best_mixture(self) -> float:
        """Return the true optimum."""
        listed, safe = self.truth[:, self.others], self.truth[:, self.safe]
        return best_mixture(listed[0], np.ascontiguousarray(listed[1:]), float(safe[0]), safe[1:], self.thresholds)

    def decided(self, **settings: Any) -> Decision:
        """Return what OPB decides after the data."""
        agent = Agent(OPB(**{**self.settings, **settings}))
        pulled = np.repeat(np.arange(self.pulls.size), self.pulls)
        agent.learn_log(pulled, self.means[0, pulled], self.means[1:, pulled].T)
        return agent.decide(ArmSet(self.pulls.size))


def random_instance(random: np.random.Generator, case: Case) -> Instance:
    """Draw arms, then pulls whose rewards looked as low and whose costs looked as high as the intervals allow."""
    arms, m = int(random.integers(3, 7)), case.constraints
    safe = int(random.integers(arms))
    truth = random.uniform(0.0, 1.0, size=(1 + m, arms))
    truth[:, safe] *= 0.4
    thresholds = truth[1:, safe] + random.uniform(0.05, 0.4, size=m)
    pulls = random.integers(0, 80, size=arms)
    pulls[safe] += 0 if case.cost_known else 250
    noise = np.array([case.noise[0], *[case.noise[1]] * m])
    widths = np.array([unit_width(max(int(n), 1), arms, 1 + m, case.horizon, DELTA) for n in pulls])
    widths[pulls == 0] = np.maximum(
        widths[pulls == 0], 1.0 / noise.min()
    )  # nothing seen: anything up to 1 is plausible
    half = noise[:, np.newaxis] * widths
    lean = np.array([-1.0, *[1.0] * m])[:, np.newaxis] * float(random.choice([0.5, 0.9, 0.9999]))
    means = np.where(pulls > 0, truth + lean * half, 0.0)
    settings = {
        "arms": arms,
        "safe_action": SafeAction(
            arm=safe,
            reward=float(truth[0, safe]) if case.reward_known else None,
            cost=truth[1:, safe] if case.cost_known else None,
        ),
        "threshold": thresholds,
        "horizon": case.horizon,
        "noise": noise,
        "delta": DELTA,
        "cost_confidence_scale": case.cost_confidence_scale,
        "mean_cost_bound": max(1.0, 1.1 * float(np.max(thresholds))),
        "check_assumptions": False,  # the data are made up to be as unfavourable as the intervals allow
    }
    return Instance(settings, truth, safe, thresholds, pulls, means, half)
