"""All error templates and reason sentences of stagewise; `python -m tests.golden.messages` rewrites messages.json."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import stagewise
from stagewise.records.reason import ReasonDetails

PACKAGE = Path(stagewise.__file__).parent
PATH = Path(__file__).with_name("messages.json")
RENEW = "python -m tests.golden.messages"


def get_name(node: ast.expr) -> str:
    """Return the name of what is called; a variable that holds an exception class is `error`."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name if name[:1].isupper() else "error"


def iter_codes(node: ast.expr) -> Iterator[str]:
    """Yield the error codes that an argument can be."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name) and inner.value.id == "ErrorCode":
            yield inner.attr


def get_text(node: ast.expr) -> str:
    """Return the text of an argument; one that is made when the error is raised is shown as its code."""
    return node.value if isinstance(node, ast.Constant) else ast.unparse(node)


def iter_templates(tree: ast.AST) -> Iterator[tuple[str, str, str]]:
    """Yield the code, the exception class and the template of every error that a module raises."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr == "must_be":
            code, subject, _, rule = node.args
            for name in iter_codes(code):
                yield name, get_name(node.func.value), f"{get_text(subject)} is {{value}}; it must be {get_text(rule)}"
            continue
        for first, second in zip(node.args, node.args[1:], strict=False):
            texts = [
                part for part in ast.walk(second) if isinstance(part, ast.Constant) and isinstance(part.value, str)
            ]
            if isinstance(second, ast.Constant | ast.IfExp | ast.JoinedStr):
                for code in iter_codes(first):
                    yield from ((code, get_name(node.func), text.value) for text in texts)


def collect_errors() -> list[dict[str, str]]:
    """Return every error template of the package, sorted."""
    paths = PACKAGE.rglob("*.py")
    rows = {row for path in paths for row in iter_templates(ast.parse(path.read_text(encoding="utf-8")))}
    return [{"code": code, "error": error, "template": template} for code, error, template in sorted(rows)]


def read() -> dict[str, list[dict[str, Any]]]:
    """Return the golden file."""
    content: dict[str, list[dict[str, Any]]] = json.loads(PATH.read_text(encoding="utf-8"))
    return content


def build() -> dict[str, list[dict[str, Any]]]:
    """Return what the golden file should hold; the data of its reasons stay as they are."""
    causes = [ReasonDetails.from_json((row["reason"], row["details"])) for row in read()["reasons"]]
    reasons = [{"reason": str(c.reason), "details": dict(c.details), "message": c.message} for c in causes]
    return {"errors": collect_errors(), "reasons": reasons}


if __name__ == "__main__":
    PATH.write_text(json.dumps(build(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
