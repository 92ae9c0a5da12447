"""Statistics beside a policy's memory: plays, alerts, drift tracks, and logs that are learned, each outcome once.

An agent's statistics hold a digest of every log, which does not depend on the order of its rows, and a sample of the
hashes of learned rows: all of them at first, later those below a threshold that is halved whenever there are too many.

Statistics that an agent keeps beside its policy's memory: plays, alerts, drift tracks and learned logs.

No confidence bound depends on them. They are saved with the agent.
"""

import base64
import math
from collections import deque
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from stagewise.engine.compile import Floats, Ints
from stagewise.models.diagnostics import count_outcomes
from stagewise.problem.checks import check_bool
from stagewise.problem.columns import Hashes, hash_rows
from stagewise.problem.errors import ErrorCode, InvalidOutcome, InvalidProblem
from stagewise.problem.formatting import format_count
from stagewise.records.decision import Decision
from stagewise.records.reason import ReasonDetails

MAX_LOGS = 10_000  # logs that are remembered, the latest
MAX_ROWS = 1 << 14  # hashes of rows that are remembered
MIN_SURPRISE = 30.0  # nats: honest logs have as much in common with probability e⁻³⁰
OVERRIDE_HINT = "give again=True where these are other outcomes that happen to be the same"


class LogFingerprint(NamedTuple):
    """The digest and the row hashes of a log."""

    digest: str | None  # None: another honest log may well be the same
    hashes: Hashes  # of its different rows, sorted
    counts: Ints  # how many rows each of them stands for

    @property
    def rows(self) -> int:
        return int(self.counts.sum())


def compute_fingerprint(actions: Any, values: Any) -> LogFingerprint:
    """Return the fingerprint of a log; it has a digest only if an equal log is improbable.

    If rows have frequencies p = c/n, n independent rows are equal again, in some order, with probability n!/Πc! Πpᶜ,
    and in the same order with Πpᶜ. Twenty rows without a context, all of one action without a reward, identify nothing;
    a thousand rows of several actions do.
    """
    if not len(actions):
        return LogFingerprint(None, np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64))
    parts = (np.asarray(part, dtype=np.float64) for part in (actions, values))
    hashes = hash_rows(np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1))
    distinct, counts = np.unique(hashes, return_counts=True)
    in_order = float(counts @ np.log(counts.sum() / counts))
    orders = math.lgamma(len(hashes) + 1.0) - sum(
        many * math.lgamma(count + 1.0) for count, many in count_values(counts)
    )
    in_any_order = in_order - orders
    if in_any_order >= MIN_SURPRISE:
        content = b"any order" + distinct.tobytes() + counts.tobytes()
    elif in_order >= MIN_SURPRISE:
        content = b"this order" + hashes.tobytes()
    else:
        return LogFingerprint(None, distinct, counts)
    return LogFingerprint(sha256(content).hexdigest()[:32], distinct, counts)


def count_values(counts: Any) -> list[tuple[int, int]]:
    """Return every distinct count, and how often it occurs."""
    return [(int(count), int(many)) for count, many in zip(*np.unique(counts, return_counts=True), strict=True)]


@dataclass
class LearnedRows:
    """The hashes of the rows of learned logs: all, or those below a threshold."""

    hashes: Hashes = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    """Sorted, each once."""
    halvings: int = 0
    """How often the bar was halved: one row in 2^halvings is in the sample."""
    taken: int = 0
    """How many rows of the sample were learned."""
    twice: int = 0
    """How many of them were the same as another: so often honest rows are."""

    def below(self, hashes: Hashes) -> int:
        """Return how many of the sorted hashes are below the threshold."""
        return hashes.size if not self.halvings else int(np.searchsorted(hashes, np.uint64(1 << (64 - self.halvings))))

    def known(self, fingerprint: LogFingerprint) -> tuple[int, int]:
        """Return how many distinct rows of a log are in the sample, and how many of them are learned."""
        sampled = fingerprint.hashes[: self.below(fingerprint.hashes)]
        positions = np.searchsorted(sampled, self.hashes)
        in_range = positions < sampled.size
        return sampled.size, int((sampled[positions[in_range]] == self.hashes[in_range]).sum())

    def overlaps(self, asked: int, known: int) -> bool:
        """Return whether more rows are learned already than independent logs have in common.

        Twice the share of learned rows that equal another one is an upper estimate q of the probability that a new row
        equals a learned one. Of n rows, k or more do with probability at most exp(−n kl(k/n, q)).
        """
        chance = 2.0 * (self.twice + 1.0) / (self.taken + 1.0)
        if not asked or known <= chance * asked:
            return False
        share = known / asked
        rest = (1.0 - share) * math.log((1.0 - share) / (1.0 - chance)) if share < 1.0 else 0.0
        return asked * (share * math.log(share / chance) + rest) >= MIN_SURPRISE

    def take(self, fingerprint: LogFingerprint, *, honest: bool) -> None:
        """Add learned rows; rows of `again=True` do not count as independent."""
        while self.below(fingerprint.hashes) > MAX_ROWS:
            self.lower()
        sampled = self.below(fingerprint.hashes)
        if honest:
            rows = int(fingerprint.counts[:sampled].sum())
            self.taken, self.twice = self.taken + rows, self.twice + rows - sampled + self.known(fingerprint)[1]
        self.hashes = np.union1d(self.hashes, fingerprint.hashes[:sampled])
        while self.hashes.size > MAX_ROWS:
            self.lower()

    def lower(self) -> None:
        """Halve the threshold."""
        self.halvings += 1
        self.hashes = self.hashes[: self.below(self.hashes)]

    def to_dict(self) -> dict[str, Any]:
        """Return the sample as JSON holds it."""
        content = base64.b64encode(self.hashes.astype("<u8").tobytes()).decode()
        return {"hashes": content, "halvings": self.halvings, "taken": self.taken, "twice": self.twice}

    @classmethod
    def from_dict(cls, content: Any) -> "LearnedRows":
        """Return the sample that `to_dict` wrote."""
        if not content:
            return cls()
        hashes = np.frombuffer(base64.b64decode(content["hashes"], validate=True), dtype="<u8").astype(np.uint64)
        counts = {name: int(content[name]) for name in ("halvings", "taken", "twice")}
        if min(counts.values()) < 0 or counts["halvings"] > 63:
            raise ValueError("the rows of logs that were learned have counts that can be none")
        return cls(np.unique(hashes), **counts)


def check_not_learned(statistics: Any, fingerprint: LogFingerprint, again: Any) -> None:
    """Raise if all or part of a log is already learned, unless `again` is True."""
    if check_bool(again, "again"):
        return
    if fingerprint.digest in statistics.logs:
        template = (
            "this log is already learned, all {logs:,} rows of it, and an outcome counts once; leave "
            "it out, or {override_hint}"
        )
        data = {"logs": statistics.logs[fingerprint.digest], "override_hint": OVERRIDE_HINT}
        raise InvalidOutcome(ErrorCode.LOG_ALREADY_LEARNED, template, **data)
    sampled, learned = statistics.rows.known(fingerprint)
    if statistics.rows.overlaps(sampled, learned):
        sample_note = f" of {sampled:,} sampled rows" if statistics.rows.halvings else ""
        raise InvalidOutcome(
            ErrorCode.LOG_ALREADY_LEARNED,
            "part of this log is already learned, {learned:,}{sample_note} of its {rows:,} rows, and an "
            "outcome counts once; leave these rows out, or {override_hint}",
            learned=learned,
            sample_note=sample_note,
            rows=fingerprint.rows,
            override_hint=OVERRIDE_HINT,
        )


def remember_log(statistics: Any, fingerprint: LogFingerprint, again: bool) -> None:
    statistics.rows.take(fingerprint, honest=not again)
    if fingerprint.digest is not None:
        statistics.logs.pop(fingerprint.digest, None)
        statistics.logs[fingerprint.digest] = fingerprint.rows
        while len(statistics.logs) > MAX_LOGS:
            del statistics.logs[next(iter(statistics.logs))]


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
