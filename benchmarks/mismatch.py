"""How soon the halves of users show that it matters who gets an action, and how often they err where it does not.

python benchmarks/mismatch.py                 worlds of users whose opt-outs differ: found within 50,000 users?
python benchmarks/mismatch.py --alike --users 8000 --runs 1000 --level .05      rates are the same for all users
python benchmarks/mismatch.py --cost          processor time per row
"""

import argparse
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import stagewise as sw
from stagewise.agent import mismatch
from stagewise.agent.agent_statistics import Statistics
from stagewise.policies.problem_policy import choose_batch
from stagewise.problem.context import ContextVector
from stagewise.records.random_key import RandomKey

NUMBERS, TEMPLATES, BATCH = 8, 4, 250
CLICKS, OPT_OUTS = np.array([0.04, 0.06, 0.08, 0.10]), np.array([0.010, 0.013, 0.018, 0.025])
NORM, COMMON, CORRELATION = (
    1.1,
    0.85,
    0.7,
)  # of the slopes of opt-outs in log-odds: norm, share of all templates, clicks
LIMIT = 0.02


@dataclass
class World:
    """Users of eight numbers; clicks are linear in them, opt-outs log-linear, or the same for all users."""

    chance: np.random.Generator
    alike: bool
    safe_click: float

    def __post_init__(self) -> None:
        chance = self.chance
        direction = chance.standard_normal(NUMBERS)
        direction /= np.abs(direction).sum()
        own = chance.standard_normal((TEMPLATES, NUMBERS))
        self.clicks = 0.8 * (0.8 * direction + 0.2 * own / np.abs(own).sum(axis=1, keepdims=True))
        unit, other = direction / np.linalg.norm(direction), chance.standard_normal(NUMBERS)
        other -= (other @ unit) * unit
        common = CORRELATION * unit + np.sqrt(1 - CORRELATION**2) * other / np.linalg.norm(other)
        slopes = []
        for _ in range(TEMPLATES):
            rest = chance.standard_normal(NUMBERS)
            rest -= (rest @ common) * common
            slopes.append(COMMON * common + np.sqrt(1 - COMMON**2) * rest / np.linalg.norm(rest))
        self.slopes = (0.0 if self.alike else NORM) * np.array(slopes)
        self.level = np.exp(chance.uniform(-1, 1, (100_000, NUMBERS)) @ self.slopes.T).mean(axis=0)

    def draw(self, users: Any, actions: Any) -> tuple[Any, Any]:
        """Return the clicks and the opt-outs (n,) of users with their actions; 0 is nothing."""
        chance, at = self.chance, np.arange(len(users))
        click = np.column_stack([np.full(len(users), self.safe_click), CLICKS * (1.0 + users @ self.clicks.T)])
        opt_out = np.minimum(OPT_OUTS * np.exp(users @ self.slopes.T) / self.level, 0.5)
        opt_out = np.column_stack([np.zeros(len(users)), opt_out])
        return chance.random(len(users)) < click[at, actions], chance.random(len(users)) < opt_out[at, actions]


def build_problem(model: str, segments: int) -> sw.Problem:
    """Return the problem; with segments the limit is kept by them."""
    kind = {"by": "group"} if segments else {"model": model}
    return sw.Problem(
        action_names=["nothing", *(f"template {a}" for a in range(TEMPLATES))],
        safe_name="nothing",
        reward=sw.Reward("click"),
        context=[f"n{i}" for i in range(NUMBERS)],
        limits={"opt_out": sw.Limit(LIMIT, safe_bound=0.0, **kind)},
    )


def play(seed: int, users: int, logged: int, model: str, alike: bool, safe_click: float, segments: int) -> Any:
    """Return after how many users a mismatch was found, and its details; None: it was not found.

    The first users get templates by lot, as in a log that is learned as one batch; the policy chooses for the others.
    """
    chance = np.random.default_rng(seed)
    world, policy = World(chance, alike, safe_click), build_problem(model, segments).policy()
    test, statistics, state = mismatch.build_mismatch_test(policy), Statistics(), policy.start()
    if test is None:
        raise RuntimeError("there is nothing to test")
    done = 0
    while done < users:
        count = min(logged if done < logged else BATCH, users - done)
        numbers = chance.uniform(-1, 1, (count, NUMBERS))
        groups = chance.integers(0, max(segments, 1), count)
        if done < logged:
            actions = chance.integers(1, TEMPLATES + 1, count)
        else:
            places = [[int(group)] if segments else [] for group in groups]
            contexts = [
                ContextVector.from_checked(row, place, None) for row, place in zip(numbers, places, strict=True)
            ]
            made = choose_batch(policy, state, contexts, [RandomKey(seed, 0, done + i) for i in range(count)])
            actions = np.array([0 if one is None else one.index for one in made])
        clicks, opt_outs = world.draw(numbers, actions)
        rows = np.column_stack([actions, np.ones(count), numbers, *([groups] if segments else [])]).astype(np.float64)
        values = np.column_stack([clicks, opt_outs]).astype(np.float64)
        if done < logged:
            state = policy.learn_log(state, rows, values)
            test.learn_rows(rows, values)
        else:
            state = policy.learn_rows(state, rows, values)
            test.learn_rows(rows, values, np.arange(done, done + count))
        done += count
        test.check(policy, state.memory, statistics, at_once=done <= logged)
        if statistics.warnings:
            return done, next(iter(statistics.warnings.values())).details
    return None


CASES = {
    "by the policy, sending nothing earns nothing": {"logged": 0, "model": "rates", "safe_click": 0.0, "segments": 0},
    "by the policy, sending nothing earns .10": {"logged": 0, "model": "rates", "safe_click": 0.1, "segments": 0},
    "all by lot, one batch": {"logged": 50_000, "model": "rates", "safe_click": 0.0, "segments": 0},
    "by the policy, limit by=ten groups": {"logged": 0, "model": "rates", "safe_click": 0.0, "segments": 10},
}


def show_found(asked: argparse.Namespace) -> None:
    """Print a row for each case: in how many worlds a mismatch is found, and when."""
    print("| actions | found | users until then: median, 95 %, largest |\n|---|---|---|")
    for name, case in CASES.items() if asked.case is None else [list(CASES.items())[asked.case]]:
        logged = min(case["logged"], asked.users)
        seeds = range(asked.first, asked.first + asked.runs)
        found = [play(seed, asked.users, alike=asked.alike, **{**case, "logged": logged}) for seed in seeds]
        when = np.array([one[0] for one in found if one is not None])
        shown = f"{np.median(when):,.0f}, {np.quantile(when, 0.95):,.0f}, {when.max():,}" if when.size else ""
        print(f"| {name} | {when.size} of {asked.runs} | {shown} |", flush=True)


def show_cost() -> None:
    """Print the processor time of one row, alone and in a batch, and of a test of all halves."""
    policy, chance = build_problem("rates", 0).policy(), np.random.default_rng(1)
    test, state, count = mismatch.MismatchTest(policy), policy.start(), 100_000
    rows = np.column_stack([chance.integers(1, 5, count), np.ones(count), chance.uniform(-1, 1, (count, NUMBERS))])
    values = (chance.random((count, 2)) < 0.02) * 1.0
    test.learn_rows(rows, values)
    begin = time.process_time()
    test.learn_rows(rows, values)
    print(f"a row in a batch: {1e6 * (time.process_time() - begin) / count:.2f} us")
    for index in range(2_000):
        test.learn_row(rows[index], values[index], index)
    begin = time.process_time()
    for index in range(2_000, 52_000):
        test.learn_row(rows[index], values[index], index)
    print(f"a row alone: {1e6 * (time.process_time() - begin) / 50_000:.2f} us")
    test.check(policy, state.memory, Statistics(), at_once=True)
    begin = time.process_time()
    for _ in range(20):
        test.check(policy, state.memory, Statistics(), at_once=True)
    print(f"a test of all halves: {1e3 * (time.process_time() - begin) / 20:.2f} ms")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--case", type=int, choices=range(len(CASES)), help="one case alone")
    parser.add_argument("--users", type=int, default=50_000)
    parser.add_argument("--alike", action="store_true", help="all users have the same rates")
    parser.add_argument("--level", type=float, default=mismatch.FALSE_WARNINGS, help="of all tests together")
    parser.add_argument("--cost", action="store_true")
    asked = parser.parse_args()
    mismatch.FALSE_WARNINGS = asked.level
    if asked.cost:
        show_cost()
    else:
        show_found(asked)


if __name__ == "__main__":
    main()
