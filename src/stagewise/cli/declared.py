"""The problem that a file declares: the whole file, or its [problem]."""

from pathlib import Path

from stagewise.files.paths import named, path_of
from stagewise.files.toml import toml_of
from stagewise.policies.problem import Problem
from stagewise.problem.errors import InvalidFile, InvalidProblem, StagewiseError


def problem_in(path: Path) -> Problem:
    """Return the problem of a file: the whole file, or the [problem] of one that simulations read too."""
    place = path_of(path)
    content = toml_of(place)
    inner = content.get("problem")
    if inner is None and "policy" in content:
        raise InvalidFile(
            f"{named(place)} holds a [policy], which simulations play; a [problem] is needed here, and "
            "`stagewise help declare-a-problem` says how it is written"
        )
    try:
        return Problem.from_plain(inner if isinstance(inner, dict) else content)
    except StagewiseError as error:
        raise InvalidProblem(f"{named(place)}: {error}") from None
