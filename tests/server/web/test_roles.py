"""Who may what: a row for every route, so that a new one without a row fails."""

import asyncio
import json
from typing import Any

import pytest
from tests.server.server_helpers import played
from tests.server.web.real import USER, opened

from stagewise.server.access_keys import ROLES
from stagewise.server.web.routes import ROUTES

REASON = {"reason": "a test"}

ROWS: dict[tuple[str, str], tuple[str, str, Any, int]] = {
    # (method, route): (the least role, a path, a body, what it is answered with)
    ("POST", "/v1/{experiment}/decisions"): ("writer", "/v1/demo/decisions", USER, 200),
    ("POST", "/v1/{experiment}/outcomes"): ("writer", "/v1/demo/outcomes", {"decision_id": "e1", "click": 1}, 200),
    ("GET", "/v1/experiments"): ("reader", "/v1/experiments", None, 200),
    ("GET", "/v1/{experiment}"): ("reader", "/v1/demo", None, 200),
    ("GET", "/v1/{experiment}/decisions/{decision_id}"): ("reader", "/v1/demo/decisions/e1", None, 200),
    ("GET", "/v1/{experiment}/figures"): ("reader", "/v1/demo/figures", None, 200),
    ("GET", "/v1/{experiment}/log"): ("reader", "/v1/demo/log", None, 200),
    ("POST", "/v1/{experiment}/mode"): ("admin", "/v1/demo/mode", {"mode": "shadow", **REASON}, 200),
    ("POST", "/v1/{experiment}/kill"): ("admin", "/v1/demo/kill", REASON, 200),
    ("POST", "/v1/{experiment}/resume"): ("admin", "/v1/demo/resume", REASON, 200),
    ("POST", "/v1/{experiment}/forget-costs"): ("admin", "/v1/demo/forget-costs", {"action": "offer", **REASON}, 422),
    ("POST", "/v1/{experiment}/acknowledge"): ("admin", "/v1/demo/acknowledge", {"name": "opt_out", **REASON}, 422),
    ("POST", "/v1/{experiment}/problem"): ("admin", "/v1/demo/problem", {"problem": {}, **REASON}, 422),
    ("POST", "/v1/{experiment}/log"): ("admin", "/v1/demo/log", {"columns": {}, **REASON}, 422),
    ("POST", "/v1/kill"): ("admin", "/v1/kill", REASON, 200),
    ("POST", "/v1/resume"): ("admin", "/v1/resume", REASON, 200),
    ("GET", "/v1/keys"): ("admin", "/v1/keys", None, 200),
    ("POST", "/v1/keys"): ("admin", "/v1/keys", {"name": "new", "role": "reader"}, 201),
    ("DELETE", "/v1/keys/{name}"): ("admin", "/v1/keys/spare", None, 204),
    ("GET", "/readyz"): ("reader", "/readyz", None, 200),
    ("GET", "/metrics"): ("reader", "/metrics", None, 200),
    ("GET", "/version"): ("reader", "/version", None, 200),
    ("GET", "/openapi.json"): ("reader", "/openapi.json", None, 200),
    ("GET", "/livez"): ("", "/livez", None, 200),
}


def test_every_route_has_a_row() -> None:
    assert {(route.method, route.path): route.role or "" for route in ROUTES} == {
        key: row[0] for key, row in ROWS.items()
    }


@pytest.mark.parametrize("key", ROWS, ids=lambda key: " ".join(key))
def test_only_who_may_is_answered(key: tuple[str, str]) -> None:
    least, path, body, expected = ROWS[key]

    async def play() -> None:
        async with opened() as place:
            place.keys.add("spare", "reader")
            await place.writer.post("/v1/demo/decisions", {**USER, "decision_id": "e1"})
            before = place.rows()
            for name in ("", *ROLES):
                client = {"": place.nobody, "reader": place.reader, "writer": place.writer, "admin": place.admin}[name]
                sent = await (client.send(key[0], path) if body is None else client.post(path, body))
                if not least or (name and ROLES.index(name) >= ROLES.index(least)):
                    assert sent.status == expected
                    return  # whoever is above may too (test_keys)
                assert (sent.status, sent.plain["code"]) == ((403, "forbidden") if name else (401, "unauthorized"))
                assert place.rows() == before

    asyncio.run(play())


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "X" * 30])
@played
async def test_without_a_key_there_is_nothing_but_livez(method: str) -> None:
    async with opened() as place:
        paths = ["/nothing", "/v1", "/v1/", "/v1/demo/nothing", "/v1//decisions"]
        for path in [*(row[1] for row in ROWS.values() if row[0]), *paths]:
            sent = await place.nobody.send(method, path)
            assert sent.status == 401
            assert sent.headers["www-authenticate"] == "Bearer"
            assert (await place.nobody.holding("sw_admin_" + "0" * 64).send(method, path)).status == 401


@played
async def test_methods_and_paths_that_are_not_there() -> None:
    async with opened() as place:
        for row in ROWS:
            sent = await place.admin.send("PATCH", ROWS[row][1])
            assert (sent.status, sent.plain["code"]) == (405, "method_not_allowed")
            assert row[0] in sent.headers["allow"]
        for path in (
            "/nothing",
            "/v1",
            "/v1/",
            "/v1/demo/nothing",
            "/v1//decisions",
            "/v1/demo/decisions/a/b",
            "/%ff",
        ):
            sent = await place.admin.get(path)
            assert (sent.status, sent.plain["code"]) == (404, "not_found")
        for path, code in (
            ("/v1/nothing", "unknown_experiment"), ("/v1/nothing/log", "unknown_experiment"),
            ("/v1/nothing/figures", "unknown_experiment"), ("/v1/demo/decisions/nothing", "unknown_decision"),
        ):  # fmt: skip
            sent = await place.admin.get(path)
            assert (sent.status, sent.plain["code"]) == (404, code)
        head = await place.admin.send("HEAD", "/v1/demo")
        assert (head.status, head.content) == (200, b"")


@played
async def test_who_changed_what_is_the_keys_name() -> None:
    async with opened() as place:
        other = place.admin.holding(place.keys.add("night-shift", "admin"))
        await other.post("/v1/demo/mode", {"mode": "canary", "share": 0.1, **REASON})
        await other.post("/v1/demo/kill", REASON)
        await other.post("/v1/resume", REASON)
        rows = [row for name in ("demo", "") for row in place.store.events_of_kind(name, "control")]
        bodies = [json.loads(row.body) for row in rows]
        own = [body["what"] for body in bodies if body.get("actor") == "night-shift"]
        assert own == ["mode", "kill", "resume"]


@played
async def test_keys_are_made_and_revoked_by_http() -> None:
    async with opened() as place:
        made = (await place.admin.post("/v1/keys", {"name": "new", "role": "writer", "note": "ours"})).plain
        assert (await place.admin.holding(made["key"]).post("/v1/demo/decisions", USER)).status == 200
        assert (await place.admin.post("/v1/keys", {"name": "new", "role": "writer"})).status == 409
        listed = (await place.admin.get("/v1/keys")).content
        assert b'"new"' in listed
        assert made["key"].rpartition("_")[2].encode() not in listed
        assert (await place.admin.send("DELETE", "/v1/keys/new")).status == 204
        assert (await place.admin.holding(made["key"]).post("/v1/demo/decisions", USER)).status == 401
        assert (await place.admin.send("DELETE", "/v1/keys/new")).status == 404
        assert (await place.admin.send("DELETE", "/v1/keys/admin")).status == 409
