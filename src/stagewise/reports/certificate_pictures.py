"""The pictures of a certificate, drawn from its own numbers: each a PNG that stands in the page itself."""

import base64
import io
from itertools import pairwise
from typing import Any

from stagewise.problem.words import shown
from stagewise.reports.picture import plain

BLUE, RED = "#0072B2", "#a02000"
DPI = 110


def blank(height: float, panels: int = 1) -> tuple[Any, Any]:
    """Return a figure of this height, and its panels, one below the other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.4, height), layout="constrained")
    return figure, figure.subplots(panels, 1, squeeze=False)[:, 0]


def embedded(figure: Any) -> str:
    """Return a figure as the address of an image."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def shares(content: dict[str, Any]) -> str:
    """Draw every probability that was promised, with its interval: it must end left of the mark."""
    rows = [("a run breaks a limit", content["violations"])]
    rows += [(f"intervals of {plain(shown(one['signal']))} fail", one) for one in content["coverage"]]
    figure, (axes,) = blank(0.9 + 0.55 * len(rows))
    for place, (_, one) in enumerate(rows):
        low, high = one["exact"] or one["anytime"]
        colour = RED if low > one["allowed"] else BLUE
        axes.barh(place, high - low, left=low, height=0.42, color=colour, alpha=0.45)
        axes.plot([one["happened"] / one["runs"]], [place], "o", color=colour, markersize=5)
        axes.plot([one["allowed"]] * 2, [place - 0.36, place + 0.36], color="black", linewidth=2.5)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.invert_yaxis()
    axes.set_xlim(left=0.0)
    axes.set_xlabel("share of runs (dot: seen; bar: where the truth may lie; black: allowed)")
    return embedded(figure)


def margins(content: dict[str, Any]) -> str:
    """Draw how much was left to each threshold in the dearest round of every run."""
    limits = content["margins"]
    figure, panels = blank(2.5 * len(limits), len(limits))
    for axes, (name, one) in zip(panels, limits.items(), strict=True):
        edges = one["edges"]
        colours = [RED if edge <= 0.0 else BLUE for edge in edges[1:]]
        widths = [b - a for a, b in pairwise(edges)]
        axes.bar(edges[:-1], one["counts"], width=widths, align="edge", color=colours)
        axes.axvline(0.0, color="black", linewidth=2)
        axes.set(xlabel=f"what was left to the limit of {plain(shown(name))} (below 0: broken)", ylabel="runs")
    return embedded(figure)


def regret(content: dict[str, Any]) -> str:
    """Draw how regret grew, and what the theorem allows."""
    found = content["regret"]
    rounds, cuts = found["rounds"], found["quantiles"]
    figure, (axes,) = blank(3.0)
    axes.fill_between(rounds, cuts["0.1"], cuts["0.9"], color=BLUE, alpha=0.25, linewidth=0, label="eight runs in ten")
    axes.plot(rounds, cuts["0.5"], color=BLUE, label="the middle run")
    axes.plot(rounds, cuts["1"], color=BLUE, linestyle=":", label="the worst run")
    if found["bound"] is not None:
        axes.plot(rounds, found["bound"], color="black", linestyle="--", label="the theorem's bound")
        if min(cuts["0"]) > 0.0:
            axes.set_yscale("log")
    axes.set(xlabel="round", ylabel="reward lost so far")
    axes.legend(frameon=False)
    return embedded(figure)
