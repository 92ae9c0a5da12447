"""OPNLB: optimistic in the reward, pessimistic in the costs, for means that are functions of finite classes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.engine.layout import ENFORCES_LIMITS, OFFERS_SAFE
from stagewise.engine.limits import ALARM, NOISE, SAFE_COST, encode_contradiction
from stagewise.models.diagnostics import Evidence, compute_least_noise, compute_max_deviation
from stagewise.models.function_class import FunctionClassModel, FunctionOutcome
from stagewise.policies.arms_policy import eligible_arms, logged_arms
from stagewise.policies.arrays import assemble_arrays
from stagewise.policies.base_policy import check_unit_range
from stagewise.policies.baseline import parse_safe_action, reject_round_safe_action
from stagewise.policies.consistent_functions import ConsistentFunctions, select_consistent_functions
from stagewise.policies.contradictions import build_cause_from_evidence
from stagewise.policies.policy import PlayedAction, State
from stagewise.policies.ray_decision import parse_listed_actions
from stagewise.policies.safe_mixture import RoundActions, Rule, build_safe_decision, decide_mixture
from stagewise.policies.safe_policy import SafeBasePolicy
from stagewise.policies.settings import (
    build_constraint_settings,
    check_method,
    check_probability,
    copy_settings,
    get_optimism_switch,
    set_derived,
)
from stagewise.problem.checks import PerSignal, check_number, check_per_signal, check_table
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem
from stagewise.problem.functions import GivenClass, parse_function_class, parse_function_classes
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import resolve_thresholds
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.records.reason import ReasonDetails
from stagewise.rules.function_class_program import Vertex, find_best_under_rows


@dataclass(frozen=True, kw_only=True, eq=False)
class OPNLB(SafeBasePolicy):
    """The paper's Algorithm 4: with probability 1 − δ the mixture of every round keeps its limits in expectation.

    The mean reward is a function of `reward_class`, the mean cost one of `cost_class`: one class for all costs, or one
    for each as a list or a mapping by name. Functions that contradict the declared values of the safe action are
    removed at the start, others as soon as the data contradict them.

    `method="pointwise"` bounds every action and solves one linear program. `"rows"` bounds the expected cost under
    every plausible function, which allows more mixtures (docs/theory/function-classes.md).

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> from stagewise.problem.actions import Arms
        >>> rewards, costs = [[0.1, 0.5, 0.9], [0.1, 0.9, 0.5]], [[0.0, 0.2, 0.6], [0.0, 0.6, 0.2]]
        >>> safe = SafeAction(arm=0, reward=0.1, cost=0.0)
        >>> policy = OPNLB(reward_class=rewards, cost_class=costs, safe_action=safe, threshold=0.3)
        >>> policy.decide(policy.start(), Arms(3)).probabilities
        array([0.5, 0.5, 0. , 0. ])
    """

    reward_class: GivenClass
    """The class of the mean reward: a FunctionClass, a table (F, K) over arms, or callables."""
    cost_class: GivenClass | Sequence[GivenClass] | Mapping[str, GivenClass]
    """The class of the mean costs: one for all, or one for each as a list or a mapping by name."""
    noise: PerSignal | None = None
    """R: outcomes are R-sub-Gaussian around their means, for all signals or for each; None: they lie in [0, 1]."""
    method: Literal["pointwise", "rows"] = "pointwise"
    """How costs are bounded: see above."""
    reward_confidence_scale: float | None = None
    """α_r of inflated optimism, the bonus per unit of the costs' width; None: (1 − r₀)/(τ − c₀)."""

    functions: ConsistentFunctions = field(init=False, repr=False)
    model: FunctionClassModel = field(init=False, repr=False)
    rule: Rule = field(init=False, repr=False)

    mixes: ClassVar[bool] = True
    methods: ClassVar[tuple[str, ...]] = ("pointwise", "rows")

    def __post_init__(self) -> None:
        copy_settings(self)
        check_choices(self)
        # As an arm, since only a linear function must be 0 at the origin.
        thresholds = resolve_thresholds(
            self.threshold, SafeAction(arm=0, cost=parse_safe_action(self.safe_action).cost)
        )
        names = ("reward", *thresholds.names)
        reward, costs = (
            parse_function_class(self.reward_class),
            parse_function_classes(self.cost_class, thresholds.names),
        )
        set_derived(self, reward_class=reward, cost_class=costs)
        functions = select_consistent_functions(reward, costs, self.safe_action, thresholds)
        noise = check_per_signal(0.5 if self.noise is None else self.noise, names, "noise")
        model = self.build_model(functions.sizes, noise, math.log(len(names) / check_probability(self.delta, "delta")))
        scale = None if self.reward_confidence_scale is None else 1.0 + 2.0 * float(self.reward_confidence_scale)
        numbers = build_constraint_settings(
            thresholds, np.full(thresholds.values.size, math.inf), scale, 1.0, self.check_assumptions
        )
        safe: Any = np.empty(0) if functions.table is not None else self.safe_action.features
        safe_index = -1 if functions.table is None else int(self.safe_action.arm or 0)
        layout, settings = assemble_arrays(
            (OFFERS_SAFE | ENFORCES_LIMITS | get_optimism_switch(self), 0, safe_index), numbers, safe, ()
        )
        set_derived(
            self, thresholds=thresholds, functions=functions, model=model, rule=Rule(layout, settings, thresholds)
        )

    def build_model(self, sizes: tuple[int, ...], noise: Floats, confidence: float) -> FunctionClassModel:
        return FunctionClassModel(sizes=sizes, noise=noise, confidence=confidence)

    def start(self) -> State:
        return State(self.model.start())

    def choose(self, state: State, actions: Any, draw: RandomKey) -> Decision:
        offer, domain = self.parse_round(actions)
        values = np.column_stack([self.functions.at(domain), self.functions.safe])
        bounds, contradiction = self.model.bounds(state.memory, values), self.find_contradiction(state.memory)
        if bounds is not None and contradiction is not None:
            return build_safe_decision(offer, self.thresholds, draw.round, contradiction)
        return decide_mixture(offer, bounds, self.rule, self.solve if self.method != "pointwise" else None, draw)

    def solve(self, rewards: Floats, tables: tuple[Floats, ...], scales: Floats) -> Vertex:
        """Return the best mixture under a limit for every plausible function; the safe action is last."""
        return find_best_under_rows(rewards, tables[1:], self.rule.limits)

    def find_contradiction(self, memory: Floats) -> ReasonDetails | None:
        """Return the contradicted declaration of a cost: its noise, or its value at the safe action.

        Without `noise` outcomes lie in [0, 1], and the noise follows from that range.
        """
        statistics, least, safe = (
            self.model.get_statistics(memory),
            self.model.least_losses(memory),
            self.thresholds.safe,
        )
        rounds, times, alarm = float(statistics.rounds[0]), float(statistics.safe_rounds[0]), self.rule.settings[ALARM]
        for j, sign in enumerate(self.thresholds.signs):
            noise = float(self.model.noise[1 + j])
            needed = compute_least_noise(float(least[1 + j]), rounds, alarm) if self.noise is not None else 0.0
            total = float(statistics.safe_sums[1 + j])
            contradicts = safe is not None and abs(total - times * sign * safe[j]) > compute_max_deviation(
                times, noise, alarm
            )
            if needed > noise or contradicts:
                code = -encode_contradiction(NOISE if needed > noise else SAFE_COST, j)
                evidence = Evidence(rounds, noise, needed, times, total / max(times, 1.0))
                return build_cause_from_evidence(code, self.thresholds, math.inf, evidence)
        return None

    def parse_round(self, actions: Any) -> tuple[RoundActions, Any]:
        """Return a round's actions and the arguments of the functions: arms, or features."""
        if self.functions.table is not None:
            count, arm = self.functions.table.shape[1], int(self.safe_action.arm or 0)
            return RoundActions(count, eligible_arms(actions, count), arm, arm, None), np.arange(count)
        listed = parse_listed_actions(actions)
        self.check_dimension(listed.features)
        reject_round_safe_action(listed, "OPNLB")
        safe = self.safe_action.features
        return RoundActions(len(listed), listed.eligible, safe, -1, listed.features), listed.features

    def check_dimension(self, features: Floats) -> None:
        """Raise InvalidActions for features of another dimension than the safe action's."""
        if features.shape[1] != self.safe_action.dimension:
            raise InvalidActions(
                ErrorCode.DIMENSION_MISMATCH,
                "the actions have {shape} features and the safe action has {dimension}; they must agree",
                shape=features.shape[1],
                dimension=self.safe_action.dimension,
            )

    def learn_in_place(self, state: State, played: PlayedAction, values: Floats) -> State:
        self.model.learn(state.memory, [self.build_outcome(played.action, values)])
        return state

    def learn_log(self, state: State, actions: Floats | Ints, values: Sequence[Floats] | Floats) -> State:
        """Learn a log; functions are removed once, after its last row, so that row order does not matter."""
        self.model.learn(state.memory, (self.build_outcome(*row) for row in zip(actions, values, strict=True)))
        return state

    def build_outcome(self, action: Any, values: Floats) -> FunctionOutcome:
        """Return an outcome for the model, with the values of all functions at the played action."""
        safe: Any = self.safe_action.features if self.functions.table is None else self.safe_action.arm
        return FunctionOutcome(self.functions.at(np.asarray(action)[None])[:, 0], values, np.array_equal(action, safe))

    def check_logged_actions(self, actions: Any) -> Floats | Ints:
        if self.functions.table is not None:
            return logged_arms(actions, self.functions.table.shape[1])
        features = check_table(actions, "the actions", InvalidActions)[0]
        self.check_dimension(features)
        self.functions.at(features)
        return features

    def values(self, reward: Any, cost: Any) -> Floats:
        values = super().values(reward, cost)
        if self.noise is None:
            check_unit_range(values, self.thresholds, "outcomes must lie there, so rescale, or give `noise`")
        return values


def check_choices(policy: OPNLB) -> None:
    """Raise InvalidProblem for unknown choices and conflicting settings."""
    check_method(policy.method, policy.methods, "ExactOPNLB")
    get_optimism_switch(policy)
    if policy.optimism == "directional" and policy.method != "pointwise":
        raise InvalidProblem(
            ErrorCode.CONFLICTING_SETTINGS,
            "optimism is 'directional' and method is {method!r}; use method 'pointwise', the only "
            "one with directional bounds",
            method=policy.method,
        )
    if (
        policy.reward_confidence_scale is not None
        and not check_number(policy.reward_confidence_scale, "reward_confidence_scale") >= 0.0
    ):
        raise InvalidProblem(
            ErrorCode.OUT_OF_RANGE,
            "reward_confidence_scale is {reward_confidence_scale}; it must be at least 0, since it widens the bound",
            reward_confidence_scale=policy.reward_confidence_scale,
        )
