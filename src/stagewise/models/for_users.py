"""What models of actions in a context answer when they are held against the data: of each action, and each segment."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from stagewise.kernels.compile import Floats, Ints, named
from stagewise.kernels.layout import HOME, Part, regressions_of, segment_column
from stagewise.kernels.signals.apiece import fill_fits, piece_of
from stagewise.kernels.signals.cells import (
    fill_pulls,
    fill_rates,
    fill_segments,
    fill_tallies,
    least_of,
    segments_met,
    slots_of,
    tally_of,
)
from stagewise.kernels.signals.ridge import summed
from stagewise.kernels.signals.watch import mistold_regression
from stagewise.models.answers import Answers, Evidence, Marks, Moved, Sums, halves
from stagewise.models.moved_rates import RATE_MARKS, shifts
from stagewise.models.regressed import LARGEST, regressed, regression_moved, regression_sums

PIECE, FITS, SUMMED, MISTOLD = named(piece_of), named(fill_fits), named(summed), named(mistold_regression)
SLOTS, TALLIES, TALLY, LEAST = named(slots_of), named(fill_tallies), named(tally_of), named(least_of)
RATES, PULLS, SEGMENTS, MET = named(fill_rates), named(fill_pulls), named(fill_segments), named(segments_met)
REGRESSIONS, COLUMN = named(regressions_of), named(segment_column)


class PiecesAnswers(Answers):
    """What regressions answer of which every action has one."""

    of_today = True

    def evidence(self, part: Part, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        piece = PIECE(part, memory, int(layout[HOME]))
        seen = regressed(piece, settings, 0)
        mean = float(SUMMED(piece).strays[0]) / max(seen.outcomes, 1.0)
        return seen._replace(safe_count=seen.outcomes, safe_mean=mean)

    def mistold(self, part: Part, layout: Ints, settings: Floats, memory: Floats) -> Iterator[int]:
        for action in range(REGRESSIONS(part) if part.first > 0 else 0):
            code = int(MISTOLD(PIECE(part, memory, action), settings, memory, 0.0))
            if code:
                yield -code

    def sums(self, part: Part, settings: Floats, memory: Floats, which: str) -> Sums | None:
        if part.size > LARGEST:
            return None
        held: Sums = {}
        for action in range(REGRESSIONS(part)):
            held |= regression_sums(PIECE(part, memory, action), settings, f"{which}.{action}")
        return held

    def count(self, part: Part, settings: Floats, memory: Floats) -> float | None:
        taken = (float(SUMMED(PIECE(part, memory, action)).taken) for action in range(REGRESSIONS(part)))
        return None if part.size > LARGEST else sum(taken)

    def moved(
        self, part: Part, settings: Floats, memory: Floats, marks: Marks, which: str, alarms: Sequence[float]
    ) -> Iterator[Moved]:
        pieces = [PIECE(part, memory, action) for action in range(REGRESSIONS(part))]
        for early, late, alarm in halves(marks, alarms):
            for action, piece in enumerate(pieces):
                shared = alarm + math.log(len(pieces))
                for one in regression_moved(piece, settings, early, late, f"{which}.{action}", shared):
                    yield one._replace(place=action)

    def fill_fits(self, part: Part, features: Floats, settings: Floats, memory: Floats, fits: Floats) -> None:
        FITS(part, features, settings, memory, fits)

    def learned(self, part: Part, features: Floats, memory: Floats, index: int) -> float | None:
        return float(SUMMED(PIECE(part, memory, index)).taken)


class CellsAnswers(Answers):
    """What rates by action and segment answer."""

    of_today = True
    kept_marks, per_doubling = RATE_MARKS

    def evidence(self, part: Part, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        tally = TALLY(part, memory, int(layout[HOME]), settings)
        return Evidence(float(tally.pulls), 0.0, 0.0, float(tally.pulls), float(tally.mean))

    def sums(self, part: Part, settings: Floats, memory: Floats, which: str) -> Sums | None:
        pulls, totals = np.zeros((2, SLOTS(part, memory) * part.size))
        TALLIES(part, memory, pulls, totals)
        last = int(np.max(np.flatnonzero(pulls), initial=-1)) + 1  # cells stand in the order of their segments
        held = {f"pulls {which}": pulls[:last], f"totals {which}": totals[:last]}
        return held | {f"seen {which}": np.array(pulls.sum())}

    def moved(
        self, part: Part, settings: Floats, memory: Floats, marks: Marks, which: str, alarms: Sequence[float]
    ) -> Iterator[Moved]:
        """Yield the cell whose rate moved, or the cells of an action, or all, whose rates moved together."""
        pulls, totals = ([sums[f"{name} {which}"] for sums in marks] for name in ("pulls", "totals"))
        for found in shifts(pulls, totals, part.size, COLUMN(part) >= 0, alarms):
            low, met, cell = float(LEAST(part, settings)), self.segments(part, memory), found.cells[0]
            alone, actions = len(found.cells) == 1, {cell % part.size for cell in found.cells}
            means, action = (low + found.before, low + found.after), cell % part.size if len(actions) == 1 else -1
            segment = int(met[0][cell // part.size]) if alone and met is not None else None
            yield Moved(0, found.early, found.late, means, action, segment, len(found.cells))

    def fill_fits(self, part: Part, features: Floats, settings: Floats, memory: Floats, fits: Floats) -> None:
        RATES(part, features, settings, memory, fits)

    def learned(self, part: Part, features: Floats, memory: Floats, index: int) -> float | None:
        pulls = np.zeros(part.size)
        PULLS(part, features, memory, pulls)
        return float(pulls[index])

    def segments(self, part: Part, memory: Floats) -> tuple[Floats, Floats] | None:
        if COLUMN(part) < 0:
            return None
        count = MET(part, memory)
        numbers, seen = np.zeros(count), np.zeros((count, part.size, 3))
        SEGMENTS(part, memory, numbers, seen)
        return numbers, seen
