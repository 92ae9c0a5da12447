"""What the linear policies share: their settings, what follows from them, and learning."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stagewise.kernels import linear
from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.following import change_followed
from stagewise.kernels.promise import DISPUTED
from stagewise.kernels.shape import named_shape
from stagewise.kernels.watch import longest
from stagewise.models.linear import RADII, LinearModel
from stagewise.policies.baseline import featured, vanishing
from stagewise.policies.ceilings import UNIT, CostBound, beyond, ceilings_of, span_of
from stagewise.policies.contradictions import regressed, subject, words_for
from stagewise.policies.learning import Learning
from stagewise.policies.policy import Played, State
from stagewise.policies.settings import keep, probability, promise_numbers
from stagewise.problem.actions import Finite, Listed
from stagewise.problem.checks import PerSignal, one_of, one_per, positive, switch
from stagewise.problem.errors import InvalidActions, InvalidProblem, StagewiseError
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Threshold, Thresholds, resolved
from stagewise.records.decision import Decision

LARGEST_SHARE = 1e6  # an action's largest feature in units of √λ (docs/decisions/0005-square-root.md)


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearPolicy(Learning):
    """Settings of a policy whose rewards and costs are linear in an action's features."""

    safe_action: SafeAction
    threshold: Threshold  # a number, one per constraint, or a mapping from names
    noise: PerSignal  # R: one number, or one for the reward and one per cost
    delta: float = 0.05  # the whole statement holds with probability 1 − δ
    parameter_bound: PerSignal = 1.0  # S ≥ ‖θ*‖, ‖μ*‖
    action_bound: float = 1.0  # L ≥ ‖x‖; only radius="paper" rests on it
    ridge: float = 1.0  # λ
    radius: str = "mixture"  # or "logdet", "paper"
    cost_bound: CostBound = UNIT  # a-priori bound on mean costs, or one for each; "unit": 1, checked; None: none
    optimism: str = "inflated"  # or "directional"
    reward_scale: float | None = None  # α_r; None: the theorem's choice
    cost_scale: float = 1.0  # α_c
    share_delta: bool = True  # split δ over the reward and the constraints
    watch: bool = True  # hold what was declared against the data (docs/theory/watch.md)

    dimension: int = field(init=False, repr=False)  # d
    thresholds: Thresholds = field(init=False, repr=False)
    flags: Ints = field(init=False, repr=False)
    numbers: Floats = field(init=False, repr=False)
    span: float = field(init=False, repr=False)  # the longest action that the default of cost_bound allows

    def __post_init__(self) -> None:
        keep(self)
        safe = featured(self.safe_action)
        safe = vanishing(safe) if safe.is_origin else safe
        check_scale(np.abs(safe.features).max(), positive(self.ridge, "ridge"), "the safe action", InvalidProblem)
        thresholds = resolved(self.threshold, self.safe_action)
        optimism = one_of(self.optimism, ("inflated", "directional"), "optimism")
        model = self.model(safe, thresholds)
        ceilings = ceilings_of(thresholds, self.cost_bound)
        promise = promise_numbers(thresholds, ceilings, self.reward_scale, self.cost_scale, self.watch)
        span, size = span_of(self.cost_bound, ceilings, model.parameter_bound[1:]), longest(safe.features[np.newaxis])
        if thresholds.safe is None and size > span:
            raise InvalidProblem(beyond("the safe action", size, span))
        directional = optimism == "directional"
        flags = model.flags(
            directional=directional,
            inflated=self.inflates and not directional,
            offers_safe=True,
            returns=self.returns,
        )
        object.__setattr__(self, "dimension", safe.dimension)
        object.__setattr__(self, "span", span)
        object.__setattr__(self, "thresholds", thresholds)
        object.__setattr__(self, "flags", flags)
        object.__setattr__(self, "numbers", np.concatenate([model.numbers(), promise]))

    @property
    def inflates(self) -> bool:
        """Whether the costs' uncertainty raises the hoped reward."""
        return True

    @property
    def returns(self) -> bool:
        """Whether a directional choice comes back to what is safe."""
        return True

    def model(self, safe: SafeAction, thresholds: Thresholds) -> LinearModel:
        """Return what is assumed of the signals."""
        names = ("reward", *thresholds.names)
        radius = one_of(self.radius, tuple(RADII), "radius")
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
            parameter_bound=one_per(self.parameter_bound, names, "parameter_bound"),
            action_bound=positive(self.action_bound, "action_bound"),
            ridge=positive(self.ridge, "ridge"),
            confidence=np.full(len(names), math.log(1.0 / share)),
            radius=radius,
        )

    def start(self) -> State:
        """Return the memory of a policy that has seen nothing."""
        memory = np.empty(linear.memory_size(named_shape(self.flags), 0))
        linear.start_memory(self.flags, self.numbers, memory)
        return State(memory)

    def follow(self, state: State, decision: Decision) -> State:
        """Follow the first candidates that are ever offered, until others are."""
        if decision.offered is None:
            return state
        return State(following(self.logged(decision.offered), self.flags, self.numbers, self.own(state).memory))

    def fits(self, memory: Floats) -> bool:
        """Say whether a memory can be this policy's."""
        return fitting_memory(memory, self.flags)

    def take(self, state: State, played: Played, values: Floats) -> State:
        """Take in what was seen with an action, in place."""
        absorbed(played, values, self.flags, self.numbers, state.memory)
        return state

    def logged(self, actions: Any) -> Floats:
        """Return logged actions (n, d)."""
        return self.fitting(Finite.borrowed(actions)).features

    def fitting(self, listed: Listed) -> Listed:
        """Return the action set if this policy can choose from it."""
        check_features(listed, self.dimension, self.ridge, self.action_bound if self.radius == "paper" else math.inf)
        check_span(listed, self.span)
        return listed

    def explained(self, code: int, state: State, decision: Decision) -> Decision:
        """Return the decision; where its kernel's code disputes what was declared, with the fallback in words."""
        if code > -DISPUTED:
            return decision
        mind = named(linear.named_mind)(self.flags, self.numbers, state.memory)
        costs, promise, constraint = mind.costs, mind.promise, subject(code)[1]
        seen = regressed(constraint, promise, costs.belief, costs.ridge.tally, costs.anchor.known, 0.0)
        return decision._replace(fallback=words_for(code, self.thresholds, promise.ceilings, seen))


def absorbed(played: Played, values: Floats, flags: Ints, numbers: Floats, memory: Floats) -> None:
    """Take in what was seen with an action, in place."""
    work = np.empty(linear.work_size(played.action.size, values.size, max(int(memory[1]), 0)))
    linear.learn_from(played.action, played.ray, played.step, values, flags, numbers, memory, work)


def following(offered: Floats, flags: Ints, numbers: Floats, memory: Floats) -> Floats:
    """Return the memory after candidates were offered: following them if they are the first, or none from now on."""
    shape, count = named_shape(flags), max(int(memory[1]), 0)
    known = memory[memory.size - count * shape.dimension :].reshape(count, shape.dimension)
    if memory[1] == linear.NEVER or np.array_equal(offered, known):
        return memory
    chosen = offered if count == 0 else offered[:0]
    changed = np.empty(linear.memory_size(shape, len(chosen)))
    change_followed(chosen, flags, numbers, memory, changed, np.empty(shape.dimension))
    return changed


def fitting_memory(memory: Floats, flags: Ints) -> bool:
    """Say whether a memory can belong to a policy with these settings."""
    shape = named_shape(flags)
    if memory.ndim != 1 or memory.size < linear.HEAD or memory[0] != shape.dimension:
        return False
    if not linear.NEVER <= memory[1] <= memory.size:  # false for NaN too
        return False
    count = int(memory[1])
    return bool(count == memory[1]) and memory.size == linear.memory_size(shape, max(count, 0))


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
                "up to it, so raise action_bound or use radius='mixture', which needs none"
            )


def check_scale(largest: float, ridge: float, whose: str, error: type[StagewiseError]) -> None:
    """Refuse features beside which the ridge is lost in rounding: bounds would then be too narrow, unnoticed."""
    if largest > LARGEST_SHARE * math.sqrt(ridge):
        raise error(
            f"{whose} has a feature of size {largest:.6g} with ridge {ridge:g}; features must be at most "
            f"{LARGEST_SHARE:g} times its square root, or rounding hides what was never seen, so scale them down or "
            "raise ridge"
        )
