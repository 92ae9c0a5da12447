"""A server that goes away: nothing acknowledged is lost or doubled, and servers go on when it is back."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from tests.problem.refusal import refused
from tests.server.servers import Server
from tests.server.store.append_requests import control, decision, log_of, outcome, sound, tick
from tests.server.store.proxy import Proxy

from stagewise.problem.errors import ErrorCode
from stagewise.server.event_log import GLOBAL, AppendRequest
from stagewise.server.store.base import StoreUnavailable

psycopg = pytest.importorskip("psycopg")
from stagewise.server.store import postgres as postgres_module  # noqa: E402
from stagewise.server.store.postgres import PostgresStore  # noqa: E402
from stagewise.server.store.postgres_transactions import LOCK_EXCLUSIVE, MAX_INSERT_ROWS  # noqa: E402

TERMINATE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@pytest.fixture
def opened(postgres: str) -> Iterator[Callable[..., PostgresStore]]:
    """Open stores of one database; at the end its logs are sound."""
    stores: list[PostgresStore] = []

    def opened(address: str = postgres) -> PostgresStore:
        stores.append(PostgresStore(address))
        return stores[-1]

    yield opened
    for store in stores:
        store.close()
    last = PostgresStore(postgres)
    sound(last)
    last.close()


def appended(store: PostgresStore, asks: list[AppendRequest], seconds: float = 30.0) -> list[str]:
    """Ask again and again with the same ids, as a client does; return how it ended."""
    until = time.monotonic() + seconds
    while True:
        try:
            return [settled.status for settled in store.append(asks)]
        except StoreUnavailable:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def soon(holds: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Wait until something holds: a server lets go of what a dead connection had when it comes to it."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def test_a_server_that_stops_and_starts(opened: Callable[..., PostgresStore], postgres_server: Server) -> None:
    store = opened()
    store.append([decision("a")])
    assert store.try_lead()
    postgres_server.stop()
    try:
        for _ in range(3):
            with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
                store.append([decision("b")])
            with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
                store.events("mail")
            assert not store.try_lead()
        assert store.now() > 0
    finally:
        postgres_server.start()
    assert [row.key for row in log_of(store, "mail")] == ["a"]
    assert appended(store, [decision("a"), decision("b")]) == ["duplicate", "new"]
    assert store.try_lead()


def test_a_server_that_crashes_under_load(opened: Callable[..., PostgresStore], postgres_server: Server) -> None:
    """Threads write while the server is killed and started: what was acknowledged is there, once."""
    store, said = opened(), dict[str, int]()
    stop = threading.Event()
    errors: list[BaseException] = []

    def write(who: int) -> None:
        try:
            batch = 0
            while not stop.is_set():
                asks = [decision(f"{who}-{batch}-{n}") for n in range(1 + who * MAX_INSERT_ROWS)]
                try:
                    settled = store.append(asks)
                except StoreUnavailable:
                    continue  # again, with the same ids
                said.update({ask.key: each.event.number for ask, each in zip(asks, settled, strict=True) if each.event})
                batch += 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(who,)) for who in range(3)]
    for thread in threads:
        thread.start()
    try:
        for turn in range(3):
            known = len(said) + 10
            assert soon(lambda known=known: len(said) > known)  # type: ignore[misc]
            if turn < 2:
                postgres_server.stop("immediate")
                time.sleep(0.1)
                postgres_server.start()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert errors == []
    assert len(said) > 20
    for key, number in said.items():
        found = store.find("mail", "decision", key)
        assert found is not None
        assert found.number == number


def test_a_commit_whose_answer_is_lost(opened: Callable[..., PostgresStore], postgres: str) -> None:
    """The row is there, and nobody knows: it is said as an error, and asking again finds it."""
    proxy = Proxy(postgres)
    store = opened(proxy.address)
    cuts, found = 0, 0
    for count in (1, MAX_INSERT_ROWS + 5) * 3:
        asks = [decision(f"{cuts}-{n}") for n in range(count)]
        for told in (asks, [outcome(ask.key, click=1.0) for ask in asks]):  # also without ids of their own
            proxy.cut_after = b"COMMIT"
            with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
                store.append(told)
            proxy.cut_after, cuts = None, cuts + 1
            assert proxy.cuts == cuts
            again = appended(store, told)
            assert set(again) in ({"duplicate"}, {"new"})  # new: the line was cut before the server had read the word
            found += again[0] == "duplicate"
    assert found > 0
    proxy.close()


def test_a_connection_that_dies_before_the_commit(opened: Callable[..., PostgresStore], postgres: str) -> None:
    proxy = Proxy(postgres)
    store = opened(proxy.address)
    store.append([decision("a")])
    proxy.cut_after = b"BEGIN"
    with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
        store.append([decision("b")])
    proxy.cut_after = None
    assert appended(store, [decision("b")]) == ["new"]
    proxy.close()


def test_one_learner_and_another_when_it_dies(opened: Callable[..., PostgresStore], postgres: str) -> None:
    first, second = opened(), opened()
    assert first.try_lead()
    assert not second.try_lead()
    assert first.try_lead()
    assert not second.try_lead()
    first.close()
    assert not first.try_lead()
    assert soon(second.try_lead)
    third = opened()
    assert not third.try_lead()
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(TERMINATE)
    assert soon(third.try_lead)
    assert not second.try_lead()


def test_several_servers_write_one_log(opened: Callable[..., PostgresStore]) -> None:
    """Servers that begin the same experiments at once, with equal and other ids, and global controls meanwhile."""
    stores = [opened() for _ in range(3)]
    new: list[str] = []
    errors: list[BaseException] = []

    def write(store: PostgresStore, who: int) -> None:
        try:
            for n in range(15):
                names = [f"e{n}", f"e{n + 1}"][:: 1 if who % 2 else -1]
                asks = [decision(key, name) for name in names for key in ("shared", f"own{who}")]
                verdicts = appended(store, [*asks, tick(names[0])])
                new.extend(
                    f"{ask.experiment}/{ask.key}" for ask, said in zip(asks, verdicts, strict=False) if said == "new"
                )
                if n % 5 == 4:
                    store.append([control(GLOBAL, "kill"), control(names[0])])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(store, who)) for who, store in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(new) == len(set(new)) == 16 * 4
    assert len(stores[0].events_of_kind(GLOBAL, "control")) == 1 + 9  # and the digest of the writers' secret


def test_a_kill_is_not_starved_and_nothing_older_follows_it(opened: Callable[..., PostgresStore]) -> None:
    """Two servers decide without a pause; once a control everywhere is acknowledged, no decision by older ones is."""
    deciders, controller, stop = [opened(), opened()], opened(), threading.Event()
    controller.append([control(GLOBAL, "resume")])
    before = controller.last_control(GLOBAL)

    def decide(store: PostgresStore, who: int) -> None:
        n = 0
        while not stop.is_set():
            n += 1
            if store.append([decision(f"{who}-{n}", f"e{who}", control=(-1, before))])[0].status == "stale":
                return

    threads = [threading.Thread(target=decide, args=(store, who)) for who, store in enumerate(deciders)]
    for thread in threads:
        thread.start()
    assert soon(lambda: min(store.head(f"e{who}").seq for who, store in enumerate(deciders)) > 0)
    controller.append([control(GLOBAL, "kill")])
    ends = [store.head(f"e{who}").seq for who, store in enumerate(deciders)]
    for thread in threads:
        thread.join(60)
    alive = [thread for thread in threads if thread.is_alive()]
    stop.set()
    assert alive == [], "each was told that it is stale"
    assert [store.head(f"e{who}").seq for who, store in enumerate(deciders)] == ends
    assert min(ends) > 0


def test_every_commit_is_flushed(postgres: str) -> None:
    """A server that is told to answer before the disk has it is told otherwise; stricter settings stay."""
    name = postgres.rpartition("/")[2]
    for told, used in [("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply", "remote_apply")]:
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = {told}")
        store = PostgresStore(postgres)
        assert store._all("SHOW synchronous_commit") == [(used,)]
        store.close()


@pytest.mark.parametrize("setting", ["off", "local"])
def test_a_server_whose_commits_stay_asynchronous_is_refused(
    postgres: str, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    """As a server would be that takes no settings from sessions."""
    PostgresStore(postgres).close()
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {postgres.rpartition('/')[2]} SET synchronous_commit = {setting}")
    monkeypatch.setattr(postgres_module, "ENSURE_DURABLE", "SELECT 1")
    with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
        PostgresStore(postgres)


def test_a_pooler_that_shares_sessions_is_refused(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The learner's lock belongs to a session: of two servers that share one, both would have it."""
    there = psycopg.connect(postgres, autocommit=True)
    with monkeypatch.context() as pooled:
        pooled.setattr(psycopg, "connect", lambda *_, **__: there)  # by turns, as in transaction pooling
        with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
            PostgresStore(postgres)
    there.close()
    PostgresStore(postgres).close()


def test_a_log_that_somebody_holds(opened: Callable[..., PostgresStore], postgres: str) -> None:
    store = opened()
    store.append([decision("a")])
    with store._lend() as session:
        session.connection.execute("SET lock_timeout = '50ms'")
    with psycopg.connect(postgres) as other:
        other.execute(LOCK_EXCLUSIVE)
        with refused(StoreUnavailable, ErrorCode.STORE_UNAVAILABLE):
            store.append([decision("b")])
    assert appended(store, [decision("b")]) == ["new"]


def test_a_server_whose_clock_jumps_is_followed_slowly(postgres: str) -> None:
    """A window that closed early would count what is on its way as missing."""
    store = PostgresStore(postgres)
    hour, before = 3_600_000_000, store.now()
    for jump in (hour, -hour, 24 * hour):
        begun = store.now()
        store._follow_clock(begun + jump)
        assert abs(store.now() - begun) < 2_000_000
    store._clock_checked_at -= 1000 * hour  # as if so long had passed
    store._follow_clock(store.now() + hour)
    assert store.now() - before > hour * 0.99
    store.close()
