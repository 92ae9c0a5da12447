"""What audits read from a log, and what they can find: a code and its data."""

from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec

from stagewise.problem.errors import ErrorCode, Fault, SentenceCode
from stagewise.problem.formatting import safe_repr, suggest_name
from stagewise.server.controls import Controls, ProblemVersion, build_version
from stagewise.server.event_log import CONTROL, DECISION, GLOBAL, LOG, PROBLEM, SHOWN, Event
from stagewise.server.messages import UnknownDecision, UnknownExperiment
from stagewise.server.offline_log import DECODE_SIZE
from stagewise.server.store.base import Store


class FindingCode(SentenceCode):
    """What is wrong with a log. The codes never change; the sentences may."""

    ROW_MISSING = "row_missing", "row {row} is missing, and seal {seal} has it"
    ROW_CHANGED = "row_changed", "row {row} ({kind} {key}) was changed or moved"
    ROW_INSERTED = "row_inserted", "row {row} ({kind} {key}) is in no seal, and its number was sealed as a gap"
    LINK_MISSING = (
        "link_missing",
        "row {row} is row {found} of writer {writer}, whose next row is {link}: rows are missing",
    )
    NUMBERED_BEFORE_CHOSEN = (
        "numbered_before_chosen",
        "row {row} had seen row {seen} when it was chosen; its number must be higher",
    )
    SEAL_DIFFERS = "seal_differs", "seal {seal} does not match its rows or the seal before it"
    ROW_REPEATED = "row_repeated", "row {row} repeats {kind} {key}"
    ROW_MALFORMED = "row_malformed", "row {row} is not a valid {kind}"
    WRONG_NUMBER = "wrong_number", "row {row} is {kind} number {found}; the next is {expected}"
    RECEIPT_DIFFERS = "receipt_differs", "the log does not contain the receipt {receipt}: there it has {found}"
    CHECKPOINT_DIFFERS = (
        "checkpoint_differs",
        "the checkpoint of {name} is not the one whose digest the log has",
    )
    KEPT_ROWS_DIFFER = (
        "kept_rows_differ",
        "a change of controls, problems, keys or secrets before seal {seal} was changed, removed or added",
    )
    RECEIPT_LOST = (
        "receipt_lost",
        "the row of the receipt {receipt} was written after the backup from which the store was restored in row {row}",
    )
    RECEIPT_REMOVED = (
        "receipt_removed",
        "the row of the receipt {receipt} was removed with all rows up to seal {seal}; it can no longer be compared",
    )
    NOT_IN_EFFECT = (
        "not_in_effect",
        "row {row} is decision {key}: it names row {found} of the {what}, and row {expected} was in effect",
    )
    VERSION_INVALID = "version_invalid", "row {row} is not a valid version of the problem: {error}"
    OUTCOME_OF_OTHER_DECISION = (
        "outcome_of_other_decision",
        "row {row} is an outcome of {key}, which is not row {found}",
    )
    OUTCOME_REPEATED = "outcome_repeated", "row {row} repeats {signal} of {key}"
    OFFLINE_LOG_INVALID = (
        "offline_log_invalid",
        "row {row} is part {part} of an offline log that comes after decisions, or whose parts or digest do not match",
    )
    ANSWERS_DIFFER = "answers_differ", "decision {decision} has the outcomes {found}, and the log says {expected}"
    SECRET_DIFFERS = "secret_differs", "the secret {name} has the digest {found}, and the log says {expected}"
    SNAPSHOT_DIFFERS = (
        "snapshot_differs",
        "the snapshot of row {row} does not match the log: another release or another program wrote it",
    )
    NOT_REPRODUCED = (
        "not_reproduced",
        "row {row}, decision {key}: {field} is {found} in the log and {replayed} by replay",
    )


class DecisionBasis(msgspec.Struct):
    """The fields of a decision row that say how it was made."""

    problem: int
    """The version of the problem."""
    snapshot: int
    """The last learned row."""
    control: tuple[int, int]
    """The numbers of the last control or version row of the experiment, and of the last row of the global log."""


decode_basis = msgspec.json.Decoder(DecisionBasis).decode


class EffectiveControls(NamedTuple):
    """The numbers of the versions and controls of an experiment, and of the global log.

    A change is written while nothing else is: it holds for every decision with a higher number, and for no other.
    """

    versions: list[int]
    controls: list[int]
    everywhere: list[int]

    def find_error(self, event: Event) -> Fault | None:
        """Return what a decision names that was not in effect at its row."""
        number, basis = event.number, decode_basis(event.body)
        own_row, global_row = basis.control
        latest = basis.snapshot if event.seq == 0 else event.seq - 1  # a row without a place is not sealed yet
        for what, found, expected in (
            ("versions", basis.problem, bisect_left(self.versions, number)),
            ("controls", own_row, [0, *self.controls][bisect_left(self.controls, number)]),
            ("global log", global_row, [0, *self.everywhere][bisect_left(self.everywhere, number)]),
            ("snapshots", basis.snapshot, min(max(basis.snapshot, 0), latest)),
        ):
            if found != expected:
                details = {
                    "row": number, "key": safe_repr(event.key), "what": what, "found": found, "expected": expected,
                }  # fmt: skip
                return Fault(FindingCode.NOT_IN_EFFECT, details)
        return None


def read_effective_controls(store: Store, experiment: str) -> EffectiveControls:
    versions = [event.number for event in store.iter_events_of_kind(experiment, PROBLEM)]
    controls = [event.number for event in store.iter_events_of_kind(experiment, CONTROL)]
    everywhere = [event.number for event in store.iter_events_of_kind(GLOBAL, CONTROL)]
    return EffectiveControls(versions, sorted([*versions, *controls]), everywhere)


def read_controls(store: Store, experiment: str) -> dict[int, Controls]:
    """Return the controls after each control or problem row."""
    events = sorted([*store.iter_events_of_kind(experiment, CONTROL), *store.iter_events_of_kind(experiment, PROBLEM)])
    return {controls.row: controls for controls in accumulate(events, Controls.apply, initial=Controls())}


def read_versions(store: Store, experiment: str) -> dict[int, ProblemVersion]:
    """Return all versions of an experiment's problem by number."""
    versions: dict[int, ProblemVersion] = {}
    for event in store.iter_events_of_kind(experiment, PROBLEM):
        version = build_version(versions.get(len(versions)), event)
        versions[version.number] = version
    return versions


def check_experiment(store: Store, name: str) -> str:
    names = store.experiments()
    if name not in names:
        suggestion = suggest_name(name, names) or f"; it has {', '.join(map(repr, names[:8])) or 'none'}"
        template = "{name} is not an experiment of this store{suggestion}"
        raise UnknownExperiment(ErrorCode.UNKNOWN_EXPERIMENT, template, name=safe_repr(name), suggestion=suggestion)
    return name


def find_decision(store: Store, experiment: str, id_: str) -> Event:
    """Return the row of a decision. Raises UnknownDecision."""
    event = store.find(experiment, DECISION, id_)
    if event is None:
        template = "{id} is no decision of {experiment}"
        raise UnknownDecision(ErrorCode.UNKNOWN_DECISION, template, id=safe_repr(id_), experiment=safe_repr(experiment))
    return event


def count_offline_rows(store: Store, experiment: str) -> int:
    """Return the number of offline log rows of an experiment."""
    first = store.find(experiment, LOG, "1")
    return 0 if first is None else DECODE_SIZE(first.body).rows


def was_shown(request: Mapping[str, Any], answers: Mapping[str, float]) -> bool:
    """Return whether a decision was carried out: by default yes, for a deferred one only if reported."""
    return answers.get(SHOWN, 0.0 if request.get("deferred") else 1.0) != 0.0
