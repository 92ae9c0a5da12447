"""Settings that are declared by name: unknown ones are refused, and a range has two ends."""

from dataclasses import fields
from typing import Any, Self

from stagewise.problem.checks import LARGEST, check_number
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import suggest_name

WAYS = {  # the names of a limit's number in a file
    "at_most": "Limit(0.02, ...)",
    "at_least": "Limit(AtLeast(0.9), ...)",
    "times_safe": "Limit(TimesSafe(1.1), ...)",
}


class StrictSettings:
    """A class that rejects unknown settings and suggests the closest name."""

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        names = [f.name for f in fields(cls)]  # type: ignore[arg-type]
        unknown = next((name for name in settings if name not in names), None)
        if unknown is not None:
            template = "{kind} has no {unknown!r}; it has {names}{hint}"
            way = WAYS.get(unknown, "") if "value" in names else ""
            hint = f"; write {way}" if way else suggest_name(unknown, names)
            data = {"kind": cls.__name__, "unknown": unknown, "names": ", ".join(names), "hint": hint}
            raise InvalidProblem(ErrorCode.UNKNOWN_SETTING, template, **data)
        return super().__new__(cls)


def check_range(low: Any, high: Any, what: str) -> tuple[float, float]:
    """Return the two ends of a range."""
    ends = check_number(low, f"the low of {what}"), check_number(high, f"the high of {what}")
    if not (ends[0] < ends[1] and ends[1] - ends[0] < LARGEST):
        raise InvalidProblem.must_be(ErrorCode.OUT_OF_RANGE, f"the range of {what}", list(ends), "low below high")
    return ends
