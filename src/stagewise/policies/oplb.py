"""OPLB: one safe mixture of the listed actions per round, for linear means or in a reproducing-kernel space."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from stagewise.engine.compile import Flags, Floats, Ints
from stagewise.engine.layout import CACHED, CAPACITY, ENFORCES_LIMITS, OFFERS_SAFE
from stagewise.engine.model import RoundSpec, Rule
from stagewise.engine.random import POLICY, uniform
from stagewise.engine.workspace import (
    BOUNDS_NOT_FINITE,
    CENTRE,
    CONTRADICTED,
    COST_SCALE,
    NO_CERTIFIED_ACTION,
    OPTIMISTIC_REWARDS,
    SAFE_ACTION_COST_UNCERTAIN,
)
from stagewise.models.kernel_ridge import KernelModel, get_most_basis_points
from stagewise.models.ridge import LinearConfidenceSet, build_confidence_set
from stagewise.models.similarity import Kernel, similarity
from stagewise.policies.decisions import (
    GET_COST_ROWS,
    TERMS,
    BoundedMixture,
    attach_round,
    build_mixture_decision,
    copy_action,
    parse_listed_actions,
    read_mixture,
    sample_code,
)
from stagewise.policies.linear_policy import LinearPolicy, check_features, check_scale, check_span
from stagewise.policies.policy import PolicyState
from stagewise.policies.rounds import GET_KNOWN_ACTIONS, Growth, RoundResult
from stagewise.policies.settings import (
    SafePolicy,
    check_method,
    check_norm,
    compute_ceilings,
    compute_confidence,
    compute_max_action_norm,
    copy_settings,
    fill_zero_reward,
    get_optimism_switch,
    reject_round_safe_action,
    require_features,
    set_derived,
    set_rounds,
)
from stagewise.problem.actions import ActionSet, FiniteSet, Listed
from stagewise.problem.checks import PerSignal, check_integer_at_least, check_number, check_per_signal, check_positive
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Thresholds, resolve_thresholds
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.rules.cone_program import Columns, compute_pessimistic_costs, find_best_mixture_in_cone
from stagewise.rules.mixture import MIXTURE

UNSOLVED = (
    SAFE_ACTION_COST_UNCERTAIN,
    NO_CERTIFIED_ACTION,
    BOUNDS_NOT_FINITE,
)  # codes of rounds that play only the safe action


@dataclass(frozen=True, kw_only=True, eq=False)
class OPLB(LinearPolicy):
    """The paper's Algorithm 2, tractable: with probability 1 − δ every round's mixture keeps its limits in expectation.

        maximise E_π optimistic_reward(X)  subject to  E_π pessimistic_cost_j(X) ≤ τ_j for every j

    This is a linear program, whose solution mixes at most m + 1 actions (docs/theory/tractable-oplb.md). The guarantee
    is for the mixture, not for each action in it. `optimism="directional"` constrains the optimistic costs instead and
    then mixes with the safe action until the pessimistic costs are within the limits.

    `method="socp"` bounds the cost of the mixture's mean action instead of the mean of the actions' bounds, which
    allows more mixtures and solves one second-order cone program per round. `decision.solver_gap` bounds the error
    of the solver (docs/theory/oplb-in-three-grades.md).

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> import numpy as np
        >>> from stagewise.problem.safe_action import SafeAction
        >>> policy = OPLB(safe_action=SafeAction(features=np.zeros(2)), threshold=0.5, noise=0.1)
        >>> policy.decide(policy.start(), np.eye(2)).probabilities.round(6)  # of both actions, then of the safe action
        array([0.5, 0. , 0.5])
    """

    method: Literal["lp", "socp"] = "lp"
    """The program that finds the mixture: see above."""

    rule: ClassVar[Rule] = MIXTURE
    mixes: ClassVar[bool] = True
    theorem: ClassVar[str] = "mixtures"
    methods: ClassVar[tuple[str, ...]] = ("lp", "socp")

    def __post_init__(self) -> None:
        check_method(self.method, self.methods, "ExactOPLB")
        super().__post_init__()
        several = self.separate_models and self.thresholds.values.size > 1
        conflicts = {
            "every round names its own safe action": (self.safe_action.is_per_round, "uses the declared cost"),
            "optimism is 'directional'": (self.optimism == "directional", "allows directional optimism"),
            "per_action_bounds is True": (self.per_action_bounds, "uses more than the ellipsoid"),
            "separate_models is True, with several limits": (several, "has a matrix for each cost"),
        }
        for fact, (is_set, ability) in conflicts.items():
            if is_set and self.method != "lp":
                raise InvalidProblem.conflict("method", self.method, fact, f"use method 'lp', since only it {ability}")

    def get_round_spec(self, actions: Any) -> RoundSpec | None:
        """Return the spec for mixtures; the methods that call a solver are not compiled."""
        return self.rounds.spec if self.method == "lp" else None

    def choose(self, state: PolicyState, actions: Any, draw: RandomKey) -> Decision:
        listed = parse_listed_actions(actions)
        of_round, blend = self.check_offered(listed), None
        arrays = None if of_round is None else self.get_round_arrays(of_round)
        result = self.rounds.play(state.memory, listed.features, listed.eligible, draw, arrays)
        if self.method != "lp" and -result.code not in UNSOLVED and result.code > -CONTRADICTED:
            blend = self.refine(result, state.memory)
            lottery = uniform(draw.seed, draw.run, draw.round, POLICY, 0)
            result = result._replace(code=sample_code(blend.probabilities, lottery))
        safe = self.safe_action.features if of_round is None else of_round.features
        action = copy_action(listed.features[result.code] if result.code >= 0 else safe)
        decision = build_mixture_decision(result, action, self.thresholds, draw.round, blend=blend)
        return attach_round(decision, result, state.memory, self.thresholds, of_round)

    def refine(self, result: RoundResult, memory: Floats) -> BoundedMixture:
        """Return the solver's mixture where it is better than the linear program's."""
        return refine_mixture(build_action_bounds(result, memory), read_mixture(result), solve_socp)


# The second-order cone program.


class ActionBounds(NamedTuple):
    """Bounds of the eligible actions and, last, of the safe action."""

    places: Ints  # (N,) their indices in the list of K; K: the safe action
    features: Floats  # (N, d)
    optimistic_reward: Floats  # (N,) optimistic rewards, each action by itself
    costs: Floats  # (m, N) estimates
    clipped: Floats  # (m, N) pessimistic costs, each action by itself, at most their ceilings
    belief: LinearConfidenceSet
    limits: Floats  # (m,)
    ceilings: Floats  # (m,)
    cost_confidence_scale: float

    @property
    def binding(self) -> Flags:
        """Which constraints can bind: those that the a-priori ceiling does not imply."""
        flags: Flags = self.ceilings > self.limits
        return flags

    @property
    def images(self) -> Floats:
        """Tz (n, N) of the actions' coordinates z, whose norm is a cost's width."""
        return compute_images(self.features, self.belief.cost_norm)

    @property
    def finite(self) -> bool:
        """Whether all numbers are finite, so that a solver can be called."""
        radii = np.append(self.belief.cost_radii, self.belief.reward_radius)
        return all(bool(np.isfinite(part).all()) for part in (self.optimistic_reward, self.costs, radii, self.images))


def build_action_bounds(result: RoundResult, memory: Floats) -> ActionBounds:
    layout, settings, area, count = result.layout, result.settings, result.workspace, len(result.features)
    indices = np.append(np.flatnonzero(result.eligible) if result.eligible.size else np.arange(count), count)
    terms = TERMS(layout, settings)
    return ActionBounds(
        indices,
        np.vstack([result.features, GET_KNOWN_ACTIONS(layout, settings, memory).safe])[indices],
        area.rule[OPTIMISTIC_REWARDS, indices],
        area.bounds[1:, CENTRE, indices],
        GET_COST_ROWS(layout, area.rule)[:, indices],
        build_confidence_set(layout, settings, memory),
        terms.limits,
        terms.ceilings,
        float(settings[COST_SCALE]),
    )


def compute_images(features: Floats, norm: Floats) -> Floats:
    """Return Tz (n, N) of the actions' coordinates z; a row of zeros where nothing is learned."""
    images: Floats = norm @ features.T
    return images if len(images) else np.zeros((1, len(features)))


def build_columns(listing: ActionBounds, at_ceiling: Ints) -> tuple[Columns, Ints]:
    """Return the actions as columns, and again those that can be charged their ceiling instead of their bound.

        E c(X) ≤ C(q) + Σ r_i ceiling    for every way p = q + r to split a mixture, C being the pessimistic cost

    The second result maps columns to actions (N + R,).
    """
    bind, images = listing.binding, listing.images
    ceilings = np.tile(listing.ceilings[bind, np.newaxis], at_ceiling.size)
    columns = Columns(
        np.column_stack([listing.costs[bind], ceilings]),
        np.column_stack([images, np.zeros((len(images), at_ceiling.size))]),
        listing.cost_confidence_scale * listing.belief.cost_radii[bind],
        listing.limits[bind],
        listing.places.size - 1,
    )
    return columns, np.append(np.arange(listing.places.size), at_ceiling)


def build_mixture(
    listing: ActionBounds, columns: Columns, whose: Ints, shares: Floats, optimistic_reward: float, bound: float
) -> BoundedMixture:
    """Return a mixture of columns as a mixture of actions, with the lowest of its valid pessimistic costs.

    These are the costs of the columns, the cost of the mean action, and the mean of the actions' costs.
    """
    bind, count = listing.binding, listing.places.size
    probabilities, totals = np.zeros(listing.places[-1] + 1), np.zeros(shares.size)
    np.add.at(totals, whose, shares)
    probabilities[listing.places] = totals[:count]
    costs = np.minimum(listing.clipped @ totals[:count], listing.ceilings)
    costs[bind] = np.minimum(
        costs[bind], np.minimum(compute_pessimistic_costs(columns, shares), compute_pessimistic_costs(columns, totals))
    )
    return BoundedMixture(probabilities, optimistic_reward, costs, max(bound - optimistic_reward, 0.0))


def solve_socp(listing: ActionBounds) -> BoundedMixture:
    """Maximise E optimistic_reward(X) subject to the pessimistic costs of the mixture's mean action.

    At their ceilings all actions cost the same, so only the one with the largest optimistic reward can be charged its
    ceiling (docs/theory/oplb-in-three-grades.md).
    """
    finite = np.isfinite(listing.ceilings).all()
    columns, whose = build_columns(
        listing, np.array([np.argmax(listing.optimistic_reward)] if finite else [], dtype=np.int64)
    )
    best = find_best_mixture_in_cone(columns, listing.optimistic_reward[whose])
    return build_mixture(listing, columns, whose, best.shares, best.value, best.bound)


def refine_mixture(
    listing: ActionBounds, linear: BoundedMixture, solve: Callable[[ActionBounds], BoundedMixture]
) -> BoundedMixture:
    """Return the solver's mixture, or the linear program's, which is safe too, where that one is better.

    The solver is not called where no constraint binds. The optimistic reward of a mixture is at most the largest of a
    single action, by Jensen's inequality.
    """
    linear = linear._replace(solver_gap=max(float(np.max(listing.optimistic_reward)) - linear.optimistic_reward, 0.0))
    if linear.solver_gap == 0.0 or not listing.binding.any() or not listing.finite:
        return linear
    blend = solve(listing)
    if blend.optimistic_reward >= linear.optimistic_reward:
        return blend
    return linear._replace(solver_gap=max(blend.optimistic_reward + blend.solver_gap - linear.optimistic_reward, 0.0))


SMALLEST_NOVELTY = 1e-12
FIRST_CAPACITY = 8  # basis points; a memory grows by half


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelOPLB(SafePolicy):
    """OPLB for signals f with ‖f‖ ≤ B: with probability 1 − δ every round's mixture keeps its limits in expectation.

        maximise E_π optimistic_reward(X)  subject to  E_π pessimistic_cost_j(X) ≤ τ_j for every j

    The bounds f̂(x) ± β σ(x)/√λ are those of kernel ridge regression, conditioned on the declared values of the safe
    action (docs/theory/kernels.md). An observed point joins the basis of the regression if its distance from the span
    of the others exceeds `novelty_threshold` and the basis has fewer than `max_points`; the radius accounts for the
    rest.
    With u basis points, memory is O(u²), plus O(K u) for K actions that recur in every round; such a round takes
    O(K u) time, and a round with new actions O(K u²).

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> import stagewise as sw
        >>> safe = sw.SafeAction(features=[0.0], reward=0.0, cost=0.0)
        >>> policy = KernelOPLB(
        ...     kernel=sw.RBF(lengthscale=0.5), safe_action=safe, threshold=0.5, noise=0.1, norm_bound=1.0
        ... )
        >>> policy.decide(policy.start(), [[0.1], [1.0]]).probabilities.round(3)
        array([0. , 0.5, 0.5])
    """

    kernel: Kernel
    """The kernel: RBF(...), Matern(...) or LinearKernel()."""
    noise: PerSignal
    """R: outcomes are R-sub-Gaussian around their means; one number, or one for the reward and one per cost."""
    norm_bound: PerSignal
    """B ≥ ‖f‖ in the kernel's Hilbert space: one number, or one for the reward and one per cost."""
    ridge: float = 1.0
    """λ: the ridge of the regressions."""
    novelty_threshold: float = 1e-10
    """A point joins the basis if its squared distance from the span of the others exceeds this share of k(x, x)."""
    max_points: int = 1000
    """The largest number of basis points."""

    dimension: int = field(init=False, repr=False)  # d
    model: KernelModel = field(init=False, repr=False)
    span: float = field(init=False, repr=False)  # the largest √k(x, x) that the default of mean_cost_bound allows

    rule: ClassVar[Rule] = MIXTURE
    mixes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        copy_settings(self)
        if not isinstance(self.kernel, Kernel):
            rule = "RBF(...), Matern(...) or LinearKernel()"
            raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "kernel", self.kernel, rule)
        set_derived(self, max_points=check_integer_at_least(self.max_points, "max_points", 1))
        safe = require_features(self.safe_action)
        size = math.sqrt(similarity(self.kernel, safe.features, safe.features))
        if size == 0.0:  # every function of the space is 0 there
            baseline = safe = fill_zero_reward(safe)
        else:  # as an arm, so that it is not taken for a linear zero
            baseline = SafeAction(arm=0, reward=safe.reward, cost=safe.cost)
        check_scale(size, check_positive(self.ridge, "ridge"), "the safe action", InvalidProblem)
        thresholds = resolve_thresholds(self.threshold, baseline)
        switches = OFFERS_SAFE | ENFORCES_LIMITS | get_optimism_switch(self)
        model = self.build_model(safe, thresholds)
        ceilings = compute_ceilings(thresholds, self.mean_cost_bound)
        span = compute_max_action_norm(self.mean_cost_bound, ceilings, model.norm_bound[1:])
        if not (self.kernel.is_linear and thresholds.safe is not None):
            check_norm("the safe action", size, span, InvalidProblem)
        set_derived(self, dimension=safe.dimension, span=span, model=model)
        growth = Growth(min(FIRST_CAPACITY, self.max_points), self.max_points, 0.5)
        blocks = tuple(model.build_blocks())
        arrays = {"switches": switches, "safe": safe.features, "growth": growth}
        set_rounds(self, self.rule, thresholds, ceilings, blocks, **arrays)

    def build_model(self, safe: SafeAction, thresholds: Thresholds) -> KernelModel:
        """Return the model of the signals."""
        names, novelty = ("reward", *thresholds.names), check_number(self.novelty_threshold, "novelty_threshold")
        confidence = compute_confidence(self, len(names))
        if not SMALLEST_NOVELTY <= novelty < 1.0:
            rule = f"less than 1 and at least {SMALLEST_NOVELTY:g}, since smaller values are below rounding error"
            raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, "novelty_threshold", novelty, rule)
        return KernelModel(
            kernel=self.kernel,
            safe=safe.features,
            names=names,
            reward=safe.reward,
            costs=thresholds.signed_safe,
            noise=check_per_signal(self.noise, names, "noise"),
            norm_bound=check_per_signal(self.norm_bound, names, "norm_bound"),
            ridge=check_positive(self.ridge, "ridge"),
            confidence=np.full(len(names), confidence),
            novelty=novelty,
        )

    def choose(self, state: PolicyState, actions: Any, draw: RandomKey) -> Decision:
        if isinstance(actions, ActionSet) and actions.is_list and actions.between:
            raise InvalidActions(
                ErrorCode.UNSUPPORTED_ACTIONS,
                "the actions are a RaySet, whose inner points are not mixtures of their ends under a kernel; list the "
                "playable points as a FiniteSet",
            )
        listed = self.check_actions(parse_listed_actions(actions))
        reject_round_safe_action(listed, "KernelOPLB")
        result = self.rounds.play(state.memory, listed.features, listed.eligible, draw)
        action = copy_action(listed.features[result.code] if result.code >= 0 else self.safe_action.features)
        decision = build_mixture_decision(result, action, self.thresholds, draw.round)
        return attach_round(decision, result, state.memory, self.thresholds)

    def check_logged_actions(self, actions: Any) -> Floats:
        return self.check_actions(FiniteSet.from_view(actions)).features

    def check_actions(self, listed: Listed) -> Listed:
        check_features(listed, self.dimension, self.ridge if self.kernel.is_linear else math.inf, math.inf)
        if self.kernel.is_linear:
            check_span(listed, self.span)
        return listed

    def get_round_spec(self, actions: Any) -> RoundSpec | None:
        """Return the spec of compiled loops, for actions that recur."""
        recur = actions.is_list and actions.dimension and not (actions.between or actions.fresh)
        return self.rounds.spec if recur else None

    def build_run_memory(
        self, offered: Any, features: Floats, fresh: bool, learned: PolicyState | None = None
    ) -> Floats:
        """Return the initial memory of a compiled run, with all actions cached and capacity for all of them."""
        self.check_actions(offered)  # raise the same errors as `decide`
        memory = self.rounds.start_run(None if learned is None else learned.memory, features, True)
        used = 0 if learned is None else get_most_basis_points(self.layout, memory)
        capacity = max(
            min(self.max_points, len(features) + 1 + used), self.rounds.first_capacity, int(memory[CAPACITY])
        )
        cached = GET_KNOWN_ACTIONS(self.layout, self.settings, memory).cached
        if memory[CACHED] != 0.0 and not np.array_equal(cached, features):
            raise InvalidProblem(
                ErrorCode.STATE_MISMATCH, "the state was trained on another action list; use backend='python'"
            )
        return self.rounds.rebuild(memory, features, capacity)
