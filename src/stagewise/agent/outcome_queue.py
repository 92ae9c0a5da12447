"""The outcome queue: decisions whose outcomes are not complete, by signal, in the order of the decisions.

Signals that are learned together form a group, and each group is a queue (docs/theory/order.md): its head is the first
decision that lacks one of its signals, and later outcomes are buffered. Learning in the order of arrival would be
biased: clicks arrive before their absence is known.

Time is an argument, in microseconds, and never runs backwards. If a clock is set back, closed windows stay closed, and
nothing closes until the clock passes its latest time again; a decision that is made meanwhile is dated then. So a
window may close late, but never early and never twice.
"""

import base64
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.problem.errors import ErrorCode, InvalidProblem

MISSING, BUFFERED, DROPPED, DONE = 0, 1, 2, 3
"""The status of a signal: not reported; reported, not learned yet; never learned; its turn is over. Odd: reported."""

BLOCK = 64  # the table starts at a multiple of it: tests of reported costs read it block by block (`e_process`)
INITIAL_CAPACITY = 1024
FEW = 4  # decisions that are looked at one by one before the rest is read as arrays
NEVER, UNDATED = -(2**62), 2**62  # times before and after all others
TABLES = {"rows": "<f8", "values": "<f8", "status": "|u1", "dates": "<i8", "deferred": "|u1"}


def encode_table(table: Any, repeats: bool) -> bytes:
    """Return a table in base 64; one whose rows repeat each other is compressed."""
    content = np.ascontiguousarray(table).data
    return base64.b64encode(zlib.compress(content, 1) if repeats else content)


def decode_table(text: str | bytes, repeats: bool) -> bytes:
    """Return the bytes of a table that `encode_table` wrote."""
    content = base64.b64decode(text, validate=True)
    try:
        return zlib.decompress(content) if repeats else content
    except zlib.error as error:
        raise ValueError(str(error)) from None


class SignalWindow(NamedTuple):
    """The window of one signal."""

    signal: int
    length: int  # in microseconds
    value: float  # what a missing outcome counts as, as it is learned; NaN: it is dropped


class OutcomeQueue:
    """The decisions `base` to `end` − 1 in tables, with the value and the status of each signal.

    All operations take constant time, amortised. The caller learns what `iter_due` yields.

    Args:
        names: The names of the signals.
        groups: The signals that are learned together, by index; every signal is in one group.
        windows: The windows of signals; signals without one are waited for until they are dropped.
        width: How many numbers `rows` keeps of each decision.
        first: The first signal that is reported; the turn of those before it is over from the start.
        value_type: The type of the values; objects cannot be saved, and have no windows.
        in_order: Learn in the order of decisions; otherwise a group is due when its last signal is reported.

    Attributes:
        heads: By group: all earlier decisions are learned or dropped.
        closed: By signal: the windows of all earlier decisions are closed.
        late: By signal: reports that came too late; the caller counts them.
        played: By decision, an object that the caller may keep until the decision's turn is over in every group.
        rows: (n, width) numbers that the caller keeps of the decisions from `base` on.
        values: (n, signals) reported values.
        status: (n, signals).
        deferred: (n,) 1: not confirmed as carried out, so its outcomes are not learned.
        pending_count: Decisions with a missing signal.
        buffered_count: Decisions with a buffered signal.

    Example:
        >>> queue = OutcomeQueue(["click", "opt_out"], groups=[(0,), (1,)], windows=[SignalWindow(1, 7, 0.0)])
        >>> first, second = queue.add(at=0), queue.add(at=5)
        >>> queue.report(second, [0, 1], [1.0, 0.0])
        >>> queue.report(first, [0], [0.0, 0.0])
        >>> list(queue.iter_due()), queue.pending_count, queue.buffered_count
        ([(0, 0), (1, 0)], 1, 1)
        >>> [(signal, indices.tolist()) for signal, indices in queue.advance(7)], list(queue.iter_due())
        ([(1, [0])], [(0, 1), (1, 1)])
    """

    rows: Floats
    values: Floats
    status: Any
    dates: Ints
    deferred: Any

    def __init__(
        self,
        names: Sequence[str],
        groups: Iterable[Sequence[int]],
        windows: Iterable[SignalWindow] = (),
        width: int = 1,
        in_order: bool = True,
        first: int = 0,
        value_type: Any = np.float64,
    ) -> None:
        self.names, self.groups, self.windows = tuple(names), tuple(map(tuple, groups)), tuple(windows)
        self.width, self.in_order, self.first, self.signals = width, in_order, first, range(first, len(names))
        self.value_type = value_type
        self._open = bytes([DONE] * first + [MISSING] * (len(names) - first))  # the status of a new decision
        self.longest = max((window.length for window in self.windows), default=0)
        self.unbounded = [k for k in range(len(names)) if all(k != window.signal for window in self.windows)]
        self.base = self.end = 0
        self.heads, self.closed, self.late = [0] * len(self.groups), [0] * len(names), [0] * len(names)
        self.now = self._next = NEVER  # no window closes before `_next`
        self.pending_count = self.buffered_count = 0
        self.played: dict[int, Any] = {}
        self._touched: list[int] = []  # with in_order=False: decisions with new reports
        self._kept = 0  # the first decision whose turn is not over in every group
        self._unchanged = 0  # no signal of the decisions from this one on was reported or dropped
        self._allocate(INITIAL_CAPACITY)

    def _allocate(self, capacity: int) -> None:
        shapes = {"rows": (self.width,), "values": (len(self.names),), "status": (len(self.names),)}
        for name, kind in TABLES.items():
            stored = self.value_type if name == "values" else kind
            setattr(self, name, np.zeros((capacity, *shapes.get(name, ())), dtype=stored))
        self.status[:, : self.first] = DONE

    @property
    def oldest(self) -> int:
        """The first decision whose turn is not over in every group."""
        return min(self.heads, default=self.end) if self.in_order else self._kept

    @property
    def first_changeable(self) -> int:
        """The first decision that may still change: one that is not over, or one with an open window."""
        return min([self.oldest, *(self.closed[window.signal] for window in self.windows)])

    @property
    def is_full(self) -> bool:
        """Whether the next `add` leaves out rows or enlarges the tables."""
        return self.end - self.base == len(self.dates)

    @property
    def first_kept(self) -> int:
        """The first decision that a file holds: blocks that are over are left out."""
        return max(self.first_changeable - self.first_changeable % BLOCK, self.base)

    @property
    def kept_rows(self) -> Floats:
        """The rows (n, width) of the decisions from `first_kept` on."""
        return self.rows[self.first_kept - self.base : self.end - self.base]

    @property
    def pending_rows(self) -> Floats:
        """The rows (n, width) of the decisions from `oldest` on."""
        return self.rows[self.oldest - self.base : self.end - self.base]

    def replace_rows(self, rows: Floats) -> None:
        """Replace what the caller keeps of every decision, by rows of this or another width."""
        self.rows, self.width = rows, rows.shape[1]

    def reserve(self, count: int) -> None:
        """Make room for more decisions: leave out blocks that are over, then enlarge the tables."""
        capacity, low = len(self.dates), self.first_changeable - self.first_changeable % BLOCK
        if self.end - self.base + count <= capacity:
            return
        start, remaining = low - self.base, self.end - low
        while remaining + count > capacity // 2:
            capacity *= 2
        before = {name: getattr(self, name)[start : start + remaining] for name in TABLES}
        self._allocate(capacity)
        for name, table in before.items():
            getattr(self, name)[:remaining] = table
        self.base = low

    def stage(self, rows: Any, dates: Any, deferred: Any) -> None:
        """Write the next decisions to the tables; `add_staged` makes each one count."""
        self.reserve(len(rows))
        part = slice(self.end - self.base, self.end - self.base + len(rows))
        self.rows[part], self.dates[part], self.deferred[part] = rows, dates, deferred

    def add_staged(self) -> Floats:
        """Count the next staged decision and return its row."""
        self.end += 1
        self.pending_count += 1
        row: Floats = self.rows[self.end - 1 - self.base]
        return row

    def add_rows(self, rows: Floats, at: int = 0) -> int:
        """Add decisions with their rows (n, width); return the first index. `advance(at)` was called before."""
        first, count = self.end, len(rows)
        self.stage(rows, (UNDATED if at < self.now else at) if self.windows else 0, 0)
        self.end, self.pending_count = first + count, self.pending_count + count
        return first

    def add(self, row: Any = 0.0, played: Any = None, at: int = 0) -> int:
        """Add a decision with its row; return its index. `advance(at)` was called before."""
        index = self.end
        i = index - self.base
        if i == len(self.dates):
            self.reserve(1)
            i = index - self.base
        self.rows[i] = row
        if self.windows:
            self.dates[i] = UNDATED if at < self.now else at
        if played is not None:
            self.played[index] = played
        self.end = index + 1
        self.pending_count += 1
        return index

    def is_missing(self, index: int, signal: int) -> bool:
        """Return whether a signal of a decision is neither reported nor dropped."""
        return self.oldest <= index < self.end and bool(self.status[index - self.base, signal] == MISSING)

    def is_pending(self, index: int) -> bool:
        """Return whether the turn of a decision is not over in every group."""
        return self.oldest <= index < self.end and (self.in_order or self.status[index - self.base].min() < DROPPED)

    def is_late(self, index: int, signal: int) -> bool:
        """Return whether the window of a decision's signal is closed."""
        return index < self.closed[signal]

    def is_open(self, index: int) -> bool:
        """Return whether all signals of a decision are missing."""
        return self.oldest <= index < self.end and self.status[index - self.base].tobytes() == self._open

    def is_next(self, index: int) -> bool:
        """Return whether all signals of a decision are missing and a complete outcome would be learned at once."""
        if not self.in_order:
            return self.is_open(index)
        heads = self.heads[self.first :] if self.first else self.heads
        if heads.count(index) != len(heads) or index >= self.end:
            return False
        return index >= self._unchanged or self.status[index - self.base].tobytes() == self._open

    def learn_whole(self, index: int, values: Any) -> None:
        """Count a decision as learned, whose signals were all missing and which is next."""
        i = index - self.base
        self.values[i], self.status[i] = values, DONE
        if self.first:
            self.values[i, : self.first] = 0.0
        self.pending_count -= 1
        self.played.pop(index, None)
        if self.in_order:
            self.heads = [index + 1] * len(self.heads)
            self._kept = index + 1
        else:
            self._unchanged = max(self._unchanged, index + 1)
            self._skip_completed()

    def report(self, index: int, signals: Iterable[int], values: Sequence[float]) -> None:
        """Buffer missing signals of a decision; `values` are those of all signals."""
        signals = list(signals)
        if not signals:  # a late outcome; the tables may have left out its decision
            return
        for k in signals:
            self.values[index - self.base, k] = values[k]
        self._change(index, signals, BUFFERED)

    def drop(self, index: int, signals: Iterable[int] | None = None) -> None:
        """Drop signals of a decision whose turn is not over, all by default."""
        if index >= self.oldest:
            row = self.status[index - self.base].tolist()
            signals = range(len(row)) if signals is None else signals
            self._change(index, [k for k in signals if row[k] != DONE], DROPPED)

    def drop_missing(self, before: int) -> Iterator[tuple[int, list[int]]]:
        """Drop the missing signals of all decisions below `before`; yield each of them and its signals."""
        start = self.oldest
        missing = self.status[start - self.base : max(before, start) - self.base] == MISSING
        for i in np.flatnonzero(missing.any(axis=1)).tolist():
            signals = np.flatnonzero(missing[i]).tolist()
            self._change(start + i, signals, DROPPED)
            yield start + i, signals

    def confirm(self, index: int) -> None:
        """Note that a deferred decision was carried out."""
        if index >= self.base:
            self.deferred[index - self.base] = 0

    def report_rows(self, indices: Ints, signal: int, values: Floats) -> None:
        """Buffer a missing signal of decisions, each listed once, with its values (n,)."""
        self.values[indices - self.base, signal] = values
        self._change_rows(indices, (signal,), BUFFERED)

    def advance(self, now: int) -> list[tuple[int, Ints]]:
        """Advance the time, and close windows: a missing signal counts as declared.

        A deferred decision is dropped then: a signal with its window, those without one with the longest window;
        otherwise they would block all that follow.

        Returns:
            Each signal with decisions that lacked it, in order; it counts as declared from now on, or is dropped.
        """
        closed: list[tuple[int, Ints]] = []
        if now >= self.now:
            self.now = now
            i = self.end - self.base - 1
            while self.windows and i >= 0 and self.dates[i] == UNDATED:
                self.dates[i], i = now, i - 1
        if self.now < self._next:
            return closed
        for signal, length, value in self.windows:
            start = self.closed[signal] - self.base
            stop = start + self._count_until(start, self.now - length)
            if stop == start:
                continue
            self.closed[signal] += stop - start
            if stop == start + 1 and not self.deferred.item(start):  # most often, where each row has its own time
                if self.status.item(start, signal) == MISSING:
                    self.values[start, signal] = value if value == value else 0.0
                    self._change(self.base + start, (signal,), BUFFERED if value == value else DROPPED)
                    closed.append((signal, np.array([self.base + start])))
                continue
            deferred = self.base + start + np.flatnonzero(self.deferred[start:stop])
            for k in (signal, *(self.unbounded if length == self.longest else ())) if deferred.size else ():
                for index in deferred.tolist():
                    self.drop(index, [k])
                closed.append((k, deferred))
            missing = np.flatnonzero((self.status[start:stop, signal] == MISSING) & (self.deferred[start:stop] == 0))
            if missing.size:
                indices = self.base + start + missing
                self.values[start + missing, signal] = np.nan_to_num(value)
                self._change_rows(indices, (signal,), BUFFERED if value == value else DROPPED)
                closed.append((signal, indices))
        later = min(
            (window.length for window in self.windows), default=UNDATED
        )  # of a decision that is made from now on
        closing = self.next_closing()
        self._next = self.now + later if closing is None else min(closing, self.now + later)
        return closed

    def _count_until(self, start: int, latest: int) -> int:
        """Return the number of decisions in a row, from a place of the tables on, that were made until a time."""
        stop = self.end - self.base
        for count in range(FEW):
            if start + count == stop or self.dates.item(start + count) > latest:
                return count
        count = step = FEW
        while start + count < stop:
            later = np.flatnonzero(self.dates[start + count : min(start + count + step, stop)] > latest)
            if later.size:
                return count + int(later[0])
            count, step = min(count + step, stop - start), 4 * step
        return count

    def take_due(self) -> tuple[Ints, Floats]:
        """Return the decisions to be learned now, in order, with their values (n, signals); their turn is over.

        NaN stands for a signal that is not due. Outcomes that are learned on arrival are taken by `iter_due`.
        """
        due: list[tuple[Ints, tuple[int, ...]]] = [(np.empty(0, np.int64), ())]
        due += [(self._take_group(group), signals) for group, signals in enumerate(self.groups)]
        self._forget_completed()
        indices = np.unique(np.concatenate([ready for ready, _ in due]))
        values = np.full((indices.size, len(self.names)), np.nan)
        for ready, signals in due:
            for k in signals:
                values[np.searchsorted(indices, ready), k] = self.values[ready - self.base, k]
        return indices, values

    def take_pairs(self) -> list[tuple[int, int]]:
        """Return what `iter_due` would yield where outcomes are learned in order; their turn is over."""
        pairs = list[tuple[int, int]]()
        for group in range(len(self.groups)):
            for _ in range(FEW):
                index = self.heads[group]
                if index == self.end or (is_due := self._is_due(index, group)) is None:
                    break
                if is_due:
                    pairs.append((index, group))
                self._finish(index, group)
                self.heads[group] += 1
            else:
                pairs += zip(self._take_group(group).tolist(), repeat(group))
        self._forget_completed()
        return pairs

    def _take_group(self, group: int) -> Ints:
        """Return the decisions of a group that are due, up to the first that waits; their turn is over."""
        signals, head = self.groups[group], self.heads[group]
        start, stop, count, step = head - self.base, self.end - self.base, 0, 1
        while start + count < stop:
            part = slice(start + count, min(start + count + step, stop))
            states = self.status[part][:, signals]
            waits = (states == MISSING).any(axis=1) | ((states == BUFFERED).any(axis=1) & (self.deferred[part] != 0))
            found = np.flatnonzero(waits)
            if found.size:
                count += int(found[0])
                break
            count, step = min(count + step, stop - start), 4 * step
        self.heads[group] += count
        indices = np.arange(head, head + count)
        due: Ints = indices[(self.status[indices - self.base][:, signals] == BUFFERED).all(axis=1)]
        self._change_rows(indices, signals, DONE, only=BUFFERED)
        return due

    def iter_due(self) -> Iterator[tuple[int, int]]:
        """Yield each decision and group to be learned now, in order; it is over when the next one is requested."""
        while self._touched:
            index = self._touched[-1]
            for group in range(len(self.groups)):
                if (is_due := self._is_due(index, group)) is not None:
                    if is_due:
                        yield index, group
                    self._finish(index, group)
            if self.status[index - self.base].min() >= DROPPED:
                self.played.pop(index, None)
            self._touched.pop()
        for group in range(len(self.groups) if self.in_order else 0):
            while self.heads[group] < self.end and (is_due := self._is_due(self.heads[group], group)) is not None:
                if is_due:
                    yield self.heads[group], group
                self._finish(self.heads[group], group)
                self.heads[group] += 1
        self._forget_completed()

    def _forget_completed(self) -> None:
        """Forget what the caller keeps of decisions whose turn is over in every group."""
        kept = self._kept
        if not self.in_order:
            self._skip_completed()
        for index in range(kept, self.oldest) if self.played else ():
            self.played.pop(index, None)
        self._kept = self.oldest

    def _skip_completed(self) -> None:
        """Move `_kept` to the first decision whose turn is not over, where outcomes are learned on arrival."""
        while self._kept < self.end and self.status[self._kept - self.base].min() >= DROPPED:
            self._kept += 1

    def _is_due(self, index: int, group: int) -> bool | None:
        """Return whether all signals of a decision and a group are buffered; None: one is waited for."""
        row, signals = self.status[index - self.base].tolist(), self.groups[group]
        states = [row[k] for k in signals]
        if MISSING in states or (BUFFERED in states and self.deferred.item(index - self.base)):
            return None
        return states.count(BUFFERED) == len(states)

    def _finish(self, index: int, group: int) -> None:
        """Note that the turn of a decision is over in a group."""
        row = self.status[index - self.base].tolist()
        self._change(index, [k for k in self.groups[group] if row[k] == BUFFERED], DONE)

    def _change(self, index: int, signals: Sequence[int], status: int) -> None:
        self._unchanged = max(self._unchanged, index + 1)
        row = self.status[index - self.base]
        before = row.tolist()
        for k in signals:
            row[k] = status
        after = row.tolist()
        self.pending_count += (MISSING in after) - (MISSING in before)
        self.buffered_count += (BUFFERED in after) - (BUFFERED in before)
        if not self.in_order and status != DONE:
            self._touched.append(index)

    def _change_rows(self, indices: Ints, signals: Sequence[int], status: int, only: int | None = None) -> None:
        """Set the status of signals of decisions, each listed once; `only` where it is this one."""
        if not indices.size:
            return
        self._unchanged = max(self._unchanged, int(indices.max()) + 1)
        before = self.status[indices - self.base]
        after = before.copy()
        for k in signals:
            after[:, k] = status if only is None else np.where(before[:, k] == only, status, before[:, k])
        self.status[indices - self.base] = after
        self.pending_count += int((after == MISSING).any(axis=1).sum()) - int((before == MISSING).any(axis=1).sum())
        self.buffered_count += int((after == BUFFERED).any(axis=1).sum()) - int((before == BUFFERED).any(axis=1).sum())
        if not self.in_order and status != DONE:
            self._touched.extend(indices.tolist())

    def find(self, signal: int, status: int) -> list[int]:
        """Return the decisions whose signal has this status and whose turn is not over."""
        start = self.oldest
        part = self.status[start - self.base : self.end - self.base, signal]
        return (start + np.flatnonzero(part == status)).tolist()

    def select(self, index: int, group: int) -> Floats:
        """Return the values of a group's signals of a decision, NaN for the others."""
        values, signals = np.full(len(self.names), np.nan, self.value_type), list(self.groups[group])
        values[signals] = self.values[index - self.base, signals]
        return values

    def date(self, index: int) -> int:
        """Return the time of a decision."""
        return int(self.dates[index - self.base])

    def next_closing(self) -> int | None:
        """Return when the next window closes; None if none is open."""
        first = ((self.closed[window.signal], window.length) for window in self.windows)
        return min((self.date(index) + length for index, length in first if index < self.end), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as a file holds it, without `played`; `restore` reads it."""
        low = self.first_kept
        part = slice(low - self.base, self.end - self.base)
        tables = {name: encode_table(getattr(self, name)[part], name != "rows") for name in TABLES}
        counts = {"base": low, "end": self.end, "heads": self.heads, "closed": self.closed, "late": self.late}
        return {**counts, "now": self.now, **tables}

    def restore(self, content: Mapping[str, Any], played: Mapping[int, Any] = {}) -> None:
        """Restore the state that `to_dict` returned, into a queue of the same signals."""
        low, end, self.now = (int(content[name]) for name in ("base", "end", "now"))
        self._next = NEVER
        heads, closed, late = ([int(n) for n in content[name]] for name in ("heads", "closed", "late"))
        capacity = INITIAL_CAPACITY
        while end - low > capacity // 2:
            capacity *= 2
        self._allocate(capacity)
        for name, kind in TABLES.items():
            table: Any = getattr(self, name)
            stored = np.frombuffer(decode_table(content[name], name != "rows"), dtype=kind)
            table[: end - low] = stored.reshape(end - low, *table.shape[1:])
        lengths = len(heads), len(closed), len(late)
        starts = [*(heads if self.in_order else []), *(closed[window.signal] for window in self.windows), *played]
        if (
            lengths != (len(self.groups), len(self.names), len(self.names))
            or not 0 <= low <= end
            or low % BLOCK
            or not all(low <= start <= end for start in starts)
            or min(late) < 0
            or self.status.max() > DONE
            or not (np.isfinite(self.values).all() and np.isfinite(self.rows).all())
        ):
            raise InvalidProblem(ErrorCode.FILE_CORRUPT, "the stored outcome queue is inconsistent")
        self.base, self.end, self.heads, self.closed, self.late = low, end, heads, closed, late
        self.played, rows = dict(played), self.status[: end - low]
        self._kept, self._unchanged = self.oldest if self.in_order else low, end
        if not self.in_order:
            self._skip_completed()
        self.pending_count = int((rows == MISSING).any(axis=1).sum())
        self.buffered_count = int((rows == BUFFERED).any(axis=1).sum())

    def clone(self) -> "OutcomeQueue":
        """Return an independent copy that shares the objects in `played`."""
        other = copy(self)
        other.heads, other.closed, other.late = list(self.heads), list(self.closed), list(self.late)
        other.played, other._touched = dict(self.played), list(self._touched)
        for name in TABLES:
            setattr(other, name, getattr(self, name).copy())
        return other
