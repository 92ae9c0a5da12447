"""What an agent notes beside its policy's memory: what it played, what it doubts, and how means stood earlier.

No bound is built from it. It is saved with the agent; a file of before has none, and counting begins at nothing.
"""

from collections import deque
from typing import Any

import numpy as np

from stagewise.policies.agent.repeats import LearnedRows
from stagewise.problem.errors import InvalidProblem
from stagewise.records.decision import Decision

RECENT = 64  # decisions that are kept as they were made, for reports
FIRST_LOOK, EVERY = 256, 2048  # rounds


class Track:
    """How means stood earlier: marks, where they begin, and how many there were (see `drift`)."""

    def __init__(self, base: dict[str, Any] | None = None, marked: int = 0) -> None:
        self.marks: list[dict[str, Any]] = []
        self.base = base  # what stood when a person said that a mean moved; None: nothing
        self.marked = marked

    def plain(self) -> dict[str, Any]:
        """Return the track as JSON holds it."""
        base = None if self.base is None else listed(self.base)
        return {"marks": [listed(mark) for mark in self.marks], "base": base, "marked": self.marked}

    @classmethod
    def of(cls, plain: Any) -> "Track":
        """Return the track that `plain` wrote down."""
        track = cls(None if plain["base"] is None else arrays(plain["base"]), counted(plain["marked"]))
        track.marks = [arrays(mark) for mark in plain["marks"]]
        return track


class Notes:
    """What an agent notes beside what its policy learns: plays, doubts, earlier means, logs."""

    def __init__(self) -> None:
        self.plays: dict[int, int] = {}  # by the decision's index; −1: the safe action beside a list
        self.stays = 0  # rounds in which the safe action was played alone
        self.refused = 0  # outcomes that were refused
        self.withdrawn = 0  # decisions that were not carried out; `plays` no longer counts them
        self.doubts: dict[str, str] = {}  # what contradicts safety, in words
        self.accepted: dict[str, str] = {}  # of it, what a person has acknowledged, and with which words
        self.track = Track()  # how means stood earlier
        self.apart: dict[str, Track] = {}  # by signal: since a person said that its mean moved
        self.logs: dict[str, int] = {}  # the digests of logs that were learned, and how many rows they had
        self.rows = LearnedRows()  # a sample of their rows
        self.look_at = FIRST_LOOK  # the next round in which means are held against earlier ones
        self.recent: deque[Decision] = deque(maxlen=RECENT)  # not saved

    def looked(self, round_: int) -> None:
        """Set when to look next: often at first, then after a sixteenth of all rounds."""
        later = round_ + max(EVERY, round_ // 16)
        self.look_at = later if round_ >= EVERY else max(2 * round_, FIRST_LOOK)

    def forget_marks(self) -> None:
        """Let go of how means stood earlier, and of recent decisions: there are other actions now."""
        self.track, self.apart = Track(marked=max(track.marked for track in self.tracks)), {}
        self.recent.clear()

    @property
    def tracks(self) -> list[Track]:
        """The tracks of all signals: the common one, then those that began later."""
        return [self.track, *self.apart.values()]

    def track_of(self, name: str) -> Track:
        """Return how the mean of a signal stood earlier."""
        return self.apart.get(name, self.track)

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
    def open_doubts(self) -> dict[str, str]:
        """What contradicts safety and nobody has acknowledged."""
        return {name: words for name, words in self.doubts.items() if name not in self.accepted}

    def copied(self) -> "Notes":
        """Return the same notes without the decisions."""
        return Notes.of(self.plain())

    def plain(self) -> dict[str, Any]:
        """Return the notes as JSON holds them."""
        return {
            "plays": {str(index): count for index, count in self.plays.items()},
            "stays": self.stays,
            "refused": self.refused,
            "withdrawn": self.withdrawn,
            "doubts": dict(self.doubts),
            "accepted": dict(self.accepted),
            **self.track.plain(),
            "apart": {name: track.plain() for name, track in self.apart.items()},
            "look_at": self.look_at,
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
        for name in ("stays", "refused", "look_at"):
            setattr(notes, name, counted(plain[name]))
        for name in ("doubts", "accepted"):
            setattr(notes, name, {str(key): str(words) for key, words in plain[name].items()})
        notes.withdrawn = counted(plain.get("withdrawn", 0))
        notes.track = Track.of(plain)
        notes.apart = {str(name): Track.of(track) for name, track in plain.get("apart", {}).items()}
        notes.logs = {str(mark): counted(rows) for mark, rows in plain.get("logs", {}).items()}
        notes.rows = LearnedRows.of(plain.get("rows"))
        return notes


def listed(mark: dict[str, Any]) -> dict[str, Any]:
    """Return a mark as JSON holds it."""
    return {name: np.asarray(value).tolist() for name, value in mark.items()}


def arrays(mark: Any) -> dict[str, Any]:
    """Return a mark from a file."""
    return {str(name): np.array(value, dtype=np.float64) for name, value in mark.items()}


def counted(value: Any) -> int:
    """Return a count from a file."""
    if type(value) is not int or not 0 <= value < 2**62:
        raise InvalidProblem(f"a count in it is {value!r}; counts are whole numbers from 0")
    return value
