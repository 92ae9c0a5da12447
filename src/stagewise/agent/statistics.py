"""Statistics that an agent keeps beside its policy's memory: plays, alerts, drift tracks and learned logs.

No confidence bound depends on them. They are saved with the agent.
"""

from collections import deque
from collections.abc import Mapping
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from stagewise.agent.duplicate_logs import LearnedRows
from stagewise.engine.compile import Floats
from stagewise.models.diagnostics import count_outcomes
from stagewise.problem.errors import ErrorCode, InvalidProblem
from stagewise.problem.formatting import format_count
from stagewise.records.decision import Decision
from stagewise.records.reason import ReasonDetails

RECENT = 64  # decisions that are kept for reports
LOOK_AFTER = 256  # outcomes of a signal before its first drift test
NEVER = 2**62 - 1


class DriftTrack:
    """The drift test of one signal: its marks, where they start, and the last result (see `monitor`)."""

    def __init__(self, base: dict[str, Any] | None = None, marked: int = 0) -> None:
        self.marks: list[dict[str, Any]] = []
        self.base = base  # the sums when a person acknowledged a drift; None: there was none
        self.marked = marked  # the number of marks so far
        start = 0 if base is None else int(count_outcomes(base))
        self.next_check = start + LOOK_AFTER  # the number of outcomes at which the signal is tested next
        self.compared: tuple[int, int] | None = None  # outcomes before and after the newest mark, at the last test
        self.moved: ReasonDetails | None = None  # the drift that the last test found

    @property
    def verdict(self) -> "DriftTrack":
        """The track without its sums."""
        track = DriftTrack(marked=self.marked)
        track.next_check, track.compared, track.moved = self.next_check, self.compared, self.moved
        return track

    def to_dict(self) -> dict[str, Any]:
        base = None if self.base is None else encode_mark(self.base)
        marks = [encode_mark(mark) for mark in self.marks]
        return {
            "marks": marks,
            "base": base,
            **{name: getattr(self, name) for name in TRACK_FIELDS},
            "moved": encode_cause(self.moved),
        }

    @classmethod
    def from_dict(cls, content: Any) -> "DriftTrack":
        """Return the track that `to_dict` wrote."""
        track = cls(None if content["base"] is None else decode_mark(content["base"]), parse_count(content["marked"]))
        track.marks = [decode_mark(mark) for mark in content["marks"]]
        track.next_check = parse_count(content["next_check"])
        if content["compared"] is not None:
            early, late = content["compared"]
            track.compared = parse_count(early), parse_count(late)
        track.moved = None if content["moved"] is None else parse_contradiction(content["moved"])
        return track


TRACK_FIELDS = ("marked", "next_check", "compared")


class RegisteredProposal(NamedTuple):
    """A decision on a proposal that another process made."""

    row: Floats  # as the agent learns it
    weights: Floats  # (K,) as proposed
    probabilities: Floats  # (K,) as played


class Statistics:
    """Plays, alerts, drift tracks and logs of an agent."""

    def __init__(self) -> None:
        self.plays: dict[int, int] = {}  # by the decision's index; −1: the safe action beside a list
        self.safe_only_rounds = 0  # rounds in which only the safe action could be played
        self.refused = 0  # rejected outcomes
        self.refused_log_rows = 0  # rows of logs that were left out because of their context
        self.clipped: dict[str, int] = {}  # values beyond their range, by number
        self.cancelled = 0  # decisions that were not carried out; `plays` no longer counts them
        self.alerts: dict[str, ReasonDetails] = {}  # contradictions, by the name of the finding
        self.warnings: dict[str, ReasonDetails] = {}  # mismatches that stop nothing, by the name of the finding
        self.acknowledged: dict[str, str] = {}  # the notes of acknowledged alerts and warnings, by name
        self.changed: set[str] = set()  # limits of which a change was just found that holds back one action; not saved
        self.tracks: dict[str, DriftTrack] = {}  # by signal
        self.logs: dict[str, int] = {}  # the digests of learned logs, and their numbers of rows
        self.rows = LearnedRows()  # a sample of their rows
        self.updates_until_check = LOOK_AFTER  # updates before the next drift test can be due
        self.recent: deque[Decision] = deque(maxlen=RECENT)  # not saved
        self.registered: deque[RegisteredProposal | None] = deque(maxlen=RECENT)  # None: without a proposal; not saved

    def reset_tracks(self) -> None:
        """Clear the drift tracks and recent decisions, as after an action was added."""
        self.tracks = {name: DriftTrack(marked=track.marked) for name, track in self.tracks.items()}
        self.updates_until_check = 1
        self.recent.clear()
        self.registered.clear()

    def get_track(self, name: str) -> DriftTrack:
        return self.tracks.setdefault(name, DriftTrack())

    def record_decision(self, decision: Decision) -> int:
        """Count a decision; return its index, −1 for the safe action beside a list."""
        if decision.reason_details is not None:
            self.safe_only_rounds += 1
        index = -1 if decision.action_index is None else decision.action_index
        self.plays[index] = self.plays.get(index, 0) + 1
        if decision._clipped:
            self.count_context(dict.fromkeys(decision._clipped, 1))
        if decision._round_result is not None:
            self.recent.append(decision)
        return index

    def count_context(self, clipped: Mapping[str, int], refused: int = 0) -> None:
        """Count values that were clipped, and rows of logs that were left out."""
        self.refused_log_rows += refused
        for name, count in clipped.items():
            self.clipped[name] = self.clipped.get(name, 0) + count

    def cancel_play(self, round_: int, index: int) -> None:
        """Count a decision of this agent as cancelled; `index` is used if the decision is not recent."""
        index = next((one._position for one in self.recent if one.round == round_), index)
        if self.plays.get(index, 0) > 0:
            self.plays[index] -= 1
            self.cancelled += 1
        self.recent = deque((one for one in self.recent if one.round != round_), maxlen=RECENT)

    @property
    def execution_rate(self) -> float:
        """The share of decisions that were carried out."""
        return 1.0 - self.cancelled / max(self.cancelled + sum(self.plays.values()), 1)

    @property
    def open_alerts(self) -> dict[str, ReasonDetails]:
        """The alerts that are not acknowledged."""
        return {name: cause for name, cause in self.alerts.items() if name not in self.acknowledged}

    @property
    def alert(self) -> ReasonDetails | None:
        """The first open alert, for which the safe action is played."""
        return next(iter(self.open_alerts.values()), None)

    @property
    def open_warnings(self) -> dict[str, ReasonDetails]:
        """The warnings that are not acknowledged."""
        return {name: cause for name, cause in self.warnings.items() if name not in self.acknowledged}

    def clone(self) -> "Statistics":
        """Return a copy without the recent decisions."""
        return Statistics.from_dict(self.to_dict())

    def without_history(self) -> "Statistics":
        """Return a copy without the sums of drift tracks, for replicas and reports, which run no drift tests."""
        other = copy(self)
        other.tracks = {name: track.verdict for name, track in self.tracks.items()}
        other.updates_until_check = NEVER
        return other.clone()

    def to_dict(self) -> dict[str, Any]:
        return {
            "plays": {str(index): count for index, count in self.plays.items()},
            "safe_only_rounds": self.safe_only_rounds,
            "refused": self.refused,
            "refused_log_rows": self.refused_log_rows,
            "clipped": dict(self.clipped),
            "cancelled": self.cancelled,
            "alerts": {name: encode_cause(cause) for name, cause in self.alerts.items()},
            "warnings": {name: encode_cause(cause) for name, cause in self.warnings.items()},
            "acknowledged": dict(self.acknowledged),
            "tracks": {name: track.to_dict() for name, track in self.tracks.items()},
            "updates_until_check": self.updates_until_check,
            "logs": dict(self.logs),
            "rows": self.rows.to_dict(),
        }

    @classmethod
    def from_dict(cls, content: Any) -> "Statistics":
        """Return the statistics that `to_dict` wrote."""
        statistics = cls()
        statistics.plays = {int(index): parse_count(count) for index, count in content["plays"].items()}
        for name in ("safe_only_rounds", "refused", "refused_log_rows", "cancelled", "updates_until_check"):
            setattr(statistics, name, parse_count(content[name]))
        statistics.clipped = {str(name): parse_count(count) for name, count in content["clipped"].items()}
        statistics.alerts = {str(name): parse_contradiction(cause) for name, cause in content["alerts"].items()}
        statistics.warnings = {str(name): parse_contradiction(cause) for name, cause in content["warnings"].items()}
        statistics.acknowledged = {str(name): str(note) for name, note in content["acknowledged"].items()}
        statistics.tracks = {str(name): DriftTrack.from_dict(track) for name, track in content["tracks"].items()}
        statistics.logs = {str(digest): parse_count(rows) for digest, rows in content["logs"].items()}
        statistics.rows = LearnedRows.from_dict(content["rows"])
        return statistics


def describe_contexts(clipped: Mapping[str, int], refused: int) -> str:
    """Return how many values were clipped, and how many rows of logs were left out; empty if none was."""
    values = ", ".join(f"{format_count(count, 'value')} of {name!r}" for name, count in clipped.items())
    rows = "1 row of a log left out because of its context"
    rows = rows if refused == 1 else f"{refused:,} rows of logs left out because of their contexts"
    return "; ".join(([f"clipped: {values}"] if clipped else []) + ([rows] if refused else []))


def encode_mark(mark: dict[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(value).tolist() for name, value in mark.items()}


def decode_mark(mark: Any) -> dict[str, Any]:
    return {str(name): np.array(value, dtype=np.float64) for name, value in mark.items()}


def encode_cause(cause: ReasonDetails | None) -> Any:
    return None if cause is None else cause.to_json()


def parse_contradiction(content: Any) -> ReasonDetails:
    """Return the cause of an alert from a file."""
    cause = ReasonDetails.from_json(content)
    if not cause.contradicts:
        template = "a stored alert has the reason {reason!s}; it must be a contradiction"
        raise InvalidProblem(ErrorCode.FILE_CORRUPT, template, reason=cause.reason)
    return cause


def parse_count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**62:
        raise InvalidProblem(
            ErrorCode.FILE_CORRUPT, "a stored count is {value!r}; it must be a whole number from 0", value=value
        )
    return value
