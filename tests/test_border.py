"""A sieve at the border of the kernels: nobody else knows a place in their arrays, and nobody else makes kernels."""

import ast
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

import stagewise
from stagewise.simulation.gpu import unrolled, unrolled_arms, unrolled_rays

PACKAGE = Path(stagewise.__file__).parent
ROOM = PACKAGE / "kernels"
OUTSIDE = sorted(path for path in PACKAGE.rglob("*.py") if ROOM not in path.parents)
MARKS = {"kernel", "called"}
FLAT = {"layout", "settings", "memory", "answer", "scratch", "per_limit", "tally", "basis", "at_safe"}
RECORDS = {"running", "audit"}  # of runs, of which places are read by a name, or counted from one
ROWS = {"rule"}  # a table of the kernels, of which rows are read by their names
PARTS = {"learned", "sets"}  # of a part, whose inside only kernels know


def names_of_places(tree: ast.AST) -> set[str]:
    """Return the constants that a file imports from the kernels."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    ours = [alias for node in imports if (node.module or "").startswith("stagewise.kernels.") for alias in node.names]
    return {alias.asname or alias.name for alias in ours if alias.name.isupper()}


def counted(place: ast.expr, known: set[str]) -> bool:
    """Say whether a place in a record is a bare number, or counted from one, instead of from a name."""
    if isinstance(place, ast.Slice):
        return any(counted(end, known) for end in (place.lower, place.upper) if end is not None)
    if isinstance(place, ast.BinOp):
        return not (isinstance(place.left, ast.Name) and place.left.id in known)
    return any(isinstance(node, ast.Constant) for node in ast.walk(place))


def offsets(source: str, known: Collection[str] = ()) -> Iterator[str]:
    """Yield where a flat array is read or written other than at a place that the kernels name, or by a key of text.

    `known`: names that the source is given, beside those that it imports.
    """
    tree = ast.parse(source)
    known = names_of_places(tree) | set(known)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Subscript):
            continue
        array, place = node.value, node.slice
        name = array.attr if isinstance(array, ast.Attribute) else array.id if isinstance(array, ast.Name) else ""
        row = place.elts[0] if isinstance(place, ast.Tuple) and name in ROWS else place
        named = isinstance(row, ast.Name) and (row.id in known or name in ROWS)
        text = isinstance(place, ast.Constant) and isinstance(place.value, str)
        inside = name in PARTS and isinstance(array, ast.Attribute)
        last = place.elts[-1] if isinstance(place, ast.Tuple) and place.elts else place
        if name in RECORDS and not text and counted(last, known):
            yield f"line {node.lineno}: {ast.unparse(node)}"
        if (name in FLAT | ROWS or inside) and not named and not text:
            yield f"line {node.lineno}: {ast.unparse(node)}"


def makes_kernels(source: str) -> bool:
    """Say whether a file marks a function as a kernel, or imports what does."""
    marks = [ast.unparse(mark) for node in ast.walk(ast.parse(source)) for mark in getattr(node, "decorator_list", [])]
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    return not MARKS.isdisjoint(marks) or any(
        alias.name in MARKS for node in imports if node.module == "stagewise.kernels.compile" for alias in node.names
    )


def told(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_nobody_else_knows_an_offset() -> None:
    found = {told(path): list(offsets(path.read_text(encoding="utf-8"))) for path in OUTSIDE}
    assert {path: places for path, places in found.items() if places} == {}


def test_the_texts_of_gpu_loops_know_none() -> None:
    texts = [
        unrolled_arms.written(unrolled_arms.ArmsForm(3, 0, 0, 0, True)),
        unrolled_rays.written(unrolled_rays.RaysForm(2, 1, 2, True, False, True, 0, 2, 0, True, True)),
    ]
    assert [list(offsets(text, unrolled.PLACES)) for text in texts] == [[], []]
    assert all(list(offsets(text)) for text in texts)  # they do write records, by names that they are given


def test_nobody_else_makes_kernels() -> None:
    """Machine code is kept under a digest of the room of kernels: what stands elsewhere could be old."""
    assert [told(path) for path in OUTSIDE if makes_kernels(path.read_text(encoding="utf-8"))] == []


def test_there_are_files_to_look_at() -> None:
    assert {"policies/compiled.py", "models/regression.py", "simulation/compiled.py"} <= {
        told(path) for path in OUTSIDE
    }


@pytest.mark.parametrize(
    "line",
    [
        "memory[3]",
        "state.memory[-1]",
        "settings[at + 1]",
        "answer[: 4 + m]",
        "answer[4:]",
        "scratch[where]",
        "layout[FIRST_PART + 9 * which]",
        "memory[OWN]",
        "memory[:]",
        "self.policy.settings[0]",
        "area.per_limit[:m]",
        "part.tally[SQUARES + 1]",
        "part.learned[n:]",
        "rule[COSTS : COSTS + m]",
        "area.rule[3, places]",
        "basis[count + 1, 1:]",
        "kept.at_safe[0]",
        "running[place, 1]",
        "rows.running[:, 2]",
        "whole.running[:, : 5 + m]",
        "audit[place, 3 + signal]",
        "trace.audit[OWN + 1 :]",
    ],
)
def test_the_sieve_catches_offsets(line: str) -> None:
    assert list(offsets(f"from stagewise.kernels.layout import FIRST_PART\n\nOWN = 3\n{line}"))
    assert list(offsets(f"from stagewise.kernels.layout import FIRST_PART\n\nOWN = 3\n{line} = 1.0"))


@pytest.mark.parametrize(
    "line",
    [
        "memory[FOLLOWED]",
        "state.memory[FOLLOWED]",
        "settings['seeds']",
        "rows[3]",
        "rule[FOLLOWED, :-1]",
        "learned[3]",
        "running[place]",
        "running[:, : running_size(m)]",
        "audit[place, FOLLOWED + 1]",
        "audit[FOLLOWED:]",
        "result.audit['missed']",
    ],
)
def test_the_sieve_lets_named_places_pass(line: str) -> None:
    assert list(offsets(f"from stagewise.kernels.layout import FOLLOWED\n\n{line}")) == []


@pytest.mark.parametrize(
    "source",
    [
        "@kernel\ndef f() -> int:\n    return 1",
        "def g():\n    @kernel\n    def f() -> int:\n        return 1\n    return f",
        "from stagewise.kernels.compile import Floats, kernel\n\nf = kernel(g)",
    ],
)
def test_the_sieve_catches_who_makes_kernels(source: str) -> None:
    assert makes_kernels(source)


def test_the_sieve_lets_who_calls_kernels_pass() -> None:
    assert not makes_kernels("from stagewise.kernels.compile import Floats, named\n\nplain = named(radius)")
