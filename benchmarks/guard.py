"""What a guard costs: rounds until a proposal is played whole, overlap by floor, regret with scores, limits, time.

Usage: python benchmarks/guard.py [--shares] [--mixtures] [--scores] [--limits] [--controls] [--speed] [--runs 40];
default: all.

One limit of 2 %, a safe action that costs nothing, no log, delta .05, costs that are the same for all users. Bounds,
rule, draw and learning are the kernels of `sw.Problem`, in one compiled loop. Controls are guards that fail.
"""

import argparse
import math
import time
from typing import Any, NamedTuple

import numpy as np

import stagewise as sw
from stagewise.engine.compile import Floats, factory, kernel
from stagewise.engine.model import RoundSpec
from stagewise.engine.random import OUTCOME, uniform
from stagewise.engine.round import build_round
from stagewise.engine.workspace import CENTRE, HALF, WEIGHTS, fill_probabilities, get_threshold, get_workspace
from stagewise.models.arms import UPPER_SHARE
from stagewise.models.context import RESERVED, UNUSED
from stagewise.models.intervals import compute_average_interval
from stagewise.policies.problem_policy import choose_batch
from stagewise.policies.rounds import ANSWER_SIZE, SCRATCH_SIZE, WORK_SIZE

LIMIT, ROUNDS, SEED = 0.02, 60_000, 50
FULL, OVERLAP, VALUE, VIOLATIONS, WORST = range(5)  # in a record: what a run did


@factory
def build_play(spec: RoundSpec, known: int, dearest: int, stops: int) -> Any:
    """Return a kernel that plays one run; `known` plays of action 1 first; `dearest`: the proposer is an adversary.

    `stops`: the run ends when the proposal is whole.
    """
    played, dense = build_round(spec), int(spec.rule.dense)
    decide, learn = played.decide, played.learn

    @kernel
    def play(
        costs: Floats, given: Floats, rounds: int, features: Floats, eligible: Any, layout: Any, settings: Floats,
        memory: Floats, answer: Floats, scratch: Floats, work: Floats, values: Floats, odds: Floats, record: Floats,
        run: int,
    ) -> None:  # fmt: skip
        """Action 0 is the safe one; `given` and `costs` are (K,), `features` has them as its last column."""
        count, last = features.shape[0], features.shape[1] - 1
        workspace = get_workspace(layout, count, scratch)
        asked = 0.0
        for action in range(count):
            features[action, last] = given[action]
            asked += given[action]
        record[FULL] = -1.0
        for t in range(known):
            values[1] = 1.0 if uniform(SEED, run, t, OUTCOME, 1) < costs[1] else 0.0
            learn(features[1, :last], 1, 1.0, values, layout, settings, memory, work)
        for t in range(rounds):
            if dearest:  # whoever knows the truth and the bounds proposes what costs most above its bound
                decide(features, eligible, layout, settings, memory, answer, scratch, SEED, run, t)
                best, most = 1, -math.inf
                for action in range(1, count):
                    high = workspace.bounds[1, CENTRE, action] + workspace.bounds[1, HALF, action]
                    if costs[action] - high > most:
                        best, most = action, costs[action] - high
                for action in range(count):
                    features[action, last] = 1.0 if action == best else 0.0
            code = decide(features, eligible, layout, settings, memory, answer, scratch, SEED, run, t)
            if dense:
                for action in range(count):
                    odds[action] = workspace.rule[WEIGHTS, action]
            else:
                fill_probabilities(layout, answer, odds)
            cost, share, value = 0.0, 0.0, 0.0
            for action in range(1, count):
                cost += odds[action] * costs[action]
                share += odds[action]
                value += odds[action] * given[action]
            record[OVERLAP] += share
            record[VALUE] += value
            record[WORST] = max(record[WORST], cost)
            if cost > get_threshold(layout, settings, 0) + 1e-12:
                record[VIOLATIONS] += 1.0
            if record[FULL] < 0.0 and share >= asked - 1e-9:
                record[FULL] = float(t)
                if stops:
                    return
            action = max(code, 0)
            values[1] = 1.0 if uniform(SEED, run, t, OUTCOME, 0) < costs[action] else 0.0
            learn(features[action, :last], action, 1.0, values, layout, settings, memory, work)

    return play


class World(NamedTuple):
    """A world, and who proposes what in it."""

    costs: list[float]  # of every action but the safe one
    given: list[float]
    scores: bool = False
    delta: float = 0.05
    known: int = 0
    dearest: bool = False
    stops: bool = False


def play_runs(world: World, runs: int, rounds: int = ROUNDS) -> Floats:
    """Return what every run did (runs, 5)."""
    names = [f"a{i}" for i in range(1 + len(world.costs))]
    problem = sw.Problem(
        action_names=names, safe_name="a0", reward=sw.Reward("score"), delta=world.delta,
        limits={"opt_out": sw.Limit(LIMIT, safe_bound=0.0, model="rates")},
    )  # fmt: skip
    policy = problem.policy()
    chosen = policy.score_rounds if world.scores else policy.proposal_rounds
    play, records = build_play(chosen.spec, world.known, int(world.dearest), int(world.stops)), np.zeros((runs, 5))
    count, d = len(names), policy.width + 1
    for run in range(runs):
        features = np.column_stack([policy._template, np.zeros(count)])
        answer, scratch = np.zeros(ANSWER_SIZE(1, d)), np.zeros(SCRATCH_SIZE(1, count, d, False))
        arrays = answer, scratch, np.zeros(WORK_SIZE(1, 0, d, True)), np.array([np.nan, 0.0]), np.zeros(count + 1)
        play(
            np.array([0.0, *world.costs]), np.array([0.0, *world.given]), rounds, features, np.ones(0, dtype=np.bool_),
            policy.layout, policy.settings, policy.start().memory, *arrays, records[run], run + 1,
        )  # fmt: skip
    return records


def get_full(records: Floats) -> Floats:
    """Return the rounds until the share is 1; the number of rounds where it never is."""
    return np.where(records[:, FULL] < 0.0, ROUNDS, records[:, FULL])


def forecast_rounds(others: int, cost: float) -> float:
    """Return Σ max(1, U_n/τ) over the plays n until U_n ≤ τ, at a mean that is exactly the cost."""
    confidence = -math.log(0.05 * UPPER_SHARE * (1.0 - RESERVED) * (1.0 - UNUSED) / others)
    rounds, plays, high = 1.0 / LIMIT, 1.0, 1.0
    while high > LIMIT:
        high = compute_average_interval(plays, cost, confidence, confidence).high
        rounds, plays = rounds + max(1.0, high / LIMIT), plays + 1.0
    return rounds


def print_shares(runs: int) -> None:
    """Print the rounds until an action that is proposed in every round is played whole."""
    print("rounds until the share is 1 (10 / 50 / 90 %), one of K actions proposed in every round, and their forecast")
    for others in (1, 6):
        for cost in (0.002, 0.005, 0.01, 0.015):
            world = World([cost] * others, [1.0] + [0.0] * (others - 1), stops=True)
            found = np.quantile(get_full(play_runs(world, runs)), [0.1, 0.5, 0.9])
            told = " / ".join(f"{x:,.0f}" for x in found)
            print(f"| {cost} | {others} | {told} | {forecast_rounds(others, cost):,.0f} |", flush=True)


@kernel
def play_control(
    costs: Floats, rounds: int, log_rows: int, conformal: bool, confidence: float, plays: Floats, sums: Floats, run: int
) -> Any:
    """Play a guard that fails; return its rounds over the limit, its largest expected cost and its plays.

    Conformal: the share min(1, τ (n + 1)/(S + 1)), by the bound of conformal risk control, and a proposer who knows the
    truth and the bounds. Otherwise all or nothing: an action is played if its bound is within the limit.
    """
    over, worst, played = 0, 0.0, 0
    for row in range(log_rows):
        plays[0] += 1.0
        sums[0] += 1.0 if uniform(SEED, run, row, OUTCOME, 1) < costs[0] else 0.0
    for t in range(rounds):
        best, most, share = 0, -math.inf, 0.0
        for action in range(costs.size):
            high = (sums[action] + 1.0) / (plays[action] + 1.0)
            if not conformal:
                mean = sums[action] / max(plays[action], 1.0)
                high = compute_average_interval(plays[action], mean, confidence, confidence).high
            if costs[action] - high > most:
                best, most = action, costs[action] - high
                share = min(1.0, LIMIT / high) if conformal else 1.0 if high <= LIMIT else 0.0
        cost = share * costs[best]
        over, worst = over + int(cost > LIMIT + 1e-12), max(worst, cost)
        if uniform(SEED, run, t, OUTCOME, 2) < share:
            played += 1
            plays[best] += 1.0
            sums[best] += 1.0 if uniform(SEED, run, t, OUTCOME, 0) < costs[best] else 0.0
    return over, worst, played


def play_controls(costs: Floats, rounds: int, rows: int, conformal: bool, runs: int) -> Any:
    """Return what every run did (runs, 3)."""
    confidence, tables = -math.log(UPPER_SHARE * 0.05), np.zeros((runs, 2, costs.size))
    records = [play_control(costs, rounds, rows, conformal, confidence, *tables[i], i + 1) for i in range(runs)]
    return np.array(records)


def print_controls(runs: int) -> None:
    """Print how guards fail that are conformal, or all or nothing."""
    world = np.array([0.005, 0.01, 0.02, 0.03, 0.05])
    found = play_controls(world, 30_000, 0, True, runs)
    over, worst = (found[:, 0] > 0).sum(), found[:, 1].max()
    print(
        f"conformal, adversary, 30,000 rounds: {over} of {runs} runs over the limit, {found[:, 0].mean():,.0f} rounds"
    )
    print(f"on average; largest expected cost {worst:.4f}")
    print("all or nothing, one action at .005 proposed in every round: plays in 60,000 rounds, by rows of a log of it")
    for rows in (0, 100, 400, 1_600):
        one = play_controls(world[:1], ROUNDS, rows, False, runs)[:, 2]
        print(f"| {rows:,} | {np.median(one):,.0f} | never: {(one == 0).sum()} of {runs} |")


def print_mixtures(runs: int) -> None:
    """Print what becomes of mixtures of a cheap and a costly action."""
    print("mixtures: median rounds until played whole, mean overlap, runs over the limit")
    for name, world in {
        "1/2 A (.018) + 1/2 B (.004)": World([0.018, 0.004], [0.5, 0.5]),
        "1/2 A (.027) + 1/2 B (.003)": World([0.027, 0.003], [0.5, 0.5]),
        "1/2 A (.05, 2,000 plays known) + 1/2 B (.001)": World([0.05, 0.001], [0.5, 0.5], known=2000),
    }.items():
        records = play_runs(world, runs)
        never, over = (records[:, FULL] < 0.0).sum(), (records[:, VIOLATIONS] > 0.0).sum()
        overlap = records[:, OVERLAP].mean() / ROUNDS
        print(
            f"| {name} | {np.median(get_full(records)):,.0f} (never: {never}) | {overlap:.3f} | {over} of {runs} |",
            flush=True,
        )


def compute_best(costs: list[float], scores: list[float]) -> float:
    """Return the score of the best mixture under the limit."""
    best = 0.0
    for one, high in zip(costs, scores, strict=True):
        best = max(best, high * min(1.0, LIMIT / one))
        for other, low in zip(costs, scores, strict=True):
            if one > LIMIT >= other:
                share = (LIMIT - other) / (one - other)
                best = max(best, share * high + (1.0 - share) * low)
    return best


def print_scores(runs: int) -> None:
    """Print the regret with given scores."""
    print(f"scores: regret in {ROUNDS:,} rounds, runs over the limit")
    for costs, scores in (([0.03, 0.005, 0.001], [1.0, 0.9, 0.5]), ([0.012, 0.025, 0.002], [0.8, 1.0, 0.6])):
        records = play_runs(World(costs, scores, scores=True), runs)
        regret = ROUNDS * compute_best(costs, scores) - records[:, VALUE]
        error, over = regret.std() / math.sqrt(runs), (records[:, VIOLATIONS] > 0.0).sum()
        print(f"| {costs} | {scores} | {regret.mean():,.0f} ± {error:,.0f} | {over} of {runs} |", flush=True)


def print_limits(runs: int) -> None:
    """Print how many runs an adversary drives over the limit at delta .2."""
    world = World([0.005, 0.01, 0.02, 0.03, 0.05], [0.0] * 5, delta=0.2, dearest=True)
    records = play_runs(world, runs, rounds=30_000)
    over, worst = (records[:, VIOLATIONS] > 0.0).sum(), records[:, WORST].max()
    print(
        f"adversary, delta .2, 30,000 rounds: {over} of {runs} runs over the limit; largest expected cost {worst:.4f}"
    )


def print_speed(repeats: int = 7) -> None:
    """Print the time of a decision by hand and in a batch, beside the same problem's own policy."""
    problem = sw.Problem(
        action_names=["nothing", "digest", "offer"], safe_name="nothing", context=["age"], reward=sw.Reward("click"),
        limits={"opt_out": sw.Limit(LIMIT, safe_bound=0.0, model="rates")},
    )  # fmt: skip
    calls: dict[str, dict[str, Any]] = {
        "its own policy": {}, "propose an action": {"propose": "offer"},
        "propose a mixture": {"propose": {"offer": 0.7, "digest": 0.3}},
        "scores": {"scores": {"offer": 0.7, "digest": 0.3}},
    }  # fmt: skip
    policy, users, draws = problem.policy(), 20_000, [sw.RandomKey(1, 1, i) for i in range(20_000)]
    batches = {
        name: [problem.encode_context({"age": 0.1}, None, **call) for _ in range(users)] for name, call in calls.items()
    }
    agents = {name: sw.Agent(problem, seed=1) for name in calls}
    for name, call in calls.items():  # compile
        agents[name].decide({"age": 0.1}, **call)
        choose_batch(policy, policy.start(), batches[name][:64], draws[:64])
    time.sleep(20.0)
    by_hand, batch = dict.fromkeys(calls, math.inf), dict.fromkeys(calls, math.inf)
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(2_000):
                agents[name].decide({"age": 0.1}, **call)
            by_hand[name] = min(by_hand[name], (time.perf_counter() - start) / 2_000)
            start = time.perf_counter()
            choose_batch(policy, policy.start(), batches[name], draws)
            batch[name] = min(batch[name], (time.perf_counter() - start) / users)
    print("microseconds a decision, least of repeats: by hand, in a batch")
    for name in calls:
        print(f"| {name} | {1e6 * by_hand[name]:.1f} | {1e6 * batch[name]:.2f} |")


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parts = {"shares": print_shares, "mixtures": print_mixtures, "scores": print_scores}
    for name in (*parts, "limits", "controls", "speed"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--runs", type=int, default=40)
    asked = parser.parse_args()
    every = [*parts, "limits", "controls", "speed"]
    chosen = [name for name in every if getattr(asked, name)] or every
    for name in chosen:
        if name in parts:
            parts[name](asked.runs)
        elif name == "limits":
            print_limits(max(asked.runs, 200))
        elif name == "controls":
            print_controls(asked.runs)
        else:
            print_speed()


if __name__ == "__main__":
    main()
