"""The picture: regret above, cost under its threshold below, one column a threshold."""

from pathlib import Path
from typing import Any

import numpy as np

from stagewise.experiments.figure_1.plan import POLICIES, THRESHOLDS, Cell, load
from stagewise.kernels.compile import Floats, Ints

COLOURS = {"LC-LUCB": "#0072B2", "Safe-LTS": "#D55E00"}


def band(axes: Any, rounds: Ints, values: Floats, name: str) -> None:
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
        above, below = grid[:, column]
        for name in POLICIES:
            results = load(folder, Cell(name, threshold), size)
            band(above, results[0].rounds, np.concatenate([result.regret for result in results]), name)
            band(below, results[0].rounds, np.concatenate([result.cost[:, :, 0] for result in results]), name)
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
