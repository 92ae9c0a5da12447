"""What a user declares of each signal: the reward, and every limit, in their own words and units."""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, get_args

from stagewise.problem.checks import number, observed, one_of, shown
from stagewise.problem.errors import InvalidOutcome, InvalidProblem
from stagewise.problem.thresholds import AtLeast, RelativeToSafe, ThresholdParts, taken_apart
from stagewise.problem.window import DROP, Window
from stagewise.problem.words import nearest, percent

Model = Literal["linear", "rates"]
WAYS = {  # what a limit's number is called in a file
    "at_most": "Limit(0.02, ...)",
    "at_least": "Limit(AtLeast(0.9), ...)",
    "times_safe": "Limit(RelativeToSafe(1.1), ...)",
}


def title(value: Any, what: str) -> str:
    """Return a name that can stand in a table, a file and a call."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable() or len(value) > 100:
        raise InvalidProblem(f"{what} is {shown(value)}; it must be a name: text of 1 to 100 printable characters")
    return value


class Declared:
    """What is declared by settings with names; one that there is none of is refused with the nearest."""

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        known = [f.name for f in fields(cls)]  # type: ignore[arg-type]
        unknown = next((name for name in settings if name not in known), None)
        if unknown is not None:
            meant = WAYS.get(unknown, "") if "value" in known else ""
            other = f"; write {meant}" if meant else nearest(unknown, known)
            raise InvalidProblem(f"{cls.__name__} has no {unknown!r}; it has {', '.join(known)}{other}")
        return super().__new__(cls)


class Signal(Declared):
    """What rewards and limits answer alike."""

    low: float
    window: str | float | None
    missing: float | Literal["drop"] | None

    @property
    def waits(self) -> Window | None:
        """How long an outcome is waited for; None: for ever."""
        missing = self.low if self.missing is None else self.missing
        return None if self.window is None else Window(self.window, missing)


@dataclass(frozen=True)
class Reward(Signal):
    """What is wanted, and between which numbers every single outcome of it lies.

    >>> Reward("click", window="12h").waits
    Window(length='12h', missing=0.0)
    """

    name: str
    """What it is called."""
    low: float = 0.0
    """The least that one outcome can be."""
    high: float = 1.0
    """The most that one outcome can be."""
    safe: float | None = None
    """The least that the safe action's mean is; None: `low`."""
    model: Model | None = None
    """How the mean depends on user and action: "linear" in the context, "rates" by action; None: as fits."""
    window: str | float | None = None
    """After how long an outcome that was not reported counts as `missing`, such as "7d"; None: it is waited for."""
    missing: float | Literal["drop"] | None = None
    """What it counts as then; "drop": nothing is learned of it; None: `low`."""
    by: str | None = None
    """By which of a user's segments its rates are kept, such as "country"."""

    def __post_init__(self) -> None:
        title(self.name, "the reward's name")
        check_signal(self, self.name)


@dataclass(frozen=True)
class Limit(Signal):
    """What every round's expected cost must stay under, and between which numbers every single outcome of it lies.

    >>> Limit(0.02, safe=0.001, window="7d").waits
    Window(length='7d', missing=0.0)
    """

    value: float | AtLeast | RelativeToSafe
    """The limit on the mean: at most this number; `AtLeast(…)`: at least; `RelativeToSafe(…)`: times the safe one's."""
    low: float = 0.0
    """The least that one outcome can be."""
    high: float = 1.0
    """The most that one outcome can be."""
    safe: float | None = None
    """The most that the safe action's mean is (`AtLeast`: the least) for every user; None: unknown, learned first."""
    model: Model | None = None
    """How the mean depends on user and action: "linear" in the context, "rates" by action; None: as fits."""
    window: str | float | None = None
    """After how long an outcome that was not reported counts as `missing`, such as "7d"; None: it is waited for."""
    missing: float | Literal["drop"] | None = None
    """What it counts as then; "drop": nothing is learned of it; None: `low`, as of what was not reported."""
    by: str | None = None
    """By which of a user's segments its rates are kept; the limit then holds in every segment by itself."""

    def __post_init__(self) -> None:
        check_signal(self, "a limit")

    @property
    def parts(self) -> ThresholdParts:
        """Its side, its number, and whether that is times the safe action's own."""
        return taken_apart(self.value)

    @property
    def at_least(self) -> bool:
        """Whether the mean must stay above the limit, instead of under it."""
        return self.parts.at_least

    def with_number(self, number: float) -> Self:
        """Return a limit of the same kind with another number."""
        return replace(self, value=self.parts.with_number(number))


def check_signal(signal: Reward | Limit, name: str) -> None:
    """Refuse what cannot be meant."""
    low, high = number(signal.low, f"the low of {name}"), number(signal.high, f"the high of {name}")
    if not low < high:
        raise InvalidProblem(f"outcomes of {name} lie between {low:g} and {high:g}; low must be below high")
    for what, value in (("safe", signal.safe), ("missing", None if drops(signal.missing) else signal.missing)):
        if value is not None and not low <= observed(value, f"the {what} of {name}", InvalidProblem) <= high:
            share = percent(float(value)) if high == 1.0 else ""
            raise InvalidProblem(
                f"the {what} of {name} is {value:.15g}, outside [{low:g}, {high:g}], where every outcome of it "
                f"lies{share}"
            )
    if signal.model is not None:
        one_of(signal.model, get_args(Model), f"the model of {name}")
    if signal.waits is None and signal.missing is not None:
        raise InvalidProblem(f"{name} has a value for what is missing and no window; nothing is missing until one ends")
    if signal.by is not None:
        title(signal.by, f"the segment of {name}")
        if signal.model == "linear":
            raise InvalidProblem(f"{name} is linear and by {signal.by!r}; only rates are kept by segment")


def drops(missing: Any) -> bool:
    """Say whether what is missing is left out."""
    return isinstance(missing, str) and missing == DROP


def scaled(signal: Reward | Limit, name: str, value: Any) -> float:
    """Return an outcome in [0, 1]: how far it lies between low and high."""
    seen = value if type(value) is float else observed(value, f"the {name!r}")
    if not signal.low <= seen <= signal.high:  # false for NaN too
        percent = "; was it a percentage?" if signal.high == 1.0 and 1.0 < seen <= 100.0 else ""
        raise InvalidOutcome(
            f"the {name!r} is {seen:.15g}, outside [{signal.low:g}, {signal.high:g}], which the problem declares for "
            f"every single outcome{percent}"
        )
    return (seen - signal.low) / (signal.high - signal.low)
