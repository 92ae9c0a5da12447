"""Logs in which nothing is wrong, of kinds that a check could take for a fault: each with the problem that it is of."""

from collections.abc import Callable
from typing import Any

import numpy as np

import stagewise as sw

NAMES = ["today", "offer", "digest"]
Told = tuple[dict[str, Any], sw.Problem]


def problem(context: dict[str, tuple[float, float]], **limit: Any) -> sw.Problem:
    """Return a problem of three actions."""
    promise = {} if {"by", "model"} & limit.keys() else {"model": "rates"}
    limits = {"opt_out": sw.Limit(limit.pop("value", 0.03), **{**promise, **limit})}
    return sw.Problem(action_names=NAMES, safe_name="today", context=context, reward=sw.Reward("click"), limits=limits)


def drawn(chance: np.random.Generator, rows: int, **columns: Any) -> dict[str, Any]:
    """Return a log of actions that a die chose, with the columns that are given and outcomes."""
    sent = chance.integers(0, 3, rows)
    told = {"action": np.array(NAMES, dtype=object)[sent], **columns}
    told["click"] = (chance.random(rows) < np.array([0.05, 0.1, 0.15])[sent]) * 1.0
    told["opt_out"] = (chance.random(rows) < np.array([0.01, 0.015, 0.02])[sent]) * 1.0
    return told


def few_values(chance: np.random.Generator, rows: int) -> Told:
    """Nearly every row has a copy: nothing is known of users but five tiers and three countries."""
    country = np.array(["NZ", "AU", "UK"], dtype=object)[chance.integers(0, 3, rows)]
    return drawn(chance, rows, tier=chance.integers(1, 6, rows), country=country), problem({"tier": (1, 5)})


def no_numbers(chance: np.random.Generator, rows: int) -> Told:
    """An action and two outcomes are all there is."""
    return drawn(chance, rows), problem({})


def whole_days(chance: np.random.Generator, rows: int) -> Told:
    """Times are days and ages are years: about two rows agree in both and in the action."""
    day, age = chance.integers(0, max(rows // 300, 2), rows), chance.integers(18, 68, rows)
    return drawn(chance, rows, day=1.7e9 + 86_400.0 * day, age=age), problem({"age": (18, 68)})


def days_that_decide(chance: np.random.Generator, rows: int) -> Told:
    """The same, and most of what happens is the user's own: alike rows agree far more often than others."""
    told, asked = whole_days(chance, rows)
    told["click"] = (chance.random(rows) < 0.02 + 0.96 * (told["age"] - 18) / 50) * 1.0
    return told, asked


def strong_number(chance: np.random.Generator, rows: int) -> Told:
    """Purchases of the past foretell the next one, linearly: an area of .8 to .9 under the curve, and honest."""
    bought = np.minimum(chance.poisson(chance.gamma(0.15, 4.0, rows)), 8)
    told = drawn(chance, rows, at=1.7e9 + np.sort(chance.uniform(0.0, 3e6, rows)), bought=bought)
    told["click"] = (chance.random(rows) < 0.01 + 0.11 * bought) * 1.0
    return told, problem({"bought": (0, 8)})


def events_only(chance: np.random.Generator, rows: int) -> Told:
    """As a desk writes it: what happened, within a window; four weeks, cut while windows of seven days were open."""
    at = np.sort(chance.uniform(0.0, 28.0, rows))
    told = drawn(chance, rows, at=1.7e9 + 86_400.0 * at, age=chance.uniform(18.0, 90.0, rows))
    for name, days in (("click", 1.0), ("opt_out", 7.0)):
        seen = (told[name] > 0.0) & (at + days * chance.random(rows) <= 28.0)
        told[name] = np.where(seen, 1.0, np.nan)
    asked = problem({"age": (18, 90)}, safe_bound=0.015, window="7d")
    return told, sw.Problem(**{**vars_of(asked), "reward": sw.Reward("click", window="1d")})


def answered_in_time(chance: np.random.Generator, rows: int) -> Told:
    """The same with a 0 where a window closed: only what is still open is missing."""
    told, asked = events_only(chance, rows)
    for name, days in (("click", 1.0), ("opt_out", 7.0)):
        closed = told["at"] + 86_400.0 * days <= told["at"].max()
        told[name] = np.where(closed & np.isnan(told[name]), 0.0, told[name])
    return told, asked


def not_for_everyone(chance: np.random.Generator, rows: int) -> Told:
    """Half of the users are never shown the digest, or one in ten thousand times; the log has `propensity` only."""
    least = float(chance.choice([0.0, 1e-4]))
    chances = np.where(chance.random((rows, 1)) < 0.5, [[0.5, 0.3, 0.2]], [[0.7 - least, 0.3, least]])
    sent = (chance.random((rows, 1)) > np.cumsum(chances, axis=1)[:, :2]).sum(axis=1)
    told = drawn(chance, rows, at=1.7e9 + np.arange(rows) * 60.0, age=chance.uniform(18.0, 90.0, rows))
    told |= {"action": np.array(NAMES, dtype=object)[sent], "propensity": chances[np.arange(rows), sent]}
    told["click"] = (chance.random(rows) < np.array([0.05, 0.1, 0.15])[sent]) * 1.0
    return told, problem({"age": (18, 90)})


def of_our_own(chance: np.random.Generator, rows: int) -> Told:
    """The log of an agent that learns as it goes: chances of all actions, which depend on all that came before."""
    asked = problem({"age": (0, 1)}, safe_bound=0.012)
    clicks, costs = np.array([0.05, 0.15, 0.25]), np.array([0.01, 0.015, 0.06])
    agent = sw.Agent(asked, seed=int(chance.integers(1 << 30)))
    sent, age, luck = chance.integers(0, 3, 2_500), chance.random(2_500), chance.random((2, 2_500))
    before = {"click": (luck[0] < clicks[sent]) * 1.0, "opt_out": (luck[1] < costs[sent]) * 1.0}
    agent.learn_log_frame({"action": np.array(NAMES, dtype=object)[sent], "age": age, **before})
    told: dict[str, Any] = {f"probability.{name}": np.zeros(rows) for name in NAMES}
    told |= {"at": 1.7e9 + 60.0 * np.arange(rows), "action": np.empty(rows, dtype=object), "age": chance.random(rows)}
    told |= {"click": np.zeros(rows), "opt_out": np.zeros(rows)}
    for row in range(rows):
        decision = agent.decide({"age": float(told["age"][row])})
        place, luck = NAMES.index(decision.action), chance.random(2)
        mean = clicks[place] + 0.1 * (told["age"][row] - 0.5) * (place > 0)
        told["click"][row], told["opt_out"][row] = luck < (mean, costs[place])
        agent.learn(decision, click=told["click"][row], opt_out=told["opt_out"][row])
        told["action"][row] = decision.action
        for name in NAMES:
            told[f"probability.{name}"][row] = decision.probabilities[name]
    return told, asked


def told_less(told: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a log with the chances of all actions, with that of what was done alone, and with none."""
    bare = {name: column for name, column in told.items() if not name.startswith("probability.")}
    own = np.array([told[f"probability.{name}"][row] for row, name in enumerate(told["action"])])
    return [told, {**bare, "propensity": own}, bare]


def by_the_hour(chance: np.random.Generator, rows: int) -> Told:
    """Opt-outs are four times as frequent in the evening as at night, when few are sent anything; clicks too."""
    at = np.sort(chance.uniform(0.0, 28.0, 3 * rows))
    busy = 1.0 + np.cos(2.0 * np.pi * (at - 0.8))
    kept = np.sort(chance.choice(3 * rows, rows, replace=False, p=(0.2 + busy) / (0.2 + busy).sum()))
    told = drawn(chance, rows, at=1.7e9 + 86_400.0 * at[kept], age=chance.uniform(18.0, 90.0, rows))
    sent, cycle = places(told), 0.4 + 0.6 * busy[kept]  # from .4 to 1.6
    told["click"] = (chance.random(rows) < cycle * np.array([0.05, 0.1, 0.15])[sent]) * 1.0
    told["opt_out"] = (chance.random(rows) < cycle * np.array([0.01, 0.015, 0.02])[sent]) * 1.0
    return told, problem({"age": (18, 90)}, value=0.05)


def ends_on_a_weekend(chance: np.random.Generator, rows: int) -> Told:
    """At weekends everything is half as frequent, and the log ends on a Sunday night, UTC."""
    day = np.sort(chance.uniform(0.0, 28.0, rows))
    told = drawn(chance, rows, at=1_700_438_400.0 + 86_400.0 * day, age=chance.uniform(18.0, 90.0, rows))  # a Monday
    sent, rate = places(told), np.where(day % 7.0 >= 5.0, 0.5, 1.0)
    told["click"] = (chance.random(rows) < rate * np.array([0.05, 0.1, 0.15])[sent]) * 1.0
    told["opt_out"] = (chance.random(rows) < rate * np.array([0.01, 0.015, 0.02])[sent]) * 1.0
    return told, problem({"age": (18, 90)})


def once_more_in_a_minute(chance: np.random.Generator, rows: int) -> Told:
    """A third of the users is asked again within a minute, the same; some users click far more than others."""
    users = np.sort(chance.integers(0, 2 * rows // 3, rows))
    at = 1.7e9 + 60.0 * users + np.sort(chance.uniform(0.0, 40.0, rows))
    keen, ages = chance.beta(0.1, 0.9, rows)[users], chance.uniform(18.0, 90.0, rows).round(3)[users]
    told = drawn(chance, rows, at=np.sort(at), age=ages, decision_id=np.arange(rows))
    told["action"] = told["action"][users % rows]
    sent = places(told)
    told["click"] = (chance.random(rows) < keen) * 1.0
    told["opt_out"] = (chance.random(rows) < np.array([0.01, 0.015, 0.02])[sent]) * 1.0
    return told, problem({"age": (18, 90)})


def places(told: dict[str, Any]) -> Any:
    """Return the number of what was done in every row."""
    return np.array([NAMES.index(name) for name in told["action"]])


def vars_of(asked: sw.Problem) -> dict[str, Any]:
    """Return what a problem was made of."""
    return {name: getattr(asked, name) for name in ("action_names", "safe_name", "context", "limits")}


HONEST: tuple[Callable[[np.random.Generator, int], Told], ...] = (
    few_values,
    no_numbers,
    whole_days,
    days_that_decide,
    strong_number,
    events_only,
    answered_in_time,
    not_for_everyone,
    by_the_hour,
    ends_on_a_weekend,
    once_more_in_a_minute,
)
