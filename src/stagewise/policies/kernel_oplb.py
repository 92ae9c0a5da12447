"""OPLB with rewards and costs in a reproducing-kernel Hilbert space: one safe mixture over a finite set."""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.engine.layout import CACHED, CAPACITY, ENFORCES_LIMITS, OFFERS_SAFE
from stagewise.engine.model import RoundSpec, Rule
from stagewise.models.kernel_ridge import KernelModel, get_most_basis_points
from stagewise.models.similarity import Kernel, similarity
from stagewise.policies.decisions import attach_round, build_mixture_decision, copy_action, parse_listed_actions
from stagewise.policies.linear_policy import check_features, check_scale, check_span
from stagewise.policies.policy import PolicyState
from stagewise.policies.rounds import GET_KNOWN_ACTIONS, Growth
from stagewise.policies.settings import (
    SafePolicy,
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
from stagewise.rules.mixture import MIXTURE

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
