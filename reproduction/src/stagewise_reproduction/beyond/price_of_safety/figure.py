"""Final regret of every policy, one panel per threshold; violations are annotated."""

from typing import Any

import numpy as np

from stagewise.reports.result import Result
from stagewise_reproduction.beyond.price_of_safety.plan import POLICIES, THRESHOLDS, build_name
from stagewise_reproduction.drawing import annotate_violations, draw_bars, make_panels, on_phone


def draw(_: str, results: dict[str, Result]) -> Any:
    """Draw bars; a negative regret is reward gained beyond the threshold."""
    figure, grid = make_panels(1, len(THRESHOLDS), width=3.4, height=3.4, phone=[3.4] * len(THRESHOLDS))
    for column, threshold in enumerate(THRESHOLDS):
        axes, chosen = grid[0, column], [results[build_name(policy, threshold)] for policy in POLICIES]
        finals = [result.regret[:, -1] for result in chosen]
        labels = list(POLICIES) if column == 0 or on_phone.get() else [""] * len(chosen)
        draw_bars(axes, labels, np.array([f.mean() for f in finals]), np.array([f.std() for f in finals]))
        axes.set(title=f"threshold τ = {threshold:g}", xlabel=f"regret after {int(chosen[0].rounds[-1]):,} rounds")
        annotate_violations(axes, chosen)
    return figure
