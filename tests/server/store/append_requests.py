"""Asks as a server makes them, and what must hold of every log."""

import msgspec

from stagewise.server.audit.log_reader import FindingCode
from stagewise.server.audit.verify import verify_store
from stagewise.server.event_log import DECISION, OUTCOME, AppendRequest, Event, LogHead, encode_canonical
from stagewise.server.store.base import Store


def control(experiment: str = "mail", what: str = "mode", key: str = "") -> AppendRequest:
    return AppendRequest(
        experiment, "control", key, encode_canonical({"what": what, "actor": "anna", "reason": "a test"})
    )


def problem(experiment: str = "mail", version: int = 1) -> AppendRequest:
    return AppendRequest(experiment, "problem", str(version), encode_canonical({"version": version, "problem": {}}))


def tick(experiment: str = "mail") -> AppendRequest:
    return AppendRequest(experiment, "tick", "", b"{}")


def decision(
    key: str, experiment: str = "mail", action: str = "none", control: tuple[int, int] = (-1, -1)
) -> AppendRequest:
    body = encode_canonical({"action": action, "request": {"context": {"age": 31.5}}, "probabilities": {"none": 0.25}})
    return AppendRequest(experiment, DECISION, key, body, request_digest=action.encode(), control=control)


def outcome(decision_id: str, experiment: str = "mail", key: str = "", **values: float) -> AppendRequest:
    body = encode_canonical(
        {"decision_id": sayable(decision_id), "values": {sayable(name): value for name, value in values.items()}}
    )
    return AppendRequest(
        experiment, OUTCOME, key, body, request_digest=body if key else b"", decision_id=decision_id, values=values
    )


def sayable(text: str) -> str:
    """Return a text that JSON can hold: a test also asks for what no message could bring."""
    return text.encode(errors="replace").decode()


def sealed(store: Store) -> Store:
    """Return a store all of whose rows are sealed, as by a learner."""
    while not store.read_only and store.seal():
        pass
    return store


def log_of(store: Store, experiment: str) -> list[Event]:
    """Return a whole log, page by page."""
    sealed(store)
    rows: list[Event] = []
    while page := store.events(experiment, rows[-1].seq if rows else 0, 700):
        rows += page
    return rows


MEANING = {FindingCode.ROW_MALFORMED, FindingCode.NOT_IN_EFFECT, FindingCode.VERSION_INVALID, FindingCode.WRONG_NUMBER}
"""What an audit finds in rows that only a test makes: their bodies say nothing of how they were decided."""


def sound(store: Store) -> int:
    """Hold every log to what a log is: sealed, chained, ids once, each signal once; return the rows of experiments."""
    seen = 0
    for experiment in store.logs():
        rows = log_of(store, experiment)
        sound_log(rows, store.head(experiment))
        told: dict[int, dict[str, float]] = {}
        for row in rows:
            if row.kind == OUTCOME:
                values = said(row)["values"]
                assert values or not row.key.startswith("#"), "an outcome's row tells something, or remembers an id"
                assert not values.keys() & told.setdefault(row.decision, {}).keys(), "a signal counts once"
                told[row.decision] |= values
        decisions = [row.number for row in rows if row.kind == DECISION]
        for number in decisions[:: 1 + len(decisions) // 500]:
            assert store.answers(number) == told.get(number, {})
        seen += len(rows) if experiment else 0
    found = verify_store(store)
    assert (found.fault, {fault.code for fault in found.faults} - MEANING) == (None, set())
    assert found.unsealed == 0
    return seen


def sound_log(rows: list[Event], head: LogHead) -> None:
    """Hold one log to what stands in its own rows."""
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    assert len({(row.kind, row.key) for row in rows}) == len({row.number for row in rows}) == len(rows)
    assert all(row.seen < row.number for row in rows)
    numbers = {row.key: row.number for row in rows if row.kind == DECISION}
    assert all(row.decision == numbers[said(row)["decision_id"]] for row in rows if row.kind == OUTCOME)
    assert all(row.decision == -1 for row in rows if row.kind != OUTCOME)
    controls = [row.number for row in rows if row.kind in ("control", "problem")]
    last = max((row.at for row in rows), default=0)
    assert head == LogHead(len(rows), last, len(numbers), max(controls, default=0), len(rows))


def said(row: Event) -> dict[str, dict[str, float]]:
    return msgspec.json.decode(row.body)
