"""A store copied into another, row by row as they are: from a SQLite file to PostgreSQL, say.

Where it is cut short it can be begun again: where logs end is written last, so that half a copy has no experiments.
"""

from collections.abc import Iterator
from typing import Any

from stagewise.problem.errors import InvalidFile
from stagewise.service.records import EVERYWHERE
from stagewise.service.store.store import Store, StoreDown
from stagewise.service.store.tables import FRESH_SECRET, SECRETS

PORTION = 2_000  # rows of a transaction

_EVENT = "experiment, seq, at, kind, key, place, body, chain, asked"
SOME_EVENTS = f"SELECT {_EVENT} FROM events WHERE experiment = ? AND seq > ? ORDER BY seq LIMIT ?"
ADD_EVENT = f"INSERT INTO events ({_EVENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"

_ANSWER = "experiment, place, signal, value, seq"
SOME_ANSWERS = f"SELECT {_ANSWER} FROM answers WHERE experiment = ? AND place >= ? AND place < ?"
ADD_ANSWER = f"INSERT INTO answers ({_ANSWER}) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"

_HEAD = "experiment, seq, at, places, control, chain"
ALL_HEADS = f"SELECT {_HEAD} FROM heads ORDER BY experiment"
ADD_HEAD = f"""
INSERT INTO heads ({_HEAD}) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (experiment) DO UPDATE SET seq = excluded.seq, at = excluded.at, places = excluded.places,
    control = excluded.control, chain = excluded.chain
"""


def copy(source: Store, target: Store) -> dict[str, int]:
    """Copy every row, key and secret into a store that has none; return the rows of each experiment.

    Snapshots are left behind: they can be made again.
    """
    there = target.experiments()
    if there or target.head(EVERYWHERE).seq:
        has = ", ".join(map(repr, there[:5])) or "keys or controls"
        raise InvalidFile(f"the store to copy to has {has} already; take an empty one")
    check_other(target.secrets(), source.secrets())
    heads = source._all(ALL_HEADS)
    for experiment, _, _, places, *_ in heads:
        for rows in events_of(source, experiment):
            target._change(*((ADD_EVENT, row) for row in rows))
        for first in range(0, places, PORTION):
            answers = source._all(SOME_ANSWERS, experiment, first, first + PORTION)
            if answers:
                target._change(*((ADD_ANSWER, row) for row in answers))
    secrets = source._all(SECRETS)
    if source._all(ALL_HEADS) != heads:
        raise StoreDown("rows came in while the store was copied; stop every desk that writes to it, and copy again")
    target._change(*((FRESH_SECRET, row) for row in secrets), *((ADD_HEAD, row) for row in heads))
    return {experiment: seq for experiment, seq, *_ in heads}


def check_other(theirs: dict[str, bytes], ours: dict[str, bytes]) -> None:
    """Refuse a store with secrets of its own: where names are the same, those that move would be lost."""
    other = next((name for name, content in theirs.items() if ours.get(name) != content), None)
    if other is not None:
        raise InvalidFile(
            f"the store to copy to has a secret {other!r} of its own, as a desk makes when it first starts; take an "
            "empty one"
        )


def events_of(source: Store, experiment: str) -> Iterator[list[Any]]:
    """Give the rows of a log in portions."""
    after = 0
    while rows := source._all(SOME_EVENTS, experiment, after, PORTION):
        yield rows
        after = rows[-1][1]
