"""Export of decisions as a table with propensities, for off-policy evaluation."""

import io
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stagewise.files.atomic_write import write_bytes
from stagewise.policies.problem import Problem
from stagewise.problem.errors import ErrorCode, InvalidFile
from stagewise.problem.formatting import safe_repr
from stagewise.problem.naming import check_segment_name
from stagewise.records.reason import ReasonDetails
from stagewise.server.audit.log_reader import check_experiment, read_versions, was_shown
from stagewise.server.event_log import DECISION, SHOWN, Event
from stagewise.server.store.base import Store
from stagewise.server.versions import ProblemVersion

BATCH_SIZE = 20_000  # rows converted at once
RESERVED_COLUMNS = (
    "decision_id",
    "at",
    "row",
    "action",
    "propensity",
    "mode",
    "version",
    "snapshot",
    "reason",
    "message",
    SHOWN,
)


class DecisionRecord(NamedTuple):
    """A decision with its outcomes."""

    event: Event
    body: dict[str, Any]
    answers: dict[str, float]
    version: ProblemVersion
    now: int
    """The time of the last row; windows that ended before it are closed."""


def export_log(store: Store, experiment: str, path: Path) -> int:
    """Write the decisions of a log to a Parquet file; return their number."""
    if path.suffix.lower() != ".parquet":
        raise InvalidFile(
            ErrorCode.FILE_WRONG_KIND,
            "{path} must end in .parquet",
            path=safe_repr(str(path)),
        )
    check_experiment(store, experiment)
    content, count = encode_parquet(store, experiment)
    write_bytes(path, content)
    return count


def iter_decisions(store: Store, experiment: str) -> Iterator[DecisionRecord]:
    """Yield all decisions with their outcomes."""
    versions, now = read_versions(store, experiment), store.head(experiment).at
    for event in store.iter_events_of_kind(experiment, DECISION):
        body = msgspec.json.decode(event.body)
        yield DecisionRecord(
            event, body, store.answers(experiment, event.decision_index), versions[body["problem"]], now
        )


def encode_parquet(store: Store, experiment: str) -> tuple[bytes, int]:
    """Encode the decisions as Parquet."""
    from arro3.core import Array, RecordBatch, RecordBatchReader, Schema
    from arro3.io import write_parquet

    versions = read_versions(store, experiment)
    fields = build_columns(versions[len(versions)].problem)
    schema = Schema([field for field, _ in fields])
    rows, batches, count = iter_decisions(store, experiment), [], 0
    while portion := list(islice(rows, BATCH_SIZE)):
        count += len(portion)
        columns = [build_array(Array, [value(one) for one in portion], field.type) for field, value in fields]
        batches.append(RecordBatch.from_arrays(columns, schema=schema))
    buffer = io.BytesIO()
    write_parquet(RecordBatchReader.from_batches(schema, batches), buffer, compression="zstd(3)")
    return buffer.getvalue(), count


def build_array(array: Any, values: list[Any], kind: Any) -> Any:
    """Return values as a column; times are converted from integers."""
    from arro3.core import DataType

    return array(values, DataType.int64()).cast(kind) if DataType.is_temporal(kind) else array(values, kind)


def build_columns(problem: Problem) -> Sequence[tuple[Any, Any]]:
    """Return the columns with functions that compute their values.

    A name of the problem that is also a reserved column gets the prefix `context.` or `signal.`.
    """
    from arro3.core import DataType, Field

    number, text, integer = DataType.float64(), DataType.string(), DataType.int64()

    def column(name: str, kind: Any, value: Any) -> tuple[Any, Any]:
        return Field(name, kind, nullable=True), value

    def of_context(name: str, kind: Any, convert: Any) -> tuple[Any, Any]:
        free = f"context.{name}" if name in RESERVED_COLUMNS else name
        return column(free, kind, lambda one: convert(one.body["request"]["context"][name]))

    def of_signal(name: str) -> tuple[Any, Any]:
        return column(f"signal.{name}" if name in RESERVED_COLUMNS else name, number, lambda one: one.answers.get(name))

    def of_limit(name: str, what: str) -> tuple[Any, Any]:
        return column(f"limit.{name}.{what}", number, lambda one: one.body["limits"].get(name, {}).get(what))

    def of_choice(name: str, kind: Any, value: Any) -> tuple[Any, Any]:
        return column(f"choice.{name}", kind, lambda one: value(one.body["choice"]) if "choice" in one.body else None)

    def chosen_limit(name: str) -> tuple[Any, Any]:
        return of_choice(
            f"limit.{name}.pessimistic_cost",
            number,
            lambda choice: choice["limits"].get(name, {}).get("pessimistic_cost"),
        )

    def chosen_action(name: str) -> tuple[Any, Any]:
        return of_choice(f"probability.{name}", number, lambda choice: choice["probabilities"].get(name, 0.0))

    def of_action(name: str) -> tuple[Any, Any]:
        return column(f"probability.{name}", number, lambda one: one.body["probabilities"].get(name, 0.0))

    return [
        column("decision_id", text, lambda one: one.event.key),
        column("at", DataType.timestamp("us", tz="UTC"), lambda one: one.event.at),
        column("row", integer, lambda one: one.event.seq),
        *(of_context(name, number, float) for name in problem.context),
        *(
            of_context(name, text, lambda value, name=name: check_segment_name(value, name))
            for name in problem.divisions
        ),
        column("action", text, lambda one: one.body["action"]),
        column("propensity", number, lambda one: one.body["probabilities"][one.body["action"]]),
        *(of_action(name) for name in problem.actions),
        column("mode", text, lambda one: one.body["mode"]),
        column("version", integer, lambda one: one.body["problem"]),
        column("snapshot", integer, lambda one: one.body["snapshot"]),
        *(of_limit(name, what) for name in problem.limits for what in ("pessimistic_cost", "estimate", "threshold")),
        column("estimated_reward", number, lambda one: one.body["estimated_reward"]),
        column("reason", text, lambda one: one.body["reason"]),
        column("message", text, lambda one: get_message(one.body)),
        of_choice("action", text, lambda choice: choice["action"]),
        *(chosen_action(name) for name in problem.actions),
        *(chosen_limit(name) for name in problem.limits),
        of_choice("reason", text, lambda choice: choice["reason"]),
        of_choice("message", text, get_message),
        *(of_signal(name) for name in problem.signals),
        column(SHOWN, DataType.bool(), lambda one: was_shown(one.body, one.answers)),
    ]


def get_message(body: dict[str, Any]) -> str | None:
    """Return why the safe action was served, as a sentence."""
    reason = body["reason"]
    return None if reason is None else ReasonDetails.from_json((reason, body["details"])).message
