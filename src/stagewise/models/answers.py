"""What a model answers when its declared values are held against the data: one class a kind of part, found by kind.

`models/NAME.py` registers the answers of the kind that it writes. Whatever a model does not answer, nobody tests.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from stagewise.kernels.compile import Floats, Ints
from stagewise.kernels.layout import Part
from stagewise.kernels.promise import ALARM
from stagewise.kernels.signals.watch import farthest

Sums = dict[str, Any]  # how sums stood at some time, by name; counts of outcomes begin with "seen"


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
    word: str = "action"  # what a candidate is called,
    unit: str = "outcome"  # and what is counted


class Answers:
    """The answers of a model that keeps no sums for them."""

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

    def moved(
        self, part: Part, settings: Floats, memory: Floats, early: Sums, late: Sums, which: str, alarm: float
    ) -> Iterator[Moved]:
        """Yield the signals whose earlier and later sums have no mean in common, but with probability e^-alarm."""
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


SILENT = Answers()
REGISTERED: dict[int, Answers] = {}


def register(kind: int, answers: Answers) -> None:
    """Let parts of a kind answer so."""
    REGISTERED[kind] = answers


def answers_of(part: Part) -> Answers:
    """Return who answers for a part."""
    return REGISTERED.get(part.kind, SILENT)
