"""The policy of a `Problem`: contextual CAPS with names and the user's units."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.policies.context_caps import ContextCAPS
from stagewise.policies.policy import State
from stagewise.policies.settings import set_derived
from stagewise.problem.context import Context
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.problem.signals import scale_outcome
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.problem_decision import ProblemDecision
from stagewise.records.random_key import RandomKey

if TYPE_CHECKING:
    from stagewise.policies.problem import Problem


@dataclass(frozen=True, eq=False)
class RangedThresholds(Thresholds):
    """Thresholds in the user's units, of costs that are learned in [0, 1]."""

    lows: Floats  # (m,)
    lengths: Floats  # (m,)

    bound_name: ClassVar[str] = "low and high"

    def to_user_units(self, signed: Floats) -> Floats:
        return self.lows + self.lengths * (self.signs * signed)

    def to_user_unit(self, constraint: int, signed: float) -> float:
        low, length = float(self.lows[constraint]), float(self.lengths[constraint])
        return low + length * (float(self.signs[constraint]) * signed)


class ProblemPolicy(ContextCAPS):
    """The policy of a `Problem`; `Agent(problem)` makes it.

    >>> import stagewise as sw
    >>> problem = sw.Problem(
    ...     actions=["nothing", "offer"], safe="nothing", reward=sw.Reward("click"),
    ...     limits={"opt_out": sw.Limit(0.02, safe=0.0)},
    ... )
    >>> decision = problem.policy().decide(problem.policy().start(), None)
    >>> decision.action_name, decision.limits
    ('nothing', {'opt_out': LimitStatus(pessimistic_cost=0.0, threshold=0.02, estimate=0.0)})
    """

    SAVED: ClassVar[tuple[str, ...]] = ("problem",)  # the fields that a file contains
    decision_type: ClassVar[type[Decision]] = ProblemDecision
    problem: "Problem"
    log_hint: ClassVar[str] = "; a problem's log has names, so give it to learn_frame"

    def __init__(self, *, problem: "Problem") -> None:
        set_derived(self, problem=problem)
        super().__init__(**problem.to_kwargs())

    @property
    def reward_name(self) -> str:  # type: ignore[override]
        return self.problem.reward.name

    @property
    def reward_span(self) -> tuple[float, float]:  # type: ignore[override]
        low, length = self.problem.spans[:, 0].tolist()
        return low, length

    @property
    def placeholder_values(self) -> list[float]:
        return [float(low) for low in self.problem.spans[0]]

    def decode_outcome(self, values: Floats) -> list[float]:
        lows, lengths = self.problem.spans
        unsigned = np.concatenate([values[:1], self.thresholds.to_user_units(values[1:])])
        return [float(value) for value in lows + lengths * unsigned]

    def encode_context(self, context: Any, only: Any) -> Context:
        """Return the context of a user; `only` lists eligible actions by name."""
        return self.problem.encode_context(context, only)

    @property
    def names(self) -> Sequence[str]:  # type: ignore[override]
        return self.problem.actions

    @cached_property
    def display_thresholds(self) -> Thresholds:
        lows, lengths = self.problem.spans[:, 1:]
        inner = self.thresholds
        declared = lows + lengths * inner.declared_safe
        safe = None if inner.safe is None else declared
        return RangedThresholds(inner.names, inner.signs, lows + lengths * inner.values, safe, declared, lows, lengths)

    def choose(self, state: State, actions: Any, draw: RandomKey) -> Decision:
        """Sample an action for a user, whose context is a mapping by name."""
        offered = actions if isinstance(actions, Context) else self.problem.encode_context(actions)
        decision: Any = super().choose(state, offered, draw)
        decision._actions, decision._limits = self.problem.actions, self.display_thresholds
        return decision  # type: ignore[no-any-return]

    def without_watch(self) -> "ProblemPolicy":
        return replace(self.problem, settings={**self.problem.settings, "check_assumptions": False}).policy()

    def encode_outcome(self, signals: Mapping[str, Any]) -> Floats | None:
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
        """Every signal's name, the range of its outcomes, and its sign."""
        signs = (1.0, *self.thresholds.signs.tolist())
        signals = self.problem.signals.items()
        return tuple((name, float(s.low), float(s.high), sign) for (name, s), sign in zip(signals, signs, strict=True))

    def values(self, reward: Any, cost: Any) -> Floats:
        """Return an outcome as it is learned: checked against the declared ranges and scaled to [0, 1]."""
        problem, thresholds = self.problem, self.thresholds
        costs = self.display_thresholds.costs(cost) if cost is not None else None
        if costs is None:
            raise InvalidOutcome(
                ErrorCode.OUTCOME_MISSING,
                "the cost is missing; it is needed for {names}",
                names=", ".join(thresholds.names),
            )
        values = np.empty(1 + costs.size)
        values[0] = scale_outcome(problem.reward, problem.reward.name, reward)
        for j, (name, limit) in enumerate(problem.limits.items()):
            values[1 + j] = thresholds.signs[j] * scale_outcome(limit, name, float(costs[j]))
        return values
