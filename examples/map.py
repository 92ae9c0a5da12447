"""Where to put the kiosk, when loudness is limited and nothing is known but that near places are alike?

python examples/map.py
"""

import sys

import numpy as np

import stagewise as sw
from picture import save
from stagewise.reports import style as plot_style

SIDE = np.linspace(0.0, 1.0, 15)
PLACES = np.array([(east, north) for north in SIDE for east in SIDE])
LIMIT, NOISE = {"loudness": 0.35}, 0.05


def bumps(*peaks: tuple[float, float, float]) -> np.ndarray:
    """Return a smooth function of the places; its norm in the kernel's space is at most the sum of the heights."""
    return sum(h * np.exp(-((PLACES - (east, north)) ** 2).sum(axis=1) / (2 * 0.5**2)) for east, north, h in peaks)


SALES, LOUDNESS = bumps((0.8, 0.75, 0.7), (0.15, 0.7, 0.3)), bumps((0.95, 0.95, 0.7), (0.6, 0.0, 0.2))
HOME = int(np.argmin(((PLACES - (0.2, 0.4)) ** 2).sum(axis=1)))  # where it stands today


def main(path: str = "results/gallery/map.png", days: int = 1_500) -> None:
    """Move the kiosk day by day, and draw where it has been, and what is certified by then."""
    safe = sw.SafeAction(features=PLACES[HOME], reward=SALES[HOME], cost=LOUDNESS[HOME])
    policy = sw.KernelOPLB(
        kernel=sw.RBF(lengthscale=0.5), safe_action=safe, threshold=LIMIT, noise=NOISE, norm_bound=1.0, ridge=0.05
    )
    agent, chance, been = sw.Agent(policy, seed=1), np.random.default_rng(2), []
    for _ in range(days):
        decision = agent.decide(sw.FiniteSet(PLACES))
        at = HOME if decision.action_index is None else decision.action_index
        sold, loud = [SALES[at], LOUDNESS[at]] + NOISE * chance.normal(size=2)
        agent.learn(decision, reward=sold, cost={"loudness": loud})
        been.append((at, decision.probabilities @ np.append(LOUDNESS, LOUDNESS[HOME])))
    figure, ((left, right),) = plot_style.make_figure(1, 2, width=4.4, height=3.6)
    visited, loudness = np.array(been).T
    left.contourf(SIDE, SIDE, SALES.reshape(15, 15), levels=30, cmap="Blues")
    left.contour(SIDE, SIDE, LOUDNESS.reshape(15, 15), levels=[0.35], colors=plot_style.BAD)
    counts = np.bincount(visited[days // 2 :].astype(int), minlength=225)
    left.scatter(
        *PLACES.T, s=120 * np.sqrt(counts / counts.max()), color=plot_style.WARNING, edgecolor="white", linewidth=0.4
    )
    left.plot(*PLACES[HOME], marker="*", markersize=13, color="black")
    plot_style.format_axes(left, "sales (blue), loudness of 0.35 (red), later days", "east", "north")
    left.grid(False)
    right.plot(loudness, color=plot_style.GUARDED, linewidth=1)
    plot_style.draw_limit_line(right, 0.35, "loudness")
    plot_style.format_axes(right, "expected loudness of every day", "day")
    print(f"{np.sum(loudness > 0.35)} of {days} days beyond loudness ≤ 0.35")
    save(figure, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
