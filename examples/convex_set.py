"""How to split effort over two channels, when any split in a disc can be played and two limits cut it?

python examples/convex_set.py
"""

import sys

import numpy as np

import stagewise as sw
from picture import save
from stagewise.reports import style as plot_style

GAIN, LIMITS = np.array([0.9, 0.5]), {"churn": 0.25, "delay": 0.3}
COSTS = np.array([[0.6, -0.2], [0.1, 0.7]])  # of each limit, by channel; nobody knows them
NOISE = 0.05


def main(path: str = "results/gallery/convex_set.png", weeks: int = 400) -> None:
    """Play points of the unit disc, each safe by what is known then, and draw the way they take."""
    policy = sw.ROFUL(
        safe_action=sw.SafeAction(features=[0.0, 0.0]), threshold=LIMITS, noise=NOISE, bounds_solver_gap=False
    )
    agent, chance, played = sw.Agent(policy, seed=1), np.random.default_rng(2), []
    for _ in range(weeks):
        decision = agent.decide(sw.BallSet(1.0))
        x = decision.action
        outcome = COSTS @ x + NOISE * chance.normal(size=2)
        agent.learn(decision, reward=x @ GAIN + NOISE * chance.normal(), cost=dict(zip(LIMITS, outcome, strict=True)))
        played.append(x)
    ways = np.array(played)
    figure, ((left, right),) = plot_style.make_figure(1, 2, width=4.4, height=3.6)
    round_ = np.linspace(0.0, 2 * np.pi, 200)
    left.plot(np.cos(round_), np.sin(round_), color=plot_style.SAFE)
    for (name, limit), cost, colour in zip(LIMITS.items(), COSTS, (plot_style.BAD, plot_style.TODAY), strict=True):
        line = limit * cost / (cost @ cost) + np.outer([-2, 2], [-cost[1], cost[0]])
        left.plot(*line.T, color=colour, label=f"{name} = {limit}")
        costs = ways @ cost
        right.plot(costs / limit, color=colour, label=name)
        print(f"{np.sum(costs > limit + 1e-9)} of {weeks} rounds beyond {name} ≤ {limit}")
    left.scatter(*ways.T, c=np.arange(weeks), cmap="viridis", s=9)
    left.set(xlim=(-0.6, 1.1), ylim=(-0.6, 1.1), aspect="equal", xticks=[-0.5, 0.0, 0.5, 1.0])
    plot_style.format_axes(left, "played: first dark, last bright", "one channel", "the other")
    plot_style.draw_limit_line(right, 1.0)
    plot_style.format_axes(right, "expected cost, of each limit", "week")
    left.legend(frameon=False, fontsize=8, loc="lower left")
    right.legend(frameon=False, loc="lower right")
    save(figure, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
