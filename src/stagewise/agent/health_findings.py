"""Findings of the health checks: a code for the check, a verdict, the data, and the sentence made from them."""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from stagewise.agent.agent_statistics import describe_contexts
from stagewise.problem.formatting import align_columns, format_average, format_count
from stagewise.problem.signals import Promise
from stagewise.records.explanation import Columns, render_html
from stagewise.records.reason import Contradiction, FallbackReason, ReasonDetails, describe_found, to_json_scalar


class Check(StrEnum):
    """The declared assumption that a finding is about. Codes never change."""

    NOISE = "noise"
    """The declared noise of a signal, against the residuals."""
    SAFE_COST = "safe_cost"
    """The declared cost of the safe action, against its outcomes."""
    SAFE_REWARD = "safe_reward"
    """The declared reward of the safe action, against its outcomes."""
    LIMIT = "limit"
    """A limit: mean costs can reach it, and the outcomes reported so far keep it."""
    DRIFT = "drift"
    """The mean of a signal does not change over time."""
    CHANGE = "change"
    """The means of a limit with a declared drift move no further than that."""
    MISMATCH = "mismatch"
    """Within a cell it does not matter who gets an action; a limit for every user holds in both halves of the users."""
    POOLING = "pooling"
    """Mean costs do not fall from bucket to bucket of a score, so that neighbouring buckets can be pooled."""
    CONTEXT = "context"
    """Values of contexts lie in their declared ranges."""
    OUTCOMES = "outcomes"
    """Outcomes lie in their declared ranges."""
    MEAN_COST_BOUND = "mean_cost_bound"
    """Mean costs are within the declared bound."""
    SAFE_ACTION = "safe_action"
    """The safe action keeps a limit for which no safe cost is declared."""
    MODEL = "model"
    """Means are of the declared form (linear, within the norm bound)."""
    DECLARED_VALUE = "declared_value"
    """A declared value of a policy of function classes or of your own."""


class Verdict(StrEnum):
    """The result of a check."""

    FINE = "fine"
    """The data do not contradict the assumption."""
    UNKNOWN = "unknown"
    """There are too few data, or nothing is declared."""
    DOUBTFUL = "doubtful"
    """The data contradict the assumption; no limit depends on it."""
    CONTRADICTED = "contradicted"
    """The data contradict an assumption on which a limit depends."""
    WARNING = "warning"
    """The data contradict what a limit promises; decisions go on, as `on_mismatch` or `on_jump` is not "stop"."""
    ACKNOWLEDGED = "acknowledged"
    """A person acknowledged the contradiction."""


LABELS = {
    Check.NOISE: "noise of {}",
    Check.SAFE_COST: "safe cost of {}",
    Check.SAFE_REWARD: "safe {}",
    Check.LIMIT: "limit of {}",
    Check.DRIFT: "drift of {}",
    Check.CHANGE: "change of {}",
    Check.MISMATCH: "mismatch of {}",
    Check.POOLING: "pooling of {}",
    Check.CONTEXT: "context",
    Check.OUTCOMES: "outcomes",
    Check.MEAN_COST_BOUND: "cost bound of {}",
    Check.SAFE_ACTION: "safe action of {}",
    Check.MODEL: "model of {}",
    Check.DECLARED_VALUE: "declared value of {}",
}
CHECKS_BY_CONTRADICTION = {
    Contradiction.MEAN_COST_BOUND: Check.MEAN_COST_BOUND,
    Contradiction.NOISE: Check.NOISE,
    Contradiction.NO_LINEAR_MEAN: Check.MODEL,
    Contradiction.SAFE_COST: Check.SAFE_COST,
    Contradiction.SAFE_COST_OF_A_USER: Check.SAFE_COST,
    Contradiction.SAFE_COST_OF_A_ROUND: Check.SAFE_COST,
    Contradiction.SAFE_COST_SO_FAR: Check.SAFE_COST,
    Contradiction.SAFE_ACTION_UNSAFE: Check.SAFE_ACTION,
    Contradiction.LIMIT_SO_FAR: Check.LIMIT,
    Contradiction.LIMIT_NEVER_BINDS: Check.LIMIT,
    Contradiction.DRIFT: Check.DRIFT,
    Contradiction.CHANGE: Check.CHANGE,
    Contradiction.MISMATCH: Check.MISMATCH,
    Contradiction.MEAN_FORM: Check.MISMATCH,
    Contradiction.POOLING: Check.POOLING,
}


def format_finding_name(check: Check, signal: str | None) -> str:
    """Return the name by which `Agent.acknowledge_alert` takes a finding."""
    return LABELS[check].format(signal)


def identify_alert(name: str, cause: ReasonDetails) -> tuple[Check, str]:
    """Return the check and the limit of an alert; several checks may share one cause, so its name comes first."""
    limit = str(cause.details["limit"])
    by_cause = CHECKS_BY_CONTRADICTION[Contradiction(cause.details["found"])]
    return next((check for check in Check if format_finding_name(check, limit) == name), by_cause), limit


class HealthFinding(NamedTuple):
    """One declared assumption compared with the data.

    Attributes:
        check: The assumption, as a code.
        signal: The signal or limit it is about; None for all of them.
        verdict: The result, as a code.
        details: The data behind the verdict: numbers and texts in the user's units, as JSON holds them.
        note: Who acknowledged the finding and why.

    Example:
        >>> finding = HealthFinding(Check.NOISE, "cost", Verdict.UNKNOWN, {"declared": 0.1, "outcomes": 0, "needed": 0})
        >>> finding.name, finding.message
        ('noise of cost', 'declared 0.1; no outcomes yet')
    """

    check: Check
    signal: str | None
    verdict: Verdict
    details: Mapping[str, Any]
    note: str = ""

    @property
    def name(self) -> str:
        """The name that `Agent.acknowledge_alert` takes."""
        return format_finding_name(self.check, self.signal)

    @property
    def message(self) -> str:
        """The finding as a sentence for a person."""
        text = describe_found(self.details) if "found" in self.details else MESSAGES[self.check](self)
        return f"{text} (acknowledged: {self.note})" if self.note else text

    @property
    def reason_details(self) -> ReasonDetails | None:
        """The cause of the decisions that this finding stops; None if it stops none."""
        stops = self.verdict in (Verdict.CONTRADICTED, Verdict.ACKNOWLEDGED) and "found" in self.details
        return ReasonDetails(FallbackReason.ASSUMPTION_CONTRADICTED, self.details) if stops else None

    def blocks_decisions(self, policy: Any) -> bool:
        """Return whether the safe action is played because of this finding."""
        return self.verdict is Verdict.CONTRADICTED and bool(getattr(policy, "check_assumptions", False))

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "check": str(self.check),
            "signal": self.signal,
            "verdict": str(self.verdict),
            "message": self.message,
            "details": dict(self.details),
            "note": self.note,
        }


class Health(tuple[HealthFinding, ...]):
    """The findings of all health checks; `print` shows a table.

    Example:
        >>> details = {"declared": 0.1, "outcomes": 40, "needed": 0.04}
        >>> health = Health([HealthFinding(Check.NOISE, "cost", Verdict.FINE, details)])
        >>> print(health)
        noise of cost  fine  declared 0.1; the residuals of 40 outcomes need 0.04 or more
        >>> health.ok, health["noise of cost"].check
        (True, <Check.NOISE: 'noise'>)
    """

    @property
    def ok(self) -> bool:
        """Whether no assumption of a limit is contradicted, or every contradiction is acknowledged."""
        return all(finding.verdict is not Verdict.CONTRADICTED for finding in self)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        found = next((finding for finding in self if finding.name == key), None)
        if found is None:
            raise KeyError(f"{key!r} is none of {', '.join(finding.name for finding in self)}")
        return found

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the findings as JSON holds them: name, check, signal, verdict, message, details and note each."""
        return [finding.to_dict() for finding in self]

    def __str__(self) -> str:
        return "\n".join(align_columns(self._rows()))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the findings as a notebook shows them."""
        return render_html(Columns(("check", "verdict", "finding"), self._rows()))

    def _rows(self) -> list[tuple[str, str, str]]:
        return [(one.name, one.verdict, one.message) for one in self]


def build_finding(check: Check, signal: str | None, verdict: Verdict, **details: Any) -> HealthFinding:
    """Return a finding with its data as JSON holds it."""
    return HealthFinding(check, signal, verdict, {name: to_json_scalar(value) for name, value in details.items()})


def build_contradicted(check: Check, signal: str, cause: ReasonDetails) -> HealthFinding:
    """Return the finding that an assumption of a limit is contradicted."""
    return HealthFinding(check, signal, Verdict.CONTRADICTED, cause.details)


def join_parts(parts: Iterable[str]) -> str:
    """Return the parts of a sentence that are not empty, separated by semicolons."""
    return "; ".join(part for part in parts if part)


def describe_noise(finding: HealthFinding) -> str:
    """Return the declared noise beside what the residuals need."""
    details = finding.details
    if not details["outcomes"]:
        return f"declared {details['declared']:g}; no outcomes yet"
    return (
        f"declared {details['declared']:g}; the residuals of {format_count(details['outcomes'])} need "
        f"{details['needed']:.3g} or more"
    )


def describe_safe_value(finding: HealthFinding) -> str:
    """Return what is declared of the safe action beside its outcomes, learned and reported so far."""
    details = finding.details
    declared, side = details["declared"], "" if details["at_most"] is None else side_of(details["at_most"]) + " "
    learned = reported = ""
    if details["count"]:
        learned = format_average(details["count"], f"{details['mean']:.3g}")
    if declared is None:
        return join_parts(["no value is declared", learned])
    if details.get("reported_count"):
        bound = side_of(not details["at_most"])
        decisions = format_count(details["reported_count"], "decision")
        reported = f"{decisions} average {bound} {details['reported_mean']:.3g} so far"
    if not learned and not reported:
        return f"declared {side}{declared:g}; no outcome of the safe action yet"
    ending = "which contradicts it" if finding.verdict is Verdict.DOUBTFUL else "no contradiction"
    if details["exceeds_declared"] and finding.verdict is not Verdict.DOUBTFUL:
        ending = "which may be chance"
    return f"{join_parts([f'declared {side}{declared:g}', learned, reported])}, {ending}"


def describe_limit(finding: HealthFinding) -> str:
    """Return whether mean costs can reach a limit."""
    details = finding.details
    if details["bound"] is None:
        return f"{details['threshold']:g}; no bound on mean costs is declared (mean_cost_bound)"
    side = side_of(details["at_most"])
    return f"{details['threshold']:g}; means are {side} {details['bound']:g}, so the limit can bind"


def describe_drift(finding: HealthFinding) -> str:
    """Return which outcomes were compared."""
    details = finding.details
    if details["count"] is None:
        return "the model of this signal keeps no sums, so drift is not tested"
    if not details["late"]:
        return f"too few outcomes to compare earlier with later ones: {format_count(details['count'])}"
    return f"no drift between the first {format_count(details['early'])} and the next {details['late']:,.0f}"


def describe_change(finding: HealthFinding) -> str:
    """Return that means moved as declared."""
    count = format_count(finding.details["count"])
    return f"declared: {finding.details['declared']}; {count} do not contradict it"


def describe_mismatch(finding: HealthFinding) -> str:
    """Return that no halves of the users differ so far, or that no users exceed their own bounds."""
    details, count = finding.details, format_count(finding.details["count"])
    if details["promise"] == Promise.EVERY_USER:
        bounds = f"bounds that hold for every user, by {details['columns']}"
        return f"{count} do not exceed {bounds}" if details["count"] else f"no outcomes yet to compare with {bounds}"
    if not details["count"]:
        return f"no outcomes yet to compare halves of the users by {details['columns']}"
    return f"halves of the users by {details['columns']} do not differ in {count}"


def describe_pooling(finding: HealthFinding) -> str:
    """Return that no means fall from bucket to bucket."""
    count, score = finding.details["count"], finding.details["score"]
    if not count:
        return f"no outcomes yet to compare buckets of {score!r}"
    return f"in {format_count(count)} no mean falls from a bucket of {score!r} to a later one"


def describe_context(finding: HealthFinding) -> str:
    """Return how many values of contexts were clipped, and how many rows of logs were left out."""
    found = describe_contexts(finding.details["clipped"], finding.details["refused"])
    return found or "every value was in its declared range"


def describe_outcomes(finding: HealthFinding) -> str:
    """Return how many outcomes were rejected."""
    rule, refused = RANGE_RULES[finding.details["range"]], finding.details["refused"]
    if not refused:
        return f"outcomes {rule}; none was rejected"
    verb = "was" if refused == 1 else "were"
    return f"outcomes {rule}; {format_count(refused)} {verb} rejected, and the sample is biased if any of them was real"


def side_of(at_most: bool) -> str:
    """Return on which side of a bound values lie."""
    return "at most" if at_most else "at least"


RANGE_RULES = {
    "finite": "must be finite numbers",
    "unit": "must lie in [0, 1]",
    "declared": "must lie in the ranges that the problem declares",
}

MESSAGES: dict[Check, Callable[[HealthFinding], str]] = {
    Check.NOISE: describe_noise,
    Check.SAFE_COST: describe_safe_value,
    Check.SAFE_REWARD: describe_safe_value,
    Check.LIMIT: describe_limit,
    Check.DRIFT: describe_drift,
    Check.CHANGE: describe_change,
    Check.MISMATCH: describe_mismatch,
    Check.POOLING: describe_pooling,
    Check.CONTEXT: describe_context,
    Check.OUTCOMES: describe_outcomes,
}
