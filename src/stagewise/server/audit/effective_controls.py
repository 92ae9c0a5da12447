"""The version and controls that a decision must have used: the last ones before its row.

Rows of one log are ordered. Each row of the global log has the last row of every other log before it (`ends`).
"""

from bisect import bisect_left
from typing import NamedTuple

import msgspec

from stagewise.server.event_log import CONTROL, GLOBAL, PROBLEM
from stagewise.server.store.base import Store


class DecisionBasis(msgspec.Struct):
    """The fields of a decision row that say how it was made."""

    problem: int
    """The version of the problem."""
    snapshot: int
    """The last learned row."""
    control: tuple[int, int]
    """The last control or version row of the experiment, and the last row of the global log."""


decode_basis = msgspec.json.Decoder(DecisionBasis).decode


class EffectiveControls(NamedTuple):
    """The rows of versions and controls of an experiment, and their order with the global log."""

    versions: list[int]
    controls: list[int]
    everywhere: list[tuple[int, int]]
    """The last row of the experiment before a global control, and the row of that control."""

    def find_error(self, seq: int, basis: DecisionBasis) -> str | None:
        """Return a sentence if a decision names something that was not in effect at its row."""
        version = bisect_left(self.versions, seq)
        if basis.problem != version:
            return f"it names version {basis.problem}, and version {version} was in effect"
        own_row = ([0, *self.controls])[bisect_left(self.controls, seq)]
        if basis.control[0] != own_row:
            return f"it names the controls of row {basis.control[0]}, and those of row {own_row} were in effect"
        before = bisect_left(self.everywhere, (seq, 0))
        global_row = self.everywhere[before - 1][1] if before else 0
        if basis.control[1] != global_row:
            return f"it names row {basis.control[1]} of the global log, and row {global_row} was in effect"
        if not 0 <= basis.snapshot < seq:
            return f"it names the snapshot of row {basis.snapshot}, which did not exist"
        return None


def read_effective_controls(store: Store, experiment: str) -> EffectiveControls:
    """Read the versions and controls of an experiment."""
    versions = [event.seq for event in store.iter_events_of_kind(experiment, PROBLEM)]
    controls = [event.seq for event in store.iter_events_of_kind(experiment, CONTROL)]
    everywhere: list[tuple[int, int]] = []
    for event in store.iter_events_of_kind(GLOBAL, CONTROL):
        end = msgspec.json.decode(event.body).get("ends", {}).get(experiment, 0)
        everywhere.append((max(end, everywhere[-1][0] if everywhere else 0), event.seq))
    return EffectiveControls(versions, sorted([*versions, *controls]), everywhere)
