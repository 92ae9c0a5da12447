"""Check that only the packages of kernels use offsets in flat arrays, and that only they make kernels."""

import ast
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

import stagewise
from stagewise.simulation.gpu import unrolled, unrolled_certified
from stagewise.simulation.gpu import unrolled as unrolled_arms
from stagewise.simulation.gpu import unrolled as unrolled_rays

PACKAGE = Path(stagewise.__file__).parent
KERNELS = ("engine", "models", "rules")
OUTSIDE = sorted(path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in KERNELS)
MARKS = {"kernel", "called"}
FLAT = {"layout", "settings", "memory", "answer", "scratch", "per_limit", "tally", "basis", "at_safe"}
RECORDS = {"running", "audit"}  # records of runs, read at a named index or an offset from one
ROWS = {"rule"}  # a table of the kernels, whose rows are read by name
PARTS = {"learned", "sets"}  # arrays of a block that only kernels index


def list_index_names(tree: ast.AST) -> set[str]:
    """Return the constants that a file imports from the kernels."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    ours = [
        alias
        for node in imports
        if (node.module or "").startswith(tuple(f"stagewise.{name}." for name in KERNELS))
        for alias in node.names
    ]
    return {alias.asname or alias.name for alias in ours if alias.name.isupper()}


def is_bare_index(index: ast.expr, known: set[str]) -> bool:
    """Return whether an index in a record is a bare number, or an offset from one, instead of from a name."""
    if isinstance(index, ast.Slice):
        return any(is_bare_index(end, known) for end in (index.lower, index.upper) if end is not None)
    if isinstance(index, ast.BinOp):
        return not (isinstance(index.left, ast.Name) and index.left.id in known)
    return any(isinstance(node, ast.Constant) for node in ast.walk(index))


def find_offsets(source: str, known: Collection[str] = ()) -> Iterator[str]:
    """Yield where a flat array is indexed other than by a name of the kernels or a string.

    `known`: names that the source is given, besides those that it imports.
    """
    tree = ast.parse(source)
    known = list_index_names(tree) | set(known)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Subscript):
            continue
        array, index = node.value, node.slice
        name = array.attr if isinstance(array, ast.Attribute) else array.id if isinstance(array, ast.Name) else ""
        row = index.elts[0] if isinstance(index, ast.Tuple) and name in ROWS else index
        named = isinstance(row, ast.Name) and (row.id in known or name in ROWS)
        text = isinstance(index, ast.Constant) and isinstance(index.value, str)
        inside = name in PARTS and isinstance(array, ast.Attribute)
        last = index.elts[-1] if isinstance(index, ast.Tuple) and index.elts else index
        if name in RECORDS and not text and is_bare_index(last, known):
            yield f"line {node.lineno}: {ast.unparse(node)}"
        if (name in FLAT | ROWS or inside) and not named and not text:
            yield f"line {node.lineno}: {ast.unparse(node)}"


def makes_kernels(source: str) -> bool:
    """Return whether a file marks a function as a kernel, or imports the decorator."""
    marks = [ast.unparse(mark) for node in ast.walk(ast.parse(source)) for mark in getattr(node, "decorator_list", [])]
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    return not MARKS.isdisjoint(marks) or any(
        alias.name in MARKS for node in imports if node.module == "stagewise.engine.compile" for alias in node.names
    )


def get_relative_path(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_nobody_else_knows_an_offset() -> None:
    found = {get_relative_path(path): list(find_offsets(path.read_text(encoding="utf-8"))) for path in OUTSIDE}
    assert {path: indices for path, indices in found.items() if indices} == {}


def test_the_texts_of_gpu_loops_know_none() -> None:
    texts = [
        unrolled_arms.write_arms_source(unrolled_arms.ArmsForm(3, 0, 0, 0, True)),
        unrolled_rays.write_rays_source(unrolled_rays.RaysForm(2, 1, 2, True, False, True, 0, 2, 0, True, True)),
        unrolled_certified.write_source(unrolled_certified.CertifiedForm(2, 1, 2, 0, 2, 0, True, True)),
    ]
    assert [list(find_offsets(text, unrolled.RECORD_INDICES)) for text in texts] == [[], [], []]
    assert all(list(find_offsets(text)) for text in texts)  # they do write records, by names that they are given


def test_nobody_else_makes_kernels() -> None:
    """Machine code is cached under a digest of these packages; a kernel elsewhere could be out of date."""
    assert [get_relative_path(path) for path in OUTSIDE if makes_kernels(path.read_text(encoding="utf-8"))] == []


def test_there_are_files_to_look_at() -> None:
    assert {"policies/rounds.py", "agent/learned_state.py", "simulation/compiled_run.py"} <= {
        get_relative_path(path) for path in OUTSIDE
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
        "layout[FIRST_MODEL_BLOCK + 9 * index]",
        "memory[OWN]",
        "memory[:]",
        "self.policy.settings[0]",
        "workspace.per_limit[:m]",
        "block.tally[SQUARES + 1]",
        "block.learned[n:]",
        "rule[COSTS : COSTS + m]",
        "workspace.rule[3, places]",
        "basis[count + 1, 1:]",
        "kept.at_safe[0]",
        "running[index, 1]",
        "rows.running[:, 2]",
        "merged.running[:, : 5 + m]",
        "audit[index, 3 + signal]",
        "trace.audit[OWN + 1 :]",
    ],
)
def test_the_sieve_catches_offsets(line: str) -> None:
    assert list(find_offsets(f"from stagewise.engine.layout import FIRST_MODEL_BLOCK\n\nOWN = 3\n{line}"))
    assert list(find_offsets(f"from stagewise.engine.layout import FIRST_MODEL_BLOCK\n\nOWN = 3\n{line} = 1.0"))


@pytest.mark.parametrize(
    "line",
    [
        "memory[CACHED]",
        "state.memory[CACHED]",
        "settings['seeds']",
        "rows[3]",
        "rule[CACHED, :-1]",
        "learned[3]",
        "running[index]",
        "running[:, : running_size(m)]",
        "audit[index, CACHED + 1]",
        "audit[CACHED:]",
        "result.audit['missed']",
    ],
)
def test_the_sieve_lets_named_places_pass(line: str) -> None:
    assert list(find_offsets(f"from stagewise.engine.layout import CACHED\n\n{line}")) == []


@pytest.mark.parametrize(
    "source",
    [
        "@kernel\ndef f() -> int:\n    return 1",
        "def g():\n    @kernel\n    def f() -> int:\n        return 1\n    return f",
        "from stagewise.engine.compile import Floats, kernel\n\nf = kernel(g)",
    ],
)
def test_the_sieve_catches_who_makes_kernels(source: str) -> None:
    assert makes_kernels(source)


def test_the_sieve_lets_who_calls_kernels_pass() -> None:
    assert not makes_kernels("from stagewise.engine.compile import Floats, as_python\n\nRADIUS = as_python(radius)")
