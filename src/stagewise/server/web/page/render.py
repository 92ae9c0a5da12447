"""Rendering of the page's templates; every value is escaped."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from stagewise.policies.problem import Problem
from stagewise.server.web.page import value_format
from stagewise.server.web.page.assets import get_asset_url
from stagewise.server.web.page.gauges import (
    build_action_cells,
    build_limit_gauge,
    build_reward_gauges,
    compute_bar_widths,
    format_cell,
)
from stagewise.server.web.page.sessions import Session
from stagewise.server.web.page.verdict import BAD, FINE, MARKS, STALE_SECONDS, WAIT, build_verdict

PARTS = (
    "notices",
    "verdict",
    "control",
    "reward",
    "actions",
    "reasons",
    "last",
    "alerts",
    "pending",
    "changes",
    "health",
)
LEVELS = {"fine": FINE, "unknown": WAIT, "doubtful": WAIT, "contradicted": BAD, "acknowledged": WAIT}
DEFAULT_FIGURES = {
    "mode": "",
    "share": 1.0,
    "killed": None,
    "killed_everywhere": False,
    "snapshot_age_s": None,
    "health": [],
    "offline_log_rows": 0,
}
COLOUR_COUNT = 7  # without the safe action's colour
MODES = (
    ("live", "the policy decides, within its limits"),
    ("canary", "the policy decides a share of decisions; the others are the safe action"),
    ("shadow", "the safe action is served; the policy's choice is only logged"),
    ("off", "the safe action is served; the policy does not decide"),
)


@cache
def get_environment() -> Environment:
    """Return the template environment."""
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = ("count", "percent", "amount", "duration", "moment", "clock")
    environment.filters.update({name: getattr(value_format, name) for name in filters})
    environment.filters["urlencode_all"] = lambda text: quote(str(text), safe="")
    environment.globals.update({"asset": get_asset_url, "levels": LEVELS, "marks": MARKS, "modes": MODES})
    return environment


def render_template(template: str, **variables: Any) -> str:
    """Return a rendered template."""
    return get_environment().get_template(template).render(**variables)


def get_experiment_path(name: str) -> str:
    """Return the path of an experiment's page."""
    return f"/e/{quote(name, safe='')}"


def build_page_context(
    figures: Mapping[str, Any], session: Session, readiness: tuple[bool, str], base: str
) -> dict[str, Any]:
    """Return the variables of an experiment's templates."""
    problem = None if figures["problem"] is None else Problem.from_dict(figures["problem"])
    safe = "the safe action" if problem is None else problem.safe
    signals = {} if problem is None else problem.signals
    ranges = {name: (signal.low, signal.high) for name, signal in signals.items()}
    colours = assign_colours(() if problem is None else tuple(problem.actions), safe)
    age = figures.get("snapshot_age_s")
    shadow = figures.get("mode") == "shadow" and bool(figures["shadow"])
    return {
        "shadow": shadow,
        "figures": {**DEFAULT_FIGURES, **figures},
        "session": session,
        "admin": session.holder.has_role("admin"),
        "ready": readiness[0],
        "ready_why": readiness[1],
        "base": base,
        "path": get_experiment_path(figures["name"]),
        "safe": safe,
        "stale": bool(figures["decisions"]) and age is not None and age > figures.get("max_age_s", STALE_SECONDS),
        "verdict": build_verdict(figures),
        "limits": [
            build_limit_gauge(name, {**limit, "in_shadow": shadow}) for name, limit in figures["limits"].items()
        ],
        "reward": None if figures["reward"] is None else build_reward_gauges(figures["reward"], safe),
        "reward_name": "reward" if problem is None else problem.reward.name,
        "signals": [{"name": name} for name in ranges],
        "colours": colours,
        "actions": [
            {**action, "colour": colours[action["name"]], "cells": build_action_cells(action, ranges)}
            for action in figures["actions"]
        ],
        "reasons": compute_bar_widths({code.replace("_", " "): n for code, n in figures["reasons"].items()}),
        "alerts": figures.get("alerts") or [],
        "problem_text": "" if problem is None else str(problem),
        "example": json.dumps({"context": {} if problem is None else build_example_context(problem)}),
    }


def build_example_context(problem: Problem) -> dict[str, Any]:
    """Return an example of a context."""
    numbers = {name: round((low + high) / 2.0, 2) for name, (low, high) in problem.ranges}
    return {**numbers, **dict.fromkeys(problem.divisions, "NZ")}


def assign_colours(actions: tuple[str, ...], safe: str) -> dict[str, int]:
    """Return the colour of every action; 0 is the safe action's."""
    others = [name for name in actions if name != safe]
    return {safe: 0, **{name: 1 + i % COLOUR_COUNT for i, name in enumerate(others)}}


def render_parts(context: Mapping[str, Any]) -> dict[str, str]:
    """Return the parts of an experiment's page that change."""
    parts = {name: render_template(f"parts/{name}.html", **context) for name in PARTS}
    for i, limit in enumerate(context["limits"]):
        parts[f"limit-{i}"] = render_template("parts/limit.html", limit=limit)
    return parts


def render_explanation(id_: str, explanation: Mapping[str, Any], problem: Problem) -> str:
    """Return the explanation of a decision as HTML."""
    rows, limits = [], explanation.get("limits") or {}
    for name, limit in limits.items():
        signal = problem.limits.get(name)
        ends = (0.0, 1.0) if signal is None else (signal.low, signal.high)
        amounts = {key: value_format.amount(limit[key], *ends) for key in ("pessimistic_cost", "estimate", "threshold")}
        rows.append({"name": name, "at_most": signal is None or not signal.at_least, **amounts})
    probabilities = sorted((explanation.get("probabilities") or {}).items(), key=lambda pair: -pair[1])
    sentences = list(explanation.get("description", ()))
    variables = {
        "description": sentences[: len(sentences) - len(limits)],  # the last sentences are the limits, listed below
        "facts": build_facts(explanation),
        "probabilities": probabilities,
        "limits": rows,
    }
    return render_template("parts/explanation.html", id=id_, at=explanation.get("at"), **variables)


def build_facts(explanation: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the other facts of a decision: context, available actions, outcome."""
    request, choice = explanation.get("request") or {}, explanation.get("choice")
    facts = {
        "context": request.get("context") or "empty",
        "available": request.get("only"),
        "deferred": request.get("deferred"),
        "policy’s choice": None if choice is None else choice["action"],
        "outcome": explanation.get("outcome") or "none yet",
        "row": explanation.get("row"),
    }
    return [(name, format_cell(value)) for name, value in facts.items() if value is not None]
