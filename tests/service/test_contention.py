"""Sixty-four clients at once, with retries, conflicts, late and unknown outcomes: the log explains every answer."""

import asyncio
import random
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.service.desks import played
from tests.service.web.client import Client
from tests.service.web.real import Real, real

import stagewise as sw
from stagewise.service.records import ORIGIN, Event, chained

CLIENTS, IDS = 64, 40
FEW = 5.0  # seconds: thousands of exchanges, and a second has ids of its own
PATH = "/v1/demo"
SIGNALS = ("click", "opt_out")
Said = tuple[str, dict[str, Any], int, Any]


async def client(number: int, writer: Client, until: float, said: list[Said]) -> None:
    """Ask and tell, often what somebody has asked or told before, and sometimes what makes no sense."""
    rng = random.Random(number)
    while time.monotonic() < until:
        ago = 3 if rng.random() < 0.1 else 0  # a decision whose window has closed
        id_ = f"{rng.randrange(CLIENTS // 4)}-{rng.randrange(IDS)}-{int(until - time.monotonic()) + ago}"
        if rng.random() < 0.5:
            asked: dict[str, Any] = {"context": {"age": rng.choice([30.0, 40.0])}, "decision_id": id_}
            if rng.random() < 0.05:
                asked["context"] = {"age": "old"}
            answered = await writer.post(f"{PATH}/decisions", asked)
            said.append(("decisions", asked, answered.status, answered.plain))
        else:
            told: dict[str, Any] = {"decision_id": id_ if rng.random() < 0.9 else f"nobody-{id_}"}
            told |= {name: rng.randrange(2) for name in rng.sample(SIGNALS, rng.randrange(1, 3))}
            if rng.random() < 0.1:
                told["shown"] = rng.random() < 0.5
            if rng.random() < 0.2:
                told["outcome_id"] = f"o-{rng.randrange(200)}"
            answered = await writer.post(f"{PATH}/outcomes", told)
            said.append(("outcomes", told, answered.status, answered.plain))


async def operator(admin: Client, until: float) -> None:
    """Pull the kill switch and let go of it, now and then."""
    while time.monotonic() < until:
        await asyncio.sleep(0.7)
        assert (await admin.post(f"{PATH}/kill", {"reason": "a drill"})).status == 200
        await asyncio.sleep(0.3)
        assert (await admin.post(f"{PATH}/revive", {"reason": "it is over"})).status == 200


def played_problem() -> sw.Problem:
    """Return a problem whose windows close while it is played."""
    limits, window = {"opt_out": sw.Limit(0.02, safe=0.0, window="1s")}, {"window": "1s"}
    told: Any = {"actions": ["nothing", "digest", "offer"], "safe": "nothing", "context": {"age": (18, 99)}}
    return sw.Problem(**told, reward=sw.Reward("click", **window), limits=limits)


async def contended(place: Path | str, seconds: float) -> None:
    async with real(place, played_problem()) as desk:
        until, said = time.monotonic() + seconds, list[Said]()
        await asyncio.gather(
            operator(desk.admin, until), *(client(number, desk.writer, until, said) for number in range(CLIENTS))
        )
        check(desk, said)


def check(desk: Real, said: list[Said]) -> None:
    """Hold every answer against the log, and the log against itself."""
    events = desk.store.events("demo", limit=10**7)
    decisions, answers = read(events)
    late = late_in(events)
    assert any(late.values())
    assert {200, 404, 409, 422} <= {status for _, _, status, _ in said}
    assert not any(id_.startswith("nobody") for id_ in answers)
    first: dict[str, Any] = {}
    for path, sent, status, answer in said:
        id_ = sent["decision_id"]
        if path == "decisions" and status == 200:
            assert first.setdefault(id_, answer) == answer, "a retry is answered the same"
            body = decisions[id_]
            assert (body["action"], body["mode"]) == (answer["action"], answer["mode"])
            assert body["asked"]["context"] == sent["context"]
        elif path == "decisions":
            assert status == (422 if sent["context"]["age"] == "old" else 409)
            assert status == 422 or decisions[id_]["asked"]["context"] != sent["context"]
        elif status == 200:
            values = {name: float(sent[name]) for name in (*SIGNALS, "shown") if name in sent}
            assert sorted([*answer["taken"], *answer["known"]]) == sorted(values)
            assert all(answers[id_][name] == value for name, value in values.items())
            assert set(answer["late"]) == late[id_] & set(answer["taken"])
        elif status == 409:
            explained_conflict(sent, answers.get(id_, {}), answer)
        else:
            assert status == 404  # before it was decided, or of nobody


def late_in(events: list[Event]) -> dict[str, set[str]]:
    """Return by decision which of its signals came after their window."""
    dates = {event.key: event.at for event in events if event.kind == "decision"}
    late: dict[str, set[str]] = {id_: set() for id_ in dates}
    for event in events:
        if event.kind == "outcome":
            body = msgspec.json.decode(event.body)
            if event.at - dates[body["of"]] >= 1_000_000:
                late[body["of"]] |= body["values"].keys() & set(SIGNALS)
    return late


def explained_conflict(sent: dict[str, Any], known: dict[str, float], answer: Any) -> None:
    values = {name: float(sent[name]) for name in (*SIGNALS, "shown") if name in sent}
    other = any(known.get(name, value) != value for name, value in values.items())
    unshown = (known | values).get("shown") == 0.0 and len(known | values) > 1
    assert other or unshown or "outcome_id" in sent, answer


def read(events: list[Event]) -> tuple[dict[str, Any], dict[str, dict[str, float]]]:
    """Return decisions and what is known of them; each row follows the one before, and obeys the controls before it."""
    decisions: dict[str, Any] = {}
    answers: dict[str, dict[str, float]] = {}
    before, killed = ORIGIN, False
    for number, event in enumerate(events, 1):
        assert (event.seq, event.chain) == (number, chained(before, "demo", event._replace(chain=b"")))
        before, body = event.chain, msgspec.json.decode(event.body)
        if event.kind == "control":
            killed = {"kill": True, "trip": True, "revive": False}.get(body["what"], killed)
        elif event.kind == "decision":
            assert event.key not in decisions
            assert (body["mode"] == "killed") == killed, "no decision is written under controls that are past"
            assert not killed or body["action"] == "nothing"
            decisions[event.key] = body
        elif event.kind == "outcome":
            mine = answers.setdefault(body["of"], {})
            assert not mine.keys() & body["values"].keys()
            mine |= {name: float(value) for name, value in body["values"].items()}
    return decisions, answers


@played
async def test_every_answer_is_explained_by_the_log_on_sqlite(tmp_path: Path) -> None:
    await contended(tmp_path, FEW)


@played
async def test_every_answer_is_explained_by_the_log_on_postgresql(postgres: str) -> None:
    await contended(postgres, FEW)


@pytest.mark.slow
@played
async def test_ten_minutes_of_it(tmp_path: Path, postgres: str) -> None:
    await contended(tmp_path, 300.0)
    await contended(postgres, 300.0)
