"""By which version and which controls a decision had to be made: those that were the last ones when it was written.

A log is one order, so its own versions and controls are told by their rows. What holds everywhere has a log of its own;
each of its rows names the last row of every other log before it (`ends`).
"""

from bisect import bisect_left
from typing import NamedTuple

import msgspec

from stagewise.service.records import CONTROL, EVERYWHERE, PROBLEM
from stagewise.service.store.store import Store


class Basis(msgspec.Struct):
    """What a decision's row says of how it was made."""

    problem: int
    """The version of the problem."""
    state: int
    """The row that was learned up to."""
    control: tuple[int, int]
    """The last row of its own controls or versions, and the last of those that hold everywhere."""


BASIS = msgspec.json.Decoder(Basis).decode


class InForce(NamedTuple):
    """The rows of an experiment's versions and controls, and where its log stood when others came everywhere."""

    versions: list[int]
    controls: list[int]
    everywhere: list[tuple[int, int]]
    """The last row of the log before a control that holds everywhere, and the row of that."""

    def wrong(self, seq: int, basis: Basis) -> str | None:
        """Return what a decision at a row names that did not hold there, in words; None: nothing."""
        version = bisect_left(self.versions, seq)
        if basis.problem != version:
            return f"it is made by version {basis.problem}, and version {version} held"
        own = ([0, *self.controls])[bisect_left(self.controls, seq)]
        if basis.control[0] != own:
            return f"it is made by the controls of row {basis.control[0]}, and those of row {own} held"
        before = bisect_left(self.everywhere, (seq, 0))
        all_ = self.everywhere[before - 1][1] if before else 0
        if basis.control[1] != all_:
            return f"it is made by row {basis.control[1]} of what holds everywhere, and row {all_} held"
        if not 0 <= basis.state < seq:
            return f"its state is of row {basis.state}, which was not there"
        return None


def in_force(store: Store, experiment: str) -> InForce:
    """Read what held when in an experiment."""
    versions = [event.seq for event in store.all_of_kind(experiment, PROBLEM)]
    controls = [event.seq for event in store.all_of_kind(experiment, CONTROL)]
    everywhere: list[tuple[int, int]] = []
    for event in store.all_of_kind(EVERYWHERE, CONTROL):
        end = msgspec.json.decode(event.body).get("ends", {}).get(experiment, 0)
        everywhere.append((max(end, everywhere[-1][0] if everywhere else 0), event.seq))
    return InForce(versions, sorted([*versions, *controls]), everywhere)
