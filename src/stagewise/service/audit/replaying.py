"""Every decision made once more from the log, and compared to the bit.

A decision's row names the row up to which its state had learned, and the rows of the controls it was made by. The
state is folded from the log up to that row, and decides with the same random numbers; the whole body must be the same.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from stagewise.problem.words import shown
from stagewise.records.reason import Reason
from stagewise.service.audit.in_force import BASIS, in_force
from stagewise.service.audit.reading import controls_of, known_experiment, versions_of
from stagewise.service.controls import Controls
from stagewise.service.deciding import Known, cause_in, decided, safely
from stagewise.service.fold import Fold, beginning
from stagewise.service.messages import Asked
from stagewise.service.records import DECISION, EVERYWHERE, Event, canonical
from stagewise.service.store.store import Store, StoreDown
from stagewise.service.versions import Version


class Made(NamedTuple):
    """By what a decision was made: the problem's version and the state's row; then its own row."""

    version: int
    state: int
    seq: int


class Replayed(NamedTuple):
    """What came of making decisions again."""

    decisions: int
    agree: int
    failed: int
    """Decisions among them that failed inside the desk, and were the safe action."""
    states: int
    """How many different states they were made by."""
    first: str | None
    """The first difference, in words."""


AT_ONCE = 10_000  # rows that are folded together


class Replay:
    """An experiment's log with all that its decisions were made by, but for the state."""

    def __init__(self, store: Store, experiment: str) -> None:
        self.store, self.name = store, known_experiment(store, experiment)
        self.versions = versions_of(store, experiment)
        self.controls, self.everywhere = controls_of(store, experiment), controls_of(store, EVERYWHERE)
        self.in_force = in_force(store, experiment)
        self.key = store.secret(f"draws of {experiment}", b"")

    def run(self, first: int = 0, last: int | None = None) -> Replayed:
        """Make all decisions again whose rows lie between these two."""
        made = sorted(self.made(first, last))
        count = agree = failed = states = 0
        differences: list[tuple[int, str]] = []
        for known, group in self.known_at(made):
            states += 1
            for one in group:
                event = self.store.events(self.name, one.seq - 1, 1)[0]
                count += 1
                different = self.difference(known, event)
                if different is not None:
                    differences.append((event.seq, different))
                    continue
                agree += 1
                failed += msgspec.json.decode(event.body).get("reason") == Reason.FAILED
        first_of_all = min(differences, default=(0, None))
        return Replayed(count, agree, failed, states, first_of_all[1])

    def made(self, first: int, last: int | None) -> Iterator[Made]:
        """Give by what the decisions were made."""
        for event in self.store.all_of_kind(self.name, DECISION, first):
            if last is not None and event.seq > last:
                return
            basis = BASIS(event.body)
            yield Made(basis.problem, basis.state, event.seq)

    def known_at(self, made: Sequence[Made]) -> Iterator[tuple[Known | None, list[Made]]]:
        """Give what was known, with the decisions that were made by it, in the order of the states."""
        for number, of_version in groupby(made, key=lambda one: one.version):
            version = self.versions.get(number)
            fold = None if version is None else Fold(version.problem, version.number, version.retired)
            for state, group in groupby(of_version, key=lambda one: one.state):
                rows = list(group)
                usable = version is not None and fold is not None and state < min(one.seq for one in rows)
                yield (self.state_at(version, fold, state) if version and fold and usable else None), rows

    def state_at(self, version: Version, fold: Fold, state: int) -> Known:
        """Return what a version knew after a row."""
        if state == 0:
            return beginning(version.problem, version.number, version.retired)
        while fold.seq < state:
            portion = self.store.events(self.name, fold.seq, min(AT_ONCE, state - fold.seq))
            if not portion:
                raise StoreDown(f"row {fold.seq + 1} of {shown(self.name)} is missing; run `stagewise audit verify`")
            fold.take(portion)
        return fold.known()

    def difference(self, known: Known | None, event: Event) -> str | None:
        """Make a decision again; return what is different, in words."""
        said = msgspec.json.decode(event.body)
        where = f"row {event.seq}, decision {shown(event.key)}"
        if known is None:
            return f"{where}: version {said['problem']} and state {said['state']} were not there when it was made"
        first, second = said["control"]
        own, everywhere = self.controls.get(first), self.everywhere.get(second)
        if own is None or everywhere is None:
            return f"{where}: it names controls {said['control']}, and those rows are none"
        wrong = self.in_force.wrong(event.seq, BASIS(event.body))
        if wrong is not None:
            return f"{where}: {wrong}"
        again = self.again(known, own, everywhere, event.key, said)
        if canonical(again) == event.body:
            return None
        names = [name for name in sorted({*again, *said}) if canonical(again.get(name)) != canonical(said.get(name))]
        name = (names or ["body"])[0]
        return f"{where}: {name} is {shown(said.get(name))} in the log and {shown(again.get(name))} by replay"

    def again(self, known: Known, own: Controls, everywhere: Controls, id_: str, said: Any) -> dict[str, Any]:
        """Return the body that a decision has by replay."""
        again = decided(known, own, everywhere, self.key, id_, msgspec.convert(said["asked"], Asked))
        cause = cause_in(said)
        missing = cause is not None and cause.reason in (Reason.FAILED, Reason.NOT_READ)
        if cause is not None and missing and again["reason"] != cause.reason:  # what was missing there need not be here
            again = {**again, **safely(known, cause)}
            again.pop("choice", None)
        return again
