"""What every store can do. Its SQL is visible beside it; what is the same for all of them is in `settling`."""

from collections.abc import Callable, Sequence
from typing import Protocol

from stagewise.problem.errors import StagewiseError
from stagewise.service.records import Ask, Event, Head, Kept, KeyRow, Settled


class StoreDown(StagewiseError):
    """The store cannot be reached, is full, or is read-only: nothing of what was asked is acknowledged.

    Where a connection is lost during a commit it may be written all the same: whoever asks again with the same ids
    finds out.
    """


class Store(Protocol):
    """An append-only log for each experiment, and beside it what can be made again."""

    def append(self, asks: Sequence[Ask]) -> list[Settled]:
        """Write all that can be written in one durable transaction; one answer for each ask. Raises StoreDown."""

    def begin(self, asks: Sequence[Ask]) -> Callable[[], list[Settled]] | None:
        """Begin to append without waiting for anything, and return what makes it durable: that may take its time.

        None: nothing was begun, `append` has to wait. It is to be called once, by any thread, and soon: nobody else
        can write meanwhile.
        """

    def head(self, experiment: str) -> Head:
        """Return where a log ends; all zero: there is none."""

    def events(self, experiment: str, after: int = 0, limit: int = 10_000) -> list[Event]:
        """Return rows in order, from the one that follows `after` on."""

    def find(self, experiment: str, kind: str, key: str) -> Event | None:
        """Return the row of a kind with this key."""

    def of_kind(self, experiment: str, kind: str, after: int = 0, limit: int = 10_000) -> list[Event]:
        """Return the rows of one kind in order."""

    def last(self, experiment: str, kind: str, count: int) -> list[Event]:
        """Return the last rows of one kind, the newest first."""

    def answers(self, experiment: str, place: int) -> dict[str, float]:
        """Return the signals that are known of a decision."""

    def experiments(self) -> list[str]:
        """Return the names of all experiments, sorted, without EVERYWHERE."""

    def logs(self) -> list[str]:
        """Return the names of all logs that have a row, wherever they are said to end: for an audit."""

    def keep(self, snapshot: Kept) -> None:
        """Keep a snapshot; older ones of the same experiment may go (the last few stay)."""

    def latest(self, experiment: str, problem: int, after: int = -1, *, whole: bool = False) -> Kept | None:
        """Return the newest snapshot of a problem's version that is newer than row `after`.

        `whole`: the newest that has one; without, that part is not read, and empty.
        """

    def drop_snapshots(self) -> None:
        """Delete every snapshot: the log alone must be enough."""

    def keys(self) -> list[KeyRow]:
        """Return all access keys."""

    def add_key(self, key: KeyRow) -> None:
        """Add one."""

    def revoke_key(self, name: str, at: int) -> bool:
        """Revoke one; say whether there was one to revoke."""

    def secret(self, name: str, fresh: bytes) -> bytes:
        """Return the secret of this name (an experiment's key, the sessions'), or keep this fresh one and return it."""

    def lead(self) -> bool:
        """Be the one learner, or stay it: True while no other process is. SQLite: whoever holds the file is.

        It raises nothing: who cannot ask does not lead.
        """

    def now(self) -> int:
        """Return the store's clock, in microseconds."""

    def close(self) -> None:
        """Let go of everything."""
