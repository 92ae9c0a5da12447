"""The limits that a forecast is asked about: the problem as it is declared, and with other values of some limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from stagewise.policies.problem import Problem
from stagewise.problem.checks import is_listing, mapping_of, number
from stagewise.problem.declared import Limit
from stagewise.problem.errors import InvalidProblem, StagewiseError
from stagewise.problem.words import nearest, shown

MOST = 24  # cases, each of which is played by itself


@dataclass(frozen=True, eq=False)
class Case:
    """A problem with some values of its limits; None: they contradict what is declared, and `refused` says how."""

    values: dict[str, float]
    declared: bool
    problem: Problem | None
    refused: str = ""


def value_of(limit: Limit) -> float:
    """Return the number of a limit, whatever its kind.

    >>> from stagewise.problem.thresholds import AtLeast, RelativeToSafe
    >>> value_of(Limit(0.02)), value_of(Limit(AtLeast(0.9))), value_of(Limit(RelativeToSafe(1.1)))
    (0.02, 0.9, 1.1)
    """
    return float(limit.parts.number)


def wideness(limits: Mapping[str, Limit], values: Mapping[str, float]) -> tuple[float, ...]:
    """Return how much limits allow, so that more is more; first what all allow together."""
    each = [-values[name] if limit.at_least else values[name] for name, limit in limits.items()]
    return (sum(each), *each)


def cases_of(problem: Problem, limits: Any) -> list[Case]:
    """Return the problem as declared and every combination of the values that were asked for, from narrow to wide."""
    asked = {} if limits is None else mapping_of(limits, "limits")
    choices: dict[str, list[float]] = {}
    for name, given in asked.items():
        if name not in problem.limits:
            raise InvalidProblem(
                f"limits name {shown(name)}, which the problem does not limit; it limits "
                f"{', '.join(problem.limits)}{nearest(name, list(problem.limits))}"
            )
        entries = list(given) if is_listing(given) else [given]
        choices[name] = sorted({checked(problem.limits[name], name, entry) for entry in entries})
    own = {name: value_of(limit) for name, limit in problem.limits.items()}
    if not all(choices.values()) or len(list(product(*choices.values()))) > MOST:
        raise InvalidProblem(
            f"limits are {shown(asked)}; each needs a value, and all together may make at most {MOST} combinations, as "
            "each is played by itself"
        )
    combined = [own | dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
    told = [own, *(values for values in combined if values != own)]
    told.sort(key=lambda values: wideness(problem.limits, values))
    found = [case_of(problem, values, values == own) for values in told]
    return found


def checked(limit: Limit, name: str, value: Any) -> float:
    """Return the value of a limit, or refuse one that no outcome can reach."""
    given = number(value, f"the limit of {name!r}")
    if not limit.parts.relative and not limit.low <= given <= limit.high:
        percent = "; was it a percentage?" if limit.high == 1.0 and 1.0 < given <= 100.0 else ""
        raise InvalidProblem(
            f"the limit of {name!r} is {given:.15g}, outside [{limit.low:g}, {limit.high:g}], where every outcome "
            f"lies{percent}"
        )
    return given


def case_of(problem: Problem, values: dict[str, float], declared: bool) -> Case:
    """Return one case; a limit that the safe action is declared to break is told, not raised."""
    if declared:
        return Case(values, True, problem)
    limits = {name: limit.with_number(float(values[name])) for name, limit in problem.limits.items()}
    try:
        return Case(values, False, replace(problem, limits=limits))
    except StagewiseError as error:
        return Case(values, False, None, str(error))


def widest(cases: Sequence[Case]) -> int:
    """Return which of the cases that can be played allows most."""
    return max(place for place, case in enumerate(cases) if case.problem is not None)
