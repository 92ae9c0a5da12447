"""Reasons for playing the safe action: a code, its data, and the one function that makes the sentence."""

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from stagewise.problem.formatting import format_average, format_count


class FallbackReason(StrEnum):
    """Why only the safe action is played.

    The codes never change; the sentences may. Compare codes.

    Example:
        >>> FallbackReason("no_better_action") is FallbackReason.NO_BETTER_ACTION, str(FallbackReason.KILLED)
        (True, 'killed')
    """

    NO_BETTER_ACTION = "no_better_action"
    """The safe action has the highest upper confidence bound."""
    SAFE_ACTION_COST_UNCERTAIN = "safe_action_cost_uncertain"
    """The cost of the safe action is still being estimated."""
    NO_CERTIFIED_ACTION = "no_certified_action"
    """No action of the list is certified safe."""
    BOUNDS_NOT_FINITE = "bounds_not_finite"
    """The confidence bounds are not finite."""
    NO_PLAUSIBLE_FUNCTION = "no_plausible_function"
    """No function of a class explains the data."""
    SOLVER_FAILED = "solver_failed"
    """The solver found no mixture."""
    HORIZON_EXCEEDED = "horizon_exceeded"
    """The horizon that the bounds were made for has passed."""
    MIXTURE_WEIGHT_UNDERFLOW = "mixture_weight_underflow"
    """The safe weight of every better action is below floating-point precision."""
    PROPOSAL_NOT_CERTIFIED = "proposal_not_certified"
    """Nothing of what was proposed is certified safe."""
    ALWAYS_SAFE = "always_safe"
    """The policy plays only the safe action."""
    CUSTOM = "custom"
    """A custom policy gives its own sentence as `message`."""
    ASSUMPTION_CONTRADICTED = "assumption_contradicted"
    """The data contradict a declared value; `found` is a `Contradiction`, `limit` the limit concerned."""
    KILLED = "killed"
    """A person stopped the experiment."""
    TRIPPED = "tripped"
    """The server stopped the experiment; `trip` is a `TripReason`."""
    EXPERIMENT_OFF = "experiment_off"
    """The experiment is off."""
    SHADOW = "shadow"
    """The policy's choice is logged and not played."""
    OUTSIDE_CANARY = "outside_canary"
    """The decision is outside the canary's share."""
    SERVER_NOT_READY = "server_not_ready"
    """The server has not read its log yet."""
    DECISION_FAILED = "decision_failed"
    """The server failed to decide because of a bug."""
    LOG_WRITE_FAILED = "log_write_failed"
    """The store could not be written to."""
    SERVER_UNAVAILABLE = "server_unavailable"
    """The client got no usable answer."""


class TripReason(StrEnum):
    """Why the server stopped an experiment by itself.

    Example:
        >>> str(TripReason.FEEDBACK_STOPPED)
        'feedback_stopped'
    """

    OBSERVED_COST_ABOVE_LIMIT = "observed_cost_above_limit"
    """Observed outcomes exceed a limit; the deviation is statistically significant."""
    FEEDBACK_STOPPED = "feedback_stopped"
    """No outcomes arrive any more."""
    SIGNAL_STOPPED = "signal_stopped"
    """One signal of one action does not arrive any more."""


TRIP_CODES = frozenset(map(str, TripReason))


class Contradiction(StrEnum):
    """Which declared value the data contradict.

    Example:
        >>> str(Contradiction.SAFE_COST)
        'safe_cost'
    """

    MEAN_COST_BOUND = "mean_cost_bound"
    """A mean exceeds its declared bound."""
    NOISE = "noise"
    """The residuals are larger than the declared noise allows."""
    NO_LINEAR_MEAN = "no_linear_mean"
    """No linear mean within the declared bounds explains the data."""
    SAFE_COST = "safe_cost"
    """Outcomes of the safe action contradict its declared cost."""
    SAFE_COST_OF_A_USER = "safe_cost_of_a_user"
    """The safe action costs one user more than the value declared for every user."""
    SAFE_COST_OF_A_ROUND = "safe_cost_of_a_round"
    """A round's safe action costs more than declared."""
    SAFE_COST_SO_FAR = "safe_cost_so_far"
    """The running mean of the safe action's outcomes contradicts its declared cost."""
    SAFE_ACTION_UNSAFE = "safe_action_unsafe"
    """The safe action itself violates the limit."""
    LIMIT_SO_FAR = "limit_so_far"
    """The running mean over all decisions violates the limit."""
    LIMIT_NEVER_BINDS = "limit_never_binds"
    """The limit is beyond the bound on means, so it never binds."""
    DRIFT = "drift"
    """A mean changed over time."""
    CHANGE = "change"
    """The mean of an action moved further than declared; what is older is forgotten."""
    MISMATCH = "mismatch"
    """It matters who gets an action, though the limit is promised to an average user: halves of the users differ."""
    MEAN_FORM = "mean_form"
    """Outcomes exceed the upper ends that hold for every user if the mean has its declared form."""
    POOLING = "pooling"
    """Means fall from one bucket of a score to a later one, so its buckets are no longer pooled."""


Details = Mapping[str, Any]
"""The data of a code as JSON holds them: texts, booleans and numbers (None for a number that is not finite)."""
Message = str | Callable[[Details], str]
"""A template, or a function of the data."""


class ReasonDetails(NamedTuple):
    """A reason with its data.

    Attributes:
        reason: The code; a `TripReason` where a server stopped an experiment.
        details: The data of the sentence, as JSON holds them.

    Example:
        >>> cause = ReasonDetails.of(FallbackReason.OUTSIDE_CANARY, share=0.1)
        >>> cause.message
        'canary: outside the 0.1 of decisions that the policy makes'
        >>> ReasonDetails.from_json(cause.to_json()) == cause
        True
    """

    reason: FallbackReason | TripReason
    details: Mapping[str, Any] = {}

    @classmethod
    def of(cls, reason: FallbackReason | TripReason, **details: Any) -> "ReasonDetails":
        """Build a cause from a reason and its data.

        Args:
            reason: The code.
            **details: The data; NumPy numbers become Python's, numbers that are not finite become None.

        Returns:
            The cause.

        Example:
            >>> ReasonDetails.of(FallbackReason.CUSTOM, message="night").details
            {'message': 'night'}
        """
        return cls(reason, {name: to_json_scalar(value) for name, value in details.items()})

    @classmethod
    def from_json(cls, content: Any) -> "ReasonDetails":
        """Read what `to_json` returned.

        Args:
            content: A pair of the code and its data.

        Returns:
            The cause.

        Raises:
            ValueError: The code is unknown (LookupError, TypeError or AttributeError where data are missing or of
                another type).

        Example:
            >>> ReasonDetails.from_json(["experiment_off", {}]).reason is FallbackReason.EXPERIMENT_OFF
            True
        """
        reason, details = content
        cause = cls(parse_reason(reason), {str(name): value for name, value in details.items()})
        build_message(*cause)  # raises where data are missing
        return cause

    @property
    def message(self) -> str:
        """The sentence for people."""
        return build_message(self.reason, self.details)

    @property
    def contradicts(self) -> bool:
        """Whether the data contradict a declared value."""
        return self.reason is FallbackReason.ASSUMPTION_CONTRADICTED

    def to_json(self) -> list[Any]:
        """Return the code and its data as JSON holds them.

        Returns:
            A list of two: the code as text and a dictionary of the data.

        Example:
            >>> ReasonDetails.of(FallbackReason.OUTSIDE_CANARY, share=0.1).to_json()
            ['outside_canary', {'share': 0.1}]
        """
        return [str(self.reason), dict(self.details)]


def parse_reason(code: Any) -> FallbackReason | TripReason:
    """Return the reason of a code, or raise ValueError."""
    return TripReason(code) if code in TRIP_CODES else FallbackReason(code)


def to_json_scalar(value: Any) -> Any:
    """Return a value as JSON holds it: NumPy numbers as Python's, None for a number that is not finite."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, StrEnum):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def build_message(reason: FallbackReason | TripReason, details: Details) -> str:
    """Return the sentence of a code and its data; no other function makes one.

    >>> build_message(FallbackReason.EXPERIMENT_OFF, {})
    'the experiment is off'
    """
    return make_text(MESSAGES[reason], details)


class Number:
    """A number of a sentence: {x} as `g`, {x:.3g} as the format says, {x:outcome} with its noun."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __format__(self, spec: str) -> str:
        is_noun = len(spec) > 1 and spec.isalpha()
        return format_count(self.value, spec) if is_noun else format_number(self.value, spec or "g")


def make_text(message: Message, details: Details, **more: str) -> str:
    """Return the text of a template, or of a function of the data.

    A template knows the words for both sides of a limit: {allowed}, {forbidden}, and {beyond} for a bound of a mean.
    """
    if not isinstance(message, str):
        return message(details)
    sides = ("at most", "above", "at least") if details.get("at_most", True) else ("at least", "below", "at most")
    words = dict(zip(("allowed", "forbidden", "beyond"), sides, strict=True)) | more
    numbers = {name: value if isinstance(value, str) else Number(value) for name, value in details.items()}
    return message.format_map(words | numbers)


def format_number(value: Any, spec: str = "g") -> str:
    """Return a number of the data as text."""
    return "no finite number" if value is None else format(value, spec)


def describe_safe_cost(details: Details) -> str:
    average = format_average(details["count"], format_number(details["mean"], ".3g"), " of it")
    return make_text("the safe action's {limit!r} is declared {declared}, but {average}", details, average=average)


def describe_safe_cost_of_a_user(details: Details) -> str:
    overall = format_average(details["count"], format_number(details["mean"], ".3g"))
    template = (
        "the safe action's {limit!r} is declared {allowed} {declared} for every user, but for one user it is {beyond} "
        "{found_at:.3g} (over all users {overall})"
    )
    return make_text(template, details, overall=overall)


def describe_drift(details: Details) -> str:
    return f"the mean of {details['limit']!r} changed: {describe_move(details)}"


def describe_move(details: Details) -> str:
    """Return a mean before and after its change."""
    whose = "" if details["action"] is None else f"of {details['action']} "
    where = "" if details["segment"] is None else f"in {details['segment']!r} "
    before, after = format_count(details["early"], details["unit"]), f"the {details['late']:,.0f} after"
    if details["early_mean"] is None:
        return f"{whose}{where}no single parameter explains both the first {before} and {after}"
    early, late = (format_number(details[name], ".3g") for name in ("early_mean", "late_mean"))
    weighted = ""
    if details["weighted_by"] is not None:
        whose = whose or f"of all {details['weighted_by']}s "
        weighted = f" (weighted by {details['weighted_by']} as those after)"
    return f"{whose}{where}it averaged {early} in the first {before}{weighted} and {late} in {after}"


def describe_change(details: Details) -> str:
    """Return which mean changed, since when, and what follows."""
    where = "" if details["segment"] is None else f" in {details['segment']!r}"
    how = "moved further than its declared drift allows" if details["declared"] else "jumped"
    mean = "" if details["mean"] is None else f", and averages {format_number(details['mean'], '.3g')} since"
    since = datetime.fromtimestamp(details["since"], UTC)
    return (
        f"the mean {details['limit']!r} of {details['action']}{where} {how} about {since:%Y-%m-%d %H:%M} UTC{mean}; "
        "what is older is forgotten, so this action is held back until it is known again"
    )


MISMATCH_SCORES = {
    "click_score": "the estimated reward of users",
    "risk_score": "the risk of users, estimated from earlier outcomes,",
}


def describe_mismatch(details: Details) -> str:
    """Return the means of the halves, what they mean for the promise, and a split."""
    limit, column, score = repr(details["limit"]), details["column"], MISMATCH_SCORES.get(details["kind"])
    low, high = (format_number(details[name], ".3g") for name in ("low_mean", "high_mean"))
    if score is not None:
        halves = f"{low} where {score} is below average and {high} where it is above"
        split = "divide users by a score (score=), or use a model of each user"
    elif details["kind"] == "level":
        halves = f"{low} where {column!r} is below average and {high} above"
        split = "divide users by it (by=), or by a score (score=), or use a model of each user"
    else:
        cut = format_number(details["cut"], ".4g")
        halves = f"{low} where {column!r} is at most {cut} and {high} above"
        split = f"divide users by {column!r}, at {cut} (by=), or by a score (score=), or use a model of each user"
    halves += f" ({details['low_count']:,} and {format_count(details['high_count'])})"
    whose = "of all actions" if details["action"] is None else f"of {details['action']!r}"
    where = "" if details["segment"] is None else f" in {details['segment']!r}"
    return f"it matters who gets an action: {limit} {whose}{where} averages {halves}; {split}"


CONDITION_SCORES = {"click_score": "the estimated reward", "upper_end": "the bound itself"}


def describe_condition(details: Details, prefix: str = "") -> str:
    """Return by which values of a column users are chosen."""
    above, up_to, kind = (details[prefix + name] for name in ("above", "up_to", "kind"))
    if kind in CONDITION_SCORES:
        side = "average" if None not in (above, up_to) else "low" if above is None else "high"
        return f"{CONDITION_SCORES[kind]} is {side}"
    sides = [f"above {format_number(above, '.4g')}"] if above is not None else []
    sides += [f"at most {format_number(up_to, '.4g')}"] if up_to is not None else []
    if kind == "level":
        sides = ["above average" if up_to is None else "below average" if above is None else "about average"]
    return f"{details[prefix + 'column']!r} is {' and '.join(sides)}"


def describe_mean_form(details: Details) -> str:
    """Return whose outcomes exceed their upper ends, and what to do."""
    return (
        f"{describe_excess(details)}; add what is missing to the context, or promise the limit to groups (by=) or "
        "buckets of a score (score=)"
    )


def describe_excess(details: Details) -> str:
    """Return whose outcomes exceed their upper ends."""
    mean, end = (format_number(details[name], ".3g") for name in ("mean", "end"))
    conditions = [describe_condition(details, one) for one in ("", "second_") if details[f"{one}kind"] is not None]
    whose = "" if details["action"] is None else f" of {details['action']!r}"
    where = f" where {' and '.join(conditions)}" if conditions else ""
    return (
        f"the mean of {details['limit']!r} is not {details['form']} in the context: {format_count(details['count'])}"
        f"{whose}{where} average {mean}, but their own upper bounds average {end}"
    )


def describe_fall(details: Details) -> str:
    """Return between which buckets means fall."""
    moves, over, under = ("falls", "at least", "at most") if details["at_most"] else ("rises", "at most", "at least")
    low, high = (format_number(details[name], ".3g") for name in ("low", "high"))
    return (
        f"the mean {details['limit']!r} of {details['action']} {moves} with {details['score']!r}: it is {over} {low} "
        f"in some bucket up to {details['before']!r}, and {under} {high} in some bucket from {details['after']!r} on"
    )


def describe_pooling(details: Details) -> str:
    """Return between which buckets means fall, and what follows."""
    return (
        f"{describe_fall(details)}; each bucket of this action is bounded by its own outcomes alone, so the limit "
        "still holds; reverse the score, fit it again, or declare monotone=False"
    )


CONTRADICTIONS: dict[Contradiction, Message] = {
    Contradiction.MEAN_COST_BOUND: (
        "the data put a mean of {limit!r} {forbidden} its declared bound {bound} ({setting})"
    ),
    Contradiction.NOISE: (
        "the noise of {limit!r} is declared {declared}, but the residuals of {outcomes:outcome} need at least "
        "{needed:.3g}; this or another declared value is wrong"
    ),
    Contradiction.NO_LINEAR_MEAN: (
        "no linear mean of {limit!r} within the declared bounds (norm_bound, {setting}) explains the data"
    ),
    Contradiction.SAFE_COST: describe_safe_cost,
    Contradiction.SAFE_COST_OF_A_USER: describe_safe_cost_of_a_user,
    Contradiction.SAFE_COST_OF_A_ROUND: (
        "the mean {limit!r} of each round's safe action is declared {allowed} {declared}, but {outcomes:outcome}, "
        "{count:.0f} of them of safe actions, put one {forbidden} its declared value"
    ),
    Contradiction.SAFE_COST_SO_FAR: (
        "the safe action's {limit!r} is declared {allowed} {declared}, but it averages {beyond} {mean:.3g} over "
        "{count:decision} so far, which chance does not explain"
    ),
    Contradiction.SAFE_ACTION_UNSAFE: (
        "the data put the safe action's own {limit!r} {forbidden} its threshold {threshold}"
    ),
    Contradiction.LIMIT_SO_FAR: (
        "{limit!r} averages {beyond} {mean:.3g} over {count:decision} so far, {forbidden} its limit of {threshold}, "
        "which chance does not explain"
    ),
    Contradiction.LIMIT_NEVER_BINDS: (
        "the limit of {limit!r} is {threshold} and means are {allowed} {bound}, so the limit never binds"
    ),
    Contradiction.DRIFT: describe_drift,
    Contradiction.CHANGE: describe_change,
    Contradiction.MISMATCH: describe_mismatch,
    Contradiction.MEAN_FORM: describe_mean_form,
    Contradiction.POOLING: describe_pooling,
}


def describe_found(details: Details) -> str:
    """Return which declared value the data contradict."""
    return make_text(CONTRADICTIONS[Contradiction(details["found"])], details)


def describe_contradiction(details: Details) -> str:
    return f"{describe_found(details)}; the confidence bounds are not valid, so the safe action is played"


def describe_tripped(details: Details) -> str:
    return f"stopped by {details['actor']}: {build_message(TripReason(details['trip']), details['details'])}"


MESSAGES: dict[FallbackReason | TripReason, Message] = {
    FallbackReason.NO_BETTER_ACTION: "the safe action has the highest upper confidence bound",
    FallbackReason.SAFE_ACTION_COST_UNCERTAIN: (
        "the safe action is played to estimate its own cost, which is still uncertain"
    ),
    FallbackReason.NO_CERTIFIED_ACTION: "no listed action is certified safe",
    FallbackReason.BOUNDS_NOT_FINITE: "the confidence bounds are not finite",
    FallbackReason.NO_PLAUSIBLE_FUNCTION: (
        "no function of a class explains the data: the class lacks the true function, or the noise is larger than "
        "declared"
    ),
    FallbackReason.SOLVER_FAILED: "the solver found no mixture",
    FallbackReason.HORIZON_EXCEEDED: "the horizon has passed, so the confidence radii are no longer valid",
    FallbackReason.MIXTURE_WEIGHT_UNDERFLOW: "the safe weight of every better action is below floating-point precision",
    FallbackReason.PROPOSAL_NOT_CERTIFIED: "no part of the proposal is certified safe",
    FallbackReason.ALWAYS_SAFE: "this policy always plays the safe action",
    FallbackReason.CUSTOM: "{message}",
    FallbackReason.ASSUMPTION_CONTRADICTED: describe_contradiction,
    FallbackReason.KILLED: "killed by {actor}: {note}",
    FallbackReason.TRIPPED: describe_tripped,
    FallbackReason.EXPERIMENT_OFF: "the experiment is off",
    FallbackReason.SHADOW: "shadow mode: the safe action is served and the policy's choice is logged",
    FallbackReason.OUTSIDE_CANARY: "canary: outside the {share:.4g} of decisions that the policy makes",
    FallbackReason.SERVER_NOT_READY: "the server has not read its log yet; the safe action is served until then",
    FallbackReason.DECISION_FAILED: "the server failed to decide (see its log); the safe action is served",
    FallbackReason.LOG_WRITE_FAILED: "the decision could not be logged, so the safe action is served: {error}",
    FallbackReason.SERVER_UNAVAILABLE: "{error}",
    TripReason.OBSERVED_COST_ABOVE_LIMIT: (
        "{limit!r} averages {beyond} {mean:.4g} of its range over {count:,} decisions, {forbidden} its limit "
        "(significance level {level:.2g})"
    ),
    TripReason.FEEDBACK_STOPPED: (
        "no outcome arrived for the last {decisions:,} decisions, all older than {seconds:g} s"
    ),
    TripReason.SIGNAL_STOPPED: (
        "no {signal!r} arrived within {seconds:g} s for the last {decisions:,} decisions of {action!r}; before, one "
        "arrived per {every:.3g} decisions"
    ),
}
