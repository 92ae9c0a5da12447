"""GET: what stands there. Whatever reads the store does so in a thread, so that decisions go on."""

import asyncio
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import stagewise
from stagewise.service.records import Event
from stagewise.service.versions import said
from stagewise.service.web.bodies import About, Alive, Page, Ready, Row, Summary, Whole
from stagewise.service.web.call import Answer, Call, Refused, answer

if TYPE_CHECKING:
    from stagewise.service.desk import Desk
    from stagewise.service.experiment import Experiment
    from stagewise.service.store.store import Store

ROWS, MOST_ROWS = 1000, 10_000
ROWS_AT_ONCE, LARGEST_PAGE = 250, 1 << 24  # bytes


async def experiments(call: Call) -> Answer:
    """List the experiments."""
    names = call.desk.experiments()
    return answer([Summary(**fields_of(call.desk, call.desk.experiment(name))) for name in names])


async def experiment(call: Call) -> Answer:
    """Tell an experiment."""
    found = call.desk.experiment(call.words[0])
    return answer(Whole(**fields_of(call.desk, found), problem=said(found.current)))


async def explain(call: Call) -> Answer:
    """Tell everything about a decision."""
    return answer(await asyncio.to_thread(call.desk.explain, *call.words))


async def figures(call: Call) -> Answer:
    """Tell what the page shows."""
    return answer(await asyncio.to_thread(call.desk.figures, call.words[0]))


async def log(call: Call) -> Answer:
    """Tell rows of the log."""
    name = call.desk.experiment(call.words[0]).name
    asked = numbers_of(call.query, {"after": 0, "limit": ROWS})
    if not 1 <= asked["limit"] <= MOST_ROWS:
        raise Refused(422, f"limit is {asked['limit']}; it must be from 1 to {MOST_ROWS}")
    events, more = await asyncio.to_thread(some_rows, call.desk.store, name, asked["after"], asked["limit"])
    rows = [row_of(event) for event in events]
    return answer(Page(rows, rows[-1].seq if rows else asked["after"], more))


def some_rows(store: "Store", name: str, after: int, limit: int) -> tuple[list[Event], bool]:
    """Return rows, and whether there are more: at most so many, and not many more bytes than an answer should have.

    The parts of an offline log are large, so rows are read a few at a time.
    """
    found, size = list[Event](), 0
    while True:
        portion = store.events(name, found[-1].seq if found else after, min(ROWS_AT_ONCE, limit + 1 - len(found)))
        for event in portion:
            if len(found) == limit or (found and size + len(event.body) > LARGEST_PAGE):
                return found, True
            found.append(event)
            size += len(event.body)
        if not portion:
            return found, False


async def alive(call: Call) -> Answer:
    """Say that the process is there."""
    return answer(Alive())


async def ready(call: Call) -> Answer:
    """Say whether the desk is ready."""
    well, why = await asyncio.to_thread(call.desk.ready)
    return answer(Ready(well, why), 200 if well else 503)


async def version(call: Call) -> Answer:
    """Say what runs here."""
    return answer(About(stagewise.__version__))


def fields_of(desk: "Desk", found: "Experiment") -> dict[str, Any]:
    """Return how an experiment stands."""
    killed = desk.everywhere.killed or found.killed
    return {
        "name": found.name,
        "mode": found.mode,
        "share": found.share,
        "killed": None if killed is None else killed.sentence,
        "version": found.version,
        "state": found.state,
        "snapshot_age_s": round(max(0.0, time.monotonic() - found.snapshot_at), 3),
        "doubts": {doubt: cause.sentence for doubt, cause in found.doubts.items()},
    }


def row_of(event: Event) -> Row:
    """Return a row as it is told."""
    seq, at, kind, key, place, body, chain, asked = event
    return Row(seq, at, kind, key, place, body.decode(), chain.hex(), asked.hex())


def numbers_of(query: bytes, known: dict[str, int]) -> dict[str, int]:
    """Return the whole numbers that a query gives, and what they are where it is silent."""
    asked = dict(known)
    for name, text in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        if name not in known:
            raise Refused(422, f"{name!r} is no parameter here; they are {', '.join(known)}")
        if not (text.isascii() and text.isdigit() and len(text) <= 18):
            raise Refused(422, f"{name} is {text[:50]!r}; it must be a whole number, 0 or more")
        asked[name] = int(text)
    return asked
