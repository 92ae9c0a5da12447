"""Forecasts held against what then happens: a world is drawn, a log made in it, and the campaign really played.

    python -m tests.launch.forecast.campaigns --campaigns 100

For every campaign the policy starts from the log, once in the worlds that the forecast draws and once in the true one,
which the forecast never sees. Counted is how often what then happens lies in the forecast's bands of nine tenths.
"""

import argparse
import time
from collections import Counter
from typing import Any

import numpy as np

import stagewise as sw
from stagewise.launch.forecast.case_forecast import DailyRuns, Horizon, compute_safe_days, simulate_run
from stagewise.launch.forecast.forecast import Forecast, forecast_from_log, train_policy
from stagewise.launch.forecast.forecast_log import ForecastLog
from stagewise.problem.context import hash_segment

ACTIONS = ("today", "short", "long", "offer")
COUNTRIES = ("NZ", "AU", "FJ")
POPULATION = 20_000
ODDS = (0.55, 0.15, 0.15, 0.15)  # of whoever made the log: mostly what is done today


def problem_of(kind: str) -> sw.Problem:
    """Return the problem of a campaign: its costs are rates, or linear in the context."""
    linear: Any = {"model": "linear" if kind == "linear" else "rates"}
    divided: Any = {"model": "rates"} if kind == "linear" else {"by": "country"}
    return sw.Problem(
        action_names=ACTIONS,
        safe_name="today",
        context=["age", "opens"],
        reward=sw.Reward("spend", high=5.0) if kind == "amounts" else sw.Reward("click"),
        limits={
            "opt_out": sw.Limit(0.05, safe_bound=0.045, **linear),
            "complaint": sw.Limit(0.03, safe_bound=0.028, **divided),
        },
    )


class Truth:
    """A world that nobody is told of, and a log made in it."""

    def __init__(self, kind: str, seed: int) -> None:
        self.problem, self.rng = problem_of(kind), np.random.default_rng([seed, 17])
        rng, count = self.rng, len(ACTIONS)
        self.context = rng.uniform(-1.0, 1.0, (POPULATION, 2))
        self.context[:, 1] = np.clip(0.6 * self.context[:, 0] + 0.4 * self.context[:, 1], -1.0, 1.0)
        self.country = rng.choice(len(COUNTRIES), POPULATION, p=[0.6, 0.3, 0.1])
        base, slopes = rng.uniform(0.1, 0.35, count), rng.uniform(-0.06, 0.06, (count, 2))
        reward = base + self.context @ slopes.T
        opt_out = np.tile(rng.uniform(0.01, 0.09, count), (POPULATION, 1))
        complaint = rng.uniform(0.002, 0.05, (len(COUNTRIES), count))
        opt_out[:, 0], complaint[:, 0] = rng.uniform(0.01, 0.025), rng.uniform(0.002, 0.02, len(COUNTRIES))
        if kind == "linear":
            complaint[:] = complaint[0]
            opt_out = opt_out * (1.0 + self.context @ rng.uniform(-0.4, 0.4, (count, 2)).T)
        self.noise = 0.4 if kind == "amounts" else 1.0
        self.table = np.stack([reward, opt_out, complaint[self.country]])

    def world(self) -> sw.UserTableWorld:
        """Return it as a simulation plays it."""
        divided = bool(self.problem.divisions)
        segments = np.array([hash_segment(name) for name in COUNTRIES], dtype=float)[self.country]
        users = np.column_stack([self.context, segments]) if divided else self.context
        noise = [self.noise, 1.0, 1.0]
        return sw.UserTableWorld(
            users=users, reward=self.table[0], cost=self.table[1:], segment_columns=int(divided), noise=noise
        )

    def log(self, rows: int) -> dict[str, Any]:
        """Return a log of so many users."""
        who, done = self.rng.integers(0, POPULATION, rows), self.rng.choice(len(ACTIONS), rows, p=ODDS)
        means = self.table[:, who, done]
        seen = (self.rng.random(means.shape) < means).astype(float)
        seen[0] = (1.0 - self.noise) * means[0] + self.noise * seen[0]
        names, low, span = list(self.problem.signals), *self.problem.spans[:, :, np.newaxis]
        told: dict[str, Any] = {"action": np.array(ACTIONS, dtype=object)[done]}
        told |= {"age": self.context[who, 0], "opens": self.context[who, 1]}
        told["country"] = np.array(COUNTRIES, dtype=object)[self.country[who]]
        return told | dict(zip(names, low + span * seen, strict=True))


def happened(truth: Truth, log: dict[str, Any], horizon: Horizon) -> DailyRuns:
    """Play the campaign in the true world, from the same start."""
    found = ForecastLog.of(log, truth.problem)
    case = type("Case", (), {"problem": truth.problem})()
    world = truth.world()
    return simulate_run(train_policy(case, found), world, compute_safe_days(world, 0, horizon), 0, horizon)


def find_covered(told: Forecast, daily: DailyRuns) -> dict[str, bool]:
    """Return which of a forecast's bands hold what happened."""
    case, days, users = told.declared, told.horizon.days, told.horizon.users
    low, span = told.problem.spans
    observed = low + span * daily.observed[0]
    checks = {f"reward of day {day + 1}": case.reward.contains(observed[:, 0])[day] for day in (0, days // 2, days - 1)}
    checks["reward of all days"] = case.total_reward.contains(users * observed[:, 0].sum())
    checks["gain of all days"] = case.total_gain.contains(
        users * span[0] * (daily.reward[0] - daily.safe[0, :, 0]).sum()
    )
    for j, name in enumerate(told.problem.limits):
        checks[f"{name} of all days"] = case.total_costs[name].contains(observed[:, 1 + j].mean())
        checks[f"{name} of the last day"] = case.costs[name].contains(observed[:, 1 + j])[-1]
    return {name: bool(inside) for name, inside in checks.items()}


def covered(campaigns: int, kind: str, rows: int, days: int, users: int, runs: int, first: int = 0) -> Counter[str]:
    """Return how often each band held what happened, of so many campaigns."""
    counts: Counter[str] = Counter()
    for seed in range(first, first + campaigns):
        truth = Truth(kind, seed)
        log = truth.log(rows)
        told = forecast_from_log(
            log, truth.problem, days=days, users_per_day=users, runs=runs, seed=seed, progress=False
        )
        seen = happened(truth, log, Horizon(days, users, 2**40 + seed))
        counts.update({name: int(inside) for name, inside in find_covered(told, seen).items()})
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in {"campaigns": 100, "rows": 3000, "days": 10, "users": 100, "runs": 100, "first": 1000}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--kinds", default="rates,linear,amounts")
    given = vars(parser.parse_args())
    for kind in given.pop("kinds").split(","):
        begun = time.perf_counter()
        counts = covered(kind=kind, **given)
        print(f"{kind}: {given['campaigns']} campaigns, {time.perf_counter() - begun:.0f} s")
        for name, count in counts.items():
            print(f"  {name:28} {count}")
