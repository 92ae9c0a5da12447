"""Declarations of a problem's signals: the reward and the limits, and both as JSON or TOML values."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, get_args

from stagewise.problem.checks import check_choice, check_mapping, check_name, check_number, check_outcome
from stagewise.problem.errors import ErrorCode, InvalidOutcome, InvalidProblem
from stagewise.problem.formatting import join_names, safe_repr, suggest_name, suggest_percent
from stagewise.problem.thresholds import AtLeast, RelativeToSafe, ThresholdParts, parse_threshold
from stagewise.problem.window import DROP, OutcomeWindow

Model = Literal["linear", "rates"]
WAYS = {  # the names of a limit's number in a file
    "at_most": "Limit(0.02, ...)",
    "at_least": "Limit(AtLeast(0.9), ...)",
    "times_safe": "Limit(RelativeToSafe(1.1), ...)",
}


class StrictSettings:
    """A class that rejects unknown settings and suggests the closest name."""

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        names = [f.name for f in fields(cls)]  # type: ignore[arg-type]
        unknown = next((name for name in settings if name not in names), None)
        if unknown is not None:
            example = WAYS.get(unknown, "") if "value" in names else ""
            other = f"; write {example}" if example else suggest_name(unknown, names)
            raise InvalidProblem(
                ErrorCode.UNKNOWN_SETTING,
                "{name} has no {unknown!r}; it has {names}{other}",
                name=cls.__name__,
                unknown=unknown,
                names=", ".join(names),
                other=other,
            )
        return super().__new__(cls)


class Signal(StrictSettings):
    """Base of rewards and limits."""

    low: float
    window: str | float | None
    missing: float | Literal["drop"] | None

    @property
    def waits(self) -> OutcomeWindow | None:
        """The window of the signal; None: outcomes have no deadline."""
        missing = self.low if self.missing is None else self.missing
        return None if self.window is None else OutcomeWindow(self.window, missing)


@dataclass(frozen=True)
class Reward(Signal):
    """The reward of a problem, and the range of its outcomes.

    Args:
        name: The name of the signal.
        low: The smallest possible outcome.
        high: The largest possible outcome.
        safe: A lower bound on the safe action's mean; None: `low`.
        model: "linear" in the context or "rates" by action; None: chosen from the problem.
        window: The time after which a missing outcome counts as `missing`, such as "7d"; None: no deadline.
        missing: The value of a missing outcome; "drop": it is not learned; None: `low`.
        by: The segment by which rates are kept, such as "country".

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> Reward("click", window="12h").waits
        OutcomeWindow(length='12h', missing=0.0)
    """

    name: str
    """The name of the signal."""
    low: float = 0.0
    """The smallest possible outcome."""
    high: float = 1.0
    """The largest possible outcome."""
    safe: float | None = None
    """A lower bound on the safe action's mean; None: `low`."""
    model: Model | None = None
    """The model of the mean: "linear" in the context or "rates" by action; None: chosen from the problem."""
    window: str | float | None = None
    """The time after which a missing outcome counts as `missing`, such as "7d"; None: no deadline."""
    missing: float | Literal["drop"] | None = None
    """The value of a missing outcome; "drop": it is not learned; None: `low`."""
    by: str | None = None
    """The segment by which rates are kept, such as "country"."""

    def __post_init__(self) -> None:
        check_name(self.name, "the reward's name")
        check_signal(self, self.name)


@dataclass(frozen=True)
class Limit(Signal):
    """A limit on every round's expected cost, and the range of its outcomes.

    Args:
        value: The limit on the mean: at most this number; `AtLeast(…)`: at least; `RelativeToSafe(…)`: a multiple of
            the safe action's mean.
        low: The smallest possible outcome.
        high: The largest possible outcome.
        safe: An upper bound on the safe action's mean for every user (`AtLeast`: a lower bound); None: unknown,
            estimated first.
        model: "linear" in the context or "rates" by action; None: chosen from the problem.
        window: The time after which a missing outcome counts as `missing`, such as "7d"; None: no deadline.
        missing: The value of a missing outcome; "drop": it is not learned; None: `low`.
        by: The segment by which rates are kept; the limit then holds in every segment.

    Raises:
        InvalidProblem: A setting is invalid or conflicts with another.

    Example:
        >>> Limit(0.02, safe=0.001, window="7d").waits
        OutcomeWindow(length='7d', missing=0.0)
    """

    value: float | AtLeast | RelativeToSafe
    """The limit on the mean: a number, `AtLeast(…)` or `RelativeToSafe(…)`."""
    low: float = 0.0
    """The smallest possible outcome."""
    high: float = 1.0
    """The largest possible outcome."""
    safe: float | None = None
    """An upper bound on the safe action's mean for every user (`AtLeast`: a lower bound); None: unknown."""
    model: Model | None = None
    """The model of the mean: "linear" in the context or "rates" by action; None: chosen from the problem."""
    window: str | float | None = None
    """The time after which a missing outcome counts as `missing`, such as "7d"; None: no deadline."""
    missing: float | Literal["drop"] | None = None
    """The value of a missing outcome; "drop": it is not learned; None: `low`."""
    by: str | None = None
    """The segment by which rates are kept; the limit then holds in every segment."""

    def __post_init__(self) -> None:
        check_signal(self, "a limit")

    @property
    def parts(self) -> ThresholdParts:
        """Its side, its number, and whether it is relative to the safe action."""
        return parse_threshold(self.value)

    @property
    def at_least(self) -> bool:
        """Whether it is a lower limit."""
        return self.parts.at_least

    def with_number(self, number: float) -> Self:
        """Return a limit of the same kind with another number."""
        return replace(self, value=self.parts.with_number(number))


def check_signal(signal: Reward | Limit, name: str) -> None:
    """Raise InvalidProblem for invalid or conflicting settings."""
    low, high = check_number(signal.low, f"the low of {name}"), check_number(signal.high, f"the high of {name}")
    if not low < high:
        raise InvalidProblem(
            ErrorCode.OUT_OF_RANGE,
            "the range of {name} is from {low:g} to {high:g}; low must be below high",
            name=name,
            low=low,
            high=high,
        )
    for what, value in (("safe", signal.safe), ("missing", None if is_dropped(signal.missing) else signal.missing)):
        if value is not None and not low <= check_outcome(value, f"the {what} of {name}", InvalidProblem) <= high:
            share = suggest_percent(float(value)) if high == 1.0 else ""
            raise InvalidProblem(
                ErrorCode.OUT_OF_RANGE,
                "the {what} of {name} is {value:.15g}, outside the range of its outcomes, [{low:g}, {high:g}]{share}",
                what=what,
                name=name,
                value=value,
                low=low,
                high=high,
                share=share,
            )
    if signal.model is not None:
        check_choice(signal.model, get_args(Model), f"the model of {name}")
    if signal.waits is None and signal.missing is not None:
        raise InvalidProblem(
            ErrorCode.CONFLICTING_SETTINGS,
            "{name} has a missing value and no window; give a window, since an outcome is missing "
            "only when its window closes",
            name=name,
        )
    if signal.by is not None:
        check_name(signal.by, f"the segment of {name}")
        if signal.model == "linear":
            raise InvalidProblem(
                ErrorCode.CONFLICTING_SETTINGS,
                "{name} is linear and is kept by {by!r}; only rates can be kept by segment",
                name=name,
                by=signal.by,
            )


def is_dropped(missing: Any) -> bool:
    """Return whether missing outcomes are dropped."""
    return isinstance(missing, str) and missing == DROP


def scale_outcome(signal: Reward | Limit, name: str, value: Any) -> float:
    """Return an outcome scaled from [low, high] to [0, 1]."""
    outcome = value if type(value) is float else check_outcome(value, f"the {name!r}")
    if not signal.low <= outcome <= signal.high:  # false for NaN too
        percent = "; was it a percentage?" if signal.high == 1.0 and 1.0 < outcome <= 100.0 else ""
        raise InvalidOutcome(
            ErrorCode.OUTCOME_OUT_OF_RANGE,
            "the {name!r} is {outcome:.15g}, outside the declared range of its outcomes, [{low:g}, {high:g}]{percent}",
            name=name,
            outcome=outcome,
            low=signal.low,
            high=signal.high,
            percent=percent,
        )
    return (outcome - signal.low) / (signal.high - signal.low)


def check_limits(value: Any) -> dict[str, Limit]:
    """Return limits by name."""
    if not isinstance(value, Mapping) or not value:
        raise InvalidProblem(
            ErrorCode.WRONG_TYPE,
            "limits is {value}; it must be a mapping from names to Limit(...), with at least one limit",
            value=safe_repr(value),
        )
    limits = check_mapping(value, "limits")
    for name, limit in limits.items():
        check_name(name, "the name of a limit")
        if not isinstance(limit, Limit):
            raise InvalidProblem(
                ErrorCode.WRONG_TYPE,
                "the limit of {name!r} is {limit}; it must be Limit({limit}, ...)",
                name=name,
                limit=safe_repr(limit),
            )
    return limits


def scale_limit(name: str, limit: Limit) -> Any:
    """Return a limit for outcomes scaled to [0, 1]."""
    below, relative, value = limit.parts
    if relative:
        if limit.safe is None:
            raise InvalidProblem(
                ErrorCode.SAFE_COST_UNKNOWN,
                "the limit of {name!r} is relative to the safe action, whose mean is unknown; give the mean as safe",
                name=name,
            )
        value = check_number(value, f"the factor of {name!r}") * limit.safe
    if isinstance(value, str):
        raise InvalidProblem(
            ErrorCode.WRONG_TYPE,
            "the limit of {name!r} is {value}; it must be a number, with two percent written as 0.02",
            name=name,
            value=safe_repr(value),
        )
    exact = check_number(value, f"the limit of {name!r}")
    if not limit.low < exact < limit.high:
        share = suggest_percent(exact) if limit.high == 1.0 else ""
        raise InvalidProblem(
            ErrorCode.LIMIT_NEVER_BINDS,
            "the limit of {name!r} is {exact:g} and its outcomes lie in [{low:g}, {high:g}], so the "
            "limit never binds or never holds{share}",
            name=name,
            exact=exact,
            low=limit.low,
            high=limit.high,
            share=share,
        )
    if limit.safe is not None and not (limit.safe > exact if below else limit.safe < exact):
        side = "above" if below else "below"
        raise InvalidProblem(
            ErrorCode.SAFE_ACTION_OVER_LIMIT,
            "the safe action's {name!r} is {safe:g}, and its limit is {limit}; the safe action must "
            "be strictly {side} the limit, since learning needs slack",
            name=name,
            safe=limit.safe,
            limit=describe_limit(limit),
            side=side,
        )
    ends = (exact - limit.low) / (limit.high - limit.low)
    return AtLeast(ends) if below else ends


def describe_limit(limit: Limit) -> str:
    """Return a limit as text."""
    below, relative, value = limit.parts
    word = "at least" if below else "at most"
    if not relative:
        return f"{word} {value:g}"
    of = "the safe action's" if limit.safe is None else f"the safe action's {limit.safe:g}"
    return f"{word} {value:g} times {of}"


def parse_signal(kind: Any, entry: Any, what: str) -> Any:
    """Return a Reward or a Limit from a table of settings."""
    if not isinstance(entry, Mapping):
        raise InvalidProblem(
            ErrorCode.WRONG_TYPE, "{what} is {entry}; it must be a table of settings", what=what, entry=safe_repr(entry)
        )
    names = [f.name for f in fields(kind)]
    unknown = next((name for name in entry if name not in names), None)
    if unknown is not None:
        raise InvalidProblem(
            ErrorCode.UNKNOWN_SETTING,
            "{what} has {unknown}, which is not one of {names}{unknown_2}",
            what=what,
            unknown=safe_repr(unknown),
            names=join_names(names),
            unknown_2=suggest_name(unknown, names),
        )
    try:
        return kind(**entry)
    except TypeError:
        first = "name" if kind is Reward else "value"
        raise InvalidProblem(ErrorCode.MISSING_VALUE, "{what} lacks {first!r}", what=what, first=first) from None


def parse_limit(entry: Any, name: str) -> Limit:
    """Return a limit from a number or a table with `at_most`, `at_least` or `times_safe`."""
    what = f"the limit of {name!r}"
    if isinstance(entry, int | float) and not isinstance(entry, bool):
        return Limit(float(entry))
    if not isinstance(entry, Mapping):
        raise InvalidProblem(
            ErrorCode.WRONG_TYPE,
            "{what} is {entry}; it must be a number or a table of settings",
            what=what,
            entry=safe_repr(entry),
        )
    ways: dict[str, Any] = {"at_most": None, "value": None, "at_least": AtLeast, "times_safe": RelativeToSafe}
    settings = dict(entry)
    chosen = [wrap for wrap in ways if wrap in settings]
    if len(chosen) != 1:
        others = [name for name in settings if name not in ways and name not in {f.name for f in fields(Limit)}]
        hint = next((match for name in others if (match := suggest_name(name, list(ways)))), "")
        has = f"has {join_names(chosen)}" if chosen else "has no number"
        raise InvalidProblem(
            ErrorCode.CONFLICTING_SETTINGS,
            "{what} {has}; it needs one of at_most, at_least and times_safe{hint}",
            what=what,
            has=has,
            hint=hint,
        )
    wrap, value = ways[chosen[0]], settings.pop(chosen[0])
    limit: Limit = parse_signal(Limit, {"value": value if wrap is None else wrap(value), **settings}, what)
    return limit


def encode_signal(signal: Reward | Limit) -> dict[str, Any]:
    """Return the settings that are not None."""
    settings = {f.name: getattr(signal, f.name) for f in fields(signal)}
    return {name: value for name, value in settings.items() if value is not None}


def encode_limit(limit: Limit) -> dict[str, Any]:
    """Return a limit as `parse_limit` reads it."""
    settings, (below, relative, value) = encode_signal(limit), limit.parts
    if below and relative:
        raise InvalidProblem(
            ErrorCode.NOT_SERIALIZABLE,
            "a lower limit relative to the safe action cannot be written to a file; give the limit as a number",
        )
    way = "at_least" if below else "times_safe" if relative else "at_most"
    del settings["value"]
    return {way: value if math.isfinite(value) else None, **settings}
