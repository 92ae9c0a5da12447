"""A result as a picture: regret, every cost against its threshold, and the reward, with bands over runs."""

import io
from pathlib import Path
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.reports.files import write_bytes
from stagewise.reports.result import Result

BLUE = "#0072B2"


def plain(name: str) -> str:
    """Return a user's own name so that a picture shows it as it is: between two dollars would stand a formula."""
    return name.replace("$", r"\$")


def write_picture(figure: Any, path: Path) -> None:
    """Write a figure as PNG or SVG, by the file's name, whole or not at all."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix[1:], dpi=150)
    write_bytes(path, buffer.getvalue())


def band(axes: Any, rounds: Ints, values: Floats) -> None:
    """Draw the mean over runs, and where the middle four fifths of them lie."""
    axes.plot(rounds, values.mean(axis=0), color=BLUE, linewidth=1.5)
    low, high = np.quantile(values, [0.1, 0.9], axis=0)
    axes.fill_between(rounds, low, high, color=BLUE, alpha=0.2, linewidth=0)


def drawn(result: Result) -> Any:
    """Return the figure; nothing is shown or saved."""
    from matplotlib.figure import Figure

    m = result.cost.shape[2]
    figure = Figure(figsize=(3.6 * (2 + m), 3.2), layout="constrained")
    panels = figure.subplots(1, 2 + m, squeeze=False)[0]
    band(panels[0], result.rounds, result.regret)
    panels[0].set(title="regret", xlabel="round")
    limits = list(result.manifest["thresholds"].items())
    for j, axes in enumerate(panels[1:-1]):
        band(axes, result.rounds, result.cost[:, :, j])
        name = limits[j][0] if limits else f"cost {j + 1}"
        axes.set(title=f"expected {plain(name)} of a round", xlabel="round")
        if limits:
            axes.axhline(limits[j][1], color="black", linestyle="--", linewidth=1, label="threshold")
            axes.legend(frameon=False)
    band(panels[-1], result.rounds, result.reward)
    panels[-1].plot(
        result.rounds, result.optimum.mean(axis=0), color="black", linestyle=":", linewidth=1, label="the most possible"
    )
    panels[-1].legend(frameon=False)
    panels[-1].set(title="expected reward of a round", xlabel="round")
    return figure
