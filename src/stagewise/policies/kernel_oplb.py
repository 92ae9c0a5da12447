"""OPLB with rewards and costs in a reproducing-kernel Hilbert space: one safe mixture over a finite set."""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from stagewise.engine.compile import Floats, Ints, as_python
from stagewise.engine.layout import CACHED, CAPACITY, ENFORCES_LIMITS, OFFERS_SAFE
from stagewise.engine.memory import fits_layout, memory_size, widen_memory
from stagewise.engine.model import RoundSpec, Rule
from stagewise.models.kernel_ridge import KernelModel, count_basis_points, get_basis_points
from stagewise.models.similarity import Kernel, similarity
from stagewise.policies.arrays import assemble_arrays, build_round_spec
from stagewise.policies.baseline import fill_zero_reward, reject_round_safe_action, require_features
from stagewise.policies.compiled_policy import GET_KNOWN_ACTIONS
from stagewise.policies.cost_bounds import compute_ceilings, compute_max_action_norm, describe_norm_excess
from stagewise.policies.linear_policy import check_features, check_scale, check_span
from stagewise.policies.mixture_decision import build_mixture_decision
from stagewise.policies.policy import State
from stagewise.policies.ray_decision import copy_action, parse_listed_actions
from stagewise.policies.safe_policy import SafePolicy
from stagewise.policies.settings import (
    build_constraint_settings,
    check_probability,
    copy_settings,
    get_optimism_switch,
    set_derived,
)
from stagewise.problem.actions import ActionSet, FiniteSet, Listed
from stagewise.problem.checks import (
    MANY,
    PerSignal,
    check_bool,
    check_integer_at_least,
    check_number,
    check_per_signal,
    check_positive,
)
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Thresholds, resolve_thresholds
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.rules.mixture import MIXTURE

SMALLEST_NOVELTY = 1e-12
FIRST_CAPACITY = 8  # basis points; a memory grows by half
GET_BASIS_POINTS = as_python(get_basis_points)
COUNT_POINTS = as_python(count_basis_points)


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelOPLB(SafePolicy):
    """OPLB for signals f with ‖f‖ ≤ B: with probability 1 − δ every round's mixture keeps its limits in expectation.

        maximise E_π optimistic_reward(X)  subject to  E_π pessimistic_cost_j(X) ≤ τ_j for every j

    The bounds f̂(x) ± β σ(x)/√λ are those of kernel ridge regression, conditioned on the declared values of the safe
    action (docs/theory/kernels.md). An observed point joins the basis of the regression if its distance from the span
    of the others exceeds `novelty` and the basis has fewer than `capacity` points; the radius accounts for the rest.
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
    novelty: float = 1e-10
    """A point joins the basis if its squared distance from the span of the others exceeds this share of k(x, x)."""
    capacity: int = 1000
    """The largest number of basis points."""

    dimension: int = field(init=False, repr=False)  # d
    model: KernelModel = field(init=False, repr=False)
    span: float = field(init=False, repr=False)  # the largest √k(x, x) that the default of cost_bound allows

    rule: ClassVar[Rule] = MIXTURE
    mixes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        copy_settings(self)
        if not isinstance(self.kernel, Kernel):
            raise InvalidProblem(
                ErrorCode.WRONG_TYPE,
                "kernel is {kernel}; it must be RBF(...), Matern(...) or LinearKernel()",
                kernel=safe_repr(self.kernel),
            )
        set_derived(self, capacity=check_integer_at_least(self.capacity, "capacity", 1))
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
        ceilings = compute_ceilings(thresholds, self.cost_bound)
        constraints = build_constraint_settings(
            thresholds, ceilings, self.reward_confidence_scale, self.cost_confidence_scale, self.check_assumptions
        )
        span = compute_max_action_norm(self.cost_bound, ceilings, model.norm_bound[1:])
        if size > span and not (self.kernel.is_linear and thresholds.safe is not None):
            raise InvalidProblem(
                ErrorCode.BOUND_EXCEEDED, "{problem}", problem=describe_norm_excess("the safe action", size, span)
            )
        blocks = tuple(model.build_blocks())
        layout, settings = assemble_arrays((switches, 0, -1), constraints, safe.features, blocks)
        set_derived(self, dimension=safe.dimension, span=span, thresholds=thresholds, model=model)
        spec = build_round_spec(blocks, self.rule, thresholds.values.size)
        set_derived(self, layout=layout, settings=settings, round_spec=spec)

    def build_model(self, safe: SafeAction, thresholds: Thresholds) -> KernelModel:
        """Return the model of the signals."""
        names = ("reward", *thresholds.names)
        share = check_probability(self.delta, "delta") / (
            len(names) if check_bool(self.split_delta, "split_delta") else 1
        )
        novelty = check_number(self.novelty, "novelty")
        if not SMALLEST_NOVELTY <= novelty < 1.0:
            raise InvalidProblem(
                ErrorCode.OUT_OF_RANGE,
                "novelty is {novelty}; it must be less than 1 and at least {smallest_novelty:g}, since "
                "smaller values are below rounding error",
                novelty=novelty,
                smallest_novelty=SMALLEST_NOVELTY,
            )
        return KernelModel(
            kernel=self.kernel,
            safe=safe.features,
            names=names,
            reward=safe.reward,
            costs=thresholds.signed_safe,
            noise=check_per_signal(self.noise, names, "noise"),
            norm_bound=check_per_signal(self.norm_bound, names, "norm_bound"),
            ridge=check_positive(self.ridge, "ridge"),
            confidence=np.full(len(names), math.log(1.0 / share)),
            novelty=novelty,
        )

    @property
    def first_capacity(self) -> int:
        return min(FIRST_CAPACITY, self.capacity)

    def get_round_spec(self, actions: Any) -> RoundSpec | None:
        """Return the spec of compiled loops, for actions that recur."""
        recur = actions.is_list and actions.dimension and not (actions.between or actions.fresh)
        return self.round_spec if recur else None

    def build_run_memory(self, offered: Any, features: Floats, fresh: bool, learned: State | None = None) -> Floats:
        """Return the initial memory of a compiled run, with all actions cached and capacity for all of them."""
        self.check_actions(offered)  # raise the same errors as `decide`
        memory = self.start_or_copy(learned).memory
        used = 0 if learned is None else self.count_points(memory)
        capacity = max(min(self.capacity, len(features) + 1 + used), self.first_capacity)
        cached = GET_KNOWN_ACTIONS(self.layout, self.settings, memory).cached
        if memory[CACHED] != 0.0 and not np.array_equal(cached, features):
            raise InvalidProblem(
                ErrorCode.STATE_MISMATCH, "the state was trained on another action list; use backend='python'"
            )
        return self.rebuild_memory(self.layout, self.settings, memory, features, max(capacity, int(memory[CAPACITY])))

    def coordinates(self, dimension: int, memory: Floats) -> int:
        """Return the capacity in basis points."""
        return int(memory[CAPACITY])

    def choose(self, state: State, actions: Any, draw: RandomKey) -> Decision:
        if isinstance(actions, ActionSet) and actions.is_list and actions.between:
            raise InvalidActions(
                ErrorCode.UNSUPPORTED_ACTIONS,
                "the actions are Rays, whose inner points are not mixtures of their ends under a kernel; "
                "list the playable points as a FiniteSet",
            )
        listed = self.check_actions(parse_listed_actions(actions))
        self.get_round_safe_action(listed)
        result = self.play_round(self.round_spec, state, listed.features, listed.eligible, draw)
        action = copy_action(listed.features[result.code] if result.code >= 0 else self.safe_action.features)
        return self.attach_cause(result, state, build_mixture_decision(result, action, self.thresholds, draw.round))

    def get_round_safe_action(self, listed: Any) -> None:
        reject_round_safe_action(listed, "KernelOPLB")

    def enlarge(self, layout: Ints, settings: Floats, memory: Floats) -> Floats:
        """Return the memory, enlarged up to `capacity` where it has no room for another basis point."""
        capacity, cached = int(memory[CAPACITY]), int(memory[CACHED])
        if capacity == self.capacity or self.count_points(memory) < capacity:
            return memory
        more = min(capacity + max(capacity // 2, FIRST_CAPACITY), self.capacity)
        changed = np.empty(memory_size(self.round_spec.models, layout, cached, more))
        widen_memory(self.round_spec.models, layout, memory, more, changed)
        return changed

    def count_points(self, memory: Floats) -> int:
        """Return the largest number of basis points that a block uses."""
        return max(COUNT_POINTS(block, memory) for _, block in self.iter_blocks(memory))

    def count_free_rows(self, layout: Ints, memory: Floats) -> int:
        """Return a lower bound on the number of observations that a memory has room for; unlimited at `capacity`."""
        capacity = int(memory[CAPACITY])
        return MANY if capacity == self.capacity else capacity - self.count_points(memory)

    def fits(self, memory: Floats) -> bool:
        if not fits_layout(self.round_spec.models, memory, self.layout, self.capacity) or memory[CAPACITY] < 1:
            return False
        sums = [GET_BASIS_POINTS(self.layout, part, memory).sums for _, part in self.iter_blocks(memory)]
        used, neglected = np.array(sums).T
        return bool(np.all((used % 1.0 == 0.0) & (used >= 0.0) & (used <= memory[CAPACITY]) & (neglected >= 0.0)))

    def check_logged_actions(self, actions: Any) -> Floats:
        return self.check_actions(FiniteSet.from_view(actions)).features

    def check_actions(self, listed: Listed) -> Listed:
        check_features(listed, self.dimension, self.ridge if self.kernel.is_linear else math.inf, math.inf)
        if self.kernel.is_linear:
            check_span(listed, self.span)
        return listed
