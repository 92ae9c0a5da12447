"""Hostile bodies behind heads that were met before: what the short way is given first, it leaves to the long way."""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.server.contending.line import Line
from tests.server.web.hostile import broken, cut, lacking, many, renamed, replaced
from tests.server.web.live import Live, counted, live

from stagewise.problem.errors import ErrorCode
from stagewise.server.web.fast_path import MAX_FAST_BODY_BYTES

LINES = 16
ASK, TELL = "/v1/demo/decisions", "/v1/demo/outcomes"
KNOWN: dict[str, dict[str, Any]] = {
    ASK: {"context": {"age": 34}, "decision_id": "known"},
    TELL: {"decision_id": "known", "click": 1, "opt_out": 0},
}
"""What was said before: said again it changes nothing."""
WRONG: dict[str, list[dict[str, Any]]] = {
    ASK: [
        *({"context": {"age": age}} for age in (1e308, -1, 17.999, None, "34", "", 2**63 - 1, -(2**63), 5e-324, [34])),
        {}, {"context": {}}, {"context": {"age": 34, "x": 1}}, {"context": {"": 1}}, {"context": {"age\0": 34}},
        *({**KNOWN[ASK], "decision_id": id_} for id_ in ("#1", "", "x" * 257, "a\nb", "\0", 7)),
        *({"context": {"age": 34}, "only": only} for only in ([], ["nobody"], "nothing", [1], ["nothing", "\0"], {})),
        {**KNOWN[ASK], "only": ["digest"]}, {**KNOWN[ASK], "only": ["nothing"] * 9},
        {"context": {"age": 35}, "decision_id": "known"}, {**KNOWN[ASK], "deferred": True},
        {**KNOWN[ASK], "deferred": 1}, {**KNOWN[ASK], "dry_run": "yes"},
    ],
    TELL: [
        *({"decision_id": "known", "click": value} for value in (0, 0.5, 2, -1, 1e308, None, "1", "x" * 999)),
        *({"decision_id": id_, "click": 1} for id_ in ("never", "#1", "", "x" * 257, "a\nb", "\0", 7, None)),
        *({**KNOWN[TELL], "outcome_id": id_} for id_ in ("#1", "", "x" * 257, "\0", 7)),
        *({"decision_id": "known", "shown": value} for value in (False, 1, 0, None, "no")),
        {}, {"decision_id": "known"}, {"click": 1}, {"decision_id": "known", "clicks": 1}, {**KNOWN[TELL], "": 1},
        {**KNOWN[TELL], "k" * 201: 1}, {**KNOWN[TELL], "\0": 1},
    ],
}  # fmt: skip
DEEP = [b"[" * 60_000, b'{"a":' * 12_000, b'{"context":{"age":' + b"9" * 60_000 + b"}}", b'{"click":1' + b"0" * 60_000]


def bodies(count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield paths that have a short way, and bodies that fit into it."""
    for path, wrong in WRONG.items():
        yield from ((path, body) for body in [*map(msgspec.json.encode, wrong), *DEEP])
    chance = random.Random(seed)
    for _ in range(count):
        path = chance.choice([ASK, TELL])
        body = chance.choice([broken, cut, replaced, renamed, lacking, many])(path, chance)
        if len(body) <= MAX_FAST_BODY_BYTES:
            yield path, body


async def met(line: Line, path: str, body: bytes, known: set[tuple[str, int]]) -> None:
    """Have the desk meet a head of this length: by something good that long, or by the body itself."""
    if (path, len(body)) not in known:
        known.add((path, len(body)))
        good = msgspec.json.encode(KNOWN[path])
        status, _ = await line.send(path, good.ljust(len(body)) if len(good) <= len(body) else body)
        assert status == 200 if len(good) <= len(body) else status < 500


async def refused(line: Line, path: str, body: bytes) -> None:
    """A hostile body is refused in a sentence, a list item by item."""
    status, told = await line.send(path, body)
    where = f"{path} {body[:300]!r} -> {status} {str(told)[:300]}"
    assert 400 <= status < 500 if isinstance(told, dict) else status == 200, where
    for item in told if isinstance(told, list) else [told]:
        assert {"code", "message"} <= item.keys() <= {"code", "message", "decision_id"}, where
        assert item["code"] in set(ErrorCode), where
        assert item["message"].isprintable(), where
        assert 10 < len(item["message"]) < 400, where


async def beside_others(desk: Live, sent: list[tuple[str, bytes]], short: Counter[str]) -> int:
    """Send hostile bodies on many lines at once, and good ones beside them; return how many good ones."""
    lines, good = [Line(desk.address, desk.writer) for _ in range(LINES)], itertools.count()
    known: set[tuple[str, int]] = set()
    for path, body in KNOWN.items():
        for _ in range(2):
            assert (await lines[0].post(path, body))[0] == 200
    assert (await lines[0].post(ASK, {"context": {"age": 34}, "decision_id": "good-0000"}))[0] == 200
    for path, body in sent:
        await met(lines[0], path, body, known)
    before, heads = desk.desk.rows(), short.total()
    for first in range(0, len(sent), LINES - 1):
        together, id_ = sent[first : first + LINES - 1], f"good-{next(good) + 1:04}"
        fine = lines[-1].post(ASK, {"context": {"age": 34}, "decision_id": id_})
        told, *_ = await asyncio.gather(fine, *(refused(line, *it) for line, it in zip(lines, together, strict=False)))
        assert (told[0], told[1]["decision_id"], told[1]["logged"]) == (200, id_, True)
    rows = desk.desk.rows()
    assert [row for row in rows if row not in before and row[1][:5] != "good-"] == []
    assert [row for row in before if row not in rows] == []
    assert short.total() - heads == len(sent) + next(good), "each was given to the short way first"
    for line in lines:
        line.hang_up()
    return len(rows) - len(before)


def hostile(place: Path | str, count: int, seed: int) -> None:
    """Be hostile to a desk on a port."""
    sent = list(bodies(count, seed))
    with live(place) as desk:
        short = counted(desk)
        good = asyncio.run(beside_others(desk, sent, short))
        assert good == -(-len(sent) // (LINES - 1))
        assert len(sent) > count * 0.8


def test_a_thousand_hostile_bodies_on_the_short_way(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    hostile(tmp_path, 1_000, seed=18)
    assert caplog.messages == []  # nothing of it was a failure inside the desk


def test_hostile_bodies_on_the_short_way_to_postgresql(postgres: str) -> None:
    hostile(postgres, 300, seed=19)
