"""OPNLB: optimistic in the reward, pessimistic in the costs, for means that are functions of finite classes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.engine.layout import ENFORCES_LIMITS, OFFERS_SAFE
from stagewise.engine.workspace import ALARM, NOISE, SAFE_COST, encode_contradiction
from stagewise.models.diagnostics import Evidence, build_cause_from_evidence, compute_least_noise, compute_max_deviation
from stagewise.models.function_class import FunctionClassModel, FunctionOutcome
from stagewise.policies.arms import check_arms, check_logged_arms
from stagewise.policies.decisions import parse_listed_actions
from stagewise.policies.function_mixture import RoundActions, Rule, build_safe_decision, decide_mixture
from stagewise.policies.linear_policy import check_dimension
from stagewise.policies.policy import PlayedAction, PolicyState
from stagewise.policies.rounds import assemble_arrays
from stagewise.policies.settings import (
    CostBound,
    SafePolicy,
    build_constraint_settings,
    check_method,
    check_probability,
    copy_settings,
    get_optimism_switch,
    parse_safe_action,
    reject_round_safe_action,
    set_derived,
)
from stagewise.problem.checks import PerSignal, check_number, check_per_signal, check_table
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem
from stagewise.problem.functions import FiniteFunctionClass, GivenClass, parse_function_class, parse_function_classes
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Thresholds, resolve_thresholds
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.records.reason import ReasonDetails
from stagewise.rules.mixture import Vertex, find_best_under_rows

EQUAL = 1e-9  # relative tolerance between a function and the declared value at the safe action


@dataclass(frozen=True, kw_only=True, eq=False)
class OPNLB(SafePolicy):
    """The paper's Algorithm 4: with probability 1 − δ the mixture of every round keeps its limits in expectation.

    The mean reward is a function of `reward_class`, the mean cost one of `cost_class`: one class for all costs, or one
    for each as a list or a mapping by name. Functions that contradict the declared values of the safe action are
    removed at the start, others as soon as the data contradict them.

    `method="pointwise"` bounds every action and solves one linear program. `"rows"` bounds the expected cost under
    every plausible function, which allows more mixtures (docs/theory/function-classes.md).

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> from stagewise.problem.actions import ArmSet
        >>> rewards, costs = [[0.1, 0.5, 0.9], [0.1, 0.9, 0.5]], [[0.0, 0.2, 0.6], [0.0, 0.6, 0.2]]
        >>> safe = SafeAction(arm=0, reward=0.1, cost=0.0)
        >>> policy = OPNLB(reward_class=rewards, cost_class=costs, safe_action=safe, threshold=0.3)
        >>> policy.decide(policy.start(), ArmSet(3)).probabilities
        array([0.5, 0.5, 0. , 0. ])
    """

    reward_class: GivenClass
    """The class of the mean reward: a FiniteFunctionClass, a table (F, K) over arms, or callables."""
    cost_class: GivenClass | Sequence[GivenClass] | Mapping[str, GivenClass]
    """The class of the mean costs: one for all, or one for each as a list or a mapping by name."""
    noise: PerSignal | None = None
    """R: outcomes are R-sub-Gaussian around their means, for all signals or for each; None: they lie in [0, 1]."""
    method: Literal["pointwise", "rows"] = "pointwise"
    """How costs are bounded: see above."""
    reward_confidence_scale: float | None = None
    """α_r of inflated optimism, the bonus per unit of the costs' width; None: (1 − r₀)/(τ − c₀)."""
    mean_cost_bound: CostBound = field(init=False, default=None)
    cost_confidence_scale: float = field(init=False, default=1.0)
    split_delta: bool = field(init=False, default=True)

    functions: "ConsistentFunctions" = field(init=False, repr=False)
    model: FunctionClassModel = field(init=False, repr=False)
    rule: Rule = field(init=False, repr=False)

    mixes: ClassVar[bool] = True
    has_parts: ClassVar[bool] = False
    methods: ClassVar[tuple[str, ...]] = ("pointwise", "rows")

    def __post_init__(self) -> None:
        copy_settings(self)
        check_method(self.method, self.methods, "ExactOPNLB")
        switches = OFFERS_SAFE | ENFORCES_LIMITS | get_optimism_switch(self)
        if self.optimism == "directional" and self.method != "pointwise":
            remedy = "use method 'pointwise', the only one with directional bounds"
            raise InvalidProblem.conflict("method", self.method, "optimism is 'directional'", remedy)
        if (
            self.reward_confidence_scale is not None
            and not check_number(self.reward_confidence_scale, "reward_confidence_scale") >= 0.0
        ):
            rule = "at least 0, since it widens the optimistic reward"
            raise InvalidProblem.must_be(
                ErrorCode.OUT_OF_RANGE, "reward_confidence_scale", self.reward_confidence_scale, rule
            )
        # As an arm, since only a linear function must be 0 at the origin.
        baseline = SafeAction(arm=0, cost=parse_safe_action(self.safe_action).cost)
        thresholds = resolve_thresholds(self.threshold, baseline)
        names, m = ("reward", *thresholds.names), thresholds.values.size
        reward = parse_function_class(self.reward_class)
        set_derived(self, reward_class=reward, cost_class=parse_function_classes(self.cost_class, thresholds.names))
        functions = select_consistent_functions(reward, self.cost_class, self.safe_action, thresholds)
        noise = check_per_signal(0.5 if self.noise is None else self.noise, names, "noise")
        model = self.build_model(functions.sizes, noise, math.log(len(names) / check_probability(self.delta, "delta")))
        scale = None if self.reward_confidence_scale is None else 1.0 + 2.0 * float(self.reward_confidence_scale)
        ceilings = np.full(m, math.inf)
        numbers = build_constraint_settings(thresholds, ceilings, scale, 1.0, self.check_assumptions)
        over_arms = functions.table is not None
        safe: Any = np.empty(0) if over_arms else self.safe_action.features
        safe_index = int(self.safe_action.arm or 0) if over_arms else -1
        rule_of_all = Rule(*assemble_arrays((switches, 0, safe_index), numbers, safe, ()), thresholds)
        set_derived(self, thresholds=thresholds, functions=functions, model=model, rule=rule_of_all)

    @property
    def why_unit_range(self) -> str:  # type: ignore[override]
        return "" if self.noise is not None else "outcomes must lie there, so rescale, or give `noise`"

    def build_model(self, sizes: tuple[int, ...], noise: Floats, confidence: float) -> FunctionClassModel:
        return FunctionClassModel(sizes=sizes, noise=noise, confidence=confidence)

    def start(self) -> PolicyState:
        return PolicyState(self.model.start())

    def fits(self, memory: Floats) -> bool:
        return memory.shape == self.start().memory.shape

    def choose(self, state: PolicyState, actions: Any, draw: RandomKey) -> Decision:
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
        statistics, least = self.model.get_statistics(memory), self.model.least_losses(memory)
        safe = self.thresholds.safe
        rounds, times, alarm = float(statistics.rounds[0]), float(statistics.safe_rounds[0]), self.rule.settings[ALARM]
        for j, sign in enumerate(self.thresholds.signs):
            noise, total = float(self.model.noise[1 + j]), float(statistics.safe_sums[1 + j])
            needed = compute_least_noise(float(least[1 + j]), rounds, alarm) if self.noise is not None else 0.0
            deviation = 0.0 if safe is None else abs(total - times * sign * safe[j])
            contradicts = safe is not None and deviation > compute_max_deviation(times, noise, alarm)
            if needed > noise or contradicts:
                code = -encode_contradiction(NOISE if needed > noise else SAFE_COST, j)
                evidence = Evidence(rounds, noise, needed, times, total / max(times, 1.0))
                return build_cause_from_evidence(code, self.thresholds, math.inf, evidence)
        return None

    def parse_round(self, actions: Any) -> tuple[RoundActions, Any]:
        """Return a round's actions and the arguments of the functions: arms, or features."""
        if self.functions.table is not None:
            count, arm = self.functions.table.shape[1], int(self.safe_action.arm or 0)
            return RoundActions(count, check_arms(actions, count), arm, arm, None), np.arange(count)
        listed = parse_listed_actions(actions)
        check_dimension(listed.features, self.safe_action.dimension)
        reject_round_safe_action(listed, "OPNLB")
        safe = self.safe_action.features
        return RoundActions(len(listed), listed.eligible, safe, -1, listed.features), listed.features

    def learn_in_place(self, state: PolicyState, played: PlayedAction, values: Floats) -> PolicyState:
        self.model.learn(state.memory, [self.build_outcome(played.action, values)])
        return state

    def learn_log(self, state: PolicyState, actions: Floats | Ints, values: Sequence[Floats] | Floats) -> PolicyState:
        """Learn a log; functions are removed once, after its last row, so that row order does not matter."""
        self.model.learn(state.memory, (self.build_outcome(*row) for row in zip(actions, values, strict=True)))
        return state

    def cache_offered(self, state: PolicyState, decision: Decision) -> PolicyState:
        return state

    def build_outcome(self, action: Any, values: Floats) -> FunctionOutcome:
        """Return an outcome for the model, with the values of all functions at the played action."""
        safe: Any = self.safe_action.features if self.functions.table is None else self.safe_action.arm
        return FunctionOutcome(self.functions.at(np.asarray(action)[None])[:, 0], values, np.array_equal(action, safe))

    def check_logged_actions(self, actions: Any) -> Floats | Ints:
        if self.functions.table is not None:
            return check_logged_arms(actions, self.functions.table.shape[1])
        features = check_table(actions, "the actions", InvalidActions)[0]
        check_dimension(features, self.safe_action.dimension)
        self.functions.at(features)
        return features

    def get_round_spec(self, actions: Any) -> None:
        """Return None: compiled loops cannot play it."""
        return


@dataclass(frozen=True, kw_only=True, eq=False)
class ConsistentFunctions:
    """The functions of the reward and of every cost that are consistent with the safe action; costs are signed."""

    classes: tuple[FiniteFunctionClass, ...]  # one for each signal
    kept: tuple[Ints, ...]  # the indices of the consistent functions of each
    signs: Floats  # (F,) of all functions, one signal after another
    safe: Floats  # (F,) their values at the safe action
    table: Floats | None  # (F, K) over arms; None: of features

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of functions of each signal."""
        return tuple(len(kept) for kept in self.kept)

    def at(self, actions: Any) -> Floats:
        """Return the value (F, n) of every function at arms (n,) or features (n, d)."""
        if self.table is not None:
            return self.table[:, actions]
        parts = [c.evaluate(actions)[kept] for c, kept in zip(self.classes, self.kept, strict=True)]
        return self.signs[:, None] * np.concatenate(parts)


def select_consistent_functions(
    reward_class: FiniteFunctionClass, cost_class: Any, safe: SafeAction, thresholds: Thresholds
) -> ConsistentFunctions:
    """Return the functions that are consistent with the safe action; raise InvalidProblem where a class has none."""
    m = thresholds.values.size
    costs = list(cost_class.values()) if isinstance(cost_class, Mapping) else cost_class
    classes = (reward_class, *(costs if isinstance(costs, list) else [costs] * m))
    arms = check_same_domain(classes, safe)
    declared = [safe.reward, *([None] * m if thresholds.safe is None else thresholds.safe)]
    kept, at_safe = [], []
    for signal, (name, each) in enumerate(zip(("reward", *thresholds.names), classes, strict=True)):
        values = each.functions[:, safe.arm] if arms else each.evaluate(safe.features[None], InvalidProblem)[:, 0]
        left, known = np.ones(len(each), dtype=np.bool_), declared[signal]
        if known is not None:
            left = np.abs(values - known) <= EQUAL * max(1.0, abs(known))
            check_any_left(left, name, f"is {known:g} at the safe action", values)
            values = np.full(len(each), float(known))
        elif signal:
            left = thresholds.signs[signal - 1] * values < thresholds.limits[signal - 1]
            check_any_left(left, name, "keeps the safe action strictly within its threshold", values)
        kept.append(np.flatnonzero(left))
        at_safe.append(values[left])
    signs = np.repeat(np.append(1.0, thresholds.signs), [len(rows) for rows in kept])
    safe_values, table = signs * np.concatenate(at_safe), None
    if arms:
        table = signs[:, None] * np.concatenate([c.functions[rows] for c, rows in zip(classes, kept, strict=True)])
        table[:, safe.arm] = safe_values
    return ConsistentFunctions(classes=classes, kept=tuple(kept), signs=signs, safe=safe_values, table=table)


def check_same_domain(classes: tuple[FiniteFunctionClass, ...], safe: SafeAction) -> int | None:
    """Return the number of arms of all classes, or None where all are functions of features."""
    arms = {each.arms for each in classes}
    if len(arms) > 1:
        text = "the classes are {classes}; all must be functions of the same arms, or of features"
        raise InvalidProblem(ErrorCode.CONFLICTING_SETTINGS, text, classes=", ".join(map(repr, classes)))
    (count,) = arms
    if count is None and safe.features is None:
        text = "the safe action is an arm, and the classes hold functions of features; give the safe action's features"
        raise InvalidProblem(ErrorCode.SAFE_ACTION_INVALID, text)
    if count is not None and (safe.arm is None or safe.arm >= count):
        text = "the classes hold functions of {count} arms; the safe action must be SafeAction(arm=...), one of them"
        raise InvalidProblem(ErrorCode.SAFE_ACTION_INVALID, text, count=count)
    return count


def check_any_left(left: Any, name: str, what: str, values: Floats) -> None:
    """Raise InvalidProblem where no function of a class is consistent."""
    if not np.any(left):
        template = (
            "no function of the class of {name!r} {what}, and their values there lie in [{low:g}, "
            "{high:g}]; the class must contain the true function"
        )
        data = {"name": name, "what": what, "low": float(values.min()), "high": float(values.max())}
        raise InvalidProblem(ErrorCode.SAFE_ACTION_INVALID, template, **data)
