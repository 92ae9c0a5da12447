"""Contextual CAPS: actions for a user, with one model for each signal."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, get_args

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.engine.layout import SAFE_COST_DECLARED, SAFE_INDEX
from stagewise.engine.model import Rule
from stagewise.models.arms import compute_lows, split_delta
from stagewise.models.context import NOISE, Signal, SignalModel, compute_action_shares
from stagewise.models.model_block import ModelBlockSpec
from stagewise.policies.arrays import assemble_arrays, build_round_spec
from stagewise.policies.base_policy import check_unit_range
from stagewise.policies.baseline import check_safe_range, require_arm
from stagewise.policies.certificate_settings import CertificateSettings
from stagewise.policies.context_policy import ContextPolicy
from stagewise.policies.cost_bounds import compute_ceilings
from stagewise.policies.linear_policy import compute_ridge
from stagewise.policies.mixture_decision import build_mixture_decision
from stagewise.policies.policy import State
from stagewise.policies.ray_decision import copy_action
from stagewise.policies.safe_policy import SafePolicy
from stagewise.policies.settings import build_constraint_settings, check_probability, copy_settings, set_derived
from stagewise.problem.checks import MOST, check_choice, check_integer, check_number, check_positive, check_size
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import safe_repr
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.thresholds import Thresholds, get_safe_costs, resolve_thresholds
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.rules.certified import CERTIFIED_MIXTURE


@dataclass(frozen=True, kw_only=True, eq=False)
class ContextCAPS(CertificateSettings, ContextPolicy, SafePolicy):
    """Contextual certified posterior sampling: with probability 1 − δ the mixture of every round keeps its limits.

    The safe action is one of the actions, `SafeAction(arm=…)`. Its `cost` is an upper bound on its mean costs for
    every user, its `reward` a lower bound on its mean reward. Every outcome lies in [0, 1]. Every signal has its own
    model: linear in the context with parameters for every action, or a rate for every action, by segment where `by`
    says so (docs/theory/context-models.md).

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> from stagewise.problem.context import Context
        >>> policy = ContextCAPS(
        ...     actions=3, context=2, safe_action=SafeAction(arm=0, reward=0.0, cost=0.001), threshold={"opt_out": 0.02}
        ... )
        >>> decision = policy.decide(policy.start(), Context([0.3, 0.1]))
        >>> decision.action_index, decision.pessimistic_cost
        (0, array([0.001]))
    """

    actions: int
    """The number of actions, including the safe one."""
    context: int = 0
    """The number of context features of a user, each in [−1, 1]; a constant is added."""
    segments: int = 0
    """The number of segmentations of users; `by` names a signal for each."""
    by: Mapping[str, int] | None = None
    """The segmentation of a signal's rates; other signals have one rate for each action."""
    reward_model: SignalModel = "linear"
    """The model of the mean reward: "linear" in the context or "rates" by action."""
    cost_model: SignalModel | Mapping[str, SignalModel] = "rates"
    """The model of mean costs: one for all, or one for each by name."""
    norm_bound: float = 1.0
    """S: an upper bound on the norm of every action's parameter; only for linear signals."""
    ridge: float | None = None
    """λ of the regressions; None: n R²/S²."""
    initial_actions: int | None = None
    """The number of actions when learning began; later actions share a reserved part of δ."""
    reference_rates: Mapping[str, float] | None = None
    """The rate at which a cost's confidence sets are sharpest, by name; None: its limit (the first one)."""
    split_delta: bool = field(init=False, default=True)

    decision_type: ClassVar[type[Decision]] = Decision  # the class of its decisions
    rule: ClassVar[Rule] = CERTIFIED_MIXTURE
    mixes: ClassVar[bool] = True
    separate_models: ClassVar[bool] = True  # type: ignore[misc]  # every signal has a model of its own
    requires_unit_range: ClassVar[bool] = True  # outcomes must lie in [0, 1]

    def __post_init__(self) -> None:
        copy_settings(self)
        actions = check_size(self.actions, "actions")
        safe = require_arm(self.safe_action, actions)
        thresholds = resolve_thresholds(self.threshold, safe)
        check_integer(self.context, "context", f"from 0 to {MOST}", 0, MOST)
        check_integer(self.segments, "segments", "from 0 to 64", 0, 64)
        check_safe_range(safe, thresholds, "rescale")
        ceilings = compute_ceilings(thresholds, self.cost_bound, 0.0)
        constraints = build_constraint_settings(thresholds, ceilings, None, 1.0, self.check_assumptions)
        set_derived(self, thresholds=thresholds)
        last = self.certificate_numbers(safe.reward)
        blocks = self.build_models(safe, thresholds)
        head, origin = (self.switches | SAFE_COST_DECLARED, 0, int(safe.arm or 0)), np.zeros(self.width)
        layout, settings = assemble_arrays(head, constraints, origin, blocks, last=last)
        spec = build_round_spec(blocks, self.rule, thresholds.values.size)
        set_derived(self, layout=layout, settings=settings, round_spec=spec)

    @cached_property
    def models(self) -> dict[str, str]:
        """The model of each signal, by name."""
        names, kinds, cost_model = self.thresholds.names, get_args(SignalModel), self.cost_model
        if isinstance(cost_model, Mapping):
            cost_model = {**dict.fromkeys(names, "rates"), **parse_by_name(cost_model, names, "cost_model", "limits")}
        models = {
            "reward": self.reward_model,
            **(cost_model if isinstance(cost_model, dict) else dict.fromkeys(names, cost_model)),
        }
        return {name: check_choice(kind, kinds, f"the model of {name!r}") for name, kind in models.items()}

    @cached_property
    def divisions(self) -> dict[str, int]:
        """The segmentation of each signal's rates; −1: none."""
        divisions = parse_by_name(self.by, self.models, "by", "signals")
        for name, division in divisions.items():
            if self.models[name] != "rates":
                raise InvalidProblem(
                    ErrorCode.UNSUPPORTED,
                    "by has {name!r}, which is {models}; only rates can be kept by segment",
                    name=name,
                    models=self.models[name],
                )
            check_integer(
                division, f"the division of {name!r}", f"below segments ({self.segments})", 0, self.segments - 1
            )
        unused = next((division for division in range(self.segments) if division not in divisions.values()), None)
        if unused is not None:
            raise InvalidProblem(
                ErrorCode.UNUSED_SETTING,
                "segments is {segments}, and by uses no segment {unused}; name a signal for it, or use fewer segments",
                segments=self.segments,
                unused=unused,
            )
        return {name: int(divisions.get(name, -1)) for name in self.models}

    @cached_property
    def declared_costs(self) -> list[float]:
        """Declared upper bounds of the safe action's signed mean costs; ∞ where none is declared."""
        declared = self.thresholds.signs * get_safe_costs(self.safe_action, self.thresholds.names)
        return [math.inf if math.isnan(cost) else float(cost) for cost in declared]

    @cached_property
    def shares(self) -> Floats:
        """The share of δ of every action."""
        initial_actions = self.actions if self.initial_actions is None else self.initial_actions
        check_integer(
            initial_actions, "initial_actions", f"from 1 to {self.actions}, the actions there are", 1, self.actions
        )
        return compute_action_shares(self.actions, initial_actions)

    def build_models(self, safe: SafeAction, thresholds: Thresholds) -> tuple[ModelBlockSpec, ...]:
        """Return the model blocks of the signals."""
        size, bound, m = 1 + self.context, check_positive(self.norm_bound, "norm_bound"), thresholds.values.size
        ridge = compute_ridge(self.ridge, size, NOISE, bound)
        divisions = self.divisions
        self.check_regressions_read()
        delta, (high, other) = check_probability(self.delta, "delta"), split_delta(m)
        costs = self.declared_costs
        declared, lows, blocks = (
            [-np.inf if safe.reward is None else safe.reward, *costs],
            compute_lows(thresholds.signs),
            [],
        )
        reference_rates = [0.5, *(thresholds.signs * self.get_reference_rates(thresholds) - lows[1:]).tolist()]
        for index, (name, kind) in enumerate(self.models.items()):
            lower, upper = -math.log(delta * other), -math.log(delta * (high if index else other))
            signal = Signal(
                index, float(lows[index]), lower, upper, float(declared[index]), float(reference_rates[index])
            )
            if kind == "linear":
                blocks.append(signal.linear(size, self.shares, ridge, bound))
            else:
                division = divisions[name]
                blocks.append(signal.rates(-1 if division < 0 else self.first_segment + division, self.shares))
        return tuple(blocks)

    def check_regressions_read(self) -> None:
        """Raise InvalidProblem for settings of linear models where no signal is linear."""
        if "linear" in self.models.values():
            return
        settings = {"norm_bound": None if self.norm_bound == 1.0 else self.norm_bound, "ridge": self.ridge}
        for name, value in settings.items():
            if value is not None:
                raise InvalidProblem(
                    ErrorCode.UNUSED_SETTING,
                    "{name} is {value}; leave it out, since it applies to linear signals and all signals "
                    "here are rates",
                    name=name,
                    value=safe_repr(value),
                )

    def get_reference_rates(self, thresholds: Thresholds) -> Floats:
        """Return the mean costs (m,) at which the confidence sets are sharpest."""
        rates, means = (
            parse_by_name(self.reference_rates, thresholds.names, "reference_rates", "limits"),
            thresholds.values.copy(),
        )
        for name, value in rates.items():
            if self.models[name] != "rates":
                raise InvalidProblem(
                    ErrorCode.UNSUPPORTED,
                    "reference_rates has {name!r}, which is {models}; only rates have a reference rate",
                    name=name,
                    models=self.models[name],
                )
            mean = means[thresholds.names.index(name)] = check_number(value, f"the reference rate of {name!r}")
            if not 0.0 <= mean <= 1.0:
                raise InvalidProblem(
                    ErrorCode.OUT_OF_RANGE,
                    "the reference rate of {name!r} is {mean:g}; it must be in [0, 1]",
                    name=name,
                    mean=mean,
                )
        return means

    def choose(self, state: State, actions: Any, draw: RandomKey) -> Decision:
        rows, eligible = self.parse_offer(actions)
        result = self.play_round(self.round_spec, state, rows, eligible, draw)
        played = copy_action(rows[result.code if result.code >= 0 else self.layout.item(SAFE_INDEX)])
        decision = build_mixture_decision(
            result, played, self.display_thresholds, draw.round,
            names=self.names, kind=self.decision_type, span=self.reward_span,
        )  # fmt: skip
        return self.attach_cause(result, state, decision)

    def values(self, reward: Any, cost: Any) -> Floats:
        values = super().values(reward, cost)
        check_unit_range(values, self.thresholds, "every outcome must lie there, so rescale")
        return values


def parse_by_name(value: Any, names: Collection[str], what: str, of: str) -> dict[str, Any]:
    """Return a setting that maps some of these names to values."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(name, str) and name in names for name in value):
        raise InvalidProblem(
            ErrorCode.UNKNOWN_NAME,
            "{what} is {value}; it must name {of}: {names}",
            what=what,
            value=safe_repr(value),
            of=of,
            names=", ".join(names),
        )
    return dict(value)
