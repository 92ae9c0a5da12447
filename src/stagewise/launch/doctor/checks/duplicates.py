"""Check `duplicates`: no row is in the log twice. An outcome that counts twice makes bounds too narrow."""

import math
import re
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stagewise.engine.compile import Floats, Ints
from stagewise.launch.decision_log import TIME_COLUMNS, holds_times
from stagewise.launch.doctor.finding import Finding, select_most_severe
from stagewise.launch.doctor.finding_messages import FindingCode
from stagewise.launch.doctor.log_profile import LogProfile
from stagewise.launch.doctor.permutation_tests import Flags
from stagewise.problem.columns import Hashes, convert_to_bits, extend_hashes

# Names of columns that identify a row; a session or a user has several rows.
ID_PATTERN = re.compile(r"(decision|request|event|row|message|impression|log)?_?(id|uuid|key)", re.IGNORECASE)
MIN_DISAGREEMENT = 0.2  # share of an action's disagreement that remains among similar users
REPEAT_SECONDS = 60.0  # a retry follows within this time
MAX_GROUP_SIZE = 4  # rows that agree in all but the outcomes; larger groups mean that the columns identify no user


def check(profile: LogProfile, alpha: float) -> Finding:
    """Find ids that occur twice, and rows that agree in everything more often than rows of similar users would.

    Two different rows that agree in all but the outcomes agree in the outcomes too with a probability q < 1. If D of J
    such pairs agree, exp(−J kl(D/J, q)) bounds the p-value, with q the mean over pairs. Pairs are formed without
    looking at the outcomes: neighbours, in the order of the log, in small groups that agree in all else. The second
    test is on rows that follow one another within seconds and agree in all but the times, such as retries.
    """
    log, id_column = profile.log, None
    for name, array in log.arrays.items():
        if is_id(name):
            entries = [entry for entry in array.tolist() if entry is not None and entry == entry]
            duplicates = len(entries) - len(set(entries))
            if duplicates:
                return Finding.of(FindingCode.DUPLICATE_IDS, name=name, count=duplicates, rows=log.rows)
            id_column = name if entries else id_column
    hashes = RowHashes.of(profile)
    copies = log.rows - np.unique(hashes.all_columns).size
    findings = []
    if copies:
        one, other = pair_rows(hashes.but_outcomes)
        certain = is_significant(profile, one, hashes.all_columns[one] == hashes.all_columns[other], 0.5 * alpha)
        code = FindingCode.COPIED_ROWS if certain else FindingCode.POSSIBLE_COPIES
        findings.append(Finding.of(code, count=copies, rows=log.rows))
    one, other = find_repeats(hashes.user, log.at)
    if one.size:
        same = hashes.outcomes[one] == hashes.outcomes[other]
        certain = is_significant(profile, one, same, 0.5 * alpha)
        code = FindingCode.REPEATED_ROWS if certain else FindingCode.POSSIBLE_REPEATS
        findings.append(
            Finding.of(code, count=int(one.size), rows=log.rows, same=int(same.sum()), seconds=REPEAT_SECONDS)
        )
    return select_most_severe(findings, Finding.of(FindingCode.NO_DUPLICATES, id_column=id_column))


def is_significant(profile: LogProfile, one: Ints, same: Flags, alpha: float) -> bool:
    """Say whether pairs of rows agree in the outcomes more often than rows of similar users would."""
    if not one.size:
        return False
    agreeing = 1.0 - MIN_DISAGREEMENT * float(compute_disagreement(profile)[one].mean())
    return math.log(1.0 / alpha) <= one.size * kl_divergence(float(same.mean()), agreeing)


def find_repeats(user: Hashes, at: Floats | None) -> tuple[Ints, Ints]:
    """Return pairs of rows that agree in all but times and outcomes and follow one another within seconds.

    Pairs are from small groups; no row is in two pairs, and rows of the same time are no pair.

    >>> hashes, at = np.array([7, 7, 5, 7, 5], dtype=np.uint64), np.array([0.0, 3.0, 1.0, 900.0, 1.0])
    >>> [rows.tolist() for rows in find_repeats(hashes, at)]
    [[0], [1]]
    """
    none = np.empty(0, dtype=np.int64)
    if at is None:
        return none, none
    order = np.lexsort((at, user))
    _, groups, sizes = np.unique(user, return_inverse=True, return_counts=True)
    few = sizes[groups.reshape(-1)[order]] <= MAX_GROUP_SIZE
    with np.errstate(invalid="ignore"):
        gap = np.diff(at[order])
        near = (user[order][1:] == user[order][:-1]) & (gap > 0.0) & (gap <= REPEAT_SECONDS) & few[1:]
    first = np.flatnonzero(near)
    kept = first[select_pair_starts(first)]
    return np.asarray(order[kept]), np.asarray(order[kept + 1])


def select_pair_starts(indices: Ints) -> Flags:
    """Return every second one of consecutive indices, since a pair takes two.

    >>> select_pair_starts(np.array([0, 1, 2, 5, 7, 8])).tolist()
    [True, False, True, True, True, False]
    """
    begins = np.concatenate([[True], np.diff(indices) > 1]) if indices.size else np.empty(0, dtype=bool)
    start = np.maximum.accumulate(np.where(begins, indices, 0)) if indices.size else indices
    return np.asarray((indices - start) % 2 == 0)


def pair_rows(hashes: Hashes) -> tuple[Ints, Ints]:
    """Return pairs of rows with equal hashes, from small groups; no row is in two pairs.

    >>> [rows.tolist() for rows in pair_rows(np.array([7, 5, 7, 7, 5, 9], dtype=np.uint64))]
    [[1, 0], [4, 2]]
    """
    _, groups, sizes = np.unique(hashes, return_inverse=True, return_counts=True)
    order = np.argsort(groups.reshape(-1), kind="stable")
    within = np.arange(hashes.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    size = np.repeat(sizes, sizes)
    first = np.flatnonzero((size <= MAX_GROUP_SIZE) & (within % 2 == 0) & (within + 1 < size))
    return np.asarray(order[first]), np.asarray(order[first + 1])


def compute_disagreement(profile: LogProfile) -> Floats:
    """Return for every row (n,) the probability that two rows of its action differ in some outcome."""
    values = np.where(np.isnan(profile.log.values), np.inf, profile.log.values)  # missing values agree
    codes = np.unique(values, axis=0, return_inverse=True)[1].reshape(-1)
    disagreement = np.zeros(profile.log.rows)
    for action in np.unique(profile.log.actions).tolist():
        rows = profile.log.actions == action
        shares = np.bincount(codes[rows]) / rows.sum()
        disagreement[rows] = max(1.0 - float(shares @ shares), 0.0)
    return disagreement


def kl_divergence(observed: float, expected: float) -> float:
    """Return kl(observed, expected) if more is observed than expected, else 0."""
    if observed <= expected:
        return 0.0
    low = (1.0 - observed) * math.log((1.0 - observed) / (1.0 - expected)) if observed < 1.0 else 0.0
    return low + observed * math.log(observed / expected)


class RowHashes(NamedTuple):
    """Hashes of rows (n,) without ids: of all columns, all but outcomes, all but outcomes and times, and outcomes."""

    all_columns: Hashes
    but_outcomes: Hashes
    user: Hashes
    outcomes: Hashes

    @classmethod
    def of(cls, profile: LogProfile) -> "RowHashes":
        """Return the hashes of a log's rows."""
        signals = {profile.columns.get(name, name) for name in profile.names} | {
            f"signal.{name}" for name in profile.names
        }
        times = {*TIME_COLUMNS, profile.columns.get("at", "at")}
        all_columns, but_outcomes, user, outcomes = np.zeros((4, profile.log.rows), dtype=np.uint64)
        for name, array in profile.log.arrays.items():
            if is_id(name) or is_row_number(array):
                continue
            bits = hash_column(array)
            all_columns = extend_hashes(all_columns, bits)
            if name in signals:
                outcomes = extend_hashes(outcomes, bits)
                continue
            but_outcomes = extend_hashes(but_outcomes, bits)
            user = user if name in times or holds_times(array) else extend_hashes(user, bits)
        return cls(all_columns, but_outcomes, user, outcomes)


def is_id(name: Any) -> bool:
    """Say whether a column has the name of a row id."""
    return isinstance(name, str) and ID_PATTERN.fullmatch(name) is not None


def is_row_number(array: npt.NDArray[Any]) -> bool:
    """Say whether a column numbers the rows, in any order.

    >>> is_row_number(np.array([3, 1, 2])), is_row_number(np.array([1, 1, 2])), is_row_number(np.array([1.0, 2.0]))
    (True, False, False)
    """
    if array.dtype.kind not in "iu" or array.size < 2 or int(array.max()) - int(array.min()) != array.size - 1:
        return False
    return bool(np.unique(array).size == array.size)


def hash_column(array: npt.NDArray[Any]) -> Hashes:
    """Return 64 bits for every row of a column, the same for equal values."""
    if array.dtype.kind in "bfiu":
        return convert_to_bits(array)
    if array.dtype.kind in "mM":
        return np.ascontiguousarray(array).view(np.uint64)
    codes: dict[Any, int] = {}
    return np.array([codes.setdefault(str(entry), len(codes)) for entry in array.tolist()], dtype=np.uint64)
