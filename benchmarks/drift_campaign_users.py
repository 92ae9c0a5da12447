"""A campaign of unlike users in which one template's opt-outs double: who is held back, how soon clicks are back.

Usage: python benchmarks/drift_campaign_users.py [--nights 20] [--change 10] [--users 20000] [--seeds 1] [--jobs 1]
       [--drift jumps 0.003/30d none]

Five templates; rates depend on the user. Opt-outs are limited to 1.5 % on average, complaints to .3 % by country. A log
of 40,000 rows, then one table of users a night, whose outcomes are learned before the next night. After night `change`
the opt-outs of "offer" double. Attainable: the clicks of the best mixture for each user that keeps both limits at the
true rates of the templates. What is lost is split: the best mixture for the true clicks under the bounds of the night,
and under the bounds of one limit with the true rates of the other.
"""

import argparse
import os
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

os.environ.setdefault("STAGEWISE_COMPILE", "always")  # before the package is imported

import numpy as np

import stagewise as sw
from stagewise.agent.decision_analysis import analyze_decision
from stagewise.engine.compile import Floats
from stagewise.problem.timing import DAY

TEMPLATES = ["plain", "emoji", "story", "offer", "urgent"]
COUNTRIES, COUNTRY_SHARES = ["DE", "FR", "BR", "IN", "US", "NG"], [0.3, 0.2, 0.2, 0.15, 0.1, 0.05]
COMPLAINTS_BY_COUNTRY = np.array([1.3, 1.0, 0.8, 0.7, 1.1, 0.8])
DEVICES, DEVICE_SHARES = ["ios", "android", "web", "lite"], [0.3, 0.45, 0.2, 0.05]
CLICKS = np.array([0.045, 0.055, 0.06, 0.075, 0.07])
OPT_OUTS = np.array([0.0055, 0.0065, 0.0075, 0.0090, 0.0125])
COMPLAINTS = np.array([0.0010, 0.0012, 0.0011, 0.0016, 0.0022])
LIMITS, CHANGED, START = (0.015, 0.003), 3, 1_763_000_000.0
LOG_ROWS = 40_000


def draw_users(rng: np.random.Generator, count: int) -> dict[str, Any]:
    """Return the columns of users."""
    tired = rng.poisson(6, count) * (rng.random(count) < 0.2)
    users: dict[str, Any] = {"country": rng.choice(COUNTRIES, count, p=COUNTRY_SHARES)}
    device = rng.choice(DEVICES, count, p=DEVICE_SHARES)
    users["tenure_days"] = np.minimum(rng.exponential(500, count), 4000).round()
    users["lifetime_spend"] = np.minimum(rng.lognormal(3, 1.5, count), 20000).round(2)
    users["sends_30d"] = np.minimum(rng.poisson(8, count) + tired, 60).astype(float)
    users["open_rate"] = rng.beta(2, 6, count).round(4)
    users |= {f"device_{name}": (device == name).astype(float) for name in DEVICES[1:]}
    users |= {f"country_{name}": (users["country"] == name).astype(float) for name in COUNTRIES[1:]}
    return users


def compute_rates(users: Mapping[str, Any], factor: float) -> tuple[Floats, Floats, Floats]:
    """Return the chances of a click, an opt-out and a complaint (n, 5); `factor` multiplies the opt-outs of "offer"."""
    tenure, country = users["tenure_days"], users["country"]
    ios = users["device_android"] + users["device_web"] + users["device_lite"] == 0.0
    clicks = CLICKS * (0.7 + 1.2 * users["open_rate"][:, None])
    clicks[:, 1] *= np.where(ios, 1.4, 0.9)
    clicks[:, 2] *= np.where(tenure > 700, 1.35, 0.9)
    clicks[:, 3] *= np.clip(0.6 + 0.12 * np.log1p(users["lifetime_spend"]), 0.5, 1.6)
    clicks[:, 4] *= np.where(np.isin(country, ["IN", "BR"]), 1.3, 0.9)
    tired = np.clip(0.55 + 0.055 * users["sends_30d"], 0.5, 3.0) * np.where(tenure < 60, 1.5, 0.94)
    opt_outs = OPT_OUTS * tired[:, None]
    opt_outs[:, CHANGED] *= factor * np.where(users["device_lite"] > 0.0, 1.8, 1.0)
    by_country = COMPLAINTS_BY_COUNTRY[[COUNTRIES.index(name) for name in country]]
    return clicks, opt_outs, COMPLAINTS * by_country[:, None]


def build_campaign(drift: Any) -> sw.Problem:
    """Return the problem."""
    context: dict[str, Any] = {"tenure_days": (0, 4200), "lifetime_spend": (0, 20000), "sends_30d": (0, 60)}
    context |= {"open_rate": (0, 1)} | {f"device_{name}": (0, 1) for name in DEVICES[1:]}
    context |= {f"country_{name}": (0, 1) for name in COUNTRIES[1:]}
    opt_out = sw.Limit(LIMITS[0], safe_bound=0.009, model="rates", drift=drift)
    complaint = sw.Limit(LIMITS[1], safe_bound=0.0018, model="rates", by="country", drift=drift)
    limits = {"opt_out": opt_out, "complaint": complaint}
    return sw.Problem(
        action_names=TEMPLATES, safe_name="plain", context=context, reward=sw.Reward("click"), limits=limits
    )


def draw_log(rng: np.random.Generator) -> dict[str, Any]:
    """Return the log of an earlier policy, of thirty days."""
    users = draw_users(rng, LOG_ROWS)
    scores = np.zeros((LOG_ROWS, 5))
    scores[:, 0], scores[:, 2] = 1.6, 0.1
    scores[:, 1] = np.where(users["device_android"] + users["device_web"] + users["device_lite"] == 0.0, 0.8, -0.2)
    scores[:, 3] = np.where(users["lifetime_spend"] > 40, 0.9, -0.8)
    scores[:, 4] = np.where(users["tenure_days"] < 200, 0.2, -1.0)
    odds = np.exp(scores)
    odds = 0.9 * odds / odds.sum(axis=1, keepdims=True) + 0.02
    actions = (odds.cumsum(axis=1) > rng.random((LOG_ROWS, 1))).argmax(axis=1)
    at = START - 30 * DAY + np.sort(rng.uniform(0, 30 * DAY, LOG_ROWS))
    return {"at": at, "action": [TEMPLATES[i] for i in actions], **users, **draw_outcomes(rng, users, actions, 1.0)}


def draw_outcomes(
    rng: np.random.Generator, users: Mapping[str, Any], actions: Any, factor: float
) -> dict[str, Any]:  # fmt: skip
    """Return the outcomes of actions."""
    rows, rates = np.arange(len(actions)), compute_rates(users, factor)
    drawn = (rng.random(len(actions)) < of_signal[rows, actions] for of_signal in rates)
    return {name: values.astype(float) for name, values in zip(("click", "opt_out", "complaint"), drawn, strict=True)}


class Rates(NamedTuple):
    """Opt-outs and complaints of every template in every country (6, 5): true rates, or their upper bounds."""

    opt_outs: Floats
    complaints: Floats


def list_vertices(costs: Floats) -> Floats:
    """Return the extreme mixtures (n, 5) of templates that keep the limits with these costs (2, 5)."""
    count, m = costs.shape[1], len(LIMITS)
    rows = np.vstack([np.ones(count), costs])
    rows = np.hstack([rows, np.vstack([np.zeros(m), np.eye(m)])])
    found = []
    for chosen in combinations(range(count + m), m + 1):
        square = rows[:, chosen]
        if abs(np.linalg.det(square)) > 1e-14:
            shares = np.linalg.solve(square, [1.0, *LIMITS])
            if (shares >= -1e-9).all():
                found.append(np.zeros(count + m))
                found[-1][list(chosen)] = shares
    return np.array(found)[:, :count]


def compute_attainable(users: Mapping[str, Any], clicks: Floats, rates: Rates) -> float:
    """Return the mean clicks of the best mixture for every user that keeps both limits at these rates."""
    total = 0.0
    for number, country in enumerate(COUNTRIES):
        vertices = list_vertices(np.array([rates.opt_outs[number], rates.complaints[number]]))
        total += (clicks[users["country"] == country] @ vertices.T).max(axis=1).sum()
    return total / len(clicks)


def read_bounds(agent: sw.Agent, users: Mapping[str, Any], context: list[str], now: float) -> Rates:
    """Return the upper bounds that decide about users of each country."""
    bounds = Rates(*np.ones((2, len(COUNTRIES), len(TEMPLATES))))
    for number, country in enumerate(COUNTRIES):
        user = np.flatnonzero(users["country"] == country)[0]
        decision = agent.decide({name: users[name][user] for name in context}, now=now)
        costs = analyze_decision(decision, agent.state.memory).pessimistic_cost[:, :-1]
        costs[:, 0] = analyze_decision(decision, agent.state.memory).pessimistic_cost[:, -1]  # the safe action
        bounds.opt_outs[number], bounds.complaints[number] = costs
        agent.cancel(decision.id)
    return bounds


def run_campaign(drift: Any, nights: int, change: int, count: int, seed: int) -> list[str]:
    """Return a line for every night: clicks, where they are lost, shares, and cost beside what is allowed."""
    rng, agent = np.random.default_rng([99, seed]), sw.Agent(build_campaign(drift), seed=seed)
    log, lines, context = draw_log(np.random.default_rng([1, seed])), [], [*build_campaign(drift).context, "country"]
    agent.learn_log_frame(log if drift is not None else {name: each for name, each in log.items() if name != "at"})
    for night in range(1, nights + 1):
        now, factor = START + night * DAY, 2.0 if night > change else 1.0
        users = draw_users(rng, count)
        clicks, opt_outs, complaints = compute_rates(users, factor)
        rates, plain = opt_outs.mean(axis=0), clicks[:, 0].mean()  # what a limit on the average user is about
        true = Rates(np.tile(rates, (len(COUNTRIES), 1)), COMPLAINTS_BY_COUNTRY[:, None] * COMPLAINTS)
        bounds = read_bounds(agent, users, context, now)
        table = agent.decide_frame({"user_id": np.arange(count), **users}, run=f"night {night}", now=now)
        shares = np.column_stack([table[f"probability.{name}"] for name in TEMPLATES])
        best, found = compute_attainable(users, clicks, true), (shares * clicks).sum(axis=1).mean()
        known = (bounds, true._replace(opt_outs=bounds.opt_outs), true._replace(complaints=bounds.complaints))
        under = " | ".join(f"{compute_attainable(users, clicks, one) / best:.2f}" for one in known)
        actions = np.array([TEMPLATES.index(name) for name in table["action"]])
        outcomes = draw_outcomes(rng, users, actions, factor)
        agent.learn_outcomes({"decision_id": table["decision_id"], **outcomes}, now=now + 40_000)
        bad = ("warning", "contradicted")
        warnings = [f"{one.name} {one.verdict}" for one in agent.health() if one.verdict in bad]
        lines.append(
            f"{night} | {found / best:.2f} | {under} | {(found - plain) / (best - plain):.2f} | "
            f"{np.round(shares.mean(0), 2)} | {(shares @ rates > LIMITS[0] + 1e-12).mean():.2f} | "
            f"{((shares * complaints).sum(axis=1) > LIMITS[1] + 1e-12).mean():.2f} | {'; '.join(warnings)}"
        )
    return lines


def main() -> None:
    """Print the nights of every campaign."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nights", type=int, default=20)
    parser.add_argument("--change", type=int, default=10)
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--drift", nargs="+", default=["jumps", "0.003/30d", "none"])
    given = parser.parse_args()
    head = (
        "night | share of attainable clicks | best under the bounds | of opt-outs | of complaints | "
        "share of the extra ones | shares | over: opt-outs | complaints by country"
    )
    with ProcessPoolExecutor(given.jobs) as pool:
        for drift in (None if one == "none" else one for one in given.drift):
            play = partial(run_campaign, drift, given.nights, given.change, given.users)
            for seed, lines in enumerate(pool.map(play, range(given.seeds))):
                print(f"drift={drift!r}, seed {seed}: {head}", *lines, sep="\n", flush=True)


if __name__ == "__main__":
    main()
