"""Reading the problem of a TOML file."""

from pathlib import Path

from stagewise.files.paths import parse_path, read_toml
from stagewise.policies.problem import Problem
from stagewise.problem.errors import ErrorCode, InvalidFile, InvalidProblem, StagewiseError
from stagewise.problem.formatting import format_path


def load_problem_file(path: Path) -> Problem:
    file = parse_path(path)
    content = read_toml(file)
    inner = content.get("problem")
    if inner is None and "policy" in content:
        template = (
            "{file} declares a [policy], which only simulations use; this command needs a [problem] "
            "(see `stagewise help declare-a-problem`)"
        )
        raise InvalidFile(ErrorCode.FILE_WRONG_KIND, template, file=format_path(file))
    try:
        return Problem.from_dict(inner if isinstance(inner, dict) else content)
    except StagewiseError as error:
        raise InvalidProblem(ErrorCode.FILE_INVALID, "{file}: {error}", file=format_path(file), error=error) from None
