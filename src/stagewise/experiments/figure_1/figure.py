"""The picture: regret above, cost under its threshold below, one column a threshold."""

from pathlib import Path
from typing import Any

import numpy as np

from stagewise.experiments.figure_1.plan import POLICIES, THRESHOLDS, load, optimum
from stagewise.kernels.compile import Floats

COLOURS = {"LC-LUCB": "#0072B2", "Safe-LTS": "#D55E00"}


def thinned(values: Floats, points: int = 400) -> tuple[Floats, Floats]:
    """Return means over intervals (runs, points) and the rounds at their ends."""
    width = max(1, values.shape[1] // points)
    kept = values[:, : values.shape[1] // width * width].reshape(len(values), -1, width).mean(axis=2)
    return kept, np.arange(1, kept.shape[1] + 1) * width


def band(axes: Any, rounds: Floats, values: Floats, name: str) -> None:
    """Draw the mean over runs and one standard deviation to either side."""
    middle, spread = values.mean(axis=0), values.std(axis=0)
    axes.plot(rounds, middle, color=COLOURS[name], label=name, linewidth=1.5)
    axes.fill_between(rounds, middle - spread, middle + spread, color=COLOURS[name], alpha=0.2, linewidth=0)


def draw(folder: Path, size: str, targets: list[Path]) -> None:
    """Draw from the result files alone."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(2, 3, figsize=(11, 6), sharex=True, layout="constrained")
    for column, threshold in enumerate(THRESHOLDS):
        best = optimum(threshold)
        above, below = grid[:, column]
        for name in POLICIES:
            reward, cost = load(folder, name, threshold, size)
            curve, rounds = thinned(np.cumsum(best - reward, axis=1))
            band(above, rounds, curve, name)
            curve, rounds = thinned(cost)
            band(below, rounds, curve, name)
        below.axhline(threshold, color="black", linestyle="--", linewidth=1, label="threshold")
        above.set_title(f"threshold {threshold:g}")
        below.set_xlabel("round")
        below.set_ylim(0, max(0.65, threshold * 1.1))
    grid[0, 0].set_ylabel("regret")
    grid[1, 0].set_ylabel("expected cost of the round")
    grid[1, 0].legend(frameon=False, loc="center right")
    for target in targets:
        figure.savefig(target, dpi=150)
    pyplot.close(figure)
