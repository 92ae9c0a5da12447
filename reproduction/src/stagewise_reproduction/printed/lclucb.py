"""Algorithm 1, LC-LUCB, with the printed bonus and radii."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.records.reason import FallbackReason, ReasonDetails
from stagewise_reproduction.printed.ridge import Estimates, PrintedRegression, RegressionSums, compute_widths

ROUNDING = 1e-12
EMPTY = ReasonDetails.of(
    FallbackReason.CUSTOM, message="the estimated feasible set is empty, and the paper does not say what to play"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class PrintedLCLUCB(PrintedRegression):
    """Maximise ⟨x, θ̂⟩ + α_r β_t(δ, d) ‖x‖ over the actions whose pessimistic cost (10) is at most τ.

    On `RaySet` every point of a ray is an action. On `FiniteSet` only the listed points and the safe action are
    actions: the paper allows this and proves nothing about its regret.

    >>> from stagewise.problem.actions import RaySet
    >>> from stagewise.problem.safe_action import SafeAction
    >>> safe = SafeAction(features=[0.0, 0.0], reward=0.0, cost=0.0)
    >>> policy = PrintedLCLUCB(safe_action=safe, threshold=0.5, noise=0.1)
    >>> decision = policy.decide(policy.start(), RaySet([[1.0, 0.0], [0.0, 1.0]]))
    >>> decision.action_index, round(decision.step_size, 3), round(decision.optimistic_reward, 3)
    (0, 0.412, 2.683)
    """

    cost_confidence_scale: ClassVar[float] = 1.0

    def decide(self, state: Any, actions: Any, draw: RandomKey = RandomKey()) -> Decision:  # noqa: B008 (a draw cannot change)
        """Return lines 3 and 4 of the algorithm."""
        return self.choose_best(state, *self.scales(), actions, draw)

    def scales(self) -> tuple[float, float]:
        """Return α_r = 1 + (1 + α_c)(1 − r₀)/(τ − c₀), the smallest that the lemma on optimism allows, and α_c."""
        reward, cost = self.safe_action.reward or 0.0, float(self.known_cost @ self.safe)
        return 1.0 + (1.0 + self.cost_confidence_scale) * (1.0 - reward) / (
            self.threshold - cost
        ), self.cost_confidence_scale

    def choose_best(
        self,
        sums: RegressionSums,
        reward_confidence_scale: float,
        cost_confidence_scale: float,
        actions: Any,
        draw: RandomKey,
    ) -> Decision:
        """Return the action with the largest optimistic reward among those whose pessimistic cost is within τ."""
        fit, targets = self.estimates(sums), np.asarray(actions.features)
        radius = cost_confidence_scale * fit.cost_radius
        steps = self.compute_steps(fit, radius, targets) if actions.between else np.tile([0.0, 1.0], (len(targets), 1))
        points = self.safe + steps[:, :, np.newaxis] * (targets - self.safe)[:, np.newaxis]
        costs = points @ fit.cost + radius * compute_widths(points, fit.cost_inverse)
        values = points @ fit.reward + reward_confidence_scale * fit.reward_radius * compute_widths(points, fit.inverse)
        values[costs > self.threshold + ROUNDING * max(1.0, abs(self.threshold))] = -np.inf
        ray, end = divmod(int(np.argmax(values)), values.shape[1])
        empty = bool(values[ray, end] == -np.inf)
        step = 0.0 if empty else float(steps[ray, end])
        return Decision(
            action=self.safe + step * (targets[ray] - self.safe),
            action_index=ray if step > 0.0 else None,
            step_size=step,
            probabilities=None,
            optimistic_reward=float(values[ray, end]),
            pessimistic_cost=np.array([costs[ray, end]]),
            thresholds=np.array([self.threshold]),
            reason_details=EMPTY if empty else None,
            round=draw.round,
        )

    def compute_steps(self, fit: Estimates, radius: float, targets: Floats) -> Floats:
        """Return steps (M, 4) that include both ends of every ray's feasible part: 0, 1, and where the bound is τ.

        The pessimistic cost is convex along a ray, so the feasible part is one interval; it need not start at the safe
        action if that action's own cost is uncertain.
        """
        directions = targets - self.safe
        slack, slopes = self.threshold - float(self.safe @ fit.cost), directions @ fit.cost
        start = float(self.safe @ fit.cost_inverse @ self.safe)
        square = radius**2 * compute_widths(directions, fit.cost_inverse) ** 2 - slopes**2
        middle = radius**2 * (directions @ fit.cost_inverse @ self.safe) + slack * slopes
        rest = radius**2 * start - slack**2
        with np.errstate(divide="ignore", invalid="ignore"):
            root = np.sqrt(middle**2 - square * rest)
            found = np.column_stack([(-middle - root) / square, (-middle + root) / square, -rest / (2.0 * middle)])
        found = np.where((found > 0.0) & (found < 1.0), found, 0.0)
        linear = np.abs(square) <= ROUNDING * np.maximum(slopes**2, ROUNDING)
        pair = np.where(linear[:, np.newaxis], found[:, [2, 2]], found[:, :2])
        return np.column_stack([np.zeros(len(directions)), np.ones(len(directions)), pair])
