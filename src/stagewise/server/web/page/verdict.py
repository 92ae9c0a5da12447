"""The verdict on an experiment (is it safe, learning, worth it), and numbers and times as the page shows them."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from stagewise.problem.signals import GIVEN
from stagewise.server.log_statistics import exceeds_limit

MISSING_TEXT = "–"
UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def count(value: Any) -> str:
    """Format an integer.

    >>> count(1234567), count(None)
    ('1,234,567', '–')
    """
    return MISSING_TEXT if value is None else f"{int(value):,}"


def percent(value: Any) -> str:
    """Format a share in percent.

    >>> percent(0.0213), percent(0.3), percent(0.00042), percent(0), percent(1.0), percent(None)
    ('2.13 %', '30 %', '0.042 %', '0 %', '100 %', '–')
    """
    if value is None or not math.isfinite(value):
        return MISSING_TEXT
    return f"{format_number(100.0 * value)} %"


def format_number(value: float) -> str:
    """Format a number with three significant digits, without trailing zeros."""
    if value == 0.0 or abs(value) < 5e-7:
        return "0"
    places = min(max(2 - math.floor(math.log10(abs(value))), 0), 6)
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def amount(value: Any, least: float = 0.0, most: float = 1.0) -> str:
    """Format a value of a signal: in percent if its range is [0, 1], else as a number.

    >>> amount(0.02), amount(4.25, 1.0, 5.0), amount(None)
    ('2 %', '4.25', '–')
    """
    if value is None or not math.isfinite(value):
        return MISSING_TEXT
    return percent(value) if (least, most) == (0.0, 1.0) else format_number(float(value))


def format_gain(value: Any, least: float = 0.0, most: float = 1.0) -> str:
    """Format a difference, with its sign.

    >>> format_gain(0.021), format_gain(-3.0, 0.0, 10.0)
    ('+2.1 points', '−3')
    """
    if value is None or not math.isfinite(value):
        return MISSING_TEXT
    sign = "+" if value > 0 else "−" if value < 0 else "±"
    if (least, most) == (0.0, 1.0):
        return f"{sign}{format_number(100.0 * abs(value))} points"
    return f"{sign}{format_number(abs(float(value)))}"


def format_gain_interval(low: Any, high: Any, least: float = 0.0, most: float = 1.0) -> str:
    """Format the interval of a difference.

    >>> format_gain_interval(-0.01, 0.021)
    '−1 to +2.1 points'
    """
    first = format_gain(low, least, most).removesuffix(" points")
    return f"{first} to {format_gain(high, least, most)}"


def duration(seconds: Any) -> str:
    """Format a duration.

    >>> duration(0.3), duration(42.0), duration(90.0), duration(7200.0), duration(200000.0)
    ('0.3 s', '42 s', '1.5 min', '2 h', '2.3 d')
    """
    if seconds is None or not math.isfinite(seconds):
        return MISSING_TEXT
    for size, unit in UNITS:
        if seconds >= size:
            short = f"{seconds / size:.1f}".removesuffix(".0")
            return f"{short if seconds < 10 * size else round(seconds / size)} {unit}"
    return f"{seconds:.1f} s"


def moment(at: Any) -> str:
    """Format a time for the `datetime` attribute; a script shows it in the local time zone.

    >>> moment(0.0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(float(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def clock(at: Any) -> str:
    """Format a time for browsers without scripts."""
    return datetime.fromtimestamp(float(at), UTC).strftime("%d %b %H:%M:%S UTC")


FINE, WAIT, BAD, OFF = "fine", "wait", "bad", "off"
STALE_SECONDS = 60.0
MARKS = {FINE: "✓", WAIT: "…", BAD: "!", OFF: "■"}


class VerdictItem(NamedTuple):
    """The answer to one of the three questions, in one or two words and in a sentence."""

    question: str
    level: str
    word: str
    message: str

    @property
    def mark(self) -> str:
        """The symbol of the level, for readers who do not see colours."""
        return MARKS[self.level]


class Verdict(NamedTuple):
    """The three answers and their summary."""

    level: str
    line: str
    answers: tuple[VerdictItem, ...]

    @property
    def mark(self) -> str:
        """The symbol of the level."""
        return MARKS[self.level]


def build_verdict(figures: Mapping[str, Any]) -> Verdict:
    is_incomplete = bool(figures.get("lag_rows"))  # the figures lack the newest rows, so nothing good is certain
    safety, learning, value = answers = tuple(
        one._replace(level=WAIT, word="Reading the log") if is_incomplete and one.level == FINE else one
        for one in (assess_safety(figures), assess_learning(figures), assess_value(figures))
    )
    if figures.get("killed"):
        return Verdict(OFF, f"Stopped. Only {format_safe_action(figures)} is served.", answers)
    if safety.level == BAD:
        alert = f"Alert. Only {format_safe_action(figures)} is served until somebody acknowledges it."
        return Verdict(BAD, alert if figures.get("alerts") else f"{safety.word}.", answers)
    if figures.get("lag_rows"):
        line = f"Reading the log: {count(figures['lag_rows'])} rows are not in these figures yet."
        return Verdict(WAIT, line, answers)
    if not figures["decisions"]:
        return Verdict(WAIT, "Ready. There are no decisions yet.", answers)
    if figures.get("mode") in ("off", "shadow"):
        return Verdict(OFF, f"In {figures['mode']} mode: only {format_safe_action(figures)} is served.", answers)
    if safety.level == WAIT:
        return Verdict(WAIT, f"{safety.word}.", answers)
    if learning.level == BAD:
        return Verdict(WAIT, f"Within its limits, and {learning.word.lower()}.", answers)
    return Verdict(FINE if value.level != BAD else WAIT, f"Within its limits, and {value.word.lower()}.", answers)


def format_safe_action(figures: Mapping[str, Any]) -> str:
    problem = figures.get("problem")
    return "the safe action" if problem is None else f"“{problem['safe_name']}”"


UNKNOWN_WARNING = (
    "Within limits on average",
    "It matters who gets an action, and the limits hold for averages: see Alerts.",
)
WARNINGS = {  # by check, the gravest first: a word and a sentence
    "mismatch": UNKNOWN_WARNING,
    "change": ("Within limits", "A mean moved further than declared, and its action is held back: see Alerts."),
    "pooling": ("Within limits", "Means fall with a risk score, so its buckets are no longer pooled: see Alerts."),
}


def assess_safety(figures: Mapping[str, Any]) -> VerdictItem:
    """Judge safety by pessimistic and observed costs."""
    question = "Is it safe?"
    if figures.get("killed"):
        reason = str(figures["killed"])
        return VerdictItem(question, OFF, "Stopped", f"{reason[:1].upper()}{reason[1:].rstrip('.')}.")
    for name, limit in figures["limits"].items():
        bound, keys = limit["low" if limit["at_most"] else "high"], ("observed_mean", "low", "high", "threshold")
        if limit["observed_mean"] is not None and exceeds_limit(bound, limit["threshold"], limit["at_most"]):
            observed, low, high, threshold = (amount(limit[key], limit["least"], limit["most"]) for key in keys)
            message = f"The observed {name} is {observed} ({low} to {high}); its limit is {threshold}."
            return VerdictItem(question, BAD, f"{name} is over its limit", message)
    alerts = figures.get("alerts") or []
    if alerts:
        message = f"The data contradict {len(alerts)} declared value{'s' * (len(alerts) != 1)}: see Alerts."
        return VerdictItem(question, BAD, "Alert", message)
    if not figures["decisions"]:
        return VerdictItem(question, WAIT, "No decisions yet", "There is nothing to judge.")
    bounds = [(one["pessimistic_cost"], one["threshold"], one["at_most"]) for one in figures["limits"].values()]
    if any(cost is not None and exceeds_limit(cost, *limit) for cost, *limit in bounds):
        message = "Its pessimistic cost is over the limit."
        return VerdictItem(question, BAD, "A decision was over its limit", message)
    unknown = [name for name, limit in figures["limits"].items() if limit["safe_cost_unknown"]]
    if unknown:
        safe = format_safe_action(figures)
        message = f"The cost of {safe} ({', '.join(unknown)}) was not declared: {safe} is served until it is known."
        return VerdictItem(question, WAIT, "Learning the safe action’s cost", message)
    if figures.get("warnings"):
        checks = {one["check"] for one in figures.get("health") or [] if one["name"] in figures["warnings"]}
        return VerdictItem(question, WAIT, *next((WARNINGS[one] for one in WARNINGS if one in checks), UNKNOWN_WARNING))
    message = "The pessimistic cost of every recent decision is within every limit."
    return VerdictItem(question, FINE, "Within limits", message)


def assess_learning(figures: Mapping[str, Any]) -> VerdictItem:
    """Judge whether outcomes reach the decisions."""
    question, age = "Is it learning?", figures.get("snapshot_age_s")
    if not figures["decisions"]:
        return VerdictItem(question, WAIT, "Not yet", "It learns from the outcomes of decisions.")
    if figures.get("failed"):
        message = f"Learning fails: {figures['failed']}. Decisions stay safe; automatic stops are off."
        return VerdictItem(question, BAD, "Not learning", message)
    if age is not None and age > figures.get("max_age_s", STALE_SECONDS):
        message = f"The policy snapshot is {duration(age)} old. Decisions stay safe and do not improve."
        return VerdictItem(question, BAD, "Not learning", message)
    reward = figures["reward"]
    limits = figures["limits"].values()
    outcomes = reward["now"]["count"] + reward["safe"]["count"] if reward else sum(limit["count"] for limit in limits)
    if not outcomes:
        message = f"{count(figures['pending_count'])} decisions have pending outcomes."
        return VerdictItem(question, WAIT, "Waiting for outcomes", message)
    if figures.get("mode") == "shadow" and figures["shadow"]:
        first = max(figures["actions"], key=lambda action: action["shadow"])
        share = f"the policy would serve “{first['name']}” in {percent(first['shadow'])} of decisions."
        message = f"{format_safe_action(figures)} is served; {share}"
        return VerdictItem(question, WAIT, "In shadow", message[:1].upper() + message[1:])
    series = figures["series"][-10:]
    total = sum(interval["decisions"] for interval in series)
    exploring = sum(interval["exploring"] * interval["decisions"] for interval in series) / total
    others = [action for action in figures["actions"] if not action["safe"] and action["recent"] > 0.0]
    message = f"{percent(exploring)} of recent decisions explore"
    if not others:
        message = f"{message}; {format_safe_action(figures)} is served until more is known."
        return VerdictItem(question, WAIT, "Cautious", message)
    first = max(others, key=lambda action: action["recent"])
    message = f"{message}; “{first['name']}” has {percent(first['recent'])} of the traffic."
    return VerdictItem(question, FINE, "Learning", message)


def assess_value(figures: Mapping[str, Any]) -> VerdictItem:
    """Judge whether the reward is higher than the safe action's."""
    question, reward = "Is it worth it?", figures["reward"]
    if not reward and figures["proposals"]:
        shares = [(one["proposed"] * one["overlap"], one["proposed"]) for one in figures["proposals"]]
        overlap = sum(played for played, _ in shares) / sum(proposed for _, proposed in shares)
        message = "No reward is learned: what recent requests proposed was played as far as it is safe."
        word = f"{math.floor(100.0 * overlap + 1e-9)}\u00a0% of proposals played"  # in one line of a headline
        return VerdictItem(question, FINE if overlap > 0.99 else WAIT, word, message)
    if not reward or reward["gain"] is None:
        declared, message = figures.get("problem"), "There are no rewards to compare yet."
        if declared is not None and declared.get("reward", {"model": GIVEN}).get("model") == GIVEN:
            message = "No reward is learned; nothing was proposed yet."
        return VerdictItem(question, WAIT, "Too early to tell", message)
    gain, ends = reward["gain"], (reward["least"], reward["most"])
    difference = f"{format_gain(gain['mean'], *ends)} ({format_gain_interval(gain['low'], gain['high'], *ends)})"
    message = f"{reward['name']}: {difference} per decision, compared with {format_safe_action(figures)}."
    if gain["low"] > 0.0:
        return VerdictItem(question, FINE, "Worth it", message)
    if gain["high"] < 0.0:
        return VerdictItem(question, BAD, "Not worth it", message)
    return VerdictItem(question, WAIT, "Too early to tell", message)
