"""Templates: everything is escaped, and a part of the page is rendered here only, whoever asks for it."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from stagewise.policies.problem import Problem
from stagewise.service.web.page import telling
from stagewise.service.web.page.assets import address
from stagewise.service.web.page.gauges import action_cells, in_a_cell, limit_gauge, reward_gauges, shares
from stagewise.service.web.page.sessions import Session
from stagewise.service.web.page.verdict import BAD, FINE, MARKS, STALE, WAIT, verdict

PARTS = (
    "notices",
    "verdict",
    "control",
    "reward",
    "actions",
    "fallbacks",
    "last",
    "doubts",
    "waits",
    "changes",
    "health",
)
LEVELS = {"fine": FINE, "unknown": WAIT, "doubtful": WAIT, "contradicted": BAD, "acknowledged": WAIT}
UNSAID = {
    "mode": "",
    "share": 1.0,
    "killed": None,
    "killed_everywhere": False,
    "snapshot_age_s": None,
    "health": [],
    "log_rows": 0,
}
COLOURS = 7  # colours besides the safe action's
MODES = (
    ("live", "the policy decides, within its limits"),
    ("canary", "a share of decisions is the policy's, the others are the safe action"),
    ("shadow", "the safe action is served; what the policy would have done is logged"),
    ("off", "the safe action is served; the policy is not asked"),
)


@cache
def environment() -> Environment:
    """Return the templates."""
    made = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    told = ("count", "percent", "amount", "lasting", "moment", "clock")
    made.filters.update({name: getattr(telling, name) for name in told})
    made.filters["urlencode_all"] = lambda text: quote(str(text), safe="")
    made.globals.update({"asset": address, "levels": LEVELS, "marks": MARKS, "modes": MODES})
    return made


def rendered(template: str, **told: Any) -> str:
    """Return a template with what it is told."""
    return environment().get_template(template).render(**told)


def experiment_address(name: str) -> str:
    """Return where an experiment is shown."""
    return f"/e/{quote(name, safe='')}"


def presented(figures: Mapping[str, Any], session: Session, ready: tuple[bool, str], base: str) -> dict[str, Any]:
    """Return everything that the templates of an experiment need."""
    problem = figures["problem"]
    told = None if problem is None else Problem.from_plain(problem)
    safe = "the safe action" if told is None else told.safe
    spans = {} if told is None else {name: (signal.low, signal.high) for name, signal in told.signals.items()}
    colours = colours_of(() if told is None else tuple(told.actions), safe)
    age = figures.get("snapshot_age_s")
    shadow = figures.get("mode") == "shadow" and bool(figures["would"])
    return {
        "shadow": shadow,
        "figures": {**UNSAID, **figures},
        "session": session,
        "admin": session.holder.may("admin"),
        "ready": ready[0],
        "ready_why": ready[1],
        "base": base,
        "address": experiment_address(figures["name"]),
        "safe": safe,
        "stale": bool(figures["decisions"]) and age is not None and age > figures.get("max_age_s", STALE),
        "verdict": verdict(figures),
        "limits": [limit_gauge(name, {**limit, "shadow": shadow}) for name, limit in figures["limits"].items()],
        "reward": None if figures["reward"] is None else reward_gauges(figures["reward"], safe),
        "reward_name": "reward" if told is None else told.reward.name,
        "signals": [{"name": name} for name in spans],
        "colours": colours,
        "actions": [
            {**one, "colour": colours[one["name"]], "cells": action_cells(one, spans)} for one in figures["actions"]
        ],
        "fallbacks": shares({code.replace("_", " "): n for code, n in figures["fallbacks"].items()}),
        "doubts": figures.get("doubts") or [],
        "problem_words": "" if told is None else str(told),
        "example": json.dumps({"context": {} if told is None else example_of(told)}),
        "wrong": None,
    }


def example_of(problem: Problem) -> dict[str, Any]:
    """Return a context that could be sent."""
    numbers = {name: round((low + high) / 2.0, 2) for name, (low, high) in problem.ranges}
    return {**numbers, **dict.fromkeys(problem.divisions, "NZ")}


def colours_of(actions: tuple[str, ...], safe: str) -> dict[str, int]:
    """Return the colour of every action: 0 is the safe one's."""
    others = [name for name in actions if name != safe]
    return {safe: 0, **{name: 1 + place % COLOURS for place, name in enumerate(others)}}


def parts_of(told: Mapping[str, Any]) -> dict[str, str]:
    """Return every part of an experiment's page that changes."""
    parts = {name: rendered(f"parts/{name}.html", **told) for name in PARTS}
    for place, limit in enumerate(told["limits"]):
        parts[f"limit-{place}"] = rendered("parts/limit.html", limit=limit)
    return parts


def explained(id_: str, explanation: Mapping[str, Any], problem: Problem) -> str:
    """Return an explanation as the page shows it below its decision."""
    limits, promised = [], explanation.get("limits") or {}
    for name, kept in promised.items():
        signal = problem.limits.get(name)
        ends = (0.0, 1.0) if signal is None else (signal.low, signal.high)
        amounts = {key: telling.amount(kept[key], *ends) for key in ("dearest", "estimate", "threshold")}
        at_most = signal is None or not signal.at_least
        limits.append({"name": name, "at_most": at_most, **amounts})
    drawn = sorted((explanation.get("probabilities") or {}).items(), key=lambda one: -one[1])
    words = list(explanation.get("words", ()))
    words = words[: len(words) - len(promised)]  # limits stand last, one sentence each, and have a table here
    told = {"words": words, "rows": facts_of(explanation), "probabilities": drawn, "limits": limits}
    return rendered("parts/explained.html", id=id_, at=explanation.get("at"), **told)


def facts_of(explanation: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what else there is to say of a decision: who was asked for, what was on offer, what came of it."""
    asked, choice = explanation.get("asked") or {}, explanation.get("choice")
    told = {
        "user": asked.get("context") or "nothing is told",
        "on offer": asked.get("only"),
        "deferred": asked.get("deferred"),
        "the policy’s choice": None if choice is None else choice["action"],
        "came of it": explanation.get("outcome") or "nothing yet",
        "row": explanation.get("row"),
    }
    return [(name, in_a_cell(value)) for name, value in told.items() if value is not None]
