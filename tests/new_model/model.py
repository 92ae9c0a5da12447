"""A linear reward and logistic costs; it becomes `models/logistic.py` of a copy of the package."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from stagewise.kernels.models.logistic import get_logistic_assumptions, get_logistic_statistics

from stagewise.kernels.compile import Floats, as_python
from stagewise.kernels.layout import LOGISTIC, ModelBlock
from stagewise.models.diagnostics import Marks, MeanChange, ModelDiagnostics, Sums, register, split_at_marks
from stagewise.models.linear_model import LinearModel
from stagewise.models.model_block import ModelBlockSpec
from stagewise.models.regression_diagnostics import are_disjoint
from stagewise.problem.errors import ErrorCode, InvalidProblem

GET_STATISTICS, GET_ASSUMPTIONS = as_python(get_logistic_statistics), as_python(get_logistic_assumptions)


class LogisticDiagnostics(ModelDiagnostics):
    """Diagnostics of a logistic model: confidence sets of earlier and of later outcomes.

    The theorem of its kernels holds for the outcomes after a mark alone, with the forecasts that were made. In sums,
    with A = λI + Σ κ xxᵀ, b = Σ κ w x and q = Σ (κw² − g²/κ):  ‖θ* − A⁻¹b‖²_A ≤ λS² + 2 log 1/a + bᵀA⁻¹b − q.
    """

    def get_sums(self, block: ModelBlock, settings: Floats, memory: Floats, key: str) -> Sums | None:
        """Return Σ κ xxᵀ, b and q."""
        statistics = GET_STATISTICS(block, memory)
        root = np.linalg.inv(np.tril(statistics.root))
        matrix = root @ root.T  # V, as V⁻¹ = TᵀT
        return {
            f"squares {key}": matrix - GET_ASSUMPTIONS(block, settings).ridge * np.eye(block.size),
            f"sums {key}": matrix @ statistics.fit,
            f"rest {key}": np.array(statistics.fit @ matrix @ statistics.fit - statistics.excess),
            f"outcomes {key}": np.array(statistics.outcomes),
        }

    def moved(
        self, block: ModelBlock, settings: Floats, memory: Floats, marks: Marks, key: str, alarms: Sequence[float]
    ) -> Iterator[MeanChange]:
        """Yield the signal if its two sets are disjoint."""
        for early, late, alarm in split_at_marks(marks, alarms):
            assumptions, sets = GET_ASSUMPTIONS(block, settings), []
            for sums in (early, late):
                inverse = np.linalg.inv(sums[f"squares {key}"] + assumptions.ridge * np.eye(block.size))
                fit = inverse @ sums[f"sums {key}"]
                rest = float(sums[f"sums {key}"] @ fit - sums[f"rest {key}"])
                most = assumptions.ridge * assumptions.bound**2 + 2.0 * (alarm + math.log(2.0)) + rest
                sets.append((fit, max(most, 0.0) * inverse))
            if are_disjoint(sets[0][0] - sets[1][0], sets[0][1], sets[1][1]):
                yield MeanChange(0, float(early[f"outcomes {key}"]), float(late[f"outcomes {key}"]))


register(LOGISTIC, LogisticDiagnostics())


@dataclass(frozen=True, kw_only=True, eq=False)
class LogisticCosts(LinearModel):
    """Assumptions about a linear reward and costs in [0, 1] whose means are σ(<x, μ*>)."""

    link: int  # LOGITS or MEANS

    def build_blocks(self) -> Iterator[ModelBlockSpec]:
        """Yield the reward's regression, and a model for every cost, because each has its own weights."""
        if not self.safe.any():
            raise InvalidProblem(
                ErrorCode.SAFE_ACTION_INVALID,
                "the safe action is the zero vector, where rates are 1/2; add a constant feature",
            )
        reward = self.build_block(0, 1, self.reward is not None)
        yield reward
        for signal in range(1, len(self.names)):
            anchored, known = (0, 0.0) if self.costs is None else (1, float(self.costs[signal - 1]))
            integers = (LOGISTIC, signal, 1, self.safe.size, self.link, anchored, *(0 for _ in reward.integers[6:]))
            numbers = (self.ridge, self.norm_bound[signal], self.confidence[signal], known)
            yield ModelBlockSpec(integers, np.array(numbers))

    def learned_bounds(self, size: float) -> Floats:
        """Return what S leaves for the learned block of the reward; a known rate leaves its S unchanged."""
        return LinearModel.learned_bounds(replace(self, costs=None), size)
