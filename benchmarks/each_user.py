"""Limits promised to each user: who is over the limit, what is sent, and what a decision takes, by the limit's model.

Usage: python benchmarks/each_user.py [--static] [--online] [--speed] [--ends] [--crossing] [--worlds 2] [--models ...];
default: all. With --greedy, --online plays the mixture that is best under the upper ends for estimated clicks, which
explores nothing, instead of the policy's.

Four templates for users with eight numbers. Opt-outs cost 1.0, 1.3, 1.8 and 2.5 % on average, at most 2 % is allowed,
and sending nothing costs nothing. A user at one standard deviation has 1.9 times the log-odds of the average user, and
users who click more opt out more (correlation .7). A log has templates drawn by lot.
"""

import argparse
import math
import time
from typing import Any

import numpy as np

import stagewise as sw
from stagewise.engine.compile import Floats
from stagewise.models.per_action_events import PER_ACTION_EVENTS
from stagewise.models.per_action_ridge import PER_ACTION_RIDGE
from stagewise.policies import context_caps
from stagewise.policies.problem_policy import choose_batch

LIMIT, NUMBERS, SEED = 0.02, 8, 300
TEMPLATES = ["a", "b", "c", "d"]
CLICKS, OPT_OUTS = np.array([0.04, 0.06, 0.08, 0.10]), np.array([0.010, 0.013, 0.018, 0.025])
NAMES = [f"x{i}" for i in range(NUMBERS)]
CUTS = 10  # buckets of the score
HELD_OUT = 0.5  # of the log, on which the score is fitted


class World:
    """Clicks are linear in the user; opt-outs are linear, or exponential in the user's numbers ("logistic")."""

    def __init__(self, form: str, seed: int, correlation: float = 0.7) -> None:
        self.form, self.chance = form, np.random.default_rng(seed)
        keen = self.direction(1.0)
        self.click_slopes = 0.8 * np.array([0.8 * keen + 0.2 * self.direction(1.0) for _ in TEMPLATES])
        along, across = keen / np.linalg.norm(keen), self.chance.standard_normal(NUMBERS)
        across -= (across @ along) * along
        leaving = correlation * along + math.sqrt(1.0 - correlation**2) * across / np.linalg.norm(across)
        slopes = []
        for _ in TEMPLATES:
            own = self.chance.standard_normal(NUMBERS)
            own -= (own @ leaving) * leaving
            slopes.append(0.85 * leaving + math.sqrt(1.0 - 0.85**2) * own / np.linalg.norm(own))
        self.slopes, self.scale = 1.1 * np.array(slopes), np.ones(len(TEMPLATES))
        if form == "linear":
            self.slopes *= 0.85 / np.abs(self.slopes).sum(axis=1, keepdims=True)
        else:
            self.scale = np.exp(self.users(200_000) @ self.slopes.T).mean(axis=0)

    def direction(self, length: float) -> Floats:
        """Return a random direction whose absolute values add up to this."""
        drawn = self.chance.standard_normal(NUMBERS)
        return length * drawn / np.abs(drawn).sum()

    def users(self, count: int) -> Floats:
        """Return users (n, 8)."""
        return self.chance.uniform(-1.0, 1.0, (count, NUMBERS))

    def clicks(self, users: Floats) -> Floats:
        """Return the click rates (n, 4)."""
        return CLICKS * (1.0 + users @ self.click_slopes.T)

    def opt_outs(self, users: Floats) -> Floats:
        """Return the opt-out rates (n, 4)."""
        if self.form == "linear":
            return OPT_OUTS * (1.0 + users @ self.slopes.T)
        return np.minimum(OPT_OUTS * np.exp(users @ self.slopes.T) / self.scale, 0.5)

    def draw(self, means: Floats) -> Floats:
        """Return outcomes with these means."""
        return (self.chance.uniform(size=means.shape) < means).astype(float)


def declare(limit: Any) -> sw.Problem:
    """Return the problem with this limit."""
    return sw.Problem(
        action_names=["nothing", *TEMPLATES],
        safe_name="nothing",
        context=NAMES,
        reward=sw.Reward("click", safe_bound=0.0),
        limits={"opt_out": limit},
    )


def best(clicks: Floats, costs: Floats) -> Floats:
    """Return the mixtures (n, 4) with the most clicks whose costs are within the limit; the rest is nothing."""
    rows, (count, size) = np.arange(len(clicks)), clicks.shape
    mixtures, most = np.zeros((count, size)), np.zeros(count)
    for one in range(size):
        for other in range(-1, size):  # −1: nothing
            cost = costs[:, other] if other >= 0 else np.zeros(count)
            value = clicks[:, other] if other >= 0 else np.zeros(count)
            dearer = costs[:, one] > cost
            room = np.where(dearer, (LIMIT - cost) / np.where(dearer, costs[:, one] - cost, 1.0), 1.0)
            share = np.clip(room, 0.0, 1.0)
            total = share * clicks[:, one] + (1.0 - share) * value
            better = (cost <= LIMIT) & (total > most)
            most = np.where(better, total, most)
            mixture = np.zeros((count, size))
            mixture[rows, one] += share
            if other >= 0:
                mixture[rows, other] += 1.0 - share
            mixtures[better] = mixture[better]
    return mixtures


class Method:
    """A limit's model, with an agent that has learned a log."""

    def __init__(self, name: str, users: Floats, sent: Any, clicks: Floats, costs: Floats) -> None:
        self.name, self.first, self.score, self.cuts = name, 0, None, np.empty(0)
        limits: dict[str, Any] = {
            "rates": {"model": "rates"}, "buckets": {"by": "bucket"}, "score": {"score": sw.RiskScore("risk", CUTS)}
        }  # fmt: skip
        self.squares, self.products = (
            np.array([np.eye(1 + NUMBERS)] * len(TEMPLATES)),
            np.zeros((len(TEMPLATES), 1 + NUMBERS)),
        )
        self.learn_clicks(users, 1 + sent, clicks)
        if name in ("buckets", "score"):
            self.first = int(HELD_OUT * len(users))
            self.fit_risk_score(users[: self.first], sent[: self.first], costs[: self.first])
        self.policy = declare(sw.Limit(LIMIT, safe_bound=0.0, **limits.get(name, {"model": name}))).policy()
        self.state = self.policy.start()
        if self.first:  # clicks may be learned from the rows of the score; its costs may not
            unknown = np.full(self.first, np.nan)
            self.learn(users[: self.first], 1 + sent[: self.first], clicks[: self.first], unknown, as_log=True)
        users, sent, clicks, costs = users[self.first :], sent[self.first :], clicks[self.first :], costs[self.first :]
        unsent, nothing = users[:: len(TEMPLATES)], np.zeros(len(users[:: len(TEMPLATES)]))  # as many as of a template
        self.learn(
            np.vstack([users, unsent]), np.concatenate([1 + sent, nothing]), np.concatenate([clicks, nothing]),
            np.concatenate([costs, nothing]), as_log=True,
        )  # fmt: skip

    def fit_risk_score(self, users: Floats, sent: Any, costs: Floats) -> None:
        """Fit the log-odds of an opt-out, and cut the score into buckets."""
        features, prior = np.column_stack([np.eye(len(TEMPLATES))[sent], users]), 4.0
        theta = np.zeros(features.shape[1])
        for _ in range(20):
            p = 1.0 / (1.0 + np.exp(-features @ theta))
            curvature = (features * (p * (1.0 - p))[:, None]).T @ features + prior * np.eye(theta.size)
            theta -= np.linalg.solve(curvature, features.T @ (p - costs) + prior * theta)
        self.score = theta[len(TEMPLATES) :]
        self.cuts = np.quantile(users @ self.score, np.linspace(0.0, 1.0, CUTS + 1)[1:-1])

    def buckets(self, users: Floats) -> Floats:
        """Return the columns of segments (n, 0 or 1)."""
        if self.score is None:
            return np.empty((len(users), 0))
        return np.searchsorted(self.cuts, users @ self.score)[:, None].astype(float)

    def learn(self, users: Floats, actions: Any, clicks: Floats, costs: Floats, as_log: bool = False) -> None:
        """Learn outcomes of actions."""
        rows = np.column_stack([actions, np.ones(len(users)), users, self.buckets(users)])
        learn = self.policy.learn_log if as_log else self.policy.learn_rows
        self.state = learn(self.state, self.policy.check_logged_actions(rows), np.column_stack([clicks, costs]))

    def learn_clicks(self, users: Floats, actions: Any, clicks: Floats) -> None:
        """Add outcomes to a ridge regression of each template's clicks, for `decide_greedily`."""
        features = np.column_stack([np.ones(len(users)), users])
        for template in range(len(TEMPLATES)):
            chosen = features[actions == 1 + template]
            self.squares[template] += chosen.T @ chosen
            self.products[template] += chosen.T @ clicks[actions == 1 + template]

    def decide_greedily(self, users: Floats) -> Floats:
        """Return the probabilities (n, 5) that are best for estimated clicks under the upper ends."""
        features = np.column_stack([np.ones(len(users)), users])
        parameters = np.linalg.solve(self.squares, self.products[:, :, None])[:, :, 0]
        mixtures = best(np.maximum(features @ parameters.T, 0.0), self.upper_ends(users))
        return np.column_stack([1.0 - mixtures.sum(axis=1), mixtures])

    def decide(self, users: Floats, first: int = 0) -> Floats:
        """Return the probabilities (n, 5)."""
        segments = self.buckets(users).astype(int).tolist()
        contexts = [sw.ContextVector(user, cells) for user, cells in zip(users, segments, strict=True)]
        draws = [sw.RandomKey(SEED, 0, first + i) for i in range(len(users))]
        decisions = choose_batch(self.policy, self.state, contexts, draws)
        return np.array([decision.odds for decision in decisions if decision is not None])

    def upper_ends(self, users: Floats) -> Floats:
        """Return the upper ends (n, 4) of the opt-out rates; users whom the model does not distinguish share them."""
        cells, eligible = self.buckets(users).astype(int), np.ones(1 + len(TEMPLATES), dtype=np.bool_)
        if self.name in ("linear", "logistic"):
            first, place = np.arange(len(users)), np.arange(len(users))
        else:
            keys = cells[:, 0] if cells.shape[1] else np.zeros(len(users))
            _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        ends = []
        for index in first:
            offered = self.policy.rows_for(sw.ContextVector(users[index], cells[index].tolist()))
            bounds = self.policy.rounds.play(self.state.memory, offered, eligible, sw.RandomKey()).workspace.bounds
            ends.append((bounds[1, 0] + bounds[1, 1])[1:-1])
        return np.array(ends)[place]


def describe(mixtures: Floats, users: Floats, world: World) -> Floats:
    """Return the share of users over the limit, the mean excess and the largest cost / limit, what is sent, clicks."""
    costs, clicks = (mixtures * world.opt_outs(users)).sum(axis=1), (mixtures * world.clicks(users)).sum(axis=1)
    over = costs > LIMIT * 1.0001
    excess = np.maximum(costs - LIMIT, 0.0).mean() / LIMIT
    return np.array([over.mean(), excess, costs.max() / LIMIT, mixtures.sum(axis=1).mean(), clicks.mean()])


def log_of(world: World, rows: int) -> tuple[Any, ...]:
    """Return users, templates drawn by lot, clicks and opt-outs."""
    users, sent, at = world.users(rows), world.chance.integers(len(TEMPLATES), size=rows), np.arange(rows)
    return users, sent, world.draw(world.clicks(users)[at, sent]), world.draw(world.opt_outs(users)[at, sent])


def static(rows: int, worlds: int, models: list[str], fresh: int, forms: list[str]) -> None:
    """Print what is sent to fresh users after a log: with known clicks, and by the agent."""
    print(f"\nafter {rows:,} rows by lot; {worlds} worlds, {fresh} fresh users")
    print("| opt-outs | limit | over | worst / limit | sent | clicks | end / mean | by the agent: over | clicks |")
    print("|---|---|---|---|---|---|---|---|---|")
    for form in forms:
        for name in ("the truth", *models):
            found = []
            for index in range(worlds):
                world = World(form, SEED + index)
                logged, users = log_of(world, rows), world.users(fresh)
                means, clicks = world.opt_outs(users), world.clicks(users)
                if name == "the truth":
                    found.append([*describe(best(clicks, means), users, world), 1.0, 0.0, 0.0])
                    continue
                method = Method(name, *logged)
                ends, played = method.upper_ends(users), describe(method.decide(users)[:, 1:], users, world)
                known = describe(best(clicks, ends), users, world)
                found.append([*known, float(np.median(ends / means)), played[0], played[4]])
            over, _, worst, sent, value, ratio, agent_over, agent_clicks = np.mean(found, axis=0)
            print(
                f"| {form} | {name} | {over:.1%} | {worst:.2f} | {sent:.2f} | {value:.4f} | {ratio:.2f} | "
                f"{agent_over:.1%} | {agent_clicks:.4f} |", flush=True,
            )  # fmt: skip


def online(
    worlds: int, models: list[str], users: int, forms: list[str], greedy: bool = False, batch: int = 5_000
) -> None:
    """Print who is over the limit while the agent learns: 50,000 rows by lot, then batches of users."""
    print(f"\n50,000 rows by lot, then {users:,} users in batches of {batch:,}; {worlds} worlds")
    print("| opt-outs | limit | over | mean excess / limit | worst user | worst batch | sent | clicks | last third |")
    print("|---|---|---|---|---|---|---|---|---|")
    for form in forms:
        for name in models:
            found = []
            for index in range(worlds):
                world = World(form, 100 + index)
                method, parts = Method(name, *log_of(world, 50_000)), []
                for first in range(0, users, batch):
                    people = world.users(batch)
                    odds = method.decide_greedily(people) if greedy else method.decide(people, first)
                    chosen = (odds.cumsum(axis=1) < world.chance.uniform(size=(batch, 1))).sum(axis=1).clip(0, 4)
                    at = np.maximum(chosen - 1, 0), np.arange(batch)
                    clicks = world.draw(np.where(chosen > 0, world.clicks(people)[at[1], at[0]], 0.0))
                    costs = world.draw(np.where(chosen > 0, world.opt_outs(people)[at[1], at[0]], 0.0))
                    method.learn(people, chosen, clicks, costs)
                    method.learn_clicks(people, chosen, clicks)
                    mean = (odds[:, 1:] * world.opt_outs(people)).sum(axis=1).mean() / LIMIT
                    parts.append([*describe(odds[:, 1:], people, world), mean])
                table = np.array(parts)
                late = table[-len(table) // 3 :, 4].mean()
                found.append(
                    [*table.mean(axis=0)[:2], table[:, 2].max(), table[:, 5].max(), *table.mean(axis=0)[3:5], late]
                )
            over, excess, worst, worst_batch, sent, value, late = np.mean(found, axis=0)
            print(
                f"| {form} | {name} | {over:.1%} | {excess:.3f} | {worst:.2f} | {worst_batch:.2f} | {sent:.2f} | "
                f"{value:.4f} | {late:.4f} |", flush=True,
            )  # fmt: skip


def speed(models: list[str]) -> None:
    """Print the processor time of a decision with five actions, of one learned row, and of the log's rows."""
    print("\n| limit | rows | a decision, us | in a batch, us a user | one outcome, us | a row of the log, us |")
    print("|---|---|---|---|---|---|")
    world = World("logistic", SEED)
    for rows in (1_000, 10_000, 200_000):
        logged, users = log_of(world, rows), world.users(200)
        for name in models:
            weights, cuts = dict.fromkeys(NAMES, 1.0), np.linspace(-2.0, 2.0, CUTS - 1).tolist()
            told = {"score": sw.RiskScore("risk", weights=weights, cuts=cuts)} if name == "score" else {"model": name}
            problem = declare(sw.Limit(LIMIT, safe_bound=0.0, **told))
            agent = sw.Agent(problem, seed=1)
            frame = dict(zip(NAMES, logged[0].T, strict=True)) | {"action": np.array(TEMPLATES)[logged[1]]}
            started = time.process_time()
            agent.learn_log_frame({**frame, "click": logged[2], "opt_out": logged[3]})
            by_log = (time.process_time() - started) / rows
            people = [dict(zip(NAMES, user, strict=True)) for user in users.tolist()]
            agent.learn(agent.decide(people[0]), click=0.0, opt_out=0.0)
            started = time.process_time()
            decisions = [agent.decide(person) for person in people]
            decided, started = (time.process_time() - started) / len(people), time.process_time()
            for decision in decisions:
                agent.learn(decision, click=0.0, opt_out=0.0)
            learned = (time.process_time() - started) / len(people)
            policy, contexts = problem.policy(), [problem.encode_context(person) for person in people]
            draws = [sw.RandomKey(1, 0, i) for i in range(len(people))]
            choose_batch(policy, agent.state, contexts[:1], draws[:1])
            started = time.process_time()
            choose_batch(policy, agent.state, contexts, draws)
            batched = (time.process_time() - started) / len(people)
            cells = " | ".join(f"{1e6 * value:,.0f}" for value in (decided, batched, learned))
            print(f"| {name} | {rows:,} | {cells} | {1e6 * by_log:.1f} |", flush=True)


def ends() -> None:
    """Print the time of an exact end of a logistic limit, by the rows of its action."""
    print("\n| rows of an action | an end, us | the fastest of 200 |")
    print("|---|---|---|")
    world, eligible = World("logistic", SEED), np.ones(2, dtype=np.bool_)
    policy = sw.SafeContextPosteriorSampling(
        actions=2, context=NUMBERS, reward_model="rates", cost_model="logistic", threshold=LIMIT,
        safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0),
    )  # fmt: skip
    for rows in (2_000, 50_000, 200_000):
        users = world.users(rows)
        logged = np.column_stack([np.ones((rows, 2)), users])
        outcomes = np.column_stack([np.zeros(rows), world.draw(world.opt_outs(users)[:, 2])])
        state, times = policy.learn_log(policy.start(), logged, outcomes), []
        for user in world.users(201):
            offered, started = policy.rows_for(sw.ContextVector(user)), time.process_time()
            policy.rounds.play(state.memory, offered, eligible, sw.RandomKey())
            times.append(1e6 * (time.process_time() - started))
        print(f"| {rows:,} | {np.mean(times[1:]):,.0f} | {min(times[1:]):,.0f} |", flush=True)


def crossing() -> None:
    """Print the width of linear costs' upper ends, above the mean, by sets of rare events and by ridge regression."""
    print("\n| rows | mean | rare events | ridge | ratio |")
    print("|---|---|---|---|---|")
    chance, width = np.random.default_rng(SEED), 1 + NUMBERS
    for rows in (2_000, 50_000):
        for rate in (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5):
            slopes = chance.standard_normal(NUMBERS)
            slopes *= 0.5 * rate / np.abs(slopes).sum()
            users, fresh = chance.uniform(-1.0, 1.0, (rows, NUMBERS)), chance.uniform(-1.0, 1.0, (200, NUMBERS))
            observed = (chance.uniform(size=rows) < rate + users @ slopes).astype(float)
            features = np.column_stack([np.ones(rows), np.ones(rows), users])
            widths = []
            for model in (PER_ACTION_EVENTS, PER_ACTION_RIDGE):
                context_caps.RARE = 1.0 if model == PER_ACTION_EVENTS else 0.0
                policy = sw.SafeContextPosteriorSampling(
                    actions=2, context=width - 1, reward_model="rates", cost_model="linear",
                    safe_action=sw.SafeAction(arm=0, reward=0.0, cost=0.0), threshold=1.2 * rate,
                )  # fmt: skip
                assert policy.rounds.spec.models[1] == model
                state = policy.learn_log(policy.start(), features, np.column_stack([np.zeros(rows), observed]))
                above = []
                for user in fresh:
                    offered, eligible = policy.rows_for(sw.ContextVector(user)), np.ones(2, dtype=np.bool_)
                    bounds = policy.rounds.play(state.memory, offered, eligible, sw.RandomKey()).workspace.bounds
                    above.append(bounds[1, 0, 1] + bounds[1, 1, 1] - rate - user @ slopes)
                widths.append(float(np.median(above)))
            events, ridge = widths
            print(f"| {rows:,} | {rate:g} | {events:.4f} | {ridge:.4f} | {events / ridge:.2f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for part in ("static", "online", "speed", "ends", "crossing"):
        parser.add_argument(f"--{part}", action="store_true")
    parser.add_argument("--greedy", action="store_true")
    parser.add_argument("--worlds", type=int, default=2)
    parser.add_argument("--rows", type=int, nargs="*", default=[50_000, 200_000])
    parser.add_argument("--users", type=int, default=150_000)
    parser.add_argument("--fresh", type=int, default=300)
    parser.add_argument("--forms", nargs="*", default=["logistic", "linear"])
    parser.add_argument("--models", nargs="*", default=["rates", "buckets", "score", "linear", "logistic"])
    asked = parser.parse_args()
    everything = not (asked.static or asked.online or asked.speed or asked.ends or asked.crossing)
    if asked.static or everything:
        for rows in asked.rows:
            static(rows, asked.worlds, asked.models, asked.fresh, asked.forms)
    if asked.online or everything:
        online(asked.worlds, asked.models, asked.users, asked.forms, asked.greedy)
    if asked.speed or everything:
        speed([name for name in asked.models if name in ("score", "linear", "logistic")])
    if asked.ends or everything:
        ends()
    if asked.crossing or everything:
        crossing()
