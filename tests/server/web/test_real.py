"""The whole way on the real desk: from a request to a row of the log, and back."""

import dataclasses
import json
from collections import Counter
from pathlib import Path

import pytest
from tests.server.server_helpers import learned, played
from tests.server.web.real import Real, problem, real

import stagewise as sw
from stagewise.server.web.page.verdict import build_verdict

USER = {"context": {"age": 34}}
PATH, OUT = "/v1/demo/decisions", "/v1/demo/outcomes"


@played
async def test_a_decision_its_outcome_its_explanation_and_the_log(tmp_path: Path) -> None:
    async with real(tmp_path) as desk:
        made = await desk.writer.post(PATH, {**USER, "decision_id": "a/b ü"})
        assert (made.status, made.plain["decision_id"], made.plain["logged"]) == (200, "a/b ü", True)
        assert (await desk.writer.post(PATH, {**USER, "decision_id": "a/b ü"})).content == made.content
        assert (await desk.writer.post(PATH, {"context": {"age": 35}, "decision_id": "a/b ü"})).status == 409
        told = await desk.writer.post(OUT, {"decision_id": "a/b ü", "click": True, "outcome_id": "o"})
        receipt = desk.store.events_of_kind("demo", "outcome")[0].receipt
        rest = {"accepted": ["click"], "duplicate": [], "late": [], "receipt": receipt}
        assert told.plain == {"decision_id": "a/b ü", **rest}
        again = await desk.writer.post(OUT, {"decision_id": "a/b ü", "click": True, "outcome_id": "o"})
        assert (again.status, again.content) == (200, told.content)
        assert (await desk.writer.post(OUT, {"decision_id": "a/b ü", "click": 0})).status == 409
        assert (await desk.writer.post(OUT, {"decision_id": "b", "click": 0})).status == 404
        explained = await desk.reader.get("/v1/demo/decisions/a%2Fb%20%C3%BC")
        assert explained.plain["outcome"] == {"click": 1.0}
        rows = (await desk.reader.get("/v1/demo/log")).plain["rows"]
        assert [row["kind"] for row in rows] == ["problem", "control", "decision", "outcome"]
        event = desk.store.find("demo", "decision", "a/b ü")
        assert event is not None
        assert (rows[2]["body"].encode(), rows[2]["mac"]) == (event.body, event.mac.hex())


@pytest.mark.parametrize("on", ["file", "server"])
@played
async def test_an_outcome_that_is_told_again_is_answered_the_same(
    tmp_path: Path, request: pytest.FixtureRequest, on: str
) -> None:
    async with real(tmp_path if on == "file" else request.getfixturevalue("postgres")) as desk:
        await desk.writer.post(PATH, [{**USER, "decision_id": id_} for id_ in ("a", "b")])
        now = desk.store.now()
        desk.store.clock = lambda: now + 8 * 86_400_000_000  # type: ignore[attr-defined]
        await desk.writer.post(OUT, {"decision_id": "a", "click": 1})
        late = {"decision_id": "a", "click": 1, "opt_out": 0, "shown": True, "outcome_id": "o1"}
        known = {"decision_id": "a", "opt_out": 0, "outcome_id": "o2"}
        first = [await desk.writer.post(OUT, body) for body in (late, known)]
        receipts = [row.receipt for row in desk.store.events_of_kind("demo", "outcome")[1:]]
        assert first[0].plain == {
            "decision_id": "a", "accepted": ["opt_out", "shown"], "duplicate": ["click"], "late": ["opt_out"],
            "receipt": receipts[0],
        }  # fmt: skip
        rest = {"accepted": [], "duplicate": ["opt_out"], "late": [], "receipt": receipts[1]}
        assert first[1].plain == {"decision_id": "a", **rest}
        before = desk.rows()
        assert [(await desk.writer.post(OUT, body)).content for body in (late, known)] == [one.content for one in first]
        assert (await desk.writer.post(OUT, [late, known])).plain == [one.plain for one in first]
        assert desk.rows() == before


@played
async def test_a_batch_is_decided_and_learned_item_by_item(tmp_path: Path) -> None:
    async with real(tmp_path) as desk:
        made = await desk.writer.post(PATH, [{**USER, "decision_id": f"d{i}"} for i in range(100)] + [{"context": {}}])
        assert [item.get("decision_id") for item in made.plain] == [*(f"d{i}" for i in range(100)), None]
        told = [{"decision_id": f"d{i}", "click": i % 2, "opt_out": 0} for i in range(101)]
        taken = (await desk.writer.post(OUT, told)).plain
        assert [item.get("accepted") for item in taken] == [["click", "opt_out"]] * 100 + [None]
        assert taken[100]["decision_id"] == "d100"
        await learned(desk.desk)
        summary = (await desk.reader.get("/v1/demo")).plain
        assert summary["snapshot"] == 2 + 200
        assert summary["problem"]["safe_name"] == "nothing"


@played
async def test_changes_say_who_and_why_and_hold_at_once(tmp_path: Path) -> None:
    async with real(tmp_path) as desk:
        reason = {"reason": "<b>try</b> & see"}
        changed = await desk.admin.post("/v1/demo/mode", {"mode": "canary", "share": 0.25, **reason})
        assert changed.plain == {
            "mode": "canary",
            "share": 0.25,
            "killed": False,
            "control": desk.store.last_control("demo"),
        }
        body = json.loads(desk.store.events_of_kind("demo", "control")[-1].body)
        assert (body["actor"], body["reason"]) == ("admin", "<b>try</b> & see")
        assert (await desk.admin.post("/v1/kill", reason)).plain["killed"] is True
        made = (await desk.writer.post(PATH, USER)).plain
        assert (made["mode"], made["action"], made["reason"]) == ("killed", "nothing", "killed")
        killed = (await desk.reader.get("/v1/experiments")).plain[0]["killed"]
        assert [text.endswith("admin: <b>try</b> & see") for text in (made["message"], killed)] == [True, True]
        assert (await desk.admin.post("/v1/resume", reason)).plain["killed"] is False
        plain = (await desk.reader.get("/v1/demo")).plain["problem"]
        plain["limits"]["opt_out"]["at_most"] = 0.01
        assert (await desk.admin.post("/v1/demo/problem", {"problem": plain, **reason})).plain == {"version": 2}
        wrong = await desk.admin.post("/v1/demo/problem", {"problem": {**plain, "delta": 0.1}, **reason})
        assert (wrong.status, wrong.plain["code"]) == (422, "change_not_allowed")
        assert (await desk.admin.post("/v1/demo/acknowledge", {"name": "opt_out", **reason})).plain[
            "code"
        ] == "no_open_alert"


async def metrics(desk: Real, name: str) -> dict[str, float]:
    """Return a metric by its labels."""
    lines = (await desk.reader.get("/metrics")).content.decode().splitlines()
    found = [line.rpartition(" ") for line in lines if line.startswith(f"stagewise_{name}{{")]
    return {labels.partition("{")[2].rstrip("}"): float(number) for labels, _, number in found}


@played
async def test_a_safe_cost_that_nobody_declared_is_no_breach(tmp_path: Path) -> None:
    undeclared = dataclasses.replace(problem(), limits={"opt_out": sw.Limit(0.02, window="7d", model="rates")})
    async with real(tmp_path, undeclared) as desk:
        made = (await desk.writer.post(PATH, USER)).plain
        assert (made["action"], made["limits"]["opt_out"]["pessimistic_cost"]) == ("nothing", 1.0)
        told = (await desk.reader.get("/v1/demo/figures")).plain
        assert (told["limits"]["opt_out"]["pessimistic_cost"], told["limits"]["opt_out"]["safe_cost_unknown"]) == (
            None,
            True,
        )
        assert build_verdict(told).answers[0].level == "wait"
        assert await metrics(desk, "limit_margin") == {}


@played
async def test_shadow_is_counted(tmp_path: Path) -> None:
    async with real(tmp_path) as desk:
        await desk.admin.post("/v1/demo/mode", {"mode": "shadow", "reason": "to see"})
        await desk.writer.post(PATH, [USER] * 30)
        rows = [json.loads(row.body)["choice"] for row in desk.store.events_of_kind("demo", "decision")]
        told = (await desk.reader.get("/v1/demo/figures")).plain
        assert told["shadow"] == Counter(choice["action"] for choice in rows)
        pessimistic_cost = max(choice["limits"]["opt_out"]["pessimistic_cost"] for choice in rows)
        assert told["limits"]["opt_out"]["shadow"] == pessimistic_cost
        assert sum((await metrics(desk, "shadow_decisions")).values()) == 30
        assert await metrics(desk, "shadow_limit_margin") == {
            'experiment="demo",limit="opt_out"': 0.02 - pessimistic_cost
        }


@played
async def test_what_lacks_a_row_for_too_long_is_stale(tmp_path: Path) -> None:
    async with real(tmp_path) as desk:
        await learned(desk.desk)
        desk.desk.learner.stop()
        desk.desk.experiment("demo").snapshot_time -= 1000.0  # it was silent for long, and lacks nothing
        labels, now = 'experiment="demo"', desk.store.now()
        assert (await metrics(desk, "snapshot_stale"), await metrics(desk, "snapshot_age_seconds")) == (
            {labels: 0},
            {labels: 0},
        )
        desk.store.clock = lambda: now  # type: ignore[attr-defined]
        await desk.writer.post(PATH, USER)
        for later, stale in ((59, 0), (61, 1)):
            desk.store.clock = lambda later=later: now + later * 1_000_000  # type: ignore[attr-defined, misc]
            assert await metrics(desk, "snapshot_age_seconds") == {labels: later}
            assert await metrics(desk, "snapshot_stale") == {labels: stale}
        desk.desk.max_age = 90.0
        assert await metrics(desk, "snapshot_stale") == {labels: 0}


@played
async def test_a_deferred_decision_is_learned_from_once_it_is_shown(tmp_path: Path) -> None:
    async with real(tmp_path) as desk:
        body = {**USER, "decision_id": "e", "deferred": True}
        assert (await desk.writer.post(PATH, body)).status == 200
        assert (await desk.writer.post(OUT, {"decision_id": "e", "click": 1})).status == 200
        await learned(desk.desk)
        assert desk.desk.learner.folds["demo"].learned.update_count == 0
        assert (await desk.writer.post(OUT, {"decision_id": "e", "shown": True})).status == 200
        await learned(desk.desk)
        assert desk.desk.learner.folds["demo"].learned.update_count == 1
        assert (await desk.writer.post(PATH, {**body, "deferred": False})).status == 409
