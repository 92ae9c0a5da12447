"""What the policies over arms share: their model, and the checks of what they are given."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np

from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.loop.round import Form
from stagewise.kernels.signals.arms import RATES, kept_ends, means_of, narrow_arm
from stagewise.models.arms import RADII, RANGED, ArmRadius, ArmsModel, confidence_of, ends_of, lows_of, union_kind
from stagewise.models.part import parts_in
from stagewise.policies.compiled import CompiledPolicy
from stagewise.policies.learning import check_unit_range
from stagewise.policies.policy import Played, State
from stagewise.policies.settings import probability, settle
from stagewise.problem.actions import ALL, Arms, Flags
from stagewise.problem.checks import PerSignal, as_array, one_of, one_per, shown, whole_at_least
from stagewise.problem.errors import InvalidActions, InvalidProblem
from stagewise.problem.thresholds import Thresholds

MEANS_OF, KEPT, NARROW_ARM = named(means_of), named(kept_ends), named(narrow_arm)
NO_FEATURES = np.empty(0)


def most_pulls(layout: Ints, memory: Floats) -> float:
    """Return how often the arm was pulled that was pulled most, as far as any signal of it was learned."""
    return max(float(MEANS_OF(part, memory).pulls.max()) for part in parts_in(layout, memory))


def eligible_arms(actions: Any, arms: int) -> Flags:
    """Return which arms may be chosen; the safe arm always may."""
    if actions is None:
        return ALL
    if not isinstance(actions, Arms):
        raise InvalidActions(f"the actions are {type(actions).__name__}; this policy chooses among Arms({arms})")
    if actions.count != arms:
        raise InvalidActions(f"the actions are {actions!r}; this policy was set up for {arms} arms")
    return actions.eligible


def logged_arms(actions: Any, arms: int) -> Ints:
    """Return arms that were pulled, one a row."""
    rule = f"a list of whole numbers from 0 to {arms - 1}"
    given = as_array(actions, "the logged arms", InvalidActions, rule)
    if given.ndim != 1 or given.dtype.kind not in "iu" or not np.all((given >= 0) & (given < arms)):
        raise InvalidActions(f"the logged arms must be {rule}")
    return given.astype(np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmsPolicy(CompiledPolicy):
    """What the policies over arms do alike: arms are actions without features, known by their index."""

    arms: int
    """How many arms there are."""
    horizon: int | None = None
    """How many rounds the intervals must hold for; None: for all."""
    noise: PerSignal | None = None
    """R: outcomes are R-sub-Gaussian around their means, for all signals or for each; None: they lie in [0, 1]."""
    delta: float = 0.05
    """The whole statement holds with probability 1 − δ."""
    radius: ArmRadius | None = None
    """How wide the interval of an arm is (docs/theory/arms.md). None becomes the one for outcomes in [0, 1], or
    "hoeffding" with `noise`."""

    natural: ClassVar[ArmRadius] = "kl"

    def settle_radius(self) -> None:
        """Keep which radius it is where none was named."""
        if self.radius is None:
            settle(self, radius=self.natural if self.noise is None else "hoeffding")

    def assumed(
        self, thresholds: Thresholds, signals: int, blind: float, reward: float | None, costs: Floats | None
    ) -> ArmsModel:
        """Return what is assumed of the arms; δ is shared by `signals` signals."""
        names, radius = ("reward", *thresholds.names), one_of(self.radius, RADII, "radius")
        rounds = None if self.horizon is None else whole_at_least(self.horizon, "horizon", 1)
        if radius in RANGED and self.noise is not None:
            raise InvalidProblem(
                f"noise is {shown(self.noise)} and radius {radius!r}; that radius is for outcomes in [0, 1] and takes "
                "no noise, so leave it out or use radius='hoeffding'"
            )
        if radius in RANGED and rounds is not None:
            raise InvalidProblem(
                f"horizon is {rounds} and radius {radius!r}; it holds for all rounds, so leave the horizon out or use "
                "radius='hoeffding'"
            )
        kind, lows, delta = union_kind(radius, rounds), lows_of(thresholds.signs), probability(self.delta, "delta")
        confidence, ends = confidence_of(kind, delta, self.arms, signals, rounds), None
        if kind == RATES:
            safe = signals > 1  # without limits there is no safe arm, of which something may be known
            known = np.array([safe and reward is not None, *np.full(len(names) - 1, costs is not None)])
            ends = ends_of(delta, signals - 1, self.arms - known, np.array([0.5, *(thresholds.limits - lows[1:])]))
            confidence = float(ends[1:].max())
        usual = 1.0 if radius == "paper" else 0.5  # numbers in [0, 1] are ½-sub-Gaussian
        return ArmsModel(
            arms=self.arms,
            signals=len(names),
            noise=one_per(usual if self.noise is None else self.noise, names, "noise"),
            lows=lows,
            kind=kind,
            confidence=confidence,
            blind=blind,
            reward=reward,
            costs=costs,
            ends=ends,
        )

    @property
    def bounded(self) -> bool:
        """Whether outcomes are promised to lie in [0, 1]."""
        return self.noise is None and self.radius != "paper"

    def form_for(self, actions: Any) -> Form | None:
        return self.form if actions.dimension == 0 else None

    def played_from(self, offered: Any, features: Floats, fresh: bool, learned: State | None = None) -> Floats:
        """Return the memory that a compiled run begins with: arms need not be followed."""
        return self.begins(learned).memory

    @cached_property
    def no_features(self) -> Floats:
        """The arms as actions without features."""
        empty = np.empty((self.arms, 0))
        empty.flags.writeable = False  # as all actions are: kernels are compiled once
        return empty

    def located(self, played: Played) -> tuple[Floats, int]:
        return NO_FEATURES, int(played.action)

    def located_rows(self, actions: Any) -> tuple[Floats, Ints]:
        return np.empty((len(actions), 0)), actions

    def learn_log(self, state: State, actions: Any, values: Sequence[Floats] | Floats) -> State:
        """Take in a log as one batch: by "rates" all its rows together narrow what is kept, not each on its way."""
        if self.radius != "rates":
            return super().learn_log(state, actions, values)
        kept = [KEPT(part, state.memory).rows.copy() for part in parts_in(self.layout, state.memory)]
        state = super().learn_log(state, actions, values)
        for part, before in zip(parts_in(self.layout, state.memory), kept, strict=True):
            KEPT(part, state.memory).rows[:] = before
            for arm, signal in product(range(part.size), range(part.signals)):
                NARROW_ARM(part, arm, signal, self.settings, state.memory)
        return state

    def logged(self, actions: Any) -> Ints:
        return logged_arms(actions, self.arms)

    def values(self, reward: Any, cost: Any) -> Floats:
        values = super().values(reward, cost)
        if self.bounded:
            check_unit_range(values, self.thresholds, self._why_bounded)
        return values

    @cached_property
    def _why_bounded(self) -> str:
        """Why outcomes must lie in [0, 1]."""
        return f"the radius {self.radius!r} rests on that range, so rescale, or use radius='hoeffding' and give `noise`"
