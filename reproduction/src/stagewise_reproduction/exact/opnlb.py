"""OPNLB as the paper has it: its own maximum over triples of functions, and its own confidence sets."""

from dataclasses import dataclass
from typing import Any, ClassVar

from stagewise.kernels.compile import Floats, Ints
from stagewise.models.functions import FunctionsModel
from stagewise.policies.opnlb import OPNLB
from stagewise.policies.safe_mixture import Offer
from stagewise.problem.checks import one_of, shown, whole_at_least
from stagewise.problem.errors import InvalidActions, InvalidProblem
from stagewise.rules.rows import Vertex
from stagewise_reproduction.exact.balls import BallsModel
from stagewise_reproduction.exact.triples import best_of_triples


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactOPNLB(OPNLB):
    """The paper's own maximum over triples of functions (docs/theory/function-classes.md).

    `sets="paper"` has the paper's balls with the square of their norm below γ, as its lemma proves. Algorithm 4 to the
    letter, with the norm itself below γ, is `printed.opnlb.PrintedOPNLB`.

    >>> import stagewise as sw
    >>> rewards, costs = [[0.1, 0.5, 0.9], [0.1, 0.9, 0.5]], [[0.0, 0.2, 0.6], [0.0, 0.6, 0.2]]
    >>> safe = sw.SafeAction(arm=0, reward=0.1, cost=0.0)
    >>> policy = ExactOPNLB(reward_class=rewards, cost_class=costs, safe_action=safe, threshold=0.3)
    >>> policy.decide(policy.start(), sw.Arms(3)).probabilities
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
        one_of(self.sets, ("likelihood", "paper"), "sets")
        whole_at_least(self.search, "search", 1)
        if self.sets == "paper" and self.noise is not None:
            raise InvalidProblem(
                f"sets is 'paper' and noise {shown(self.noise)}; the paper's radius rests on outcomes in [0, 1], "
                "so leave noise out"
            )
        super().__post_init__()
        if self.functions.table is not None:
            self.check_range(self.functions.table, InvalidProblem)

    def assumed(self, sizes: tuple[int, ...], noise: Floats, confidence: float) -> FunctionsModel:
        """Return what is assumed of the signals."""
        kind = BallsModel if self.sets == "paper" else FunctionsModel
        return kind(sizes=sizes, noise=noise, confidence=confidence)

    def solve(self, worth: Floats, tables: tuple[Floats, ...], scales: Floats) -> Vertex:
        """Return the best mixture by the paper's reward, or by OPNLB's; the safe action is last."""
        if self.method != "exact":
            return super().solve(worth, tables, scales)
        return best_of_triples(tables[0], tables[1:], self.rule.limits, scales, self.search)

    def offered(self, actions: Any) -> tuple[Offer, Any]:
        """Return a round's actions, and where their values are to be looked up."""
        offer, places = super().offered(actions)
        self.check_range(self.functions.at(places), InvalidActions)
        return offer, places

    def logged(self, actions: Any) -> Floats | Ints:
        """Return logged arms (n,) or features (n, d)."""
        places = super().logged(actions)
        self.check_range(self.functions.at(places), InvalidActions)
        return places

    def check_range(self, values: Floats, error: type[InvalidProblem | InvalidActions]) -> None:
        """Refuse signed functions (F, n) with values outside [0, 1] where the sets rest on that range."""
        values = self.functions.signs[:, None] * values
        if self.sets == "paper" and not (values.min() >= 0.0 and values.max() <= 1.0):
            raise error(
                f"a function has a value in [{values.min():g}, {values.max():g}]; "
                "sets='paper' rests on functions with values in [0, 1]"
            )
