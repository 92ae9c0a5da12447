"""Limits in worlds that move: runs over the limit, plays, adversaries, relearning, jumps, memory and time.

Usage: python benchmarks/drift_limits.py [--worlds] [--adversaries] [--relearn] [--jumps] [--price] [--speed]
       [--runs 200] [--jobs 1] [--names season rise] [--cases true twice controls] [--kinds linear]; default: all.

One action beside a safe action that costs nothing, limit .02; it is played with the share min(1, limit/bound). Bounds
are those of a `Limit` with a drift (`models.epochs`); controls that must fail stand beside them.
"""

import argparse
import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np

import stagewise as sw
from adversaries import FEW_EVENTS, NEAR_BOUND, NEVER, NO_AGE, NO_SHARES, PROVED, SAW, count_misses
from stagewise.engine.background import ALWAYS, SETTING
from stagewise.engine.compile import Floats, as_python, kernel
from stagewise.engine.random import OUTCOME, POLICY, uniform
from stagewise.models.epochs import (
    BELOW,
    CELL_SIZE,
    CHANGED,
    HEADER_SIZE,
    MEAN,
    NEWEST,
    PULLS,
    SLOPE,
    advance_cell,
    advance_header,
    compute_high_now,
    find_epoch,
    learn_in_epochs,
    learn_jumping,
)
from stagewise.models.intervals import compute_average_upper
from stagewise.problem.timing import Drift

LIMIT, PER_DAY, DAYS, LAG, SEED = 0.02, 1000, 100, 2.0, 11
DAY = 86_400.0
BY_EPOCH, FOREVER, WINDOW = 0, 1, 2  # which set
OVER, ROUNDS_OVER, WORST, SHARE = range(4)  # of a run
JUMP_FALSE, JUMP_DELAY, JUMP_ROUNDS, JUMP_EXCESS = range(4)
WORLDS = ("constant", "rise", "season", "hill", "fall", "weekly", "walk", "stairs")
CASES = ("true", "twice", "controls")


def play_all(play_some: Callable[[range], Floats], runs: int, jobs: int) -> Floats:
    """Return the records of all runs, in order; the kernels are compiled before processes share the runs."""
    if jobs == 1 or runs == 1:
        return play_some(range(runs))
    first, pieces = play_some(range(1)), min(jobs * 4, runs - 1)
    parts = [range(1 + piece, runs, pieces) for piece in range(pieces)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        rest = list(pool.map(play_some, parts))
    records = np.empty((runs, *first.shape[1:]))
    records[:1] = first
    for part, of_part in zip(parts, rest, strict=True):
        records[part.start :: pieces] = of_part
    return np.asarray(records)


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
        advance_cell(header, newest, cell)
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
                if how == BY_EPOCH:
                    learn_at(header, settings, learned / PER_DAY * DAY, outcomes[learned], low, high, cell)
                n += 1.0
                total += outcomes[learned]
            learned += 1
        if how == BY_EPOCH:
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


def play_runs(path: Floats, how: int, settings: Floats, delta: float, look: float, low: float, runs: range) -> Floats:
    """Return the records of runs; δ is split as by a `Problem`: .8 for upper ends, .2 for the lower."""
    records = np.zeros((len(runs), 4))
    for record, run in zip(records, runs, strict=True):
        acted, outcomes = np.zeros((2, path.size))
        high = -math.log((0.8 if how == BY_EPOCH else 1.0) * delta)
        play(
            path, how, look, settings, low or -math.log(0.2 * delta), high,
            np.zeros(HEADER_SIZE), np.zeros(CELL_SIZE), acted, outcomes, record, run,
        )  # fmt: skip
    return np.asarray(records)


def show_worlds(runs: int, jobs: int, names: Sequence[str], chosen: Sequence[str]) -> None:
    """Print the table of worlds: bounds with the true slope, with twice the slope, and the controls."""
    print(f"worlds: {PER_DAY} users a day, {DAYS} days, lag {LAG} days, delta .1, {runs} runs")
    print("runs that are ever over the limit | rounds that are | worst | share of the oracle's plays")
    for name in names:
        path = build_path(name)
        slope = find_slope(path)
        frozen = build_settings(slope, DAY)
        frozen[2] = 1e-300  # no age term
        cases = [
            ("epochs, true slope", BY_EPOCH, build_settings(slope, DAY), 0.0, 0.0),
            ("epochs, twice the slope", BY_EPOCH, build_settings(2 * slope, DAY), 0.0, 0.0),
            ("no age term", BY_EPOCH, frozen, 0.0, NEVER),
            ("one set for ever", FOREVER, frozen, 0.0, 0.0),
            *((f"window of {days} d", WINDOW, frozen, float(days), 0.0) for days in (5, 10, 20)),
        ]
        groups = {"true": cases[:1], "twice": cases[1:2], "controls": cases[2:]}
        for label, how, settings, look, low in (case for group in chosen for case in groups[group]):
            few = runs if how == BY_EPOCH and low == 0.0 else max(runs // 5, 5)
            found = play_all(partial(play_runs, path, how, settings, 0.1, look, low), few, jobs)
            print(
                f"{name} ({slope:.5f}/d) | {label} | {int(found[:, OVER].sum())}/{few} | "
                f"{found[:, ROUNDS_OVER].mean() / path.size:.2%} | {found[:, WORST].max():.4f} | "
                f"{found[:, SHARE].mean():.3f}", flush=True,
            )  # fmt: skip


@kernel
def play_jump(
    before: float, after: float, at: int, rounds: int, low: float, high: float, cell: Floats, record: Floats, run: int
) -> None:
    """Play one run whose mean jumps at a round; outcomes are learned at once."""
    plays = 0.0
    for t in range(rounds):
        mean = before if t < at else after
        bound = 1.0 - cell[BELOW]
        share = 1.0 if bound <= LIMIT else LIMIT / bound
        if t >= at and share * mean > LIMIT:
            record[JUMP_ROUNDS] += 1.0
            record[JUMP_EXCESS] += share * mean - LIMIT
        if uniform(SEED, run, t, POLICY, 0) < share:
            cell[PULLS] += 1.0
            plays += 1.0 if t >= at else 0.0
            value = 1.0 if uniform(SEED, run, t, OUTCOME, 0) < mean else 0.0
            changed = cell[CHANGED]
            learn_jumping(float(t + 1), value, low, high, cell)
            if cell[CHANGED] != changed:
                if t < at:
                    record[JUMP_FALSE] += 1.0
                elif record[JUMP_DELAY] < 0.0:
                    record[JUMP_DELAY] = plays


def play_jumps(before: float, after: float, runs: range) -> Floats:
    """Return the records of runs; a change that is found where there is none is a false alarm."""
    records, level = np.zeros((len(runs), 4)), math.log(2.0 / 0.1)
    records[:, JUMP_DELAY] = -1.0
    for record, run in zip(records, runs, strict=True):
        play_jump(before, after, 30_000, 60_000, level, level, np.zeros(CELL_SIZE), record, run)
    if before == after:
        records[:, JUMP_FALSE] += records[:, JUMP_DELAY] >= 0.0
        records[:, JUMP_DELAY] = -1.0
    return np.asarray(records)


def show_jumps(runs: int, quiet_runs: int, jobs: int) -> None:
    """Print the table of jumps, as in the theory's page."""
    print("jumps after 30,000 of 60,000 rounds, delta .1")
    print("jump | false alarms | found | delay in plays 10/50/90 % | rounds over | summed excess")
    for before, after in (
        (0.008, 0.008),
        (0.015, 0.015),
        (0.008, 0.016),
        (0.008, 0.024),
        (0.008, 0.04),
        (0.008, 0.08),
        (0.015, 0.03),
        (0.0, 0.03),
    ):
        count = quiet_runs if before == after else runs
        found = play_all(partial(play_jumps, before, after), count, jobs)
        hit = found[:, JUMP_DELAY] >= 0.0
        delays = np.quantile(found[hit, JUMP_DELAY], [0.1, 0.5, 0.9]) if hit.any() else [math.nan] * 3
        print(
            f"{before} -> {after} | {int((found[:, JUMP_FALSE] > 0).sum())}/{count} | {int(hit.sum())}/{count} | "
            f"{delays[0]:.0f} {delays[1]:.0f} {delays[2]:.0f} | {found[:, JUMP_ROUNDS].mean():.0f} | "
            f"{found[:, JUMP_EXCESS].mean():.1f}", flush=True,
        )  # fmt: skip


@kernel
def count_to_certain(
    mean: float, most: int, settings: Floats, level: float, header: Floats, cell: Floats, run: int
) -> float:
    """Return how many plays of a constant mean, 1,000 a day, certify the limit; −1: more than `most`.

    A slope of −1 keeps one set for ever; a run of −1 has expected outcomes.
    """
    n, total = 0.0, 0.0
    for t in range(most):
        value = mean if run < 0 else 1.0 if uniform(SEED, run, t, OUTCOME, 0) < mean else 0.0
        now = t / PER_DAY * DAY
        n += 1.0
        total += value
        if settings[SLOPE] < 0.0:
            if (t < 64 or t % 16 == 0) and compute_average_upper(n, total, level) <= LIMIT:
                return n
        else:
            learn_at(header, settings, now, value, level, level, cell)
            if compute_high_now(settings, now, cell) <= LIMIT:
                return n
    return -1.0


def count_plays(mean: float, amount: float, error: float, runs: range) -> Floats:
    """Return the plays of runs (n, 1) until the limit is certain; an amount of 0 declares that nothing moves."""
    settings = build_settings(amount or 1.0, DAY)
    settings[SLOPE] = settings[SLOPE] if amount > 0.0 else -1.0
    memories = [(np.zeros(HEADER_SIZE), np.zeros(CELL_SIZE)) for _ in runs]
    plays = [
        count_to_certain(mean, 100_000, settings, -math.log(error), *memory, run)
        for memory, run in zip(memories, runs, strict=True)
    ]
    return np.where(np.array(plays) < 0.0, math.inf, plays)[:, np.newaxis]


def show_price(runs: int, jobs: int) -> None:
    """Print how many more plays a limit needs where a drift is declared and the mean stays."""
    slopes = (0.00005, 0.0001, 0.0002, 0.0005)
    for error in (0.05, 0.005):
        print(
            f"plays of a constant mean until .02 is certain, delta' {error:g}: expected outcomes; mean of {runs} runs"
        )
        print("mean | nothing declared |", " | ".join(f"{slope:g}/d" for slope in slopes))
        for mean in (0.002, 0.005, 0.01, 0.015):
            expected = [count_plays(mean, slope, error, range(-1, 0)).item() for slope in (0.0, *slopes)]
            plays = [play_all(partial(count_plays, mean, slope, error), runs, jobs).mean() for slope in (0.0, *slopes)]
            rises = (
                f"{one:,.0f} ({one / expected[0] - 1.0:+.0%}); {two:,.0f} ({two / plays[0] - 1.0:+.0%})"
                for one, two in zip(expected[1:], plays[1:], strict=True)
            )
            print(f"{mean} | {expected[0]:,.0f}; {plays[0]:,.0f} | {' | '.join(rises)}", flush=True)


@kernel
def relearn_after_fall(
    old: int, most: int, settings: Floats, low: float, high: float, header: Floats, cell: Floats
) -> int:
    """Return how many plays at .008 follow `old` at .03 until the limit is certain, with expected outcomes."""
    for t in range(old + most):
        now, mean = t / 700.0 * DAY, 0.03 if t < old else 0.008
        if settings[SLOPE] > 0.0:
            learn_at(header, settings, now, mean, low, high, cell)
        else:
            cell[PULLS] += 1.0
            learn_jumping(now, mean, low, high, cell)
        if t >= old and compute_high_now(settings, now, cell) <= LIMIT:
            return t + 1 - old
    return -1


def show_relearning() -> None:
    """Print how many plays are needed after a fall."""
    level = math.log(100.0)
    print("plays to certify .02 after a fall from .03 to .008, 700 a day, delta' .01")
    print("old plays | jumps | slope .0001/d | .0002/d | .0005/d | one set for ever")
    for old in (2_000, 10_000, 50_000, 200_000):
        row = []
        for amount in (0.0, 0.0001, 0.0002, 0.0005):
            settings = build_settings(amount, DAY)
            row.append(
                relearn_after_fall(
                    old,
                    400_000 if amount == 0.0 else 60_000,
                    settings,
                    level,
                    level,
                    np.zeros(HEADER_SIZE),
                    np.zeros(CELL_SIZE),
                )
            )
        upper = as_python(compute_average_upper)
        one = next(n for n in range(100, 500_000, 100) if upper(float(old + n), 0.03 * old + 0.008 * n, level) <= LIMIT)
        print(old, *row, one, sep=" | ", flush=True)
    print("over 21 places of the fall after 200,000 plays: mean, most")
    for amount in (0.0001, 0.0002, 0.0005):
        plays = [
            relearn_after_fall(
                old, 60_000, build_settings(amount, DAY), level, level, np.zeros(HEADER_SIZE), np.zeros(CELL_SIZE)
            )
            for old in range(200_000, 200_000 + 21 * 731, 731)
        ]
        print(f"{amount:g}/d | {np.mean(plays):.0f} | {max(plays)}", flush=True)


def count_of_runs(how: int, strategy: int, slope: float, rounds: int, runs: range) -> Floats:
    """Return whether each of some runs ever misses (n, 1)."""
    return np.array([[count_misses(1, how, strategy, slope, rounds, 0.2, 500.0, SEED, run)] for run in runs])


def show_adversaries(runs: int, jobs: int) -> None:
    """Print how many runs ever miss."""
    print(f"adversaries, delta .2, {runs} runs: runs that ever miss, by strategy (near the bound, saw, few events)")
    for slope, rounds in ((1e-6, 30_000), (4e-6, 30_000)):
        for label, how in (("as proved", PROVED), ("no age term", NO_AGE), ("no shares", NO_SHARES)):
            count = runs if how == PROVED else max(runs // 10, 5)
            row = [
                f"{play_all(partial(count_of_runs, how, strategy, slope, rounds), count, jobs).sum():.0f}/{count}"
                for strategy in (NEAR_BOUND, SAW, FEW_EVENTS)
            ]
            print(f"slope {slope:g} a round | {label} | {' '.join(row)}", flush=True)


def build_problem(drift: Any, kind: str, half_life: str | None = None) -> sw.Problem:
    """Return the problem whose decisions are timed."""
    chosen: dict[str, Any] = {"score": {"score": "risk"}, "linear": {"model": "linear"}}.get(kind, {"model": "rates"})
    limit = sw.Limit(LIMIT if kind != "linear" else 0.3, safe_bound=0.0, drift=drift, **chosen)
    actions = ["nothing", "digest", "offer", "sale", "story"]
    context = {"age": (0.0, 1.0), "opens": (0.0, 1.0)} if kind in ("linear", "reward") else {}
    reward = sw.Reward("click", half_life=half_life)
    return sw.Problem(
        action_names=actions, safe_name="nothing", reward=reward, limits={"opt_out": limit}, context=context
    )


def show_speed(kinds: Sequence[str]) -> None:
    """Print the processor time of a decision and of learning an outcome, beside those without drift."""
    os.environ[SETTING] = ALWAYS
    rng, rows = np.random.default_rng(0), 20_000
    log = {"action": np.array(["digest", "offer", "sale", "story"])[rng.integers(0, 4, rows)]}
    log |= {name: rng.random(rows) for name in ("age", "opens", "risk")}
    log |= {"click": (rng.random(rows) < 0.1).astype(float), "opt_out": (rng.random(rows) < 0.008).astype(float)}
    cases = [("rates", drift, None) for drift in (None, "0.005/30d", ("0.01", "30d"), "jumps")]
    cases += [("score", drift, None) for drift in (None, "0.005/30d", "jumps")]
    cases += [("linear", drift, None) for drift in (None, "0.05/30d")]
    cases += [("reward", None, half_life) for half_life in (None, "30d")]
    base = np.zeros(2)
    for kind, drift, half_life in (one for one in cases if one[0] in kinds):
        problem = build_problem(drift, kind, half_life)
        agent = sw.Agent(problem, seed=1)
        columns = ("action", "click", "opt_out", *problem.context_names)
        known = {name: log[name] for name in columns}
        agent.learn_log_frame({**known, "at": np.arange(rows) * 100.0} if problem.needs_times else known)
        context = dict.fromkeys(problem.context_names, 0.4)
        best = []
        for _ in range(7):
            start = time.process_time()
            made = [agent.decide(context, now=rows * 100.0) for _ in range(2_000)]
            middle = time.process_time()
            for decision in made:
                agent.learn(decision, click=True, opt_out=False, now=rows * 100.0)
            best.append((middle - start, time.process_time() - middle))
        cost = np.min(best, axis=0) / 2_000 * 1e6
        if drift is None and half_life is None:
            base = cost
        print(f"{kind}, drift={drift}, half-life={half_life}: decide {cost[0]:.1f} us ({cost[0] / base[0]:.2f}), learn "
              f"{cost[1]:.1f} us ({cost[1] / base[1]:.2f})", flush=True)  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parts = ("worlds", "adversaries", "relearn", "jumps", "price", "speed")
    for part in parts:
        parser.add_argument(f"--{part}", action="store_true")
    parser.add_argument("--names", nargs="+", choices=WORLDS, default=WORLDS)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    kinds = ("rates", "score", "linear", "reward")
    parser.add_argument("--kinds", nargs="+", choices=kinds, default=kinds, help="of --speed")
    given = parser.parse_args()
    everything = not any(getattr(given, part) for part in parts)
    if given.worlds or everything:
        show_worlds(given.runs, given.jobs, given.names, given.cases)
    if given.adversaries or everything:
        show_adversaries(given.runs, given.jobs)
    if given.relearn or everything:
        show_relearning()
    if given.jumps or everything:
        show_jumps(max(given.runs // 5, 5), given.runs, given.jobs)
    if given.price or everything:
        show_price(given.runs, given.jobs)
    if given.speed or everything:
        show_speed(given.kinds)
