"""Export of decisions as a table with propensities, for off-policy evaluation."""

import io
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stagewise.files.atomic_write import write_bytes
from stagewise.policies.problem import Problem
from stagewise.problem.columns import is_blank
from stagewise.problem.context import check_segment_name
from stagewise.problem.context_columns import Boolean, ContextColumn, Date, Number
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import safe_repr
from stagewise.records.reason import ReasonDetails
from stagewise.server.audit.log_reader import check_experiment, read_versions, was_shown
from stagewise.server.event_log import DECISION, SHOWN, Event
from stagewise.server.store.base import Store
from stagewise.server.user_keys import open_rows

BATCH_ROWS = 20_000  # rows converted at once
RESERVED_COLUMNS = (
    "decision_id", "at", "number", "action", "propensity", "mode", "version", "snapshot", "reason", "message", SHOWN,
)  # fmt: skip


class DecisionRecord(NamedTuple):
    """A decision with its outcomes."""

    event: Event
    body: dict[str, Any]
    answers: dict[str, float]


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
            DecisionRecord(event, msgspec.json.decode(event.body), store.answers(event.number))
            for event in open_rows(store, portion)
        ]
        count += len(rows)
        arrays = [Array([get(row) for row in rows], types[kind]) for _, kind, get in columns]
        arrays = [one.cast(utc) if column[0] == "at" else one for one, column in zip(arrays, columns, strict=True)]
        batches.append(RecordBatch.from_arrays(arrays, schema=schema))
    buffer = io.BytesIO()
    write_parquet(RecordBatchReader.from_batches(schema, batches), buffer, compression="zstd(3)")
    return buffer.getvalue(), count


def build_columns(problem: Problem) -> Sequence[tuple[str, type, Callable[[DecisionRecord], Any]]]:
    """Return the name, the type and the value of each column.

    A name of the problem that is also a reserved column gets the prefix `context.` or `signal.`.
    """
    Column = tuple[str, type, Callable[[DecisionRecord], Any]]

    def of_context(name: str, kind: type, convert: Callable[[Any], Any]) -> Column:
        free = f"context.{name}" if name in RESERVED_COLUMNS else name
        return free, kind, lambda one: convert(one.body["request"]["context"].get(name))

    def of_signal(name: str) -> Column:
        return f"signal.{name}" if name in RESERVED_COLUMNS else name, float, lambda one: one.answers.get(name)

    def of_limit(name: str, what: str) -> Column:
        return f"limit.{name}.{what}", float, lambda one: one.body["limits"].get(name, {}).get(what)

    def of_action(name: str) -> Column:
        return f"probability.{name}", float, lambda one: one.body["probabilities"].get(name, 0.0)

    def of_choice(column: Column) -> Column:
        """Return a column of what the policy would have served, if something else was served."""
        name, kind, get = column
        return (
            f"choice.{name}",
            kind,
            lambda one: get(one._replace(body=one.body["choice"])) if "choice" in one.body else None,
        )

    action: Column = ("action", str, lambda one: one.body["action"])
    reason: Column = ("reason", str, lambda one: one.body["reason"])
    message: Column = ("message", str, lambda one: get_message(one.body))
    actions = [of_action(name) for name in problem.action_names]
    return [
        ("decision_id", str, lambda one: one.event.key),
        ("at", int, lambda one: one.event.at),
        ("number", int, lambda one: one.event.number),
        *(of_context(name, *get_export(problem.declared_columns.get(name), name)) for name in problem.context_names),
        action,
        ("propensity", float, lambda one: one.body["probabilities"][one.body["action"]]),
        *actions,
        ("mode", str, lambda one: one.body["mode"]),
        ("version", int, lambda one: one.body["problem"]),
        ("snapshot", int, lambda one: one.body["snapshot"]),
        *(of_limit(name, what) for name in problem.limits for what in ("pessimistic_cost", "estimate", "threshold")),
        ("estimated_reward", float, lambda one: one.body["estimated_reward"]),
        reason,
        message,
        of_choice(action),
        *map(of_choice, actions),
        *(of_choice(of_limit(name, "pessimistic_cost")) for name in problem.limits),
        of_choice(reason),
        of_choice(message),
        *(of_signal(name) for name in problem.reported),
        (SHOWN, bool, lambda one: was_shown(one.body, one.answers)),
    ]


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


def get_message(body: dict[str, Any]) -> str | None:
    """Return why the safe action was served, as a sentence."""
    reason = body["reason"]
    return None if reason is None else ReasonDetails.from_json((reason, body["details"])).message
