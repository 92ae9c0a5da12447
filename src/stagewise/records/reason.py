"""Why the safe action is played: a code with its data. What code compares is here; sentences are made of it, once."""

import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from stagewise.problem.words import average, several


class Reason(StrEnum):
    """Why the safe action is played, or a server stopped: codes that never change, whatever their sentences say.

    >>> Reason("no_better_action") is Reason.NO_BETTER_ACTION, str(Reason.KILLED)
    (True, 'killed')
    """

    NO_BETTER_ACTION = "no_better_action"
    """The safe action has the highest upper confidence bound."""
    SAFE_COST_UNCERTAIN = "safe_cost_uncertain"
    """The safe action's own cost is being learned."""
    NO_SAFE_ACTION = "no_safe_action"
    """No action on offer is safe by what is known."""
    BOUNDS_NOT_FINITE = "bounds_not_finite"
    """The confidence bounds are not finite."""
    NO_PLAUSIBLE_FUNCTION = "no_plausible_function"
    """No function of a class explains the data."""
    SOLVER_FAILED = "solver_failed"
    """The solver found no mixture."""
    HORIZON_OVER = "horizon_over"
    """The horizon that the bounds were made for has passed."""
    SAFE_SHARE_TOO_SMALL = "safe_share_too_small"
    """The safe weight of every better action is below floating-point precision."""
    ALWAYS_SAFE = "always_safe"
    """The policy plays only the safe action."""
    CUSTOM = "custom"
    """A policy of your own gives its sentence as `message`."""
    CONTRADICTION = "contradiction"
    """The data contradict what was declared; `found` is a `Contradiction`, `limit` the limit it is of."""
    KILLED = "killed"
    """A person stopped the experiment."""
    TRIPPED = "tripped"
    """The server stopped the experiment; `trip` is the code of why."""
    OFF = "off"
    """The experiment is off."""
    SHADOW = "shadow"
    """The choice of the policy is only logged."""
    CANARY = "canary"
    """The decision is not among the canary's share."""
    NOT_READ = "not_read"
    """The server has not read its log yet."""
    FAILED = "failed"
    """Deciding failed inside the server."""
    NOT_LOGGED = "not_logged"
    """The store could not be written to."""
    SERVER_UNAVAILABLE = "server_unavailable"
    """The client got no answer that it could use."""
    LIMIT_EXCEEDED = "limit_exceeded"
    """Outcomes exceed a limit beyond chance."""
    FEEDBACK_STOPPED = "feedback_stopped"
    """No outcome of any kind comes any more."""
    SIGNAL_STOPPED = "signal_stopped"
    """One signal of one action does not come any more."""


class Contradiction(StrEnum):
    """What of the declared values the data contradict."""

    COST_BOUND = "cost_bound"
    """A mean is beyond the bound declared for it."""
    NOISE = "noise"
    """Residuals need more noise than was declared."""
    NO_LINEAR_MEAN = "no_linear_mean"
    """No linear mean within what was declared explains the data."""
    SAFE_COST = "safe_cost"
    """Outcomes at the safe action are not what was declared of it."""
    SAFE_COST_OF_A_USER = "safe_cost_of_a_user"
    """The safe action costs one user more than was declared for every user."""
    SAFE_COST_OF_A_ROUND = "safe_cost_of_a_round"
    """A round's own safe action costs more than was declared of it."""
    SAFE_COST_SO_FAR = "safe_cost_so_far"
    """What was told of the safe action so far refutes its declared cost."""
    SAFE_ACTION_UNSAFE = "safe_action_unsafe"
    """The safe action itself breaks the limit."""
    LIMIT_SO_FAR = "limit_so_far"
    """What was told so far of all decisions breaks the limit."""
    LIMIT_NEVER_BINDS = "limit_never_binds"
    """The limit lies beyond the bound on means."""
    DRIFT = "drift"
    """A mean is not what it was."""


Details = Mapping[str, Any]
"""The data of a code: texts, numbers (None: not finite) and truth values, as JSON holds them."""


class Cause(NamedTuple):
    """A reason with its data.

    >>> cause = Cause.of(Reason.CANARY, share=0.1)
    >>> cause.sentence
    "canary: not among the 0.1 of decisions that are the policy's"
    >>> Cause.read(cause.plain()) == cause
    True
    """

    reason: Reason
    details: Mapping[str, Any] = {}

    @classmethod
    def of(cls, reason: Reason, **details: Any) -> "Cause":
        """Return a reason with its data, as JSON holds it."""
        return cls(reason, {name: plain(value) for name, value in details.items()})

    @classmethod
    def read(cls, content: Any) -> "Cause":
        """Return what `plain` wrote down; raises ValueError or another error where it is none."""
        reason, details = content
        cause = cls(Reason(reason), {str(name): value for name, value in details.items()})
        sentence(*cause)  # refuses data that lack something
        return cause

    @property
    def sentence(self) -> str:
        """What a person is told."""
        return sentence(self.reason, self.details)

    @property
    def contradicts(self) -> bool:
        """Whether the data contradict what was declared."""
        return self.reason is Reason.CONTRADICTION

    def plain(self) -> list[Any]:
        """Return it as JSON holds it."""
        return [str(self.reason), dict(self.details)]


def plain(value: Any) -> Any:
    """Return a value as JSON holds it: numbers of NumPy as Python's, None for what is not finite."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, StrEnum):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def sentence(reason: Reason, details: Details) -> str:
    """Return the sentence for a code and its data: the only place where one is made.

    >>> sentence(Reason.OFF, {})
    'the experiment is off'
    """
    told = SENTENCES[reason]
    return told if isinstance(told, str) else told(details)


def number(value: Any, form: str = "g") -> str:
    """Return a number of the data in a sentence."""
    return "no finite number" if value is None else format(value, form)


def ends(details: Details) -> tuple[str, str]:
    """Return what a limit's values must be, and on which side of it they are wrong."""
    return ("at most", "above") if details["at_most"] else ("at least", "below")


def cost_bound(told: Details) -> str:
    value, name = number(told["bound"]), told["setting"]
    return f"what was seen puts a mean {told['limit']!r} {ends(told)[1]} {value}, the declared bound ({name})"


def noise(told: Details) -> str:
    return (
        f"the noise of {told['limit']!r} is declared {number(told['declared'])}, and the residuals of "
        f"{several(told['outcomes'])} need {number(told['needed'], '.3g')} or more; it, or another declared value, is "
        "not true"
    )


def no_linear_mean(told: Details) -> str:
    within = f"norm_bound, {told['setting']}"
    return f"no linear mean of {told['limit']!r} within what was declared ({within}) explains what was seen"


def safe_cost(told: Details) -> str:
    seen = average(told["count"], number(told["mean"], ".3g"), " seen there")
    declared = number(told["declared"])
    return f"the safe action's {told['limit']!r} is declared {declared}, and {seen}, which it does not explain"


def safe_cost_of_a_user(told: Details) -> str:
    bound = "or more" if told["at_most"] else "or less"
    overall = average(told["count"], number(told["mean"], ".3g"))
    return (
        f"the safe action's {told['limit']!r} is declared {ends(told)[0]} {number(told['declared'])} for every user, "
        f"and what was seen puts it at {number(told['found_at'], '.3g')} {bound} for one of them (over all users "
        f"{overall})"
    )


def safe_cost_of_a_round(told: Details) -> str:
    side, bound = ends(told)
    return (
        f"a round's safe action is declared to have a mean {told['limit']!r} of {side} {number(told['declared'])}, "
        f"and what was seen in {several(told['outcomes'])}, {told['count']:.0f} of them at safe actions, puts one "
        f"{bound} what was declared"
    )


def so_far(told: Details) -> str:
    side = "at least" if told["at_most"] else "at most"
    return f"{side} {number(told['mean'], '.3g')} over {several(told['count'], 'decision')} by what was told so far"


def safe_cost_so_far(told: Details) -> str:
    return (
        f"the safe action's {told['limit']!r} is declared {ends(told)[0]} {number(told['declared'])}, and it averages "
        f"{so_far(told)}, which is beyond chance"
    )


def safe_action_unsafe(told: Details) -> str:
    value = number(told["threshold"])
    return f"what was seen puts the safe action's own {told['limit']!r} {ends(told)[1]} its threshold {value}"


def limit_so_far(told: Details) -> str:
    value = number(told["threshold"])
    return f"{told['limit']!r} averages {so_far(told)}, {ends(told)[1]} its limit of {value} beyond chance"


def limit_never_binds(told: Details) -> str:
    side, value, bound = ends(told)[0], number(told["threshold"]), number(told["bound"])
    return f"the limit of {told['limit']!r} is {value}, and means are taken to be {side} {bound}, so it can never bind"


def drift(told: Details) -> str:
    return f"the mean of {told['limit']!r} moved: {moved(told)}"


def moved(told: Details) -> str:
    """Return between what a mean moved."""
    whose = "" if told["action"] is None else f"of {told['action']} "
    where = "" if told["segment"] is None else f"in {told['segment']!r} "
    before, after = several(told["early"], told["unit"]), f"the {told['late']:,.0f} after"
    if told["early_mean"] is None:
        return f"{whose}{where}no one parameter explains the first {before} and {after}"
    early, late = (number(told[name], ".3g") for name in ("early_mean", "late_mean"))
    weighted = ""
    if told["weighted_by"] is not None:
        whose = whose or f"of all {told['weighted_by']}s "
        weighted = f" (weighted by {told['weighted_by']} as those after)"
    return f"{whose}{where}it averaged {early} in the first {before}{weighted} and {late} in {after}"


CONTRADICTIONS: dict[Contradiction, Callable[[Details], str]] = {
    Contradiction.COST_BOUND: cost_bound,
    Contradiction.NOISE: noise,
    Contradiction.NO_LINEAR_MEAN: no_linear_mean,
    Contradiction.SAFE_COST: safe_cost,
    Contradiction.SAFE_COST_OF_A_USER: safe_cost_of_a_user,
    Contradiction.SAFE_COST_OF_A_ROUND: safe_cost_of_a_round,
    Contradiction.SAFE_COST_SO_FAR: safe_cost_so_far,
    Contradiction.SAFE_ACTION_UNSAFE: safe_action_unsafe,
    Contradiction.LIMIT_SO_FAR: limit_so_far,
    Contradiction.LIMIT_NEVER_BINDS: limit_never_binds,
    Contradiction.DRIFT: drift,
}


def contradiction(told: Details) -> str:
    found = CONTRADICTIONS[Contradiction(told["found"])](told)
    return f"{found}; no bound can be trusted, so the safe action is played"


def tripped(told: Details) -> str:
    return f"tripped by {told['actor']}: {sentence(Reason(told['trip']), told['details'])}"


def limit_exceeded(told: Details) -> str:
    seen = f"{'at least' if told['at_most'] else 'at most'} {number(told['mean'], '.4g')}"
    return (
        f"{told['limit']!r} averages {seen} of its range over {told['count']:,} decisions by what was told of them, "
        f"{ends(told)[1]} its limit beyond chance (level {number(told['level'], '.2g')})"
    )


def feedback_stopped(told: Details) -> str:
    return f"no outcome has come since {told['decisions']:,} decisions that are more than {told['seconds']:g} s old"


def signal_stopped(told: Details) -> str:
    return (
        f"no {told['signal']!r} has come within {told['seconds']:g} s of the last {told['decisions']:,} decisions for "
        f"{told['action']!r}; before, one came in {number(told['every'], '.3g')}"
    )


SENTENCES: dict[Reason, str | Callable[[Details], str]] = {
    Reason.NO_BETTER_ACTION: "nothing listed promises more than the safe action",
    Reason.SAFE_COST_UNCERTAIN: "the safe action's own cost is not certain enough yet, so it is played to learn it",
    Reason.NO_SAFE_ACTION: "nothing listed is safe",
    Reason.BOUNDS_NOT_FINITE: "the bounds are not finite",
    Reason.NO_PLAUSIBLE_FUNCTION: (
        "no function of a class explains what was seen: it lacks the truth, or the noise is larger than told"
    ),
    Reason.SOLVER_FAILED: "the solver found no mixture",
    Reason.HORIZON_OVER: "the horizon is over, and the radii hold no longer",
    Reason.SAFE_SHARE_TOO_SMALL: "the share that is safe of anything better cannot be told from rounding",
    Reason.ALWAYS_SAFE: "this policy plays nothing else",
    Reason.CUSTOM: lambda told: str(told["message"]),
    Reason.CONTRADICTION: contradiction,
    Reason.KILLED: lambda told: f"killed by {told['actor']}: {told['note']}",
    Reason.TRIPPED: tripped,
    Reason.OFF: "the experiment is off",
    Reason.SHADOW: "shadow: the safe action is served and the choice is logged",
    Reason.CANARY: lambda told: f"canary: not among the {told['share']:.4g} of decisions that are the policy's",
    Reason.NOT_READ: "what was learned and what is in doubt is not read yet; the safe action is served until it is",
    Reason.FAILED: "deciding failed inside the desk, see its log; the safe action is served",
    Reason.NOT_LOGGED: lambda told: f"not logged, so the safe action: {told['error']}",
    Reason.SERVER_UNAVAILABLE: lambda told: str(told["error"]),
    Reason.LIMIT_EXCEEDED: limit_exceeded,
    Reason.FEEDBACK_STOPPED: feedback_stopped,
    Reason.SIGNAL_STOPPED: signal_stopped,
}
