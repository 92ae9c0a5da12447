"""Who an agent is: its marks, now and in earlier lives, its random numbers, and which decisions are its own."""

from typing import Any

import numpy as np

from stagewise.policies.agent.adopted import Adopted
from stagewise.policies.agent.names import mark_of, name_of, stream_of
from stagewise.problem.checks import shown
from stagewise.problem.errors import InvalidOutcome, InvalidProblem
from stagewise.records.decision import Decision
from stagewise.records.identity import DIGITS, id_of, parts_of

WHOLE = (int, np.integer)
NO_ROUND = (bool, np.timedelta64)


class Identity:
    """Seed, name, and what follows from them."""

    def __init__(self, seed: int, name: Any, former: dict[str, int] | None = None) -> None:
        self.seed, self.name = seed, name_of(name, "name")
        self.mark = mark_of(seed, self.name)
        self.key, self.run = stream_of(seed, self.name)
        self.former = former or {}  # marks of earlier lives, and the round at which each ended
        self.alone, self.begins = not self.former, len(self.mark) + 1  # an id is the mark, "-", and the round

    def copied(self) -> "Identity":
        """Return an independent copy."""
        return Identity(self.seed, self.name, dict(self.former))

    def renamed(self, name: Any, round_: int) -> "Identity":
        """Return who goes on under another name from a round on, with other ids and random numbers."""
        other = Identity(self.seed, name, self.former | {self.mark: round_})
        if other.mark in self.former:
            raise InvalidProblem(f"name is {shown(name)}; this agent had it before, so its ids would come again")
        return self if other.mark == self.mark else other

    def bears(self, mark: str) -> bool:
        """Say whether a mark is, or was, its own."""
        return mark == self.mark or mark in self.former

    def mark_at(self, round_: int) -> str:
        """Return the mark under which a round was decided."""
        return next((mark for mark, end in self.former.items() if round_ < end), self.mark)

    def id_at(self, round_: int, adopted: Adopted) -> str:
        """Return the id of a decision that waits."""
        return adopted.id_at(round_) or id_of(self.mark_at(round_), round_)

    def place_of(self, decision: Any, adopted: Adopted, end: int) -> int:
        """Return the round of a decision, given as itself, by its id or by its round; it was made here, or adopted."""
        if type(decision) is str and self.alone and not adopted.met:
            round_ = decision[self.begins :]
            if len(round_) == DIGITS and decision.startswith(self.mark) and round_.isascii() and round_.isdecimal():
                place = int(round_)
                if place < end and decision[self.begins - 1] == "-":
                    return place
        place = -1
        if isinstance(decision, WHOLE) and not isinstance(decision, NO_ROUND):
            place = int(decision)
        elif isinstance(decision, Decision):
            place = self.place_by(decision.id, adopted) if decision._by else decision.round
        elif isinstance(decision, str):
            place = self.place_by(decision, adopted)
        if not 0 <= place < end:
            what = decision.round if isinstance(decision, Decision) else decision
            if not isinstance(what, WHOLE):
                raise InvalidOutcome(
                    f"the outcome is for {shown(what)}; this agent did not make it (give a decision, its id or round)"
                )
            raise InvalidOutcome(f"the outcome is for round {shown(what)}; this agent did not make it")
        return place

    def place_by(self, id_: str, adopted: Adopted) -> int:
        """Return the round of an id; −1: it is none."""
        told = parts_of(id_)
        if told is None:
            return -1
        if id_ in adopted.places:
            return adopted.places[id_]
        mark, round_ = told
        if mark == self.mark_at(round_) and round_ not in adopted.taken:
            return round_
        why = (
            "its outcome was given already, and once is all it counts, or it was forgotten"
            if adopted.knows(id_)
            else "this agent did not make it, and has not adopted it; decisions are adopted before they are answered"
        )
        raise InvalidOutcome(f"the outcome is for {shown(id_)}; {why}")
