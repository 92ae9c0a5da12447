"""A linear reward and logistic costs; it becomes `models/logistic.py` of a copy of the package."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.layout import LOGISTIC
from stagewise.models.linear import LinearModel
from stagewise.models.part import Modelled
from stagewise.problem.errors import InvalidProblem


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
