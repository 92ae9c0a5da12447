"""OPLB with rewards and costs in a reproducing-kernel space: one safe mixture over any finite set of actions."""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.layout import CAPACITY, FOLLOWED, OFFERS_SAFE, RETURNS
from stagewise.kernels.loop.memory import fullest, memory_kernels_for
from stagewise.kernels.loop.round import MIXTURE, Form
from stagewise.kernels.signals.space import points_of
from stagewise.models.part import parts_in
from stagewise.models.space import Kernel, SpaceModel, similarity
from stagewise.policies.arrays import MEMORY_SIZE, assembled, fitting_memory
from stagewise.policies.baseline import featured, refuse_safe, vanishing
from stagewise.policies.ceilings import beyond, ceilings_of, span_of
from stagewise.policies.compiled import KNOWN_IN, STRAYED
from stagewise.policies.linear import check_features, check_scale, check_span
from stagewise.policies.mixtures import decision_from
from stagewise.policies.policy import State
from stagewise.policies.rays import listed_of, own
from stagewise.policies.safe_policy import SafePolicy
from stagewise.policies.settings import hope_switch, keep, probability, promise_numbers, settle
from stagewise.problem.action_set import ActionSet
from stagewise.problem.actions import Finite, Listed
from stagewise.problem.checks import MANY, PerSignal, number, one_per, positive, shown, switch, whole_at_least
from stagewise.problem.errors import InvalidActions, InvalidProblem
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Thresholds, resolved
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw

SMALLEST_NOVELTY = 1e-12
FIRST_CAPACITY = 8  # basis points that a new memory has room for; it grows by half
POINTS_OF = named(points_of)


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelOPLB(SafePolicy):
    """With probability 1 − δ every round's mixture has its expected cost in check, for signals f with ‖f‖ ≤ B.

        maximise E_π hoped(X)  subject to  E_π dearest_j(X) ≤ τ_j for every j

    with bounds f̂(x) ± β σ(x)/√λ of kernel ridge regression, conditioned on what is known at the safe action
    (docs/theory/kernels.md). An observed point joins the basis of the regression if it is new: further than
    `novelty` from the span of the others, and while there are fewer than `capacity`. What is neglected otherwise is
    paid for in the radius. With u basis points, at most `capacity`, memory is of the order of u², and K u for K actions
    that come back in every round; such a round takes of the order of K u, and one with fresh actions K u².

    >>> import stagewise as sw
    >>> safe = sw.SafeAction(features=[0.0], reward=0.0, cost=0.0)
    >>> policy = KernelOPLB(
    ...     kernel=sw.RBF(lengthscale=0.5), safe_action=safe, threshold=0.5, noise=0.1, norm_bound=1.0
    ... )
    >>> policy.decide(policy.start(), [[0.1], [1.0]]).probabilities.round(3)
    array([0. , 0.5, 0.5])
    """

    kernel: Kernel
    """RBF(...), Matern(...) or LinearKernel(): how alike rewards and costs of two actions are."""
    noise: PerSignal
    """R: outcomes are R-sub-Gaussian around their means; one number, or one for the reward and one per cost."""
    norm_bound: PerSignal
    """B ≥ ‖f‖ in the kernel's space: one number, or one for the reward and one per cost."""
    ridge: float = 1.0
    """λ of the regressions."""
    novelty: float = 1e-10
    """A point joins the basis if its squared distance from the span of the others exceeds this share of k(x, x)."""
    capacity: int = 1000
    """Basis points at most."""

    dimension: int = field(init=False, repr=False)  # d
    model: SpaceModel = field(init=False, repr=False)
    span: float = field(init=False, repr=False)  # the largest √k(x, x) that the default of cost_bound allows

    form: ClassVar[Form] = Form(space=1, rule=MIXTURE)
    mixes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        keep(self)
        if not isinstance(self.kernel, Kernel):
            raise InvalidProblem(f"kernel is {shown(self.kernel)}; it must be RBF(...), Matern(...) or LinearKernel()")
        settle(self, capacity=whole_at_least(self.capacity, "capacity", 1))
        safe = featured(self.safe_action)
        size = math.sqrt(similarity(self.kernel, safe.features, safe.features))
        if size == 0.0:  # every function of the space is 0 there, as a linear one is at the zero vector
            baseline = safe = vanishing(safe)
        else:  # as an arm, so that it is not taken for a linear zero
            baseline = SafeAction(arm=0, reward=safe.reward, cost=safe.cost)
        check_scale(size, positive(self.ridge, "ridge"), "the safe action", InvalidProblem)
        thresholds = resolved(self.threshold, baseline)
        switches = OFFERS_SAFE | RETURNS | hope_switch(self)
        model = self.assumed(safe, thresholds)
        ceilings = ceilings_of(thresholds, self.cost_bound)
        promise = promise_numbers(thresholds, ceilings, self.reward_scale, self.cost_scale, self.watch)
        span = span_of(self.cost_bound, ceilings, model.norm_bound[1:])
        if size > span and not (self.kernel.is_linear and thresholds.safe is not None):
            raise InvalidProblem(beyond("the safe action", size, span))
        layout, settings = assembled((switches, 0, -1), promise, safe.features, tuple(model.parts()))
        settle(self, dimension=safe.dimension, span=span, thresholds=thresholds, model=model)
        settle(self, layout=layout, settings=settings)

    def assumed(self, safe: SafeAction, thresholds: Thresholds) -> SpaceModel:
        """Return what is assumed of the signals."""
        names = ("reward", *thresholds.names)
        share = probability(self.delta, "delta") / (len(names) if switch(self.share_delta, "share_delta") else 1)
        novelty = number(self.novelty, "novelty")
        if not SMALLEST_NOVELTY <= novelty < 1.0:
            raise InvalidProblem(
                f"novelty is {novelty}; it must be less than 1 and at least {SMALLEST_NOVELTY:g}, below which "
                "rounding would decide what is new"
            )
        return SpaceModel(
            kernel=self.kernel,
            safe=safe.features,
            names=names,
            reward=safe.reward,
            costs=thresholds.signed_safe,
            noise=one_per(self.noise, names, "noise"),
            norm_bound=one_per(self.norm_bound, names, "norm_bound"),
            ridge=positive(self.ridge, "ridge"),
            confidence=np.full(len(names), math.log(1.0 / share)),
            novelty=novelty,
        )

    @property
    def first_capacity(self) -> int:
        return min(FIRST_CAPACITY, self.capacity)

    def form_for(self, actions: Any) -> Form | None:
        """Return how compiled loops play it: on actions that come back, so that their points are known beforehand."""
        come_back = actions.is_list and actions.dimension and not (actions.between or actions.fresh)
        return self.form if come_back else None

    def played_from(self, offered: Any, features: Floats, fresh: bool, learned: State | None = None) -> Floats:
        """Return the memory that a compiled run begins with: it follows all actions, and has room for all of them."""
        self.fitting(offered)  # refuse here what play by hand refuses
        memory = self.begins(learned).memory
        used = 0 if learned is None else fullest(self.layout, memory)
        capacity = max(min(self.capacity, len(features) + 1 + used), self.first_capacity)
        known = KNOWN_IN(self.layout, self.settings, memory).followed
        if memory[FOLLOWED] != 0.0 and not np.array_equal(known, features):
            raise InvalidProblem(STRAYED)
        return self.changed(self.layout, self.settings, memory, features, max(capacity, int(memory[CAPACITY])))

    def coordinates(self, dimension: int, memory: Floats) -> int:
        """Return how many basis points there is room for."""
        return int(memory[CAPACITY])

    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        if isinstance(actions, ActionSet) and actions.is_list and actions.between:
            raise InvalidActions(
                "the actions are Rays, whose inner points are no mixtures of their ends for a kernel; list the points "
                "that can be played as a Finite set"
            )
        listed = self.fitting(listed_of(actions))
        self.safe_named_by(listed)
        seen = self.chosen(self.form, state, listed.features, listed.eligible, draw)
        action = own(listed.features[seen.code] if seen.code >= 0 else self.safe_action.features)
        return self.explained(seen, state, decision_from(seen, action, self.thresholds, draw.round))

    def safe_named_by(self, listed: Any) -> None:
        refuse_safe(listed, "KernelOPLB")

    def enlarged(self, layout: Ints, settings: Floats, memory: Floats) -> Floats:
        """Return the memory, with more room where another basis point could not join, up to the capacity."""
        capacity, followed = int(memory[CAPACITY]), int(memory[FOLLOWED])
        if capacity == self.capacity or fullest(layout, memory) < capacity:
            return memory
        more = min(capacity + max(capacity // 2, FIRST_CAPACITY), self.capacity)
        changed = np.empty(MEMORY_SIZE(layout, followed, more))
        memory_kernels_for(*self.form.models).widen(layout, memory, more, changed)
        return changed

    def spare(self, layout: Ints, memory: Floats) -> int:
        """Return how many observations a memory surely has room for: at its capacity, for any number."""
        capacity = int(memory[CAPACITY])
        return MANY if capacity == self.capacity else capacity - fullest(layout, memory)

    def fits(self, memory: Floats) -> bool:
        if not fitting_memory(memory, self.layout, self.capacity) or memory[CAPACITY] < 1:
            return False
        sums = [POINTS_OF(self.layout, part, memory).sums for part in parts_in(self.layout, memory)]
        used, neglected = np.array(sums).T
        return bool(np.all((used % 1.0 == 0.0) & (used >= 0.0) & (used <= memory[CAPACITY]) & (neglected >= 0.0)))

    def logged(self, actions: Any) -> Floats:
        return self.fitting(Finite.borrowed(actions)).features

    def fitting(self, listed: Listed) -> Listed:
        check_features(listed, self.dimension, self.ridge if self.kernel.is_linear else math.inf, math.inf)
        if self.kernel.is_linear:
            check_span(listed, self.span)
        return listed
