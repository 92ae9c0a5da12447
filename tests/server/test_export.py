"""Export of a log as a table: one row for each decision, with what an off-policy evaluation needs."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.problem.refusal import refused
from tests.server.audited import lived
from tests.server.logs import problem
from tests.server.server_helpers import NAME

import stagewise as sw
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.records.reason import ReasonDetails
from stagewise.server.audit.export import build_columns, export_log
from stagewise.server.audit.replay import explain_logged_decision
from stagewise.server.messages import UnknownDecision, UnknownExperiment
from stagewise.server.store.base import Store
from stagewise.server.store.migrate import open_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = open_store(str(lived(tmp_path_factory.mktemp("lived"))), read_only=True)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def table(store: Store, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    from arro3.io import read_parquet

    path = tmp_path_factory.mktemp("out") / "log.parquet"
    assert export_log(store, NAME, path) == 108
    read = read_parquet(path).read_all()
    return {name: read.column(name).to_pylist() for name in read.column_names}


@pytest.mark.wording
def test_a_row_holds_all_that_the_log_says_of_its_decision(store: Store, table: dict[str, list[Any]]) -> None:
    decisions = [(e, json.loads(e.body)) for e in store.iter_events(NAME) if e.kind == "decision"]
    answers = [store.answers(event.number) for event, _ in decisions]
    assert table["decision_id"] == [event.key for event, _ in decisions]
    assert [round(at.timestamp() * 1e6) for at in table["at"]] == [event.at for event, _ in decisions]
    assert table["age"] == [said["request"]["context"]["age"] for _, said in decisions]
    assert table["country"] == [said["request"]["context"]["country"] for _, said in decisions]
    assert table["action"] == [said["action"] for _, said in decisions]
    assert table["propensity"] == [said["probabilities"][said["action"]] for _, said in decisions]
    assert table["probability.sale"] == [said["probabilities"].get("sale", 0.0) for _, said in decisions]
    assert table["limit.opt_out.pessimistic_cost"] == [
        said["limits"]["opt_out"]["pessimistic_cost"] for _, said in decisions
    ]
    assert (table["mode"], table["version"]) == (
        [s["mode"] for _, s in decisions],
        [s["problem"] for _, s in decisions],
    )
    assert (table["snapshot"], table["reason"]) == (
        [s["snapshot"] for _, s in decisions],
        [s["reason"] for _, s in decisions],
    )
    told = [s["reason"] and ReasonDetails.from_json((s["reason"], s["details"])).message for _, s in decisions]
    assert table["message"] == told
    for signal in ("click", "opt_out", "complaint"):
        assert table[signal] == [told.get(signal) for told in answers]
    deferred = [said["request"].get("deferred", False) for _, said in decisions]
    assert table["shown"] == ["shown" not in told and not later for told, later in zip(answers, deferred, strict=True)]
    assert sum(deferred) == 1
    assert {False, True} == set(table["shown"])
    assert None in table["click"]


def test_a_row_of_shadow_holds_what_the_policy_would_have_served(store: Store, table: dict[str, list[Any]]) -> None:
    decisions = [json.loads(e.body) for e in store.iter_events(NAME) if e.kind == "decision"]
    choices = [said.get("choice") for said in decisions]
    assert [choice is not None for choice in choices] == [mode == "shadow" for mode in table["mode"]]
    assert any(choices)
    assert table["choice.action"] == [choice and choice["action"] for choice in choices]
    assert table["choice.reason"] == [choice and choice["reason"] for choice in choices]
    assert table["choice.probability.sale"] == [
        choice and choice["probabilities"].get("sale", 0.0) for choice in choices
    ]
    assert table["choice.limit.opt_out.pessimistic_cost"] == [
        choice and choice["limits"]["opt_out"]["pessimistic_cost"] for choice in choices
    ]


def test_chances_sum_to_one_and_the_propensity_is_one_of_them(table: dict[str, list[Any]]) -> None:
    names = [name for name in table if name.startswith("probability.")]
    for i, action in enumerate(table["action"]):
        assert sum(table[name][i] for name in names) == pytest.approx(1.0)
        assert table["propensity"][i] == table[f"probability.{action}"][i] > 0.0


def test_names_of_the_problem_that_are_ours_too_are_told_apart() -> None:
    told = problem(context={"mode": (0, 1), "at": (0, 1)}, reward=sw.Reward("snapshot"))
    names = [name for name, *_ in build_columns(told)]
    assert len(names) == len(set(names))
    assert {"context.mode", "context.at", "signal.snapshot", "mode", "at", "snapshot"} < set(names)


def test_what_cannot_be_written_is_said(store: Store, tmp_path: Path) -> None:
    with refused(InvalidFile, ErrorCode.FILE_WRONG_KIND):
        export_log(store, NAME, tmp_path / "log.csv")
    with refused(UnknownExperiment, ErrorCode.UNKNOWN_EXPERIMENT):
        export_log(store, "mial", tmp_path / "log.parquet")
    with refused(InvalidFile, ErrorCode.FILE_NOT_WRITABLE):
        export_log(store, NAME, tmp_path / "no" / "log.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("id_", "parts"),
    [
        ("live-9", ["mode live", "learned up to row", "it was not shown", "Nothing is learned from it"]),
        ("killed-1", ["with probability 1, in mode killed", "was served (killed): ", "complaints doubled", "click = "]),
        ("shadow-4", ["mode shadow", "The policy would have sampled", "No opt_out was reported yet; its window"]),
        ("canary-3", ["mode canary", "complaint = 0, opt_out = 0"]),
        ("sale-2", ["Version 2 of the problem", "sale  "]),
        ("only", ["available: 'offer' and the safe action", "No click was reported; it has no window"]),
        ("later", ["It is deferred and was not reported as shown"]),
        ("before it is learned", ["Version 2 of the problem"]),
    ],
)
def test_a_decision_is_explained_in_words(store: Store, id_: str, parts: list[str]) -> None:
    told = explain_logged_decision(store, NAME, id_)
    assert told.startswith(f"Decision {id_} (number ")
    assert [part for part in parts if part not in told] == []
    assert "Request: age = " in told
    assert re.search(r"opt_out: (estimated at [\d.e-]+|no estimate), bound at most ", told)
    assert "the limit is at most 0.05" in told
    assert "nothing (safe)" in told
    assert "Replay: identical." in told


def test_what_is_not_there_is_not_explained(store: Store) -> None:
    with refused(UnknownDecision, ErrorCode.UNKNOWN_DECISION):
        explain_logged_decision(store, NAME, "nobody")
