"""The wording of all errors and reasons, compared with a golden file."""

import pytest
from tests.golden.messages import PATH, RENEW, build, iter_templates, read

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


def test_the_scan_finds_calls_with_a_code_and_a_template() -> None:
    import ast

    source = (
        'raise sw.InvalidFile(ErrorCode.A if x else ErrorCode.B, "one " "{two}", two=2)\nf(error, ErrorCode.C, "three")'
    )
    rows = [("A", "InvalidFile", "one {two}"), ("B", "InvalidFile", "one {two}"), ("C", "error", "three")]
    assert list(iter_templates(ast.parse(source))) == rows


def test_the_scan_finds_the_forms_of_an_error() -> None:
    import ast

    source = "InvalidProblem.conflict('noise', 1, f'radius is {x}', 'leave it out')\nE.must_be(ErrorCode.A, s, 1, 'b')"
    rows = [
        ("CONFLICTING_SETTINGS", "InvalidProblem", "noise is {value} and radius is {…}; leave it out"),
        ("A", "E", "{s} is {value}; it must be b"),
    ]
    assert list(iter_templates(ast.parse(source))) == rows


def test_every_code_of_the_golden_file_exists() -> None:
    assert {row["code"] for row in read()["errors"]} <= set(ErrorCode.__members__)
