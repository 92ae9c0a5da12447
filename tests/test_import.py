"""`import stagewise` is quick, and every exported name exists."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import stagewise

# What others fill in, and what takes many runs to show.
SHAPES = {"Policy", "PolicyState", "World", "SimulationCertificate", "RiskScoreFit", "certify", "verify"}
ERRORS = {"StagewiseError", "InvalidActions", "InvalidFile", "InvalidOutcome", "InvalidProblem"}


def run(code: str) -> str:
    """Return what a fresh interpreter prints."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_importing_compiles_nothing() -> None:
    assert run("import sys, stagewise; print('numba' in sys.modules, 'numpy' in sys.modules)") == "False False"


def test_looking_around_compiles_nothing() -> None:
    assert run("import sys, stagewise; dir(stagewise), stagewise.__version__; print('numba' in sys.modules)") == "False"


def test_stating_a_problem_compiles_nothing() -> None:
    code = "import sys, stagewise as sw; sw.SafeAction(arm=0), sw.ArmSet(2), sw.AtLeast(0.1)"
    code += "; print('numba' in sys.modules)"
    assert run(code) == "False"


def test_a_star_brings_everything() -> None:
    assert run("from stagewise import *; print(LCLUCB.__name__, Agent.__name__)") == "LCLUCB Agent"


def test_every_name_stands_for_what_it_says() -> None:
    assert [name for name in stagewise.__all__ if getattr(stagewise, name).__name__ != name] == []
    assert [name for name in stagewise.__all__ if not getattr(stagewise, name).__doc__] == []


def test_every_name_shows_how_it_is_used() -> None:
    names = sorted(set(stagewise.__all__) - SHAPES - ERRORS)
    assert [name for name in names if ">>> " not in getattr(stagewise, name).__doc__] == []


def test_every_name_is_listed() -> None:
    assert set(dir(stagewise)) >= {*stagewise.__all__, "__version__"}
    assert list(stagewise.__all__) == sorted(set(stagewise.__all__))


def test_every_name_comes_from_where_it_is_made() -> None:
    """Type checkers and editors read the same list."""
    stub = ast.parse(Path(stagewise.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    named = {
        alias.asname: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assert named == {name: getattr(stagewise, name).__module__ for name in stagewise.__all__}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'stagewise' has no attribute 'Banana'"):
        _ = stagewise.Banana  # type: ignore[attr-defined]


def test_the_version_is_one() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", stagewise.__version__)
