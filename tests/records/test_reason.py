"""Codes of reasons: each has one sentence, which a golden file holds; everything else goes by the code and its data."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stagewise as sw
from stagewise.policies.settings import CAUSES
from stagewise.records.reason import CONTRADICTIONS, SENTENCES, Cause, Contradiction, Reason

GOLDEN = Path(__file__).parents[1] / "golden" / "reasons.json"
ROWS: list[dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join([row["reason"], row["details"].get("found", "")]))
def test_every_code_has_the_sentence_of_the_golden_file(row: dict[str, Any]) -> None:
    cause = Cause.read((row["reason"], row["details"]))
    assert cause.sentence == row["sentence"]
    assert "\n" not in cause.sentence
    assert len(cause.sentence) < 400
    assert Cause.read(json.loads(json.dumps(cause.plain()))) == cause


def test_the_golden_file_has_every_code() -> None:
    assert {row["reason"] for row in ROWS} == set(Reason) == set(SENTENCES)
    assert {row["details"].get("found") for row in ROWS} - {None} == set(Contradiction) == set(CONTRADICTIONS)
    assert {cause.reason for cause in CAUSES.values()} < set(Reason)


def test_data_are_what_json_holds_and_what_lacks_some_is_refused() -> None:
    cause = Cause.of(
        Reason.CONTRADICTION, found=Contradiction.SAFE_ACTION_UNSAFE, limit="x", at_most=True, threshold=float("inf")
    )
    assert cause.details["threshold"] is None
    assert "no finite number" in cause.sentence
    for content in (("nonsense", {}), ("canary", {}), ("contradiction", {"found": "nonsense"}), ("tripped", None), 7):
        with pytest.raises((ValueError, LookupError, TypeError, AttributeError)):
            Cause.read(content)


WORDS = {"fallback", "sentence", "message", "explanation", "words"}
SEARCHES = {
    "startswith",
    "endswith",
    "split",
    "partition",
    "rpartition",
    "removeprefix",
    "removesuffix",
    "find",
    "index",
}


def spoken(node: ast.AST) -> bool:
    """Say whether an expression is a sentence by its name: an attribute, a key, or text made of one."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("str", "repr"):
        return any(map(spoken, node.args))
    if isinstance(node, ast.Attribute):
        return node.attr in WORDS
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value in WORDS


def searched(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that compare or search a sentence; whether there is one may be asked."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides, asks = [node.left, *node.comparators], all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
            if not asks and any(map(spoken, sides)):
                yield node.lineno
        elif isinstance(node, ast.Attribute) and node.attr in SEARCHES and spoken(node.value):
            yield node.lineno


def test_no_code_compares_or_searches_a_sentence() -> None:
    old = (
        "x = decision.fallback not in KNOWN",
        "y = repr(name) in str(decision.fallback)",
        "one['sentence'].split(' ')",
    )
    assert all(list(searched(ast.parse(line))) == [1] for line in old)
    package = Path(sw.__file__).parent
    files = {path: ast.parse(path.read_text(encoding="utf-8")) for path in package.rglob("*.py")}
    assert [f"{path.relative_to(package)}:{line}" for path, tree in files.items() for line in searched(tree)] == []


def test_a_decision_has_the_code_and_the_sentence_of_its_cause() -> None:
    policy = sw.AlwaysSafe(safe_action=sw.SafeAction(arm=0, cost=0.0), threshold=0.1)
    decision = policy.decide(policy.start(), sw.Arms(2))
    assert decision.reason is sw.Reason.ALWAYS_SAFE
    assert (decision.plain()["reason"], decision.plain()["fallback"]) == ("always_safe", decision.fallback)
    own = decision._replace(cause=sw.Cause.of(sw.Reason.CUSTOM, message="a word of my own"))
    assert (own.reason, own.fallback) == ("custom", "a word of my own")
    assert json.loads(json.dumps(own.plain()))["details"] == {"message": "a word of my own"}
