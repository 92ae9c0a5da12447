"""Codes of reasons: each has one sentence, which a golden file holds; everything else goes by the code and its data."""

import json
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


def test_a_decision_has_the_code_and_the_sentence_of_its_cause() -> None:
    policy = sw.AlwaysSafe(safe_action=sw.SafeAction(arm=0, cost=0.0), threshold=0.1)
    decision = policy.decide(policy.start(), sw.Arms(2))
    assert decision.reason is sw.Reason.ALWAYS_SAFE
    assert (decision.plain()["reason"], decision.plain()["fallback"]) == ("always_safe", decision.fallback)
    own = decision._replace(cause=sw.Cause.of(sw.Reason.CUSTOM, message="a word of my own"))
    assert (own.reason, own.fallback) == ("custom", "a word of my own")
    assert json.loads(json.dumps(own.plain()))["details"] == {"message": "a word of my own"}
