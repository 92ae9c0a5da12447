"""Listed actions: what is taken as a list, and the linear program over mixtures of it."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.kernels.draw import POLICY, uniform
from stagewise.kernels.sight import sheet_size
from stagewise.policies.mixtures import SAFEST, Blend, Written, decision_from, solved_blend
from stagewise.policies.policy import State
from stagewise.policies.rays import own
from stagewise.problem.action_set import ActionSet
from stagewise.problem.actions import Finite, Listed
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw


def listed_of(actions: Any) -> Listed:
    """Return listed actions: a table of numbers as a finite set, rays by their ends and polytopes by their vertices.

    That suffices: every other point is a mixture of these.
    """
    return actions.as_list() if isinstance(actions, ActionSet) else Finite.borrowed(actions)


class Settings(Protocol):
    """What the kernels are told of a policy whose actions have features."""

    @property
    def dimension(self) -> int:
        """The number of features d."""

    @property
    def thresholds(self) -> Thresholds:
        """The constraints."""

    @property
    def flags(self) -> Ints:
        """The whole numbers and switches."""

    @property
    def numbers(self) -> Floats:
        """The numbers."""


class Programmed(NamedTuple):
    """What the linear program over a list came to."""

    policy: Settings
    listed: Listed
    draw: Draw
    code: int  # the action drawn, or minus the reason for the safe one
    sheet: Floats
    written: Written
    lottery: float
    blend: Blend

    def decision(self, why: str = SAFEST) -> Decision:
        """Return the decision to play what the code says, drawn from this mixture."""
        end = self.sheet.size - self.policy.dimension
        return decision_from(
            self.code,
            own(self.sheet[end:]),
            self.written,
            self.listed.eligible,
            self.policy.thresholds,
            self.draw.round,
            blend=self.blend,
            offered=self.listed.features,
            news=bool(self.sheet[end - 1]),
            why=why,
        )


def programmed(
    decide: Callable[..., int], policy: Settings, state: State, listed: Listed, draw: Draw, work: Floats
) -> Programmed:
    """Solve the linear program over the listed actions by a kernel; `work` is its scratch array."""
    m, count = policy.thresholds.values.size, len(listed.features)
    sheet, written = np.empty(sheet_size(policy.dimension, m, count)), Written.room(m, count)
    lottery = uniform(draw.seed, draw.run, draw.round, POLICY, 0)
    told = (policy.flags, policy.numbers, state.memory)
    code = int(decide(listed.features, listed.eligible, *told, sheet, work, written.flat, written.support, lottery))
    return Programmed(policy, listed, draw, code, sheet, written, lottery, solved_blend(written))
