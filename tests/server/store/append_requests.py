"""Asks as a server makes them, and what must hold of every log."""

import msgspec

from stagewise.server.event_log import (
    DECISION,
    GENESIS_HASH,
    GLOBAL,
    OUTCOME,
    AppendRequest,
    Event,
    LogHead,
    compute_chain,
    encode_canonical,
)
from stagewise.server.store.base import Store


def control(experiment: str = "mail", what: str = "mode", key: str = "") -> AppendRequest:
    return AppendRequest(
        experiment, "control", key, encode_canonical({"what": what, "actor": "anna", "reason": "a test"})
    )


def problem(experiment: str = "mail", version: int = 1) -> AppendRequest:
    return AppendRequest(experiment, "problem", str(version), encode_canonical({"version": version, "problem": {}}))


def tick(experiment: str = "mail", at: int = 0) -> AppendRequest:
    return AppendRequest(experiment, "tick", "", b"{}", at=at)


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


def log_of(store: Store, experiment: str) -> list[Event]:
    """Return a whole log, page by page."""
    rows: list[Event] = []
    while page := store.events(experiment, rows[-1].seq if rows else 0, 700):
        rows += page
    return rows


def sound(store: Store) -> int:
    """Hold every log to what a log is: no gaps, a chain, a clock, ids once, each signal once; return the rows seen."""
    seen = 0
    for experiment in [GLOBAL, *store.experiments()]:
        rows = log_of(store, experiment)
        sound_log(experiment, rows, store.head(experiment))
        told: dict[int, dict[str, float]] = {}
        for row in rows:
            if row.kind == OUTCOME:
                values = said(row)["values"]
                assert values or not row.key.startswith("#"), "an outcome's row tells something, or remembers an id"
                assert not values.keys() & told.setdefault(row.decision_index, {}).keys(), "a signal counts once"
                told[row.decision_index] |= values
        count = store.head(experiment).decision_count
        for index in range(0, count, 1 + count // 500):
            assert store.answers(experiment, index) == told.get(index, {})
        seen += len(rows)
    return seen


def sound_log(experiment: str, rows: list[Event], head: LogHead) -> None:
    """Hold one log to what stands in its own rows."""
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    assert [row.at for row in rows] == sorted(row.at for row in rows)
    assert len({(row.kind, row.key) for row in rows}) == len(rows)
    decisions = [row for row in rows if row.kind == DECISION]
    assert [row.decision_index for row in decisions] == list(range(len(decisions)))
    indices = {row.key: row.decision_index for row in decisions}
    assert all(row.decision_index == indices[said(row)["decision_id"]] for row in rows if row.kind == OUTCOME)
    assert all(row.decision_index == -1 for row in rows if row.kind not in (DECISION, OUTCOME))
    chain = GENESIS_HASH
    for row in rows:
        chain = compute_chain(chain, experiment, row)
        assert row.chain == chain
    controls = [row.seq for row in rows if row.kind in ("control", "problem")]
    last = (rows[-1].seq, rows[-1].at) if rows else (0, 0)
    assert head == LogHead(*last, len(decisions), controls[-1] if controls else 0, chain)


def said(row: Event) -> dict[str, dict[str, float]]:
    return msgspec.json.decode(row.body)
