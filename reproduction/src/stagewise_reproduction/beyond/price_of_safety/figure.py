"""Final regret of every policy, one panel a threshold; those that violate say how often."""

from typing import Any

import numpy as np

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.price_of_safety.plan import POLICIES, THRESHOLDS, name_of
from stagewise_reproduction.drawing import bars, on_phone, panels, violations_beside


def draw(_: str, results: dict[str, Result]) -> Any:
    """Draw bars; regret below zero is reward taken beyond the threshold."""
    figure, grid = panels(1, len(THRESHOLDS), width=3.4, height=3.4, phone=[3.4] * len(THRESHOLDS))
    for column, threshold in enumerate(THRESHOLDS):
        axes, chosen = grid[0, column], [results[name_of(policy, threshold)] for policy in POLICIES]
        finals = [result.regret[:, -1] for result in chosen]
        labels = list(POLICIES) if column == 0 or on_phone.get() else [""] * len(chosen)
        bars(axes, labels, np.array([f.mean() for f in finals]), np.array([f.std() for f in finals]))
        axes.set(title=f"threshold τ = {threshold:g}", xlabel=f"regret after {int(chosen[0].rounds[-1]):,} rounds")
        violations_beside(axes, chosen)
    return figure
