"""Declarations of a problem's signals: the reward and the limits."""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, get_args

from stagewise.problem.checks import check_choice, check_number, check_outcome, safe_repr
from stagewise.problem.errors import ErrorCode, InvalidOutcome, InvalidProblem
from stagewise.problem.formatting import suggest_name, suggest_percent
from stagewise.problem.thresholds import AtLeast, RelativeToSafe, ThresholdParts, parse_threshold
from stagewise.problem.window import DROP, OutcomeWindow

Model = Literal["linear", "rates"]
WAYS = {  # the names of a limit's number in a file
    "at_most": "Limit(0.02, ...)",
    "at_least": "Limit(AtLeast(0.9), ...)",
    "times_safe": "Limit(RelativeToSafe(1.1), ...)",
}


def check_name(value: Any, what: str) -> str:
    """Return a valid name."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > 100:
        raise InvalidProblem(
            ErrorCode.INVALID_NAME,
            "{what} is {value}; it must be a name: text of 1 to 100 printable characters",
            what=what,
            value=safe_repr(value),
        )
    return value


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
