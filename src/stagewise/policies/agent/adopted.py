"""Decisions that were made elsewhere: where they stand in the learner's order, and that each is taken once."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from stagewise.problem.checks import mapping_of, shown
from stagewise.problem.errors import InvalidOutcome
from stagewise.problem.round_safe import safe_from
from stagewise.records.decision import Decision
from stagewise.records.identity import parts_of

FEW = 64
NEEDED = ("id", "action", "index", "step")


class Stretches:
    """Whole numbers, kept as stretches from start to end: many numbers with few gaps take little room.

    >>> met = Stretches()
    >>> for number in (0, 1, 2, 5, 3): met.add(number)
    >>> met.pairs, 3 in met, 4 in met
    ([(0, 4), (5, 6)], True, False)
    """

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        told = sorted((int(start), int(end)) for start, end in pairs)
        self.starts, self.ends = [start for start, _ in told], [end for _, end in told]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The stretches as pairs of start and end, the end not included."""
        return list(zip(self.starts, self.ends, strict=True))

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.starts, number) - 1
        return at >= 0 and number < self.ends[at]

    def add(self, number: int) -> None:
        """Add a number that is in none of the stretches."""
        at = bisect_right(self.starts, number)
        follows, leads = at > 0 and self.ends[at - 1] == number, at < len(self.starts) and self.starts[at] == number + 1
        if follows and leads:
            self.ends[at - 1] = self.ends.pop(at)
            del self.starts[at]
        elif follows:
            self.ends[at - 1] = number + 1
        elif leads:
            self.starts[at] = number
        else:
            self.starts.insert(at, number)
            self.ends.insert(at, number + 1)


class Adopted:
    """The places of adopted decisions that wait, by id, and which rounds of each decider were adopted ever."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        self.met: dict[str, Stretches] = {}  # by mark
        self.taken = Stretches()  # the places of all of them

    def copied(self) -> "Adopted":
        """Return an independent copy."""
        other = Adopted()
        other.places = dict(self.places)
        other.met = {mark: Stretches(met.pairs) for mark, met in self.met.items()}
        other.taken = Stretches(self.taken.pairs)
        return other

    def knows(self, id_: str) -> bool:
        """Say whether this decision was adopted before."""
        told = parts_of(id_)
        return told is not None and told[0] in self.met and told[1] in self.met[told[0]]

    def add(self, id_: str, place: int) -> None:
        """Note the place of a decision that is new."""
        mark, round_ = parts_of(id_) or ("", 0)
        self.met.setdefault(mark, Stretches()).add(round_)
        self.taken.add(place)
        self.places[id_] = place

    def id_at(self, place: int) -> str | None:
        """Return the id of the adopted decision at a place, or nothing."""
        return next((id_ for id_, at in self.places.items() if at == place), None)

    def tidy(self, played: Callable[[int], Any], waiting: int) -> None:
        """Let go of the places that do not wait any more, once they are most of those kept."""
        if len(self.places) > 2 * waiting + FEW:
            self.places = {id_: place for id_, place in self.places.items() if played(place) is not None}


def sent(decision: Any) -> Decision:
    """Return a decision as it came from elsewhere: itself, or as `plain` wrote it down."""
    if isinstance(decision, Decision):
        return decision
    told = mapping_of(decision, "the decision", InvalidOutcome) if isinstance(decision, Mapping) else {}
    if not all(name in told for name in NEEDED):
        raise InvalidOutcome(
            f"the decision is {shown(decision)}; give a Decision, or what its plain() returned, with "
            f"{', '.join(NEEDED)}"
        )
    parts = parts_of(told["id"]) if isinstance(told["id"], str) else None
    if parts is None:
        raise InvalidOutcome(f"the id is {shown(told['id'])}; it must be one that a Decision had")
    mark, round_ = parts
    played, nothing = (told["action"], told["index"], told["step"]), np.empty(0)
    made = Decision(*played, None, 0.0, nothing, nothing, None, round_)._made_by(mark)
    named = told.get("safe", told.get("start"))  # as it was called before
    try:
        made._safe = safe_from(named)
    except (TypeError, ValueError):
        raise InvalidOutcome(f"the decision's safe action is {shown(named)}; it must be what plain() wrote") from None
    offered = told.get("offered")
    return made if offered is None else made._with(None, offered, True)


def check_new(made: Decision, who: Any, adopted: Adopted) -> None:
    """Refuse a decision that no replica of this agent made, and one that was adopted before."""
    mark, _, replica = made._by.partition(".")
    if not replica or not who.bears(mark):
        raise InvalidOutcome(f"the decision is {made.id!r}; no replica of this agent made it")
    if adopted.knows(made.id):
        raise InvalidOutcome(f"the decision is {made.id!r}; it was adopted already, and once is all it counts")
