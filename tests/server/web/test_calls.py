"""Decisions and outcomes by HTTP: one, many, again, and when the store is away."""

import json
from io import StringIO

import pytest
from tests.server.server_helpers import played
from tests.server.web.real import USER, opened

from stagewise.server.web.app import HttpSettings
from stagewise.server.web.requests import RateLimit

PATH, OUT = "/v1/demo/decisions", "/v1/demo/outcomes"


@played
async def test_a_list_is_answered_item_by_item() -> None:
    async with opened() as place:
        sent = [
            {**USER, "decision_id": "a"}, {"context": {"age": 3}}, 4, {"nothing": 1}, {**USER, "decision_id": "a"},
            {"context": {"age": 99}, "decision_id": "a"}, {**USER, "dry_run": True},
        ]  # fmt: skip
        decided = await place.writer.post(PATH, sent)
        assert decided.status == 200
        told = [item["code"] if "code" in item else item["logged"] for item in decided.plain]
        invalid = "invalid_request"
        assert told == [True, "context_out_of_range", invalid, invalid, True, "conflict", False]
        assert decided.plain[5]["decision_id"] == "a"
        outcomes = [{"decision_id": "a", "click": True}, {"decision_id": "b", "click": 1}, {"decision_id": "a"}, []]
        taken = await place.writer.post(OUT, outcomes)
        assert [item.get("accepted") for item in taken.plain] == [["click"], None, None, None]
        codes = ["unknown_decision", "outcome_missing", "invalid_request"]
        assert [item["code"] for item in taken.plain[1:]] == codes
        assert (await place.writer.post(PATH, [])).plain == []


@played
async def test_an_outcome_is_signals_by_name_and_shown() -> None:
    async with opened() as place:
        await place.writer.post(PATH, {**USER, "decision_id": "a"})
        told = await place.writer.post(OUT, {"decision_id": "a", "opt_out": False, "shown": True})
        decision, row = (place.store.events_of_kind("demo", kind)[0] for kind in ("decision", "outcome"))
        assert place.store.answers(decision.number) == {"opt_out": 0.0, "shown": True}
        rest = {"accepted": ["opt_out", "shown"], "duplicate": [], "late": [], "receipt": row.receipt}
        assert told.plain == {"decision_id": "a", **rest}
        wrong = [
            {"click": 1}, {"decision_id": 4, "click": 1}, {"decision_id": "a"},
            {"decision_id": "a", "click": "yes"},
            {"decision_id": "a", "click": None}, {"decision_id": "a", "click": [1]},
            {"decision_id": "a", "shown": 1},
            {"decision_id": "a", "clack": 1}, {"decision_id": "a", "click": 2}, {"decision_id": "", "click": 1},
            {"decision_id": "a\n", "click": 1}, {"decision_id": "a", "outcome_id": 7, "click": 1},
        ]  # fmt: skip
        before = place.rows()
        for body in wrong:
            assert (await place.writer.post(OUT, body)).status == 422, body
        assert place.rows() == before


@played
async def test_when_the_store_is_away_a_decision_is_the_safe_action_and_503() -> None:
    async with opened() as place:
        await place.writer.post(PATH, {**USER, "decision_id": "a"})
        place.store.down = True
        one = await place.writer.post(PATH, USER)
        assert (one.status, one.headers["retry-after"]) == (503, "1")
        assert (one.plain["action"], one.plain["logged"]) == ("nothing", False)
        many = await place.writer.post(PATH, [USER, {"context": {}}])
        assert many.status == 503
        assert many.plain[0]["action"] == "nothing"
        assert many.plain[1]["code"] == "missing_context_field"
        dry = await place.writer.post(PATH, {**USER, "dry_run": True})
        assert dry.status == 200  # nothing was to be written
        for path, body in (
            (OUT, {"decision_id": "a", "click": 1}), (OUT, [{"decision_id": "a", "click": 1}]),
            ("/v1/demo/kill", {"reason": "x"}), ("/v1/keys", {"name": "x", "role": "reader"}),
        ):  # fmt: skip
            away = await place.admin.post(path, body)
            assert (away.status, away.plain["code"]) == (503, "store_unavailable")
        assert (await place.reader.get("/v1/demo/log")).status == 503
        assert (await place.reader.get("/readyz")).status == 503
        assert (await place.reader.get("/livez")).status == 200
        place.store.down = False
        assert (await place.writer.post(OUT, {"decision_id": "a", "click": 1})).status == 200


@played
async def test_the_log_is_read_in_pages() -> None:
    async with opened() as place:
        await place.writer.post(PATH, [USER] * 7)
        pages, after, more = [], 0, True
        while more:
            page = (await place.reader.get("/v1/demo/log", f"after={after}&limit=3")).plain
            pages.append([row["seq"] for row in page["rows"]])
            after, more = page["after"], page["more"]
        assert pages == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
        assert json.loads(page["rows"][0]["body"])
        for query, code in {
            "after=-1": "invalid_request",
            "after=x": "invalid_request",
            "limit=0": "out_of_range",
            "limit=10001": "out_of_range",
            "before=3": "unknown_name",
            "after=" + "9" * 30: "invalid_request",
            "after=%FF": "invalid_request",
        }.items():
            answered = await place.reader.get("/v1/demo/log", query)
            assert (answered.status, answered.plain["code"]) == (422, code)


@played
async def test_a_key_that_asks_too_much_waits_and_the_others_do_not() -> None:
    async with opened(HttpSettings(rate=RateLimit(per_second=1e-3, burst=4), log=False)) as place:
        assert (await place.writer.post(PATH, [USER] * 3)).status == 200
        assert (await place.writer.post(PATH, USER)).status == 200
        before = place.rows()
        refused = await place.writer.post(PATH, USER)
        assert (refused.status, int(refused.headers["retry-after"]) > 900) == (429, True)
        assert refused.plain["code"] == "rate_limited"
        assert place.rows() == before
        assert (await place.admin.post(PATH, [USER] * 5)).status == 429
        assert (await place.admin.post(PATH, USER)).status == 200


@played
async def test_every_answer_has_the_safe_headers() -> None:
    async with opened() as place:
        for sent in (
            await place.writer.post(PATH, USER), await place.nobody.get("/livez"), await place.nobody.get("/x"),
            await place.writer.send("POST", PATH, b"{"), await place.reader.get("/metrics"),
        ):  # fmt: skip
            assert sent.headers["x-content-type-options"] == "nosniff"
            assert sent.headers["cache-control"] == "no-store"
            assert sent.headers["referrer-policy"] == "no-referrer"
            assert "frame-ancestors 'none'" in sent.headers["content-security-policy"]
            assert sent.headers["x-request-id"]


@played
async def test_a_request_is_one_line_of_the_log_without_bodies_and_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = StringIO()
    async with opened(HttpSettings(log=True)) as place:
        monkeypatch.setattr("sys.stderr", stream)
        await place.writer.post(PATH, {**USER, "decision_id": "my-own-id"})
        await place.writer.post(PATH, {"context": {"age": "secret words"}})
        await place.reader.get("/v1/demo/decisions/my-own-id")
        await place.nobody.get("/nothing", "token=secret")

        async def failing(*_: object) -> None:
            raise KeyError("secret words")

        monkeypatch.setattr(place.desk, "decide", failing)
        failed = await place.writer.post(PATH, USER)
        assert (failed.status, failed.plain["code"], b"secret" in failed.content) == (500, "internal_error", False)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    told = [(line.get("route", ""), line["status"], line.get("key", ""), line.get("error", "")) for line in lines]
    assert [row[:3] for row in told] == [
        ("/v1/{experiment}/decisions", 200, "app"),
        ("/v1/{experiment}/decisions", 422, "app"),
        ("/v1/{experiment}/decisions/{decision_id}", 200, "viewer"),
        ("", 401, ""),
        ("/v1/{experiment}/decisions", 500, "app"),
    ]
    assert told[-1][3].startswith("KeyError at ")
    assert len({line["id"] for line in lines}) == 5
    assert [word for word in ("secret", "my-own-id", "sw_", "age") if word in stream.getvalue()] == []
