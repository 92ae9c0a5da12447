"""Worlds of listed actions with a mean for each: arms, and actions with features and arbitrary means."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from stagewise.engine.world_draws import BERNOULLI, CLIPPED, GAUSSIAN
from stagewise.problem.actions import ArmSet, FiniteSet
from stagewise.problem.checks import Floats, PerSignal, check_array, check_choice, check_integer, copy_read_only
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.worlds.noisy_world import (
    NoisyWorld,
    check_probabilities,
    describe_eligible,
    get_signal_names,
    parse_means,
    parse_noise,
    select_eligible,
)

Outcomes = Literal["bernoulli", "gaussian", "clipped-gaussian"]
OUTCOMES: dict[str, int] = {"bernoulli": BERNOULLI, "gaussian": GAUSSIAN, "clipped-gaussian": CLIPPED}


class BaseTableWorld(NoisyWorld):
    """A world of K actions with one mean for each signal and action."""

    truth = "table"
    kinds = OUTCOMES

    def __init__(self, reward: Any, cost: Any, outcomes: str, noise: Any) -> None:
        table, self.names = parse_means(reward, cost, "K")
        signals = get_signal_names(len(table) - 1, self.names)
        self.outcomes = check_choice(outcomes, tuple(OUTCOMES), "outcomes")
        if self.outcomes != "gaussian":
            check_probabilities(table.min(axis=1), table.max(axis=1), signals, self.outcomes)
        self.table = copy_read_only(table)  # (1 + m, K)
        self.noise = copy_read_only(parse_noise(noise, signals, self.names, self.outcomes))

    @property
    def most(self) -> Floats:
        return np.asarray(self.table.max(axis=1))

    def max_at_safe(self, signs: Floats) -> Floats:
        return self.mean_at_safe() * signs

    def mean_at_safe(self) -> Floats:
        return self.means(self.actions.round_safe_action.features)  # the same in every round

    def truths(self, actions: Any) -> Floats:
        return self.table

    def signed_parameters(self, signs: Floats) -> Floats:
        """Return zeros: all means are given beforehand."""
        return np.zeros((len(self.table), int(self.actions.dimension or 0)))

    def description(self) -> dict[str, Any]:
        """Return the world as JSON holds it, enough to rebuild it."""
        return {**self.describe_rows(self.table), **describe_eligible(self.actions)}


class ArmsWorld(BaseTableWorld):
    """A simulated world of K arms with known means.

    Args:
        reward: Mean rewards (K,).
        cost: Mean costs (K,) or (m, K), or by name; named costs are matched with limits of the same names.
        outcomes: "bernoulli", "gaussian" or "clipped-gaussian", which is clipped to [0, 1]; regret and costs are still
            computed from the means given here.
        noise: The standard deviation of gaussian outcomes, for all signals or for each; 0.1 by default.
        actions: The arms that are offered; all by default.

    Raises:
        InvalidProblem: Shapes do not agree, a mean is out of range, or a setting is invalid.

    Example:
        >>> ArmsWorld(reward=[0.1, 0.7], cost=[0.0, 0.2]).means(1)
        array([0.7, 0.2])
    """

    actions: ArmSet
    theorems: ClassVar[tuple[str, ...]] = ("arms",)

    def __init__(
        self,
        *,
        reward: ArrayLike,
        cost: ArrayLike | Mapping[str, ArrayLike],
        outcomes: Outcomes = "bernoulli",
        noise: PerSignal | Mapping[str, float] | None = None,
        actions: ArmSet | None = None,
    ) -> None:
        super().__init__(reward, cost, outcomes, noise)
        self.actions = ArmSet(self.table.shape[1]) if actions is None else actions
        if not isinstance(self.actions, ArmSet) or self.actions.count != self.table.shape[1]:
            rule = f"ArmSet({self.table.shape[1]}), one for each mean, or a subset of them by only()"
            raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "actions", actions, rule)

    def means(self, action: Any) -> Floats:
        last = self.actions.count - 1
        arm = check_integer(action, "the arm", f"from 0 to {last}", 0, last, InvalidActions)
        return self.table[:, arm].copy()

    def check(self, policy: Any) -> None:
        super().check(policy)
        arms = getattr(policy, "arms", None)
        if arms is not None and arms != self.actions.count:  # loops check no bounds
            subject, other = "the number of arms of the policy", "that of the world"
            raise InvalidProblem.must_agree(ErrorCode.WORLD_MISMATCH, subject, arms, other, self.actions.count)

    def get_safe_action(self, safe: SafeAction | None) -> Any:
        if safe is None:
            return None
        if safe.arm is None or safe.arm >= self.actions.count:
            rule, code = "one of the world's arms", ErrorCode.SAFE_ACTION_INVALID
            raise InvalidProblem.must_be(code, "the safe action", safe.arm, rule)
        return safe.arm

    @classmethod
    def from_description(cls, described: dict[str, Any]) -> Self:
        settings = dict(described)
        eligible = settings.pop("eligible", None)
        return cls.from_settings(settings, actions=select_eligible(ArmSet(len(settings["reward"])), eligible))


class FiniteSetWorld(BaseTableWorld):
    """A simulated world of K actions with features and arbitrary means; the safe action is one of them.

    Args:
        features: Features (K, d), or a FiniteSet of them.
        reward: Mean rewards (K,).
        cost: Mean costs (K,) or (m, K), or by name; named costs are matched with limits of the same names.
        noise: The standard deviation of gaussian outcomes, for all signals or for each; 0.1 by default.
        outcomes: "gaussian", "bernoulli" or "clipped-gaussian".

    Raises:
        InvalidProblem: Shapes do not agree, a mean is out of range, or equal features have different means.

    Example:
        >>> world = FiniteSetWorld(features=[[0.0], [1.0]], reward=[0.1, 0.7], cost=[0.0, 0.2], noise=0.1)
        >>> world.means([1.0])
        array([0.7, 0.2])
    """

    actions: FiniteSet

    def __init__(
        self,
        *,
        features: ArrayLike | FiniteSet,
        reward: ArrayLike,
        cost: ArrayLike | Mapping[str, ArrayLike],
        noise: PerSignal | Mapping[str, float] | None = None,
        outcomes: Outcomes = "gaussian",
    ) -> None:
        super().__init__(reward, cost, outcomes, noise)
        self.actions = features if isinstance(features, FiniteSet) else FiniteSet(features)
        if len(self.actions) != self.table.shape[1]:
            subject, other, code = "the number of actions", "that of features", ErrorCode.DIMENSION_MISMATCH
            raise InvalidProblem.must_agree(code, subject, self.table.shape[1], other, len(self.actions))
        self._rows: dict[bytes, int] = {}
        for row, action in enumerate(self.actions.features + 0.0):  # + 0.0: −0.0 becomes 0.0
            first = self._rows.setdefault(action.tobytes(), row)
            if not np.array_equal(self.table[:, first], self.table[:, row]):
                fact = "have the same features and different means; remove one of them"
                raise InvalidProblem(
                    ErrorCode.CONFLICTING_SETTINGS, "rows {first} and {row} {fact}", first=first, row=row, fact=fact
                )

    def description(self) -> dict[str, Any]:
        return {**super().description(), "features": self.actions.description()}

    def row(self, action: Any) -> int:
        """Return the row of an action."""
        features = check_array(action, "the action", InvalidActions)
        key = (features + 0.0).tobytes()
        if features.ndim != 1 or key not in self._rows:
            raise InvalidActions.must_be(ErrorCode.UNKNOWN_ACTION, "the action", action, "a row of this world")
        return self._rows[key]

    def means(self, action: Any) -> Floats:
        return self.table[:, self.row(action)].copy()

    def get_safe_action(self, safe: SafeAction | None) -> Any:
        if safe is None or safe.features is None:
            return None
        return self.actions.features[self.row(safe.features)]

    @classmethod
    def from_description(cls, described: dict[str, Any]) -> Self:
        settings = dict(described)
        eligible = settings.pop("eligible", None)
        features = select_eligible(FiniteSet.from_description(settings.pop("features")), eligible)
        return cls.from_settings(settings, features=features)
