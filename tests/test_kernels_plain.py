"""A sieve over the kernels: plain arithmetic on arrays that the caller owns, fit for a GPU as it stands."""

import ast
from pathlib import Path

import pytest

import stagewise

FOLDER = Path(stagewise.__file__).parent / "kernels"
COMPILING = (
    "__init__.py",
    "compile.py",
    "background.py",
    "interpreted.py",
    "jit.py",
    "code_cache.py",
    "linking.py",
    "machine_code.py",
)
FILES = sorted(path for path in FOLDER.rglob("*.py") if path.name not in COMPILING)

IMPORTS = ("math", "typing", "functools", "collections.abc", "stagewise.kernels.")
PLAIN = {"to_signed_seed"}  # functions for Python, beside those that tell the size of an array
NUMBERS = {"int", "float", "bool"}
MARKS = (["kernel"], ["called"], ["kernel", "distinct"])  # taken in by what calls it, called by it, its arrays apart
CALLS = {"print", "list", "dict", "set", "sorted", "open", "eval"}
METHODS = {"copy", "astype", "append", "tolist"}
NODES = (
    *(ast.Raise, ast.Assert, ast.Try, ast.With, ast.Lambda, ast.FunctionDef, ast.Import, ast.ImportFrom, ast.Global),
    *(ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp, ast.JoinedStr),
    *(ast.Yield, ast.Await, ast.Starred),
)


def faults_in(function: ast.FunctionDef) -> list[str]:
    """Return what a kernel may not contain."""
    found = []
    for node in [inner for part in function.body for inner in ast.walk(part)]:
        if isinstance(node, NODES):
            found.append(f"{function.name}, line {node.lineno}: {type(node).__name__}")
        if isinstance(node, ast.Name) and node.id in ("np", "numpy", "numba"):
            found.append(f"{function.name}, line {node.lineno}: {node.id}")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and not isinstance(node.left, ast.Constant):
            found.append(
                f"{function.name}, line {node.lineno}: a power, which interpreted and compiled code round apart"
            )
        if isinstance(node, ast.Call):
            method = isinstance(node.func, ast.Attribute)
            called = getattr(node.func, "attr" if method else "id", "")
            found += (
                [f"{function.name}, line {node.lineno}: {called}()"] if called in (METHODS if method else CALLS) else []
            )
    return found


def faults_around(factory: ast.FunctionDef) -> list[str]:
    """Return what a factory may not contain: it names what its kernels capture, defines them, and returns them."""
    found = []
    for node in factory.body:
        if isinstance(node, ast.FunctionDef):
            marks = [ast.unparse(mark) for mark in node.decorator_list]
            found += faults_in(node) if marks in MARKS else [f"{node.name} is no kernel: {marks or 'undecorated'}"]
        elif not isinstance(node, ast.Assign | ast.Return | ast.Expr):
            found.append(f"{factory.name}, line {node.lineno}: {type(node).__name__}")
        elif isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
            found.append(f"{factory.name}, line {node.lineno}: {ast.unparse(node)}")
    return found


def faults(source: str) -> list[str]:
    """Return what keeps a file from being plain kernels."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            found += [f"imports {name}" for name in names if not name.startswith(IMPORTS)]
        if isinstance(node, ast.FunctionDef):
            marks = [ast.unparse(mark) for mark in node.decorator_list]
            found += faults_around(node) if marks == ["factory"] else faults_in(node)
            if marks in (*MARKS, ["factory"]):
                continue
            types = {ast.unparse(arg.annotation) if arg.annotation else "" for arg in node.args.args}
            if marks or not (node.name.endswith("_size") or node.name in PLAIN) or types - NUMBERS:
                found.append(f"{node.name} is no kernel: {marks or 'undecorated'}")
    return found


def test_kernels_are_plain() -> None:
    found = {str(path.relative_to(FOLDER)): faults(path.read_text(encoding="utf-8")) for path in FILES}
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


def test_there_are_kernels_to_look_at() -> None:
    settings = {path.relative_to(FOLDER).as_posix() for path in FILES}
    assert {"layout.py", "rules/ray.py", "models/ridge.py", "loop/round.py", "loop/round_loop.py"} <= settings


@pytest.mark.parametrize(
    "body",
    [
        "return np.linalg.norm(x)",
        "return np.random.normal()",
        "y = np.empty(3)",
        "y = np.zeros(3)",
        "y = x[0] ** 2",
        "raise ValueError",
        "print(x)",
        "try:\n        pass\n    finally:\n        pass",
        "with x:\n        pass",
        "return lambda: 0",
        "return [x]",
        "return {x: x}",
        "return sum(y for y in x)",
        "y = x.copy()",
        "def inner() -> None: ...",
    ],
)
def test_the_sieve_catches_what_it_is_for(body: str) -> None:
    assert faults(f"@kernel\ndef slope(x: Floats) -> float:\n    {body}\n")


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np",
        "from stagewise.policies import agent",
        "def slope(x: int) -> int:\n    return x",
        "def slope_size(x: Floats) -> int:\n    return x.size",
        "@kernel(fastmath=True)\ndef slope(x: float) -> float:\n    return x",
        "@njit\ndef slope(x: float) -> float:\n    return x",
        "@kernel\n@kernel\ndef slope(x: float) -> float:\n    return x",
        "@called\ndef slope(x: Floats) -> float:\n    return [x]",
        "def made(x: int) -> Any:\n    @kernel\n    def slope() -> int:\n        return x\n    return slope",
        "@factory\ndef made(x: int) -> Any:\n    def slope() -> int:\n        return x\n    return slope",
        "@factory\ndef made(x: int) -> Any:\n    @kernel\n    def a() -> Any:\n        return [x]\n    return a",
        "@factory\ndef made(x: int) -> Any:\n    print(x)\n    return x",
        "@factory\ndef made(x: int) -> Any:\n    for i in range(x):\n        pass",
    ],
)
def test_the_sieve_catches_what_surrounds_a_kernel(source: str) -> None:
    assert faults(source)


def test_the_sieve_lets_plain_kernels_pass() -> None:
    base = "import math\n\n@kernel\ndef slope(x: float) -> float:\n    a, b = x, 2.0 * x\n    return math.sqrt(a + b)\n"
    assert faults(base + "\ndef work_size(d: int) -> int:\n    return 3 * d\n") == []


def test_the_sieve_lets_factories_of_kernels_pass() -> None:
    inner = "    @kernel\n    def slope(y: float) -> float:\n        return twice * y\n    return slope\n"
    assert faults(f'@factory\ndef made(x: int) -> Any:\n    """Return it."""\n    twice = 2 * x\n{inner}') == []
