"""Algorithm 1, LC-LUCB, with the bonus and the radii that are printed."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw
from stagewise.records.reason import Cause, Reason
from stagewise_reproduction.printed.ridge import Estimates, PrintedRegression, Seen, widths

ROUNDING = 1e-12
EMPTY = Cause.of(Reason.CUSTOM, message="the estimated feasible set is empty, and the paper does not say what to play")


@dataclass(frozen=True, kw_only=True, eq=False)
class PrintedLCLUCB(PrintedRegression):
    """Maximise ⟨x, θ̂⟩ + α_r β_t(δ, d) ‖x‖ over the actions whose pessimistic cost (10) is at most τ.

    On `Rays` every point of a ray is an action. On `Finite` only the listed points and the safe action are: the paper
    says that the algorithm can be used there, and proves nothing of its regret.

    >>> from stagewise.problem.actions import Rays
    >>> from stagewise.problem.safe_action import SafeAction
    >>> safe = SafeAction(features=[0.0, 0.0], reward=0.0, cost=0.0)
    >>> policy = PrintedLCLUCB(safe_action=safe, threshold=0.5, noise=0.1)
    >>> decision = policy.decide(policy.start(), Rays([[1.0, 0.0], [0.0, 1.0]]))
    >>> decision.index, round(decision.step, 3), round(decision.hoped, 3)
    (0, 0.412, 2.683)
    """

    cost_scale: ClassVar[float] = 1.0

    def decide(self, state: Any, actions: Any, draw: Draw = Draw()) -> Decision:  # noqa: B008 (a draw cannot change)
        """Return lines 3 and 4 of the algorithm."""
        return self.best(state, *self.scales(), actions, draw)

    def scales(self) -> tuple[float, float]:
        """Return α_r = 1 + (1 + α_c)(1 − r₀)/(τ − c₀), the smallest that the lemma on optimism allows, and α_c."""
        reward, cost = self.safe_action.reward or 0.0, float(self.known_cost @ self.safe)
        return 1.0 + (1.0 + self.cost_scale) * (1.0 - reward) / (self.threshold - cost), self.cost_scale

    def best(self, seen: Seen, reward_scale: float, cost_scale: float, actions: Any, draw: Draw) -> Decision:
        """Return the action with the largest optimistic reward among those whose pessimistic cost is within τ."""
        told, targets = self.estimates(seen), np.asarray(actions.features)
        radius = cost_scale * told.cost_radius
        steps = self.ends(told, radius, targets) if actions.between else np.tile([0.0, 1.0], (len(targets), 1))
        points = self.safe + steps[:, :, np.newaxis] * (targets - self.safe)[:, np.newaxis]
        costs = points @ told.cost + radius * widths(points, told.cost_inverse)
        values = points @ told.reward + reward_scale * told.reward_radius * widths(points, told.inverse)
        values[costs > self.threshold + ROUNDING * max(1.0, abs(self.threshold))] = -np.inf
        ray, end = divmod(int(np.argmax(values)), values.shape[1])
        empty = bool(values[ray, end] == -np.inf)
        step = 0.0 if empty else float(steps[ray, end])
        return Decision(
            action=self.safe + step * (targets[ray] - self.safe),
            index=ray if step > 0.0 else -1,
            step=step,
            probabilities=None,
            hoped=float(values[ray, end]),
            dearest=np.array([costs[ray, end]]),
            thresholds=np.array([self.threshold]),
            cause=EMPTY if empty else None,
            round=draw.round,
        )

    def ends(self, told: Estimates, radius: float, targets: Floats) -> Floats:
        """Return steps (M, 4) among which are both ends of every ray's feasible part: 0, 1, and where the bound is τ.

        The pessimistic cost is convex along a ray, so this part is one interval; it need not begin at the safe action
        where that action's own cost is uncertain.
        """
        ways = targets - self.safe
        room, slopes = self.threshold - float(self.safe @ told.cost), ways @ told.cost
        start = float(self.safe @ told.cost_inverse @ self.safe)
        square = radius**2 * widths(ways, told.cost_inverse) ** 2 - slopes**2
        middle = radius**2 * (ways @ told.cost_inverse @ self.safe) + room * slopes
        rest = radius**2 * start - room**2
        with np.errstate(divide="ignore", invalid="ignore"):
            root = np.sqrt(middle**2 - square * rest)
            found = np.column_stack([(-middle - root) / square, (-middle + root) / square, -rest / (2.0 * middle)])
        found = np.where((found > 0.0) & (found < 1.0), found, 0.0)
        linear = np.abs(square) <= ROUNDING * np.maximum(slopes**2, ROUNDING)
        pair = np.where(linear[:, np.newaxis], found[:, [2, 2]], found[:, :2])
        return np.column_stack([np.zeros(len(ways)), np.ones(len(ways)), pair])
