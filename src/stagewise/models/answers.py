"""What a model answers when its declared values are held against the data: one class a kind of part, found by kind.

`models/NAME.py` registers the answers of the kind that it writes. Whatever a model does not answer, nobody tests.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from stagewise.kernels.compile import Floats, Ints
from stagewise.kernels.layout import Part
from stagewise.kernels.promise import ALARM
from stagewise.kernels.signals.watch import farthest

Sums = dict[str, Any]  # how sums stood at some time, by name; counts of outcomes begin with "seen"
Marks = Sequence[Sums]  # how they stood at each of several times, the last of which is now


class Evidence(NamedTuple):
    """What was seen of one signal, signed, beside what was declared of it."""

    outcomes: float = 0.0  # how many
    noise: float = 0.0  # declared
    least: float = 0.0  # what the residuals need at least
    safe_count: float = 0.0  # outcomes at the safe action itself
    safe_mean: float = 0.0  # their mean


class Moved(NamedTuple):
    """A signal of a part whose mean is not what it was."""

    signal: int  # of the part's
    early: float  # outcomes before
    late: float  # outcomes after
    means: tuple[float, float] | None = None  # signed, before and after; None: a parameter moved, not one mean
    place: int = -1  # of which arm or action; -1: of all
    segment: int | None = None  # in which segment; None: in all
    cells: int = 1  # how many means moved together; of several `means` are weighted as the later outcomes are
    word: str = "action"  # what a candidate is called,
    unit: str = "outcome"  # and what is counted

    def distance(self) -> float:
        """Return how far the means are apart."""
        return 0.0 if self.means is None else abs(self.means[1] - self.means[0])


class Answers:
    """The answers of a model that keeps no sums for them."""

    kept_marks, per_doubling = 4, 1  # marks that are kept, and how many are set until twice as much was seen
    anchors = False  # whether outcomes at the safe action are held against what was declared of it
    of_today = False  # whether it is told what the safe one of several actions does, for every user

    def tests_noise(self, part: Part) -> bool:
        """Say whether a noise was declared, which residuals can contradict."""
        return False

    def evidence(self, part: Part, layout: Ints, settings: Floats, memory: Floats, signal: int) -> Evidence:
        """Return what was seen of one of a part's signals."""
        return Evidence()

    def strays(
        self, part: Part, layout: Ints, settings: Floats, memory: Floats, signal: int, seen: Evidence, known: float
    ) -> bool:
        """Say whether what was seen at the safe action contradicts what was declared of it there, signed."""
        stray = seen.safe_count * abs(seen.safe_mean - known)
        return bool(stray > farthest(seen.safe_count, seen.noise, settings[ALARM]))

    def mistold(self, part: Part, layout: Ints, settings: Floats, memory: Floats) -> Iterator[int]:
        """Yield the code of everything else that the data contradict, as a kernel tells it: below 0."""
        return iter(())

    def sums(self, part: Part, settings: Floats, memory: Floats, which: str) -> Sums | None:
        """Return what a mark holds of a part, under names that end with `which`; None: means cannot be compared."""
        return None

    def count(self, part: Part, settings: Floats, memory: Floats) -> float | None:
        """Return how many outcomes of a part were learned; None: means cannot be compared."""
        sums = self.sums(part, settings, memory, "")
        return None if sums is None else seen_in(sums)

    def moved(
        self, part: Part, settings: Floats, memory: Floats, marks: Marks, which: str, alarms: Sequence[float]
    ) -> Iterator[Moved]:
        """Yield the signals of which what came before a mark and after it has no mean in common, mark by mark.

        The last of the marks is now. Each signal, at each mark, but with probability e^-alarm, whenever it is asked.
        """
        return iter(())

    def fill_fits(self, part: Part, features: Floats, settings: Floats, memory: Floats, fits: Floats) -> None:
        """Write estimates (K,) that are not the middles of intervals; NaN stays where there is none."""

    def learned(self, part: Part, features: Floats, memory: Floats, index: int) -> float | None:
        """Return how many outcomes were learned of one candidate; None: candidates are not told apart."""
        return None

    def pulls_until(
        self, part: Part, settings: Floats, memory: Floats, arm: int, signal: int, limit: float
    ) -> tuple[float, float] | None:
        """Return how often an arm was pulled, and when its upper end is below a limit; None: it does not go by arms."""
        return None

    def segments(self, part: Part, memory: Floats) -> tuple[Floats, Floats] | None:
        """Return the numbers (S,) of segments, and of each and every action (S, K, 3) what was seen; None: no such."""
        return None


def halves(marks: Marks, alarms: Sequence[float]) -> Iterator[tuple[Sums, Sums, float]]:
    """Yield what came before a mark and what came after it, and the mark's alarm."""
    for mark, alarm in zip(marks[:-1], alarms, strict=True):
        yield mark, between(mark, marks[-1]), alarm


def between(earlier: Sums | None, later: Sums) -> Sums:
    """Return what came between two marks."""
    return later if earlier is None else {name: less(value, earlier[name]) for name, value in later.items()}


def less(later: Any, earlier: Any) -> Any:
    """Return the difference of sums; cells that were met in between had none before."""
    if later.ndim == 1 and later.size > earlier.size:
        earlier = np.concatenate([earlier, np.zeros(later.size - earlier.size)])
    return later - earlier


def seen_in(sums: Sums) -> float:
    """Return how many outcomes these are."""
    return sum(float(value) for name, value in sums.items() if name.startswith("seen"))


SILENT = Answers()
REGISTERED: dict[int, Answers] = {}


def register(kind: int, answers: Answers) -> None:
    """Let parts of a kind answer so."""
    REGISTERED[kind] = answers


def answers_of(part: Part) -> Answers:
    """Return who answers for a part."""
    return REGISTERED.get(part.kind, SILENT)
