"""Regret, cost and reward of OPB from left to right, one row per threshold."""

from typing import Any

from stagewise.reports.result import Result
from stagewise_reproduction.drawing import draw_rows


def draw(_: str, results: dict[str, Result]) -> Any:
    """Draw the paper's two rows."""
    return draw_rows({result.manifest["cell"]["tau"]: {"OPB": result} for result in results.values()})
