"""Is it safe, is it learning, is it worth it: an answer each, in words."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from stagewise.service.counted import beyond
from stagewise.service.web.page.telling import amount, count, gained, gained_ends, lasting, percent

FINE, WAIT, BAD, OFF = "fine", "wait", "bad", "off"
STALE = 60.0  # seconds
MARKS = {FINE: "✓", WAIT: "…", BAD: "!", OFF: "■"}


class Answer(NamedTuple):
    """An answer to one of the three questions."""

    question: str
    level: str
    word: str
    """One or two words."""
    sentence: str

    @property
    def mark(self) -> str:
        """A sign beside the colour, for whoever does not see the colour."""
        return MARKS[self.level]


class Verdict(NamedTuple):
    """All three, and the line above them."""

    level: str
    line: str
    answers: tuple[Answer, ...]

    @property
    def mark(self) -> str:
        """A sign beside the colour."""
        return MARKS[self.level]


def verdict(figures: Mapping[str, Any]) -> Verdict:
    """Return what the figures say."""
    safe, learning, worth = answers = tuple(
        unread(one) if figures.get("behind") else one
        for one in (is_safe(figures), is_learning(figures), is_worth_it(figures))
    )
    if figures.get("killed"):
        return Verdict(OFF, f"Stopped. Only {safe_of(figures)} is served.", answers)
    if safe.level == BAD:
        doubted = f"In doubt. Only {safe_of(figures)} is served until a person has looked."
        return Verdict(BAD, doubted if figures.get("doubts") else f"{safe.word}.", answers)
    if figures.get("behind"):
        told = f"Reading the log: {count(figures['behind'])} rows are not in these figures yet."
        return Verdict(WAIT, told, answers)
    if not figures["decisions"]:
        return Verdict(WAIT, "Ready. No decision has been asked for yet.", answers)
    if figures.get("mode") in ("off", "shadow"):
        return Verdict(OFF, f"In {figures['mode']} mode: only {safe_of(figures)} is served.", answers)
    if safe.level == WAIT:
        return Verdict(WAIT, f"{safe.word}.", answers)
    if learning.level == BAD:
        return Verdict(WAIT, f"Within its limits, and {lower(learning.word)}.", answers)
    return Verdict(FINE if worth.level != BAD else WAIT, f"Within its limits, and {lower(worth.word)}.", answers)


def unread(answer: Answer) -> Answer:
    """Return an answer of figures that lack what was logged last: nothing is fine by what is past."""
    return answer._replace(level=WAIT, word="Not all is read") if answer.level == FINE else answer


def lower(word: str) -> str:
    """Return words as they stand inside a sentence."""
    return word[:1].lower() + word[1:]


def safe_of(figures: Mapping[str, Any]) -> str:
    """Return the safe action, quoted."""
    problem = figures.get("problem")
    return "the safe action" if problem is None else f"“{problem['safe']}”"


def is_safe(figures: Mapping[str, Any]) -> Answer:
    """Say whether limits hold: by what decisions are feared to cost, and by what was seen."""
    question = "Is it safe?"
    if figures.get("killed"):
        told = str(figures["killed"])
        return Answer(question, OFF, "Stopped", f"{told[:1].upper()}{told[1:].rstrip('.')}.")
    for name, limit in figures["limits"].items():
        shown = {key: amount(limit[key], limit["least"], limit["most"]) for key in ("seen", "low", "high", "threshold")}
        if limit["seen"] is not None and over(limit["low"] if limit["at_most"] else limit["high"], limit):
            told = f"{name} was seen at {shown['seen']} ({shown['low']} to {shown['high']}), and its limit is "
            return Answer(question, BAD, f"{name} is over its limit", f"{told}{shown['threshold']}.")
    doubts = figures.get("doubts") or []
    if doubts:
        told = f"{len(doubts)} declared fact{'s' * (len(doubts) != 1)} contradicted by the data"
        return Answer(question, BAD, "In doubt", f"{told}: see Doubts.")
    if not figures["decisions"]:
        return Answer(question, WAIT, "Nothing to judge", "No decision yet.")
    if any(limit["dearest"] is not None and over(limit["dearest"], limit) for limit in figures["limits"].values()):
        return Answer(
            question, BAD, "A decision was over its bound", "It was feared to cost more than its limit allows."
        )
    learned = [name for name, limit in figures["limits"].items() if limit["unsettled"]]
    if learned:
        told = f"What {safe_of(figures)} costs ({', '.join(learned)}) was not declared: it is served until it is known."
        return Answer(question, WAIT, "The safe action is learned first", told)
    return Answer(question, FINE, "Within limits", "Even by the pessimistic line, every limit holds in every decision.")


def over(value: float, limit: Mapping[str, Any]) -> bool:
    """Say whether a value is on the wrong side of a limit, beyond rounding."""
    return beyond(value, limit["threshold"], limit["at_most"])


def is_learning(figures: Mapping[str, Any]) -> Answer:
    """Say whether what comes back reaches the decisions."""
    question, age = "Is it learning?", figures.get("snapshot_age_s")
    if not figures["decisions"]:
        return Answer(question, WAIT, "Not yet", "It learns from outcomes of decisions.")
    if figures.get("failed"):
        told = f"Learning failed: {figures['failed']}. Decisions stay safe; nothing stops by itself."
        return Answer(question, BAD, "Not learning", told)
    if age is not None and age > figures.get("max_age_s", STALE):
        told = f"The newest state is {lasting(age)} old. Decisions stay safe, and get no better."
        return Answer(question, BAD, "Not learning", told)
    known = figures["reward"]["now"]["count"] if figures["reward"] else 0
    known += figures["reward"]["safe"]["count"] if figures["reward"] else 0
    if not known:
        told = f"{count(figures['waiting'])} decisions wait for what comes back."
        return Answer(question, WAIT, "Waiting for outcomes", told)
    if figures.get("mode") == "shadow" and figures["would"]:
        most = max(figures["actions"], key=lambda one: one["would"])
        told = f"{safe_of(figures)} is served; it would be “{most['name']}” in {percent(most['would'])} of decisions."
        return Answer(question, WAIT, "In shadow", told[:1].upper() + told[1:])
    series = figures["series"][-10:]
    exploring = sum(one["exploring"] * one["decisions"] for one in series) / sum(one["decisions"] for one in series)
    others = [one for one in figures["actions"] if not one["safe"] and one["recent"] > 0.0]
    told = f"Lately {percent(exploring)} of decisions explore"
    if not others:
        return Answer(question, WAIT, "Cautious", f"{told}; {safe_of(figures)} is served until more is certain.")
    most = max(others, key=lambda one: one["recent"])
    return Answer(question, FINE, "Learning", f"{told}; “{most['name']}” has {percent(most['recent'])} of the traffic.")


def is_worth_it(figures: Mapping[str, Any]) -> Answer:
    """Say whether it earns more than the safe action."""
    question, reward = "Is it worth it?", figures["reward"]
    if not reward or reward["gain"] is None:
        return Answer(question, WAIT, "Too early to tell", "Nothing is known yet of what it earns.")
    gain, name = reward["gain"], reward["name"]
    span = (reward["least"], reward["most"])
    shown = f"{gained(gain['mean'], *span)} ({gained_ends(gain['low'], gain['high'], *span)})"
    told = f"{name}: {shown} a decision, against {safe_of(figures)}."
    if gain["low"] > 0.0:
        return Answer(question, FINE, "Worth it", told)
    if gain["high"] < 0.0:
        return Answer(question, BAD, "Not worth it", told)
    return Answer(question, WAIT, "Too early to tell", told)
