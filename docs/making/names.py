"""The list of names that readers are asked about (docs/decisions/0031-how-names-are-judged.md).

Usage: python docs/making/names.py [--counts | --reader | --meanings]

`--reader` prints all that a reader is given, `--meanings` every name with what it means.

Candidates are every export and every public member of an exported class. Pages are the README, the pages and notebooks
of the documents, and the examples. A name is ranked by the number of pages whose code uses it, then by the number of
uses, then by the alphabet. An attribute belongs to the class after which its variable is named (`agent.decide`), an
argument to the class that is called (`sw.Limit(0.02, window="7d")`).
"""

import argparse
import ast
import inspect
import json
import re
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any

import stagewise as sw

ROOT = Path(__file__).parents[2]
LENGTH = 80
MADE = {"_build", "api", "gallery"}  # folders of pages that `make docs` writes


def read_pages() -> Iterator[list[str]]:
    """Yield the pieces of Python code of every page that uses any."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if not MADE & set(path.parts):
            text = path.read_text(encoding="utf-8")
            blocks = [block[1] for block in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)]
            yield [*blocks, *find_spans(text)]
    for path in sorted((ROOT / "docs").rglob("*.ipynb")):
        if not MADE & set(path.parts):
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
            yield ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for path in sorted((ROOT / "examples").glob("*.py")):
        yield [path.read_text(encoding="utf-8")]


def find_spans(text: str) -> Iterator[str]:
    """Yield what stands between backticks outside blocks of code."""
    yield from re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))


def find_used(code: str) -> Iterator[str]:
    """Yield the exports that a piece of code uses, and the members of exported classes as `Class.member`."""
    try:
        tree = ast.parse(code)
    except SyntaxError:  # a span such as `--columns`
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr if is_package(node.value) else f"{get_class(node.value)}.{node.attr}"
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Call):
            yield from (f"{get_class(node.func)}.{word.arg}" for word in node.keywords)


def is_package(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("sw", "stagewise")


def get_class(node: ast.AST) -> str:
    """Return the class that an expression names, or after which a variable is named."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name if name in sw.__all__ else "".join(word.capitalize() for word in name.split("_"))


def list_members(kind: type) -> list[str]:
    """Return the public members of a class: its own and those of its bases of stagewise, and its settings."""
    own = (base for base in kind.__mro__ if base.__module__.startswith("stagewise"))
    names = {name for base in own for name in (*vars(base), *vars(base).get("__annotations__", {}))}
    if not issubclass(kind, Enum | Exception):
        names |= {name for name in inspect.signature(kind).parameters if name not in ("args", "kwargs")}
    documented = re.findall(r"^    +(\w+): ", inspect.getdoc(kind) or "", re.MULTILINE)  # attributes set by `__init__`
    return sorted(name for name in names.union(documented) if not name.startswith("_"))


def rank_names() -> list[tuple[str, int]]:
    """Return every name with the number of pages that use it, the most used first."""
    candidates = set(sw.__all__)
    for name in sw.__all__:
        value: Any = getattr(sw, name)
        candidates |= {f"{name}.{member}" for member in (list_members(value) if isinstance(value, type) else ())}
    pages, uses = Counter[str](), Counter[str]()
    for pieces in read_pages():
        found = Counter(name for code in pieces for name in find_used(code) if name in candidates)
        pages.update(found.keys())
        uses.update(found)
    return sorted(
        ((name, pages[name]) for name in candidates), key=lambda entry: (-entry[1], -uses[entry[0]], entry[0])
    )


READER = """You know multi-armed and contextual bandits, and services that decide online. Do not open any file, do not
search, and use nothing but this page. stagewise is a Python library of contextual bandits that never play an action
whose expected cost is above a limit. It is imported as sw. Below are {count} of its names, as a user meets them: sw.X
is exported, X.y is a member of the class X, and () marks what is called. For each write one or two sentences: what it
is, and how you would use it. If you can only guess, guess and write (guess); if you cannot, write "I do not know".

{names}
"""

MEANINGS = """A reader was given the {count} names below without their meaning, and wrote what each is and how to use
it. Compare every answer with the meaning. Understood: whoever acts on the answer uses the name correctly, also if
details are missing or it was a guess. Not understood: the answer is wrong, would lead to a wrong use, or is missing.
Print the number of each name that is not understood with the reason, and at the end how many of {count} are understood.

{names}
"""


def show(name: str) -> str:
    """Return a name as a user meets it.

    >>> show("Limit.safe_bound"), show("Agent.decide"), show("Agent"), show("simulate")
    ('Limit.safe_bound', 'Agent.decide()', 'sw.Agent', 'sw.simulate()')
    """
    owner, _, member = name.partition(".")
    value = inspect.getattr_static(getattr(sw, owner), member, None) if member else getattr(sw, owner)
    is_called = inspect.isfunction(value) or isinstance(value, classmethod | staticmethod)
    return f"{name if member else f'sw.{name}'}{'()' if is_called else ''}"


def get_meaning(name: str) -> str:
    """Return the first paragraph of the docstring of a name; of a setting or a field, the text beside it."""
    owner, _, member = name.partition(".")
    kind: Any = getattr(sw, owner)
    value = inspect.getattr_static(kind, member, None) if member else kind
    if not member or isinstance(value, property) or inspect.isroutine(value):
        doc = inspect.getdoc(getattr(kind, member) if inspect.isroutine(value) and member else value) or ""
        return " ".join(doc.partition("\n\n")[0].split())
    for base in kind.__mro__:
        listed = re.search(rf"^( +){member}: (.*(?:\n\1 +\S.*)*)", base.__doc__ or "", re.MULTILINE)
        code: Any = ast.parse(inspect.getsource(base)).body[0] if base.__module__.startswith("stagewise") else None
        body = [] if code is None else code.body
        for field, doc in pairwise(body):
            target = field.targets[0] if isinstance(field, ast.Assign) else getattr(field, "target", None)
            is_doc = isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant)
            if getattr(target, "id", "") == member and is_doc:
                return " ".join(str(doc.value.value).split())
        if listed:
            return " ".join(listed[2].split())
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--counts", action="store_true", help="show the number of pages beside each name")
    parser.add_argument("--reader", action="store_true", help="print what a reader is given")
    parser.add_argument("--meanings", action="store_true", help="print what a judge is given")
    given = parser.parse_args()
    ranked = rank_names()[:LENGTH]
    shown = [f"{i}. {show(name)}" for i, (name, _) in enumerate(ranked, 1)]
    if given.reader:
        print(READER.format(count=LENGTH, names="\n".join(shown)))
    elif given.meanings:
        meanings = [f"{text}: {get_meaning(name)}" for text, (name, _) in zip(shown, ranked, strict=True)]
        print(MEANINGS.format(count=LENGTH, names="\n".join(meanings)))
    else:
        print("\n".join(f"{name}  {pages}" if given.counts else name for name, pages in ranked))


if __name__ == "__main__":
    main()
