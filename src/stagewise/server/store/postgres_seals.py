"""Seals of a PostgreSQL store: committed rows that no seal has, in one statement; of several processes, one seals them.

Numbers that are missing stay open until every transaction is over that may have drawn them (a fence,
docs/theory/server.md); learning does not wait for that.
"""

from psycopg.errors import UniqueViolation

from stagewise.server.event_log import Event
from stagewise.server.seals import MAX_SEAL_ROWS, Fence, Seal, SealPart, build_seal, number_rows
from stagewise.server.store.base import EVENT_COLUMNS, INSERT_PART, INSERT_SEAL, PART_COLUMNS, SELECT_LAST_SEAL
from stagewise.server.store.postgres_batch import TAKE_ID, Connection, to_format
from stagewise.server.store.postgres_terms import Terms

SELECT_UNSEALED_ROWS = f"""
SELECT * FROM (
    (SELECT {EVENT_COLUMNS}, experiment FROM events WHERE number = ANY(%s))
    UNION ALL (SELECT {EVENT_COLUMNS}, experiment FROM events WHERE number > %s ORDER BY number LIMIT %s)
) AS e ORDER BY number
"""
SELECT_ENDS = f"""
SELECT p.* FROM unnest(%s::text[]) AS w (experiment) CROSS JOIN LATERAL (
    SELECT {PART_COLUMNS} FROM seal_parts WHERE experiment = w.experiment ORDER BY last DESC LIMIT 1
) AS p
"""
OLDEST_ID = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"


class Sealer:
    """Seals rows."""

    def __init__(self) -> None:
        self._fence = Fence()

    def seal(self, connection: Connection, now: int, terms: Terms) -> dict[str, list[Event]]:
        """Seal committed rows that no seal has, and return those of each experiment."""
        with connection.pipeline():
            last = connection.execute(to_format(SELECT_LAST_SEAL), binary=True)
            oldest = connection.execute(OLDEST_ID)
        before, (oldest_id,) = Seal(*(last.fetchone() or ())), oldest.fetchone() or (0,)
        terms.last_seal = before
        values = before.open_numbers, before.high, MAX_SEAL_ROWS
        found = connection.execute(SELECT_UNSEALED_ROWS, values, binary=True).fetchall()
        if not found:
            return {}
        rows = [(row[-1], Event(*row[:-1])) for row in found]
        names = sorted({experiment for experiment, _ in rows})
        ends = {row[0]: SealPart(*row) for row in connection.execute(SELECT_ENDS, (names,), binary=True)}
        gaps = self._fence.find_gaps(before.open_numbers, oldest_id)
        seal, parts = build_seal(before, rows, ends, now, terms.term, gaps)
        try:
            with connection.pipeline(), connection.transaction():
                connection.execute(to_format(INSERT_SEAL), seal)
                for part in parts:
                    connection.execute(to_format(INSERT_PART), part)
        except UniqueViolation:  # another process leads
            return {}
        if seal.open and self._fence.is_over(oldest_id):
            (new_id,) = connection.execute(TAKE_ID).fetchone() or (0,)
            self._fence = Fence(new_id, seal.high)
        return number_rows(rows, parts)
