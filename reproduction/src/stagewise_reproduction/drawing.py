"""What the figures share: colours that colour-blind readers tell apart, line styles for print, bands over runs."""

from pathlib import Path
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.reports.picture import write_picture
from stagewise.reports.result import Result

# Okabe and Ito's palette, each with its own dashes so that a grey print can still be read.
STYLES: list[tuple[str, Any]] = [
    ("#0072B2", "-"),
    ("#D55E00", (0, (5, 1.5))),
    ("#009E73", (0, (3, 1, 1, 1))),
    ("#CC79A7", (0, (1, 1))),
    ("#56B4E9", (0, (6, 1, 1, 1))),
    ("#E69F00", (0, (4, 1, 1, 1, 1, 1))),
    ("#000000", (0, (2, 2))),
    ("#999999", "-"),
]


def panels(rows: int, columns: int, width: float = 3.7, height: float = 2.9) -> tuple[Any, Any]:
    """Return a figure and its panels, an array (rows, columns)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def band(axes: Any, rounds: Ints, values: Floats, label: str, style: int) -> None:
    """Draw the mean over runs, and one standard deviation to either side."""
    colour, dashes = STYLES[style % len(STYLES)]
    middle, spread = values.mean(axis=0), values.std(axis=0)
    axes.plot(rounds, middle, color=colour, linestyle=dashes, label=label, linewidth=1.6)
    axes.fill_between(rounds, middle - spread, middle + spread, color=colour, alpha=0.18, linewidth=0)


def regret(axes: Any, results: dict[str, Result]) -> None:
    """Draw regrets against rounds."""
    for style, (label, result) in enumerate(results.items()):
        band(axes, result.rounds, result.regret, label, style)
    finish(axes, "regret")


def cost(axes: Any, results: dict[str, Result], threshold: float | None, which: int = 0) -> None:
    """Draw expected costs against their threshold."""
    for style, (label, result) in enumerate(results.items()):
        band(axes, result.rounds, result.cost[:, :, which], label, style)
    if threshold is not None:
        axes.axhline(threshold, color="black", linestyle="--", linewidth=1)
        axes.annotate(f"threshold {threshold:g}", (0.99, threshold), xycoords=("axes fraction", "data"), ha="right",
                      va="bottom", fontsize=8)  # fmt: skip
        axes.set_ylim(0.0, max(axes.get_ylim()[1], threshold * 1.15))
    finish(axes, "expected cost")


def reward(axes: Any, results: dict[str, Result]) -> None:
    """Draw expected rewards against the optimum."""
    best = next(iter(results.values()))
    for style, (label, result) in enumerate(results.items()):
        band(axes, result.rounds, result.reward, label, style)
    axes.plot(best.rounds, best.optimum.mean(axis=0), color="black", linestyle=":", linewidth=1.2)
    axes.annotate("optimum", (0.99, float(best.optimum.mean())), xycoords=("axes fraction", "data"), ha="right",
                  va="bottom", fontsize=8)  # fmt: skip
    axes.set_ylim(min(0.0, axes.get_ylim()[0]), max(axes.get_ylim()[1], float(best.optimum.max()) * 1.1))
    finish(axes, "expected reward")


def in_rows(curves: dict[float, dict[str, Result]]) -> Any:
    """Return a figure with one row a threshold: regret, cost and reward from left to right."""
    figure, grid = panels(len(curves), 3)
    for row, (threshold, results) in zip(grid, curves.items(), strict=True):
        regret(row[0], results)
        cost(row[1], results, threshold)
        reward(row[2], results)
        row[0].set_title(f"threshold τ = {threshold:g}", loc="left")
    legend_below(figure, grid[0, 0])
    return figure


def finish(axes: Any, label: str) -> None:
    """Name the axes; rounds in millions or thousands, regret with separators."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set(xlabel="round", ylabel=label)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(FuncFormatter(short))
    if label == "regret":
        axes.yaxis.set_major_formatter(FuncFormatter(short))
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.margins(x=0)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def short(value: float, _: int = 0) -> str:
    """Return 1500000 as 1.5M, 20000 as 20k.

    >>> short(1500000), short(20000), short(0.5), short(0)
    ('1.5M', '20k', '0.5', '0')
    """
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if abs(value) >= 1e3 else f"{value:g}"


def legend_below(figure: Any, axes: Any, columns: int = 4) -> None:
    """Put one legend under all panels, where it covers nothing."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), columns), frameon=False)


def save(figure: Any, folder: Path, name: str) -> None:
    """Write the figure as PNG and SVG; what the first arranged, the second need not arrange again."""
    write_picture(figure, folder / f"{name}.png")
    figure.set_layout_engine(None)
    write_picture(figure, folder / f"{name}.svg")


def bars(axes: Any, labels: list[str], values: Floats, spreads: Floats) -> None:
    """Draw horizontal bars with whiskers, the first on top."""
    from matplotlib.ticker import FuncFormatter

    places = np.arange(len(labels))[::-1]
    axes.barh(places, values, xerr=spreads, color="#56B4E9", edgecolor="black", linewidth=0.6, height=0.65)
    axes.set_yticks(places, labels)
    axes.xaxis.set_major_formatter(FuncFormatter(short))
    axes.spines[["top", "right"]].set_visible(False)


def violations_beside(axes: Any, results: list[Result]) -> None:
    """Write beside the bar of each result how often it violates, and draw the line where regret is zero."""
    for place, result in zip(range(len(results))[::-1], results, strict=True):
        share = float(result.violations.mean() / result.rounds[-1])
        if share > 0.0:
            words, end = f"violates in {share:.0%} of rounds", max(float(result.regret[:, -1].mean()), 0.0)
            axes.annotate(words, (end, place), xytext=(5, 0), textcoords="offset points", va="center", fontsize=8)
    axes.axvline(0.0, color="black", linewidth=0.8)
