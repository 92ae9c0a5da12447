"""The data of every error fill the fields of its template: a field without data would raise another error."""

import ast
import string
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "stagewise"


def list_missing(text: str) -> list[tuple[int, set[str]]]:
    """Return the calls with a code and a template whose fields have no data: their lines, and the fields."""
    found = []
    for call in ast.walk(ast.parse(text)):
        if not isinstance(call, ast.Call) or len(call.args) < 2 or not isinstance(call.args[1], ast.Constant):
            continue
        code, template = ast.unparse(call.args[0]), call.args[1].value
        given = {keyword.arg for keyword in call.keywords}
        if code.startswith("ErrorCode.") and isinstance(template, str) and None not in given:
            fields = {field for _, field, _, _ in string.Formatter().parse(template) if field is not None}
            if fields - given:
                found.append((call.lineno, fields - given))
    return found


def test_every_field_of_a_template_has_its_data() -> None:
    missing = {str(path): list_missing(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}
    assert {path: lines for path, lines in missing.items() if lines} == {}


def test_a_field_without_data_is_found() -> None:
    assert list_missing('raise E(ErrorCode.CONFLICT, "{part} of {log!r}", log=1)') == [(1, {"part"})]
