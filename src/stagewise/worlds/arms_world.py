"""The world of arms with known means."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from stagewise.problem.actions import Arms
from stagewise.problem.checks import Floats, PerSignal, check_integer
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.problem.safe_action import SafeAction
from stagewise.worlds.table_world import BaseTableWorld, Outcomes
from stagewise.worlds.world import select_eligible


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

    actions: Arms
    theorems: ClassVar[tuple[str, ...]] = ("arms",)

    def __init__(
        self,
        *,
        reward: ArrayLike,
        cost: ArrayLike | Mapping[str, ArrayLike],
        outcomes: Outcomes = "bernoulli",
        noise: PerSignal | Mapping[str, float] | None = None,
        actions: Arms | None = None,
    ) -> None:
        super().__init__(reward, cost, outcomes, noise)
        self.actions = Arms(self.table.shape[1]) if actions is None else actions
        if not isinstance(self.actions, Arms) or self.actions.count != self.table.shape[1]:
            raise InvalidProblem(
                ErrorCode.WRONG_TYPE,
                "actions is {actions}; it must be Arms({shape}), since there are means of {shape} arms, "
                "or a subset of them by only()",
                actions=safe_repr(actions),
                shape=self.table.shape[1],
            )

    def means(self, action: Any) -> Floats:
        last = self.actions.count - 1
        arm = check_integer(action, "the arm", f"from 0 to {last}", 0, last, InvalidActions)
        return self.table[:, arm].copy()

    def check(self, policy: Any) -> None:
        super().check(policy)
        arms = getattr(policy, "arms", None)
        if arms is not None and arms != self.actions.count:  # loops check no bounds
            raise InvalidProblem(
                ErrorCode.WORLD_MISMATCH,
                "the policy has {arms} arms and the world has {count}; they must agree",
                arms=arms,
                count=self.actions.count,
            )

    def get_safe_action(self, safe: SafeAction | None) -> Any:
        if safe is None:
            return None
        if safe.arm is None or safe.arm >= self.actions.count:
            raise InvalidProblem(
                ErrorCode.SAFE_ACTION_INVALID,
                "the safe action is {arm!r}; it must be one of the world's arms",
                arm=safe.arm,
            )
        return safe.arm

    @classmethod
    def from_description(cls, described: dict[str, Any]) -> Self:
        settings = dict(described)
        eligible = settings.pop("eligible", None)
        return cls.from_settings(settings, actions=select_eligible(Arms(len(settings["reward"])), eligible))
