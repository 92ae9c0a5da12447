"""What an agent notes beside its policy's memory: what it played, what it doubts, and how means stood earlier.

No bound is built from it. It is saved with the agent; a file of before has none, and counting begins at nothing.
"""

from collections import deque
from copy import copy
from typing import Any

import numpy as np

from stagewise.models.answers import seen_in
from stagewise.policies.agent.repeats import LearnedRows
from stagewise.problem.errors import InvalidProblem
from stagewise.records.decision import Decision
from stagewise.records.reason import Cause

RECENT = 64  # decisions that are kept as they were made, for reports
LOOK_AFTER = 256  # outcomes of a signal, before the first look at it
NEVER = 2**62 - 1


class Track:
    """How the mean of one signal stood earlier: marks, where they begin, and what the last look found (see `drift`)."""

    def __init__(self, base: dict[str, Any] | None = None, marked: int = 0) -> None:
        self.marks: list[dict[str, Any]] = []
        self.base = base  # what stood when a person said that the mean moved; None: nothing
        self.marked = marked  # how many marks there were
        start = 0 if base is None else int(seen_in(base))
        self.look_at = start + LOOK_AFTER  # outcomes of the signal at which its mean is held against earlier ones
        self.compared: tuple[int, int] | None = None  # outcomes before and after the newest mark, at the last look
        self.moved: Cause | None = None  # what the last look found

    @property
    def verdict(self) -> "Track":
        """The same without sums of earlier times."""
        track = Track(marked=self.marked)
        track.look_at, track.compared, track.moved = self.look_at, self.compared, self.moved
        return track

    def plain(self) -> dict[str, Any]:
        """Return the track as JSON holds it."""
        base = None if self.base is None else listed(self.base)
        marks = [listed(mark) for mark in self.marks]
        return {
            "marks": marks,
            "base": base,
            **{name: getattr(self, name) for name in SIMPLE},
            "moved": written(self.moved),
        }

    @classmethod
    def of(cls, plain: Any) -> "Track":
        """Return the track that `plain` wrote down."""
        track = cls(None if plain["base"] is None else arrays(plain["base"]), counted(plain["marked"]))
        track.marks = [arrays(mark) for mark in plain["marks"]]
        track.look_at = counted(plain["look_at"])
        if plain["compared"] is not None:
            early, late = plain["compared"]
            track.compared = counted(early), counted(late)
        track.moved = None if plain["moved"] is None else contradiction_in(plain["moved"])
        return track


SIMPLE = ("marked", "look_at", "compared")


class Notes:
    """What an agent notes beside what its policy learns: plays, doubts, earlier means, logs."""

    def __init__(self) -> None:
        self.plays: dict[int, int] = {}  # by the decision's index; −1: the safe action beside a list
        self.stays = 0  # rounds in which the safe action was played alone
        self.refused = 0  # outcomes that were refused
        self.withdrawn = 0  # decisions that were not carried out; `plays` no longer counts them
        self.doubts: dict[str, Cause] = {}  # what contradicts safety, by name
        self.accepted: dict[str, str] = {}  # of it, what a person has acknowledged, and with which words
        self.tracks: dict[str, Track] = {}  # by signal: how its mean stood earlier
        self.logs: dict[str, int] = {}  # the digests of logs that were learned, and how many rows they had
        self.rows = LearnedRows()  # a sample of their rows
        self.rest = LOOK_AFTER  # times that something is learned, before a signal may be due for a look
        self.recent: deque[Decision] = deque(maxlen=RECENT)  # not saved

    def forget_marks(self) -> None:
        """Let go of how means stood earlier, and of recent decisions: there are other actions now."""
        self.tracks = {name: Track(marked=track.marked) for name, track in self.tracks.items()}
        self.rest = 1
        self.recent.clear()

    def track_of(self, name: str) -> Track:
        """Return how the mean of a signal stood earlier."""
        return self.tracks.setdefault(name, Track())

    def take_back(self, round_: int, index: int) -> None:
        """Count a decision of its own as not carried out; of the first round a memory may not know the index."""
        index = next((one.index for one in self.recent if one.round == round_), index)
        if self.plays.get(index, 0) > 0:
            self.plays[index] -= 1
            self.withdrawn += 1
        self.recent = deque((one for one in self.recent if one.round != round_), maxlen=RECENT)

    @property
    def carried_out(self) -> float:
        """Return the share of decisions that were carried out."""
        return 1.0 - self.withdrawn / max(self.withdrawn + sum(self.plays.values()), 1)

    @property
    def open_doubts(self) -> dict[str, Cause]:
        """What contradicts safety and nobody has acknowledged."""
        return {name: cause for name, cause in self.doubts.items() if name not in self.accepted}

    def copied(self) -> "Notes":
        """Return the same notes without the decisions."""
        return Notes.of(self.plain())

    def for_deciders(self) -> "Notes":
        """Return what is noted of the same, for those who decide and tell: without sums of earlier times."""
        bare = copy(self)
        bare.tracks = {name: track.verdict for name, track in self.tracks.items()}
        bare.rest = NEVER  # they look at nothing, and it changes with every outcome
        return bare.copied()

    def plain(self) -> dict[str, Any]:
        """Return the notes as JSON holds them."""
        return {
            "plays": {str(index): count for index, count in self.plays.items()},
            "stays": self.stays,
            "refused": self.refused,
            "withdrawn": self.withdrawn,
            "doubts": {name: written(cause) for name, cause in self.doubts.items()},
            "accepted": dict(self.accepted),
            "tracks": {name: track.plain() for name, track in self.tracks.items()},
            "rest": self.rest,
            "logs": dict(self.logs),
            "rows": self.rows.plain(),
        }

    @classmethod
    def of(cls, plain: Any) -> "Notes":
        """Return the notes of a file, which may have none."""
        notes = cls()
        if plain is None:
            return notes
        notes.plays = {int(index): counted(count) for index, count in plain["plays"].items()}
        for name in ("stays", "refused", "rest"):
            setattr(notes, name, counted(plain[name]))
        notes.doubts = {str(name): contradiction_in(cause) for name, cause in plain["doubts"].items()}
        notes.accepted = {str(name): str(words) for name, words in plain["accepted"].items()}
        notes.withdrawn = counted(plain.get("withdrawn", 0))
        notes.tracks = {str(name): Track.of(track) for name, track in plain["tracks"].items()}
        notes.logs = {str(mark): counted(rows) for mark, rows in plain.get("logs", {}).items()}
        notes.rows = LearnedRows.of(plain.get("rows"))
        return notes


def listed(mark: dict[str, Any]) -> dict[str, Any]:
    """Return a mark as JSON holds it."""
    return {name: np.asarray(value).tolist() for name, value in mark.items()}


def arrays(mark: Any) -> dict[str, Any]:
    """Return a mark from a file."""
    return {str(name): np.array(value, dtype=np.float64) for name, value in mark.items()}


def written(cause: Cause | None) -> Any:
    """Return a cause as JSON holds it."""
    return None if cause is None else cause.plain()


def contradiction_in(content: Any) -> Cause:
    """Return what contradicts safety, from a file."""
    cause = Cause.read(content)
    if not cause.contradicts:
        raise InvalidProblem(f"a doubt in it is {cause.reason!s}; it must be a contradiction")
    return cause


def counted(value: Any) -> int:
    """Return a count from a file."""
    if type(value) is not int or not 0 <= value < 2**62:
        raise InvalidProblem(f"a count in it is {value!r}; counts are whole numbers from 0")
    return value
