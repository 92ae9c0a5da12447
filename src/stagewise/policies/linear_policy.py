"""What the linear policies share: their settings, what follows from them, and learning."""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.engine.layout import ENFORCES_LIMITS, OFFERS_SAFE, PER_ROUND_SAFE
from stagewise.engine.model import RoundSpec, Rule
from stagewise.models.per_round_ridge import PER_ROUND_RIDGE
from stagewise.models.regression import RADII, Radius
from stagewise.models.ridge import RIDGE, THEORY, LinearModel
from stagewise.policies.arrays import NOTHING, assemble_arrays, build_round_spec
from stagewise.policies.baseline import fill_zero_reward, parse_safe_action, require_features
from stagewise.policies.cost_bounds import (
    compute_ceilings,
    compute_max_action_norm,
    compute_max_row_norm,
    describe_norm_excess,
)
from stagewise.policies.per_round_safe import PerRoundSafePolicy, get_dimension
from stagewise.policies.policy import State
from stagewise.policies.ray_decision import build_ray_decision, parse_rays
from stagewise.policies.safe_policy import SafePolicy
from stagewise.policies.settings import (
    build_constraint_settings,
    check_probability,
    copy_settings,
    get_optimism_switch,
    set_derived,
)
from stagewise.problem.actions import FiniteSet, Listed, Rays
from stagewise.problem.checks import PerSignal, check_bool, check_choice, check_number, check_per_signal, check_positive
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem, StagewiseError
from stagewise.problem.formatting import safe_repr
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Thresholds, resolve_thresholds
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.rules.ray import RAY

LEAST_RIDGE, MOST_RIDGE = 1e-8, 1e50  # range of the default ridge; a smaller one would reject features of size 100
LARGEST_SHARE = 1e6  # an action's largest feature in units of √λ (docs/decisions/0005-square-root.md)


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearPolicy(PerRoundSafePolicy, SafePolicy):
    """Settings of a policy whose rewards and costs are linear in an action's features."""

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

    model: LinearModel = field(init=False, repr=False)
    span: float = field(init=False, repr=False)  # the largest norm of an action under the default cost_bound

    rule: ClassVar[Rule] = RAY
    inflates: ClassVar[bool] = True  # the uncertainty of costs raises the optimistic reward
    returns: ClassVar[bool] = True  # a directional choice is cut back to a safe one

    @property
    def sampling(self) -> int:
        """The inflation of a sampled reward; 0: the policy does not sample."""
        return 0

    @property
    def switches(self) -> int:
        """The switches of its rule (see `kernels.constraints`)."""
        return OFFERS_SAFE | get_optimism_switch(self) | (ENFORCES_LIMITS if self.returns else 0)

    def __post_init__(self) -> None:
        copy_settings(self)
        check_bool(self.separate_models, "separate_models")
        per_round_safe = parse_safe_action(self.safe_action).is_per_round
        safe = self.resolve_safe_action(per_round_safe)
        thresholds = resolve_thresholds(self.threshold, self.safe_action)
        model = self.build_model(safe, thresholds)
        check_scale(np.abs(safe.features).max(), model.ridge, "the safe action", InvalidProblem)
        ceilings = compute_ceilings(thresholds, self.cost_bound)
        constraints = build_constraint_settings(
            thresholds, ceilings, self.reward_confidence_scale, self.cost_confidence_scale, self.check_assumptions
        )
        span, size = (
            compute_max_action_norm(self.cost_bound, ceilings, model.norm_bound[1:]),
            compute_max_row_norm(safe.features[np.newaxis]),
        )
        if thresholds.safe is None and size > span:
            raise InvalidProblem(
                ErrorCode.BOUND_EXCEEDED, "{problem}", problem=describe_norm_excess("the safe action", size, span)
            )
        head, features, declared = (self.switches, self.sampling, -1), safe.features, NOTHING
        if per_round_safe:
            head, features, declared = (
                (head[0] | PER_ROUND_SAFE, *head[1:]),
                *build_unknown_safe_action(safe.dimension, thresholds.values.size),
            )
        blocks = tuple(model.build_blocks())
        set_derived(self, dimension=safe.dimension, span=span, thresholds=thresholds, model=model)
        layout, settings = assemble_arrays(head, constraints, features, blocks, declared, self.last_numbers(model))
        set_derived(self, round_spec=build_round_spec(blocks, self.rule, thresholds.values.size))
        set_derived(self, layout=layout, settings=settings)

    def resolve_safe_action(self, per_round_safe: bool) -> SafeAction:
        """Return the safe action with features; where every round names its own, a placeholder."""
        if per_round_safe:
            check_per_round_safe(self)
            return SafeAction(features=np.zeros(get_dimension(self.dimension, self.safe_action)))
        safe = require_features(self.safe_action)
        get_dimension(self.dimension, safe)
        return fill_zero_reward(safe) if safe.is_origin else safe

    def last_numbers(self, model: LinearModel) -> list[float]:
        """Return the last numbers of the settings: 2LS, which only a sampled reward uses."""
        return [2.0 * model.action_bound * float(model.norm_bound[0])]

    def build_model(self, safe: SafeAction, thresholds: Thresholds) -> LinearModel:
        """Return the model of the signals."""
        names, per_round_safe = ("reward", *thresholds.names), self.safe_action.is_per_round
        radius = check_choice(self.radius, RADII, "radius")
        check_bound_read(self.action_bound, radius == "paper" or self.sampling == THEORY)
        share = check_probability(self.delta, "delta") / (
            len(names) if check_bool(self.split_delta, "split_delta") else 1
        )
        size = float(np.linalg.norm(safe.features))
        if radius == "paper" and size > check_positive(self.action_bound, "action_bound") * (1.0 + 1e-9):
            raise InvalidProblem(
                ErrorCode.BOUND_EXCEEDED,
                "the safe action has norm {size:.6g}, above action_bound {action_bound:g}; raise "
                "action_bound, since radius='paper' holds only up to it",
                size=size,
                action_bound=self.action_bound,
            )
        noise, bound = (
            check_per_signal(self.noise, names, "noise"),
            check_per_signal(self.norm_bound, names, "norm_bound"),
        )
        return LinearModel(
            safe=safe.features,
            names=names,
            reward=safe.reward,
            costs=None if per_round_safe else thresholds.signed_safe,
            noise=noise,
            norm_bound=bound,
            action_bound=check_positive(self.action_bound, "action_bound"),
            ridge=compute_ridge(self.ridge, safe.features.size, noise, bound),
            confidence=np.full(len(names), math.log(1.0 / share)),
            radius=radius,
            separate_models=self.separate_models,
            model=PER_ROUND_RIDGE if per_round_safe else RIDGE,
        )

    def get_round_spec(self, actions: Any) -> RoundSpec | None:
        """Return the spec for rays."""
        return self.round_spec if actions.between else None

    def choose(self, state: State, actions: Any, draw: RandomKey) -> Decision:
        rays = actions if type(actions) is Rays else parse_rays(actions)
        of_round = None if rays.fits is self.token else self.check_offered(rays)
        result = self.play_round(self.round_spec, state, rays.features, rays.eligible, draw, of_round)
        return self.attach_cause(result, state, build_ray_decision(result, self.thresholds, draw.round), of_round)

    def check_logged_actions(self, actions: Any) -> Floats:
        return self.check_actions(FiniteSet.from_view(actions)).features

    def check_actions(self, listed: Listed) -> Listed:
        check_features(
            listed, self.dimension or 0, self.model.ridge, self.action_bound if self.radius == "paper" else math.inf
        )
        check_span(listed, self.span)
        return listed


def build_unknown_safe_action(d: int, m: int) -> tuple[Floats, Floats]:
    """Return a placeholder for a round's safe action and its declared values, as NaN."""
    return np.full(d, np.nan), np.full(1 + m, np.nan)


def check_per_round_safe(policy: Any) -> None:
    """Raise InvalidProblem for settings that need one safe action for all rounds."""
    if check_number(policy.cost_confidence_scale, "cost_confidence_scale") != 1.0:
        raise InvalidProblem(
            ErrorCode.UNUSED_SETTING,
            "cost_confidence_scale is {cost_confidence_scale}; omit it where every round names its safe action, whose "
            "declared cost is already a bound",
            cost_confidence_scale=safe_repr(policy.cost_confidence_scale),
        )


def check_bound_read(action_bound: float, is_used: bool) -> None:
    """Raise InvalidProblem for an action_bound that has no effect."""
    if check_positive(action_bound, "action_bound") != 1.0 and not is_used:
        raise InvalidProblem(
            ErrorCode.UNUSED_SETTING,
            "action_bound is {action_bound}; leave it out, since only radius='paper' and the "
            "inflation 'theory' of SafeLTS use it",
            action_bound=action_bound,
        )


def compute_ridge(ridge: float | None, dimension: int, noise: Floats | float, bound: Floats | float) -> float:
    """Return λ: the given one, or the largest d R²/S² of the signals within a numerically safe range."""
    if ridge is not None:
        return check_positive(ridge, "ridge")
    with np.errstate(over="ignore"):
        return float(np.clip(dimension * np.max((np.asarray(noise) / bound) ** 2), LEAST_RIDGE, MOST_RIDGE))


def check_span(listed: Listed, span: float) -> None:
    """Raise InvalidActions where a mean cost can exceed the default `cost_bound`."""
    if span < math.inf:
        if listed.longest is None:
            listed.longest = compute_max_row_norm(listed.features)
        if listed.longest > span:
            raise InvalidActions(
                ErrorCode.BOUND_EXCEEDED, "{problem}", problem=describe_norm_excess("an action", listed.longest, span)
            )


def check_features(listed: Listed, dimension: int, ridge: float, action_bound: float) -> None:
    """Raise InvalidActions for another dimension, features too large for the ridge, or norms above action_bound."""
    features = listed.features
    if features.shape[1] != dimension:
        raise InvalidActions(
            ErrorCode.DIMENSION_MISMATCH,
            "the actions have {shape} features and the safe action has {dimension}; they must agree",
            shape=features.shape[1],
            dimension=dimension,
        )
    if listed.largest > LARGEST_SHARE * math.sqrt(ridge):  # repeated here, since the call costs a hundredth of a round
        check_scale(listed.largest, ridge, "an action", InvalidActions)
    if action_bound < math.inf:
        longest = float(np.sqrt(np.max(np.einsum("ij,ij->i", features, features))))
        if longest > action_bound * (1.0 + 1e-9):
            raise InvalidActions(
                ErrorCode.BOUND_EXCEEDED,
                "an action has norm {longest:.6g}, above action_bound {action_bound:g}; raise "
                "action_bound, or use radius='joint', which needs no bound",
                longest=longest,
                action_bound=action_bound,
            )


def check_scale(largest: float, ridge: float, whose: str, error: type[StagewiseError]) -> None:
    """Raise an error for features so large that rounding hides the ridge and makes bounds too narrow."""
    if largest > LARGEST_SHARE * math.sqrt(ridge):
        raise error(
            ErrorCode.OUT_OF_RANGE,
            "{whose} has a feature of size {largest:.6g} with ridge {ridge:g}; features must be at "
            "most {largest_share:g} times its square root, or rounding hides the ridge, so "
            "scale them down or raise ridge",
            whose=whose,
            largest=largest,
            ridge=ridge,
            largest_share=LARGEST_SHARE,
        )
