"""Final regret of every policy, one panel per family; violations are annotated."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.comparison.plan import FAMILIES, Family
from stagewise_reproduction.drawing import annotate_violations, draw_bars, make_panels

ROW = 0.28  # height of a bar with its label, in inches, on a phone


def draw(_: str, results: dict[str, Result]) -> Any:
    """Draw bars; a negative regret is reward gained beyond the threshold."""
    return draw_families(FAMILIES, results)


def draw_families(about: Mapping[str, Family], results: dict[str, Result]) -> Any:
    """Draw one panel for each family."""
    families = [
        [result for result in results.values() if result.manifest["cell"]["family"] == family] for family in about
    ]
    figure, grid = make_panels(
        math.ceil(len(about) / 2),
        2,
        width=4.9,
        height=3.5,
        by_row=True,
        phone=[0.9 + ROW * len(family_results) for family_results in families] + [0.1] * (-len(about) % 2),
    )
    for axes, family, family_results in zip(grid.ravel(), about, families, strict=False):
        finals = [result.regret[:, -1] for result in family_results]
        labels = [result.manifest["cell"]["policy"] for result in family_results]
        errors = np.array([f.std(ddof=1) / np.sqrt(len(f)) for f in finals])
        draw_bars(axes, labels, np.array([f.mean() for f in finals]), errors)
        axes.set(title=family, xlabel=f"regret after {int(family_results[0].rounds[-1]):,} rounds")
        annotate_violations(axes, family_results)
    for axes in grid.ravel()[len(about) :]:
        axes.set_visible(False)
    return figure
