"""What the linear policies share: their settings, what follows from them, and learning."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python
from stagewise.engine.layout import (
    ENFORCES_LIMITS,
    OFFERS_SAFE,
    PER_ROUND_SAFE,
    SAFE_INDEX,
    SUB_GAUSSIAN,
    UNIT_RANGE,
    set_round_safe_action,
)
from stagewise.engine.model import RoundSpec, Rule
from stagewise.models.arms import compute_lows
from stagewise.models.per_candidate import PER_CANDIDATE_RIDGE, compute_edge, get_candidate_sets, tighten_by_ellipsoid
from stagewise.models.per_round_ridge import PER_ROUND_RIDGE
from stagewise.models.regression import RADII, Radius
from stagewise.models.ridge import RIDGE, THEORY, LinearModel
from stagewise.policies.decisions import attach_round, build_ray_decision, parse_rays
from stagewise.policies.policy import PolicyState
from stagewise.policies.rounds import NOTHING
from stagewise.policies.settings import (
    SafePolicy,
    check_norm,
    compute_ceilings,
    compute_confidence,
    compute_max_action_norm,
    compute_max_row_norm,
    copy_settings,
    fill_zero_reward,
    get_optimism_switch,
    get_round_safe_action,
    get_settings,
    parse_safe_action,
    reject_round_safe_action,
    require_features,
    set_derived,
    set_rounds,
)
from stagewise.problem.actions import FiniteSet, Listed, RaySet
from stagewise.problem.checks import (
    PerSignal,
    check_bool,
    check_choice,
    check_number,
    check_per_signal,
    check_positive,
    check_size,
)
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidOutcome, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.problem.safe_action import RoundSafeAction, SafeAction
from stagewise.problem.thresholds import Thresholds, resolve_thresholds
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.rules.ray import RAY

LEAST_RIDGE, MOST_RIDGE = 1e-8, 1e50  # range of the default ridge; a smaller one would reject features of size 100
LARGEST_SHARE = 1e6  # an action's largest feature in units of √λ (docs/decisions/0005-square-root.md)
LOWEST = 0.0  # default lower bound of the mean reward of a round's safe action
SET_SAFE = as_python(set_round_safe_action)
GET_CANDIDATE_SETS, TIGHTEN = as_python(get_candidate_sets), as_python(tighten_by_ellipsoid)

# Shares of δ with per-candidate sets (docs/theory/caps.md): the reward's ellipsoid, the costs' ellipsoids, the costs'
# per-candidate upper bounds, all other bounds.
REWARD_SHARE, COST_SHARE, UPPER_SHARE, OTHER_SHARE = 0.1, 0.1, 0.65, 0.15


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearPolicy(SafePolicy):
    """The settings of a policy whose rewards and costs are linear in an action's features."""

    noise: PerSignal
    """R: outcomes are R-sub-Gaussian around their means; one number, or one for the reward and one per cost."""
    norm_bound: PerSignal = 1.0
    """S ≥ ‖θ*‖, ‖μ*‖: one number, or one for the reward and one per cost."""
    action_bound: float = 1.0
    """L ≥ ‖x‖; used only by radius="paper" and by the inflation "theory" of SafeLTS."""
    ridge: float | None = None
    """λ: the ridge of the regressions; None: the largest d R²/S² of the signals. The paper has 1."""
    radius: Radius = "joint"
    """The kind of confidence radius (docs/theory/joint-radius.md)."""
    separate_models: bool = False
    """Learn each signal when it arrives, without waiting for the others, in a regression of its own."""
    dimension: int | None = None
    """d, where every round names its safe action; otherwise the safe action's features determine it."""
    per_action_bounds: bool = False
    """Keep a confidence set for each candidate; pays off where actions are the same in every round."""

    model: LinearModel = field(init=False, repr=False)
    span: float = field(init=False, repr=False)  # the largest norm of an action under the default mean_cost_bound

    rule: ClassVar[Rule] = RAY
    returns: ClassVar[bool] = True  # a directional choice is cut back to a safe one

    @property
    def sampling(self) -> int:
        """The inflation of a sampled reward; 0: the policy does not sample."""
        return 0

    @property
    def switches(self) -> int:
        """The switches of its rule (see `engine.workspace`)."""
        return OFFERS_SAFE | get_optimism_switch(self) | (ENFORCES_LIMITS if self.returns else 0)

    @property
    def is_count_based(self) -> bool:
        """Whether per-candidate sets use counts, for which all outcomes must lie in [0, 1]."""
        return False

    @property
    def has_per_action_bounds(self) -> bool:
        """Whether candidates have their own sets; not where every round names its safe action."""
        return self.per_action_bounds and not self.safe_action.is_per_round

    def __post_init__(self) -> None:
        copy_settings(self)
        check_bool(self.separate_models, "separate_models")
        per_round_safe = parse_safe_action(self.safe_action).is_per_round
        self.check_per_action_bounds(per_round_safe)
        safe = self.resolve_safe_action(per_round_safe)
        thresholds = resolve_thresholds(self.threshold, self.safe_action)
        model = self.build_model(safe, thresholds)
        check_scale(np.abs(safe.features).max(), model.ridge, "the safe action", InvalidProblem)
        ceilings = compute_ceilings(thresholds, self.mean_cost_bound)
        span = compute_max_action_norm(self.mean_cost_bound, ceilings, model.norm_bound[1:])
        if thresholds.safe is None:
            check_norm("the safe action", compute_max_row_norm(safe.features[np.newaxis]), span, InvalidProblem)
        set_derived(self, dimension=safe.dimension, span=span, model=model)
        features, declared, switches = safe.features, NOTHING, self.switches
        if per_round_safe:  # placeholders: every round has its own
            features, declared = np.full(safe.dimension, np.nan), np.full(1 + thresholds.values.size, np.nan)
            switches |= PER_ROUND_SAFE
        set_rounds(
            self, self.rule, thresholds, ceilings, tuple(model.build_blocks()),
            switches=switches, sampling=self.sampling, safe=features, declared=declared,
            last=self.last_numbers(model), caches=not per_round_safe,
        )  # fmt: skip

    def check_per_action_bounds(self, per_round_safe: bool) -> None:
        """Raise InvalidProblem for settings that conflict with per-action bounds."""
        is_given = check_bool(self.per_action_bounds, "per_action_bounds")
        if is_given and per_round_safe and any(one.name == "per_action_bounds" for one in get_settings(self)):
            remedy = "leave per_action_bounds out, since it needs actions that recur"
            raise InvalidProblem.conflict("per_action_bounds", True, "every round names its own safe action", remedy)
        if self.per_action_bounds and not check_bool(self.split_delta, "split_delta"):
            remedy = "leave split_delta out, since per-action bounds hold only with a shared δ"
            raise InvalidProblem.conflict("per_action_bounds", True, "split_delta is False", remedy)

    def resolve_safe_action(self, per_round_safe: bool) -> SafeAction:
        """Return the safe action with features; where every round names its own, a placeholder."""
        if not per_round_safe:
            safe = require_features(self.safe_action)
            if self.dimension is not None and check_size(self.dimension, "dimension") != safe.dimension:
                reason = f"the features of the safe action determine it, and it has {safe.dimension}"
                raise InvalidProblem.unused("dimension", self.dimension, reason)
            return fill_zero_reward(safe) if safe.is_origin else safe
        if check_number(self.cost_confidence_scale, "cost_confidence_scale") != 1.0:
            reason = "every round names its safe action, whose declared cost is already a bound"
            raise InvalidProblem.unused("cost_confidence_scale", self.cost_confidence_scale, reason)
        if self.dimension is None:
            raise InvalidProblem(
                ErrorCode.MISSING_VALUE,
                "the safe action has no features, so every round names its own; give dimension, the number of "
                "features of an action",
            )
        return SafeAction(features=np.zeros(check_size(self.dimension, "dimension")))

    def last_numbers(self, model: LinearModel) -> list[float]:
        """Return the last numbers of the settings: 2LS, which only a sampled reward uses."""
        return [2.0 * model.action_bound * float(model.norm_bound[0])]

    def build_model(self, safe: SafeAction, thresholds: Thresholds) -> LinearModel:
        """Return the model of the signals, with δ shared between ellipsoids and per-candidate sets."""
        names, per_round_safe = ("reward", *thresholds.names), self.safe_action.is_per_round
        radius = check_choice(self.radius, RADII, "radius")
        check_bound_read(self.action_bound, radius == "paper" or self.sampling == THEORY)
        confidence, size = compute_confidence(self, len(names)), float(np.linalg.norm(safe.features))
        if radius == "paper" and size > check_positive(self.action_bound, "action_bound") * (1.0 + 1e-9):
            template = (
                "the safe action has norm {size:.6g}, above action_bound {action_bound:g}; raise action_bound, "
                "since radius='paper' holds only up to it"
            )
            raise InvalidProblem(ErrorCode.BOUND_EXCEEDED, template, size=size, action_bound=self.action_bound)
        noise = check_per_signal(self.noise, names, "noise")
        bound = check_per_signal(self.norm_bound, names, "norm_bound")
        model = LinearModel(
            safe=safe.features,
            names=names,
            reward=safe.reward,
            costs=None if per_round_safe else thresholds.signed_safe,
            noise=noise,
            norm_bound=bound,
            action_bound=check_positive(self.action_bound, "action_bound"),
            ridge=compute_ridge(self.ridge, safe.features.size, noise, bound),
            confidence=np.full(len(names), confidence),
            radius=radius,
            separate_models=self.separate_models,
            model=PER_ROUND_RIDGE if per_round_safe else RIDGE,
        )
        if not self.has_per_action_bounds:
            return model
        m, delta = thresholds.values.size, float(self.delta)
        ellipsoids = np.array([REWARD_SHARE, *np.full(m, COST_SHARE / m)])
        other = np.full(1 + m, OTHER_SHARE / (m + 2))
        upper = np.array([other[0], *np.full(m, UPPER_SHARE / m)])
        ends = np.minimum(delta * np.array([other, upper]), 0.5)
        edges: Floats = -np.log(ends) if self.is_count_based else np.vectorize(compute_edge)(ends)
        return replace(
            model,
            confidence=-np.log(delta * ellipsoids),
            model=PER_CANDIDATE_RIDGE,
            straight=int(self.mixes),
            per_candidate=UNIT_RANGE if self.is_count_based else SUB_GAUSSIAN,
            per_candidate_ends=np.vstack([edges, compute_lows(thresholds.signs)]),
        )

    @property
    def interval_shares(self) -> tuple[float, ...]:
        m, delta = self.thresholds.values.size, float(self.delta)
        if not self.has_per_action_bounds:
            return super().interval_shares
        cost = (COST_SHARE + UPPER_SHARE) / m + OTHER_SHARE / (m + 2)
        return (delta * (REWARD_SHARE + 2.0 * OTHER_SHARE / (m + 2)), *([delta * cost] * m))

    def get_round_spec(self, actions: Any) -> RoundSpec | None:
        """Return the spec for rays, or for mixtures."""
        return self.rounds.spec if self.mixes or actions.between else None

    def choose(self, state: PolicyState, actions: Any, draw: RandomKey) -> Decision:
        rays = actions
        if type(actions) is not RaySet:
            decision = self.choose_in_set(state, actions, draw)
            if decision is not None:
                return decision
            rays = parse_rays(actions)
        of_round = None if rays.fits is self.token else self.check_offered(rays)
        arrays = None if of_round is None else self.get_round_arrays(of_round)
        result = self.rounds.play(state.memory, rays.features, rays.eligible, draw, arrays)
        decision = build_ray_decision(result, self.thresholds, draw.round)
        return attach_round(decision, result, state.memory, self.thresholds, of_round)

    def choose_in_set(self, state: PolicyState, actions: Any, draw: RandomKey) -> Decision | None:
        """Return the decision on a set that is not one of rays; None: its actions are rays, or cannot be played."""
        return None

    def learn_log(self, state: PolicyState, actions: Any, values: Sequence[Floats] | Floats) -> PolicyState:
        """Learn a log as one batch; per-candidate sets are tightened once, after all rows.

        The rows can be in any order, so the sets between them are not confidence sets of any round.
        """
        if not self.has_per_action_bounds:
            return super().learn_log(state, actions, values)
        before = state.memory.copy()
        memory = super().learn_log(state, actions, values).memory
        blocks = self.rounds.iter_blocks(memory), self.rounds.iter_blocks(before)
        for (_, block), (_, old) in zip(*blocks, strict=True):
            if block.per_candidate > 0:
                ends, saved = GET_CANDIDATE_SETS(block), GET_CANDIDATE_SETS(old)
                ends.lows[:], ends.highs[:] = saved.lows, saved.highs
                TIGHTEN(block, self.settings, np.empty(block.width))
        return PolicyState(memory)

    def check_logged_actions(self, actions: Any) -> Floats:
        return self.check_actions(FiniteSet.from_view(actions)).features

    def check_actions(self, listed: Listed) -> Listed:
        bound = self.action_bound if self.radius == "paper" else math.inf
        check_features(listed, self.dimension or 0, self.model.ridge, bound)
        check_span(listed, self.span)
        return listed

    # A safe action that differs by round: the action set names it.

    @cached_property
    def token(self) -> object:
        """The mark of action sets that this policy has checked; copies share it."""
        return object()

    @cached_property
    def layouts_by_safe_index(self) -> dict[int, Ints]:
        """The layouts by the index of the safe action."""
        return {}

    def check_offered(self, listed: Any) -> RoundSafeAction | None:
        """Check an action set (once, if it names no safe action), and return the safe action that it names."""
        if listed.fits is self.token:
            return None
        of_round = self.get_round_safe_action(self.check_actions(listed))
        if of_round is None:
            listed.fits = self.token
        return of_round

    def get_round_safe_action(self, listed: Any) -> RoundSafeAction | None:
        """Return the safe action that a set names, with signed costs; None: it is the same in every round."""
        kind = type(self).__name__
        if not self.safe_action.is_per_round:
            reject_round_safe_action(listed, kind)
            return None
        of_round, reward = get_round_safe_action(listed, kind), self.safe_action.reward
        least = LOWEST if reward is None else float(reward)
        if of_round.reward is not None:
            least = max(least, check_number(of_round.reward, "safe_reward", InvalidActions))
        if of_round.safe_index < 0:
            self.check_actions(type(listed).from_view(of_round.features[np.newaxis]))
        costs = get_declared_costs(of_round.cost, self.thresholds)
        return RoundSafeAction(of_round.safe_index, of_round.features.copy(), costs, least)

    def get_round_arrays(self, of_round: RoundSafeAction) -> tuple[Ints, Floats]:
        settings = self.settings.copy()
        SET_SAFE(self.layout, settings, of_round.features, of_round.reward, of_round.cost)
        if of_round.safe_index not in self.layouts_by_safe_index:
            layout = self.layout.copy()
            layout[SAFE_INDEX] = of_round.safe_index
            self.layouts_by_safe_index[of_round.safe_index] = layout
        return self.layouts_by_safe_index[of_round.safe_index], settings

    def get_safe_action(self, decision: Decision) -> tuple[Any, int, float]:
        of_round: RoundSafeAction | None = decision._safe
        if of_round is None:
            return super().get_safe_action(decision)
        return of_round.features.copy(), of_round.safe_index, 0.0

    def check_round_safe_action(self, of_round: RoundSafeAction | None) -> RoundSafeAction | None:
        """Return the safe action of a played round; None: it is unknown."""
        if of_round is None or not self.safe_action.is_per_round:
            return None
        sizes = (self.dimension, self.thresholds.values.size)
        try:
            fits = (of_round.features.size, of_round.cost.size) == sizes and -1 <= of_round.safe_index < 2**62
            fits = fits and math.isfinite(of_round.features.sum() + of_round.cost.sum() + of_round.reward)
        except (AttributeError, TypeError, ValueError):
            fits = False
        if not fits:
            rule = f"one of a round of this {type(self).__name__}"
            raise InvalidOutcome.must_be(ErrorCode.UNKNOWN_DECISION, "the decision's safe action", of_round, rule)
        return of_round


def get_declared_costs(round_cost: Any, thresholds: Thresholds) -> Floats:
    """Return the signed upper bounds (m,) on the costs of a round's safe action, from the policy or the set."""
    signs, declared = thresholds.signs, thresholds.safe
    if round_cost is None:
        if declared is None:
            raise InvalidActions(
                ErrorCode.SAFE_COST_UNKNOWN,
                "the cost of the round's safe action has no bound; give SafeAction(cost=...) to the policy, or "
                "safe_cost= to the action set",
            )
        return np.asarray(thresholds.signed_safe)
    costs = signs * thresholds.costs(round_cost, InvalidActions, "safe_cost")
    for j in np.flatnonzero(~(costs < thresholds.limits)):
        rule = f"strictly {'below' if signs[j] > 0 else 'above'} its threshold, {thresholds.values[j]:g}"
        subject = f"safe_cost of {thresholds.names[j]!r}"
        raise InvalidActions.must_be(ErrorCode.SAFE_ACTION_OVER_LIMIT, subject, float(signs[j] * costs[j]), rule)
    if declared is not None and np.any(costs > signs * declared):
        fact = f"SafeAction declares {safe_repr(declared.tolist())} for all rounds"
        remedy = "a round's cost can only be tighter, so declare the larger cost for all rounds, or none"
        raise InvalidActions.conflict("safe_cost", (signs * costs).tolist(), fact, remedy)
    return np.asarray(costs)


def check_bound_read(action_bound: float, is_used: bool) -> None:
    """Raise InvalidProblem for an action_bound that has no effect."""
    if check_positive(action_bound, "action_bound") != 1.0 and not is_used:
        reason = "only radius='paper' and the inflation 'theory' of SafeLTS use it"
        raise InvalidProblem.unused("action_bound", action_bound, reason)


def compute_ridge(ridge: float | None, dimension: int, noise: Floats | float, bound: Floats | float) -> float:
    """Return λ: the given one, or the largest d R²/S² of the signals within a numerically safe range."""
    if ridge is not None:
        return check_positive(ridge, "ridge")
    with np.errstate(over="ignore"):
        return float(np.clip(dimension * np.max((np.asarray(noise) / bound) ** 2), LEAST_RIDGE, MOST_RIDGE))


def check_span(listed: Listed, span: float) -> None:
    """Raise InvalidActions where a mean cost can exceed the default `mean_cost_bound`."""
    if span < math.inf:
        if listed.longest is None:
            listed.longest = compute_max_row_norm(listed.features)
        check_norm("an action", listed.longest, span, InvalidActions)


def check_features(listed: Listed, dimension: int, ridge: float, action_bound: float) -> None:
    """Raise InvalidActions for another dimension, features too large for the ridge, or norms above action_bound."""
    check_dimension(listed.features, dimension)
    check_scale(listed.largest, ridge, "an action", InvalidActions)
    if action_bound < math.inf:
        check_length(compute_max_row_norm(listed.features), action_bound, "an action")


def check_dimension(features: Floats, dimension: int | None) -> None:
    """Raise InvalidActions for features (K, d) of another dimension than the safe action's."""
    if features.shape[1] != dimension:
        sizes = features.shape[1], "that of the safe action", dimension
        raise InvalidActions.must_agree(ErrorCode.DIMENSION_MISMATCH, "the number of features of the actions", *sizes)


def check_length(longest: float, action_bound: float, what: str) -> None:
    """Raise InvalidActions for an action of a larger norm than radius='paper' allows."""
    if longest > action_bound * (1.0 + 1e-9):
        template = (
            "{what} has norm {longest:.6g}, above action_bound {action_bound:g}; raise action_bound, or use "
            "radius='joint', which needs no bound"
        )
        raise InvalidActions(ErrorCode.BOUND_EXCEEDED, template, what=what, longest=longest, action_bound=action_bound)


def check_scale(largest: float, ridge: float, whose: str, error: type[InvalidProblem | InvalidActions]) -> None:
    """Raise an error for features so large that rounding hides the ridge and makes bounds too narrow."""
    if largest > LARGEST_SHARE * math.sqrt(ridge):
        template = (
            "{whose} has a feature of size {largest:.6g} with ridge {ridge:g}; features must be at most "
            "{largest_share:g} times its square root, or rounding hides the ridge, so scale them down or raise ridge"
        )
        data = {"whose": whose, "largest": largest, "ridge": ridge, "largest_share": LARGEST_SHARE}
        raise error(ErrorCode.OUT_OF_RANGE, template, **data)
