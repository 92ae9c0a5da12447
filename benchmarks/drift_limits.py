"""Limits in worlds that move: runs over the limit, plays, adversaries, relearning, jumps, memory and time.

Usage: python benchmarks/drift_limits.py [--worlds] [--constant] [--adversaries] [--relearn] [--jumps] [--speed]
       [--runs 200]; default: all.

One action beside a safe action that costs nothing, limit .02; it is played with the share min(1, limit/bound). Bounds
are those of a `Limit` with a drift (`models.epochs`); controls that must fail stand beside them.
"""

import argparse
import math

import numpy as np

from stagewise.engine.compile import Floats, kernel
from stagewise.engine.random import OUTCOME, POLICY, uniform
from stagewise.models.average_bounds import compute_average_upper
from stagewise.models.epochs import (
    CELL_SIZE,
    HEADER_SIZE,
    MEAN,
    NEWEST,
    PULLS,
    advance_cell,
    advance_header,
    compute_high_now,
    find_epoch,
    learn_in_epochs,
)
from stagewise.problem.drift import Drift

LIMIT, PER_DAY, DAYS, LAG, SEED = 0.02, 1000, 100, 2.0, 11
DAY = 86_400.0
EPOCHS, FOREVER, WINDOW = 0, 1, 2  # which set
OVER, ROUNDS_OVER, WORST, SHARE = range(4)  # of a run
NEVER = 1e9  # in place of log 1/δ': an end that never moves
WORLDS = ("constant", "rise", "season", "hill", "fall", "weekly", "walk", "stairs")


def build_path(name: str) -> Floats:
    """Return the mean in every round."""
    t = np.arange(PER_DAY * DAYS) / PER_DAY
    if name == "constant":
        return np.full(t.size, 0.01)
    if name == "rise":
        return np.where(t < 40, 0.008, np.minimum(0.008 + 0.0004 * (t - 40), 0.028))
    if name == "season":
        return 0.016 + 0.012 * np.sin(2 * np.pi * (t - 25) / 100)
    if name == "hill":
        return 0.006 + np.clip(0.0015 * (t - 50), 0, 0.021) - np.clip(0.0015 * (t - 64), 0, 0.021)
    if name == "fall":
        return np.maximum(0.03 - 0.0006 * t, 0.008)
    if name == "weekly":  # a week's wave upon a slow rise
        return 0.009 + 0.00006 * t + 0.0006 * np.sin(2 * np.pi * t / 7)
    if name == "walk":  # every day up or down at full slope, between .004 and .026
        signs = np.random.default_rng(5).choice([-1.0, 1.0], DAYS + 1)
        steps = np.repeat(signs, PER_DAY)[: t.size] * 0.0008 / PER_DAY
        folded = np.mod(0.012 - 0.004 + np.cumsum(steps), 0.044)
        return 0.004 + np.where(folded > 0.022, 0.044 - folded, folded)
    ramps = np.clip(np.mod(t, 25) - 20, 0, 5) / 5 + np.floor(t / 25)  # stairs: twenty quiet days, five that rise
    return 0.006 + 0.0055 * ramps


def find_slope(path: Floats) -> float:
    """Return the largest slope per day, at least .0002."""
    return max(float(np.abs(np.diff(path)).max()) * PER_DAY, 0.0002)


def build_settings(amount: float, seconds: float, is_budget: bool = False) -> Floats:
    """Return what the kernels read."""
    return np.array(Drift(amount, seconds, is_budget).to_settings(0, LIMIT))


@kernel
def learn_at(header: Floats, settings: Floats, now: float, value: float, low: float, high: float, cell: Floats) -> None:
    """Learn an outcome of the only cell."""
    newest = find_epoch(header, settings, now)
    if newest > int(header[NEWEST]):
        advance_cell(header, settings, newest, cell)
        advance_header(header, settings, newest, now)
    cell[PULLS] += 1.0
    cell[MEAN] += (value - cell[MEAN]) / cell[PULLS]
    learn_in_epochs(header, settings, now, value, low, high, cell)


@kernel
def play(
    path: Floats, how: int, look: float, settings: Floats, low: float, high: float, header: Floats, cell: Floats,
    acted: Floats, outcomes: Floats, record: Floats, run: int,
) -> None:  # fmt: skip
    """Play one run; outcomes are learned at the age of LAG days, in the order of the decisions."""
    learned, first, n, total, least = 0, 0, 0.0, 0.0, 1.0
    bound, could, got = 1.0, 0.0, 0.0
    for t in range(path.size):
        now = t / PER_DAY * DAY
        while learned < t and now - learned / PER_DAY * DAY >= LAG * DAY:
            if acted[learned] > 0.0:
                if how == EPOCHS:
                    learn_at(header, settings, learned / PER_DAY * DAY, outcomes[learned], low, high, cell)
                n += 1.0
                total += outcomes[learned]
            learned += 1
        if how == EPOCHS:
            bound = compute_high_now(settings, now, cell)
        elif how == FOREVER and t % 100 == 0:
            least = min(least, compute_average_upper(n, total, high))
            bound = least
        elif how == WINDOW and t % 100 == 0:
            while first < learned and (t - first) / PER_DAY > look + LAG:
                n -= acted[first]
                total -= acted[first] * outcomes[first]
                first += 1
            bound = compute_chernoff(n, total, high)
        share = 1.0 if bound <= LIMIT else LIMIT / bound
        cost = share * path[t]
        if cost > LIMIT + 1e-12:
            record[OVER] = 1.0
            record[ROUNDS_OVER] += 1.0
        record[WORST] = max(record[WORST], cost)
        got += share
        could += min(1.0, LIMIT / path[t])
        acted[t] = 1.0 if uniform(SEED, run, t, POLICY, 0) < share else 0.0
        outcomes[t] = 1.0 if uniform(SEED, run, t, OUTCOME, 0) < path[t] else 0.0
    record[SHARE] = got / could


@kernel
def compute_chernoff(n: float, total: float, confidence: float) -> float:
    """Return Chernoff's bound for a number of outcomes that is fixed."""
    if n <= 0.0:
        return 1.0
    mean = total / n
    low, high = mean, 1.0
    for _ in range(34):
        p = 0.5 * (low + high)
        divergence = mean * math.log(mean / p) if mean > 0.0 else 0.0
        if mean < 1.0:
            divergence += (1.0 - mean) * math.log((1.0 - mean) / (1.0 - p))
        if n * divergence > confidence:
            high = p
        else:
            low = p
    return high


def play_runs(
    path: Floats, how: int, settings: Floats, delta: float, runs: int, look: float = 0.0, low: float = 0.0
) -> Floats:
    """Return the records of runs; δ is split as by a `Problem`: .8 for upper ends, .2 for the lower."""
    records = np.zeros((runs, 4))
    for run in range(runs):
        acted, outcomes = np.zeros((2, path.size))
        high = -math.log((0.8 if how == EPOCHS else 1.0) * delta)
        play(
            path, how, look, settings, low or -math.log(0.2 * delta), high,
            np.zeros(HEADER_SIZE), np.zeros(CELL_SIZE), acted, outcomes, records[run], run,
        )  # fmt: skip
    return records


def show_worlds(runs: int) -> None:
    """Print the table of worlds."""
    print(f"worlds: {PER_DAY} users a day, {DAYS} days, lag {LAG} days, delta .1, {runs} runs")
    print("runs that are ever over the limit | rounds that are | worst | share of the oracle's plays")
    for name in WORLDS:
        path = build_path(name)
        slope = find_slope(path)
        frozen = build_settings(slope, DAY)
        frozen[2] = 1e-300  # no age term
        cases = [
            ("epochs, true slope", EPOCHS, build_settings(slope, DAY), 0.0, 0.0),
            ("epochs, twice the slope", EPOCHS, build_settings(2 * slope, DAY), 0.0, 0.0),
            ("no age term", EPOCHS, frozen, 0.0, NEVER),
            ("one set for ever", FOREVER, frozen, 0.0, 0.0),
            *((f"window of {days} d", WINDOW, frozen, float(days), 0.0) for days in (5, 10, 20)),
        ]
        for label, how, settings, look, low in cases:
            found = play_runs(path, how, settings, 0.1, runs, look, low)
            print(
                f"{name} ({slope:.5f}/d) | {label} | {int(found[:, OVER].sum())}/{runs} | "
                f"{found[:, ROUNDS_OVER].mean() / path.size:.2%} | {found[:, WORST].max():.4f} | "
                f"{found[:, SHARE].mean():.3f}", flush=True,
            )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--worlds", action="store_true")
    given = parser.parse_args()
    show_worlds(given.runs)
