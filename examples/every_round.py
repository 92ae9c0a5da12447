"""Is a limit kept in every round, or only on average? LinUCB, average-budget pacing and stagewise in one world.

python examples/every_round.py
"""

import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import stagewise as sw
from picture import save
from stagewise.reports import style as plot_style

LIMIT, NOISE = 0.2, 0.05
WORLD = sw.LinearWorld(  # in every round ten new rays, each to be followed as far as one likes
    reward=[0.5, 0.5, 0.3, 0.0],
    cost=[0.5, 0.4, 0.0, 0.2],
    actions=sw.RandomRaySet(count=10, dimension=4),
    noise=NOISE,
)
SAFE = sw.SafeAction(features=np.zeros(4), reward=0.0, cost=0.0)
FIRST = sw.RandomKey()


class Memory(NamedTuple):
    gram: Any  # (d, d)
    sums: Any  # (2, d), of rewards and of costs
    price: float  # of a unit of cost, in units of reward


@dataclass(frozen=True, kw_only=True)
class Pacing:
    """Keep a budget on average: play the largest optimistic reward minus price times cost; spending moves the price."""

    threshold: float = LIMIT
    safe_action: sw.SafeAction = SAFE
    learning_rate: float = 0.05

    def start(self) -> Memory:
        return Memory(0.1 * np.eye(4), np.zeros((2, 4)), 1.0)

    def decide(self, state: Memory, actions: sw.RaySet, draw: sw.RandomKey = FIRST) -> sw.Decision:
        inverse = np.linalg.inv(state.gram)
        reward, cost = actions.features @ inverse @ state.sums.T[:, 0], actions.features @ inverse @ state.sums.T[:, 1]
        optimistic = reward + 3 * NOISE * np.sqrt(np.sum(actions.features @ inverse * actions.features, axis=1))
        score = optimistic - state.price * cost
        best = int(np.argmax(score))
        is_worth_it = bool(score[best] > 0.0)  # else the safe action, which is not in the list
        return sw.Decision(
            action=actions.features[best] if is_worth_it else np.zeros(4),
            action_index=best if is_worth_it else None,
            step_size=float(is_worth_it),
            probabilities=None,
            optimistic_reward=float(optimistic[best]),
            pessimistic_cost=np.array([np.nan]),  # it promises nothing of a round
            thresholds=np.array([self.threshold]),
            reason_details=None,
            round=draw.round,
        )

    def learn(self, state: Memory, decision: sw.Decision, outcome: sw.Outcome) -> Memory:
        x, cost = decision.action, float(np.ravel(outcome.cost)[0])
        price = max(0.0, state.price + self.learning_rate * (cost - self.threshold))
        return Memory(state.gram + np.outer(x, x), state.sums + np.outer([outcome.reward, cost], x), price)


POLICIES = {
    "LinUCB": sw.LinUCB(safe_action=SAFE, threshold=LIMIT, noise=NOISE),
    "pacing": Pacing(),
    "stagewise": sw.SafePosteriorSampling(safe_action=SAFE, threshold=LIMIT, noise=NOISE),
}
WHAT = {"LinUCB": "no limit", "pacing": "limit on average", "stagewise": "limit in every round"}
COLOURS = {"LinUCB": plot_style.UNGUARDED, "pacing": plot_style.WARNING, "stagewise": plot_style.GUARDED}


def costs(axes: Any, who: str, paid: Any, rounds: Any) -> None:
    """Draw the cost of every round, one dot each, and say how many are over the limit."""
    over = paid > LIMIT + 1e-9
    axes.fill_between([1, rounds[-1]], LIMIT, 0.75, color=plot_style.BAD, alpha=0.07, linewidth=0)
    axes.plot(rounds, paid, ".", markersize=1.6, markeredgewidth=0, color=COLOURS[who])
    axes.axhline(LIMIT, color="black", linestyle="--", linewidth=1)
    axes.set(ylim=(-0.35, 0.75), yticks=[0.0, LIMIT, 0.6], xlim=(0, rounds[-1]))
    plot_style.format_axes(axes, grid=False)
    axes.set_title(
        f"{who} ({WHAT[who]}): {over.sum():,} of {over.size:,} over the limit, average {paid.mean():.2f}",
        fontsize=9,
        loc="left",
        color=plot_style.INK,
    )
    print(f"{who}: {over.sum()} of {over.size} rounds over the limit {LIMIT:g}, {paid.mean():.3f} on average")


def rewards(axes: Any, earned: dict[str, Any], best: Any, rounds: Any) -> None:
    """Draw the reward of every policy, averaged over a hundredth of the rounds, and its sum in the legend."""
    ends = [part[-1] for part in np.array_split(rounds, min(100, rounds.size))]
    for who, values in earned.items():
        means = [part.mean() for part in np.array_split(values, len(ends))]
        axes.plot(ends, means, color=COLOURS[who], linewidth=1.6, label=f"{who}: {values.sum():,.0f} in all")
    words = f"best under the limit in every round: {best.sum():,.0f}"
    axes.axhline(best.mean(), color="black", linestyle=":", linewidth=1.3, label=words)
    axes.set_ylim(0.0, 0.75)
    axes.set_xlim(0, rounds[-1])
    axes.legend(loc="lower right", frameon=False, fontsize=8.5)
    plot_style.format_axes(axes, "expected reward per round")
    plot_style.format_round_axis(axes)


def main(path: str = "results/gallery/every_round.png", rounds: int = 10_000) -> None:
    """Play each in the same world with the same seed, every round kept, and draw them."""
    played = {
        who: sw.simulate(policy, WORLD, rounds=rounds, runs=1, record_points=rounds, seed=1, progress=False)
        for who, policy in POLICIES.items()
    }
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.2, 4.6), layout="constrained")
    grid = figure.subplot_mosaic(
        [["LinUCB", "reward"], ["pacing", "reward"], ["stagewise", "reward"]], width_ratios=[3, 2]
    )
    counted = np.arange(1, rounds + 1)
    for who, result in played.items():
        costs(grid[who], who, result.cost[0, :, 0], counted)
        grid[who].tick_params(labelbottom=who == "stagewise")
    plot_style.format_round_axis(grid["stagewise"])
    grid["pacing"].set_ylabel("expected cost of every round (one dot each)", fontsize=9)
    earned = {who: result.reward[0] for who, result in played.items()}
    rewards(grid["reward"], earned, played["stagewise"].optimum[0], counted)
    save(figure, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
