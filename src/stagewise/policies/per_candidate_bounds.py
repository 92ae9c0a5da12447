"""Per-candidate confidence sets: a setting of the linear policies, and the shares of δ."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from stagewise.engine.compile import Floats, as_python
from stagewise.engine.layout import SUB_GAUSSIAN, UNIT_RANGE
from stagewise.models.arms import compute_lows
from stagewise.models.per_candidate import PER_CANDIDATE_RIDGE, compute_edge, get_candidate_sets, tighten_by_ellipsoid
from stagewise.models.ridge import LinearModel
from stagewise.policies.baseline import parse_safe_action
from stagewise.policies.linear_policy import LinearPolicy
from stagewise.policies.policy import State
from stagewise.policies.settings import check_probability
from stagewise.problem.checks import check_bool
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Thresholds

GET_CANDIDATE_SETS, TIGHTEN = as_python(get_candidate_sets), as_python(tighten_by_ellipsoid)

# Shares of δ: the reward's ellipsoid, the costs' ellipsoids, the costs' per-candidate upper bounds, all other bounds.
REWARD_SHARE, COST_SHARE, UPPER_SHARE, OTHER_SHARE = 0.1, 0.1, 0.65, 0.15


@dataclass(frozen=True, kw_only=True, eq=False)
class PerCandidateBounds(LinearPolicy):
    """A linear policy whose candidates can have confidence sets beside the ellipsoid (docs/theory/caps.md)."""

    per_action_bounds: bool = False
    """Keep a confidence set for each candidate; pays off where actions are the same in every round."""

    def __post_init__(self) -> None:
        per_round_safe = parse_safe_action(self.safe_action).is_per_round
        check_bool(self.per_action_bounds, "per_action_bounds")
        if self.per_action_bounds and self.has_per_action_setting and per_round_safe:
            raise InvalidProblem(
                ErrorCode.CONFLICTING_SETTINGS,
                "per_action_bounds is True and every round names its own safe action; leave "
                "per_action_bounds out, since it needs actions that recur",
            )
        if self.per_action_bounds and not check_bool(self.split_delta, "split_delta"):
            raise InvalidProblem(
                ErrorCode.CONFLICTING_SETTINGS,
                "per_action_bounds is True and split_delta is False; leave split_delta out, since "
                "per-action bounds hold only with a shared δ",
            )
        super().__post_init__()

    @property
    def has_per_action_setting(self) -> bool:
        """Whether `per_action_bounds` is a setting of this policy."""
        return any(setting.name == "per_action_bounds" and setting.init for setting in fields(self))

    @property
    def has_per_action_bounds(self) -> bool:
        """Whether candidates have their own sets; not where every round names its safe action."""
        return self.per_action_bounds and not self.safe_action.is_per_round

    @property
    def is_count_based(self) -> bool:
        """Whether per-candidate sets use counts, for which all outcomes must lie in [0, 1]."""
        return False

    def build_model(self, safe: SafeAction, thresholds: Thresholds) -> LinearModel:
        """Return the model of the signals, with δ shared between ellipsoids and per-candidate sets."""
        model, m = super().build_model(safe, thresholds), thresholds.values.size
        if not self.has_per_action_bounds:
            return model
        ellipsoids = np.array([REWARD_SHARE, *np.full(m, COST_SHARE / m)])
        other = np.full(1 + m, OTHER_SHARE / (m + 2))
        upper = np.array([other[0], *np.full(m, UPPER_SHARE / m)])
        delta = check_probability(self.delta, "delta")
        ends = np.minimum(delta * np.array([other, upper]), 0.5)
        edges: Floats = -np.log(ends) if self.is_count_based else np.vectorize(compute_edge)(ends)
        candidate_ends = np.vstack([edges, compute_lows(thresholds.signs)])
        sharp = UNIT_RANGE if self.is_count_based else SUB_GAUSSIAN
        return replace(
            model,
            confidence=-np.log(delta * ellipsoids),
            model=PER_CANDIDATE_RIDGE,
            straight=int(self.mixes),
            per_candidate=sharp,
            per_candidate_ends=candidate_ends,
        )

    @property
    def interval_shares(self) -> tuple[float, ...]:
        m, delta = self.thresholds.values.size, float(self.delta)
        if not self.has_per_action_bounds:
            return super().interval_shares
        cost = (COST_SHARE + UPPER_SHARE) / m + OTHER_SHARE / (m + 2)
        return (delta * (REWARD_SHARE + 2.0 * OTHER_SHARE / (m + 2)), *([delta * cost] * m))

    def learn_log(self, state: State, actions: Any, values: Sequence[Floats] | Floats) -> State:
        """Learn a log as one batch; per-candidate sets are tightened once, after all rows.

        The rows can be in any order, so the sets between them are not confidence sets of any round.
        """
        if not self.has_per_action_bounds:
            return super().learn_log(state, actions, values)
        before = state.memory.copy()
        state = super().learn_log(state, actions, values)
        for (_, block), (_, old) in zip(self.iter_blocks(state.memory), self.iter_blocks(before), strict=True):
            if block.per_candidate > 0:
                ends, saved = GET_CANDIDATE_SETS(block), GET_CANDIDATE_SETS(old)
                ends.lows[:], ends.highs[:] = saved.lows, saved.highs
                TIGHTEN(block, self.settings, np.empty(block.width))
        return state
