"""Six templates, users with eight features, two limits: from a log to a month (docs/tutorials/campaign.md).

python examples/templates.py              # a table, day by day
python examples/templates.py picture      # the same, and docs/pictures/templates.png
python examples/templates.py seeds        # eight logs and months
"""

import heapq
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import stagewise as sw

DAY = 86_400.0
PROBLEM = sw.Problem.load(Path(__file__).with_suffix(".toml"))
SIZES = dict(zip(PROBLEM.context, ([18, 99], [0, 20], [0, 7], [0, 30], [0, 1], [0, 1], [0, 1], [0, 1]), strict=True))


class Truth(NamedTuple):
    """The true rates, which no policy knows."""

    clicks: np.ndarray  # (6, 9) a constant and what each number of a user, scaled to [−1, 1], adds
    costs: np.ndarray  # (2, 6) opt-outs and complaints by template

    def best(self, users: np.ndarray) -> np.ndarray:
        """Return the most clicks that every user allows under both limits: the best of two templates, by share."""
        rates, (out, complain) = users @ self.clicks.T, self.costs
        most = np.full(len(users), -np.inf)
        for i in range(6):
            for j in range(6):
                share = 1.0  # of j, beside i
                for cost, limit in ((out, 0.02), (complain, 0.005)):
                    if cost[i] > limit:
                        share = -1.0
                    elif cost[j] > limit:
                        share = min(share, (limit - cost[i]) / (cost[j] - cost[i]))
                if share >= 0.0:
                    most = np.maximum(most, (1.0 - share) * rates[:, i] + share * rates[:, j])
        return most


def truth() -> Truth:
    """Return rates as they may be: clicks of 4 to 9 %, opt-outs around 2 %, complaints around .5 %."""
    chance = np.random.default_rng(99)
    clicks = np.column_stack([[0.045, 0.055, 0.06, 0.075, 0.085, 0.08], 0.005 * chance.normal(size=(6, 8))])
    costs = np.array([[0.008, 0.010, 0.013, 0.028, 0.016, 0.035], [0.001, 0.0015, 0.002, 0.004, 0.003, 0.008]])
    return Truth(clicks, costs)


def users(count: int, chance: np.random.Generator) -> tuple[list[dict[str, float]], np.ndarray]:
    """Return users as the problem names their numbers, and the same scaled, behind a constant."""
    scaled = chance.uniform(-1.0, 1.0, (count, 8))
    ends = np.array([SIZES[name] for name in PROBLEM.context], dtype=float).T
    numbers = ends[0] + 0.5 * (scaled + 1.0) * (ends[1] - ends[0])
    named = [dict(zip(SIZES, row, strict=True)) for row in np.clip(numbers, *ends).tolist()]
    return named, np.column_stack([np.ones(count), scaled])


def log(world: Truth, count: int, chance: np.random.Generator) -> dict[str, Any]:
    """Return the log of last month's test, when every template went to a sixth of the users: a frame of columns."""
    people, numbers = users(count, chance)
    sent = chance.integers(0, 6, count)
    frame: dict[str, Any] = {name: [person[name] for person in people] for name in SIZES}
    frame["action"] = [PROBLEM.action_names[template] for template in sent]
    frame["click"] = chance.random(count) < np.einsum("ij,ij->i", world.clicks[sent], numbers)
    frame["opt_out"], frame["complaint"] = chance.random((2, count)) < world.costs[:, sent]
    return frame


class Day(NamedTuple):
    """The results of a day."""

    clicks: float  # expected of what was done, for each user
    possible: float
    today: float  # of the template that is sent today
    pessimistic: dict[str, float]  # pessimistic costs, for each user
    true: dict[str, float]  # true expected costs
    over: int  # users for whom a limit was violated


def campaign(agent: sw.Agent, days: int, people: int, seed: int = 0) -> list[Day]:
    """Play days of users: clicks come within hours, opt-outs within two days, complaints within a week, some never."""
    world, chance, late, results = truth(), np.random.default_rng([1, seed]), [], []
    for day in range(days):
        named, numbers = users(people, chance)
        click_rates, total, over = numbers @ world.clicks.T, 0.0, 0
        pessimistic, true = np.zeros(2), np.zeros(2)
        for i, user in enumerate(named):
            now = DAY * (day + i / people)
            while late and late[0][0] <= now:
                when, id_, signal = heapq.heappop(late)
                agent.learn(id_, now=when, **signal)
            decision: Any = agent.decide(user, now=now)
            shares = np.array(list(decision.probabilities.values()))
            total += float(shares @ click_rates[i])
            over += bool(np.any(world.costs @ shares > [0.02 + 1e-12, 0.005 + 1e-12]))
            pessimistic += [limit.pessimistic_cost for limit in decision.limits.values()]
            true += world.costs @ shares
            index = PROBLEM.get_action_index(decision.action)
            if chance.random() < click_rates[i, index]:
                heapq.heappush(late, (now + 6 * 3600.0 * chance.random(), decision.id, {"click": True}))
            for name, rate, window in (("opt_out", 0, 2), ("complaint", 1, 7)):
                if chance.random() < world.costs[rate, index]:
                    heapq.heappush(late, (now + window * DAY * chance.random(), decision.id, {name: True}))
        possible = float(world.best(numbers).mean())
        rates = [dict(zip(PROBLEM.limits, (sums / people).tolist(), strict=True)) for sums in (pessimistic, true)]
        results.append(Day(total / people, possible, float(click_rates[:, 0].mean()), *rates, over))
    return results


def print_days(results: list[Day]) -> None:
    """Print every fifth day and the total."""
    for day, result in enumerate(results, start=1):
        if day % 5 == 1 or day == len(results):
            rates = ", ".join(
                f"{name} {result.true[name]:.4f}, at most {result.pessimistic[name]:.4f}" for name in result.pessimistic
            )
            gain = compute_gain([result])
            print(f"day {day:2}: {result.clicks:.4f} clicks a user, {gain:4.0%} of the extra ones; {rates}")
    over = sum(day.over for day in results)
    print(f"{compute_gain(results):.0%} of the possible extra clicks, and {over} users over a limit")


def compute_gain(results: list[Day]) -> float:
    """Return the share of the possible extra clicks that the agent got."""
    return sum(d.clicks - d.today for d in results) / sum(d.possible - d.today for d in results)


def draw_days(results: list[Day], path: Path) -> None:
    """Draw clicks above and limits below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    days = range(1, len(results) + 1)
    left.plot(
        days, [100 * d.possible for d in results], color="#888888", linestyle="--", label="possible under both limits"
    )
    left.plot(days, [100 * d.clicks for d in results], color="#1f5fa8", linewidth=2, label="the agent")
    left.plot(days, [100 * d.today for d in results], color="#b5651d", label="today's template")
    left.set(xlabel="day", ylabel="expected clicks of 100 users", ylim=(0, None))
    left.legend(frameon=False, loc="lower right")
    for (name, limit), colour in zip(PROBLEM.limits.items(), ("#1f5fa8", "#3a8f5c"), strict=True):
        value = float(limit.value)  # type: ignore[arg-type]
        right.plot(days, [100 * d.pessimistic[name] / value for d in results], color=colour, linestyle=":")
        right.plot(
            days, [100 * d.true[name] / value for d in results], color=colour, label=f"{name}, limit {value:.1%}"
        )
    right.axhline(100, color="#b00020", linewidth=1)
    right.set(xlabel="day", ylabel="expected rate, % of its limit\n(dotted: pessimistic)", ylim=(0, 110))
    right.legend(frameon=False, loc="lower right")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main(days: int = 30, people: int = 5_000, rows: int = 50_000, seed: int = 0) -> list[Day]:
    """Learn from the log, then play the campaign."""
    agent = sw.Agent(PROBLEM, seed=7 + seed)
    agent.learn_log_frame(log(truth(), rows, np.random.default_rng(seed)))
    return campaign(agent, days, people, seed)


def several(count: int = 8) -> None:
    """Play several logs and months, and print the totals."""
    months = [main(seed=seed) for seed in range(count)]
    shares, late = [compute_gain(month) for month in months], [compute_gain(month[-10:]) for month in months]
    over = sum(day.over for month in months for day in month)
    print(f"{np.mean(shares):.1%} of the extra clicks ({min(shares):.1%} to {max(shares):.1%}), ", end="")
    print(f"{np.mean(late):.1%} in the last ten days, {over} users over a limit")


if __name__ == "__main__":
    if "seeds" in sys.argv:
        several()
    else:
        print(PROBLEM)
        month = main()
        print_days(month)
        if "picture" in sys.argv:
            draw_days(month, Path(__file__).parents[1] / "docs" / "pictures" / "templates.png")
