"""A sieve over what machine code is made of: each such file is in the name of the folder where the code is kept."""

import ast
from collections.abc import Iterator

import pytest

from stagewise.kernels import code_cache

FILES = sorted(code_cache.PACKAGE.rglob("*.py"))
SOURCES = code_cache.list_sources()
MARKS = {"kernel", "called"}


def imported(tree: ast.AST) -> dict[str, str]:
    """Return the names that a file imports, and where they stand: `radius` in stagewise.kernels.radius, say."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        if isinstance(node, ast.Import):
            found |= {alias.asname or alias.name: alias.name for alias in node.names}
    return found


def is_a_source(name: str) -> bool:
    """Return whether a dotted name is of other people's packages, or stands in a file that is in the folder's name."""
    parts = name.split(".")
    if parts[0] != "stagewise":
        return True
    files = [code_cache.PACKAGE.joinpath(*parts[1:end]).with_suffix(".py") for end in (len(parts), len(parts) - 1)]
    return any(path in SOURCES for path in files)


def ingredients(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield what goes into machine code: kernels wherever they are defined, and the values that a file names."""
    yield from (node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and MARKS & {ast.unparse(mark) for mark in node.decorator_list}:
            yield from node.body


def strangers(source: str) -> list[str]:
    """Return the imported names that go into machine code and stand in no file that is in the folder's name."""
    tree = ast.parse(source)
    names = imported(tree)
    used = {node.id for part in ingredients(tree) for node in ast.walk(part) if isinstance(node, ast.Name)}
    return sorted(names[name] for name in used & names.keys() if not is_a_source(names[name]))


def makes_kernels(source: str) -> bool:
    """Return whether a file imports what makes kernels."""
    return not {f"stagewise.kernels.compile.{mark}" for mark in MARKS}.isdisjoint(imported(ast.parse(source)).values())


def test_kernels_are_made_of_what_is_in_the_folders_name() -> None:
    found = {path: strangers(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.long
def test_who_makes_kernels_is_in_the_folders_name() -> None:
    others = [path for path in FILES if path not in SOURCES]
    assert len(others) > len(SOURCES)
    assert [path for path in others if makes_kernels(path.read_text(encoding="utf-8"))] == []


def test_kernels_in_folders_of_their_room_are_among_them() -> None:
    folders = {path.parent.name for path in SOURCES if "@kernel" in path.read_text("utf-8")}
    assert {"kernels", "models", "rules", "loop"} <= folders


@pytest.mark.parametrize(
    "source",
    [
        "from stagewise.agent import MOST\n\n@kernel\ndef f() -> int:\n    return MOST",
        "from stagewise.policies import agent\n\n@kernel\ndef f() -> int:\n    return agent.MOST",
        "from stagewise.agent import MOST\n\n@called\ndef f() -> int:\n    return MOST",
        "from stagewise.agent import MOST\n\nTWICE = 2 * MOST",
        "from stagewise.agent import MOST\n\ndef g():\n    @kernel\n    def f() -> int:\n        return MOST",
    ],
)
def test_the_sieve_catches_strangers(source: str) -> None:
    assert strangers(source)


def test_the_sieve_lets_kernels_and_other_peoples_packages_pass() -> None:
    body = "@kernel\ndef f() -> float:\n    return math.pi * ACTIONS"
    source = f"import math\nfrom stagewise.kernels.random_streams import ACTIONS\n\n{body}"
    assert strangers(source) == []


def test_the_sieve_knows_who_makes_kernels() -> None:
    assert makes_kernels("from stagewise.kernels.compile import Floats, kernel\n\nf = kernel(g)")
    assert makes_kernels("from stagewise.kernels.compile import called\n\nf = called(g)")
    assert not makes_kernels("from stagewise.kernels.compile import Floats")
