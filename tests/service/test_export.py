"""A log as a table and as dsjson: one row for each decision, with what an evaluation elsewhere needs."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.service.audited import lived
from tests.service.desks import NAME
from tests.service.logs import problem

import stagewise as sw
from stagewise.problem.errors import InvalidFile
from stagewise.records.reason import Cause
from stagewise.service.audit.dsjson import line_of
from stagewise.service.audit.explaining import explained
from stagewise.service.audit.exporting import columns_of, export
from stagewise.service.errors import UnknownDecision, UnknownExperiment
from stagewise.service.records import Event
from stagewise.service.store.opened import open_store
from stagewise.service.store.store import Store
from stagewise.service.versions import first


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = open_store(str(lived(tmp_path_factory.mktemp("lived"))), read_only=True)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def table(store: Store, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    from arro3.io import read_parquet

    path = tmp_path_factory.mktemp("out") / "log.parquet"
    assert export(store, NAME, path) == 108
    read = read_parquet(path).read_all()
    return {name: read.column(name).to_pylist() for name in read.column_names}


@pytest.fixture(scope="module")
def lines(store: Store, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    path = tmp_path_factory.mktemp("out") / "log.dsjson"
    assert export(store, NAME, path) == 108
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_row_holds_all_that_the_log_says_of_its_decision(store: Store, table: dict[str, list[Any]]) -> None:
    decisions = [(e, json.loads(e.body)) for e in store.all_events(NAME) if e.kind == "decision"]
    answers = [store.answers(NAME, event.place) for event, _ in decisions]
    assert table["decision_id"] == [event.key for event, _ in decisions]
    assert [round(at.timestamp() * 1e6) for at in table["at"]] == [event.at for event, _ in decisions]
    assert table["age"] == [said["asked"]["context"]["age"] for _, said in decisions]
    assert table["country"] == [said["asked"]["context"]["country"] for _, said in decisions]
    assert table["action"] == [said["action"] for _, said in decisions]
    assert table["propensity"] == [said["probabilities"][said["action"]] for _, said in decisions]
    assert table["probability.sale"] == [said["probabilities"].get("sale", 0.0) for _, said in decisions]
    assert table["limit.opt_out.dearest"] == [said["limits"]["opt_out"]["dearest"] for _, said in decisions]
    assert (table["mode"], table["version"]) == (
        [s["mode"] for _, s in decisions],
        [s["problem"] for _, s in decisions],
    )
    assert (table["state"], table["reason"]) == (
        [s["state"] for _, s in decisions],
        [s["reason"] for _, s in decisions],
    )
    told = [s["reason"] and Cause.read((s["reason"], s["details"])).sentence for _, s in decisions]
    assert table["fallback"] == told
    for signal in ("click", "opt_out", "complaint"):
        assert table[signal] == [told.get(signal) for told in answers]
    deferred = [said["asked"].get("deferred", False) for _, said in decisions]
    assert table["shown"] == ["shown" not in told and not later for told, later in zip(answers, deferred, strict=True)]
    assert sum(deferred) == 1
    assert {False, True} == set(table["shown"])
    assert None in table["click"]


def test_a_row_of_shadow_holds_what_the_policy_would_have_served(store: Store, table: dict[str, list[Any]]) -> None:
    decisions = [json.loads(e.body) for e in store.all_events(NAME) if e.kind == "decision"]
    choices = [said.get("choice") for said in decisions]
    assert [choice is not None for choice in choices] == [mode == "shadow" for mode in table["mode"]]
    assert any(choices)
    assert table["choice.action"] == [choice and choice["action"] for choice in choices]
    assert table["choice.reason"] == [choice and choice["reason"] for choice in choices]
    assert table["choice.probability.sale"] == [
        choice and choice["probabilities"].get("sale", 0.0) for choice in choices
    ]
    assert table["choice.limit.opt_out.dearest"] == [
        choice and choice["limits"]["opt_out"]["dearest"] for choice in choices
    ]


def test_chances_sum_to_one_and_the_propensity_is_one_of_them(table: dict[str, list[Any]]) -> None:
    names = [name for name in table if name.startswith("probability.")]
    for i, action in enumerate(table["action"]):
        assert sum(table[name][i] for name in names) == pytest.approx(1.0)
        assert table["propensity"][i] == table[f"probability.{action}"][i] > 0.0


def test_names_of_the_problem_that_are_ours_too_are_told_apart() -> None:
    told = problem(context={"mode": (0, 1), "at": (0, 1)}, reward=sw.Reward("state"))
    names = [field.name for field, _ in columns_of(told)]
    assert len(names) == len(set(names))
    assert {"context.mode", "context.at", "signal.state", "mode", "at", "state"} < set(names)


def test_dsjson_is_what_vowpal_wabbit_reads(table: dict[str, list[Any]], lines: list[dict[str, Any]]) -> None:
    """The shape was read by vw 9.11 with --dsjson --cb_explore_adf: 97 examples of these 108, 11 with _skipLearn."""
    assert sum("_skipLearn" in line for line in lines) == 11
    for i, line in enumerate(lines):
        offered = [entry["_tag"] for entry in line["c"]["_multi"]]
        chosen = offered[line["_labelIndex"]]
        assert (line["EventId"], chosen) == (table["decision_id"][i], table["action"][i])
        assert line["_label_Action"] == line["_labelIndex"] + 1 == line["a"][0]
        assert sorted(line["a"]) == list(range(1, len(offered) + 1))
        assert line["p"] == [table[f"probability.{offered[a - 1]}"][i] for a in line["a"]]
        assert line["_label_probability"] == line["p"][0]
        assert line["c"]["User"] == {"age": table["age"][i], "tenure": 0.25, "country": table["country"][i]}
        known = table["click"][i] is not None and table["shown"][i]
        assert ("_skipLearn" in line) == (not known)
        if known:
            assert line["_label_cost"] == -table["click"][i]
            assert line["o"] == [{"EventId": line["EventId"], "v": table["click"][i], "ActionTaken": False}]
        assert line["Timestamp"].endswith("0Z")
        assert len(line["Timestamp"]) == len("2020-11-15T17:09:31.8350000Z")


def test_only_what_was_on_offer_is_listed(lines: list[dict[str, Any]]) -> None:
    offered = {line["EventId"]: [entry["_tag"] for entry in line["c"]["_multi"]] for line in lines}
    assert offered["live-0"] == ["nothing", "digest", "offer"]
    assert offered["sale-0"] == ["nothing", "offer", "sale"]  # digest was retired
    assert offered["only"] == ["nothing", "offer"]


@pytest.mark.parametrize(
    ("window", "missing", "age", "cost", "skipped"),
    [
        (None, None, 100.0, 0.0, True),
        ("1m", None, 59.0, 0.0, True),
        ("1m", None, 61.0, 0.0, False),
        ("1m", 0.5, 61.0, -0.5, False),
        ("1m", "drop", 61.0, 0.0, True),
    ],
)
def test_a_reward_that_did_not_come_counts_as_its_window_says(
    window: str | None, missing: Any, age: float, cost: float, skipped: bool
) -> None:
    version = first(problem(reward=sw.Reward("click", window=window, missing=missing)))
    said = {
        "asked": {"context": {"mobile": True}},
        "action": "offer",
        "probabilities": {"digest": 0.0, "nothing": 0.0, "offer": 1.0},
        "problem": 1,
        "state": 0,
    }
    line = json.loads(line_of(Event(1, 0, "decision", "d", 0, b"", b""), said, {}, version, round(age * 1e6)))
    assert (line["_label_cost"], line.get("_skipLearn", False)) == (cost, skipped)
    assert line["c"]["User"] == {"mobile": 1.0}


def test_what_cannot_be_written_is_said(store: Store, tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="ends neither in"):
        export(store, NAME, tmp_path / "log.csv")
    with pytest.raises(UnknownExperiment, match="did you mean 'mail'"):
        export(store, "mial", tmp_path / "log.parquet")
    with pytest.raises(InvalidFile, match="there is no folder"):
        export(store, NAME, tmp_path / "no" / "log.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("id_", "parts"),
    [
        ("live-9", ["mode live", "learned up to row", "it was not shown", "nothing is learned from it"]),
        ("killed-1", ["for certain, in mode killed", "because: killed by ada: complaints doubled", "click = "]),
        ("shadow-4", ["mode shadow", "The policy itself would have drawn", "No opt_out has come yet; its window"]),
        ("canary-3", ["mode canary", "complaint = 0, opt_out = 0"]),
        ("sale-2", ["By version 2 of the problem", "sale  "]),
        ("only", ["on offer: 'offer' and the safe action", "No click has come; it has no window"]),
        ("later", ["It was deferred, and nobody has said that it was shown"]),
        ("before it is learned", ["By version 2 of the problem"]),
    ],
)
def test_a_decision_is_explained_in_words(store: Store, id_: str, parts: list[str]) -> None:
    told = explained(store, NAME, id_)
    assert told.startswith(f"Decision {id_} (row ")
    assert [part for part in parts if part not in told] == []
    assert "Asked for age = " in told
    assert re.search(r"opt_out: (estimated at [\d.e-]+|no estimate), at most ", told)
    assert "it must be at most 0.05" in told
    assert "nothing (safe)" in told
    assert "Made again from the log: the same to the bit." in told


def test_what_is_not_there_is_not_explained(store: Store) -> None:
    with pytest.raises(UnknownDecision, match="'nobody' is no decision of 'mail'"):
        explained(store, NAME, "nobody")
