"""What each cost may be at most, or at least: the limits of every single round."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from stagewise.problem.checks import Floats, entries_of, frozen, is_listing, mapping_of, number, observed, shown
from stagewise.problem.errors import InvalidOutcome, InvalidProblem, StagewiseError
from stagewise.problem.given_thresholds import given_as_list
from stagewise.problem.safe_action import SafeAction
from stagewise.problem.tables import in_order, named

# What the arithmetic aims below a threshold, relative to its size, so that rounding cannot carry a decision over it.
MARGIN = 1e-14


@dataclass(frozen=True)
class RelativeToSafe:
    """A threshold as a multiple of the safe action's own cost.

    >>> resolved(RelativeToSafe(1.1), SafeAction(arm=0, cost=0.2)).values.round(6)  # at most 10 % above it
    array([0.22])
    """

    factor: float
    """The limit is this times the safe action's cost, which must be known."""


@dataclass(frozen=True)
class AtLeast:
    """A limit from below: the expected value must not fall under it.

    >>> resolved({"clicks": AtLeast(0.1)}, SafeAction(arm=0, cost=0.3)).signs
    array([-1.])
    """

    value: float | RelativeToSafe
    """The limit, or how it follows from the safe action's own."""


OneThreshold = float | RelativeToSafe | AtLeast
Threshold = OneThreshold | Sequence[OneThreshold] | Mapping[str, OneThreshold] | Floats  # one, several, or by name


class ThresholdParts(NamedTuple):
    """A threshold taken apart: which side it is on, its number, and whether that is times the safe action's own."""

    at_least: bool
    relative: bool
    number: Any  # as it was given

    @property
    def sign(self) -> float:
        """+1 for at most, −1 for at least."""
        return -1.0 if self.at_least else 1.0

    def with_number(self, number: Any) -> OneThreshold:
        """Return a threshold of the same kind with another number."""
        value = RelativeToSafe(number) if self.relative else number
        return AtLeast(value) if self.at_least else value


def taken_apart(threshold: Any) -> ThresholdParts:
    """Return the parts of one threshold, unchecked.

    >>> taken_apart(0.02).number, taken_apart(AtLeast(RelativeToSafe(0.9)))
    (0.02, ThresholdParts(at_least=True, relative=True, number=0.9))
    """
    at_least = isinstance(threshold, AtLeast)
    value = threshold.value if at_least else threshold
    relative = isinstance(value, RelativeToSafe)
    return ThresholdParts(at_least, relative, value.factor if relative else value)


@dataclass(frozen=True, eq=False)
class Thresholds:
    """The constraints, resolved: names, directions, limits in the user's own units, and the safe action's costs."""

    names: tuple[str, ...]
    signs: Floats  # (m,) +1 for at most, −1 for at least
    values: Floats  # (m,)
    safe: Floats | None  # (m,) the safe action's costs; None: at least one is unknown
    told: Floats  # (m,) the same, NaN where unknown

    bound_name: ClassVar[str] = "cost_bound"  # what the bound on mean costs is called where it is declared

    @property
    def limits(self) -> Floats:
        """What the arithmetic aims at: signed so that less is better, and a rounding margin inside."""
        scale = np.abs(self.values) if self.safe is None else np.maximum(np.abs(self.values), np.abs(self.safe))
        return self.signs * self.values - MARGIN * scale

    @property
    def at_safe(self) -> Floats:
        """What the safe action costs: as known, or no more than its limits."""
        return self.values if self.safe is None else self.safe

    @property
    def signed_safe(self) -> Floats | None:
        """The safe action's costs, signed so that less is better; None: at least one is unknown."""
        return None if self.safe is None else self.signs * self.safe

    @cached_property
    def _all_at_most(self) -> bool:
        return bool(np.all(self.signs > 0.0))

    def in_units(self, signed: Floats) -> Floats:
        """Return signed costs in the user's own direction."""
        return signed if self._all_at_most else self.signs * signed

    def in_unit(self, constraint: int, signed: float) -> float:
        """Return one signed cost in the user's own direction."""
        return float(self.signs[constraint]) * signed

    def costs(self, value: Any, error: type[StagewiseError] = InvalidOutcome, what: str = "the cost") -> Floats:
        """Return one finite cost per constraint, from a number, a sequence or a mapping by name."""
        by_name = named(value, what, error)
        if by_name is not None:
            value = in_order(by_name, self.names, what, error)
        entries = entries_of(value, what, error) if is_listing(value) else [value]
        if len(entries) != len(self.names):
            raise error(
                f"{what} is {shown(value)}; it needs one number for each of {', '.join(self.names) or 'no constraint'}"
            )
        return np.array([observed(e, f"{what} of {n!r}", error) for e, n in zip(entries, self.names, strict=True)])


NO_THRESHOLDS = Thresholds((), np.empty(0), np.empty(0), np.empty(0), np.empty(0))


def resolved(threshold: Any, safe_action: SafeAction) -> Thresholds:
    """Return the constraints that a user's `threshold` means beside this safe action.

    >>> resolved({"opt_out": 0.02, "clicks": AtLeast(0.1)}, SafeAction(arm=0, cost=[0.01, 0.2])).signs
    array([ 1., -1.])
    """
    given, names = given_as_list(threshold)
    parts = [taken_apart(entry) for entry in given]
    costs = safe_costs(safe_action, names)
    safe = None if np.isnan(costs).any() else costs
    signs = np.array([entry.sign for entry in parts])
    told = zip(parts, names, costs.tolist(), strict=True)
    values = np.array([one_value(entry, name, cost, safe_action.of_the_round) for entry, name, cost in told])
    safe = None if safe is None else frozen(safe)
    thresholds = Thresholds(names, frozen(signs), frozen(values), safe, frozen(costs))
    for name, sign, cost, value, limit in zip(names, signs, costs, values, thresholds.limits, strict=True):
        if sign * cost >= limit:
            side = "above" if sign < 0 else "below"
            raise InvalidProblem(
                f"the safe action's {name!r} is {cost}, which leaves no slack against its threshold {value}; "
                f"learning needs a safe action strictly {side} it"
            )
    return thresholds


def safe_costs(safe_action: SafeAction, names: tuple[str, ...]) -> Floats:
    """Return the safe action's costs, NaN where unknown."""
    cost, what = safe_action.cost, "the safe action's cost"
    entries = in_order(mapping_of(cost, what), names, what) if isinstance(cost, Mapping) else cost
    listing = entries_of(entries, what) if is_listing(entries) else [entries] * (len(names) if entries is None else 1)
    if safe_action.is_origin:
        listing = [0.0 if entry is None else entry for entry in listing]
    if len(listing) != len(names):
        raise InvalidProblem(f"{what} has {len(listing)} entries; it needs one for each of {', '.join(names)}")
    named = zip(listing, names, strict=True)
    costs = np.array([np.nan if e is None else number(e, f"{what} of {n!r}") for e, n in named])
    if safe_action.is_origin and np.any(costs):
        raise InvalidProblem(
            f"the safe action is the zero vector but its cost is {costs.tolist()}; a linear cost is 0 there, "
            "so add a constant feature or subtract the cost of doing nothing"
        )
    return costs


def one_value(entry: ThresholdParts, name: str, cost: float, moving: bool) -> float:
    """Return one threshold as a number; `cost` is the safe action's, NaN where it is unknown."""
    if not entry.relative:
        return number(entry.number, f"the threshold of {name!r}")
    factor = number(entry.number, f"the factor of {name!r} relative to the safe action")
    if np.isnan(cost):
        raise InvalidProblem(
            f"the threshold of {name!r} is relative to the safe action, whose cost is unknown; give that cost"
        )
    if moving:
        raise InvalidProblem(
            f"the threshold of {name!r} is relative to the safe action, which is another one in every round and of "
            "which only a bound is known; give a number"
        )
    return number(factor * cost, f"the threshold of {name!r}, {factor:g} times the safe action's,")
