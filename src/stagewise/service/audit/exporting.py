"""The log as a table, one row for each decision: with propensities, for off-policy evaluation elsewhere."""

import io
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stagewise.files.whole import write_bytes
from stagewise.policies.problem import Problem
from stagewise.problem.errors import InvalidFile
from stagewise.problem.naming import segment_name
from stagewise.problem.words import shown
from stagewise.service.audit.dsjson import line_of
from stagewise.service.audit.reading import known_experiment, versions_of, was_shown
from stagewise.service.deciding import cause_in
from stagewise.service.records import DECISION, SHOWN, Event
from stagewise.service.store.store import Store
from stagewise.service.versions import Version

PORTION = 20_000  # rows that are turned into columns at once
OURS = ("decision_id", "at", "row", "action", "propensity", "mode", "version", "state", "reason", "fallback", SHOWN)


class Exported(NamedTuple):
    """A decision with all that is known of it."""

    event: Event
    said: dict[str, Any]
    answers: dict[str, float]
    version: Version
    now: int
    """When the log ends: windows that closed before are closed."""


def export(store: Store, experiment: str, path: Path) -> int:
    """Write a log to a file, Parquet or dsjson by its name; return how many decisions there are."""
    kinds = {".parquet": packed, ".dsjson": lined}
    make = kinds.get(path.suffix.lower())
    if make is None:
        raise InvalidFile(f"{shown(str(path))} ends neither in .parquet nor in .dsjson, which say what to write")
    known_experiment(store, experiment)
    content, count = make(store, experiment)
    write_bytes(path, content)
    return count


def decisions_of(store: Store, experiment: str) -> Iterator[Exported]:
    """Give all decisions with what is known of them."""
    versions, now = versions_of(store, experiment), store.head(experiment).at
    for event in store.all_of_kind(experiment, DECISION):
        said = msgspec.json.decode(event.body)
        yield Exported(event, said, store.answers(experiment, event.place), versions[said["problem"]], now)


def lined(store: Store, experiment: str) -> tuple[bytes, int]:
    """Return the log in Vowpal Wabbit's dsjson."""
    lines = [line_of(*one) for one in decisions_of(store, experiment)]
    return b"".join(line + b"\n" for line in lines), len(lines)


def packed(store: Store, experiment: str) -> tuple[bytes, int]:
    """Return the log as Parquet."""
    from arro3.core import Array, RecordBatch, RecordBatchReader, Schema
    from arro3.io import write_parquet

    versions = versions_of(store, experiment)
    fields = columns_of(versions[len(versions)].problem)
    schema = Schema([field for field, _ in fields])
    rows, batches, count = decisions_of(store, experiment), [], 0
    while portion := list(islice(rows, PORTION)):
        count += len(portion)
        columns = [arrow(Array, [value(one) for one in portion], field.type) for field, value in fields]
        batches.append(RecordBatch.from_arrays(columns, schema=schema))
    buffer = io.BytesIO()
    write_parquet(RecordBatchReader.from_batches(schema, batches), buffer, compression="zstd(3)")
    return buffer.getvalue(), count


def arrow(array: Any, values: list[Any], kind: Any) -> Any:
    """Return values as a column; times are made of whole numbers."""
    from arro3.core import DataType

    return array(values, DataType.int64()).cast(kind) if DataType.is_temporal(kind) else array(values, kind)


def columns_of(problem: Problem) -> Sequence[tuple[Any, Any]]:
    """Return the columns, each with how a decision gives its value.

    A name of the problem is the column's, but where it is one of ours too; then it is context.… or signal.….
    """
    from arro3.core import DataType, Field

    number, text, whole = DataType.float64(), DataType.string(), DataType.int64()

    def column(name: str, kind: Any, value: Any) -> tuple[Any, Any]:
        return Field(name, kind, nullable=True), value

    def of_context(name: str, kind: Any, convert: Any) -> tuple[Any, Any]:
        free = f"context.{name}" if name in OURS else name
        return column(free, kind, lambda one: convert(one.said["asked"]["context"][name]))

    def of_signal(name: str) -> tuple[Any, Any]:
        return column(f"signal.{name}" if name in OURS else name, number, lambda one: one.answers.get(name))

    def of_limit(name: str, what: str) -> tuple[Any, Any]:
        return column(f"limit.{name}.{what}", number, lambda one: one.said["limits"].get(name, {}).get(what))

    def of_choice(name: str, kind: Any, value: Any) -> tuple[Any, Any]:
        return column(f"choice.{name}", kind, lambda one: value(one.said["choice"]) if "choice" in one.said else None)

    def chosen_limit(name: str) -> tuple[Any, Any]:
        return of_choice(f"limit.{name}.dearest", number, lambda made: made["limits"].get(name, {}).get("dearest"))

    def chosen_action(name: str) -> tuple[Any, Any]:
        return of_choice(f"probability.{name}", number, lambda made: made["probabilities"].get(name, 0.0))

    def of_action(name: str) -> tuple[Any, Any]:
        return column(f"probability.{name}", number, lambda one: one.said["probabilities"].get(name, 0.0))

    return [
        column("decision_id", text, lambda one: one.event.key),
        column("at", DataType.timestamp("us", tz="UTC"), lambda one: one.event.at),
        column("row", whole, lambda one: one.event.seq),
        *(of_context(name, number, float) for name in problem.context),
        *(of_context(name, text, lambda value, name=name: segment_name(value, name)) for name in problem.divisions),
        column("action", text, lambda one: one.said["action"]),
        column("propensity", number, lambda one: one.said["probabilities"][one.said["action"]]),
        *(of_action(name) for name in problem.actions),
        column("mode", text, lambda one: one.said["mode"]),
        column("version", whole, lambda one: one.said["problem"]),
        column("state", whole, lambda one: one.said["state"]),
        *(of_limit(name, what) for name in problem.limits for what in ("dearest", "estimate", "threshold")),
        column("estimated_reward", number, lambda one: one.said["estimated_reward"]),
        column("reason", text, lambda one: one.said["reason"]),
        column("fallback", text, lambda one: sentence_in(one.said)),
        of_choice("action", text, lambda made: made["action"]),
        *(chosen_action(name) for name in problem.actions),
        *(chosen_limit(name) for name in problem.limits),
        of_choice("reason", text, lambda made: made["reason"]),
        of_choice("fallback", text, sentence_in),
        *(of_signal(name) for name in problem.signals),
        column(SHOWN, DataType.bool(), lambda one: was_shown(one.said, one.answers)),
    ]


def sentence_in(said: dict[str, Any]) -> str | None:
    """Return why the safe action was served, or would have been, as a sentence."""
    cause = cause_in(said)
    return None if cause is None else cause.sentence
