"""Reasons: each code has one sentence, which a golden file holds; all other code compares codes and data."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.golden.messages import read

import stagewise as sw
from stagewise.policies.settings import CAUSES
from stagewise.records.reason import CONTRADICTIONS, MESSAGES, Contradiction, FallbackReason, ReasonDetails, TripReason

ROWS = read()["reasons"]


@pytest.mark.wording
@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join([row["reason"], row["details"].get("found", "")]))
def test_every_reason_has_the_sentence_of_the_golden_file(row: dict[str, Any]) -> None:
    cause = ReasonDetails.from_json((row["reason"], row["details"]))
    assert cause.message == row["message"]
    assert "\n" not in cause.message
    assert len(cause.message) < 400
    assert ReasonDetails.from_json(json.loads(json.dumps(cause.to_json()))) == cause


def test_the_golden_file_has_every_reason() -> None:
    assert {row["reason"] for row in ROWS} == {*FallbackReason, *TripReason} == set(MESSAGES)
    assert {row["details"].get("found") for row in ROWS} - {None} == set(Contradiction) == set(CONTRADICTIONS)
    assert {cause.reason for cause in CAUSES.values()} < set(FallbackReason)


def test_details_hold_json_values_and_incomplete_details_are_rejected() -> None:
    cause = ReasonDetails.of(
        FallbackReason.ASSUMPTION_CONTRADICTED,
        found=Contradiction.SAFE_ACTION_UNSAFE,
        limit="x",
        at_most=True,
        threshold=float("inf"),
    )
    assert cause.details["threshold"] is None
    assert cause.message
    for content in (("nonsense", {}), ("canary", {}), ("contradiction", {"found": "nonsense"}), ("tripped", None), 7):
        with pytest.raises((ValueError, LookupError, TypeError, AttributeError)):
            ReasonDetails.from_json(content)


TEXT_NAMES = {"sentence", "message", "explanation", "words"}
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


def is_sentence(node: ast.AST) -> bool:
    """Return whether an expression is a sentence by its name: an attribute, a key, or text made of one."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("str", "repr"):
        return any(map(is_sentence, node.args))
    if isinstance(node, ast.Attribute):
        return node.attr in TEXT_NAMES
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value in TEXT_NAMES


def find_comparisons(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that compare or search a sentence; a comparison with None is allowed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides, is_none_check = (
                [node.left, *node.comparators],
                all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops),
            )
            if not is_none_check and any(map(is_sentence, sides)):
                yield node.lineno
        elif isinstance(node, ast.Attribute) and node.attr in SEARCHES and is_sentence(node.value):
            yield node.lineno


def test_no_code_compares_or_searches_a_sentence() -> None:
    lines = (
        "x = decision.message not in KNOWN",
        "y = repr(name) in str(decision.message)",
        "one['sentence'].split(' ')",
    )
    assert all(list(find_comparisons(ast.parse(line))) == [1] for line in lines)
    package = Path(sw.__file__).parent
    files = {path: ast.parse(path.read_text(encoding="utf-8")) for path in package.rglob("*.py")}
    assert [
        f"{path.relative_to(package)}:{line}" for path, tree in files.items() for line in find_comparisons(tree)
    ] == []


def test_a_decision_has_the_reason_and_the_message_of_its_cause() -> None:
    policy = sw.AlwaysSafe(safe_action=sw.SafeAction(arm=0, cost=0.0), threshold=0.1)
    decision = policy.decide(policy.start(), sw.ArmSet(2))
    assert decision.reason is sw.FallbackReason.ALWAYS_SAFE
    assert (decision.to_dict()["reason"], decision.to_dict()["message"]) == ("always_safe", decision.message)
    custom = decision._replace(reason_details=sw.ReasonDetails.of(sw.FallbackReason.CUSTOM, message="a word of my own"))
    assert (custom.reason, custom.reason_details.details) == ("custom", {"message": "a word of my own"})
    assert json.loads(json.dumps(custom.to_dict()))["details"] == {"message": "a word of my own"}
