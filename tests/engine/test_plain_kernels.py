"""A sieve over the kernels: plain arithmetic on arrays that the caller owns, made of what the cache digests."""

import ast
from collections.abc import Iterator

import pytest

from stagewise.engine.cache import PACKAGE, list_sources

COMPILING = ("compile.py", "background.py", "jit.py", "cache.py")
FILES = [path for path in list_sources() if path.name not in COMPILING]
MARKS = (["kernel"], ["called"], ["kernel", "distinct"])  # inlined, called, with arrays that do not overlap
CALLS = {"print", "list", "dict", "set", "sorted", "open", "eval"}
METHODS = {"copy", "astype", "append", "tolist"}
NODES = (
    *(ast.Raise, ast.Assert, ast.Try, ast.With, ast.Lambda, ast.FunctionDef, ast.Import, ast.ImportFrom, ast.Global),
    *(ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp, ast.JoinedStr),
    *(ast.Yield, ast.Await, ast.Starred),
)


def list_kernels(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """Yield the kernels of a file, wherever they are defined."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and [ast.unparse(mark) for mark in node.decorator_list] in MARKS:
            yield node


def list_faults(source: str) -> list[str]:
    """Return what a kernel may not contain: allocation, exceptions, other packages' functions, powers."""
    found, tree = [], ast.parse(source)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    foreign = {alias.asname or alias.name for node in imports for alias in node.names if not is_digested(node.module)}
    for function in list_kernels(tree):
        for node in [inner for part in function.body for inner in ast.walk(part)]:
            method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            call = getattr(node.func, "attr" if method else "id", "") if isinstance(node, ast.Call) else ""
            power = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
            if (
                isinstance(node, NODES)
                or (isinstance(node, ast.Name) and node.id in {"np", "numpy", "numba", *foreign})
                or (power and not isinstance(getattr(node, "left", None), ast.Constant))  # interpreted, it rounds apart
                or call in (METHODS if method else CALLS)
            ):
                found.append(f"{function.name}, line {getattr(node, 'lineno', 0)}: {ast.unparse(node)}")
    return found


def is_digested(module: str | None) -> bool:
    """Return whether a module belongs to another project, or is one of the files that the cache digests."""
    path = PACKAGE.joinpath(*(module or "").split(".")[1:]).with_suffix(".py")
    return not (module or "").startswith("stagewise") or path in list_sources()


def test_kernels_are_plain() -> None:
    found = {str(path.relative_to(PACKAGE)): list_faults(path.read_text(encoding="utf-8")) for path in FILES}
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


def test_there_are_kernels_to_look_at() -> None:
    counts = {path.stem: len(list(list_kernels(ast.parse(path.read_text(encoding="utf-8"))))) for path in FILES}
    assert all(counts[name] > 2 for name in ("layout", "round", "loop", "arms", "ridge", "ray", "mixture"))


@pytest.mark.parametrize(
    "body",
    [
        "return np.linalg.norm(x)",
        "y = np.empty(3)",
        "y = x[0] ** 2",
        "raise ValueError",
        "print(x)",
        "try:\n        pass\n    finally:\n        pass",
        "return lambda: 0",
        "return {x: x}",
        "return sum(y for y in x)",
        "y = x.copy()",
        "return MOST",
    ],
)
def test_the_sieve_catches_what_it_is_for(body: str) -> None:
    source = f"from stagewise.agent import MOST\n\n@kernel\ndef slope(x: Floats) -> float:\n    {body}\n"
    assert list_faults(source)
    inner = "".join(f"    {line}\n" for line in source.splitlines()[2:])
    assert list_faults(f"from stagewise.agent import MOST\n\ndef build():\n{inner}")


def test_the_sieve_lets_plain_kernels_pass() -> None:
    source = "from stagewise.engine.random import ACTIONS\nimport math\nimport numpy as np\n\n"
    kernel = "@kernel\ndef slope(x: float) -> float:\n    a, b = x, 2.0 * x\n    return math.sqrt(a + b) * ACTIONS\n"
    assert list_faults(source + kernel + "\ndef build() -> float:\n    return np.zeros(3)\n") == []
