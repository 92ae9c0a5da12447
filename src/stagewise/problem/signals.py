"""Declarations of a problem's signals: the reward, the limits and to whom they are promised, also as JSON or TOML."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Literal, Self, get_args

from stagewise.problem.checks import (
    StrictSettings,
    check_choice,
    check_mapping,
    check_name,
    check_number,
    check_outcome,
    check_positive,
    check_range,
    check_unique_names,
)
from stagewise.problem.division import RiskScore
from stagewise.problem.errors import ErrorCode, InvalidOutcome, InvalidProblem
from stagewise.problem.formatting import join_names, safe_repr, suggest_name, suggest_percent
from stagewise.problem.thresholds import AtLeast, TimesSafe, parse_threshold, slack_error
from stagewise.problem.timing import DROP, Drift, OutcomeWindow, can_drift, normalise_drift, parse_drift, parse_seconds


class Promise(StrEnum):
    """To whom a limit is promised, as a code that never changes.

    Example:
        >>> Promise("every_group") is Promise.EVERY_GROUP
        True
    """

    AVERAGE_USER = "average_user"  #: The average user who gets an action.
    EVERY_GROUP = "every_group"  #: The average user of every group who gets an action.
    EVERY_BUCKET = "every_bucket"  #: The average user of every bucket of a score who gets an action.
    EVERY_USER = "every_user"  #: Every user, if the form of the model is right.


def describe_promise(promise: Promise, division: str = "", form: str = "") -> str:
    """Return to whom a limit is promised; `division` is what groups or buckets are of, `form` that of the model.

    >>> describe_promise(Promise.EVERY_GROUP, "country and plan")
    'promised to the average user of every country and plan'
    """
    return {
        Promise.AVERAGE_USER: "promised to the average user who gets an action",
        Promise.EVERY_GROUP: f"promised to the average user of every {division}",
        Promise.EVERY_BUCKET: f"promised to the average user of every bucket of {division!r}"
        + (", if means do not fall with it" if form == "monotone" else ""),
        Promise.EVERY_USER: f"promised to every user, if the mean is {form} in the context",
    }[promise]


def build_promise_error(name: str, forms: Sequence[str]) -> InvalidProblem:
    """Return the error of a limit that does not say to whom it is promised; `forms` are models of every user's mean."""
    template = (
        "the limit of {name!r} must say to whom it is promised, since there is a context: model='rates', the average "
        "user who gets an action (fastest; some users may be far over); by='country', the average user of each group "
        "(slower); score='risk', that of each bucket of a risk score (slower); or model={forms}, each user, if means "
        "have that form (slowest)"
    )
    data = {"name": name, "forms": " or ".join(map(repr, forms))}
    return InvalidProblem(ErrorCode.PROMISE_NOT_CHOSEN, template, **data)


Model = Literal["linear", "rates"]
RewardModel = Literal["linear", "rates", "given"]
LimitModel = Literal["linear", "rates", "logistic"]
GIVEN = "given"  # the model of a reward that is neither reported nor learned
OnMismatch = Literal["warn", "stop"]
OnJump = Literal["recover", "stop"]


def parse_score(value: Any) -> RiskScore | None:
    """Return the score of a limit: its own, or from a name or a table of settings."""
    if value is None or isinstance(value, RiskScore):
        return value
    if isinstance(value, str):
        return RiskScore(str(value))
    score: RiskScore = parse_signal(RiskScore, value, "the score of a limit")
    return score


class Signal(StrictSettings):
    """Base of rewards and limits."""

    low: float
    window: str | float | None
    missing: float | Literal["drop"] | None
    by: str | Sequence[str] | None
    model: Any

    @property
    def is_reported(self) -> bool:
        """Whether outcomes of the signal are reported and learned; a given reward is neither."""
        return bool(self.model != GIVEN)

    @property
    def segment_columns(self) -> tuple[str, ...]:
        """The columns of the segment by which rates are kept.

        >>> Limit(0.02, by=["country", "plan"]).segment_columns
        ('country', 'plan')
        """
        return (self.by,) if isinstance(self.by, str) else tuple(self.by or ())

    @property
    def outcome_window(self) -> OutcomeWindow | None:
        """The window of the signal; None: outcomes have no deadline."""
        missing = self.low if self.missing is None else self.missing
        return None if self.window is None else OutcomeWindow(self.window, missing)


@dataclass(frozen=True)
class Reward(Signal):
    """The reward of a problem, and the range of its outcomes.

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> Reward("click", window="12h").outcome_window
        OutcomeWindow(duration='12h', missing=0.0)
    """

    name: str
    """The name of the signal."""
    low: float = 0.0
    """The smallest possible outcome."""
    high: float = 1.0
    """The largest possible outcome."""
    safe_bound: float | None = None
    """A lower bound on the safe action's mean; None: `low`."""
    model: RewardModel | None = None
    """The model of the mean: "linear" in the context or "rates" by action; None: chosen from the problem. "given": the
    reward is the score that a caller gives with `scores=`; no outcome of it is reported or learned."""
    window: str | float | None = None
    """The time after which a missing outcome counts as `missing`, such as "7d"; None: no deadline."""
    missing: float | Literal["drop"] | None = None
    """The value of a missing outcome; "drop": it is not learned; None: `low`."""
    by: str | Sequence[str] | None = None
    """The segment by which rates are kept: one column, such as "country", or several."""
    half_life: str | float | None = None
    """The time in which an outcome loses half of its weight, such as "30d", where the mean moves; the optimistic reward
    is then no proven bound. No limit depends on it. None: outcomes keep their weight."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", parse_by(self.by, check_name(self.name, "the reward's name")))
        check_signal(self, self.name)
        if self.half_life is not None:
            parse_seconds(self.half_life, f"the half-life of {self.name}")


@dataclass(frozen=True)
class Limit(Signal):
    """A limit on every round's expected cost, and the range of its outcomes.

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> Limit(0.02, safe_bound=0.001, window="7d").outcome_window
        OutcomeWindow(duration='7d', missing=0.0)
    """

    value: float | AtLeast | TimesSafe
    """The limit on the mean: a number, `AtLeast(…)` or `TimesSafe(…)`."""
    low: float = 0.0
    """The smallest possible outcome."""
    high: float = 1.0
    """The largest possible outcome."""
    safe_bound: float | None = None
    """An upper bound on the safe action's mean for every user (`AtLeast`: a lower bound); None: unknown."""
    model: LimitModel | None = None
    """"rates": promised to the average user who gets an action; "linear" or "logistic": to every user, if the mean has
    that form in the context. With a context one of `model` and `by` is needed."""
    window: str | float | None = None
    """The time after which a missing outcome counts as `missing`, such as "7d"; None: no deadline."""
    missing: float | Literal["drop"] | None = None
    """The value of a missing outcome; "drop": it is not learned; None: `low`."""
    by: str | Sequence[str] | None = None
    """The segment by which rates are kept: one column, such as "country", or several, whose combinations are the
    segments; promised to the average user of every segment."""
    score: str | RiskScore | None = None
    """The risk score by whose buckets rates are kept; promised to the average user of every bucket."""
    noise: float | None = None
    """R, for numbers that vary little around their means: outcomes are R-sub-Gaussian (normal ones have R as their
    standard deviation), where R is below half of the range; only for rates. None: they lie anywhere in the range."""
    drift: str | Sequence[str | float] | None = None
    """How far a mean may move: "0.005/30d" in proportion to time, ("0.01", "30d") within any time of that length, and
    for rates "jumps", where it is constant until it jumps, which is found later; None: means are constant."""
    on_jump: OnJump | None = None
    """If a mean moves further than its `drift`: "recover" or None holds back its action alone until it is known again;
    "stop" also plays the safe action until a person acknowledges it."""
    on_mismatch: OnMismatch | None = None
    """If it matters who gets an action, though the limit is promised to an average user: "stop" plays the safe action
    until a person acknowledges it; "warn" or None: `health` tells it."""
    name: str | None = field(default=None, compare=False)
    """The name of the signal, in a list of limits; a mapping from names to limits gives it."""

    def __post_init__(self) -> None:
        if self.name is not None:
            check_name(self.name, "the name of a limit")
        object.__setattr__(self, "by", parse_by(self.by, "a limit"))
        object.__setattr__(self, "score", parse_score(self.score))
        object.__setattr__(self, "drift", normalise_drift(self.drift))
        if self.on_mismatch is not None:
            check_choice(self.on_mismatch, get_args(OnMismatch), "on_mismatch")
        if self.on_jump is not None:
            check_choice(self.on_jump, get_args(OnJump), "on_jump")
        check_signal(self, "a limit")
        if self.on_jump is not None and self.modulus is None:
            raise InvalidProblem.unused(
                "on_jump", self.on_jump, "no drift is declared, so changes are tested otherwise"
            )
        clashes = {"by": self.by, "model": None if self.model == "rates" else self.model}
        for name, value in clashes.items():
            if self.score is not None and value is not None:
                fact, remedy = "its rates are kept by the buckets of a score", "leave one of them out"
                raise InvalidProblem.conflict(f"the {name} of a limit", value, fact, remedy)
        if self.noise is not None:
            self._check_noise()
        has_noise = self.noise is not None
        if self.modulus is not None and not can_drift(self.model, self.modulus.amount > 0.0, has_noise):
            fact = "a noise is declared" if has_noise else f"its model is {self.model!r}"
            remedy = "leave one of them out, since only rates may jump, and only rates and linear costs drift"
            raise InvalidProblem.conflict("the drift of a limit", self.drift, fact, remedy)

    def _check_noise(self) -> None:
        """Raise InvalidProblem for a noise that is out of range, or of a model that has none."""
        noise, most = check_positive(self.noise, "the noise of a limit"), 0.5 * (self.high - self.low)
        if not noise < most:
            rule = f"below {most:g}, half of the range of its outcomes, since any outcomes there have that noise"
            raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, "the noise of a limit", noise, rule)
        if self.model not in (None, "rates") or self.score is not None:
            fact = f"its model is {self.model!r}" if self.score is None else "its rates are kept by a score"
            remedy = "leave one of them out, since only rates by action and segment can have a noise"
            raise InvalidProblem.conflict("the noise of a limit", noise, fact, remedy)

    @property
    def modulus(self) -> Drift | None:
        """The declared drift; None: rates are constant."""
        return parse_drift(self.drift, "a limit")

    @property
    def at_least(self) -> bool:
        """Whether it is a lower limit."""
        return parse_threshold(self.value).at_least

    def with_number(self, number: float) -> Self:
        """Return a limit of the same kind with another number."""
        return replace(self, value=parse_threshold(self.value).with_number(number))


def check_signal(signal: Reward | Limit, name: str) -> None:
    """Raise InvalidProblem for invalid or conflicting settings."""
    low, high = check_range(signal.low, signal.high, name)
    for what, value in (
        ("safe_bound", signal.safe_bound),
        ("missing", None if is_dropped(signal.missing) else signal.missing),
    ):
        if value is not None and not low <= check_outcome(value, f"the {what} of {name}", InvalidProblem) <= high:
            rule = f"in the range of its outcomes, [{low:g}, {high:g}]"
            hint = suggest_percent(float(value)) if high == 1.0 else ""
            raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, f"the {what} of {name}", float(value), rule + hint)
    if signal.model is not None:
        models = get_args(LimitModel if isinstance(signal, Limit) else RewardModel)
        check_choice(signal.model, models, f"the model of {name}")
    if signal.outcome_window is None and signal.missing is not None:
        fact, remedy = "there is no window", "give one, since an outcome is missing only when its window closes"
        raise InvalidProblem.conflict(f"the missing value of {name}", signal.missing, fact, remedy)
    if not signal.is_reported:
        for what in ("safe_bound", "window", "by", *(["half_life"] if isinstance(signal, Reward) else [])):
            if getattr(signal, what) is not None:
                fact, remedy = "its model is 'given'", "leave it out, since no outcome of it is learned"
                raise InvalidProblem.conflict(f"the {what} of {name}", getattr(signal, what), fact, remedy)
    if signal.by is not None and signal.model not in (None, "rates"):
        fact = f"its rates are kept by {signal.by!r}"
        raise InvalidProblem.conflict(f"the model of {name}", signal.model, fact, "leave one of them out")


def parse_by(by: Any, name: str) -> str | tuple[str, ...] | None:
    """Return the columns of a signal's segments: one name, or several.

    >>> parse_by(["country"], "opt_out"), parse_by(["country", "plan"], "opt_out")
    ('country', ('country', 'plan'))
    """
    what = f"the segment of {name}"
    if by is None or isinstance(by, str):
        return None if by is None else check_name(by, what)
    columns = check_unique_names(by, f"segments of {name}")
    if not columns:
        raise InvalidProblem.must_be(ErrorCode.MISSING_VALUE, what, by, "one column or several")
    return columns[0] if len(columns) == 1 else columns


def is_dropped(missing: Any) -> bool:
    """Return whether missing outcomes are dropped."""
    return isinstance(missing, str) and missing == DROP


def scale_outcome(signal: Reward | Limit, name: str, value: Any) -> float:
    """Return an outcome scaled from [low, high] to [0, 1]."""
    outcome = value if type(value) is float else check_outcome(value, f"the {name!r}")
    if not signal.low <= outcome <= signal.high:  # false for NaN too
        percent = "; was it a percentage?" if signal.high == 1.0 and 1.0 < outcome <= 100.0 else ""
        template = (
            "the {name!r} is {outcome:.15g}, outside the declared range of its outcomes, [{low:g}, {high:g}]{percent}"
        )
        data = {"name": name, "outcome": outcome, "low": signal.low, "high": signal.high, "percent": percent}
        raise InvalidOutcome(ErrorCode.OUTCOME_OUT_OF_RANGE, template, **data)
    return (outcome - signal.low) / (signal.high - signal.low)


def check_limits(value: Any) -> dict[str, Limit]:
    """Return limits by name, from a mapping or from limits that have their names.

    >>> check_limits([Limit(0.02, name="opt_out")]) == check_limits({"opt_out": 0.02})
    True
    """
    listed = [value] if isinstance(value, Limit) else value
    if isinstance(listed, list | tuple) and all(isinstance(limit, Limit) and limit.name for limit in listed):
        check_unique_names([limit.name for limit in listed], "names of limits")
        value = {limit.name: limit for limit in listed}
    if not isinstance(value, Mapping) or not value:
        rule = "a mapping from names to Limit(...), or a list of Limit(..., name=...), with at least one limit"
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, "limits", value, rule)
    return {name: name_limit(name, limit) for name, limit in check_mapping(value, "limits").items()}


def name_limit(name: str, value: Any) -> Limit:
    """Return the limit with this name; a bare number, `AtLeast` or `TimesSafe` has no other settings."""
    check_name(name, "the name of a limit")
    if isinstance(value, int | float | AtLeast | TimesSafe) and not isinstance(value, bool):
        return Limit(value, name=name)
    if not isinstance(value, Limit):
        rule = f"Limit({safe_repr(value)}, ...)"
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, f"the limit of {name!r}", value, rule)
    if value.name not in (None, name):
        fact, remedy = f"the mapping calls it {name!r}", "leave one of them out"
        raise InvalidProblem.conflict("the name of a limit", value.name, fact, remedy)
    return replace(value, name=name)


def scale_limit(name: str, limit: Limit) -> Any:
    """Return a limit for outcomes scaled to [0, 1]."""
    below, relative, value = parse_threshold(limit.value)
    if relative:
        if limit.safe_bound is None:
            problem = "the limit of {name!r} is relative to the safe action, whose mean is unknown; give its safe_bound"
            raise InvalidProblem(ErrorCode.SAFE_COST_UNKNOWN, problem, name=name)
        value = check_number(value, f"the factor of {name!r}") * limit.safe_bound
    exact = check_number(value, f"the limit of {name!r}")
    if not limit.low < exact < limit.high:
        hint = suggest_percent(exact) if limit.high == 1.0 else ""
        rule = (
            f"within the range of its outcomes, [{limit.low:g}, {limit.high:g}], or it never binds or never holds{hint}"
        )
        raise InvalidProblem.must_be(ErrorCode.LIMIT_NEVER_BINDS, f"the limit of {name!r}", exact, rule)
    if limit.safe_bound is not None and not (limit.safe_bound > exact if below else limit.safe_bound < exact):
        raise slack_error(
            f"the safe action's {name!r}", limit.safe_bound, not below, f"its limit, {describe_limit(limit)}"
        )
    ends = (exact - limit.low) / (limit.high - limit.low)
    return AtLeast(ends) if below else ends


def describe_limit(limit: Limit) -> str:
    below, relative, value = parse_threshold(limit.value)
    of = "" if limit.safe_bound is None else f" {limit.safe_bound:g}"
    return f"{'at least' if below else 'at most'} {value:g}" + f" times the safe action's{of}" * relative


def parse_signal(kind: Any, entry: Any, what: str) -> Any:
    """Return a Reward or a Limit from a table of settings."""
    if not isinstance(entry, Mapping):
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, what, entry, "a table of settings")
    names = [f.name for f in fields(kind)]
    for name in entry:
        if name not in names:
            raise InvalidProblem.must_be_one_of(ErrorCode.UNKNOWN_SETTING, f"a setting of {what}", name, names)
    if names[0] not in entry:
        raise InvalidProblem(ErrorCode.MISSING_VALUE, "{what} lacks {first!r}", what=what, first=names[0])
    return kind(**entry)


def parse_limit(entry: Any, name: str) -> Limit:
    """Return a limit from a number or a table with `at_most`, `at_least` or `times_safe`."""
    what = f"the limit of {name!r}"
    if isinstance(entry, int | float) and not isinstance(entry, bool):
        return Limit(float(entry))
    if not isinstance(entry, Mapping):
        raise InvalidProblem.must_be(ErrorCode.WRONG_TYPE, what, entry, "a number or a table of settings")
    ways: dict[str, Any] = {"at_most": None, "value": None, "at_least": AtLeast, "times_safe": TimesSafe}
    settings = dict(entry)
    chosen = [way for way in ways if way in settings]
    if len(chosen) != 1:
        others = [name for name in settings if name not in ways and name not in {f.name for f in fields(Limit)}]
        hint = next((match for name in others if (match := suggest_name(name, list(ways)))), "")
        has = join_names(chosen) if chosen else "no number"
        template = "{what} has {has}; it needs one of at_most, at_least and times_safe{hint}"
        raise InvalidProblem(ErrorCode.CONFLICTING_SETTINGS, template, what=what, has=has, hint=hint)
    wrap, value = ways[chosen[0]], settings.pop(chosen[0])
    limit: Limit = parse_signal(Limit, {"value": value if wrap is None else wrap(value), **settings}, what)
    return limit


def encode_signal(signal: Reward | Limit) -> dict[str, Any]:
    """Return the settings that are not None."""
    settings = {f.name: getattr(signal, f.name) for f in fields(signal)}
    settings |= {name: value.to_entry() for name, value in settings.items() if isinstance(value, RiskScore)}
    lists = {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}
    return {name: value for name, value in lists.items() if value is not None}


def encode_limit(limit: Limit) -> dict[str, Any]:
    """Return a limit as `parse_limit` reads it."""
    settings, (below, relative, value) = encode_signal(limit), parse_threshold(limit.value)
    if below and relative:
        problem = "a lower limit relative to the safe action cannot be written to a file; give the limit as a number"
        raise InvalidProblem(ErrorCode.NOT_SERIALIZABLE, problem)
    way = "at_least" if below else "times_safe" if relative else "at_most"
    for known in ("value", "name"):  # the table has the name
        settings.pop(known, None)
    return {way: value if math.isfinite(value) else None, **settings}
