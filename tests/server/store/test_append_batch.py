"""What settles a batch, against a model that searches a list; and however asks are cut into batches, it is the same."""

from itertools import count
from typing import Any, NamedTuple

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.server.store.append_requests import control, decision, outcome, problem, tick

from stagewise.server.event_log import (
    DECISION,
    GLOBAL,
    OUTCOME,
    SHOWN,
    AppendRequest,
    AppendResult,
    Event,
    WriterChain,
    encode_canonical,
)
from stagewise.server.store.append_batch import (
    BatchResult,
    StoreState,
    get_request_digest,
    get_touched_experiments,
    get_wanted_rows,
    resolve_batch,
)

IDS, EXPERIMENTS, SIGNALS = ["a", "b", "c"], ["mail", "push"], ["buy", "click", SHOWN]
CONTROLS = st.tuples(st.integers(-1, 20), st.integers(-1, 20))

decisions = st.builds(decision, st.sampled_from(IDS), st.sampled_from(EXPERIMENTS), st.sampled_from("xy"), CONTROLS)
outcomes = st.builds(
    lambda decision_id, experiment, key, values: outcome(decision_id, experiment, key, **values),
    st.sampled_from(IDS),
    st.sampled_from(EXPERIMENTS),
    st.sampled_from(["", "o1", "o2"]),
    st.dictionaries(st.sampled_from(SIGNALS), st.sampled_from([0.0, 1.0]), min_size=1),
)
others = st.one_of(
    st.builds(control, st.sampled_from([GLOBAL, *EXPERIMENTS]), st.sampled_from(["mode", "kill"]), st.just("")),
    st.builds(control, st.sampled_from(EXPERIMENTS), st.sampled_from(["mode", "kill"]), st.sampled_from(["c1", "c2"])),
    st.builds(problem, st.sampled_from(EXPERIMENTS), st.integers(1, 2)),
    st.builds(tick, st.sampled_from(EXPERIMENTS)),
)
batches = st.lists(st.lists(st.one_of(decisions, outcomes, decisions, outcomes, others), max_size=12), max_size=6)


class Memory:
    """A store that is two lists: what it holds for a batch is looked up, as a real one does."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, Event]] = []
        self.chain = WriterChain("me", bytes(32))
        self.told: dict[int, dict[str, float]] = {}

    def append(self, asks: list[AppendRequest], now: int) -> BatchResult:
        wanted, controls = set(get_wanted_rows(asks)), dict[str, int]()
        rows = {(name, event.kind, event.key): event for name, event in self.rows}
        found = {key: event for key, event in rows.items() if key in wanted}
        numbers = {event.number for event in found.values()}
        for (name, kind, _), event in rows.items():
            if kind in ("control", "problem") and name in get_touched_experiments(asks):
                controls[name] = event.number
        told = {number: dict(told) for number, told in self.told.items() if number in numbers}
        drawn, decided = count(len(self.rows) + 1), {name for name, kind, _ in rows if kind == DECISION}
        held = StoreState(self.chain, drawn, len(self.rows), controls, decided, found, told)
        batch = resolve_batch(asks, held, now)
        self.rows += batch.rows
        self.chain = held.chain
        for decision_, signal, value, _ in batch.answers:
            signals = self.told.setdefault(decision_, {})
            assert signal not in signals
            signals[signal] = value
        return batch

    def log(self, experiment: str) -> list[Event]:
        return [event for name, event in self.rows if name == experiment]


class Line(NamedTuple):
    """A row of the model's list."""

    ask: AppendRequest
    values: dict[str, float]


class Model:
    """The rules, in the plainest words: search all that was taken so far."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def last_control(self, experiment: str) -> int:
        asks = [(n, line.ask) for n, line in enumerate(self.lines, 1)]
        own = [n for n, ask in asks if ask.experiment == experiment and ask.kind in ("control", "problem")]
        return max(own, default=0)

    def ask(self, ask: AppendRequest) -> tuple[str, list[str], list[str]]:
        mine = [line for line in self.lines if line.ask.experiment == ask.experiment]
        for line in mine:
            if ask.key and (line.ask.kind, line.ask.key) == (ask.kind, ask.key):
                if get_request_digest(line.ask) != get_request_digest(ask):
                    return "conflict", [], []
                return "duplicate", sorted(line.values), sorted(ask.values.keys() - line.values)
        if ask.kind == OUTCOME:
            return self.outcome(ask, mine)
        if ask.kind == DECISION:
            now = self.last_control(ask.experiment), self.last_control(GLOBAL)
            if any(had != -1 and had < is_ for had, is_ in zip(ask.control, now, strict=True)):
                return "stale", [], []
        self.lines.append(Line(ask, {}))
        return "new", [], []

    def outcome(self, ask: AppendRequest, mine: list[Line]) -> tuple[str, list[str], list[str]]:
        if not any((line.ask.kind, line.ask.key) == (DECISION, ask.decision_id) for line in mine):
            return "unknown", [], []
        told: dict[str, float] = {}
        for line in mine:
            if line.ask.kind == OUTCOME and line.ask.decision_id == ask.decision_id:
                told |= line.values
        if any(told.get(signal, value) != value for signal, value in ask.values.items()):
            return "conflict", [], []
        if (told | ask.values).get(SHOWN) == 0.0 and told | ask.values != {SHOWN: 0.0}:
            return "conflict", [], []
        fresh = {signal: value for signal, value in ask.values.items() if signal not in told}
        if fresh or ask.key:
            self.lines.append(Line(ask, fresh))
        return ("new" if fresh else "duplicate"), sorted(fresh), sorted(ask.values.keys() - fresh.keys())


def plain(results: AppendResult) -> tuple[str, list[str], list[str]]:
    return results.status, list(results.accepted), list(results.duplicate)


@given(batches, st.lists(st.integers(0, 100), min_size=6, max_size=6))
def test_every_ask_is_settled_as_the_model_says(batches: list[list[AppendRequest]], clock: list[int]) -> None:
    memory, model = Memory(), Model()
    for asks, now in zip(batches, clock, strict=False):
        batch = memory.append(asks, now)
        expected = [model.ask(ask) for ask in asks]
        assert [plain(settled) for settled in batch.results] == expected
        assert all((settled.message == "") == (settled.status in ("new", "duplicate")) for settled in batch.results)
        rows = [event for _, event in batch.rows]
        assert [settled.event for settled in batch.results if settled.status == "new"] == [
            row for row in rows if row.kind != OUTCOME or msgspec.json.decode(row.body)["values"]
        ]
        assert all(row.at == now for row in rows)
    for experiment in [GLOBAL, *EXPERIMENTS]:
        rows = memory.log(experiment)
        lines = [line for line in model.lines if line.ask.experiment == experiment]
        assert [body_of(line) for line in lines] == [row.body for row in rows]


def body_of(line: Line) -> bytes:
    told = {"decision_id": line.ask.decision_id, "values": line.values}
    return encode_canonical(told) if line.ask.kind == OUTCOME else line.ask.body


@given(batches)
def test_batches_may_be_cut_anywhere(batches: list[list[AppendRequest]]) -> None:
    """One batch, many, or each ask alone: the same answers and the same rows, but for what was seen."""
    flat = [ask for batch in batches for ask in batch]
    results: list[Any] = []
    for cut in ([flat], batches, [[ask] for ask in flat]):
        memory = Memory()
        settled = [each for asks in cut for each in memory.append(list(asks), 50).results]
        rows = [(name, *row[:6], row[7], *row[9:]) for name, row in memory.rows]  # without code and `seen`
        results.append(([plain(each) for each in settled], rows, memory.told))
    assert results[0] == results[1] == results[2]


def test_what_the_body_says_besides_its_values_stays() -> None:
    memory = Memory()
    memory.append([decision("a"), outcome("a", click=1.0)], 1)
    body = encode_canonical({"decision_id": "a", "sent": "ff", "values": {"buy": 2, "click": 1.0, "shown": True}})
    ask = AppendRequest("mail", OUTCOME, "", body, decision_id="a", values={"buy": 2.0, "click": 1.0, SHOWN: 1.0})
    event = memory.append([ask], 2).results[0].event
    assert event is not None
    assert event.body == encode_canonical({"decision_id": "a", "sent": "ff", "values": {"buy": 2, "shown": True}})


def test_only_what_a_batch_touches_is_read() -> None:
    asks = [decision("a"), outcome("b", "push", click=1.0), outcome("c", key="o1", click=1.0), control()]
    assert get_touched_experiments(asks) == {GLOBAL, "mail"}
    assert set(get_wanted_rows(asks)) == {
        ("mail", "decision", "a"),
        ("push", "decision", "b"),
        ("mail", "decision", "c"),
        ("mail", "outcome", "o1"),
    }
