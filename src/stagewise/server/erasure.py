"""Erasure of a user: the key of the user's contexts is destroyed once the state no longer needs them.

First the key is retired: nothing new is kept under it. When the windows of the user's decisions are closed, a
checkpoint of each experiment stands for all rows so far, and the key is destroyed. What was learned stays, as sums.
An outcome that is pending is waited for: if users ask for erasure because of what happened, leaving it out would
make the bounds wrong.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from stagewise.problem.errors import ErrorCode, StagewiseError
from stagewise.problem.formatting import safe_repr
from stagewise.server.checkpoints import Checkpoint, VersionState, append_digests, begin_fold, read_all_versions
from stagewise.server.controls import ERASE
from stagewise.server.event_log import CONTROL, GLOBAL, TICK, AppendRequest, Event, encode_canonical
from stagewise.server.seals import MAX_SEAL_ROWS
from stagewise.server.snapshots import SnapshotSigner
from stagewise.server.state_fold import StateFold
from stagewise.server.store.base import UPSERT_CHECKPOINT, Store
from stagewise.server.user_keys import DELETE_KEY, RETIRE_KEYS, SELECT_OF_USER, UserKeys, open_rows
from stagewise.server.versions import ProblemVersion

ERASED = "erased"  # the control of the global log with the digests of the checkpoints
RETIRED = "erasure"  # the control of the global log after which nothing is kept under a key
DELETE_SNAPSHOTS = "DELETE FROM snapshots WHERE experiment = ? AND seq < ?"


class UnknownUser(StagewiseError):
    """The store has no key of this user."""


class ErasureResult(NamedTuple):
    """What became of a request to erase a user."""

    decisions: int
    """The user's decisions that still wait for outcomes; 0: the contexts are erased."""
    until: int = 0
    """When the last of their windows closes, in microseconds; 0: one has no window."""


def erase_user(store: Store, user: str, actor: str, reason: str) -> ErasureResult:
    """Erase the contexts of a user, or begin to: nothing new is kept, and pending outcomes are waited for."""
    with store.maintaining() as change:
        return erase_alone(store, user, actor, reason, change)


def erase_alone(store: Store, user: str, actor: str, reason: str, change: Callable[..., None]) -> ErasureResult:
    """Erase a user while nobody else makes checkpoints."""
    digest = UserKeys(store).compute_digest(user)
    ids = [id_ for (id_,) in store._all(SELECT_OF_USER, digest)]
    if not ids:
        raise UnknownUser(ErrorCode.UNKNOWN_NAME, "the store has no contexts of user {user}", user=safe_repr(user))
    store._change((RETIRE_KEYS, (digest,)))
    body = {"what": RETIRED, "user_keys": ids, "actor": actor, "reason": reason}
    number = append_control(store, GLOBAL, body)
    for name in store.experiments():  # the time of the log is that of its last row
        (result,) = store.append([AppendRequest(name, TICK, "", encode_canonical({}))])
        number = number if result.event is None else result.event.number
    follow(store, number)
    versions = {name: read_all_versions(store, name)[-1] for name in store.experiments()}
    folds = {name: fold_to_end(store, name, version) for name, version in versions.items()}
    owned = {name: find_owned(store, name, fold, ids) for name, fold in folds.items()}
    pending = [
        (folds[name], number) for name, numbers in owned.items() for number in numbers if folds[name].is_pending(number)
    ]
    if pending:
        ends = [fold.find_closing(number) for fold, number in pending]
        return ErasureResult(len(pending), 0 if None in ends else max(end or 0 for end in ends))
    for name, numbers in owned.items():
        if numbers:
            body = {"what": ERASE, "decisions": numbers, "actor": actor, "reason": reason}
            follow(store, append_control(store, name, body))
    contents = dict[str, bytes]()
    for name, version in versions.items():
        fold = folds[name] = fold_to_end(store, name, version, folds[name])
        problem = version.problem.to_dict()
        state = VersionState(version.number, problem, sorted(version.retired), fold.encode())
        contents[name] = msgspec.msgpack.encode(Checkpoint(fold.seq, [state]))
    number = append_digests(store, ERASED, contents, actor, reason)
    change(
        *((UPSERT_CHECKPOINT, (name, number, content)) for name, content in contents.items()),
        *((DELETE_SNAPSHOTS, (name, fold.seq)) for name, fold in folds.items()),
        *((DELETE_KEY, (id_,)) for id_ in ids),
    )
    store.compact()
    return ErasureResult(0)


def append_control(store: Store, name: str, body: object) -> int:
    (result,) = store.append([AppendRequest(name, CONTROL, "", encode_canonical(body))])
    assert result.event is not None
    return result.event.number


def follow(store: Store, number: int) -> None:
    """Seal until a row is sealed; another process may be sealing."""
    while (seal := store.last_seal()).high < number or number in seal.open_numbers:
        store.seal()


def fold_to_end(store: Store, name: str, version: ProblemVersion, fold: StateFold | None = None) -> StateFold:
    """Return the state after all sealed rows, from the last snapshot if there is one."""
    stored = store.get_latest_snapshot(name, version.number, with_learner_state=True)
    if fold is None and stored is not None:
        content = SnapshotSigner(store).open(stored, "learner_state")
        timeout = msgspec.msgpack.decode(content)["feedback_timeout"]
        fold = StateFold(version.problem, version.number, version.retired, timeout)
        fold.restore(content)
    fold = begin_fold(store, name, version) if fold is None else fold
    while page := store.events(name, fold.seq, MAX_SEAL_ROWS):
        fold.take(open_rows(store, page))
    return fold


def find_owned(store: Store, name: str, fold: StateFold, ids: list[str]) -> list[int]:
    """Return the numbers of the decisions in the tables of a fold that are kept under one of these keys."""
    numbers = list(fold.numbers)
    rows = store.read_numbers(name, numbers)
    requests = {number: msgspec.json.decode(Event(*rows[number]).body)["request"] for number in numbers}
    return [number for number, request in requests.items() if request.get("user_key") in ids]
