"""The policy of a `Problem`: contextual CAPS with names and the user's units, for one user or for a batch."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from stagewise.engine.batch import build_batch_decider
from stagewise.engine.compile import Flags, Floats, Ints, get_batch_rows
from stagewise.engine.layout import SAFE_INDEX
from stagewise.engine.workspace import CONTRADICTED, SAFE_ACTION_DRAWN
from stagewise.policies.context_caps import SafeContextPosteriorSampling
from stagewise.policies.policy import PolicyState
from stagewise.policies.settings import CAUSES, set_derived
from stagewise.problem.actions import ALL
from stagewise.problem.context import ContextVector
from stagewise.problem.errors import ErrorCode, InvalidOutcome
from stagewise.problem.proposal import Proposal
from stagewise.problem.signals import scale_outcome
from stagewise.problem.thresholds import Thresholds
from stagewise.records.decision import Decision, ProblemDecision, ProblemNames, RewardGuarantee
from stagewise.records.random_key import RandomKey
from stagewise.records.reason import ReasonDetails

if TYPE_CHECKING:
    from stagewise.policies.problem import Problem


@dataclass(frozen=True, eq=False)
class RangedThresholds(Thresholds):
    """Thresholds in the user's units, of costs that are learned in [0, 1]."""

    lows: Floats  # (m,)
    lengths: Floats  # (m,)
    promised: tuple[str, ...]

    bound_name: ClassVar[str] = "low and high"

    @cached_property
    def _factors(self) -> Floats | None:
        """What signed costs are multiplied by; None: 1."""
        factors = self.lengths * self.signs
        return None if np.all(factors == 1.0) else factors

    @property
    def promises(self) -> tuple[str, ...]:
        return self.promised

    @cached_property
    def _shifts(self) -> bool:
        """Whether something is added to signed costs."""
        return bool(np.any(self.lows != 0.0))

    def to_user_units(self, signed: Floats) -> Floats:
        scaled = signed if self._factors is None else self._factors * signed
        return self.lows + scaled if self._shifts else scaled

    def to_user_unit(self, constraint: int, signed: float) -> float:
        low, length = float(self.lows[constraint]), float(self.lengths[constraint])
        return low + length * (float(self.signs[constraint]) * signed)


class ProblemPolicy(SafeContextPosteriorSampling):
    """The policy of a `Problem`; `Agent(problem)` makes it.

    >>> import stagewise as sw
    >>> problem = sw.Problem(
    ...     action_names=["nothing", "offer"], safe_name="nothing", reward=sw.Reward("click"),
    ...     limits={"opt_out": sw.Limit(0.02, safe_bound=0.0)},
    ... )
    >>> decision = problem.policy().decide(problem.policy().start(), None)
    >>> decision.action, decision.limits
    ('nothing', {'opt_out': LimitStatus(pessimistic_cost=0.0, threshold=0.02, estimate=0.0)})
    """

    SAVED: ClassVar[tuple[str, ...]] = ("problem",)  # the fields that a file contains
    decision_type: ClassVar[type[Decision]] = ProblemDecision
    problem: "Problem"
    log_hint: ClassVar[str] = "; a problem's log has names, so give it to learn_log_frame"

    def __init__(self, *, problem: "Problem") -> None:
        set_derived(self, problem=problem)
        super().__init__(**problem.to_kwargs())

    @cached_property
    def reward_name(self) -> str:  # type: ignore[override]
        return self.problem.reward.name

    @cached_property
    def reward_span(self) -> tuple[float, float]:  # type: ignore[override]
        low, length = self.problem.spans[:, 0].tolist()
        return low, length

    @cached_property
    def names(self) -> Sequence[str]:  # type: ignore[override]
        return self.problem.action_names

    @cached_property
    def display_thresholds(self) -> Thresholds:
        lows, lengths = self.problem.spans[:, 1:]
        inner = self.thresholds
        declared = lows + lengths * inner.declared_safe
        safe = None if inner.safe is None else declared
        values, promises = lows + lengths * inner.values, tuple(self.problem.promises.values())
        return RangedThresholds(inner.names, inner.signs, values, safe, declared, lows, lengths, promises)

    def without_watch(self) -> "ProblemPolicy":
        return replace(self.problem, settings={**self.problem.settings, "check_assumptions": False}).policy()

    def encode_context(self, context: Any, only: Any, propose: Any = None, scores: Any = None) -> ContextVector:
        """Return the context of a user; `only` lists eligible actions by name."""
        return self.problem.encode_context(context, only, propose, scores)

    def at_time(self, actions: Any, seconds: float) -> ContextVector:
        """Return the context of a call at the time of its decision."""
        return (actions if isinstance(actions, ContextVector) else self.problem.encode_context(actions)).at(seconds)

    def choose(self, state: PolicyState, actions: Any, draw: RandomKey) -> Decision:
        """Sample an action for a user, whose context is a mapping by name."""
        offered = actions if isinstance(actions, ContextVector) else self.problem.encode_context(actions)
        decision: Any = SafeContextPosteriorSampling.choose(self, state, offered, draw)
        decision._names = self._names_of_decisions
        if offered.clipped:
            decision._clipped = offered.clipped
        if self.reward_half_life is not None:
            decision._reward_guarantee = RewardGuarantee.FORGETTING
        return decision  # type: ignore[no-any-return]

    @cached_property
    def _names_of_decisions(self) -> ProblemNames:
        return ProblemNames(self.names, self.display_thresholds, self.problem.safe_name, self.problem.spans)

    # Outcomes, checked against the declared ranges and scaled to [0, 1].

    @property
    def placeholder_values(self) -> list[Any]:
        lows: list[Any] = self.problem.spans[0].tolist()
        return [None, *lows[1:]] if self.first_reported else lows

    def decode_outcome(self, values: Floats) -> list[float]:
        lows, lengths = self.problem.spans
        unsigned = np.concatenate([values[:1], self.thresholds.to_user_units(values[1:])])
        return [float(value) for value in lows + lengths * unsigned]

    @cached_property
    def _scales(self) -> tuple[tuple[int, str, float, float, float], ...]:
        """Every reported signal's index, its name, the range of its outcomes, and its sign."""
        signs, rows = (1.0, *self.thresholds.signs.tolist()), []
        for index, (name, signal) in enumerate(self.problem.signals.items()):
            if signal.is_reported:
                rows.append((index, name, float(signal.low), float(signal.high), signs[index]))
        return tuple(rows)

    @cached_property
    def first_reported(self) -> int:  # type: ignore[override]
        return int(self.problem.needs_proposal)

    def encode_outcome(self, signals: Mapping[str, Any]) -> Floats | None:
        values = np.empty(len(self.problem.signals))
        if self.first_reported:
            values[0] = math.nan
        for k, name, low, high, sign in self._scales:
            value: Any = signals.get(name)
            kind = type(value)
            if (kind is not float and kind is not bool and kind is not int) or not low <= value <= high:
                return None
            values[k] = sign * ((float(value) - low) / (high - low))
        return values

    def values(self, reward: Any, cost: Any) -> Floats:
        if self.first_reported and reward is not None:
            text = "there is no reward to learn in this problem; give only the signals of its limits"
            raise InvalidOutcome(ErrorCode.UNKNOWN_SIGNAL, text)
        if cost is None:
            text = "the cost is missing; it is needed for {names}"
            raise InvalidOutcome(ErrorCode.OUTCOME_MISSING, text, names=", ".join(self.thresholds.names))
        outcomes, signs = [reward, *self.display_thresholds.costs(cost).tolist()], (1.0, *self.thresholds.signs)
        signals = zip(self.problem.signals.items(), outcomes, signs, strict=True)
        return np.array(
            [
                sign * scale_outcome(signal, name, value) if signal.is_reported else math.nan
                for (name, signal), value, sign in signals
            ]
        )


class BatchDecision(NamedTuple):
    """The decision for one user."""

    index: int  # type: ignore[assignment]  # (a tuple has a method of that name)
    odds: list[float]
    """Of all actions, in order."""
    optimistic_reward: float
    pessimistic_cost: list[float]
    cause: ReasonDetails | None
    estimated_reward: float
    estimated_cost: list[float]

    @classmethod
    def from_decision(cls, made: Any) -> "BatchDecision":
        """Return a decision of `ProblemPolicy.choose` in this form."""
        reward, costs = made._estimates() or (math.nan, made.pessimistic_cost * math.nan)
        bounds = made.optimistic_reward, made.pessimistic_cost.tolist()
        return cls(made.action_index, made[3][:-1].tolist(), *bounds, made.reason_details, reward, costs.tolist())


def choose_batch(
    policy: ProblemPolicy, state: PolicyState, contexts: Sequence[ContextVector], draws: Sequence[RandomKey]
) -> list[BatchDecision | None]:
    """Decide for many users, bitwise equal to one by one; None where the data contradict a declared value."""
    decisions = list[BatchDecision | None]([None] * len(contexts))
    groups: dict[tuple[Any, ...], list[int]] = {}
    for i, context in enumerate(contexts):
        kind = None if context.proposal is None else context.proposal.is_scores
        groups.setdefault((context.get_eligible(policy.actions).tobytes(), kind), []).append(i)
    for users in groups.values():
        mask = contexts[users[0]].get_eligible(policy.actions)
        made = decide_eligible(policy, state, [contexts[i] for i in users], mask, [draws[i] for i in users])
        for i, decision in zip(users, made, strict=True):
            decisions[i] = decision
    return decisions


class DecisionColumns(NamedTuple):
    """The decisions for many users, in the user's units."""

    codes: Ints
    """(n,) the action's index, or minus the reason for the safe action."""
    odds: Floats
    """(n, K) of all actions, in order."""
    bounds: Floats
    """(n, 1 + m) the optimistic reward and the pessimistic costs."""
    estimates: Floats
    """(n, 1 + m)."""


def decide_eligible(
    policy: ProblemPolicy,
    state: PolicyState,
    contexts: Sequence[ContextVector],
    eligible: Flags,
    draws: Sequence[RandomKey],
) -> list[BatchDecision | None]:
    """Decide for users with the same eligible actions, all or none with a proposal, or with scores."""
    numbers = np.array([context.features for context in contexts]).reshape(len(draws), policy.context)
    segments = np.array([context.segments for context in contexts]).reshape(len(draws), policy.segments)
    if policy.needs_times:  # the last column of a row
        segments = np.column_stack([segments, [policy.require_time(context) for context in contexts]])
    proposals = [context.proposal.values for context in contexts if context.proposal is not None]
    made = decide_rows(
        policy, state, numbers, segments, np.array(draws, dtype=np.int64), eligible,
        Proposal(np.array(proposals), contexts[0].proposal.is_scores) if contexts[0].proposal is not None else None,
    )  # fmt: skip
    safe_index, odds, bounds, means = policy.rounds.layout.item(SAFE_INDEX), *(column.tolist() for column in made[1:])
    return [
        None if code <= -CONTRADICTED else BatchDecision(
            code if code >= 0 else safe_index, odds[i], bounds[i][0], bounds[i][1:], get_cause(code),
            means[i][0], means[i][1:],
        )
        for i, code in enumerate(made.codes.tolist())
    ]  # fmt: skip


def get_cause(code: int) -> ReasonDetails | None:
    """Return why only the safe action is played; None: another one can be."""
    return None if code >= 0 or code == -SAFE_ACTION_DRAWN else CAUSES.get(-code)


def decide_rows(
    policy: ProblemPolicy,
    state: PolicyState,
    numbers: Floats,
    segments: Floats,
    draws: Ints,
    eligible: Flags = ALL,
    proposals: Proposal | None = None,
) -> DecisionColumns:
    """Decide for users with scaled numbers (n, c), segments and draws (n, 3), bitwise equal to one by one."""
    count, actions, m, memory = len(draws), policy.actions, policy.thresholds.values.size, state.memory
    codes, bounds, estimates = np.empty(count, dtype=np.int64), np.empty((count, 1 + m)), np.empty((count, 1 + m))
    odds, done = np.empty((count, actions + 1)), 0
    rounds, template, per_action = policy.get_rounds(proposals), policy._template.copy(), np.empty((count, 0))
    if proposals is not None:
        per_action = proposals.values
        template = np.column_stack([template, np.zeros(actions)])
    decide_users = build_batch_decider(rounds.spec)
    needs = rounds.get_resources(memory, template.shape[1], actions)
    while done < count:
        rows = slice(done, min(done + get_batch_rows(decide_users), count))
        decide_users(
            numbers[rows], segments[rows], per_action[rows], draws[rows], template, eligible, rounds.layout,
            rounds.settings, memory, codes[rows], bounds[rows], estimates[rows], odds[rows],
            np.empty(needs.answer), np.empty(needs.scratch),
        )  # fmt: skip
        done = rows.stop
    (low, length), to_units = policy.get_reward_span(proposals), policy.display_thresholds.to_user_units
    for values in (bounds, estimates):
        values[:, 0], values[:, 1:] = low + length * values[:, 0], to_units(values[:, 1:])
    return DecisionColumns(codes, odds[:, :-1], bounds, estimates)
