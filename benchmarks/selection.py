"""Who is over the limit when the reward chooses who gets what? Two campaigns, by the promise of the limit.

Usage: python benchmarks/selection.py [--keen] [--nights 8] [--users 4000]; default: both campaigns.

"keen": keen users click the offer and leave over it. "nights": five templates, opt-outs that grow with the mail of the
last month, for new users and on light devices, each night learned before the next. A log by lot comes before both. Its
opt-outs are logistic or linear in the context; every promise of a limit is played in both.
"""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import stagewise as sw
from stagewise.engine.compile import Floats
from stagewise.policies.problem_policy import choose_batch

TEMPLATES = ["plain", "emoji", "story", "offer", "urgent"]
BASE_CLICKS = np.array([0.045, 0.055, 0.060, 0.075, 0.070])
BASE_OPT_OUTS = np.array([0.0040, 0.0055, 0.0065, 0.0080, 0.0110])
SAFE_COST = 0.012  # of "plain", for every user
Users = dict[str, Any]  # columns
Rates = Callable[[Users], Floats]


class Campaign(NamedTuple):
    """A world: who comes, and what they do."""

    actions: list[str]
    context: dict[str, tuple[float, float]]
    limit: float
    safe: float  # declared cost of the first action
    users: Callable[[np.random.Generator, int], Users]
    clicks: Rates
    opt_outs: Rates


def make_keen() -> Campaign:
    """Return the campaign with keen users, 35 of 100."""

    def users(chance: np.random.Generator, count: int) -> Users:
        keen = chance.random(count) < 0.35
        return {"keen": keen.astype(float), "group": np.where(keen, "keen", "other"), "risk": np.where(keen, 0.9, 0.1)}

    def of(plain: float, keen: float, other: float) -> Rates:
        return lambda people: np.column_stack(
            [np.full(len(people["keen"]), plain), np.where(people["keen"] > 0.0, keen, other)]
        )

    return Campaign(
        ["plain", "offer"], {"keen": (0.0, 1.0)}, 0.015, 0.01, users, of(0.05, 0.30, 0.02), of(0.008, 0.030, 0.004)
    )


def make_nights(form: str) -> Campaign:
    """Return the campaign of five templates; opt-outs are logistic or linear in mail, being new and a light device."""
    context = {"sends": (0.0, 30.0), "new": (0.0, 1.0), "lite": (0.0, 1.0), "spend": (0.0, 10.0), "opens": (0.0, 1.0)}

    def users(chance: np.random.Generator, count: int) -> Users:
        sends = chance.poisson(8, count) + chance.poisson(6, count) * (chance.random(count) < 0.2)
        mail = np.minimum(sends, 30).astype(float)
        new = (chance.random(count) < 0.12).astype(float)
        risk = np.clip(0.2 + 0.02 * mail + 0.25 * new, 0.0, 1.0)  # the doctor's or your own, of the mail and being new
        group = np.char.add(np.digitize(mail, [8, 12, 16]).astype(str), np.where(new > 0.0, "new", "old"))
        return {
            "sends": mail, "new": new, "group": group, "risk": risk,
            "lite": (chance.random(count) < 0.05).astype(float),
            "spend": np.minimum(chance.lognormal(0.8, 0.7, count), 10.0), "opens": chance.beta(2, 6, count),
        }  # fmt: skip

    def clicks(people: Users) -> Floats:
        rates = BASE_CLICKS * (0.7 + 1.2 * people["opens"] + 0.02 * people["sends"])[:, None]
        rates[:, 3] *= 0.7 + 0.12 * people["spend"]
        return rates

    def opt_outs(people: Users) -> Floats:
        mail, new, lite = people["sends"] - 8.0, people["new"], people["lite"]
        if form == "linear":
            rates = BASE_OPT_OUTS * (0.9 + 0.05 * mail + 0.5 * new)[:, None]
            rates[:, 3] += 0.0064 * lite
            return rates
        odds = np.log(BASE_OPT_OUTS / (1.0 - BASE_OPT_OUTS)) + (0.03 * mail + 0.4 * new)[:, None]
        odds[:, 3] += 0.6 * lite
        return 1.0 / (1.0 + np.exp(-odds))

    return Campaign(TEMPLATES, context, 0.015, SAFE_COST, users, clicks, opt_outs)


class Player:
    """A problem that learns a log, then nights of users."""

    def __init__(self, campaign: Campaign, promise: dict[str, Any], seed: int, log: int) -> None:
        self.campaign, self.chance = campaign, np.random.default_rng(seed)
        fits = promise.get("score") == "fitted"
        told = {"model": "rates"} if fits else promise
        limits = {"opt_out": sw.Limit(campaign.limit, safe_bound=campaign.safe, **told)}
        self.problem = sw.Problem(
            action_names=campaign.actions,
            safe_name=campaign.actions[0],
            context=campaign.context,
            reward=sw.Reward("click"),
            limits=limits,
        )
        people = campaign.users(self.chance, log)
        actions, at = self.chance.integers(len(campaign.actions), size=log), np.arange(log)
        drawn = [self.chance.random(log) < rates(people)[at, actions] for rates in (campaign.clicks, campaign.opt_outs)]
        kept = np.ones(log, dtype=np.bool_)
        if fits:  # the earlier half of the log is not learned
            columns = {
                "action": np.array(campaign.actions)[actions],
                "click": drawn[0],
                "opt_out": drawn[1],
                "at": at * 1.0,
            }
            self.problem = sw.fit_risk_score({**people, **columns}, self.problem, "opt_out").problem
            kept = at >= round(log / 2)
        self.policy = self.problem.policy()
        self.state, self.decided = self.policy.start(), 0
        people = {name: column[kept] for name, column in people.items()}
        values = np.column_stack(drawn).astype(float)[kept]
        self.learn_values(self.contexts(people), actions[kept], values, True)

    def contexts(self, people: Users) -> list[sw.ContextVector]:
        """Return the users as the policy reads them."""
        columns = [people[name].tolist() for name in self.problem.context_names]
        names = self.problem.context_names
        return [self.problem.encode_context(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]

    def learn(self, people: Users, contexts: list[sw.ContextVector], actions: Any) -> None:
        """Draw outcomes, and learn them."""
        at = np.arange(len(actions))
        means = [rates(people)[at, actions] for rates in (self.campaign.clicks, self.campaign.opt_outs)]
        values = np.column_stack([self.chance.random(len(at)) < mean for mean in means]).astype(float)
        self.learn_values(contexts, actions, values, False)

    def learn_values(self, contexts: list[sw.ContextVector], actions: Any, values: Floats, as_log: bool) -> None:
        """Learn outcomes."""
        rows = np.array([[action, 1.0, *c.features, *c.segments] for action, c in zip(actions, contexts, strict=True)])
        learn = self.policy.learn_log if as_log else self.policy.learn_rows
        self.state = learn(self.state, self.policy.check_logged_actions(rows), values)

    def play(self, count: int) -> Floats:
        """Serve a night of users; return expected costs and clicks, and the mean cost of the worst group."""
        people = self.campaign.users(self.chance, count)
        contexts = self.contexts(people)
        draws = [sw.RandomKey(1, 0, self.decided + i) for i in range(count)]
        made = choose_batch(self.policy, self.state, contexts, draws)
        odds = np.array([one.odds for one in made if one is not None])
        actions = (odds.cumsum(axis=1) < self.chance.random((count, 1))).sum(axis=1).clip(0, odds.shape[1] - 1)
        self.learn(people, contexts, actions)
        self.decided += count
        costs, clicks = ((odds * rates(people)).sum(axis=1) for rates in (self.campaign.opt_outs, self.campaign.clicks))
        groups = [costs[people["group"] == group].mean() for group in np.unique(people["group"])]
        over = costs > self.campaign.limit * (1.0 + 1e-9)
        return np.array([over.mean(), costs.max(), costs.mean(), max(groups), clicks.mean()])


PROMISES: dict[str, dict[str, Any]] = {
    "rates": {"model": "rates"}, "by group": {"by": "group"}, "score": {"score": sw.RiskScore("risk")},
    "fitted score": {"score": "fitted"},
    "linear": {"model": "linear"}, "logistic": {"model": "logistic"},
}  # fmt: skip


def table(title: str, campaign: Campaign, rows: int, nights: int, users: int, promises: list[str]) -> None:
    """Print what each promise did."""
    print(f"\n{title}: {rows:,} rows by lot, {nights} nights of {users:,} users; limit {campaign.limit:g}")
    print("| promise | users over | worst user | worst group of a night | mean | clicks | last night |")
    print("|---|---|---|---|---|---|---|")
    for name in promises:
        player = Player(campaign, PROMISES[name], 5, rows)
        found = np.array([player.play(users) for _ in range(nights)])
        over, _, mean, _, _ = found.mean(axis=0)
        _, worst, _, group, _ = found.max(axis=0)
        clicks, ratios = found[:, 4], " | ".join(f"{value / campaign.limit:.2f}" for value in (worst, group, mean))
        print(f"| {name} | {over:.1%} | {ratios} | {clicks.mean():.4f} | {clicks[-1]:.4f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--keen", action="store_true")
    parser.add_argument("--nights", type=int, default=0)
    parser.add_argument("--users", type=int, default=4_000)
    parser.add_argument("--promises", nargs="*", default=list(PROMISES))
    asked = parser.parse_args()
    if asked.keen or not asked.nights:
        table("keen", make_keen(), 30_000, 8, asked.users, asked.promises)
    if asked.nights or not asked.keen:
        for form in ("logistic", "linear"):
            title = f"nights, {form} opt-outs"
            table(title, make_nights(form), 40_000, asked.nights or 8, asked.users, asked.promises)
