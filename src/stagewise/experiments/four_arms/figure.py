"""Regret, cost and reward of OPB from left to right, one row a threshold."""

from typing import Any

from stagewise.experiments.drawing import in_rows
from stagewise.experiments.four_arms.plan import name_of
from stagewise.reports.result import Result


def draw(results: dict[str, Result], preset: str, thresholds: tuple[float, ...]) -> Any:
    """Draw the paper's two rows."""
    return in_rows({threshold: {"OPB": results[name_of(preset, threshold)]} for threshold in thresholds})
