"""Whether rows stand in the log twice: an outcome that counts twice makes bounds too narrow."""

import math
import re
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.kernels.compile import Floats, Ints
from stagewise.launch.doctor.chart import Chart
from stagewise.launch.doctor.exchange import Flags
from stagewise.launch.doctor.finding import Finding, gravest
from stagewise.launch.log import TIMES, holds_times
from stagewise.problem.row_hash import Hashes, bits_of, with_column
from stagewise.problem.words import several

# What a row is called by; a session has several rows, and a user too.
IDS = re.compile(r"(decision|request|event|row|message|impression|log)?_?(id|uuid|key)", re.IGNORECASE)
REMEDY = "keep one of each: an outcome that counts twice makes bounds too narrow"
SPREAD = 0.2  # of the disagreement of an action's rows is left among alike users: they explain four fifths at most
NEAR = 60.0  # seconds, within which what was sent or written once more follows
FEW = 4  # rows that agree in all but the outcomes: where more do, the columns tell users apart too badly


def check(chart: Chart, alpha: float) -> Finding:
    """Find ids that come twice, or rows that agree in everything more often than rows of alike users would.

    Two rows that agree in all but the outcomes agree in the outcomes too with some probability q < 1, where they are
    two rows. With D such pairs out of J that agree in all else, exp(−J kl(D/J, q)) bounds the chance of as many, with q
    the mean over pairs. Which rows are a pair is decided without a look at the outcomes: neighbours, in the order of
    the log, among the few that agree in all else. Then the same of rows that follow one another within seconds and
    agree in all but the times: what was sent, or written, once more has a time of its own, and often an id.
    """
    log, fine = chart.log, "no two rows are the same in every column"
    for name, array in log.arrays.items():
        if is_id(name):
            entries = [entry for entry in array.tolist() if entry is not None and entry == entry]
            twice = len(entries) - len(set(entries))
            if twice:
                words = f"{several(twice, 'row')} of {log.rows:,} have an {name!r} that another row has"
                return Finding("duplicates", "contradicts", words, REMEDY)
            fine = f"every row has an {name!r} of its own, and no two agree in all else" if entries else fine
    hashed = Digests.of(chart)
    copies = log.rows - np.unique(hashed.whole).size
    found = []
    if copies:
        be = "is" if copies == 1 else "are"
        words = f"{several(copies, 'row')} of {log.rows:,} {be} another's copy in every column"
        one, other = paired(hashed.rest)
        sure = surely(chart, one, hashed.whole[one] == hashed.whole[other], 0.5 * alpha)
        found.append(copied(words, sure, ", as may well be where columns have few values"))
    one, other = following(hashed.user, log.at)
    if one.size:
        words = (
            f"{several(one.size, 'row')} of {log.rows:,} {'follows' if one.size == 1 else 'follow'} another within "
            f"{NEAR:.0f} seconds that agrees in all but times and outcomes"
        )
        same = hashed.outcomes[one] == hashed.outcomes[other]
        sure = surely(chart, one, same, 0.5 * alpha)
        words += f", and {int(same.sum()):,} agree in these too" if sure else ""
        found.append(copied(words, sure, ": the same user once more, or the same row"))
    return gravest("duplicates", found, fine)


def copied(words: str, sure: bool, perhaps: str) -> Finding:
    """Return the finding on rows that agree."""
    return (
        Finding("duplicates", "contradicts", words, REMEDY) if sure else Finding("duplicates", "note", words + perhaps)
    )


def surely(chart: Chart, one: Ints, same: Flags, alpha: float) -> bool:
    """Say whether pairs, of which these rows are the first, agree in the outcomes more often than alike users would."""
    if not one.size:
        return False
    agreeing = 1.0 - SPREAD * float(disagreement(chart)[one].mean())
    return math.log(1.0 / alpha) <= one.size * apart(float(same.mean()), agreeing)


def following(user: Hashes, at: Floats | None) -> tuple[Ints, Ints]:
    """Return pairs of rows, by number, that agree in all but times and outcomes and follow one another within seconds.

    They are of groups of a few. No row is in two pairs; rows of one moment are none.

    >>> hashes, at = np.array([7, 7, 5, 7, 5], dtype=np.uint64), np.array([0.0, 3.0, 1.0, 900.0, 1.0])
    >>> [places.tolist() for places in following(hashes, at)]
    [[0], [1]]
    """
    none = np.empty(0, dtype=np.int64)
    if at is None:
        return none, none
    order = np.lexsort((at, user))
    _, groups, sizes = np.unique(user, return_inverse=True, return_counts=True)
    few = sizes[groups.reshape(-1)[order]] <= FEW
    with np.errstate(invalid="ignore"):
        gap = np.diff(at[order])
        near = (user[order][1:] == user[order][:-1]) & (gap > 0.0) & (gap <= NEAR) & few[1:]
    first = np.flatnonzero(near)
    kept = first[first_of_pairs(first)]
    return np.asarray(order[kept]), np.asarray(order[kept + 1])


def first_of_pairs(places: Ints) -> Flags:
    """Return every second one of places that stand in a row: a pair takes two.

    >>> first_of_pairs(np.array([0, 1, 2, 5, 7, 8])).tolist()
    [True, False, True, True, True, False]
    """
    begins = np.concatenate([[True], np.diff(places) > 1]) if places.size else np.empty(0, dtype=bool)
    start = np.maximum.accumulate(np.where(begins, places, 0)) if places.size else places
    return np.asarray((places - start) % 2 == 0)


def paired(rest: Hashes) -> tuple[Ints, Ints]:
    """Return pairs of rows, by number, that agree in all but the outcomes, of groups of a few; no row is in two pairs.

    >>> [places.tolist() for places in paired(np.array([7, 5, 7, 7, 5, 9], dtype=np.uint64))]
    [[1, 0], [4, 2]]
    """
    _, groups, sizes = np.unique(rest, return_inverse=True, return_counts=True)
    order = np.argsort(groups.reshape(-1), kind="stable")
    within = np.arange(rest.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    size = np.repeat(sizes, sizes)
    first = np.flatnonzero((size <= FEW) & (within % 2 == 0) & (within + 1 < size))
    return np.asarray(order[first]), np.asarray(order[first + 1])


def disagreement(chart: Chart) -> Floats:
    """Return for every row (n,) how often two rows of its action differ in some outcome."""
    values = np.where(np.isnan(chart.log.values), np.inf, chart.log.values)  # what is missing agrees too
    codes = np.unique(values, axis=0, return_inverse=True)[1].reshape(-1)
    told = np.zeros(chart.log.rows)
    for action in np.unique(chart.log.actions).tolist():
        rows = chart.log.actions == action
        shares = np.bincount(codes[rows]) / rows.sum()
        told[rows] = max(1.0 - float(shares @ shares), 0.0)
    return told


def apart(seen: float, chance: float) -> float:
    """Return kl(seen, chance) where more is seen than chance has, else 0."""
    if seen <= chance:
        return 0.0
    low = (1.0 - seen) * math.log((1.0 - seen) / (1.0 - chance)) if seen < 1.0 else 0.0
    return low + seen * math.log(seen / chance)


class Digests(NamedTuple):
    """Hashes of every row (n,), ids left out: of all, of all but outcomes, of all but these and times, of outcomes."""

    whole: Hashes
    rest: Hashes
    user: Hashes
    outcomes: Hashes

    @classmethod
    def of(cls, chart: Chart) -> "Digests":
        """Return the hashes of a log's rows."""
        wanted = {chart.called.get(name, name) for name in chart.names} | {f"signal.{name}" for name in chart.names}
        times = {*TIMES, chart.called.get("at", "at")}
        whole, rest, user, outcomes = np.zeros((4, chart.log.rows), dtype=np.uint64)
        for name, array in chart.log.arrays.items():
            if is_id(name) or numbers_rows(array):
                continue
            mixed = mixture(array)
            whole = with_column(whole, mixed)
            if name in wanted:
                outcomes = with_column(outcomes, mixed)
                continue
            rest = with_column(rest, mixed)
            user = user if name in times or holds_times(array) else with_column(user, mixed)
        return cls(whole, rest, user, outcomes)


def is_id(name: Any) -> bool:
    """Say whether a column is called as what every row has one of."""
    return isinstance(name, str) and IDS.fullmatch(name) is not None


def numbers_rows(array: npt.NDArray[Any]) -> bool:
    """Say whether a column numbers the rows, in whatever order.

    >>> numbers_rows(np.array([3, 1, 2])), numbers_rows(np.array([1, 1, 2])), numbers_rows(np.array([1.0, 2.0]))
    (True, False, False)
    """
    if array.dtype.kind not in "iu" or array.size < 2 or int(array.max()) - int(array.min()) != array.size - 1:
        return False
    return bool(np.unique(array).size == array.size)


def mixture(array: npt.NDArray[Any]) -> Hashes:
    """Return a column as 64 bits a row, the same for equal values."""
    if array.dtype.kind in "bfiu":
        return bits_of(array)
    if array.dtype.kind in "mM":
        return np.ascontiguousarray(array).view(np.uint64)
    places: dict[Any, int] = {}
    return np.array([places.setdefault(str(entry), len(places)) for entry in array.tolist()], dtype=np.uint64)
