"""A world of arms: it knows their means."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from stagewise.problem.actions import Arms
from stagewise.problem.checks import Floats, PerSignal, shown, whole
from stagewise.problem.errors import InvalidActions, InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.worlds.table import Outcomes, TabledWorld
from stagewise.worlds.world import some


class ArmsWorld(TabledWorld):
    """K arms, known by their means.

    Args:
        reward: Mean rewards (K,).
        cost: Mean costs (K,) or (m, K), or by name: limits then meet the costs of their names.
        outcomes: "bernoulli", "gaussian", or "clipped-gaussian": cut to [0, 1], with regret and costs still counted by
            the means given here.
        noise: Standard deviation of what is gaussian, for all signals or for each; None: 0.1.
        actions: Which of the arms are on offer; None: all.

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
                f"actions is {shown(actions)}; it must be Arms({self.table.shape[1]}), as there are means of "
                f"{self.table.shape[1]} arms, or some of them by only()"
            )

    def means(self, action: Any) -> Floats:
        last = self.actions.count - 1
        arm = whole(action, "the arm", f"from 0 to {last}", 0, last, InvalidActions)
        return self.table[:, arm].copy()

    def check(self, policy: Any) -> None:
        super().check(policy)
        arms = getattr(policy, "arms", None)
        if arms is not None and arms != self.actions.count:  # loops check no bounds
            raise InvalidProblem(f"the policy has {arms} arms and the world {self.actions.count}; they must agree")

    def safe_place(self, safe: SafeAction | None) -> Any:
        if safe is None:
            return None
        if safe.arm is None or safe.arm >= self.actions.count:
            raise InvalidProblem(f"the safe action is {safe.arm!r}; it must be one of the world's arms")
        return safe.arm

    @classmethod
    def rebuilt(cls, told: dict[str, Any]) -> Self:
        given = dict(told)
        eligible = given.pop("eligible", None)
        return cls.again(given, actions=some(Arms(len(given["reward"])), eligible))
