"""OPNLB: optimistic in the reward, pessimistic in the costs, for means that are functions of finite classes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.kernels.layout import OFFERS_SAFE, RETURNS
from stagewise.kernels.promise import ALARM, BASELINE, NOISE, disputed
from stagewise.kernels.signals.watch import farthest, least_noise
from stagewise.models.answers import Evidence
from stagewise.models.functions import FunctionsModel, Seen
from stagewise.policies.arms import eligible_arms, logged_arms
from stagewise.policies.arrays import assembled
from stagewise.policies.baseline import baseline_of, refuse_safe
from stagewise.policies.classes import Functions, fitting
from stagewise.policies.contradictions import cause_for
from stagewise.policies.learning import check_unit_range
from stagewise.policies.policy import Played, State
from stagewise.policies.rays import listed_of
from stagewise.policies.safe_mixture import Offer, Rule, decided, staying
from stagewise.policies.safe_policy import SafeLearning
from stagewise.policies.settings import check_method, gone_with, hope_switch, keep, probability, promise_numbers, settle
from stagewise.problem.actions import checked
from stagewise.problem.checks import PerSignal, number, one_per
from stagewise.problem.errors import InvalidActions, InvalidProblem
from stagewise.problem.functions import GivenClass, class_of, classes_of
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import resolved
from stagewise.records.decision import Decision
from stagewise.records.draw import Draw
from stagewise.records.reason import Cause
from stagewise.rules.rows import Vertex, best_under_rows


@dataclass(frozen=True, kw_only=True, eq=False)
class OPNLB(SafeLearning):
    """The paper's Algorithm 4: with probability 1 − δ the mixture of every round has its expected cost in check.

    The mean reward is a function of `reward_class`, the mean cost one of `cost_class`: one class for all costs, or one
    for each as a list or a mapping by name. Functions that contradict what is known of the safe action are left out at
    the start, and others as soon as what was seen speaks against them.

    `method="pointwise"`: bounds for every action, one linear program. `"rows"`: the expected cost is bounded under
    every plausible function, which allows more mixtures (docs/theory/function-classes.md).

    >>> from stagewise.problem.actions import Arms
    >>> rewards, costs = [[0.1, 0.5, 0.9], [0.1, 0.9, 0.5]], [[0.0, 0.2, 0.6], [0.0, 0.6, 0.2]]
    >>> safe = SafeAction(arm=0, reward=0.1, cost=0.0)
    >>> policy = OPNLB(reward_class=rewards, cost_class=costs, safe_action=safe, threshold=0.3)
    >>> policy.decide(policy.start(), Arms(3)).probabilities
    array([0.5, 0.5, 0. , 0. ])
    """

    reward_class: GivenClass
    """The functions one of which is the mean reward: a FunctionClass, a table (F, K) over arms, or callables."""
    cost_class: GivenClass | Sequence[GivenClass] | Mapping[str, GivenClass]
    """The same for the costs: one class for all, or one for each as a list or a mapping by name."""
    noise: PerSignal | None = None
    """R: outcomes are R-sub-Gaussian around their means, for all signals or for each; None: they lie in [0, 1]."""
    method: Literal["pointwise", "rows"] = "pointwise"
    """How costs are bounded, and the mixture found: see above."""
    reward_scale: float | None = None
    """α_r of inflated optimism, what a unit of the costs' whole width adds; None: (1 − r₀)/(τ − c₀)."""

    functions: Functions = field(init=False, repr=False)
    model: FunctionsModel = field(init=False, repr=False)
    rule: Rule = field(init=False, repr=False)

    mixes: ClassVar[bool] = True
    methods: ClassVar[tuple[str, ...]] = ("pointwise", "rows")
    gone: ClassVar[Mapping[str, str]] = gone_with("ExactOPNLB")

    def __post_init__(self) -> None:
        keep(self)
        check_words(self)
        # As an arm: only a linear function must be 0 where all features are.
        thresholds = resolved(self.threshold, SafeAction(arm=0, cost=baseline_of(self.safe_action).cost))
        names = ("reward", *thresholds.names)
        reward, costs = class_of(self.reward_class), classes_of(self.cost_class, thresholds.names)
        settle(self, reward_class=reward, cost_class=costs)
        functions = fitting(reward, costs, self.safe_action, thresholds)
        noise = one_per(0.5 if self.noise is None else self.noise, names, "noise")
        model = self.assumed(functions.sizes, noise, math.log(len(names) / probability(self.delta, "delta")))
        scale = None if self.reward_scale is None else 1.0 + 2.0 * float(self.reward_scale)
        numbers = promise_numbers(thresholds, np.full(thresholds.values.size, math.inf), scale, 1.0, self.watch)
        safe: Any = np.empty(0) if functions.table is not None else self.safe_action.features
        home = -1 if functions.table is None else int(self.safe_action.arm or 0)
        layout, settings = assembled((OFFERS_SAFE | RETURNS | hope_switch(self), 0, home), numbers, safe, ())
        settle(self, thresholds=thresholds, functions=functions, model=model, rule=Rule(layout, settings, thresholds))

    def assumed(self, sizes: tuple[int, ...], noise: Floats, confidence: float) -> FunctionsModel:
        return FunctionsModel(sizes=sizes, noise=noise, confidence=confidence)

    def start(self) -> State:
        return State(self.model.start())

    def choose(self, state: State, actions: Any, draw: Draw) -> Decision:
        offer, places = self.offered(actions)
        values = np.column_stack([self.functions.at(places), self.functions.safe])
        believed, dispute = self.model.bounds(state.memory, values), self.contradiction(state.memory)
        if believed is not None and dispute is not None:
            return staying(offer, self.thresholds, draw.round, dispute)
        return decided(offer, believed, self.rule, self.solve if self.method != "pointwise" else None, draw)

    def solve(self, worth: Floats, tables: tuple[Floats, ...], scales: Floats) -> Vertex:
        """Return the best mixture under a limit for every plausible function; the safe action is last."""
        return best_under_rows(worth, tables[1:], self.rule.limits)

    def contradiction(self, memory: Floats) -> Cause | None:
        """Return what was declared of a cost and is contradicted: its noise, or its value at the safe action.

        Outcomes that were refused unless they lie in [0, 1] have the noise that follows from it.
        """
        kept, least, safe = self.model.named(memory), self.model.least_losses(memory), self.thresholds.safe
        rounds, times, alarm = float(kept.rounds[0]), float(kept.safe_rounds[0]), self.rule.settings[ALARM]
        for j, sign in enumerate(self.thresholds.signs):
            noise = float(self.model.noise[1 + j])
            needed = least_noise(float(least[1 + j]), rounds, alarm) if self.noise is not None else 0.0
            total = float(kept.safe_sums[1 + j])
            strays = safe is not None and abs(total - times * sign * safe[j]) > farthest(times, noise, alarm)
            if needed > noise or strays:
                code = -disputed(NOISE if needed > noise else BASELINE, j)
                seen = Evidence(rounds, noise, needed, times, total / max(times, 1.0))
                return cause_for(code, self.thresholds, math.inf, seen)
        return None

    def offered(self, actions: Any) -> tuple[Offer, Any]:
        """Return a round's actions, and where their values are to be looked up: arms, or features of rays' ends too."""
        if self.functions.table is not None:
            count, arm = self.functions.table.shape[1], int(self.safe_action.arm or 0)
            return Offer(count, eligible_arms(actions, count), arm, arm, None), np.arange(count)
        listed = listed_of(actions)
        self.check_dimension(listed.features)
        refuse_safe(listed, "OPNLB")
        safe = self.safe_action.features
        return Offer(len(listed), listed.eligible, safe, -1, listed.features), listed.features

    def check_dimension(self, features: Floats) -> None:
        """Refuse features of another length than the safe action's."""
        if features.shape[1] != self.safe_action.dimension:
            raise InvalidActions(
                f"the actions have {features.shape[1]} features and the safe action {self.safe_action.dimension}; "
                "they must agree"
            )

    def learn_in_place(self, state: State, played: Played, values: Floats) -> State:
        self.model.learn(state.memory, [self.seen(played.action, values)])
        return state

    def learn_log(self, state: State, actions: Floats | Ints, values: Sequence[Floats] | Floats) -> State:
        """Take in a log: what is plausible is judged once, after its last row, so that their order does not matter."""
        self.model.learn(state.memory, (self.seen(*row) for row in zip(actions, values, strict=True)))
        return state

    def seen(self, action: Any, values: Floats) -> Seen:
        """Return an outcome as the model learns it: with the values of all functions at what was played."""
        safe: Any = self.safe_action.features if self.functions.table is None else self.safe_action.arm
        return Seen(self.functions.at(np.asarray(action)[None])[:, 0], values, np.array_equal(action, safe))

    def logged(self, actions: Any) -> Floats | Ints:
        if self.functions.table is not None:
            return logged_arms(actions, self.functions.table.shape[1])
        features = checked(actions)[0]
        self.check_dimension(features)
        self.functions.at(features)
        return features

    def values(self, reward: Any, cost: Any) -> Floats:
        values = super().values(reward, cost)
        if self.noise is None:
            check_unit_range(values, self.thresholds, "outcomes are taken to lie there, so rescale, or give `noise`")
        return values


def check_words(policy: OPNLB) -> None:
    """Refuse settings that are none of the choices, or contradict each other."""
    check_method(policy.method, policy.methods, "ExactOPNLB")
    hope_switch(policy)
    if policy.optimism == "directional" and policy.method != "pointwise":
        raise InvalidProblem(
            f"optimism is 'directional' and method {policy.method!r}; only the method 'pointwise' has the bounds for it"
        )
    if policy.reward_scale is not None and not number(policy.reward_scale, "reward_scale") >= 0.0:
        raise InvalidProblem(f"reward_scale is {policy.reward_scale}; it must be at least 0, since it adds to hope")
