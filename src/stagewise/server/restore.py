"""What a store begins with after it was restored from a backup: a new term.

Rows that were acknowledged after the backup are gone. Numbers of the new term are above all of theirs, so a receipt of
a lost row is never one of another row; draws of the new term are other ones, so nobody knows them from a lost decision.
"""

from stagewise.server.controls import RESTORED
from stagewise.server.event_log import CONTROL, GLOBAL, AppendRequest, encode_canonical
from stagewise.server.store.base import SELECT_LATEST, Store


def begin_after_restore(store: Store, actor: str, reason: str) -> int:
    """Begin a new term, before servers start; return the number of the first row of it."""
    ((last, _),) = store._all(SELECT_LATEST) or [(0, 0)]
    store.begin_term()
    body = {"what": RESTORED, "last": last, "actor": actor, "reason": reason}
    (result,) = store.append([AppendRequest(GLOBAL, CONTROL, "", encode_canonical(body))])
    assert result.event is not None
    return result.event.number
