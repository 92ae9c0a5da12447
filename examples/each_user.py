"""Whose opt-outs does a limit hold down: the average user's, every group's, every bucket's, or each user's own?

python examples/each_user.py
"""

import sys
from typing import Any

import numpy as np

import stagewise as sw
from picture import save
from stagewise.reports import style as plot_style

MESSAGES, LIMIT, SAFE = ["plain", "offer"], 0.02, 0.008
PROMISES: dict[str, dict[str, Any]] = {
    "rates": {"model": "rates"},
    "by": {"by": "mail"},
    "score": {"score": sw.RiskScore("sends", low=0, high=20)},
    "logistic": {"model": "logistic"},
}
GROUPS = ["little", "much"]  # mail of last month: below and above the middle of its range


def rates(sends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return click and opt-out rates (n, 2): who gets much mail clicks the offer more, and leaves over it more."""
    busy, one = sends / 10.0 - 1.0, np.ones(sends.size)
    clicks = np.column_stack([0.05 * one, 0.10 + 0.05 * busy])
    return clicks, np.column_stack([SAFE * one, 1.0 / (1.0 + np.exp(4.4 - 1.3 * busy))])


def people(sends: np.ndarray) -> dict[str, np.ndarray]:
    """Return users as the problem names them."""
    return {"sends": sends, "mail": np.array(GROUPS)[(sends >= 10.0).astype(int)]}


def campaign(promise: dict[str, Any], users: int, rows: int) -> np.ndarray:
    """Learn a log of messages by lot, then serve users; return clicks and opt-outs expected of each, and the sends."""
    context = {"sends": (0, 20)}
    problem = sw.Problem(
        action_names=MESSAGES, safe_name="plain", context=context, reward=sw.Reward("click"),
        limits={"opt_out": sw.Limit(LIMIT, safe_bound=SAFE, **promise)},
    )  # fmt: skip
    agent, chance = sw.Agent(problem, seed=1), np.random.default_rng(2)
    names = list(problem.context_names)

    sends, sent = chance.uniform(0.0, 20.0, rows), chance.integers(0, 2, rows)
    clicks, leaves = (chance.random(rows) < means[np.arange(rows), sent] for means in rates(sends))
    columns = {name: people(sends)[name] for name in names}
    agent.learn_log_frame({**columns, "action": np.array(MESSAGES)[sent], "click": clicks, "opt_out": leaves})

    sends, served = chance.uniform(0.0, 20.0, users), []
    (click_rates, leave_rates), described = rates(sends), people(sends)
    for i in range(users):
        decision = agent.decide({name: described[name][i] for name in names})
        shares, index = np.array(list(decision.probabilities.values())), MESSAGES.index(decision.action)
        click, leave = chance.random(2) < [click_rates[i, index], leave_rates[i, index]]
        agent.learn(decision.id, click=click, opt_out=leave)
        served.append((shares @ click_rates[i], shares @ leave_rates[i], sends[i]))
    return np.array(served).T


def main(path: str = "results/gallery/each_user.png", users: int = 10_000, rows: int = 20_000) -> None:
    """Serve the same users under a limit with each promise."""
    figure, ((left, right),) = plot_style.make_figure(1, 2, width=4.4, height=3.1)
    for index, (name, promise) in enumerate(PROMISES.items()):
        clicks, leaves, sends = campaign(promise, users, rows)
        over, colour = leaves > LIMIT + 1e-9, plot_style.STYLES[index][0]
        print(f"{name}: {over.sum()} of {users} users over the limit; {100 * clicks.mean():.2f} clicks of 100 users")
        bins = np.minimum(sends, 19.99).astype(int)
        means = [leaves[bins == one].mean() if (bins == one).any() else np.nan for one in range(20)]
        left.plot(np.arange(20) + 0.5, means, color=colour, linewidth=1.6, label=name)
        right.barh(name, 100 * clicks.mean(), color=colour, height=0.6)
        right.text(0.2, name, f"{over.mean():.0%} of users over", color="white", va="center")
    plot_style.draw_limit_line(left, LIMIT, "opt_out")
    plot_style.format_axes(left, "expected opt-outs of a decision", x="mail a user got last month")
    plot_style.format_axes(right, "expected clicks of 100 users", grid=False)
    right.invert_yaxis()
    left.set_ylim(bottom=0.0)
    left.legend(frameon=False, loc="upper left")
    save(figure, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
