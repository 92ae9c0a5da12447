"""What the linear policies share: their settings, what follows from them, and learning."""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.layout import OFFERS_SAFE, RETURNS, ROVING
from stagewise.kernels.loop.round import RAYS, Form
from stagewise.kernels.signals.radius import RADII, Radius
from stagewise.kernels.signals.sampling import THEORY
from stagewise.models.linear import LinearModel
from stagewise.policies.arrays import NOTHING, assembled
from stagewise.policies.baseline import baseline_of, featured, vanishing
from stagewise.policies.ceilings import beyond, ceilings_of, longest, span_of
from stagewise.policies.policy import State
from stagewise.policies.rays import decision_on_rays, rays_of
from stagewise.policies.roving import RovingPolicy, dimension_of
from stagewise.policies.safe_policy import SafePolicy
from stagewise.policies.settings import hope_switch, keep, probability, promise_numbers, settle
from stagewise.problem.actions import Finite, Listed, Rays
from stagewise.problem.checks import PerSignal, number, one_of, one_per, positive, shown, switch
from stagewise.problem.errors import InvalidActions, InvalidProblem, StagewiseError
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Thresholds, resolved
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw

LEAST_RIDGE, MOST_RIDGE = 1e-8, 1e50  # of what is chosen for the user: beside less, features of 100 would be refused
LARGEST_SHARE = 1e6  # an action's largest feature in units of √λ (docs/decisions/0005-square-root.md)


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearPolicy(RovingPolicy, SafePolicy):
    """Settings of a policy whose rewards and costs are linear in an action's features."""

    noise: PerSignal
    """R: outcomes are R-sub-Gaussian around their means; one number, or one for the reward and one per cost."""
    norm_bound: PerSignal = 1.0
    """S ≥ ‖θ*‖, ‖μ*‖: one number, or one for the reward and one per cost."""
    action_bound: float = 1.0
    """L ≥ ‖x‖, which only radius="paper" and the inflation "theory" of SafeLTS rest on."""
    ridge: float | None = None
    """λ of the regressions; None: d R²/S², the largest of the signals'. The paper has 1."""
    radius: Radius = "joint"
    """How far the truth may lie from an estimate (docs/theory/joint-radius.md)."""
    apart: bool = False
    """Each signal has a regression of its own, so that it is learned when it comes, without waiting for the others."""
    dimension: int | None = None
    """d, where every round's set names its own safe action; else the safe action's features say it."""

    model: LinearModel = field(init=False, repr=False)
    span: float = field(init=False, repr=False)  # the longest action that the default of cost_bound allows

    form: ClassVar[Form] = Form(ridge=1, rule=RAYS)
    inflates: ClassVar[bool] = True  # the costs' uncertainty raises the hoped reward
    returns: ClassVar[bool] = True  # a directional choice comes back to what is safe

    @property
    def sampling(self) -> int:
        """How a sampled reward is inflated; 0: none is sampled."""
        return 0

    @property
    def switches(self) -> int:
        """The switches of its rule (see `kernels.promise`)."""
        return OFFERS_SAFE | hope_switch(self) | (RETURNS if self.returns else 0)

    def __post_init__(self) -> None:
        keep(self)
        if switch(self.apart, "apart"):
            settle(self, form=self.form._replace(apart=1))
        roving = baseline_of(self.safe_action).of_the_round
        safe = self.placed(roving)
        thresholds = resolved(self.threshold, self.safe_action)
        model = self.assumed(safe, thresholds)
        check_scale(np.abs(safe.features).max(), model.ridge, "the safe action", InvalidProblem)
        ceilings = ceilings_of(thresholds, self.cost_bound)
        promise = promise_numbers(thresholds, ceilings, self.reward_scale, self.cost_scale, self.watch)
        span, size = span_of(self.cost_bound, ceilings, model.norm_bound[1:]), longest(safe.features[np.newaxis])
        if thresholds.safe is None and size > span:
            raise InvalidProblem(beyond("the safe action", size, span))
        head, features, declared = (self.switches, self.sampling, -1), safe.features, NOTHING
        if roving:
            head, features, declared = (head[0] | ROVING, *head[1:]), *unknown(safe.dimension, thresholds.values.size)
            settle(self, form=self.form._replace(roving=1))
        parts = tuple(model.parts())
        settle(self, dimension=safe.dimension, span=span, thresholds=thresholds, model=model)
        layout, settings = assembled(head, promise, features, parts, declared, self.last_numbers(model))
        settle(self, layout=layout, settings=settings)

    def placed(self, roving: bool) -> SafeAction:
        """Return the safe action with features; for one of the round, one that nothing is known of stands in."""
        if roving:
            check_roving(self)
            return SafeAction(features=np.zeros(dimension_of(self.dimension, self.safe_action)))
        safe = featured(self.safe_action)
        dimension_of(self.dimension, safe)
        return vanishing(safe) if safe.is_origin else safe

    def last_numbers(self, model: LinearModel) -> list[float]:
        """Return what only a sampled reward reads: 2LS."""
        return [2.0 * model.action_bound * float(model.norm_bound[0])]

    def assumed(self, safe: SafeAction, thresholds: Thresholds) -> LinearModel:
        """Return what is assumed of the signals."""
        names, roving = ("reward", *thresholds.names), self.safe_action.of_the_round
        radius = one_of(self.radius, RADII, "radius")
        check_bound_read(self.action_bound, radius == "paper" or self.sampling == THEORY)
        share = probability(self.delta, "delta") / (len(names) if switch(self.share_delta, "share_delta") else 1)
        size = float(np.linalg.norm(safe.features))
        if radius == "paper" and size > positive(self.action_bound, "action_bound") * (1.0 + 1e-9):
            raise InvalidProblem(
                f"the safe action has norm {size:.6g}, above action_bound {self.action_bound:g}; "
                "the radius 'paper' holds only up to it"
            )
        noise, bound = one_per(self.noise, names, "noise"), one_per(self.norm_bound, names, "norm_bound")
        return LinearModel(
            safe=safe.features,
            names=names,
            reward=safe.reward,
            costs=None if roving else thresholds.signed_safe,
            noise=noise,
            norm_bound=bound,
            action_bound=positive(self.action_bound, "action_bound"),
            ridge=ridge_of(self.ridge, safe.features.size, noise, bound),
            confidence=np.full(len(names), math.log(1.0 / share)),
            radius=radius,
            apart=self.apart,
        )

    def form_for(self, actions: Any) -> Form | None:
        """Return rays, where there are some."""
        return self.form if actions.between else None

    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        rays = actions if type(actions) is Rays else rays_of(actions)
        of_round = None if rays.fits is self.token else self.entered(rays)
        seen = self.chosen(self.form, state, rays.features, rays.eligible, draw, of_round)
        return self.explained(seen, state, decision_on_rays(seen, self.thresholds, draw.round), of_round)

    def logged(self, actions: Any) -> Floats:
        return self.fitting(Finite.borrowed(actions)).features

    def fitting(self, listed: Listed) -> Listed:
        check_features(
            listed, self.dimension or 0, self.model.ridge, self.action_bound if self.radius == "paper" else math.inf
        )
        check_span(listed, self.span)
        return listed


def unknown(d: int, m: int) -> tuple[Floats, Floats]:
    """Return a safe action of which nothing is known, and what is declared of it, as settings hold them."""
    return np.full(d, np.nan), np.full(1 + m, np.nan)


def check_roving(policy: Any) -> None:
    """Refuse what is only for a safe action that is the same in every round."""
    if number(policy.cost_scale, "cost_scale") != 1.0:
        raise InvalidProblem(
            f"cost_scale is {shown(policy.cost_scale)}; leave it out where every round's set names its safe action, "
            "whose declared cost is a bound already"
        )


def check_bound_read(action_bound: float, read: bool) -> None:
    """Refuse an action_bound that nothing rests on."""
    if positive(action_bound, "action_bound") != 1.0 and not read:
        raise InvalidProblem(
            f"action_bound is {action_bound}; leave it out, since only radius='paper' and the inflation 'theory' of "
            "SafeLTS rest on it, and other radii hold for actions of any length"
        )


def ridge_of(given: float | None, dimension: int, noise: Floats | float, bound: Floats | float) -> float:
    """Return λ as it was given; None: d R²/S², the largest of the signals', within what can be reckoned with."""
    if given is not None:
        return positive(given, "ridge")
    with np.errstate(over="ignore"):
        return float(np.clip(dimension * np.max((np.asarray(noise) / bound) ** 2), LEAST_RIDGE, MOST_RIDGE))


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
    if listed.largest > LARGEST_SHARE * math.sqrt(ridge):  # asked here too: the call would be a hundredth of a round
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
