"""Regret, cost and reward of OPB from left to right, one row a threshold."""

from typing import Any

from stagewise.reports.result import Result
from stagewise_reproduction.drawing import in_rows


def draw(_: str, results: dict[str, Result]) -> Any:
    """Draw the paper's two rows."""
    return in_rows({result.manifest["cell"]["tau"]: {"OPB": result} for result in results.values()})
