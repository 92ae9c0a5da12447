"""The verdict on an experiment: is it safe, is it learning, is it worth it."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from stagewise.problem.signals import GIVEN
from stagewise.server.log_statistics import exceeds_limit
from stagewise.server.web.page.value_format import amount, count, duration, format_gain, format_gain_interval, percent

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
