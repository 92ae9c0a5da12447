"""A user as a problem is told of one: numbers and segments by name, and which actions are on offer."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence, Set
from functools import cached_property, partial
from operator import itemgetter
from typing import Any

import numpy as np

from stagewise.kernels.compile import Floats
from stagewise.kernels.ranges import fill_scaled
from stagewise.problem.checks import TRUTHS, is_listing, mapping_of, number, shown
from stagewise.problem.context import Context
from stagewise.problem.errors import InvalidActions
from stagewise.problem.naming import listing, number_of, outside, ranges_of, segment_name
from stagewise.problem.words import nearest

DOUBLE, NO_NUMBERS = np.dtype(np.float64), np.array(None)


class ToldByName:
    """What is told by name: the context of a user, and actions."""

    actions: Sequence[str]
    context: Sequence[str] | Mapping[str, Sequence[float]]

    @property
    @abstractmethod
    def divisions(self) -> tuple[str, ...]:
        """What users are divided into segments by."""

    @cached_property
    def expected(self) -> tuple[str, ...]:
        """What a context tells."""
        return (*self.context, *self.divisions)

    @cached_property
    def ranges(self) -> tuple[tuple[str, tuple[float, float]], ...]:
        """The numbers of a context with their ranges."""
        return tuple(ranges_of(self.context).items())

    @cached_property
    def ends(self) -> Floats:
        """The ranges of the numbers (n, 2)."""
        return np.array([ends for _, ends in self.ranges]).reshape(-1, 2)

    def offered(self, context: Any, only: Any = None) -> Context:
        """Return what a policy is given for one user, of a mapping by name."""
        given = {} if context is None and not self.context and not self.divisions else context
        if hasattr(given, "to_dict") and getattr(given, "ndim", 0) == 1:  # a row of a data frame
            given = mapping_of(given.to_dict(), "the context", InvalidActions)
        if not isinstance(given, Mapping):
            raise InvalidActions(f"the context is {shown(context)}; it must be a mapping of {listing(self.expected)}")
        if len(given) != len(self.expected) or not all(name in given for name in self.expected):
            self._refuse_names(given)
        numbers = np.empty(len(self.context))
        wrong = fill_scaled(self._values_in(given), self.ends, numbers)
        if wrong >= 0:
            self._refuse_value(wrong, given)
        places = [number_of(segment_name(given[name], name)) for name in self.divisions]
        return Context.trusted(numbers, places, None if only is None else self.places_of(only))

    def _values_in(self, given: Mapping[str, Any]) -> Floats:
        """Return the numbers of a context, in order: at once where all are plain, else one by one."""
        try:
            values = np.array(self._picked(given))
        except Exception:  # whatever an object's own code comes to
            values = NO_NUMBERS
        if values.dtype is DOUBLE and values.ndim == 1:
            return values
        return np.array([number_in(given[name], name) for name in self.context], dtype=np.float64)

    @cached_property
    def _picked(self) -> Callable[[Mapping[str, Any]], Any]:
        """How the numbers are picked from a context."""
        names = tuple(self.context)
        return itemgetter(*names) if len(names) > 1 else partial(each_in, names)

    def _refuse_value(self, place: int, given: Mapping[str, Any]) -> None:
        """Say which number lies outside its range."""
        name, (low, high) = self.ranges[place]
        value = given[name] if type(given[name]) is float else number_in(given[name], name)
        raise InvalidActions(outside(name, value, low, high))

    def _refuse_names(self, given: Mapping[Any, Any]) -> None:
        """Say which names are missing from a context, or unknown."""
        for name in given:
            if name not in self.expected:
                other = nearest(name, self.expected)
                raise InvalidActions(f"the context has {shown(name)}, which the problem does not declare{other}")
        absent = [name for name in self.expected if name not in given]
        raise InvalidActions(f"the context lacks {listing(absent)}; every number and segment is needed in every call")

    def places_of(self, only: Any) -> list[int]:
        """Return the numbers of actions given by name."""
        if isinstance(only, str) or not (is_listing(only) or isinstance(only, Set)):
            raise InvalidActions(f"only is {shown(only)}; it must be a list of actions")
        return [self.place_of(name) for name in only]

    def place_of(self, name: Any) -> int:
        """Return the number of an action."""
        place = self._places.get(name) if isinstance(name, str) else None
        if place is None:
            other = nearest(name, self.actions) or f"; they are {listing(self.actions)}"
            raise InvalidActions(f"{shown(name)} is no action of this problem{other}")
        return place

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.actions)}


def each_in(names: Sequence[str], given: Mapping[str, Any]) -> list[Any]:
    """Return the numbers of a context with at most one name."""
    return [given[name] for name in names]


def number_in(value: Any, name: str) -> float:
    """Return a number of a context; True counts as 1 and False as 0."""
    return 1.0 * value if isinstance(value, TRUTHS) else number(value, repr(name), InvalidActions)
