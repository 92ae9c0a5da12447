"""Final regret of every policy, one panel a family; those that violate say how often."""

from typing import Any

import numpy as np

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.comparison.plan import FAMILIES
from stagewise_reproduction.drawing import bars, panels, violations_beside

ROW = 0.28  # inches of a bar, with its name, on a phone


def draw(_: str, results: dict[str, Result]) -> Any:
    """Draw bars; regret below zero is reward taken beyond the threshold."""
    families = [
        [result for result in results.values() if result.manifest["cell"]["family"] == family] for family in FAMILIES
    ]
    figure, grid = panels(3, 2, width=4.9, height=3.5, by_row=True, phone=[0.9 + ROW * len(own) for own in families])
    for axes, family, own in zip(grid.ravel(), FAMILIES, families, strict=True):
        finals = [result.regret[:, -1] for result in own]
        labels = [result.manifest["cell"]["policy"] for result in own]
        errors = np.array([f.std(ddof=1) / np.sqrt(len(f)) for f in finals])
        bars(axes, labels, np.array([f.mean() for f in finals]), errors)
        axes.set(title=family, xlabel=f"regret after {int(own[0].rounds[-1]):,} rounds")
        violations_beside(axes, own)
    return figure
