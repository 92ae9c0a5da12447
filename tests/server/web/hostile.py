"""Bodies that nobody should send, by a seed: each is wrong in one way at least, whatever else is right in it."""

import json
import random
from collections.abc import Iterator
from typing import Any

from tests.server.web.real import problem

REASON = {"reason": "a test"}
GOOD: dict[str, dict[str, Any]] = {
    "/v1/demo/decisions": {"context": {"age": 34}, "only": ["nothing", "offer"], "decision_id": "x", "dry_run": False},
    "/v1/demo/outcomes": {"decision_id": "known", "click": 1, "opt_out": 0, "outcome_id": "o", "shown": True},
    "/v1/demo/mode": {"mode": "canary", "share": 0.5, **REASON},
    "/v1/demo/kill": dict(REASON),
    "/v1/demo/resume": dict(REASON),
    "/v1/kill": dict(REASON),
    "/v1/resume": dict(REASON),
    "/v1/demo/acknowledge": {"name": "opt_out", **REASON},
    "/v1/demo/forget-costs": {"action": "offer", "before": 1.0, **REASON},
    "/v1/demo/problem": {"problem": problem().to_dict(), **REASON},
    "/v1/keys": {"name": "new", "role": "reader", "note": "a note"},
}  # fmt: skip
LOOSE = ("note", "features", "dry_run", "deferred")
WRONG = [
    {}, [], [[]], {"a": 1}, [None], -1, 10**30, 1.7e308, -1e308, "\x00", "a\nb", "x" * 3000,
    "<script>alert(1)</script>", "'; DROP TABLE events; --", "../../etc/passwd", "{{7*7}}", "\u202e\ufeff",
    "sw_admin_0", [1] * 50, {"a": {"b": {"c": []}}},
]  # fmt: skip
BROKEN = [
    b"", b" ", b"\x00", b"{", b"[", b"]", b"nul", b"{]", b'{"a":}', b"{'a': 1}", b'{"a":1,}', b'{"a" 1}',
    b"\xef\xbb\xbf{}",
    b'{"a":NaN}', b'{"a":Infinity}', b'{"a":-Infinity}', b'{"a":1e999}', b'{"a":+1}', b'{"a":01}', b'{"a":0x10}',
    b'{"a":.5}',
    b'{"a":"\xff\xfe"}', b'{"a":"\xed\xa0\x80"}', b'{"a":"\\ud800"}', b'{"a":"\\x00"}', b'{"a":"\n"}', b"//", b"<a/>",
    b"a=1&b=2",
    b'{"a":' + b"[" * 60_000 + b"]" * 60_000 + b"}", b"[" * 100_000, b'{"a":' * 50_000, b'{"a":' + b"9" * 60_000 + b"}",
    b'"text"', b"1", b"true", b"null", b"-0", b'{"' + b"k" * 5_000 + b'":1}',
]  # fmt: skip


def bodies(count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield paths and bodies."""
    chance = random.Random(seed)
    for _ in range(count):
        path = chance.choice(sorted(GOOD))
        yield path, chance.choice([broken, cut, replaced, renamed, lacking, many])(path, chance)


def broken(path: str, chance: random.Random) -> bytes:
    """Return what is no JSON, or no object."""
    return chance.choice(BROKEN)


def cut(path: str, chance: random.Random) -> bytes:
    """Return the beginning of a good body, perhaps with a byte that is no text."""
    whole = json.dumps(GOOD[path]).encode()
    return whole[: chance.randrange(1, len(whole))] + chance.choice([b"", b"\xff", b"\x00", b"NaN}"])


def replaced(path: str, chance: random.Random) -> bytes:
    """Return a good body with something wrong in the place of a field."""
    whole = body = json.loads(json.dumps(GOOD[path]))
    name = chance.choice([name for name in body if name not in LOOSE])
    while isinstance(body[name], dict) and body[name] and chance.random() < 0.7:
        body, name = body[name], chance.choice(list(body[name]))
    fitting = str if isinstance(body[name], str) else list if isinstance(body[name], list) else ()
    body[name] = chance.choice([value for value in WRONG if not isinstance(value, fitting) and value != body[name]])
    return json.dumps(whole).encode()


def renamed(path: str, chance: random.Random) -> bytes:
    """Return a good body in which a field that is needed, or any of a strict body, has another name."""
    body = dict(GOOD[path])
    name = chance.choice(NEEDED[path])
    body[chance.choice(["<b>", "", "__proto__", "\u0000", name + " ", name.upper() + "X"])] = body.pop(name)
    return json.dumps(body).encode()


def lacking(path: str, chance: random.Random) -> bytes:
    """Return a good body without what it needs."""
    body = dict(GOOD[path])
    del body[chance.choice(NEEDED[path])]
    return json.dumps(body).encode()


def many(path: str, chance: random.Random) -> bytes:
    """Return too much, or a list of bodies that are wrong."""
    kind = chance.randrange(3)
    if kind == 0:
        return b"[" + b",".join([b"{}"] * 1001) + b"]"
    if kind == 1:
        return json.dumps({**GOOD[path], "x": "y" * (1 << 20)}).encode()
    return b"[" + b",".join(lacking(path, chance) for _ in range(3)) + b"]"


NEEDED = {
    "/v1/demo/decisions": ["context"],
    "/v1/demo/outcomes": ["decision_id"],
    "/v1/demo/mode": ["mode", "reason"],
    "/v1/demo/acknowledge": ["name", "reason"],
    "/v1/demo/forget-costs": ["action", "reason"],
    "/v1/demo/problem": ["problem", "reason"],
    "/v1/keys": ["name", "role"],
    **{path: ["reason"] for path, body in GOOD.items() if body == REASON},
}
