"""Outcomes of many decisions at once, as an agent learns them: read from record batches, and reported to its queue."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.agent.decision_table import get_batch_column
from stagewise.agent.identity import SEPARATOR, Identity, compute_digests
from stagewise.agent.outcome_queue import MISSING, OutcomeQueue
from stagewise.engine.compile import Flags, Floats, Ints
from stagewise.files.tables import to_list, to_numpy
from stagewise.policies.problem_policy import ProblemPolicy
from stagewise.problem.columns import is_unicode
from stagewise.problem.errors import ErrorCode, InvalidOutcome, StagewiseError
from stagewise.problem.formatting import join_names, safe_repr
from stagewise.records.outcome import RowStatus

STATUSES = tuple(RowStatus)
ACCEPTED, DUPLICATE, LATE, UNKNOWN, INVALID = range(len(STATUSES))
Statuses = npt.NDArray[np.int8]


class Reports(NamedTuple):
    """The outcomes of a batch, scaled and signed as they are learned."""

    rounds: Ints
    """(n,) of the decisions; −1: unknown."""
    given: Flags
    """(n, 1 + m)."""
    values: Floats
    """(n, 1 + m), 0 where none is given."""
    valid: Flags
    """(n,) all given values are in their ranges, and there is one."""


def read_reports(policy: ProblemPolicy, identity: Identity, end: int, batch: Any, id_column: Any) -> Reports:
    """Return the outcomes of a record batch."""
    names, signals = tuple(batch.schema.names), policy.problem.signals
    ids = to_list(get_batch_column(batch, id_column, names, "id"))
    present = [name for _, name, *_ in policy._scales if name in names]
    if not present:
        template = "the table has no column of a signal; name one of them {signals}; its columns are {listed}"
        data = {"signals": join_names(signals), "listed": join_names(names)}
        raise InvalidOutcome(ErrorCode.COLUMN_MISSING, template, **data)
    given, values = np.zeros((len(ids), len(signals)), dtype=np.bool_), np.zeros((len(ids), len(signals)))
    valid = np.ones(len(ids), dtype=np.bool_)
    for k, name, low, high, sign in policy._scales:
        if name in present:
            column = read_signal(to_numpy(batch.column(name)), name)
            given[:, k] = ~np.isnan(column)
            valid &= ~given[:, k] | ((column >= low) & (column <= high))
            values[:, k] = np.where(given[:, k], sign * ((column - low) / (high - low)), 0.0)
    return Reports(find_rounds(identity, end, ids), given, values, valid & given.any(axis=1))


def read_signal(column: npt.NDArray[Any], name: str) -> Floats:
    """Return the values of a signal, NaN where none is given; true counts as 1."""
    if column.dtype.kind == "O":
        entries = column.tolist()
        if not all(entry is None or isinstance(entry, bool) for entry in entries):
            rule = "that of numbers, or of true and false"
            found = next(entry for entry in entries if not isinstance(entry, bool | None))
            subject = f"the type of the column {safe_repr(name)}"
            raise InvalidOutcome.must_be(ErrorCode.COLUMN_WRONG_TYPE, subject, found, rule)
        column = np.array([np.nan if entry is None else entry for entry in entries])
    return column.astype(np.float64)


def find_rounds(identity: Identity, end: int, ids: list[Any]) -> Ints:
    """Return the rounds of decision ids; −1: unknown."""
    rounds = np.full(len(ids), -1)
    callers = [i for i, id_ in enumerate(ids) if isinstance(id_, str) and SEPARATOR in id_ and is_unicode(id_)]
    if len(callers) == len(ids):
        return identity.ids.find(compute_digests(identity.seed, ids)[:, 0])
    rounds[callers] = identity.ids.find(compute_digests(identity.seed, [ids[i] for i in callers])[:, 0])
    for i in sorted(set(range(len(ids))) - set(callers)):
        if isinstance(ids[i], str):
            try:
                rounds[i] = identity.find_round(ids[i], end)
            except StagewiseError:
                continue
    return rounds


def report_outcomes(queue: OutcomeQueue, reports: Reports) -> tuple[Statuses, list[tuple[int, Ints]]]:
    """Report outcomes to the queue, as one by one in this order; return the statuses, and what is new by signal."""
    statuses = np.full(reports.rounds.size, UNKNOWN, dtype=np.int8)
    statuses[(reports.rounds >= 0) & ~reports.valid] = INVALID
    known, new = np.flatnonzero((reports.rounds >= 0) & reports.valid), []
    while known.size:  # the first report of every decision, then the second ones
        _, first = np.unique(reports.rounds[known], return_index=True)
        first.sort()
        at, known = known[first], np.delete(known, first)
        rounds, given, values = reports.rounds[at], reports.given[at], reports.values[at]
        late = given & (rounds[:, np.newaxis] < np.array(queue.closed))
        is_open = (rounds >= queue.oldest)[:, np.newaxis]
        missing = is_open & (queue.status[np.maximum(rounds - queue.base, 0)] == MISSING)
        is_late, in_time = late.any(axis=1), given & ~late
        repeats = ~is_late & (in_time & ~missing).any(axis=1)
        statuses[at] = np.where(is_late, LATE, np.where(repeats, DUPLICATE, ACCEPTED))
        taken = in_time & missing & ~repeats[:, np.newaxis]
        for k in queue.signals:
            queue.late[k] += int(late[:, k].sum())
            indices = rounds[taken[:, k]]
            if indices.size:
                queue.report_rows(indices, k, values[taken[:, k], k])
                new.append((k, indices))
    return statuses, new
