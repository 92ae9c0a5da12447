"""All error templates and reason sentences of stagewise; `python -m tests.golden.messages` rewrites messages.json."""

import ast
import json
from collections.abc import Iterator
from functools import cache
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


FORMS = {  # constructors of errors with one sentence: their arguments, and the sentence
    "must_be": (("code", "subject", "value", "rule"), "{subject} is {value}; it must be {rule}"),
    "must_be_one_of": (("code", "subject", "value", "names"), "{subject} is {value}; it must be one of {names}"),
    "must_agree": (
        ("code", "subject", "size", "other", "other_size"),
        "{subject} is {size} and {other} is {other_size}; they must be equal",
    ),
    "conflict": (("subject", "value", "fact", "remedy"), "{subject} is {value} and {fact}; {remedy}"),
    "unused": (("subject", "value", "reason"), "{subject} is {value}; leave it out, since {reason}"),
    "cannot_be": (("code", "path", "verb", "reason"), "{path} cannot be {verb}: {reason}"),
}
FIXED_CODES = {"conflict": "CONFLICTING_SETTINGS", "unused": "UNUSED_SETTING"}
VALUES = ("value", "size", "other_size", "path", "names")  # arguments that are shown as fields


def get_text(node: ast.expr) -> str:
    """Return the text of an argument; what is computed when the error is raised is shown as a field."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{…}" for part in node.values)
    return f"{{{ast.unparse(node)}}}"


def iter_forms(call: ast.Call, form: str) -> Iterator[tuple[str, str, str]]:
    """Yield the code, the exception class and the sentence of an error made by one of the forms."""
    names, sentence = FORMS[form]
    arguments = dict(zip(names, call.args, strict=False))  # fewer where some are starred
    texts = {name: get_text(arguments[name]) if name in arguments else f"{{{name}}}" for name in names}
    texts |= {name: f"{{{name}}}" for name in VALUES}
    codes = [FIXED_CODES[form]] if form in FIXED_CODES else iter_codes(arguments["code"])
    assert isinstance(call.func, ast.Attribute)
    for code in codes:
        yield code, get_name(call.func.value), sentence.format_map(texts)


def inline_texts(tree: ast.AST) -> None:
    """Replace the names of texts in calls by the texts that were last assigned to them before."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        texts: list[tuple[int, str, ast.expr]] = []
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.JoinedStr | ast.Constant):
                texts += [(node.lineno, to.id, node.value) for to in node.targets if isinstance(to, ast.Name)]
        for call in ast.walk(function):
            if isinstance(call, ast.Call):
                for i, argument in enumerate(call.args):
                    if isinstance(argument, ast.Name):
                        before = [row for row in texts if row[1] == argument.id and row[0] < call.lineno]
                        call.args[i] = max(before, key=lambda row: row[0])[2] if before else argument


def iter_templates(tree: ast.AST) -> Iterator[tuple[str, str, str]]:
    """Yield the code, the exception class and the template of every error that a module raises."""
    inline_texts(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr in FORMS:
            yield from iter_forms(node, node.func.attr)
            continue
        for first, second in zip(node.args, node.args[1:], strict=False):
            parts = [
                part for part in ast.walk(second) if isinstance(part, ast.Constant) and isinstance(part.value, str)
            ]
            texts = [get_text(second)] if isinstance(second, ast.JoinedStr) else [str(part.value) for part in parts]
            if isinstance(second, ast.Constant | ast.IfExp | ast.JoinedStr):
                yield from ((code, get_name(node.func), text) for code in iter_codes(first) for text in texts)


def collect_errors() -> list[dict[str, str]]:
    """Return every error template of the package, sorted."""
    paths = PACKAGE.rglob("*.py")
    rows = {row for path in paths for row in iter_templates(ast.parse(path.read_text(encoding="utf-8")))}
    return [{"code": code, "error": error, "template": template} for code, error, template in sorted(rows)]


def read() -> dict[str, list[dict[str, Any]]]:
    """Return the golden file."""
    content: dict[str, list[dict[str, Any]]] = json.loads(PATH.read_text(encoding="utf-8"))
    return content


@cache
def build() -> dict[str, list[dict[str, Any]]]:
    """Return what the golden file should hold; the data of its reasons stay as they are."""
    causes = [ReasonDetails.from_json((row["reason"], row["details"])) for row in read()["reasons"]]
    reasons = [{"reason": str(c.reason), "details": dict(c.details), "message": c.message} for c in causes]
    return {"errors": collect_errors(), "reasons": reasons}


if __name__ == "__main__":
    PATH.write_text(json.dumps(build(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
