"""A log, read from its beginning to its end in portions."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from stagewise.policies.problem import Problem
from stagewise.problem.words import nearest, shown
from stagewise.service.controls import Controls
from stagewise.service.errors import UnknownExperiment
from stagewise.service.records import CONTROL, PROBLEM, SHOWN, Event
from stagewise.service.store.store import Store
from stagewise.service.versions import Version, first, following

PORTION = 10_000


def rows_of(store: Store, experiment: str, after: int = 0) -> Iterator[Event]:
    """Give the rows of a log in order."""
    while portion := store.events(experiment, after, PORTION):
        yield from portion
        after = portion[-1].seq


def kind_of(store: Store, experiment: str, kind: str, after: int = 0) -> Iterator[Event]:
    """Give the rows of one kind in order."""
    while portion := store.of_kind(experiment, kind, after, PORTION):
        yield from portion
        after = portion[-1].seq


def known_experiment(store: Store, name: str) -> str:
    """Return the name of an experiment, or say that there is none of this name."""
    known = store.experiments()
    if name not in known:
        there = nearest(name, known) or f"; it has {', '.join(map(repr, known[:8])) or 'none'}"
        raise UnknownExperiment(f"{shown(name)} is no experiment of this store{there}")
    return name


def versions_of(store: Store, experiment: str) -> dict[int, Version]:
    """Return all versions of an experiment's problem, as a desk plays them."""
    versions: dict[int, Version] = {}
    for event in kind_of(store, experiment, PROBLEM):
        wanted = Problem.from_plain(msgspec.json.decode(event.body)["problem"])
        made = following(versions[len(versions)], wanted) if versions else first(wanted)
        versions[made.number] = made
    return versions


def was_shown(said: Mapping[str, Any], answers: Mapping[str, float]) -> bool:
    """Say whether a decision was carried out: a deferred one where somebody said so, others unless somebody did."""
    return answers.get(SHOWN, 0.0 if said["asked"].get("deferred") else 1.0) != 0.0


class ControlsByRow:
    """The controls that hold after each row of a log that changes them, or the problem."""

    def __init__(self, store: Store, experiment: str) -> None:
        told = sorted([*kind_of(store, experiment, CONTROL), *kind_of(store, experiment, PROBLEM)])
        now, self._by_row = Controls(), {0: Controls()}
        for event in told:
            now = now.after(event) if event.kind == CONTROL else now._replace(row=event.seq)
            self._by_row[event.seq] = now

    def at(self, row: int) -> Controls | None:
        """Return the controls after a row; None: that row changes neither controls nor the problem."""
        return self._by_row.get(row)
