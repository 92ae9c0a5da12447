"""Export of decisions as a table with propensities, for off-policy evaluation."""

import io
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from stagewise.files.atomic_write import write_bytes
from stagewise.policies.problem import Problem
from stagewise.problem.columns import is_blank
from stagewise.problem.context import check_segment_name
from stagewise.problem.context_columns import Boolean, ContextColumn, Date, Number
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import safe_repr
from stagewise.server.audit.log_reader import check_experiment, read_versions, was_shown
from stagewise.server.decide import Choice, DecisionRecord, decode_decision
from stagewise.server.event_log import DECISION, SHOWN, Event
from stagewise.server.store.base import Store
from stagewise.server.user_keys import open_rows

BATCH_ROWS = 20_000  # rows converted at once
RESERVED_COLUMNS = (
    "decision_id", "at", "number", "action", "propensity", "mode", "version", "snapshot", "reason", "message", SHOWN,
)  # fmt: skip


class ExportedDecision(NamedTuple):
    """A decision with its outcomes."""

    event: Event
    record: DecisionRecord
    answers: dict[str, float]


Column = tuple[str, type, Callable[[ExportedDecision], Any]]
"""A name, a type, and the value of a decision."""
ChoiceColumn = tuple[str, type, Callable[[Choice], Any]]
"""The same of what was served, or of what the policy would have served."""


def export_log(store: Store, experiment: str, path: Path) -> int:
    """Write the decisions of a log to a Parquet file; return their number."""
    if path.suffix.lower() != ".parquet":
        raise InvalidFile(ErrorCode.FILE_WRONG_KIND, "{path} must end in .parquet", path=safe_repr(str(path)))
    check_experiment(store, experiment)
    content, count = encode_parquet(store, experiment)
    write_bytes(path, content)
    return count


def encode_parquet(store: Store, experiment: str) -> tuple[bytes, int]:
    """Encode the decisions as Parquet; return them and their number."""
    from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema
    from arro3.io import write_parquet

    types = {str: DataType.string(), float: DataType.float64(), int: DataType.int64(), bool: DataType.bool()}
    utc = DataType.timestamp("us", tz="UTC")
    versions = read_versions(store, experiment)
    columns = build_columns(versions[len(versions)].problem)
    schema = Schema([Field(name, utc if name == "at" else types[kind], nullable=True) for name, kind, _ in columns])
    events, batches, count = store.iter_events_of_kind(experiment, DECISION), [], 0
    while portion := list(islice(events, BATCH_ROWS)):
        rows = [
            ExportedDecision(event, decode_decision(event.body), store.answers(event.number))
            for event in open_rows(store, portion)
        ]
        count += len(rows)
        arrays = [Array([get(row) for row in rows], types[kind]) for _, kind, get in columns]
        arrays = [one.cast(utc) if column[0] == "at" else one for one, column in zip(arrays, columns, strict=True)]
        batches.append(RecordBatch.from_arrays(arrays, schema=schema))
    buffer = io.BytesIO()
    write_parquet(RecordBatchReader.from_batches(schema, batches), buffer, compression="zstd(3)")
    return buffer.getvalue(), count


def build_columns(problem: Problem) -> Sequence[Column]:
    """Return the columns in order; what the policy would have served, if something else was, begins with `choice.`."""
    action: ChoiceColumn = ("action", str, lambda choice: choice.action)
    actions = [build_probability_column(name) for name in problem.action_names]
    limits = [build_limit_columns(name) for name in problem.limits]
    reason: ChoiceColumn = ("reason", str, lambda choice: choice.reason)
    message: ChoiceColumn = ("message", str, lambda choice: None if choice.cause is None else choice.cause.message)
    return [
        ("decision_id", str, lambda one: one.event.key),
        ("at", int, lambda one: one.event.at),
        ("number", int, lambda one: one.event.number),
        *(build_context_column(problem, name) for name in problem.context_names),
        of_served(action),
        ("propensity", float, lambda one: one.record.probabilities[one.record.action]),
        *map(of_served, actions),
        ("mode", str, lambda one: one.record.mode),
        ("version", int, lambda one: one.record.problem),
        ("snapshot", int, lambda one: one.record.snapshot),
        *(of_served(column) for columns in limits for column in columns),
        ("estimated_reward", float, lambda one: one.record.estimated_reward),
        of_served(reason),
        of_served(message),
        of_choice(action),
        *map(of_choice, actions),
        *(of_choice(pessimistic_cost) for pessimistic_cost, *_ in limits),
        of_choice(reason),
        of_choice(message),
        *map(build_signal_column, problem.reported),
        (SHOWN, bool, lambda one: was_shown(one.record.request, one.answers)),
    ]


def of_served(column: ChoiceColumn) -> Column:
    name, kind, get = column
    return name, kind, lambda one: get(one.record)


def of_choice(column: ChoiceColumn) -> Column:
    name, kind, get = column
    return f"choice.{name}", kind, lambda one: None if (own := one.record.policy_choice) is None else get(own)


def build_probability_column(name: str) -> ChoiceColumn:
    return f"probability.{name}", float, lambda choice: choice.probabilities.get(name, 0.0)


def build_limit_columns(name: str) -> list[ChoiceColumn]:
    """Return the pessimistic cost, the estimate and the threshold of a limit."""

    def build(what: str) -> ChoiceColumn:
        return f"limit.{name}.{what}", float, lambda choice: getattr(choice.limits.get(name), what, None)

    return [build(what) for what in ("pessimistic_cost", "estimate", "threshold")]


def build_context_column(problem: Problem, name: str) -> Column:
    """Return a column of the context; a name that is also a reserved column gets the prefix `context.`."""
    kind, convert = get_export(problem.declared_columns.get(name), name)
    free = f"context.{name}" if name in RESERVED_COLUMNS else name
    return free, kind, lambda one: convert(one.record.request["context"].get(name))


def build_signal_column(name: str) -> Column:
    """Return a column of a signal; a name that is also a reserved column gets the prefix `signal.`."""
    return f"signal.{name}" if name in RESERVED_COLUMNS else name, float, lambda one: one.answers.get(name)


def get_export(column: ContextColumn | None, name: str) -> tuple[type, Callable[[Any], Any]]:
    """Return the type of a column of the context in an export, and how a logged value is converted."""
    kind: type = float if isinstance(column, Number) else bool if isinstance(column, Boolean) else str

    def convert(value: Any) -> Any:
        if is_blank(value) or isinstance(value, str):
            return None if is_blank(value) else value
        if isinstance(column, Date):
            return column.format(float(value))
        return check_segment_name(value, name) if kind is str else kind(value)

    return kind, convert
