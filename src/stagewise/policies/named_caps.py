"""What plays a problem: certified posterior sampling, given contexts by name, in the user's own units."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.policies.context_caps import ContextCAPS
from stagewise.policies.named_decision import NamedDecision
from stagewise.policies.policy import State
from stagewise.policies.settings import settle
from stagewise.problem.context import Context
from stagewise.problem.declared import scaled
from stagewise.problem.errors import InvalidOutcome
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw

if TYPE_CHECKING:
    from stagewise.policies.problem import Problem


@dataclass(frozen=True, eq=False)
class Ranged(Thresholds):
    """Thresholds in the user's units, of costs that are learned in [0, 1]."""

    lows: Floats  # (m,)
    lengths: Floats  # (m,)

    bound_name: ClassVar[str] = "low and high"

    def in_units(self, signed: Floats) -> Floats:
        return self.lows + self.lengths * (self.signs * signed)

    def in_unit(self, constraint: int, signed: float) -> float:
        low, length = float(self.lows[constraint]), float(self.lengths[constraint])
        return low + length * (float(self.signs[constraint]) * signed)


class NamedCAPS(ContextCAPS):
    """The policy of a `Problem`; `Agent(problem)` makes it.

    >>> import stagewise as sw
    >>> problem = sw.Problem(
    ...     actions=["nothing", "offer"], safe="nothing", reward=sw.Reward("click"),
    ...     limits={"opt_out": sw.Limit(0.02, safe=0.0)},
    ... )
    >>> decision = problem.policy().decide(problem.policy().start(), None)
    >>> decision.name, decision.limits
    ('nothing', {'opt_out': Kept(dearest=0.0, threshold=0.02, estimate=0.0)})
    """

    SAVED: ClassVar[tuple[str, ...]] = ("problem",)  # what a file holds of it
    decides: ClassVar[type[Decision]] = NamedDecision
    problem: "Problem"
    log_hint: ClassVar[str] = "; a problem's log has names, so give it to learn_frame"

    def __init__(self, *, problem: "Problem") -> None:
        settle(self, problem=problem)
        super().__init__(**problem.told())

    @property
    def reward_name(self) -> str:  # type: ignore[override]
        return self.problem.reward.name

    @property
    def reward_span(self) -> tuple[float, float]:  # type: ignore[override]
        low, length = self.problem.spans[:, 0].tolist()
        return low, length

    @property
    def blank(self) -> list[float]:
        return [float(low) for low in self.problem.spans[0]]

    def given(self, values: Floats) -> list[float]:
        lows, lengths = self.problem.spans
        unsigned = np.concatenate([values[:1], self.thresholds.in_units(values[1:])])
        return [float(value) for value in lows + lengths * unsigned]

    def offered(self, context: Any, only: Any) -> Context:
        """Return what is offered to a user: only some of the actions, by name."""
        return self.problem.offered(context, only)

    @property
    def names(self) -> Sequence[str]:  # type: ignore[override]
        return self.problem.actions

    @cached_property
    def presented(self) -> Thresholds:
        lows, lengths = self.problem.spans[:, 1:]
        inner = self.thresholds
        told = lows + lengths * inner.told
        safe = None if inner.safe is None else told
        return Ranged(inner.names, inner.signs, lows + lengths * inner.values, safe, told, lows, lengths)

    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        """Draw an action for a user, whose context is a mapping by name."""
        offered = actions if isinstance(actions, Context) else self.problem.offered(actions)
        decision: Any = super().choose(state, offered, draw)
        decision._actions, decision._limits = self.problem.actions, self.presented
        return decision  # type: ignore[no-any-return]

    def unwatched(self) -> "NamedCAPS":
        return replace(self.problem, settings={**self.problem.settings, "watch": False}).policy()

    def told(self, signals: Mapping[str, Any]) -> Floats | None:
        values = np.empty(len(self._scales))
        for k, (name, low, high, sign) in enumerate(self._scales):
            value: Any = signals.get(name)
            kind = type(value)
            if (kind is not float and kind is not bool and kind is not int) or not low <= value <= high:
                return None
            values[k] = sign * ((float(value) - low) / (high - low))
        return values

    @cached_property
    def _scales(self) -> tuple[tuple[str, float, float, float], ...]:
        """Every signal's name, the least and the most that an outcome of it can be, and its sign."""
        signs = (1.0, *self.thresholds.signs.tolist())
        signals = self.problem.signals.items()
        return tuple((name, float(s.low), float(s.high), sign) for (name, s), sign in zip(signals, signs, strict=True))

    def values(self, reward: Any, cost: Any) -> Floats:
        """Return an outcome as it is learned from: checked against the declared ranges, and scaled to [0, 1]."""
        problem, thresholds = self.problem, self.thresholds
        costs = self.presented.costs(cost) if cost is not None else None
        if costs is None:
            raise InvalidOutcome(f"the cost is missing; it is needed for {', '.join(thresholds.names)}")
        values = np.empty(1 + costs.size)
        values[0] = scaled(problem.reward, problem.reward.name, reward)
        for j, (name, limit) in enumerate(problem.limits.items()):
            values[1 + j] = thresholds.signs[j] * scaled(limit, name, float(costs[j]))
        return values
