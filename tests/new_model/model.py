"""A linear reward and logistic costs; it becomes `models/logistic.py` of a copy of the package."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from stagewise.kernels.signals.logistic import kept_of, stated_of_logistic

from stagewise.kernels.compile import Floats, named
from stagewise.kernels.layout import LOGISTIC, Part
from stagewise.models.answers import Answers, Marks, Moved, Sums, halves, register
from stagewise.models.linear import LinearModel
from stagewise.models.part import Modelled
from stagewise.models.regressed import disjoint
from stagewise.problem.errors import InvalidProblem

KEPT, STATED = named(kept_of), named(stated_of_logistic)


class LogisticAnswers(Answers):
    """What a logistic model answers when it is held against the data: sets of earlier and of later outcomes.

    The theorem of its kernels holds for the outcomes after a mark alone, with the forecasts that were made. In sums,
    with A = λI + Σ κ xxᵀ, b = Σ κ w x and q = Σ (κw² − g²/κ):  ‖θ* − A⁻¹b‖²_A ≤ λS² + 2 log 1/a + bᵀA⁻¹b − q.
    """

    def sums(self, part: Part, settings: Floats, memory: Floats, which: str) -> Sums | None:
        """Return Σ κ xxᵀ, b and q."""
        kept = KEPT(part, memory)
        root = np.linalg.inv(np.tril(kept.root))
        matrix = root @ root.T  # V, as V⁻¹ = TᵀT
        return {
            f"squares {which}": matrix - STATED(part, settings).ridge * np.eye(part.size),
            f"sums {which}": matrix @ kept.fit,
            f"rest {which}": np.array(kept.fit @ matrix @ kept.fit - kept.excess),
            f"seen {which}": np.array(kept.outcomes),
        }

    def moved(
        self, part: Part, settings: Floats, memory: Floats, marks: Marks, which: str, alarms: Sequence[float]
    ) -> Iterator[Moved]:
        """Yield the signal where both sets have no parameter in common."""
        for early, late, alarm in halves(marks, alarms):
            told, sets = STATED(part, settings), []
            for sums in (early, late):
                inverse = np.linalg.inv(sums[f"squares {which}"] + told.ridge * np.eye(part.size))
                fit = inverse @ sums[f"sums {which}"]
                rest = float(sums[f"sums {which}"] @ fit - sums[f"rest {which}"])
                most = told.ridge * told.bound**2 + 2.0 * (alarm + math.log(2.0)) + rest
                sets.append((fit, max(most, 0.0) * inverse))
            if disjoint(sets[0][0] - sets[1][0], sets[0][1], sets[1][1]):
                yield Moved(0, float(early[f"seen {which}"]), float(late[f"seen {which}"]))


register(LOGISTIC, LogisticAnswers())


@dataclass(frozen=True, kw_only=True, eq=False)
class LogisticCosts(LinearModel):
    """What is assumed of a linear reward and of costs in [0, 1] whose means are σ(<x, μ*>)."""

    link: int  # LOGITS or MEANS

    def parts(self) -> Iterator[Modelled]:
        """Yield the reward's regression, and a model for every cost: each has weights of its own."""
        if not self.safe.any():
            raise InvalidProblem("the safe action is the zero vector, where rates are 1/2; add a constant feature")
        reward = self.part(0, 1, self.reward is not None)
        yield reward
        for signal in range(1, len(self.names)):
            anchored, known = (0, 0.0) if self.costs is None else (1, float(self.costs[signal - 1]))
            whole = (LOGISTIC, signal, 1, self.safe.size, self.link, anchored, *(0 for _ in reward.whole[6:]))
            numbers = (self.ridge, self.norm_bound[signal], self.confidence[signal], known)
            yield Modelled(whole, np.array(numbers))

    def learned_bounds(self, size: float) -> Floats:
        """Return what S leaves to be learned of the reward; what is known of a rate leaves S as it is."""
        return LinearModel.learned_bounds(replace(self, costs=None), size)
