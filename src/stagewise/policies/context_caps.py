"""Contextual CAPS: actions for a user, with one model for each signal."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, get_args

import numpy as np

from stagewise.engine.compile import Floats, as_python
from stagewise.engine.layout import CACHE_DISABLED, CACHED, CAPACITY, SAFE_COST_DECLARED, SAFE_INDEX
from stagewise.engine.model import RoundSpec, Rule
from stagewise.engine.round import memory_size, start_memory
from stagewise.models.arms import compute_lows, split_delta
from stagewise.models.context import (
    NOISE,
    Buckets,
    CostModel,
    Signal,
    SignalModel,
    compute_action_shares,
    compute_upper_shares,
)
from stagewise.models.drifting_ridge import build_drift_settings
from stagewise.models.logistic_fit import LARGEST_LOGISTIC
from stagewise.models.model_block import ModelBlockSpec
from stagewise.policies.decisions import attach_round, build_mixture_decision
from stagewise.policies.linear_policy import compute_ridge
from stagewise.policies.policy import PolicyState
from stagewise.policies.rounds import Growth, Rounds, allocate_aligned
from stagewise.policies.settings import (
    CERTIFICATE,
    Optimism,
    SafePolicy,
    check_probability,
    check_safe_range,
    compute_ceilings,
    compute_certificate_numbers,
    copy_settings,
    require_arm,
    set_derived,
    set_rounds,
)
from stagewise.problem.actions import ALL, FiniteSet, Flags
from stagewise.problem.checks import (
    MOST,
    check_array,
    check_choice,
    check_integer,
    check_positive,
    check_size,
    is_listing,
    list_entries,
)
from stagewise.problem.context import LARGEST_SEGMENT, ContextVector
from stagewise.problem.context_columns import build_level_features
from stagewise.problem.division import MOST_BUCKETS
from stagewise.problem.errors import ErrorCode, InvalidActions, InvalidProblem
from stagewise.problem.formatting import format_count, safe_repr
from stagewise.problem.proposal import Proposal
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.signals import Promise
from stagewise.problem.thresholds import Thresholds, get_safe_costs, resolve_thresholds
from stagewise.problem.timing import LATEST, Drift, can_drift, parse_stored_drift
from stagewise.records.decision import Decision
from stagewise.records.random_key import RandomKey
from stagewise.rules.certified import CERTIFIED_MIXTURE
from stagewise.rules.guard import PROPOSAL, SCORES

ACTION, ONE, FIRST_NUMBER = 0, 1, 2  # columns of a row; the segments follow the numbers
NO_REWARD = (math.nan, math.nan)
FIRST_CAPACITY = 8  # segments, or chunks of rows
RARE = 0.25  # linear costs with lower limits have sets of rare events, which are narrower there


class Totals(NamedTuple):
    """The number and the sum of learned outcomes by signal and action (1 + m, K), scaled to [0, 1]."""

    pulls: Floats
    sums: Floats

    def since(self, earlier: "Totals") -> "Totals":
        return Totals(self.pulls - earlier.pulls, self.sums - earlier.sums)


@dataclass(frozen=True, kw_only=True, eq=False)
class SafeContextPosteriorSampling(SafePolicy):
    """Contextual certified posterior sampling: with probability 1 − δ the mixture of every round keeps its limits.

    The safe action is one of the actions, `SafeAction(arm=…)`. Its `cost` is an upper bound on its mean costs for
    every user, its `reward` a lower bound on its mean reward. Every outcome lies in [0, 1]. Every signal has its own
    model: linear in the context with parameters for every action, or a rate for every action, by segment where `by`
    says so (docs/theory/context-models.md). An action is a row: its index, 1, the context, the segments.

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> from stagewise.problem.context import ContextVector
        >>> policy = SafeContextPosteriorSampling(
        ...     actions=3, context=2, safe_action=SafeAction(arm=0, reward=0.0, cost=0.001), threshold={"opt_out": 0.02}
        ... )
        >>> decision = policy.decide(policy.start(), ContextVector([0.3, 0.1]))
        >>> decision.action_index, decision.pessimistic_cost
        (0, array([0.001]))
    """

    actions: int
    """The number of actions, including the safe one."""
    context: int = 0
    """The number of context features of a user, each in [−1, 1]; a constant is added."""
    levels: Sequence[int] = ()
    """The numbers of levels of categories; their features are the last of `context`, up to √levels in size."""
    segments: int = 0
    """The number of segmentations of users; `by` names a signal for each."""
    by: Mapping[str, int] | None = None
    """The segmentation of a signal's rates; other signals have one rate for each action."""
    score_buckets: Mapping[str, Sequence[int]] | None = None
    """For a cost whose segmentation is a score, by name: the number of buckets, 1 if means do not fall from bucket to
    bucket (else 0), and the version of the score."""
    reward_model: SignalModel = "linear"
    """The model of the mean reward: "linear" in the context or "rates" by action."""
    cost_model: CostModel | Mapping[str, CostModel] = "rates"
    """The model of mean costs: one for all, or one for each by name; "logistic" bounds every user's own mean."""
    norm_bound: float = 1.0
    """S: an upper bound on the norm of every action's parameter; only for linear signals."""
    ridge: float | None = None
    """λ of the regressions; None: n R²/S²."""
    slope_scale: float = 0.7
    """The prior standard deviation of every slope of a logistic cost, in log-odds; no slope may exceed ten of it."""
    drift: Mapping[str, Any] | None = None
    """How far the rates of a cost may move, by name, as in `Limit.drift`; None: rates are constant."""
    cost_noise: Mapping[str, float] | None = None
    """R of a cost that varies little around its means, by name: outcomes are R-sub-Gaussian, R < ½; None: they lie
    anywhere in [0, 1]."""
    reward_half_life: float | None = None
    """The seconds in which an outcome of the reward loses half of its weight; None: it keeps its weight."""
    initial_actions: int | None = None
    """The number of actions when learning began; later actions share a reserved part of δ."""
    posterior_scale: float = 0.7
    """ν: the scale of posterior samples, in posterior standard deviations; 0: greedy."""
    max_regret_ratio: float = 5.0
    """C ≥ 1: the largest certified regret of a proposal, in units of its uncertainty."""
    mean_reward_bound: float = 1.0
    """An upper bound on all mean rewards."""
    optimism: Optimism = field(init=False, default="inflated")
    reward_confidence_scale: float | None = field(init=False, default=None)
    cost_confidence_scale: float = field(init=False, default=1.0)
    split_delta: bool = field(init=False, default=True)

    decision_type: ClassVar[type[Decision]] = Decision  # the class of its decisions
    log_hint: ClassVar[str] = ""  # added to the error about a log's shape
    rule: ClassVar[Rule] = CERTIFIED_MIXTURE
    mixes: ClassVar[bool] = True
    separate_models: ClassVar[bool] = True  # type: ignore[misc]  # every signal has a model of its own
    why_unit_range: ClassVar[str] = "every outcome must lie there, so rescale"  # type: ignore[misc]

    def __post_init__(self) -> None:
        copy_settings(self)
        actions = check_size(self.actions, "actions")
        safe = require_arm(self.safe_action, actions)
        thresholds = resolve_thresholds(self.threshold, safe)
        check_integer(self.context, "context", f"from 0 to {MOST}", 0, MOST)
        check_integer(self.segments, "segments", "from 0 to 64", 0, 64)
        _ = self.feature_bounds
        check_safe_range(safe, thresholds, "rescale")
        ceilings = compute_ceilings(thresholds, self.mean_cost_bound, 0.0)
        set_derived(self, thresholds=thresholds)
        last = compute_certificate_numbers(self, safe.reward)
        blocks = self.build_blocks(safe, thresholds)
        first = FIRST_CAPACITY if self.segments or any(block.model.capacity == "rows" for block in blocks) else 0
        growth = Growth(first, MOST) if first else None
        set_rounds(
            self, self.rule, thresholds, ceilings, blocks,
            switches=CERTIFICATE | SAFE_COST_DECLARED, safe=np.zeros(self.width), safe_index=int(safe.arm or 0),
            last=last, growth=growth, caches=False,
        )  # fmt: skip

    @cached_property
    def feature_bounds(self) -> Floats:
        """The largest absolute value (context,) of every feature."""
        levels = [check_integer(count, "levels", "from 2", 2, MOST) for count in list_entries(self.levels, "levels")]
        bounds = np.ones(self.context)
        if sum(levels) - len(levels) > self.context:
            rule = f"at most {self.context}, all features of a user"
            subject = "the number of features of all levels"
            raise InvalidProblem.must_be(ErrorCode.TOO_LARGE, subject, sum(levels) - len(levels), rule)
        if levels:
            each = np.concatenate([np.full(count - 1, build_level_features(count).max()) for count in levels])
            bounds[-each.size :] = each
        return bounds

    # Its models.

    @cached_property
    def models(self) -> dict[str, str]:
        """The model of each signal, by name."""
        names = self.thresholds.names
        costs = dict.fromkeys(names, "rates" if isinstance(self.cost_model, Mapping) else self.cost_model)
        if isinstance(self.cost_model, Mapping):
            costs |= parse_by_name(self.cost_model, names, "cost_model", "limits")
        models = {"reward": self.reward_model, **costs}
        return {
            name: check_choice(kind, get_args(CostModel if index else SignalModel), f"the model of {name!r}")
            for index, (name, kind) in enumerate(models.items())
        }

    @cached_property
    def divisions(self) -> dict[str, int]:
        """The segmentation of each signal's rates; −1: none."""
        divisions = parse_by_name(self.by, self.models, "by", "signals")
        for name, division in divisions.items():
            if self.models[name] != "rates":
                text = "by has {name!r}, which is {model}; only rates can be kept by segment"
                raise InvalidProblem(ErrorCode.UNSUPPORTED, text, name=name, model=self.models[name])
            rule = f"below segments ({self.segments})"
            check_integer(division, f"the division of {name!r}", rule, 0, self.segments - 1)
        unused = next((division for division in range(self.segments) if division not in divisions.values()), None)
        if unused is not None:
            reason = f"by uses no segment {unused}; name a signal for it, or use fewer segments"
            raise InvalidProblem.unused("segments", self.segments, reason)
        return {name: int(divisions.get(name, -1)) for name in self.models}

    @cached_property
    def buckets(self) -> dict[str, Buckets]:
        """The buckets of the costs whose segmentation is a score."""
        buckets = {}
        for name, entry in parse_by_name(self.score_buckets, self.thresholds.names, "score_buckets", "limits").items():
            if self.divisions[name] < 0:
                text = "score_buckets has {name!r}; by must name its segmentation, which is the score"
                raise InvalidProblem(ErrorCode.MISSING_VALUE, text, name=name)
            if not is_listing(entry) or len(entry) != 3:
                rule = "three numbers: buckets, 1 for means that do not fall or 0, and the version of the score"
                raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, f"the buckets of {name!r}", entry, rule)
            count = check_integer(entry[0], f"the buckets of {name!r}", f"from 2 to {MOST_BUCKETS}", 2, MOST_BUCKETS)
            pooled = check_integer(entry[1], f"the second of the buckets of {name!r}", "0 or 1", 0, 1)
            version = check_integer(entry[2], f"the version of the score of {name!r}", f"from 1 to {MOST}", 1, MOST)
            buckets[name] = Buckets(count, bool(pooled), version)
        return buckets

    @cached_property
    def moduli(self) -> dict[str, Drift]:
        """The drift of every cost whose rates may move."""
        moduli = dict[str, Drift]()
        for name, value in parse_by_name(self.drift, self.thresholds.names, "drift", "limits").items():
            modulus = value if isinstance(value, Drift) else parse_stored_drift(value, repr(name))
            if modulus is not None and not can_drift(self.models[name], modulus.amount > 0.0, name in self.noises):
                how = "slope or the budget of linear costs" if self.models[name] == "linear" else "drift of rates"
                text = "drift has {name!r}, which is {model}; only the {how} is bounded"
                raise InvalidProblem(ErrorCode.UNSUPPORTED, text, name=name, model=self.models[name], how=how)
            moduli |= {} if modulus is None else {name: modulus}
        return moduli

    @cached_property
    def noises(self) -> dict[str, float]:
        """The noise of every cost that declares one."""
        noises = parse_by_name(self.cost_noise, self.thresholds.names, "cost_noise", "limits")
        for name, noise in noises.items():
            if self.models[name] != "rates" or name in self.buckets:
                what = "by the buckets of a score" if name in self.buckets else self.models[name]
                text = "cost_noise has {name!r}, which is {what}; only rates by action and segment can have one"
                raise InvalidProblem(ErrorCode.UNSUPPORTED, text, name=name, what=what)
            if not check_positive(noise, f"the noise of {name!r}") < NOISE:
                rule = "below 0.5, which numbers in [0, 1] have anyway"
                raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, f"the noise of {name!r}", noise, rule)
        return {name: float(noise) for name, noise in noises.items()}

    @property
    def needs_times(self) -> bool:  # type: ignore[override]
        """Whether every decision has a time, because a mean drifts or the reward is forgotten."""
        return bool(self.moduli) or self.reward_half_life is not None

    @property
    def promises(self) -> dict[str, Promise]:
        """To whom each limit is promised, by name."""
        kinds = dict.fromkeys(get_args(CostModel), Promise.EVERY_USER) | {"rates": Promise.AVERAGE_USER}
        groups = {name: Promise.EVERY_GROUP for name in self.thresholds.names if self.divisions[name] >= 0}
        groups |= dict.fromkeys(self.buckets, Promise.EVERY_BUCKET)
        return {name: groups.get(name, kinds[self.models[name]]) for name in self.thresholds.names}

    @cached_property
    def declared_costs(self) -> list[float]:
        """Declared upper bounds of the safe action's signed mean costs; ∞ where none is declared."""
        declared = self.thresholds.signs * get_safe_costs(self.safe_action, self.thresholds.names)
        return [math.inf if math.isnan(cost) else float(cost) for cost in declared]

    @cached_property
    def shares(self) -> Floats:
        """The share of δ of every action."""
        initial, rule = self.initial_actions, f"from 1 to {self.actions}, the actions there are"
        initial = self.actions if initial is None else initial
        return compute_action_shares(self.actions, check_integer(initial, "initial_actions", rule, 1, self.actions))

    @cached_property
    def upper_shares(self) -> Floats:
        """The share of δ of the upper end of every action, for a cost whose safe action's is declared."""
        initial = self.actions if self.initial_actions is None else int(self.initial_actions)
        return compute_upper_shares(self.shares, initial, int(self.safe_action.arm or 0))

    def build_blocks(self, safe: SafeAction, thresholds: Thresholds) -> tuple[ModelBlockSpec, ...]:
        """Return the model blocks of the signals."""
        size, bound, m = 1 + self.context, check_positive(self.norm_bound, "norm_bound"), thresholds.values.size
        ridge, divisions = compute_ridge(self.ridge, size, NOISE, bound), self.divisions
        if "linear" not in self.models.values():
            for name, is_given in {"norm_bound": self.norm_bound != 1.0, "ridge": self.ridge is not None}.items():
                if is_given:
                    reason = "it applies to linear signals and all signals here are rates"
                    raise InvalidProblem.unused(name, getattr(self, name), reason)
        slope_scale = self.check_slope_scale()
        delta, (high, other) = check_probability(self.delta, "delta"), split_delta(m)
        declared = [-np.inf if safe.reward is None else safe.reward, *self.declared_costs]
        lows, blocks = compute_lows(thresholds.signs), []
        priors = [0.5, *(thresholds.limits - lows[1:])]
        for index, (name, kind) in enumerate(self.models.items()):
            lower, upper = -math.log(delta * other), -math.log(delta * (high if index else other))
            signal = Signal(index, float(lows[index]), lower, upper, float(declared[index]), float(priors[index]))
            if not index and self.reward_half_life is not None:
                half_life = check_positive(self.reward_half_life, "reward_half_life")
                signal = signal._replace(forgetting=(float(self.width - 1), half_life))
            if kind == "linear" and name in self.moduli and index:
                modulus = self.moduli[name]
                drift = build_drift_settings(self.width - 1, signal.prior, modulus.slope, modulus.budget)
                blocks.append(signal.linear(size, self.shares, ridge, bound, drift))
            elif kind == "linear" and index and signal.prior <= RARE:
                blocks.append(signal.events(size, self.shares, bound))
            elif kind == "linear":
                blocks.append(signal.linear(size, self.shares, ridge, bound))
            elif kind == "logistic":
                blocks.append(signal.logistic(size, self.shares, slope_scale))
            else:
                division, drift, noise = divisions[name], list[float](), self.noises.get(name, 0.0)
                if name in self.moduli:
                    drift = self.moduli[name].to_settings(self.width - 1, signal.prior, noise)
                column = -1 if division < 0 else self.first_segment + division
                is_declared = index > 0 and self.declared_costs[index - 1] < math.inf
                uppers = self.upper_shares if is_declared else self.shares
                blocks.append(signal.rates(column, self.shares, uppers, drift, self.buckets.get(name), noise))
        return tuple(blocks)

    def check_slope_scale(self) -> float:
        """Return the prior deviation of the slopes of logistic costs."""
        scale, is_used = check_positive(self.slope_scale, "slope_scale"), "logistic" in self.models.values()
        if not is_used and scale != 0.7:
            raise InvalidProblem.unused("slope_scale", self.slope_scale, "it applies to logistic costs")
        if is_used and 1 + self.context > LARGEST_LOGISTIC:
            rule = f"at most {LARGEST_LOGISTIC - 1} with logistic costs"
            raise InvalidProblem.must_be(ErrorCode.TOO_LARGE, "context", self.context, rule)
        return scale

    # Its actions: one row for each action and user.

    @cached_property
    def first_segment(self) -> int:
        """The column of the first segment."""
        return FIRST_NUMBER + self.context

    @cached_property
    def _number_columns(self) -> tuple[slice, slice]:
        """The index of the numbers in rows of all actions."""
        return np.s_[:, FIRST_NUMBER : self.first_segment]

    @cached_property
    def width(self) -> int:
        """The number of columns of a row."""
        return self.first_segment + self.segments + self.needs_times

    @property
    def row_width(self) -> int:  # type: ignore[override]
        """The number of columns of a row."""
        return self.width

    @cached_property
    def _template(self) -> Floats:
        """The rows of all actions, without a context."""
        rows = np.zeros((self.actions, self.width))
        rows[:, ACTION], rows[:, ONE] = np.arange(self.actions), 1.0
        return rows

    def rows_for(self, context: ContextVector) -> Floats:
        """Return the rows (K, D) of all actions for one user."""
        rows = self._template.copy()
        if context.features.size != self.context or context.segments.size != self.segments:
            text = "the context is {context}; this policy needs {needed}"
            raise InvalidActions(
                ErrorCode.WRONG_SHAPE, text, context=safe_repr(context), needed=self.describe_context()
            )
        if not context.inside and not (np.abs(context.features) <= self.feature_bounds).all():
            beyond = context.features[~(np.abs(context.features) <= self.feature_bounds)][0]
            text = "the context holds {beyond:.15g}; every number must lie in [-1, 1], so rescale it"
            raise InvalidActions(ErrorCode.CONTEXT_OUT_OF_RANGE, text, beyond=beyond)
        rows[self._number_columns] = context.features
        if self.segments:
            rows[:, self.first_segment : self.first_segment + self.segments] = context.segments
        if self.needs_times:
            rows[:, -1] = self.require_time(context)
        return rows

    def require_time(self, context: ContextVector) -> float:
        """Return the time of a context, or raise InvalidActions."""
        if context.time is None:
            raise InvalidActions(
                ErrorCode.TIME_MISSING,
                "the context has no time, and a limit has a drift or the reward a half-life, so bounds depend on it; "
                "give ContextVector(...).at(seconds), as an agent does",
            )
        return context.time

    def describe_context(self) -> str:
        """Return the sizes of a context, for messages."""
        sizes = f"{format_count(self.context, 'number')} and {format_count(self.segments, 'segment')}"
        return f"{sizes}, then the time of the decision" if self.needs_times else sizes

    def context_in(self, row: Floats, proposal: Proposal | None = None) -> ContextVector:
        """Return the user of a row, with what is proposed."""
        segments = [int(key) for key in row[self.first_segment : self.first_segment + self.segments]]
        context = ContextVector.from_checked(row[FIRST_NUMBER : self.first_segment], segments, None, proposal)
        return context.at(float(row[-1])) if self.needs_times else context

    def at_time(self, actions: Any, seconds: float) -> Any:
        """Return the context of a call at the time of its decision."""
        context = ContextVector() if actions is None else actions
        return context.at(seconds) if isinstance(context, ContextVector) else context

    def parse_offer(self, actions: Any) -> tuple[Floats, Flags]:
        """Return the rows of all actions for this user, and which of them are eligible."""
        if isinstance(actions, ContextVector):
            return self.rows_for(actions), actions.get_eligible(self.actions)
        if actions is None:
            return self.rows_for(ContextVector()), ALL
        if not isinstance(actions, FiniteSet):
            raise InvalidActions.must_be(ErrorCode.WRONG_TYPE, "the value of the actions", actions, "a Context")
        of_round, safe_index = actions.round_safe_action, self.layout.item(SAFE_INDEX)
        if of_round is not None and of_round.safe_index != safe_index:
            subject = "the index of the safe action of the rows"
            raise InvalidActions.must_be(ErrorCode.SAFE_ACTION_INVALID, subject, of_round.safe_index, f"{safe_index}")
        rows = self.check_logged_actions(actions.features)
        if len(rows) != self.actions or not np.array_equal(rows[:, ACTION], self._template[:, ACTION]):
            text = "the rows are {actions}; there must be one for each of {count} actions"
            raise InvalidActions(ErrorCode.WRONG_SHAPE, text, actions=safe_repr(actions), count=self.actions)
        if not np.array_equal(rows[:, ONE:], np.broadcast_to(rows[0, ONE:], rows[:, ONE:].shape)):
            raise InvalidActions(ErrorCode.WRONG_SHAPE, "the rows describe several users; a round is for one user")
        return rows, actions.eligible

    def check_logged_actions(self, actions: Any) -> Floats:
        """Return rows (n, 2 + context + segments): the action, 1, the context, the segments."""
        rows, d = check_array(actions, "the logged actions", InvalidActions), self.first_segment
        if rows.ndim != 2 or rows.shape[1] != self.width:
            raise InvalidActions(
                ErrorCode.WRONG_SHAPE,
                "the logged actions have shape {shape}; each row must hold the action's index, 1, {context}{log_hint}",
                shape=rows.shape,
                context=self.describe_context(),
                log_hint=self.log_hint,
            )
        numbered, segments = rows[:, ACTION], rows[:, d : d + self.segments]
        good = (numbered >= 0) & (numbered < self.actions) & (numbered == np.floor(numbered)) & (rows[:, ONE] == 1.0)
        good &= (np.abs(rows[:, FIRST_NUMBER:d]) <= self.feature_bounds).all(axis=1)
        if self.needs_times:
            good &= np.abs(rows[:, -1]) <= LATEST
        good &= ((segments >= 0) & (segments < LARGEST_SEGMENT) & (segments == np.floor(segments))).all(axis=1)
        if not good.all():
            first = int(np.argmin(good))
            raise InvalidActions(
                ErrorCode.INVALID_ROW,
                "row {first} of the logged actions is {row}; it must hold an action from 0 to {last}, 1, numbers in "
                "[-1, 1], and segments from 0{time}",
                first=first,
                row=safe_repr(rows[first].tolist()),
                last=self.actions - 1,
                time=", then the time of the decision in seconds" * self.needs_times,
            )
        return rows

    def choose(self, state: PolicyState, actions: Any, draw: RandomKey) -> Decision:
        proposal, rounds, span = None, self.rounds, self.reward_span
        offered, eligible = self.parse_offer(actions)
        if isinstance(actions, ContextVector) and actions.proposal is not None:
            proposal = actions.proposal
            rounds, span = self.get_rounds(proposal), self.get_reward_span(proposal)
            rows, offered = offered, np.empty((self.actions, self.width + 1))
            offered[:, :-1], offered[:, -1] = rows, proposal.values
        result, thresholds = rounds.play(state.memory, offered, eligible, draw), self.display_thresholds
        decision = build_mixture_decision(
            result, None, thresholds, draw.round, names=self.names, kind=self.decision_type, span=span,
            proposal=proposal,
        )  # fmt: skip
        return attach_round(decision, result, state.memory, thresholds)

    def get_safe_action(self, decision: Decision) -> tuple[Any, int, float]:
        """Return the safe action for a decision's user."""
        row, safe_index = np.array(decision[0]), self.layout.item(SAFE_INDEX)
        row[ACTION] = float(safe_index)
        return row, safe_index, 1.0

    def get_round_spec(self, actions: Any) -> RoundSpec | None:
        """Return the spec of compiled loops, for worlds with plain features."""
        is_plain = getattr(actions, "crossed", None) is False
        return self.rounds.spec if is_plain else None

    def build_run_memory(
        self, offered: Any, features: Floats, fresh: bool, learned: PolicyState | None = None
    ) -> Floats:
        """Return the initial memory of a compiled run."""
        self.check_logged_actions(offered.features)  # raise the same errors as `decide`
        return self.rounds.start_run(None if learned is None else learned.memory, features, True)

    # What a caller proposes.

    @cached_property
    def proposal_rounds(self) -> Rounds:
        """Its rounds with a proposal, on the same memory."""
        return self.rounds.with_rule(PROPOSAL)

    @cached_property
    def score_rounds(self) -> Rounds:
        """Its rounds with given scores, on the same memory."""
        return self.rounds.with_rule(SCORES)

    def get_rounds(self, proposal: Proposal | None) -> Rounds:
        """Return the rounds that decide."""
        if proposal is None:
            return self.rounds
        return self.score_rounds if proposal.is_scores else self.proposal_rounds

    def get_reward_span(self, proposal: Proposal | None) -> tuple[float, float]:
        """Return the low end and the length of the reward's range; NaN where a decision on a proposal has no reward."""
        is_unknown = self.first_reported and proposal is not None and not proposal.is_scores
        return NO_REWARD if is_unknown else self.reward_span

    # Its memory, which grows with the segments.

    def fits(self, memory: Floats) -> bool:
        return self.rounds.fits(memory) and bool(memory[CACHED] == CACHE_DISABLED)

    def learn_rows(self, state: PolicyState, rows: Floats, values: Floats, ends: Floats | None = None) -> PolicyState:
        """Learn rows (n, D) and values (n, 1 + m), NaN for missing signals; bitwise equal to one by one.

        In `ends` (n, 1 + m) the upper end that a row had before it was learned is written, above the smallest outcome,
        for costs that are bounded for every user; 1 for a safe action whose cost is declared.
        """
        (features, indices), rest = self.locate_rows(rows), np.array(values)
        if ends is None:
            return PolicyState(self.rounds.learn_rows(state.memory, features, indices, rest))
        memory, done = state.memory, 0
        while done < len(rows):
            memory = self.rounds.enlarge(memory)
            end = min(done + self.rounds.count_free_rows(memory, features[done:], rest[done:]), len(rows))
            self._learn_with_ends(memory, features[done:end], rest[done:end], ends[done:end])
            memory = self.rounds.learn_rows(memory, features[done:end], indices[done:end], rest[done:end])
            done = end
        return PolicyState(memory)

    def _learn_with_ends(self, memory: Floats, rows: Floats, values: Floats, ends: Floats) -> None:
        """Learn, in place, the costs that are bounded for every user; `values` has NaN in their places afterwards."""
        work = np.empty(self.rounds.get_resources(memory, rows.shape[1], self.actions).scratch)
        for index, (model, block) in enumerate(list(self.rounds.iter_blocks(memory))):
            if block.first > 0 and model.learn_with_ends is not None:
                is_declared = math.isfinite(self.declared_costs[block.first - 1])
                skipped = self.layout.item(SAFE_INDEX) if is_declared else -1
                outcomes, own = np.ascontiguousarray(values[:, block.first]), np.ones(len(rows))
                model.learn_with_ends(self.layout, index, skipped, rows, outcomes, self.settings, memory, own, work)
                ends[:, block.first], values[:, block.first] = own, math.nan

    def learn_log(self, state: PolicyState, actions: Any, values: Any) -> PolicyState:
        """Learn a log as one batch, in the order of its times where it needs them.

        Its segments are added in the order of their keys, so row order does not matter.
        """
        if self.needs_times:
            order = np.argsort(actions[:, -1], kind="stable")
            actions, values = actions[order], np.asarray(values)[order]
        first = self.first_segment
        divided = {division for name, division in self.divisions.items() if division >= 0 and name not in self.buckets}
        most = max((np.unique(actions[:, first + division]).size for division in divided), default=0)
        memory = self.rounds.reserve(state.memory, "segments", most)
        for index, model in enumerate(self.rounds.spec.models):
            if model.begin_log is not None:
                model.begin_log(self.layout, memory, index, actions)
        return super().learn_log(PolicyState(memory), actions, values)

    def grow_state(self, fewer: "SafeContextPosteriorSampling", state: PolicyState) -> PolicyState:
        """Return the state of a policy with fewer actions (the first of this policy's) as a state of this policy.

        Rates by another version of a score are not taken over: its buckets have other users, and its cells a share of
        their own.
        """
        capacity = int(fewer.check_state(state).memory[CAPACITY])
        models = self.rounds.spec.models
        memory = allocate_aligned(memory_size(models, self.layout, 0, capacity))
        start_memory(models, self.layout, self.settings, capacity, memory)
        memory[CACHED] = CACHE_DISABLED
        blocks, names = (fewer.rounds.iter_blocks(state.memory), self.rounds.iter_blocks(memory)), list(self.models)
        for (model, old), (_, new) in zip(*blocks, strict=True):
            if fewer.buckets.get(names[new.first]) != self.buckets.get(names[new.first]):
                continue
            widen: Any = model.widen
            add_actions = model.add_actions or as_python(widen)
            add_actions(self.layout, old, new, state.memory, memory)
        return PolicyState(memory)

    def compute_totals(self, state: PolicyState) -> Totals:
        """Return the outcome totals of every action, over all users.

        >>> safe = SafeAction(arm=0, cost=0.0)
        >>> policy = SafeContextPosteriorSampling(actions=2, safe_action=safe, threshold=0.1, reward_model="rates")
        >>> state = policy.learn_log(policy.start(), np.array([[0.0, 1.0]]), [[1.0, 0.0]])
        >>> policy.compute_totals(state).sums.tolist()
        [[1.0, 0.0], [0.0, 0.0]]
        """
        signs = np.append(1.0, self.thresholds.signs)
        pulls, sums = np.zeros((2, signs.size, self.actions))
        memory = self.check_state(state).memory
        for model, block in self.rounds.iter_blocks(memory):
            model.diagnostics.fill_totals(block, self.settings, memory, pulls[block.first], sums[block.first])
        return Totals(pulls, sums * signs[:, np.newaxis])


def parse_by_name(value: Any, names: Collection[str], what: str, of: str) -> dict[str, Any]:
    """Return a setting that maps some of these names to values."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(name, str) and name in names for name in value):
        text = "{what} is {value}; it must name {of}: {names}"
        raise InvalidProblem(
            ErrorCode.UNKNOWN_NAME, text, what=what, value=safe_repr(value), of=of, names=", ".join(names)
        )
    return dict(value)
