"""OPNLB with the paper's own maximum over triples of functions, and its own confidence sets."""

from dataclasses import dataclass
from typing import Any, ClassVar

from stagewise.engine.compile import Floats, Ints
from stagewise.models.function_class import FunctionClassModel
from stagewise.policies.function_mixture import RoundActions
from stagewise.policies.opnlb import OPNLB
from stagewise.problem.checks import check_choice, check_integer_at_least
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.rules.mixture import Vertex
from stagewise_reproduction.exact.balls import BallsModel
from stagewise_reproduction.exact.triples import find_best_triple


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactOPNLB(OPNLB):
    """OPNLB with the paper's own maximum over triples of functions (docs/theory/function-classes.md).

    `sets="paper"` uses the paper's balls with the squared norm below γ, as its lemma proves. Algorithm 4 exactly as
    printed, with the norm itself below γ, is `printed.opnlb.PrintedOPNLB`.

    >>> import stagewise as sw
    >>> rewards, costs = [[0.1, 0.5, 0.9], [0.1, 0.9, 0.5]], [[0.0, 0.2, 0.6], [0.0, 0.6, 0.2]]
    >>> safe = sw.SafeAction(arm=0, reward=0.1, cost=0.0)
    >>> policy = ExactOPNLB(reward_class=rewards, cost_class=costs, safe_action=safe, threshold=0.3)
    >>> policy.decide(policy.start(), sw.ArmSet(3)).probabilities
    array([0.5, 0.5, 0. , 0. ])
    """

    methods: ClassVar[tuple[str, ...]] = ("pointwise", "rows", "exact")

    method: str = "exact"  # type: ignore[assignment]
    """The paper's maximum; or one of OPNLB's own, to play them with the paper's sets."""
    sets: str = "likelihood"
    """OPNLB's own confidence sets; or "paper", whose balls are much larger."""
    search: int = 10_000
    """Linear programs that "exact" may solve in a round."""

    def __post_init__(self) -> None:
        check_choice(self.sets, ("likelihood", "paper"), "sets")
        check_integer_at_least(self.search, "search", 1)
        if self.sets == "paper" and self.noise is not None:
            raise InvalidProblem(
                ErrorCode.CONFLICTING_SETTINGS,
                "sets is 'paper' and noise is {noise}; leave noise out, since the paper's radius assumes "
                "outcomes in [0, 1]",
                noise=safe_repr(self.noise),
            )
        super().__post_init__()
        if self.functions.table is not None:
            self.check_range(self.functions.table, InvalidProblem)

    def build_model(self, sizes: tuple[int, ...], noise: Floats, confidence: float) -> FunctionClassModel:
        """Return the model of the signals."""
        kind = BallsModel if self.sets == "paper" else FunctionClassModel
        return kind(sizes=sizes, noise=noise, confidence=confidence)

    def solve(self, reward_values: Floats, tables: tuple[Floats, ...], scales: Floats) -> Vertex:
        """Return the best mixture by the paper's reward, or by OPNLB's; the safe action is last."""
        if self.method != "exact":
            return super().solve(reward_values, tables, scales)
        return find_best_triple(tables[0], tables[1:], self.rule.limits, scales, self.search)

    def parse_round(self, actions: Any) -> tuple[RoundActions, Any]:
        """Return a round's actions, and the positions of their values."""
        offer, positions = super().parse_round(actions)
        self.check_range(self.functions.at(positions), InvalidActions)
        return offer, positions

    def check_logged_actions(self, actions: Any) -> Floats | Ints:
        """Return logged arms (n,) or features (n, d)."""
        positions = super().check_logged_actions(actions)
        self.check_range(self.functions.at(positions), InvalidActions)
        return positions

    def check_range(self, values: Floats, error: type[InvalidProblem | InvalidActions]) -> None:
        """Reject signed functions (F, n) with values outside [0, 1] if the sets require that range."""
        values = self.functions.signs[:, None] * values
        if self.sets == "paper" and not (values.min() >= 0.0 and values.max() <= 1.0):
            raise error(
                ErrorCode.OUT_OF_RANGE,
                "a function has a value in [{values:g}, {values_2:g}]; sets='paper' rests on functions "
                "with values in [0, 1]",
                values=values.min(),
                values_2=values.max(),
            )
