"""Rendering of the page's templates; every value is escaped. Positions on gauges are in percent of the width."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from stagewise.agent.changes import ASSUMPTION
from stagewise.policies.problem import Problem
from stagewise.server.web.page import verdict as value_format
from stagewise.server.web.page.sessions import Session
from stagewise.server.web.page.verdict import (
    BAD,
    FINE,
    MARKS,
    STALE_SECONDS,
    WAIT,
    amount,
    build_verdict,
    count,
    format_gain,
    format_gain_interval,
)

PARTS = (
    "notices", "verdict", "control", "reward", "actions", "proposals", "reasons", "last", "alerts", "pending",
    "changes", "health",
)  # fmt: skip
LEVELS = {"fine": FINE, "unknown": WAIT, "doubtful": WAIT, "contradicted": BAD, "warning": WAIT, "acknowledged": WAIT}
DEFAULT_FIGURES = {
    "mode": "",
    "share": 1.0,
    "killed": None,
    "killed_everywhere": False,
    "snapshot_age_s": None,
    "health": [],
    "offline_log_rows": 0,
}
AMOUNT_KEYS = ("observed_mean", "low", "high", "threshold", "pessimistic_cost", "shadow")
SCALE_FACTOR = 2.0  # length of a limit's scale, relative to the allowed range
COLOUR_COUNT = 7  # without the safe action's colour
MODES = (
    ("live", "the policy decides, within its limits"),
    ("canary", "the policy decides a share of decisions; the others are the safe action"),
    ("shadow", "the safe action is served; the policy's choice is only logged"),
    ("off", "the safe action is served; the policy does not decide"),
)


@cache
def get_environment() -> Environment:
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


@cache
def read_asset(name: str) -> bytes:
    """Return the content of a static file."""
    return (files(__package__) / "static" / name).read_bytes()


@cache
def get_asset_url(name: str) -> str:
    """Return the URL of a static file; it has a digest of the content, so that browsers can cache it for ever."""
    stem, _, ending = name.rpartition(".")
    return f"/static/{stem}.{hashlib.sha256(read_asset(name)).hexdigest()[:12]}.{ending}"


def render_template(template: str, **variables: Any) -> str:
    return get_environment().get_template(template).render(**variables)


def get_experiment_path(name: str) -> str:
    return f"/e/{quote(name, safe='')}"


def build_page_context(
    figures: Mapping[str, Any], session: Session, readiness: tuple[bool, str], base: str
) -> dict[str, Any]:
    """Return the variables of an experiment's templates."""
    problem = None if figures["problem"] is None else Problem.from_dict(figures["problem"])
    safe = "the safe action" if problem is None else problem.safe_name
    signals = {} if problem is None else problem.reported
    ranges = {name: (signal.low, signal.high) for name, signal in signals.items()}
    colours = assign_colours(() if problem is None else tuple(problem.action_names), safe)
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
            build_limit_gauge(name, {**limit, "in_shadow": shadow})
            | build_drifting(name, limit, figures.get("drifting") or [], colours)
            for name, limit in figures["limits"].items()
        ],
        "reward": None if figures["reward"] is None else build_reward_gauges(figures["reward"], safe),
        "has_reward": problem is None or not problem.needs_proposal,
        "reward_name": "reward" if problem is None else problem.reward.name,
        "signals": [{"name": name} for name in ranges],
        "colours": colours,
        "actions": [
            {**action, "colour": colours[action["name"]], "cells": build_action_cells(action, ranges)}
            for action in figures["actions"]
        ],
        "reasons": compute_bar_widths({code.replace("_", " "): n for code, n in figures["reasons"].items()}),
        "alerts": figures.get("alerts") or [],
        "warnings": [one for one in figures.get("health") or [] if one["name"] in (figures.get("warnings") or [])],
        "problem_text": "" if problem is None else str(problem),
        "example": json.dumps({} if problem is None else build_example_request(problem)),
    }


def build_example_request(problem: Problem) -> dict[str, Any]:
    request: dict[str, Any] = {"context": build_example_context(problem)}
    if problem.needs_proposal:
        request["propose"] = next(name for name in problem.action_names if name != problem.safe_name)
    return request


def build_example_context(problem: Problem) -> dict[str, Any]:
    columns = {name: column.example for name, column in problem.declared_columns.items()}
    return {**dict.fromkeys(problem.segment_columns, "NZ"), **columns}


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
        amounts = {key: amount(limit[key], *ends) for key in ("pessimistic_cost", "estimate", "threshold")}
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
        "proposed": request.get("propose"),
        "scores": request.get("scores"),
        "deferred": request.get("deferred"),
        "policy’s choice": None if choice is None else choice["action"],
        "outcome": explanation.get("outcome") or "none yet",
        "row": explanation.get("row"),
    }
    return [(name, format_cell(value)) for name, value in facts.items() if value is not None]


def to_percent(value: float | None, low: float, high: float) -> float | None:
    """Return the position of a value between two ends, clipped to them."""
    if value is None:
        return None
    return round(100.0 * min(max((value - low) / (high - low), 0.0), 1.0), 3)


def compute_band(low: float, high: float, ends: tuple[float, float]) -> tuple[float, float]:
    """Return the position and the width of a band, at least half a percent wide."""
    first, last = to_percent(low, *ends) or 0.0, to_percent(high, *ends) or 0.0
    return first, round(max(last - first, 0.5), 3)


def build_limit_gauge(name: str, limit: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a limit's gauge; the limit is in the middle of the scale."""
    least, most, threshold = limit["least"], limit["most"], limit["threshold"]
    if limit["at_most"]:
        ends = (least, min(most, least + SCALE_FACTOR * (threshold - least)))
        allowed = (0.0, to_percent(threshold, *ends) or 0.0)
    else:
        ends = (max(least, most - SCALE_FACTOR * (most - threshold)), most)
        allowed = (to_percent(threshold, *ends) or 0.0, 100.0)
    allowed = (allowed[0], round(allowed[1] - allowed[0], 3))
    texts = {f"{key}_text": amount(limit[key], least, most) for key in AMOUNT_KEYS}
    side = "at most" if limit["at_most"] else "at least"
    label = f"{name}: limit {side} {texts['threshold_text']}, pessimistic {texts['pessimistic_cost_text']}"
    if limit["observed_mean"] is not None:
        label += f", observed {texts['observed_mean_text']}, interval {texts['low_text']} to {texts['high_text']}"
    return {
        **limit,
        **texts,
        "name": name,
        "label": label,
        "allowed": allowed,
        "band": compute_band(limit["low"], limit["high"], ends) if limit["observed_mean"] is not None else None,
        "observed_mean_at": to_percent(limit["observed_mean"], *ends),
        "threshold_at": to_percent(threshold, *ends),
        "pessimistic_cost_at": to_percent(limit["pessimistic_cost"], *ends),
    }


def build_drifting(
    name: str, limit: Mapping[str, Any], bounds: Sequence[Mapping[str, Any]], colours: Mapping[str, int]
) -> dict[str, Any]:
    """Return the rows of a limit that drifts, and its bounds over time as lines of a drawing, in percent."""
    least, most, own = limit["least"], limit["most"], [one for one in bounds if one["limit"] == name]
    points = [point for one in own for point in one["history"]]
    length = (limit["threshold"] - least) if limit["at_most"] else (most - limit["threshold"])
    ends = (least, least + SCALE_FACTOR * length) if limit["at_most"] else (most - SCALE_FACTOR * length, most)
    first, last = min((point[0] for point in points), default=0.0), max((point[0] for point in points), default=0.0)
    rows = []
    for one in own:
        texts = {f"{key}_text": amount(one[key], least, most) for key in ("estimate", "bound", "age_term")}
        line, under = [], []
        for at, bound, age in one["history"] if last > first else []:
            x = round(100.0 * (at - first) / (last - first), 2)
            young = bound - age if limit["at_most"] else bound + age
            line.append(f"{x},{100.0 - (to_percent(bound, *ends) or 0.0):g}")
            under.append(f"{x},{100.0 - (to_percent(young, *ends) or 0.0):g}")
        drawn = {"line": " ".join(line), "age_area": " ".join([*line, *reversed(under)])}
        rows.append({**one, **texts, **drawn, "colour": colours.get(one["action"], 0)})
    limit_at = 100.0 - (to_percent(limit["threshold"], *ends) or 0.0)
    shown = {"drift_span": last - first, "drift_limit_at": limit_at, "drift_assumption": ASSUMPTION}
    return {"drifting": rows, "drift_ages": any(one["age_term"] > 0.0 for one in own), **shown}


def build_reward_gauges(reward: Mapping[str, Any], safe: str) -> dict[str, Any]:
    """Return the gauges of the served and the safe action's reward, on one scale."""
    least, most = reward["least"], reward["most"]
    intervals = [reward[key] for key in ("now", "safe") if reward[key]["mean"] is not None]
    low = min((interval["low"] for interval in intervals), default=least)
    high = max((interval["high"] for interval in intervals), default=most)
    margin = 0.04 * (high - low) or 0.5
    ends = (max(low - margin, least - margin), high + margin)
    rows = []
    for key, label in (("now", "served"), ("safe", f"“{safe}”")):
        interval = reward[key]
        rows.append(
            {
                **{end: amount(interval[end], least, most) for end in ("mean", "low", "high")},
                "count": interval["count"],
                "label": label,
                "kind": key,
                "at": to_percent(interval["mean"], *ends),
                "band": compute_band(interval["low"], interval["high"], ends),
            }
        )
    gain = reward["gain"] or {"mean": None, "low": None, "high": None}
    return {
        "name": reward["name"],
        "rows": rows,
        "gain": format_gain(gain["mean"], least, most),
        "interval": format_gain_interval(gain["low"], gain["high"], least, most),
    }


def build_action_cells(action: Mapping[str, Any], ranges: Mapping[str, tuple[float, float]]) -> list[dict[str, Any]]:
    """Return the observed means of an action by signal, as text."""
    cells = []
    for signal, interval in action["observed_mean"].items():
        texts = {end: amount(interval[end], *ranges[signal]) for end in ("mean", "low", "high")}
        cells.append({**texts, "count": interval["count"]})
    return cells


def compute_bar_widths(counts: Mapping[str, int]) -> list[tuple[str, int, float]]:
    """Return counts with the widths of their bars in percent.

    >>> compute_bar_widths({"shadow": 30, "killed": 10})
    [('shadow', 30, 75.0), ('killed', 10, 25.0)]
    """
    total = max(sum(counts.values()), 1)
    return [(name, n, round(100.0 * n / total, 2)) for name, n in counts.items()]


def format_cell(value: Any) -> str:
    """Return a value of an explanation as text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {format_cell(item)}" for key, item in value.items()) or "–"
    if isinstance(value, (list, tuple)):
        return ", ".join(format_cell(item) for item in value) or "–"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, int):
        return count(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
