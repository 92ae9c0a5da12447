"""The declaration of a problem: actions, safe action, context, reward and limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from stagewise.engine.compile import Floats
from stagewise.files.paths import parse_path, read_toml
from stagewise.policies.context_caps import SafeContextPosteriorSampling
from stagewise.policies.context_encoder import TIME, ContextEncoder
from stagewise.policies.problem_policy import ProblemPolicy
from stagewise.policies.settings import check_probability, set_derived
from stagewise.problem.checks import StrictSettings, check_mapping, check_unique_names
from stagewise.problem.context_columns import ContextColumn, encode_column, parse_context
from stagewise.problem.division import Division, RiskScore, ScoreDivision, build_score_terms
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import format_count, join_names
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.signals import (
    GIVEN,
    Limit,
    LimitModel,
    Promise,
    Reward,
    build_promise_error,
    check_limits,
    describe_limit,
    describe_promise,
    encode_limit,
    encode_signal,
    parse_limit,
    parse_signal,
    scale_limit,
    scale_outcome,
)
from stagewise.problem.timing import Drift, OutcomeWindow, parse_seconds

RESERVED_NAMES = (
    "decision",
    "reward",
    "cost",
    "costs",
    "now",
    "self",
    "action",
    "only",
    "propose",
    "scores",
    "context",
)  # agents' arguments
SETTINGS = (  # of the policy
    "norm_bound",
    "ridge",
    "slope_scale",
    "initial_actions",
    "posterior_scale",
    "max_regret_ratio",
    "check_assumptions",
)


GIVEN_REWARD = Reward("reward", model="given")  # of a problem that has nothing but limits to learn


class ModelChoice(NamedTuple):
    """The model of one signal, and the reason for it."""

    model: str
    by: str | None
    """The name of the division of its rates."""
    why: str
    promise: Promise | None = None
    """To whom a limit is promised."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem(ContextEncoder, StrictSettings):
    """A decision problem, used by agents, simulations, certificates and the server.

    Raises:
        InvalidProblem: A value is invalid or conflicts with another.

    Example:
        >>> problem = Problem(
        ...     action_names=["nothing", "digest", "offer"], safe_name="nothing", context=["age"],
        ...     reward=Reward("click"), limits={"opt_out": Limit(0.02, safe_bound=0.0, model="rates")},
        ... )
        >>> print(problem)
        3 actions, of which 'nothing' is safe; 1 number about the user; delta 0.05
          click    reward in [0, 1]  linear in the context, action by action: there is a context
          opt_out  at most 0.02      one rate for each action: promised to the average user who gets an action
    """

    action_names: Sequence[str]
    """The names of the actions."""
    safe_name: str
    """The action that is known to be safe, such as the current one."""
    reward: Reward = GIVEN_REWARD
    """The signal to maximise, or its name alone. Left out: only the limits are learned, and every decision needs
    `propose=` or `scores=` (in [0, 1]; `Reward(name, low, high, model="given")` declares another range)."""
    limits: Mapping[str, Limit]
    """The limits on every round's expected costs: a mapping from the name of each cost to its `Limit`, or a list of
    `Limit(..., name=...)`. In the mapping a number, `AtLeast` or `TimesSafe` stands for a `Limit` of it."""
    context: Sequence[str] | Mapping[str, Sequence[float] | ContextColumn] = ()
    """What is known about a user: names of numbers in [−1, 1], or a mapping from each name to its range, such as
    {"age": (18, 99)}, to a `Number`, `Boolean`, `Date` or `Category`."""
    delta: float = 0.05
    """The guarantee holds with probability 1 − δ."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the policy that override its defaults."""

    def __post_init__(self) -> None:
        given = self.settings
        settings = check_mapping(given, "settings") if isinstance(given, Mapping) else given
        actions, context = check_unique_names(self.action_names, "action_names"), parse_context(self.context)
        set_derived(self, action_names=actions, context=context, limits=check_limits(self.limits), settings=settings)
        if not isinstance(self.safe_name, str) or self.safe_name not in self.action_names:
            raise InvalidProblem.must_be_one_of(
                ErrorCode.UNKNOWN_ACTION, "safe_name", self.safe_name, self.action_names
            )
        if len(self.action_names) < 2:
            text = "the only action is {safe_name!r}; there must be at least one other action"
            raise InvalidProblem(ErrorCode.MISSING_VALUE, text, safe_name=self.safe_name)
        if isinstance(self.reward, str):
            set_derived(self, reward=Reward(self.reward))
        if not isinstance(self.reward, Reward):
            raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "reward", self.reward, "Reward(name, low, high)")
        names = [self.reward.name, *self.limits, *self.context_names]
        for name in names[self.reward == GIVEN_REWARD :]:
            if name in RESERVED_NAMES:
                text = "{name!r} is the name of an argument of agents; give the signal or column another name"
                raise InvalidProblem(ErrorCode.INVALID_NAME, text, name=name)
        if self.needs_times and TIME in names:
            text = "{time!r} is the name of the time of a decision, needed where means move; give it another name"
            raise InvalidProblem(ErrorCode.INVALID_NAME, text, time=TIME)
        for name in self.segment_columns:
            if name in self.context_columns and not self.context_columns[name].labels:
                template = (
                    "{name!r} is a number of the context, and by={name!r} needs a category or a boolean; give the "
                    "segment another name, such as by={other!r}"
                )
                raise InvalidProblem(ErrorCode.DUPLICATE_NAME, template, name=name, other=name + "_group")
        for name in names:
            if names.count(name) > 1:
                text = "{name!r} is used twice; signals and columns of the context need different names"
                raise InvalidProblem(ErrorCode.DUPLICATE_NAME, text, name=name)
        divided = [division.name for division in self.divisions]
        for name in divided:
            if divided.count(name) > 1:
                text = "limits divide users by two different things that are called {name!r}; give them different names"
                raise InvalidProblem(ErrorCode.DUPLICATE_NAME, text, name=name)
        unknown = [name for name in settings if name not in SETTINGS] if isinstance(settings, dict) else [settings]
        if unknown:
            subject = "a name of settings" if isinstance(settings, dict) else "settings"
            raise InvalidProblem.must_be_one_of(ErrorCode.UNKNOWN_SETTING, subject, unknown[0], SETTINGS)
        if check_probability(self.delta, "delta") >= 0.5:
            rule = "below 0.5, since it is the probability of failure: 95 % confidence is 0.05"
            raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, "delta", float(self.delta), rule)
        self.policy()  # raises its errors now

    @cached_property
    def signals(self) -> dict[str, Reward | Limit]:
        """The reward and the limits by name, the reward first."""
        return {self.reward.name: self.reward, **self.limits}

    @cached_property
    def divisions(self) -> tuple[Division, ...]:
        """The divisions of users, in order of first use."""
        divisions = [self._divide(signal) for signal in self.signals.values()]
        return tuple(dict.fromkeys(division for division in divisions if division is not None))

    def get_division(self, name: str) -> Division | None:
        """Return the division by which a signal's rates are kept, by the signal's name."""
        return self._divide(self.signals[name])

    def _divide(self, signal: Reward | Limit) -> Division | None:
        """Return the division by which a signal's rates are kept."""
        if not isinstance(signal, Limit) or not isinstance(signal.score, RiskScore):
            return None if signal.by is None else Division(signal.segment_columns)
        return ScoreDivision((), signal.score, build_score_terms(signal.score, self.context_columns))

    @cached_property
    def moduli(self) -> dict[str, Drift]:
        """The drift of every limit whose rates may move, of outcomes scaled to [0, 1]."""
        declared = {name: limit.modulus for name, limit in self.limits.items()}
        lengths = {name: limit.high - limit.low for name, limit in self.limits.items()}
        return {name: drift.scaled(lengths[name]) for name, drift in declared.items() if drift is not None}

    @property
    def needs_times(self) -> bool:  # type: ignore[override]
        """Whether every decision has a time, because a mean drifts or the reward is forgotten."""
        return bool(self.moduli) or self.reward.half_life is not None

    @cached_property
    def choices(self) -> dict[str, ModelChoice]:
        """The model of each signal, and the reason for it."""
        return {name: self._choose_model(name, signal) for name, signal in self.signals.items()}

    def _choose_model(self, name: str, signal: Reward | Limit) -> ModelChoice:
        """Return the model of a signal; a limit says to whom it is promised where users differ."""
        division = self._divide(signal)
        by = None if division is None else division.name
        if signal.model not in (None, "rates", GIVEN) and not self.context:
            template = "a signal is {model} and there is no context; declare a context, or make the signal a rate"
            raise InvalidProblem(ErrorCode.CONFLICTING_SETTINGS, template, model=signal.model)
        if isinstance(signal, Reward):
            if not signal.is_reported:
                return ModelChoice("rates", None, "given with every decision, not learned")
            model = "linear" if self.context and by is None else "rates"
            why = "by segment" if by else "there is a context" if self.context else "there is no context"
            why = why if signal.model is None else "as declared"
            if signal.half_life is not None:
                why += f"; outcomes lose half of their weight in {signal.half_life}, so its bound is no theorem"
            return ModelChoice(signal.model or model, by, why)
        if signal.model is None and by is None and self.context_names:
            raise build_promise_error(name, [form for form in get_args(LimitModel) if form != "rates"])
        if signal.model is not None and signal.model != "rates":
            why = describe_promise(Promise.EVERY_USER, form=signal.model)
            return ModelChoice(signal.model, None, why, Promise.EVERY_USER)
        promise = Promise.AVERAGE_USER if by is None else Promise.EVERY_GROUP
        form = ""
        if isinstance(division, ScoreDivision):
            promise, form = Promise.EVERY_BUCKET, "monotone" * division.score.monotone
        return ModelChoice("rates", by, describe_promise(promise, by or "", form), promise)

    @cached_property
    def promises(self) -> dict[str, str]:
        """To whom each limit is promised, in words.

        >>> reward, limits = Reward("click"), {"opt_out": Limit(0.02, by="country")}
        >>> Problem(action_names=["a", "b"], safe_name="a", reward=reward, limits=limits).promises
        {'opt_out': 'promised to the average user of every country'}
        """
        return {name: self.choices[name].why for name in self.limits}

    def policy(self) -> ProblemPolicy:
        """Return the policy that plays this problem.

        Returns:
            Contextual CAPS with names and the problem's units.

        Example:
            >>> problem = Problem(
            ...     action_names=["a", "b"], safe_name="a", reward=Reward("click"), limits={"opt_out": Limit(0.02)}
            ... )
            >>> problem.policy().names
            ('a', 'b')
        """
        return ProblemPolicy(problem=self)

    def build_indexed_policy(self) -> SafeContextPosteriorSampling:
        """Return the same policy with action indices and scaled outcomes, for simulations."""
        if self.needs_proposal:
            text = "this problem has no reward to learn, so it cannot be simulated; declare one, Reward(name)"
            raise InvalidProblem(ErrorCode.UNSUPPORTED, text)
        return SafeContextPosteriorSampling(**self.to_kwargs())

    def to_kwargs(self) -> dict[str, Any]:
        """Return the settings of `SafeContextPosteriorSampling` for this problem, with outcomes scaled to [0, 1]."""
        safe, safe_index = {}, list(self.action_names).index(self.safe_name)
        for name, limit in self.limits.items():
            safe[name] = None if limit.safe_bound is None else scale_outcome(limit, name, limit.safe_bound)
        floor = self.reward.low if self.reward.safe_bound is None else self.reward.safe_bound
        positions = {division.name: index for index, division in enumerate(self.divisions)}
        divisions = {name: positions[choice.by] for name, choice in self.choices.items() if choice.by is not None}
        if self.reward.name in divisions:
            divisions["reward"] = divisions.pop(self.reward.name)
        return {
            "actions": len(self.action_names),
            "context": len(self.feature_names),
            "levels": tuple(len(category.labels) for category in self.categories.values()),
            "segments": len(self.divisions),
            "by": divisions or None,
            "score_buckets": self._list_score_buckets() or None,
            "reward_model": self.choices[self.reward.name].model,
            "cost_model": {name: self.choices[name].model for name in self.limits},
            "safe_action": SafeAction(
                arm=safe_index, reward=scale_outcome(self.reward, self.reward.name, floor), cost=safe
            ),
            "threshold": {name: scale_limit(name, limit) for name, limit in self.limits.items()},
            "cost_noise": {
                name: one.noise / (one.high - one.low) for name, one in self.limits.items() if one.noise is not None
            }
            or None,
            "drift": self.moduli or None,
            "reward_half_life": None if self.reward.half_life is None else parse_seconds(self.reward.half_life),
            "delta": self.delta,
            **self.settings,
        }

    def _list_score_buckets(self) -> dict[str, tuple[int, int, int]]:
        """Return the buckets of the limits with a score: their number, whether they are pooled, and the version."""
        scores = {name: limit.score for name, limit in self.limits.items() if isinstance(limit.score, RiskScore)}
        return {name: (len(one.bucket_names), int(one.monotone), one.version) for name, one in scores.items()}

    def with_action(self, name: str) -> "Problem":
        """Return the problem with one more action; learned states stay valid.

        Args:
            name: The name of the new action.

        Returns:
            A new problem.

        Raises:
            InvalidProblem: The name is invalid or already used.
        """
        initial_actions = self.settings.get("initial_actions", len(self.action_names))
        return replace(
            self,
            action_names=[*self.action_names, name],
            settings={**self.settings, "initial_actions": initial_actions},
        )

    @cached_property
    def spans(self) -> Floats:
        """The lows and the lengths (2, 1 + m) of the signals' ranges."""
        signals = self.signals.values()
        return np.array([[s.low for s in signals], [s.high - s.low for s in signals]])

    @cached_property
    def needs_proposal(self) -> bool:  # type: ignore[override]
        """Whether there is no reward to learn, so that every decision needs a proposal or scores."""
        return not self.reward.is_reported

    @cached_property
    def reported(self) -> dict[str, Reward | Limit]:
        """The signals whose outcomes are reported and learned, by name."""
        return {name: signal for name, signal in self.signals.items() if signal.is_reported}

    @cached_property
    def score_range(self) -> tuple[float, float]:  # type: ignore[override]
        """The range of scores: that of the reward."""
        return float(self.reward.low), float(self.reward.high)

    @property
    def windows(self) -> dict[str, OutcomeWindow]:
        """The windows of the signals, by name."""
        return {
            name: signal.outcome_window for name, signal in self.signals.items() if signal.outcome_window is not None
        }

    def __str__(self) -> str:
        count = len(self.categories)
        parts = [format_count(len(self.numbers), "number")] * bool(self.numbers)
        parts += [f"{count} categor{'y' if count == 1 else 'ies'}"] * bool(count)
        about = f"{' and '.join(parts)} about the user; " if parts else ""
        rows = [f"{len(self.action_names)} actions, of which {self.safe_name!r} is safe; {about}delta {self.delta:g}"]
        descriptions = {self.reward.name: f"reward in [{self.reward.low:g}, {self.reward.high:g}]"}
        descriptions |= {name: describe_limit(limit) for name, limit in self.limits.items()}
        name_width, description_width = max(map(len, descriptions)), max(map(len, descriptions.values()))
        for name, signal in self.signals.items():
            choice = self.choices[name]
            is_rate = choice.model == "rates"
            rate = "mean" if getattr(signal, "noise", None) else "rate"
            model = f"one {rate} for each action" if is_rate else f"{choice.model} in the context, action by action"
            kind = "bucket of " if choice.promise is Promise.EVERY_BUCKET else ""
            model += f" in every {kind}{choice.by}" if choice.by else ""
            window = "" if signal.outcome_window is None else f"; {signal.outcome_window.description}"
            noise, modulus = getattr(signal, "noise", None), getattr(signal, "modulus", None)
            window += "" if noise is None else f"; outcomes vary around their means by {noise:g}"
            window += "" if modulus is None else f"; {modulus}"
            how = f"{model}: {choice.why}{window}" if signal.is_reported else choice.why
            rows.append(f"  {name:{name_width}}  {descriptions[name]:{description_width}}  {how}")
        return "\n".join(rows)

    @classmethod
    def load(cls, path: str | Path) -> "Problem":
        """Read a problem from a TOML file (docs/how-to/declare-a-problem.md).

        Args:
            path: The file.

        Returns:
            The problem.

        Raises:
            InvalidFile: The file cannot be read.
            InvalidProblem: A value is invalid.
        """
        return cls.from_dict(read_toml(parse_path(path)))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Problem":
        """Build a problem from the values of a TOML or JSON file.

        Args:
            content: The values, as `to_dict` returns them.

        Returns:
            The problem.

        Raises:
            InvalidProblem: A value is missing, unknown or invalid.
        """
        values = dict(content)
        names = [f.name for f in fields(cls)]
        for name in values:
            if name not in names:
                subject = "a name in the problem"
                raise InvalidProblem.must_be_one_of(ErrorCode.UNKNOWN_SETTING, subject, name, names)
        absent = [name for name in ("action_names", "safe_name", "limits") if name not in values]
        if absent:
            raise InvalidProblem(ErrorCode.MISSING_VALUE, "the problem lacks {absent}", absent=join_names(absent))
        if "reward" in values:
            values["reward"] = parse_signal(Reward, values["reward"], "reward")
        if not isinstance(values["limits"], Mapping):
            rule = "tables by name, as [limits.opt_out]"
            raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "the value of limits", values["limits"], rule)
        values["limits"] = {name: parse_limit(entry, name) for name, entry in values["limits"].items()}
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as JSON values.

        Returns:
            A dictionary that `from_dict` reads.

        Example:
            >>> problem = Problem(
            ...     action_names=["a", "b"], safe_name="a", reward=Reward("click"), limits={"opt_out": Limit(0.02)}
            ... )
            >>> Problem.from_dict(problem.to_dict()).to_dict() == problem.to_dict()
            True
        """
        return {
            "action_names": list(self.action_names),
            "safe_name": self.safe_name,
            "context": {name: encode_column(column) for name, column in self.context_columns.items()},
            "delta": float(self.delta),
            "settings": dict(self.settings),
            **({} if self.reward == GIVEN_REWARD else {"reward": encode_signal(self.reward)}),
            "limits": {name: encode_limit(limit) for name, limit in self.limits.items()},
        }
