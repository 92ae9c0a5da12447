"""An experiment: its curves, its figure, its claims and its description."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stagewise.reports.result import Result
from stagewise_reproduction.cell import Cell
from stagewise_reproduction.claim import Claim

PRESETS = ("text", "authors", "ours")
BANDS = "Bands: one standard deviation over runs."
Results = dict[str, Result]  # by the name of the cell


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One section of the report."""

    name: str
    title: str
    words: str  # description, under the figure
    preset_words: Mapping[str, str] = field(default_factory=dict)  # description of each preset
    errata: tuple[int, ...] = ()  # numbers of the relevant errata
    presets: tuple[str, ...] = ("ours",)  # presets that differ; one: all presets are equal
    cells: Callable[[str, str], list[Cell]]  # preset, size
    draw: Callable[[str, Results], Any]  # preset, results
    check: Callable[[str, Results], list[Claim]]  # preset, results
    table: Callable[[Results], str] | None = None  # its own table, in Markdown
