"""Base of the policies over arms: their model and their checks."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python
from stagewise.engine.model import Model, RoundSpec
from stagewise.models.arms import (
    RADII,
    RANGED,
    RATES,
    ArmRadius,
    ArmsModel,
    build_rate_ends,
    compute_confidence,
    compute_lows,
    get_arm_means,
    get_interval_kind,
    get_kept_intervals,
    tighten_arm,
)
from stagewise.models.model_block import iter_model_blocks
from stagewise.policies.base_policy import check_unit_range
from stagewise.policies.compiled_policy import CompiledPolicy
from stagewise.policies.policy import PlayedAction, State
from stagewise.policies.settings import check_probability, set_derived
from stagewise.problem.actions import ALL, Arms, Flags
from stagewise.problem.checks import PerSignal, as_array, check_choice, check_integer_at_least, check_per_signal
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.problem.thresholds import Thresholds

ARM_MEANS, KEPT_INTERVALS, TIGHTEN_ARM = as_python(get_arm_means), as_python(get_kept_intervals), as_python(tighten_arm)
NO_FEATURES = np.empty(0)


def most_pulls(models: Sequence[Model], layout: Ints, memory: Floats) -> float:
    """Return the largest number of pulls of an arm, by any signal."""
    return max(float(ARM_MEANS(block, memory).pulls.max()) for _, block in iter_model_blocks(models, layout, memory))


def eligible_arms(actions: Any, arms: int) -> Flags:
    """Return which arms are eligible; the safe arm always is."""
    if actions is None:
        return ALL
    if not isinstance(actions, Arms):
        raise InvalidActions(
            ErrorCode.UNSUPPORTED_ACTIONS,
            "the actions are {name}; this policy chooses among Arms({arms})",
            name=type(actions).__name__,
            arms=arms,
        )
    if actions.count != arms:
        raise InvalidActions(
            ErrorCode.UNSUPPORTED_ACTIONS,
            "the actions are {actions!r}; this policy chooses among {arms} arms",
            actions=actions,
            arms=arms,
        )
    return actions.eligible


def logged_arms(actions: Any, arms: int) -> Ints:
    """Return logged arms, one per row."""
    rule = f"a list of whole numbers from 0 to {arms - 1}"
    rows = as_array(actions, "the logged arms", InvalidActions, rule)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not np.all((rows >= 0) & (rows < arms)):
        raise InvalidActions(ErrorCode.UNKNOWN_ACTION, "the logged arms must be {rule}", rule=rule)
    return rows.astype(np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmsPolicy(CompiledPolicy):
    """Base of the policies over arms, which are actions without features, known by their index."""

    arms: int
    """The number of arms."""
    horizon: int | None = None
    """The number of rounds for which the intervals hold; None: all rounds."""
    noise: PerSignal | None = None
    """R: outcomes are R-sub-Gaussian around their means, for all signals or for each; None: they lie in [0, 1]."""
    delta: float = 0.05
    """The guarantee holds with probability 1 − δ."""
    radius: ArmRadius | None = None
    """The kind of confidence interval of an arm (docs/theory/arms.md). None: the default for outcomes in [0, 1], or
    "hoeffding" with `noise`."""

    default_radius: ClassVar[ArmRadius] = "kl"

    def set_default_radius(self) -> None:
        """Set the default radius where none is given."""
        if self.radius is None:
            set_derived(self, radius=self.default_radius if self.noise is None else "hoeffding")

    def build_model(
        self, thresholds: Thresholds, signals: int, blind: float, reward: float | None, costs: Floats | None
    ) -> ArmsModel:
        """Return the model of the arms; δ is shared by `signals` signals."""
        names, radius = ("reward", *thresholds.names), check_choice(self.radius, RADII, "radius")
        rounds = None if self.horizon is None else check_integer_at_least(self.horizon, "horizon", 1)
        if radius in RANGED and self.noise is not None:
            raise InvalidProblem(
                ErrorCode.CONFLICTING_SETTINGS,
                "noise is {noise} and radius is {radius!r}, which needs outcomes in [0, 1] and no noise; "
                "leave noise out or use radius='hoeffding'",
                noise=safe_repr(self.noise),
                radius=radius,
            )
        if radius in RANGED and rounds is not None:
            raise InvalidProblem(
                ErrorCode.CONFLICTING_SETTINGS,
                "horizon is {rounds} and radius is {radius!r}, which holds for all rounds; leave horizon "
                "out or use radius='hoeffding'",
                rounds=rounds,
                radius=radius,
            )
        kind, lows, delta = (
            get_interval_kind(radius, rounds),
            compute_lows(thresholds.signs),
            check_probability(self.delta, "delta"),
        )
        confidence, ends = compute_confidence(kind, delta, self.arms, signals, rounds), None
        if kind == RATES:
            safe = signals > 1  # without limits there is no safe arm
            is_known = np.array([safe and reward is not None, *np.full(len(names) - 1, costs is not None)])
            ends = build_rate_ends(
                delta, signals - 1, self.arms - is_known, np.array([0.5, *(thresholds.limits - lows[1:])])
            )
            confidence = float(ends[1:].max())
        usual = 1.0 if radius == "paper" else 0.5  # numbers in [0, 1] are ½-sub-Gaussian
        return ArmsModel(
            arms=self.arms,
            signals=len(names),
            noise=check_per_signal(usual if self.noise is None else self.noise, names, "noise"),
            lows=lows,
            kind=kind,
            confidence=confidence,
            blind=blind,
            reward=reward,
            costs=costs,
            ends=ends,
        )

    @property
    def requires_unit_range(self) -> bool:
        """Whether outcomes must lie in [0, 1]."""
        return self.noise is None and self.radius != "paper"

    def get_round_spec(self, actions: Any) -> RoundSpec | None:
        return self.round_spec if actions.dimension == 0 else None

    def build_run_memory(self, offered: Any, features: Floats, fresh: bool, learned: State | None = None) -> Floats:
        """Return the initial memory of a compiled run; arms need no cache."""
        return self.start_or_copy(learned).memory

    @cached_property
    def no_features(self) -> Floats:
        """The arms as actions without features."""
        empty = np.empty((self.arms, 0))
        empty.flags.writeable = False  # as all actions are: kernels are compiled once
        return empty

    def locate(self, played: PlayedAction) -> tuple[Floats, int]:
        return NO_FEATURES, int(played.action)

    def locate_rows(self, actions: Any) -> tuple[Floats, Ints]:
        return np.empty((len(actions), 0)), actions

    def learn_log(self, state: State, actions: Any, values: Sequence[Floats] | Floats) -> State:
        """Learn a log as one batch; with "rates" the saved intervals are tightened once, after all rows."""
        if self.radius != "rates":
            return super().learn_log(state, actions, values)
        intervals = [KEPT_INTERVALS(part, state.memory).rows.copy() for _, part in self.iter_blocks(state.memory)]
        state = super().learn_log(state, actions, values)
        for (_, part), before in zip(self.iter_blocks(state.memory), intervals, strict=True):
            KEPT_INTERVALS(part, state.memory).rows[:] = before
            for arm, signal in product(range(part.size), range(part.signals)):
                TIGHTEN_ARM(part, arm, signal, self.settings, state.memory)
        return state

    def check_logged_actions(self, actions: Any) -> Ints:
        return logged_arms(actions, self.arms)

    def values(self, reward: Any, cost: Any) -> Floats:
        values = super().values(reward, cost)
        if self.requires_unit_range:
            check_unit_range(values, self.thresholds, self._why_bounded)
        return values

    @cached_property
    def _why_bounded(self) -> str:
        """Why outcomes must lie in [0, 1]."""
        return f"the radius {self.radius!r} needs that range, so rescale, or use radius='hoeffding' and give `noise`"
