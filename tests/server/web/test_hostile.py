"""Whatever is sent: a refusal in one sentence, nothing changed, never a failure of ours."""

from pathlib import Path
from typing import Any

import pytest
from tests.server.server_helpers import played
from tests.server.web.client import Answered
from tests.server.web.hostile import bodies
from tests.server.web.real import Real, opened, real

PATH = "/v1/demo/decisions"


def sentence_of(sent: Answered) -> list[str]:
    """Return why something was refused, item by item."""
    told: Any = sent.plain
    items = told if isinstance(told, list) else [told]
    words = [item["message"] for item in items]
    return [item["message"] if isinstance(item, dict) else item for item in words]


async def refused_all(desk: Real, count: int, seed: int) -> None:
    """Send bodies that nobody should send."""
    await desk.writer.post(PATH, {"context": {"age": 34}, "decision_id": "known"})
    before = desk.rows()
    for number, (path, body) in enumerate(bodies(count, seed)):
        sent = await desk.admin.send("POST", path, body)
        where = f"body {number} of seed {seed}: {path} {body[:300]!r} -> {sent.status} {sent.content[:300]!r}"
        whole = isinstance(sent.plain, dict)
        assert 400 <= sent.status < 500 if whole else sent.status == 200, where
        for sentence in sentence_of(sent):
            assert sentence.isprintable(), where
            assert 10 < len(sentence) < 400, where
        if number % 50 == 0:
            assert desk.rows() == before, where
    assert desk.rows() == before
    assert (await desk.writer.post(PATH, {"context": {"age": 34}})).status == 200


@played
async def test_a_thousand_hostile_bodies(tmp_path: Path) -> None:
    async with real(tmp_path) as desk:
        await refused_all(desk, 1_000, seed=16)


@played
async def test_a_thousand_hostile_bodies_on_postgresql(postgres: str) -> None:
    async with real(postgres) as desk:
        await refused_all(desk, 1_000, seed=17)
        for path in ("/v1/%00", *(f"/v1/demo/decisions/{name}" for name in ("%00", "%ED%A0%80", "%F0%9F%92%A9"))):
            assert (await desk.reader.get(path)).status == 404
        assert (await desk.admin.send("DELETE", "/v1/keys/%00")).status == 404
        assert (await desk.admin.post("/v1/keys", {"name": "a", "role": "reader", "note": "\u0000"})).status == 422
        odd = {"context": {"age": 34}, "decision_id": "💩\u2028<b>'\"\\"}
        made = await desk.writer.post(PATH, odd)
        assert (made.status, made.plain["decision_id"]) == (200, odd["decision_id"])
        assert (await desk.admin.post("/v1/demo/kill", {"reason": "a\u0000b😀"})).status == 200


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@played
async def test_many_more_hostile_bodies(seed: int, tmp_path: Path) -> None:
    async with real(tmp_path) as desk:
        await refused_all(desk, 5_000, seed)


@played
async def test_kinds_and_sizes_of_bodies() -> None:
    async with opened() as place:
        good = b'{"context":{"age":34}}'
        for kind in (
            None,
            "",
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/json; charset=latin-1",
            "a" * 999,
        ):
            assert (await place.writer.send("POST", PATH, good, kind=kind)).status == 415
        for kind in (
            "application/json",
            "Application/JSON",
            "application/json;charset=UTF-8",
            'application/json; charset="utf-8"',
        ):
            assert (await place.writer.send("POST", PATH, good, kind=kind)).status == 200
        assert (await place.writer.send("POST", PATH, good, headers={"content-encoding": "gzip"})).status == 415
        large = b" " * (1 << 20) + good
        assert (await place.writer.send("POST", PATH, large)).status == 413
        assert (await place.writer.send("POST", PATH, [large[: 1 << 19]] * 3)).status == 413
        assert (await place.writer.send("POST", PATH, [good[:5], b"", good[5:]])).status == 200
        lying = await place.writer.send("POST", PATH, good, headers={"content-length": "9" * 30})
        assert (lying.status, lying.headers["connection"]) == (413, "close")
        assert (await place.writer.send("POST", PATH, b" " * ((1 << 20) - len(good)) + good)).status == 200
        assert (await place.writer.post(PATH, [{"context": {"age": 34}}] * 1000)).status == 200
        assert (await place.writer.post(PATH, [{"context": {"age": 34}}] * 1001)).status == 422


@played
async def test_a_client_that_hangs_up_or_stalls_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stagewise.server.web.requests.BODY_TIMEOUT", 0.05)
    async with opened() as place:
        before, sent = place.rows(), list[Any]()

        async def ask(messages: list[dict[str, Any]]) -> None:
            import asyncio

            async def receive() -> dict[str, Any]:
                if not messages:
                    await asyncio.sleep(60)
                return messages.pop(0)

            async def send(message: dict[str, Any]) -> None:
                sent.append(message)

            headers = [
                (b"authorization", f"Bearer {place.writer.key}".encode()),
                (b"content-type", b"application/json"),
            ]
            scope = {"type": "http", "method": "POST", "path": PATH, "headers": headers}
            await place.app(scope, receive, send)

        part = {"type": "http.request", "body": b'{"context":', "more_body": True}
        await ask([{"type": "http.disconnect"}])
        await ask([dict(part), {"type": "http.disconnect"}])
        assert sent == []
        await ask([dict(part)])
        assert sent[0]["status"] == 408
        assert place.rows() == before
