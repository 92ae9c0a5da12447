"""The wording of all errors and reasons, compared with a golden file."""

import ast
from itertools import pairwise

import pytest
from tests.golden.messages import FORMS, PACKAGE, PATH, RENEW, build, inline_texts, iter_codes, iter_templates, read

from stagewise.problem.errors import ErrorCode

HOW = f"the wording differs from {PATH}; read the difference, and if it is meant, renew the file: {RENEW}"


@pytest.mark.wording
@pytest.mark.parametrize("kind", ["errors", "reasons"])
def test_every_message_is_in_the_golden_file(kind: str) -> None:
    ours, golden = build()[kind], read()[kind]
    lacking, outdated = [row for row in ours if row not in golden], [row for row in golden if row not in ours]
    assert not lacking, HOW
    assert not outdated, HOW
    assert ours == golden, HOW


def list_computed(tree: ast.AST) -> list[int]:
    """Return the lines of errors whose template is computed, so that the data of its sentence are lost."""
    inline_texts(tree)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    pairs = [(call.lineno, *pair) for call in calls for pair in pairwise(call.args) if not is_form(call)]
    of_code = [(line, text) for line, code, text in pairs if any(iter_codes(code))]
    return [line for line, text in of_code if any(isinstance(part, ast.FormattedValue) for part in ast.walk(text))]


def is_form(call: ast.Call) -> bool:
    """Return whether an error is made by one of the forms, whose parts are its data."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in FORMS


def test_every_error_has_its_data() -> None:
    paths = {str(path.relative_to(PACKAGE)): path for path in PACKAGE.rglob("*.py")}
    found = {name: list_computed(ast.parse(path.read_text(encoding="utf-8"))) for name, path in paths.items()}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source", ["E(ErrorCode.A, f'{x} is bad')", "def f():\n    text = f'{x}'\n    E(ErrorCode.A, text)"]
)
def test_the_scan_finds_a_computed_template(source: str) -> None:
    assert len(list_computed(ast.parse(source))) == 1
    assert list_computed(ast.parse("E(ErrorCode.A, '{x} is bad', x=f'{x}')")) == []


def test_the_scan_finds_calls_with_a_code_and_a_template() -> None:
    source = (
        'raise sw.InvalidFile(ErrorCode.A if x else ErrorCode.B, "one " "{two}", two=2)\nf(error, ErrorCode.C, "three")'
    )
    rows = [("A", "InvalidFile", "one {two}"), ("B", "InvalidFile", "one {two}"), ("C", "error", "three")]
    assert list(iter_templates(ast.parse(source))) == rows


def test_the_scan_finds_the_forms_of_an_error() -> None:
    source = "InvalidProblem.conflict('noise', 1, f'radius is {x}', 'leave it out')\nE.must_be(ErrorCode.A, s, 1, 'b')"
    rows = [
        ("CONFLICTING_SETTINGS", "InvalidProblem", "noise is {value} and radius is {…}; leave it out"),
        ("A", "E", "{s} is {value}; it must be b"),
    ]
    assert list(iter_templates(ast.parse(source))) == rows


def test_every_code_of_the_golden_file_exists() -> None:
    assert {row["code"] for row in read()["errors"]} <= set(ErrorCode.__members__)
