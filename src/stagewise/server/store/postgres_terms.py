"""Terms of a PostgreSQL store: how often another machine took over, as a standby that was promoted.

A term begins with the first connection to a new timeline of the write-ahead log. Its numbers are above all that the
machine before may have drawn.
"""

import threading

from stagewise.server.seals import TERM_BITS, Seal
from stagewise.server.store.postgres_batch import LOCK_EXCLUSIVE, Connection

CREATE_TERMS = "CREATE TABLE IF NOT EXISTS terms (term bigint PRIMARY KEY, timeline bigint NOT NULL)"
LAST_TERM = "SELECT term, timeline FROM terms ORDER BY term DESC LIMIT 1"
INSERT_TERM = "INSERT INTO terms VALUES (%s, %s)"
BEGIN_TERM = "SELECT setval('numbers', greatest((SELECT last_value FROM numbers), %s::bigint, 1))"
TIMELINE = "SELECT ('x' || lpad(left(pg_walfile_name(pg_current_wal_lsn()), 8), 16, '0'))::bit(64)::bigint"
SEAL_HASH = "SELECT hash FROM seals WHERE seal = %s"
ROW_MAC = "SELECT mac FROM events WHERE number = %s"


class Terms:
    """The term of a store, and what this process knows of the machine that it was connected to.

    Attributes:
        term: 0 for the first machine.
        last_seal: The last seal that was read; its hash tells whether another machine has the same rows.
        last_row: The number and the code of the last row that was written.
    """

    def __init__(self) -> None:
        self.term = self._timeline = 0
        self.last_seal, self.last_row = Seal(), (0, b"")
        self._turn = threading.Lock()

    def follow(self, connection: Connection) -> bool:
        """Begin a new term if another machine took over; return whether rows are gone that this process knew."""
        with self._turn:
            (timeline,) = connection.execute(TIMELINE).fetchone() or (0,)
            if timeline == self._timeline:
                return False
            term, last = connection.execute(LAST_TERM).fetchone() or (-1, None)
            if last != timeline:
                with connection.transaction():
                    connection.execute(LOCK_EXCLUSIVE)
                    term, last = connection.execute(LAST_TERM).fetchone() or (-1, None)
                    if last != timeline:
                        term += 1
                        connection.execute(INSERT_TERM, (term, timeline))
                        connection.execute(BEGIN_TERM, (term << TERM_BITS,))
            seal, (number, mac) = self.last_seal, self.last_row
            is_lost = (seal.seal and connection.execute(SEAL_HASH, (seal.seal,)).fetchone() != (seal.hash,)) or (
                number and connection.execute(ROW_MAC, (number,)).fetchone() != (mac,)
            )
            if is_lost:
                self.last_seal, self.last_row = Seal(), (0, b"")
            self._timeline, self.term = timeline, term
            return bool(is_lost)

    def begin(self, connection: Connection) -> None:
        """Begin a new term on the same machine."""
        with self._turn, connection.transaction():
            connection.execute(LOCK_EXCLUSIVE)
            last, timeline = connection.execute(LAST_TERM).fetchone() or (-1, self._timeline)
            self.term = last + 1
            connection.execute(INSERT_TERM, (self.term, timeline))
            connection.execute(BEGIN_TERM, (self.term << TERM_BITS,))
