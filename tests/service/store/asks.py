"""Asks as a desk makes them, and what must hold of every log."""

import msgspec

from stagewise.service.records import DECISION, EVERYWHERE, ORIGIN, OUTCOME, Ask, Event, Head, canonical, chained
from stagewise.service.store.store import Store


def control(experiment: str = "mail", what: str = "mode", key: str = "") -> Ask:
    return Ask(experiment, "control", key, canonical({"what": what, "actor": "anna", "reason": "a test"}))


def problem(experiment: str = "mail", version: int = 1) -> Ask:
    return Ask(experiment, "problem", str(version), canonical({"version": version, "problem": {}}))


def tick(experiment: str = "mail", at: int = 0) -> Ask:
    return Ask(experiment, "tick", "", b"{}", at=at)


def decision(key: str, experiment: str = "mail", action: str = "none", control: tuple[int, int] = (-1, -1)) -> Ask:
    body = canonical({"action": action, "asked": {"context": {"age": 31.5}}, "probabilities": {"none": 0.25}})
    return Ask(experiment, DECISION, key, body, asked=action.encode(), control=control)


def outcome(of: str, experiment: str = "mail", key: str = "", **values: float) -> Ask:
    body = canonical({"of": sayable(of), "values": {sayable(name): value for name, value in values.items()}})
    return Ask(experiment, OUTCOME, key, body, asked=body if key else b"", of=of, values=values)


def sayable(text: str) -> str:
    """Return a text that JSON can hold: a test also asks for what no message could bring."""
    return text.encode(errors="replace").decode()


def log_of(store: Store, experiment: str) -> list[Event]:
    """Return a whole log, page by page."""
    rows: list[Event] = []
    while page := store.events(experiment, rows[-1].seq if rows else 0, 700):
        rows += page
    return rows


def sound(store: Store) -> int:
    """Hold every log to what a log is: no gaps, a chain, a clock, ids once, each signal once; return the rows seen."""
    seen = 0
    for experiment in [EVERYWHERE, *store.experiments()]:
        rows = log_of(store, experiment)
        sound_log(experiment, rows, store.head(experiment))
        told: dict[int, dict[str, float]] = {}
        for row in rows:
            if row.kind == OUTCOME:
                values = said(row)["values"]
                assert values or not row.key.startswith("#"), "an outcome's row tells something, or remembers an id"
                assert not values.keys() & told.setdefault(row.place, {}).keys(), "a signal counts once"
                told[row.place] |= values
        places = store.head(experiment).places
        for place in range(0, places, 1 + places // 500):
            assert store.answers(experiment, place) == told.get(place, {})
        seen += len(rows)
    return seen


def sound_log(experiment: str, rows: list[Event], head: Head) -> None:
    """Hold one log to what stands in its own rows."""
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    assert [row.at for row in rows] == sorted(row.at for row in rows)
    assert len({(row.kind, row.key) for row in rows}) == len(rows)
    decisions = [row for row in rows if row.kind == DECISION]
    assert [row.place for row in decisions] == list(range(len(decisions)))
    places = {row.key: row.place for row in decisions}
    assert all(row.place == places[said(row)["of"]] for row in rows if row.kind == OUTCOME)
    assert all(row.place == -1 for row in rows if row.kind not in (DECISION, OUTCOME))
    chain = ORIGIN
    for row in rows:
        chain = chained(chain, experiment, row)
        assert row.chain == chain
    controls = [row.seq for row in rows if row.kind in ("control", "problem")]
    last = (rows[-1].seq, rows[-1].at) if rows else (0, 0)
    assert head == Head(*last, len(decisions), controls[-1] if controls else 0, chain)


def said(row: Event) -> dict[str, dict[str, float]]:
    return msgspec.json.decode(row.body)
