"""What every store promises, whatever it is made of: one contract, and after each test every log is sound."""

import threading
from collections.abc import Callable, Iterator

import pytest
from tests.problem.refusal import refused
from tests.server.store.append_requests import control, decision, log_of, outcome, problem, sealed, sound

from stagewise.problem.errors import ErrorCode
from stagewise.server.event_log import GLOBAL, SHOWN, AppendRequest, KeyRow, LogHead, StoredSnapshot, encode_canonical
from stagewise.server.store.base import Store, StoreUnavailable

SECOND = 1_000_000


class Clock:
    """A clock that tells what it is told."""

    def __init__(self) -> None:
        self.time = 1_700_000_000 * SECOND

    def __call__(self) -> int:
        return self.time


def verdicts(store: Store, *asks: AppendRequest) -> list[str]:
    return [settled.status for settled in store.append(asks)]


class StoreContract:
    """Subclassed for each store, with a fixture `opened` that opens the same store again."""

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def store(self, opened: Callable[..., Store], clock: Clock) -> Iterator[Store]:
        store = opened(clock=clock)
        yield store
        store.close()
        again = opened(clock=clock)
        sound(again)
        again.close()

    def test_an_empty_store_holds_nothing(self, store: Store) -> None:
        assert store.experiments() == []
        assert store.head("mail") == store.head(GLOBAL) == LogHead()
        assert store.events("mail") == store.events_of_kind("mail", "decision") == []
        assert store.find("mail", "decision", "a") is None
        assert store.append([]) == []

    def test_trying_out_leaves_nothing(self, opened: Callable[..., Store], store: Store) -> None:
        store.append([problem(), decision("a")])
        before = store.logs(), log_of(store, "mail"), store.head("mail"), store.head(GLOBAL)
        for _ in range(2):
            store.test_write()
        assert (store.logs(), log_of(store, "mail"), store.head("mail"), store.head(GLOBAL)) == before
        reader = opened(read_only=True)
        with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
            reader.test_write()
        reader.close()

    def test_rows_come_back_as_they_were_written(self, store: Store, clock: Clock) -> None:
        asks = [
            problem(),
            decision("a"),
            outcome("a", click=1.0, open=0.1),
            AppendRequest("mail", "tick", "", b"{}"),
            control(),
        ]
        rows = [settled.event for settled in store.append(asks)]
        assert [row._replace(seq=0) for row in log_of(store, "mail")] == rows
        assert [row.kind for row in rows] == ["problem", "decision", "outcome", "tick", "control"]
        numbers = [row.number for row in rows]
        assert numbers == list(range(numbers[0], numbers[0] + 5))
        assert [row.key for row in rows] == ["1", "a", f"#{numbers[2]}", str(numbers[3]), str(numbers[4])]
        assert [row.decision for row in rows] == [-1, -1, numbers[1], -1, -1]
        assert [row.body for row in rows] == [ask.body for ask in asks]
        assert {row.at for row in rows} == {clock.time}
        assert store.answers(numbers[1]) == {"click": 1.0, "open": 0.1}
        assert store.experiments() == ["mail"]

    def test_pages_and_kinds(self, store: Store) -> None:
        store.append([problem(), *(decision(f"d{n}") for n in range(5)), outcome("d0", click=0.0), decision("d5")])
        assert [row.seq for row in sealed(store).events("mail", 3, 2)] == [4, 5]
        third = store.find("mail", "decision", "d2").number
        assert [row.key for row in store.events_of_kind("mail", "decision", third, 3)] == ["d3", "d4", "d5"]
        assert store.find_place("mail", third) == 4
        assert store.row("mail", third).key == "d2"
        assert [row.number for row in store.outcomes("mail", third - 2)] == [third + 3]
        assert store.find("mail", "outcome", "d5") is None
        assert store.find("other", "decision", "d5") is None

    def test_the_same_id_is_written_once(self, store: Store) -> None:
        first, again = store.append([decision("a")]), store.append([decision("a")])
        assert again[0].status == "duplicate"
        assert again[0].event == first[0].event
        other = store.append([decision("a", action="push")])[0]
        assert other.status == "conflict"
        assert other.event == first[0].event
        assert store.head("mail").seq == 1
        assert verdicts(store, decision("a", "other")) == ["new"], "ids belong to an experiment"

    def test_duplicates_within_a_batch(self, store: Store) -> None:
        batch = [decision("a"), decision("a"), decision("a", action="push"), outcome("a", click=1.0)]
        batch += [outcome("a", click=1.0), outcome("a", click=0.0)]
        assert verdicts(store, *batch) == ["new", "duplicate", "conflict", "new", "duplicate", "conflict"]
        assert store.head("mail").seq == 2

    def test_each_signal_counts_once(self, store: Store) -> None:
        store.append([decision("a"), outcome("a", click=1.0)])
        same, partly, other = store.append(
            [outcome("a", click=1.0), outcome("a", click=1.0, buy=0.0), outcome("a", buy=1.0, late=2.0)]
        )
        assert (same.status, same.accepted, same.duplicate) == ("duplicate", (), ("click",))
        assert (partly.status, partly.accepted, partly.duplicate) == ("new", ("buy",), ("click",))
        assert partly.event.body == encode_canonical({"decision_id": "a", "values": {"buy": 0.0}})
        assert other.status == "conflict"
        number = store.find("mail", "decision", "a").number
        assert store.answers(number) == {"click": 1.0, "buy": 0.0}, "nothing of a refused outcome is written"
        assert store.answers(number + 1) == {}

    def test_an_outcome_with_an_id(self, store: Store) -> None:
        store.append([decision("a"), decision("b"), outcome("a", click=1.0)])
        content = outcome("a", key="o1", click=1.0, buy=3.0)
        first, again = store.append([content])[0], store.append([content])[0]
        assert (first.status, first.accepted, first.duplicate) == ("new", ("buy",), ("click",))
        assert again == first._replace(status="duplicate"), "who asks again is answered the same"
        assert verdicts(store, outcome("b", key="o1", click=1.0), outcome("b", key="o2", click=1.0)) == [
            "conflict",
            "new",
        ]

    def test_an_id_that_added_nothing_is_remembered(self, store: Store) -> None:
        store.append([decision("a"), outcome("a", click=1.0)])
        first, again = (store.append([outcome("a", key="o1", click=1.0)])[0] for _ in range(2))
        assert (first.status, first.accepted, first.duplicate) == ("duplicate", (), ("click",))
        assert first.event is not None
        assert first.event.body == encode_canonical({"decision_id": "a", "values": {}})
        assert again == first
        assert verdicts(store, outcome("a", key="o1", buy=1.0)) == ["conflict"], "an id stands for one content"
        assert store.answers(store.find("mail", "decision", "a").number) == {"click": 1.0}

    def test_an_outcome_is_answered_the_same_whatever_came_meanwhile(self, store: Store, clock: Clock) -> None:
        store.append([decision("a")])
        clock.time += 90 * SECOND
        content, batch = outcome("a", key="o1", click=1.0, shown=1.0), [decision("b"), outcome("b", key="o2", buy=1.0)]
        first, (_, other) = store.append([content])[0], store.append(batch)
        assert first.event.at - first.decided_at == 90 * SECOND
        clock.time += SECOND
        rows = log_of(store, "mail")
        more = outcome("a", key="o3", buy=2.0, click=1.0)
        assert store.append([more, content, *batch])[1:] == [
            first._replace(status="duplicate"), store.append(batch)[0], other._replace(status="duplicate"),
        ]  # fmt: skip
        assert log_of(store, "mail")[: len(rows)] == rows
        assert store.head("mail").seq == len(rows) + 1

    def test_an_outcome_of_no_decision(self, store: Store) -> None:
        store.append([decision("a")])
        settled = store.append([outcome("b", click=1.0), outcome("a", "other", click=1.0)])
        assert [each.status for each in settled] == ["unknown", "unknown"]
        assert store.logs() == [GLOBAL, "mail"]
        assert store.head("other") == LogHead()

    def test_not_shown(self, store: Store) -> None:
        store.append([decision("a")])
        body = encode_canonical({"decision_id": "a", "values": {"shown": False}})
        ask = AppendRequest("mail", "outcome", "", body, decision_id="a", values={SHOWN: 0.0})
        assert verdicts(store, ask, ask) == ["new", "duplicate"]
        assert [row.body for row in store.events_of_kind("mail", "outcome")] == [body]
        assert store.answers(store.find("mail", "decision", "a").number) == {SHOWN: 0.0}

    def test_who_decided_by_older_controls_decides_again(self, store: Store) -> None:
        store.append([problem()])
        first, everywhere = store.last_control("mail"), store.last_control(GLOBAL)
        old = first, everywhere
        assert verdicts(store, decision("a", control=old)) == ["new"]
        store.append([control()])
        now = store.last_control("mail"), everywhere
        assert verdicts(store, decision("b", control=old), decision("b", control=now)) == ["stale", "new"]
        assert verdicts(store, decision("a", control=old)) == ["duplicate"], "what is written stays answered"
        assert verdicts(store, decision("a", action="push", control=old)) == ["conflict"]
        store.append([control(GLOBAL, "kill")])
        later = now[0], store.last_control(GLOBAL)
        assert later[1] > now[0] > first
        assert verdicts(store, decision("c", control=now), decision("c", control=later)) == ["stale", "new"]
        assert verdicts(store, control(), decision("d", control=later), decision("d")) == ["new", "stale", "new"]
        last = store.last_control("mail"), later[1]
        assert verdicts(store, problem(version=2), decision("e", control=last)) == ["new", "stale"]

    def test_versions_of_a_problem_are_taken_once(self, store: Store) -> None:
        assert verdicts(store, problem(), problem()) == ["new", "duplicate"]
        other = AppendRequest("mail", "problem", "1", encode_canonical({"version": 1, "problem": {"safe": 2}}))
        assert verdicts(store, other) == ["conflict"]

    def test_the_clock_jumps_back(self, store: Store, clock: Clock) -> None:
        """A row says what the clock said; whoever reads rows in their order goes on from the latest time."""
        store.append([decision("a")])
        clock.time -= 3600 * SECOND
        store.append([decision("b")])
        assert [row.at for row in log_of(store, "mail")] == [clock.time + 3600 * SECOND, clock.time]
        assert store.head("mail").at == clock.time + 3600 * SECOND

    def test_ids_that_the_store_makes_are_reserved(self, store: Store) -> None:
        asks = [decision("a"), decision("#7"), outcome("a", key="#7", click=1.0), control(key="7"), decision("b")]
        assert verdicts(store, *asks) == ["new", "conflict", "conflict", "conflict", "new"]

    def test_strange_names_are_names(self, store: Store) -> None:
        names = ["'; DROP TABLE events; --", "<b>é\n", "😀", "%s", "?", " ", "A", "a", "\\", "x" * 200]
        asks = [decision(name, experiment) for experiment in names for name in names]
        assert set(verdicts(store, *asks)) == {"new"}
        assert set(verdicts(store, *asks)) == {"duplicate"}
        assert store.logs() == sorted([GLOBAL, *names])
        assert set(verdicts(store, *(outcome(name, names[0], **{name: 1.5}) for name in names))) == {"new"}
        assert store.answers(store.find(names[0], "decision", "😀").number) == {"😀": 1.5}

    def test_everything_is_there_when_opened_again(self, store: Store, opened: Callable[..., Store]) -> None:
        store.append([problem(), decision("a"), outcome("a", click=1.0)])
        rows, head = log_of(store, "mail"), store.head("mail")
        store.close()
        again = opened()
        assert (log_of(again, "mail"), again.head("mail")) == (rows, head)
        assert verdicts(again, decision("a"), outcome("a", click=1.0)) == ["duplicate", "duplicate"]
        again.close()

    def test_snapshots(self, store: Store) -> None:
        assert store.get_latest_snapshot("mail", 1) is None
        for seq in range(1, 9):
            store.save_snapshot(StoredSnapshot("mail", 1, seq, b"small%d" % seq, b"large" if seq in (2, 3, 4) else b""))
        store.save_snapshot(StoredSnapshot("mail", 2, 3, b"other"))
        store.save_snapshot(StoredSnapshot("x", 1, 9, b"\0\xff"))
        assert store.get_latest_snapshot("mail", 1) == StoredSnapshot("mail", 1, 8, b"small8")
        assert store.get_latest_snapshot("mail", 1, 7) == StoredSnapshot("mail", 1, 8, b"small8")
        assert store.get_latest_snapshot("mail", 1, 8) is None
        assert store.get_latest_snapshot("mail", 1, with_learner_state=True) == StoredSnapshot(
            "mail", 1, 4, b"small4", b"large"
        )
        assert store.get_latest_snapshot("mail", 2) == StoredSnapshot("mail", 2, 3, b"other")
        assert store.get_latest_snapshot("mail", 2, with_learner_state=True) is None
        assert store.get_latest_snapshot("x", 1).content == b"\0\xff"
        store.save_snapshot(StoredSnapshot("mail", 1, 8, b"again", b"whole"))
        store.save_snapshot(StoredSnapshot("mail", 1, 8, b"thrice"))
        assert store.get_latest_snapshot("mail", 1, with_learner_state=True) == StoredSnapshot(
            "mail", 1, 8, b"thrice", b"whole"
        )

    def test_keys(self, store: Store) -> None:
        rows = [KeyRow("k2", b"\1\0", "writer", "a note", 5), KeyRow("k1", b"\2", "admin", "", 6)]
        for row in rows:
            store.add_key(row)
        assert store.keys() == rows
        assert store.revoke_key("k2", 9)
        assert not store.revoke_key("k2", 10)
        assert not store.revoke_key("k3", 10)
        assert store.keys() == [rows[0]._replace(revoked=9), rows[1]]

    def test_secrets(self, store: Store) -> None:
        assert store.secret("sessions", b"one") == b"one"
        assert store.secret("sessions", b"two") == b"one"
        assert store.secret("mail", b"\0three") == b"\0three"

    def test_webhooks(self, store: Store) -> None:
        store.save_webhook_state("chat", b"one")
        store.save_webhook_state("chat", b"two\0")
        assert [store.webhook_state(name) for name in ("chat", "other")] == [b"two\0", None]

    def test_leading(self, store: Store) -> None:
        assert store.try_lead()
        assert store.try_lead()

    def test_many_threads(self, store: Store) -> None:
        """Threads write the same and different rows, and read meanwhile: each id is new exactly once."""
        found: list[str] = []
        errors: list[BaseException] = []

        def work(who: int) -> None:
            try:
                for n in range(12):
                    keys = [f"shared{n}", f"own{who}-{n}"]
                    settled = store.append([decision(key, f"e{(n + who) % 2}") for key in keys])
                    found.extend(f"{(n + who) % 2}{k}" for k, s in zip(keys, settled, strict=True) if s.status == "new")
                    assert all(store.find(f"e{(n + who) % 2}", "decision", key) for key in keys)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(who,)) for who in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert len(found) == len(set(found)) == 6 * 12 + 12 * 2
        assert store.head("e0").decision_count + store.head("e1").decision_count == len(found)

    def test_a_reader(self, store: Store, opened: Callable[..., Store]) -> None:
        """Another process may read, beside the desk and after it, and cannot write."""
        store.append([decision("a")])
        reader = opened(read_only=True)
        sealed(store)
        assert len(reader.events("mail")) == 1
        store.append([decision("b")])
        sealed(store)
        assert len(reader.events("mail")) == 2
        assert not reader.try_lead()
        with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
            reader.append([decision("c")])
        with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
            reader.secret("sessions", b"fresh")
        reader.close()
        with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
            reader.events("mail")
