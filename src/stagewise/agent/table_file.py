"""Files of users and outcomes, decided and learned record batch by record batch; a repeat writes the same bytes."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from stagewise.agent.table_agent import TableAgent, TableDecisions
from stagewise.files.tables import read_batches, write_batches
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import format_path
from stagewise.records.outcome import RowStatus

Progress = Callable[[int], None]


class DecidedFile(NamedTuple):
    """What became of a table of users."""

    run: str
    rows: int
    errors: int
    """Rows that could not be decided."""
    is_repeat: bool = False
    """The file was complete and registered before; nothing changed."""

    def __str__(self) -> str:
        if self.is_repeat:
            return f"run {self.run!r} is decided and registered already; nothing changed"
        bad = f"; {self.errors:,} rows could not be decided, see the column error" if self.errors else ""
        return f"run {self.run!r}: {self.rows - self.errors:,} of {self.rows:,} users decided{bad}"


class LearnedFile(NamedTuple):
    """What became of a table of outcomes."""

    counts: dict[str, int]
    """The number of rows by status."""

    def __str__(self) -> str:
        rows = sum(self.counts.values())
        return f"{rows:,} outcomes: {', '.join(f'{count:,} {status}' for status, count in self.counts.items())}"


def decide_file(
    agent: TableAgent,
    users: Path,
    out: Path,
    *,
    id_column: str = "user_id",
    run: str | None = None,
    now: Any = None,
    propose: Any = None,
    scores: Any = None,
    progress: Progress | None = None,
) -> DecidedFile:
    """Decide for the users of a file, write the decisions to another, and register them; save the agent then.

    If the process dies before the agent is saved, the same call decides again and writes the same bytes. With a
    drift or a half-life this needs the same `now`.
    """
    decisions = TableDecisions(agent, id_column, run, now, propose, scores)
    if out.exists():
        prefix = decisions.decider.prefix
        first = find_first_id(out)
        if first is not None and not first.startswith(prefix):
            template = "{path} exists and holds no decisions of the run {run!r}; choose another path or give its run"
            raise InvalidFile(ErrorCode.FILE_EXISTS, template, path=format_path(out), run=decisions.run)
        if decisions.is_registered:
            return DecidedFile(decisions.run, 0, 0, is_repeat=True)
    batches = decisions.iter_batches(read_batches(users, id_column).batches)
    write_batches(out, with_progress(batches, progress))
    decisions.register()
    return DecidedFile(decisions.run, decisions.row_count, decisions.error_count)


def find_first_id(path: Path) -> str | None:
    """Return the first decision id of a file; empty: it holds no decisions; None: no row could be decided."""
    names, batches = read_batches(path, "decision_id")
    if "decision_id" not in names:
        return ""
    ids = (id_ for batch in batches for id_ in batch.column("decision_id").to_pylist())
    return next((str(id_) for id_ in ids if id_ not in (None, "")), None)


def learn_file(
    agent: TableAgent,
    outcomes: Path,
    *,
    id_column: str = "decision_id",
    out: Path | None = None,
    now: Any = None,
    progress: Progress | None = None,
) -> LearnedFile:
    """Learn the outcomes of a file, and write the status of each row to another; save the agent then."""
    counts = Counter[str]()
    batches = with_progress(agent._learn_batches(outcomes, id_column, now, counts), progress)
    if out is None:
        for _ in batches:
            pass
    else:
        write_batches(out, batches)
    return LearnedFile({str(status): counts[status] for status in RowStatus if counts[status]})


def with_progress(batches: Iterator[Any], progress: Progress | None) -> Iterator[Any]:
    """Yield record batches, and tell the number of rows so far."""
    rows = 0
    for batch in batches:
        yield batch
        rows += batch.num_rows
        if progress is not None:
            progress(rows)
