"""What the linear policies share: their settings, what follows from them, and learning."""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.kernels.layout import DIRECTIONAL, INFLATED, OFFERS_SAFE, RETURNS
from stagewise.kernels.loop.round import RAYS, Form
from stagewise.kernels.signals.radius import RADII
from stagewise.models.linear import LinearModel
from stagewise.policies.baseline import featured, vanishing
from stagewise.policies.ceilings import UNIT, CostBound, beyond, ceilings_of, longest, span_of
from stagewise.policies.compiled import CompiledPolicy, assembled
from stagewise.policies.settings import keep, probability, promise_numbers
from stagewise.problem.actions import Finite, Listed
from stagewise.problem.checks import PerSignal, one_of, one_per, positive, switch
from stagewise.problem.errors import InvalidActions, InvalidProblem, StagewiseError
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Threshold, Thresholds, resolved

LARGEST_SHARE = 1e6  # an action's largest feature in units of √λ (docs/decisions/0005-square-root.md)


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearPolicy(CompiledPolicy):
    """Settings of a policy whose rewards and costs are linear in an action's features."""

    safe_action: SafeAction
    threshold: Threshold  # a number, one per constraint, or a mapping from names
    noise: PerSignal  # R: one number, or one for the reward and one per cost
    delta: float = 0.05  # the whole statement holds with probability 1 − δ
    norm_bound: PerSignal = 1.0  # S ≥ ‖θ*‖, ‖μ*‖
    action_bound: float = 1.0  # L ≥ ‖x‖; only radius="paper" rests on it
    ridge: float = 1.0  # λ
    radius: str = "joint"  # or "logdet", "paper"
    cost_bound: CostBound = UNIT  # a-priori bound on mean costs, or one for each; "unit": 1, checked; None: none
    optimism: str = "inflated"  # or "directional"
    reward_scale: float | None = None  # α_r; None: the theorem's choice
    cost_scale: float = 1.0  # α_c
    share_delta: bool = True  # split δ over the reward and the constraints
    watch: bool = True  # hold what was declared against the data (docs/theory/watch.md)

    dimension: int = field(init=False, repr=False)  # d
    thresholds: Thresholds = field(init=False, repr=False)
    model: LinearModel = field(init=False, repr=False)
    layout: Ints = field(init=False, repr=False)
    settings: Floats = field(init=False, repr=False)
    span: float = field(init=False, repr=False)  # the longest action that the default of cost_bound allows

    form: ClassVar[Form] = Form(ridge=1, rule=RAYS)
    inflates: ClassVar[bool] = True  # the costs' uncertainty raises the hoped reward
    returns: ClassVar[bool] = True  # a directional choice comes back to what is safe

    @property
    def sampling(self) -> int:
        """How a sampled reward is inflated; 0: none is sampled."""
        return 0

    def __post_init__(self) -> None:
        keep(self)
        safe = featured(self.safe_action)
        safe = vanishing(safe) if safe.is_origin else safe
        check_scale(np.abs(safe.features).max(), positive(self.ridge, "ridge"), "the safe action", InvalidProblem)
        thresholds = resolved(self.threshold, self.safe_action)
        directional = one_of(self.optimism, ("inflated", "directional"), "optimism") == "directional"
        model = self.assumed(safe, thresholds)
        ceilings = ceilings_of(thresholds, self.cost_bound)
        promise = promise_numbers(thresholds, ceilings, self.reward_scale, self.cost_scale, self.watch)
        span, size = span_of(self.cost_bound, ceilings, model.norm_bound[1:]), longest(safe.features[np.newaxis])
        if thresholds.safe is None and size > span:
            raise InvalidProblem(beyond("the safe action", size, span))
        switches = OFFERS_SAFE | (DIRECTIONAL if directional else INFLATED if self.inflates else 0)
        switches |= RETURNS if self.returns else 0
        layout, settings = assembled((switches, self.sampling, -1), promise, safe.features, tuple(model.parts()))
        last = [2.0 * model.action_bound * model.norm_bound[0]]  # only a sampled reward reads it
        object.__setattr__(self, "dimension", safe.dimension)
        object.__setattr__(self, "span", span)
        object.__setattr__(self, "thresholds", thresholds)
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "settings", np.append(settings, last))

    def assumed(self, safe: SafeAction, thresholds: Thresholds) -> LinearModel:
        """Return what is assumed of the signals."""
        names = ("reward", *thresholds.names)
        radius = one_of(self.radius, RADII, "radius")
        share = probability(self.delta, "delta") / (len(names) if switch(self.share_delta, "share_delta") else 1)
        size = float(np.linalg.norm(safe.features))
        if radius == "paper" and size > positive(self.action_bound, "action_bound") * (1.0 + 1e-9):
            raise InvalidProblem(
                f"the safe action has norm {size:.6g}, above action_bound {self.action_bound:g}; "
                "the radius 'paper' holds only up to it"
            )
        return LinearModel(
            safe=safe.features,
            names=names,
            reward=safe.reward,
            costs=None if thresholds.safe is None else thresholds.signs * thresholds.safe,
            noise=one_per(self.noise, names, "noise"),
            norm_bound=one_per(self.norm_bound, names, "norm_bound"),
            action_bound=positive(self.action_bound, "action_bound"),
            ridge=positive(self.ridge, "ridge"),
            confidence=np.full(len(names), math.log(1.0 / share)),
            radius=radius,
        )

    def logged(self, actions: Any) -> Floats:
        """Return logged actions (n, d)."""
        return self.fitting(Finite.borrowed(actions)).features

    def fitting(self, listed: Listed) -> Listed:
        """Return the action set if this policy can choose from it."""
        check_features(listed, self.dimension, self.ridge, self.action_bound if self.radius == "paper" else math.inf)
        check_span(listed, self.span)
        return listed


def check_span(listed: Listed, span: float) -> None:
    """Refuse actions whose mean cost may be beyond the default of `cost_bound`."""
    if span < math.inf:
        if listed.longest is None:
            listed.longest = longest(listed.features)
        if listed.longest > span:
            raise InvalidActions(beyond("an action", listed.longest, span))


def check_features(listed: Listed, dimension: int, ridge: float, action_bound: float) -> None:
    """Refuse actions of another dimension, too large for the ridge, or longer than the paper's radius allows."""
    features = listed.features
    if features.shape[1] != dimension:
        raise InvalidActions(
            f"the actions have {features.shape[1]} features; the safe action has {dimension}, and they must agree"
        )
    check_scale(listed.largest, ridge, "an action", InvalidActions)
    if action_bound < math.inf:
        longest = float(np.sqrt(np.max(np.einsum("ij,ij->i", features, features))))
        if longest > action_bound * (1.0 + 1e-9):
            raise InvalidActions(
                f"an action has norm {longest:.6g}, above action_bound {action_bound:g}; the radius 'paper' holds only "
                "up to it, so raise action_bound or use radius='joint', which needs none"
            )


def check_scale(largest: float, ridge: float, whose: str, error: type[StagewiseError]) -> None:
    """Refuse features beside which the ridge is lost in rounding: bounds would then be too narrow, unnoticed."""
    if largest > LARGEST_SHARE * math.sqrt(ridge):
        raise error(
            f"{whose} has a feature of size {largest:.6g} with ridge {ridge:g}; features must be at most "
            f"{LARGEST_SHARE:g} times its square root, or rounding hides what was never seen, so scale them down or "
            "raise ridge"
        )
