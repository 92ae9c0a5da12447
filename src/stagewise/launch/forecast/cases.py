"""The cases of a forecast: the problem as declared, and with other values of some limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from stagewise.policies.problem import Problem
from stagewise.problem.checks import check_mapping, check_number, is_listing
from stagewise.problem.errors import ErrorCode, InvalidProblem, StagewiseError
from stagewise.problem.formatting import safe_repr, suggest_name
from stagewise.problem.signals import Limit

MAX_CASES = 24


@dataclass(frozen=True, eq=False)
class Case:
    """A problem with some values of its limits; `problem` is None and `error` is set if they are invalid."""

    values: dict[str, float]
    declared: bool
    problem: Problem | None
    error: StagewiseError | None = None


def get_limit_value(limit: Limit) -> float:
    """Return the number of a limit of any kind.

    >>> from stagewise.problem.thresholds import AtLeast, RelativeToSafe
    >>> get_limit_value(Limit(0.02)), get_limit_value(Limit(AtLeast(0.9))), get_limit_value(Limit(RelativeToSafe(1.1)))
    (0.02, 0.9, 1.1)
    """
    return float(limit.parts.number)


def get_permissiveness(limits: Mapping[str, Limit], values: Mapping[str, float]) -> tuple[float, ...]:
    """Return a sort key: larger for limits that allow more, in total and then one by one."""
    each = [-values[name] if limit.at_least else values[name] for name, limit in limits.items()]
    return (sum(each), *each)


def build_cases(problem: Problem, limits: Any) -> list[Case]:
    """Return the problem as declared and every combination of the requested values, the narrowest first."""
    requested = {} if limits is None else check_mapping(limits, "limits")
    choices: dict[str, list[float]] = {}
    for name, given in requested.items():
        if name not in problem.limits:
            raise InvalidProblem(
                ErrorCode.UNKNOWN_SIGNAL,
                "limits has {name}, which the problem does not limit; its limits are {limits}{name_2}",
                name=safe_repr(name),
                limits=", ".join(problem.limits),
                name_2=suggest_name(name, list(problem.limits)),
            )
        entries = list(given) if is_listing(given) else [given]
        choices[name] = sorted({check_limit_value(problem.limits[name], name, entry) for entry in entries})
    own = {name: get_limit_value(limit) for name, limit in problem.limits.items()}
    if not all(choices.values()) or len(list(product(*choices.values()))) > MAX_CASES:
        raise InvalidProblem(
            ErrorCode.TOO_LARGE,
            "limits is {limits}; every limit needs a value, and there may be at most {max_cases} combinations",
            limits=safe_repr(requested),
            max_cases=MAX_CASES,
        )
    combined = [own | dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
    distinct = [own, *(values for values in combined if values != own)]
    distinct.sort(key=lambda values: get_permissiveness(problem.limits, values))
    return [build_case(problem, values, values == own) for values in distinct]


def check_limit_value(limit: Limit, name: str, value: Any) -> float:
    """Return the value of a limit, or reject one that no outcome can reach."""
    given = check_number(value, f"the limit of {name!r}")
    if not limit.parts.relative and not limit.low <= given <= limit.high:
        percent = "; was it a percentage?" if limit.high == 1.0 and 1.0 < given <= 100.0 else ""
        raise InvalidProblem(
            ErrorCode.OUT_OF_RANGE,
            "the limit of {name!r} is {given:.15g}, outside the range of its outcomes, [{low:g}, {high:g}]{percent}",
            name=name,
            given=given,
            low=limit.low,
            high=limit.high,
            percent=percent,
        )
    return given


def build_case(problem: Problem, values: dict[str, float], declared: bool) -> Case:
    """Return one case; an invalid limit, such as one that the safe action breaks, is kept as `error`."""
    if declared:
        return Case(values, True, problem)
    limits = {name: limit.with_number(float(values[name])) for name, limit in problem.limits.items()}
    try:
        return Case(values, False, replace(problem, limits=limits))
    except StagewiseError as error:
        return Case(values, False, None, error)


def find_most_permissive(cases: Sequence[Case]) -> int:
    """Return the index of the valid case that allows most."""
    return max(index for index, case in enumerate(cases) if case.problem is not None)
